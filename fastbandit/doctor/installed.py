"""Checks of Python, fastbandit and the packages that each extra brings."""

from __future__ import annotations

import platform
import re
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

import fastbandit
from fastbandit.doctor.finding import Finding, fine

OLDEST_PYTHON = (3, 11)
_FOR_DEVELOPERS = ("dev", "cluster-dev", "docs", "release", "peers")
_REQUIREMENT = re.compile(
    r"(?P<name>[\w.-]+)(?:\[(?P<inner>[\w,-]+)\])?\s*(?P<bounds>[^;]*)"
    r"(?:;.*extra\s*==\s*['\"](?P<extra>[\w-]+)['\"])?"
)


@dataclass(frozen=True)
class Requirement:
    """A package that the base (`extra` is "") or an extra needs, within bounds like ">=1.2,<2"."""

    name: str
    bounds: str = ""
    extra: str = ""
    inner: tuple[str, ...] = ()
    """The extras that it asks for of the package itself."""


def check_python() -> Finding:
    """Look at the version of Python."""
    found = f"{platform.python_implementation()} {platform.python_version()}"
    if sys.version_info >= OLDEST_PYTHON:
        return fine("Python", found)
    return Finding(
        "Python",
        "broken",
        found,
        "fastbandit uses what came with Python 3.11.",
        "Make a new environment with Python 3.11 or newer.",
    )


def check_fastbandit() -> Finding:
    """Look at which fastbandit is imported, and whether pip knows of it."""
    place = Path(fastbandit.__file__).parent
    found = f"{fastbandit.__version__} in {place}"
    try:
        told = metadata.version("fastbandit")
    except metadata.PackageNotFoundError:
        return Finding(
            "fastbandit",
            "missing",
            f"{found}, not installed",
            "What its extras need is known only of an installed package.",
            f"Run: pip install -e {place.parent}",
        )
    if told == fastbandit.__version__:
        return fine("fastbandit", found)
    return Finding(
        "fastbandit",
        "broken",
        f"{found}; pip knows of {told}",
        "Two versions are mixed: one hides the other.",
        "Run: pip install --force-reinstall --no-deps fastbandit",
    )


def check_packages() -> list[Finding]:
    """Look at the packages of the base, and of each extra but those of developers."""
    try:
        lines = metadata.requires("fastbandit") or []
    except metadata.PackageNotFoundError:
        return []
    return findings_for(requirements_of(lines), installed_version)


def findings_for(
    requirements: Iterable[Requirement], version_of: Callable[[str], str | None]
) -> list[Finding]:
    """Say of the base and of each extra what is missing or too old."""
    listed = list(requirements)
    extras = dict.fromkeys(one.extra for one in listed)
    return [
        _finding_for(extra, _whole(extra, listed), version_of)
        for extra in extras
        if extra not in _FOR_DEVELOPERS
    ]


def _whole(extra: str, listed: list[Requirement]) -> list[Requirement]:
    """Give what an extra needs, with what those extras need that it asks for."""
    own = [one for one in listed if one.extra == extra]
    packages = [one for one in own if one.name != "fastbandit"]
    for one in own:
        for inner in one.inner if one.name == "fastbandit" else ():
            packages += _whole(inner, listed)
    return packages


def _finding_for(
    extra: str, wanted: list[Requirement], version_of: Callable[[str], str | None]
) -> Finding:
    name = f"extra {extra}" if extra else "base packages"
    versions = {one.name: version_of(one.name) for one in wanted}
    absent = [one for one, version in versions.items() if version is None]
    unfit = [
        f"{one.name} {versions[one.name]} (needs {one.bounds})"
        for one in wanted
        if not fits(versions[one.name] or "", one.bounds)
    ]
    install = f"Run: pip install -U 'fastbandit{f'[{extra}]' if extra else ''}'"
    if unfit:
        return Finding(name, "broken", ", ".join(unfit), "Other versions were tested.", install)
    if absent and extra:
        there = f" (of {len(versions)})" if len(absent) < len(versions) else ""
        return Finding(
            name,
            "missing",
            f"not installed: {', '.join(absent)}{there}",
            "Only those parts that need it do not work.",
            install,
        )
    if absent:
        return Finding(name, "broken", f"not installed: {', '.join(absent)}", fix=install)
    return fine(name, ", ".join(f"{one} {version}" for one, version in versions.items()))


# -- requirements and versions


def requirements_of(lines: Iterable[str]) -> list[Requirement]:
    """Read the requirements of a package as its metadata words them."""
    read = (_REQUIREMENT.match(line) for line in lines)
    return [
        Requirement(
            one["name"],
            one["bounds"].strip(" ()").replace(" ", ""),
            one["extra"] or "",
            tuple((one["inner"] or "").split(",")) if one["inner"] else (),
        )
        for one in read
        if one is not None
    ]


def installed_version(name: str) -> str | None:
    """Give the version of a package, or None."""
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def fits(version: str, bounds: str) -> bool:
    """Tell whether a version lies within bounds; one that is not there is not judged."""
    if not version:
        return True
    return all(_is_within(version, bound) for bound in bounds.split(",") if bound)


def _is_within(version: str, bound: str) -> bool:
    compared = re.match(r"(>=|<=|==|!=|~=|>|<)(.+)", bound)
    if compared is None:
        return True
    ours, theirs = _numbers(version), _numbers(compared[2])
    length = max(len(ours), len(theirs))
    ours, theirs = (one + (0,) * (length - len(one)) for one in (ours, theirs))
    return {
        ">=": ours >= theirs,
        "~=": ours >= theirs,
        "<=": ours <= theirs,
        "==": ours == theirs,
        "!=": ours != theirs,
        ">": ours > theirs,
        "<": ours < theirs,
    }[compared[1]]


def _numbers(version: str) -> tuple[int, ...]:
    """Give the release numbers of a version: what follows them (such as +cpu) says little."""
    found = re.match(r"\d+(\.\d+)*", version)
    return tuple(map(int, found[0].split("."))) if found else (0,)

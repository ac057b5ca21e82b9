"""What a generated table says of itself: its command, and the version and commits of its code."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from fastbandit import __version__
from lab.experiments.results import code_commit

PROGRAM = "python -m lab"
UNKNOWN = "not recorded"
_STAMP = re.compile(
    r"Measured by `(?P<command>[^`]+)` with fastbandit (?P<versions>[^;]+); "
    r"commits?: (?P<commits>[^\n]+)\."
)
_RELEASE = re.compile(r"^## \[?v?(\d+\.\d+\.\d+)", re.MULTILINE)
_NOT_SHOWN = ("doc", "out", "data", "made_only", "as_json", "is_json", "picture", "workers")


@dataclass(frozen=True)
class Stamp:
    """How the figures of a page came about."""

    command: str
    versions: tuple[str, ...]
    commits: tuple[str, ...]

    def __str__(self) -> str:
        plural = "" if len(self.commits) == 1 else "s"
        return (
            f"Measured by `{self.command}` with fastbandit {', '.join(self.versions)}; "
            f"commit{plural}: {', '.join(self.commits)}."
        )


def stamp_of(command: str, results: Iterable[Mapping[str, Any]]) -> Stamp:
    """Return the stamp of figures that a command made of result files."""
    known = list(results)
    versions = {str(result.get("version") or UNKNOWN) for result in known}
    commits = {short(result.get("commit")) for result in known}
    return Stamp(command, tuple(sorted(versions)), tuple(sorted(commits)) or (UNKNOWN,))


def stamp_now(command: str) -> Stamp:
    """Return the stamp of figures that the code as it is has just measured."""
    return Stamp(command, (__version__,), (short(code_commit()),))


def short(commit: str | None) -> str:
    """Return the first ten digits of a commit, and whether the code was changed beside it."""
    if not commit:
        return UNKNOWN
    return commit[:10] + ("-dirty" if commit.endswith("-dirty") else "")


def command_line(otherwise: str) -> str:
    """Return the command that is running with the options given to it, but for its outputs."""
    context = click.get_current_context(silent=True)
    if context is None or not context.command_path.startswith(PROGRAM):
        return f"{PROGRAM} {otherwise}"
    words = [context.command_path]
    for parameter in context.command.params:
        name = parameter.name or ""
        is_given = context.get_parameter_source(name) is ParameterSource.COMMANDLINE
        if is_given and name not in _NOT_SHOWN and isinstance(parameter, click.Option):
            value = context.params[name]
            words += [parameter.opts[-1]] if value is True else [parameter.opts[-1], f"{value}"]
    return " ".join(words)


# -- whether a page is too old


def stamps_in(text: str) -> list[Stamp]:
    """Return the stamps of a page, in their order."""
    return [
        Stamp(
            found["command"], *(tuple(found[name].split(", ")) for name in ("versions", "commits"))
        )
        for found in _STAMP.finditer(text)
    ]


def releases_in(changelog: str, *, now: str = __version__) -> list[str]:
    """Return the versions that were released, the newest first, led by the present one."""
    released = _RELEASE.findall(changelog)
    return released if now in released else [now, *released]


def commits_since(stamp: Stamp, root: Path) -> int | None:
    """Return by how many commits the package changed after the oldest commit that a stamp names.

    None where it names none, or none that this checkout has.
    """
    known = re.findall(r"\b[0-9a-f]{10}\b", " ".join(stamp.commits))
    counts = []
    for commit in known:
        command = [
            "git",
            "-C",
            str(root),
            "rev-list",
            "--count",
            f"{commit}..HEAD",
            "--",
            "fastbandit",
        ]
        done = subprocess.run(command, capture_output=True, text=True)
        counts += [int(done.stdout)] if done.returncode == 0 else []
    return max(counts, default=None)


def package_trees(commits: Iterable[str | None], root: Path) -> set[str]:
    """Return the states of the package, by git's hashes, that were measured at these commits.

    A commit that is not recorded, not in this checkout, or was changed beside it is a state of
    its own.
    """
    trees = set()
    for commit in set(commits):
        named = ["git", "-C", str(root), "rev-parse", "--verify", "-q", f"{commit}:fastbandit"]
        done = subprocess.run(named, capture_output=True, text=True)
        trees.add(done.stdout.strip() if done.returncode == 0 else short(commit))
    return trees


def outdated(stamp: Stamp, releases: Sequence[str]) -> list[str]:
    """Return the versions of a stamp that are older than the release before the present one.

    Figures of the present release and of the one before it may stand: they are renewed once a
    release, not once a commit. A version that was never released, or none, is outdated.
    """
    return [version for version in stamp.versions if version not in releases[:2]]

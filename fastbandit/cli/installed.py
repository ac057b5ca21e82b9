"""What fastbandit and its extras need, by the metadata of the package, and what is there."""

from __future__ import annotations

import re
from collections.abc import Iterable
from importlib import metadata
from operator import eq, ge, gt, le, lt, ne

Needs = dict[str, dict[str, str]]
"""By extra ("" for the base), the packages that it needs, within bounds like ">=1.2,<2"."""

_REQUIREMENT = re.compile(
    r"(?P<name>[\w.-]+)(?:\[[\w,-]+\])?\s*(?P<bounds>[^;]*)"
    r"(?:;.*extra\s*==\s*['\"](?P<extra>[\w-]+)['\"])?"
)
_HOLDS = {">=": ge, "~=": ge, "<=": le, "==": eq, "!=": ne, ">": gt, "<": lt}


def needs_in(lines: Iterable[str]) -> Needs:
    """Read requirements as metadata has them; what extras share was written out at the build."""
    needs: Needs = {}
    for one in map(_REQUIREMENT.match, lines):
        if one is not None:
            needs.setdefault(one["extra"] or "", {})[one["name"]] = one["bounds"].strip()
    return needs


def installed_version(name: str) -> str | None:
    """Return the version of a package, or None."""
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def fits(version: str, bounds: str) -> bool:
    """Return whether a version lies within bounds, by its numbers."""
    found = re.findall(r"(>=|<=|==|!=|~=|>|<)\s*([^,\s]+)", bounds)
    return all(_HOLDS[sign](_numbers(version), _numbers(bound)) for sign, bound in found)


def _numbers(version: str) -> list[int]:
    """Return the release numbers of a version: what follows them (such as +cpu) says little."""
    found = re.match(r"\d+(\.\d+)*?(?=(\.0+)*(?![.\d]))", version)  # 2.0.0 is 2
    return [int(part) for part in found[0].split(".")] if found else []

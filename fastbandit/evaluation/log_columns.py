"""Which columns of a log hold what: those that are named, or have the usual names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from fastbandit.errors import DataError
from fastbandit.features.schema import Schema

NAMED = "context."
"""What names of contexts begin with in an export of a service, which has all of `OURS`."""
OURS = {"decision", "eligible", "until"}
_CONTEXTS = ("context", f"{NAMED}*", "context_*", "x_*", "user_feature_*")
_USUAL_NAMES = {
    "arm": ("arm", "arms", "action", "item_id"),
    "reward": ("reward", "click"),
    "propensity": ("propensity", "propensities", "propensity_score", "pscore", "probability"),
}
_TIMES = ("time", "timestamp", "at")
_NO_CONTEXT = {"decision", "decision_id", "seq", "until", "eligible", "version", *_TIMES}


@dataclass(frozen=True)
class LogColumns:
    """Which columns of a log to read; what is not named is looked for by the usual names.

    Ids are texts where `is_text`. `schema` says what the columns of the context mean; without, it
    is inferred where they are not all numbers, and `kinds` correct that, by name.
    """

    context: Sequence[str] = ()
    arm: str | None = None
    reward: str | None = None
    propensity: str | None = None
    is_text: bool = False
    schema: Schema | None = None
    kinds: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class FoundColumns:
    """The names of the columns of a log."""

    context: list[str]
    arm: str
    reward: str
    propensity: str | None
    time: str | None


def columns_in(
    header: Sequence[str], path: Path, asked: LogColumns, *, is_judged: bool
) -> FoundColumns:
    """Find the columns of a log; one that is judged needs propensities."""
    arm, reward = (_needed(what, asked, header, path) for what in ("arm", "reward"))
    propensity = _first("propensity", asked, header)
    if propensity is None and (is_judged or asked.propensity is not None):
        propensity = _needed("propensity", asked, header, path)
    but = [one for one in (arm, reward, propensity) if one is not None]
    return FoundColumns(
        context=_context(header, path, asked, but=but, is_judged=is_judged),
        arm=arm,
        reward=reward,
        propensity=propensity,
        time=next((name for name in _TIMES if name in header and name not in but), None),
    )


def _context(
    header: Sequence[str], path: Path, asked: LogColumns, *, but: Sequence[str], is_judged: bool
) -> list[str]:
    """Return the columns that are named, or those of the schema, or the usual, or all others."""
    is_ours = set(header) >= OURS
    if asked.context:
        return _match(asked.context, header, path, but=but)
    if asked.schema is not None:
        before = NAMED if is_ours else ""
        names = [f"{before}{name}" for name in asked.schema.names]
        return [name for name in names if name in header]
    usual = [p for p in _CONTEXTS if any(fnmatchcase(column, p) for column in header)]
    if usual and (is_judged or is_ours):
        return _match(usual, header, path, but=but)
    found = [name for name in header if name not in but and name.lower() not in _NO_CONTEXT]
    return found or _match(_CONTEXTS[:1], header, path, but=but)


def _first(what: str, asked: LogColumns, header: Sequence[str]) -> str | None:
    named = getattr(asked, what)
    wanted = _USUAL_NAMES[what] if named is None else (named,)
    return next((column for column in wanted if column in header), None)


def _needed(what: str, asked: LogColumns, header: Sequence[str], path: Path) -> str:
    found, named = _first(what, asked, header), getattr(asked, what)
    if found is not None:
        return found
    if what == "propensity" and named is None:
        raise DataError(
            f"{path} needs a column of propensities, how likely the arm was that was taken: found "
            f"{some(header)}. Name it with --propensity (propensity= in Python); if every arm was "
            f"equally likely, add one that holds 1 / arms."
        )
    wanted = " or ".join(map(repr, _USUAL_NAMES[what] if named is None else (named,)))
    raise DataError(
        f"{path} needs a column {wanted}: found {some(header)}. Name the column of the {what} "
        f"with --{what} ({what}= in Python)."
    )


def _match(
    patterns: Sequence[str], header: Sequence[str], path: Path, *, but: Sequence[str]
) -> list[str]:
    """Return the columns that names and patterns stand for; outcomes are none of them."""
    found: list[str] = []
    for pattern in patterns:
        both = (pattern, f"{NAMED}{pattern}")
        matched = [c for c in header if c not in but and any(fnmatchcase(c, p) for p in both)]
        if not matched:
            raise DataError(
                f"{path} needs columns of the context such as {pattern!r}: found {some(header)}. "
                f"Name them with --context (context= in Python); none may be the arm, the reward "
                f"or the propensity."
            )
        found += matched
    return list(dict.fromkeys(found))


def some(header: Sequence[str]) -> str:
    """Return the first names of a header as text."""
    return ", ".join(header[:40]) + (f" and {len(header) - 40} more" if len(header) > 40 else "")

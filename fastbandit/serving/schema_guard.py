"""The meaning of contexts and arms belongs to a data folder: another schema must not serve it.

Values that are read by other names would be learned as what they are not. Columns of a schema may
stand in another order: a version encodes by its own.
"""

from __future__ import annotations

from typing import Any

from fastbandit.errors import SettingError
from fastbandit.features.mapping_columns import LEARNED
from fastbandit.features.schema import Schema
from fastbandit.runtime.frozen import FrozenBandit
from fastbandit.settings.service import Config
from fastbandit.storage.snapshot_version import Snapshot

_FREE = {"kind", "note", "secret", "drop_after_days"}  # they do not change what is learned


def arm_schema_of(bandit: FrozenBandit) -> Schema | None:
    """Return what the features of a bandit's arms mean, where they have names."""
    kind = bandit.parts[2].arm.kind
    found: Schema | None = getattr(getattr(kind, "features", kind), "schema", None)
    return found


class SchemaGuard:
    """Compares the schemas of a config with those of a version."""

    def __init__(self, config: Config) -> None:
        self._context, self._arms = config.context.read_schema(), config.arms.read_schema()
        self._names, self._id = list(config.context.names), config.arms.id
        self._secret_arms = self._arms.secret if self._arms is not None else frozenset[str]()

    def check(self, bandit: FrozenBandit, snapshot: Snapshot) -> None:
        """Raise where a version means something else than the config, and name the difference."""
        known, names = bandit.parts[2].schema, snapshot.notes.get("context_names")
        setting, found = "context.schema", _difference(self._context, known)
        if not found and self._names and names:
            setting, found = "context.names", _of_names(self._names, list(names))
        if not found and self._arms is not None:
            own = [name for name in (self._arms.key, self._id) if name is not None]
            ours, theirs = self._arms.without(own), arm_schema_of(bandit)
            theirs = None if theirs is None else theirs.without(own)
            setting, found = "arms.schema", _difference(ours, theirs, is_fitted=False)
        shown = self._secret_arms & {*(bandit.columns or ())}
        if shown:
            raise SettingError(
                f"A secret column of the arms needs to be so from the first arms on: "
                f"{min(shown)!r} is among the columns for predicates and titles of version "
                f"{snapshot.version}. Leave it out of arms.columns and arms.title, and set "
                f"server.data_dir to a new folder; or leave out secret."
            )
        if found:
            raise SettingError(
                f"A service needs the {setting} that its data folder began with: {found} (version "
                f"{snapshot.version}). Restore it, or set server.data_dir to a new folder."
            )


def _difference(ours: Schema | None, theirs: Schema | None, *, is_fitted: bool = True) -> str:
    """Say how two schemas differ, but for order; only names and kinds where one is not fitted."""
    if ours is None or theirs is None:
        if ours is theirs:
            return ""
        named = theirs if ours is None else ours
        assert named is not None
        columns = ", ".join(named.names)[:200]
        is_lacking = "is not set, and the folder has one" if ours is None else "is set"
        return f"it {is_lacking} with the columns {columns}" + (
            "" if ours is None else ", and the folder has none"
        )
    if names := _of_names(sorted(ours.names), sorted(theirs.names)):
        return names
    own, other = (one.as_dict()["columns"] for one in (ours, theirs))
    for name in ours.names:
        if is_fitted and _has_grown(own[name], other[name]):
            other[name] |= {key: own[name].get(key) for key in LEARNED}
        for key in ("kind", *sorted({*own[name], *other[name]} - _FREE)):
            was, now = other[name].get(key), own[name].get(key)
            if was != now and (is_fitted or key == "kind"):
                return f"the column {name!r} has {key} = {_short(now)}, and had {_short(was)}"
    return ""


def _has_grown(ours: dict[str, Any], theirs: dict[str, Any]) -> bool:
    """Return whether a version has learned more of a mapping than stands in the config."""
    if not ours["kind"] == theirs["kind"] == "mapping":
        return False
    pairs = [(ours.get(key, []), theirs.get(key, [])) for key in LEARNED]
    return all(learned[: len(first)] == first for first, learned in pairs)


def _of_names(ours: list[str], theirs: list[str]) -> str:
    """Say how names differ: one is missing, one is new, or they stand in another order."""
    if missing := next((name for name in theirs if name not in ours), None):
        return f"{missing!r} is missing"
    if fresh := next((name for name in ours if name not in theirs), None):
        return f"{fresh!r} is new"
    if ours == theirs:
        return ""
    at = next(n for n, (one, other) in enumerate(zip(ours, theirs, strict=True)) if one != other)
    return f"the names stand in another order, {ours[at]!r} where {theirs[at]!r} stood"


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."

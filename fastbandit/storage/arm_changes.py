"""Changes of the arms, as the log holds them, made in a bandit that learns or that serves."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from fastbandit.arms.columns import Columns
from fastbandit.arms.ids import ArmIds
from fastbandit.arms.named_arms import columns_for
from fastbandit.arms.offers import PLACEHOLDER, arm_count, with_id
from fastbandit.arms.rows import Upserted
from fastbandit.errors import InputError, NotFiniteError, ShapeError, ValueOfColumnError
from fastbandit.features.schema import Schema
from fastbandit.storage.events import Arm, ArmId, ArmsChanged

_LARGEST = 1e30


@runtime_checkable
class HoldsArms(Protocol):
    """A bandit whose arms can be changed."""

    @property
    def columns(self) -> Columns | None: ...

    def __len__(self) -> int: ...

    def __contains__(self, id: Any) -> bool: ...

    def upsert_arms(
        self, arms: Any, *, ids: Iterable[Any], columns: Any = None, is_trial: bool = False
    ) -> Upserted: ...

    def discard_arms(self, ids: Iterable[Any], *, is_trial: bool = False) -> list[Any]: ...


@dataclass(frozen=True)
class ArmsOutcome:
    """What became of a change: counts, ids that were not there, all arms, and its number."""

    counts: Upserted
    unknown: list[Any]
    arms: int
    catalogue: int


def apply_change(bandit: HoldsArms, change: ArmsChanged, *, is_trial: bool = False) -> Upserted:
    """Upsert arms into a bandit, then discard some; a trial only raises what that would raise.

    An arm that is there just so is left alone; one that differs takes a new row.
    """
    counts = Upserted(0, 0, 0)
    if change.upserted:
        columns = _columns_of(change.upserted)
        if columns and bandit.columns is None:
            raise InputError(
                f"New arms need the columns of the others: got {', '.join(columns)}, and the "
                f"others have none. Leave columns out, or name them in arms.columns and begin with "
                f"a new data folder."
            )
        kinds = {name: column.kind for name, column in (bandit.columns or {}).items()}
        for name, values in (columns or {}).items():
            values[:] = [_filled_in(value, kinds.get(name)) for value in values]
        features, ids = features_of(change.upserted), [arm.id for arm in change.upserted]
        if features is None and columns is None:  # of those that are there, nothing can differ
            ids = [id for id in ids if id not in bandit]
        if ids:
            counts = bandit.upsert_arms(features, ids=ids, columns=columns, is_trial=is_trial)
        left_alone = len(change.upserted) - len(ids)
        counts = counts._replace(unchanged=counts.unchanged + left_alone)
        if not is_trial and PLACEHOLDER in bandit:
            bandit.discard_arms([PLACEHOLDER])
    if change.discarded:
        bandit.discard_arms(change.discarded, is_trial=is_trial)
    return counts


def apply_changes(bandit: HoldsArms, changes: Iterable[ArmsChanged]) -> None:
    """Make changes in the order of the log, many at once where they touch different arms.

    A change that would discard the last arm discards none: so does what serves.
    """
    for batch in _batches(bandit, changes):
        apply_change(bandit, batch)


def apply_offers(bandit: HoldsArms, offers: Iterable[Arm], *, known: ArmIds) -> None:
    """Let a bandit learn from arms that came with requests, but for those it has `known` before.

    None of them can be chosen later, so they need no columns: no predicate finds them.
    """
    fresh = [arm for arm in offers if arm.id not in known]
    if not fresh:
        return
    ids, columns = [arm.id for arm in fresh], dict(bandit.columns or {})
    gap = {"numbers": float("nan"), "text": ""}
    gaps = {name: [gap.get(one.kind, False)] * len(ids) for name, one in columns.items()}
    bandit.upsert_arms(features_of(fresh), ids=ids, columns=gaps or None)
    bandit.discard_arms(ids)


def _batches(bandit: HoldsArms, changes: Iterable[ArmsChanged]) -> Iterator[ArmsChanged]:
    """Join changes that touch different arms; make each before the next is asked for."""
    upserted: dict[ArmId, Arm] = {}
    discarded: dict[ArmId, None] = {}
    live_count = arm_count(bandit)
    for change in changes:
        has_columns = bandit.columns is not None
        arms = {a.id: a if has_columns else Arm(a.id, a.features) for a in change.upserted}
        if any(id in upserted or id in discarded for id in (*arms, *change.discarded)):
            yield ArmsChanged(list(upserted.values()), list(discarded))
            upserted, discarded = {}, {}
        upserted |= arms
        live_count += sum(id not in bandit for id in arms)
        gone = sum(id in arms or id in bandit for id in set(change.discarded))
        if gone < live_count:
            discarded |= dict.fromkeys(change.discarded)
            live_count -= gone
    yield ArmsChanged(list(upserted.values()), list(discarded))


def by_name(
    arms: Sequence[Arm],
    schema: Schema | None,
    *,
    wanted: Iterable[str] | None = None,
    title: str = "",
) -> list[Arm]:
    """Return arms as a log holds them: with features as they came, and columns for predicates.

    Arms that a `schema` describes need features by name; `wanted` are the columns that the others
    have, None before the first arms; `title` is the one that people read.
    """
    if schema is None:
        named = next((arm for arm in arms if isinstance(arm.features, dict)), None)
        if named is None:
            return list(arms)
        raise InputError(
            f"Arms need features as a list of numbers: got an object for {named.id!r}, and the "
            f"first arms came without names. Send a list, or begin with a new data folder."
        )
    listed = next((arm for arm in arms if not isinstance(arm.features, dict)), None)
    if listed is not None:
        raise InputError(
            f"Arms need features by their names ({', '.join(schema.names)[:200]}): got a list for "
            f"{listed.id!r}. Send an object."
        )
    if schema.others is not None:
        arms = [Arm(arm.id, with_id(arm.id, arm.features), arm.columns) for arm in arms]
    used = [one for one in schema.columns if one.width and one.default is not None]
    defaults = {column.name: column.default for column in used}
    rows = [{**defaults, **arm.features} for arm in arms if isinstance(arm.features, dict)]
    _check_rows(rows, schema)
    table = schema.gathered(rows, what="arms")
    found = columns_for(table, schema, title=title)
    wanted = found if wanted is None else list(wanted)
    given = [arm.columns or {} for arm in arms]
    return [
        Arm(arm.id, arm.features, _columns_for(n, wanted, (given[n], found, rows[n])) or None)
        for n, arm in enumerate(arms)
    ]


def _check_rows(rows: list[dict[str, Any]], schema: Schema) -> None:
    """Raise what is wrong with arms, and which of them it is."""
    try:
        schema.encode(rows, what="arms")
    except ValueOfColumnError:
        for row, one in enumerate(rows):
            try:
                schema.encode_one(one)
            except ValueOfColumnError as error:
                raise error.at(row) from None
        raise


def _columns_for(row: int, wanted: Iterable[str], sources: tuple[Any, Any, Any]) -> dict[str, Any]:
    """Return the columns of an arm: those that came, and others by what is known of it."""
    came, derived, features = sources
    own = {name: derived[name][row] for name in wanted if name in derived}
    raw = {name: features[name] for name in wanted if name in features and name not in derived}
    own = {name: None if value != value else value for name, value in own.items()}  # NaN
    return {**raw, **own, **came}


def _filled_in(value: Any, kind: str | None) -> Any:
    """Fill a gap as columns of that kind have it: NaN in numbers, no text."""
    if kind == "numbers" and (value is None or isinstance(value, bool)):
        return float("nan") if value is None else float(value)
    return "" if value is None and kind == "text" else value


def features_of(arms: Sequence[Arm]) -> NDArray[np.float32] | list[Any] | None:
    """Stack the features of arms, if all have as many, of ordinary size; None for ids alone."""
    if all(isinstance(arm.features, dict) for arm in arms):
        return [arm.features for arm in arms]
    if not any(arm.features for arm in arms):
        return None
    odd = next((arm for arm in arms if len(arm.features) != len(arms[0].features)), None)
    if odd is not None:
        raise ShapeError(
            f"Arms need equally many features: got {len(arms[0].features)} for {arms[0].id!r} and "
            f"{len(odd.features)} for {odd.id!r}. Send as many as the others have."
        )
    features = np.array([arm.features for arm in arms], dtype=np.float64)
    huge = np.flatnonzero(~(np.abs(features) <= _LARGEST).all(axis=1))
    if len(huge):
        raise NotFiniteError(
            f"Arms need features of ordinary size, at most {_LARGEST:g}: got "
            f"{arms[huge[0]].features} for {arms[huge[0]].id!r}. Scale the features."
        )
    return features.astype(np.float32)


def _columns_of(arms: Sequence[Arm]) -> dict[str, list[Any]] | None:
    names = set(arms[0].columns or ())
    odd = next((arm for arm in arms if set(arm.columns or ()) != names), None)
    if odd is not None:
        raise InputError(
            f"Arms need the same columns: got {sorted(names)} for {arms[0].id!r} and "
            f"{sorted(odd.columns or ())} for {odd.id!r}. Send a value in each column."
        )
    columns = {name: [(arm.columns or {})[name] for arm in arms] for name in sorted(names)}
    return columns or None

"""Which arms each context may choose: reads what the caller allows, and draws from it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from fastbandit.arms.ids import list_ids
from fastbandit.errors import EligibilityError, InputError, ShapeError
from fastbandit.features.kinds import shown
from fastbandit.noise.philox import Stream, philox

_MASK_ITEMS = (bool, np.bool_, list, np.ndarray)


class Table(Protocol):
    """Where the rows of ids are found."""

    def __len__(self) -> int: ...

    def __contains__(self, id: Any) -> bool: ...

    def rows(self, ids: Iterable[Any]) -> NDArray[np.int64]: ...


def read_eligible(
    eligible: Any, table: Table, *, contexts: int, live: NDArray[np.bool_] | None = None
) -> NDArray[np.bool_] | None:
    """Turn what is allowed into a mask: (B, N), or (1, N) for all contexts, or None for all arms.

    `eligible` is None, a boolean mask (N,) or (B, N), a list of ids for all contexts, or one
    list of ids for each context. Tuples may be ids: a list of known ids is always read as
    ids. Arms that are not `alive` are allowed to no context.
    """
    eligible = None if eligible is None else _read_mask(eligible, table, contexts=contexts)
    if live is not None and not live.all():
        eligible = live[None] if eligible is None else eligible & live
    if eligible is not None:
        _check_some_eligible(eligible)
    return eligible


def draw_eligible(
    seeds: NDArray[np.uint64], eligible: NDArray[np.bool_] | None, *, arms: int, count: int
) -> NDArray[np.int64]:
    """Draw `count` different allowed rows for each seed, all equally likely: (B, count).

    Gives -1 where no more are allowed. Costs O(count) a seed where all arms are allowed.
    """
    size = min(count, arms)
    blocks = np.arange(-(-size // 2), dtype=np.uint64)
    words = philox(seeds, blocks, int(Stream.UNIFORM_CHOICE)).astype(np.uint64)
    pairs = words[..., 0::2] | (words[..., 1::2] << np.uint64(32))  # 64 bits: even for any N
    numbers = pairs.reshape(len(seeds), 2 * len(blocks))
    drawn = np.full((len(seeds), count), -1, dtype=np.int64)
    pools = None if eligible is None else [np.flatnonzero(mask) for mask in eligible]
    for place, row in enumerate(numbers.tolist()):
        pool = None if pools is None else pools[place if len(pools) > 1 else 0]
        ranks = _draw_ranks(row[:size], arms if pool is None else len(pool))
        drawn[place, : len(ranks)] = ranks if pool is None else pool[ranks]
    return drawn


def _draw_ranks(numbers: list[int], size: int) -> list[int]:
    """Shuffle the front of range(size) as Fisher and Yates do, keeping only what moved."""
    moved: dict[int, int] = {}
    ranks = []
    for place, number in enumerate(numbers[:size]):
        other = place + number % (size - place)
        ranks.append(moved.get(other, other))
        moved[other] = moved.get(place, place)
    return ranks


def _read_mask(eligible: Any, table: Table, *, contexts: int) -> NDArray[np.bool_]:
    mask = _as_mask(eligible)
    if mask is not None:
        return _check_mask(mask, arms=len(table), contexts=contexts)
    if isinstance(eligible, Mapping):
        raise InputError(
            f"Eligible arms need to be a list of ids or a mask here: got {shown(eligible)}, a "
            f"predicate. Freeze the bandit and tell it the columns, with set_columns()."
        )
    items = list_ids(eligible, what="Eligible arms")
    if not all(map(_is_group, items)) or all(item in table for item in items):
        return _mask_of([items], table)
    if len(items) != contexts:
        raise ShapeError(
            f"Eligible arms need one list of ids for each of the {contexts} contexts: got "
            f"{len(items)} lists. Give one for each, or a single list of ids for all."
        )
    return _mask_of(items, table)


def _as_mask(eligible: Any) -> NDArray[np.bool_] | None:
    """Give the mask, or None where these are no booleans."""
    if hasattr(eligible, "detach"):
        eligible = eligible.detach().cpu()
    if isinstance(eligible, list) and not all(isinstance(item, _MASK_ITEMS) for item in eligible):
        return None  # ids: not worth an array, nor safe where tuples are ids
    if not isinstance(eligible, list) and not hasattr(eligible, "__array__"):
        return None
    try:
        array = np.asarray(eligible)
    except ValueError:  # lists of different lengths
        return None
    return array if array.dtype == np.bool_ else None


def _check_mask(mask: NDArray[np.bool_], *, arms: int, contexts: int) -> NDArray[np.bool_]:
    if mask.shape not in {(arms,), (1, arms), (contexts, arms)}:
        raise ShapeError(
            f"A mask of eligible arms needs shape ({arms},) or ({contexts}, {arms}): got "
            f"{mask.shape}. Give one boolean for each arm, in the order of the arms."
        )
    return mask.reshape(-1, arms)


def _is_group(item: Any) -> bool:
    return isinstance(item, Collection) and not isinstance(item, str | bytes)


def _mask_of(groups: Iterable[Any], table: Table) -> NDArray[np.bool_]:
    rows = [table.rows(group) for group in groups]
    mask = np.zeros((len(rows), len(table)), dtype=np.bool_)
    for place, eligible in enumerate(rows):
        mask[place, eligible] = True
    return mask


def _check_some_eligible(eligible: NDArray[np.bool_]) -> None:
    empty = np.flatnonzero(~eligible.any(axis=1))
    if len(empty):
        which = "all contexts" if len(eligible) == 1 else f"context {empty[0]}"
        raise EligibilityError(
            f"Each context needs at least one arm that it may choose: got none for {which} "
            f"({len(empty)} of {len(eligible)} eligible sets are empty). Allow more arms, or "
            f"leave such contexts out."
        )

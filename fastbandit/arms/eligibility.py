"""Which arms each context may choose: reads what the caller names, and draws from it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastbandit.arms.arrays import Mask
from fastbandit.arms.columns import Columns, canonical
from fastbandit.arms.ids import ArmIds, has_kind, list_ids
from fastbandit.errors import EligibilityError, SettingError, ShapeError
from fastbandit.noise.philox import Stream, philox

_MASK_ITEMS = (bool, np.bool_, list, np.ndarray)


def read_eligible(
    eligible: Any,
    ids: ArmIds,
    *,
    contexts: int,
    live: Mask | None = None,
    columns: Columns | None = None,
) -> Mask | None:
    """Turn what is eligible into a mask: (B, N), or (1, N) for all contexts, or None for all arms.

    `eligible` is None, a boolean mask (N,) or (B, N), a list of ids, or a predicate on `columns`;
    or a list of one list of ids or one predicate for each context. Tuples may be ids: a list of
    known ids is always read as ids. Arms that are not `live` are eligible for no context.
    """
    mask = None if eligible is None else _read(eligible, ids, columns, contexts=contexts)
    if live is not None and not live.all():
        mask = live[None] if mask is None else mask & live
    if mask is not None and not mask.any(axis=1).all():
        empty = np.flatnonzero(~mask.any(axis=1))
        which = "all contexts" if len(mask) == 1 else f"context {empty[0]}"
        raise EligibilityError(
            f"Each context needs at least one arm that it may choose: got none for {which} "
            f"({len(empty)} of {len(mask)} eligible sets are empty). Let more be eligible, or "
            f"leave such contexts out."
        )
    return mask


def mask_where(predicate: Mapping[str, Any], columns: Columns | None) -> Mask:
    """Return whether a predicate on columns holds in each row."""
    if columns is None:
        raise SettingError(
            f"A predicate needs columns of the arms to speak of: got {canonical(predicate)}, and "
            f"no columns. Call set_columns() first."
        )
    return columns.mask(predicate)


def has_predicates(eligible: Any, *, contexts: int) -> bool:
    """Return whether a list holds predicates; such a list has one item for each context."""
    if not isinstance(eligible, list) or not has_kind(eligible, Mapping):
        return False
    if len(eligible) != contexts:
        raise ShapeError(
            f"Eligible arms need one predicate for each of the {contexts} contexts: got "
            f"{len(eligible)}. Give one for each, or a single one for all."
        )
    return True


def draw_eligible(
    seeds: NDArray[np.uint64], eligible: Mask | None, *, arms: int, count: int
) -> NDArray[np.int64]:
    """Draw `count` different eligible rows for each seed, all equally likely: (B, count).

    Returns -1 where no more are eligible. Costs O(count) a seed where all arms are eligible.
    """
    size = min(count, arms)
    blocks = np.arange(-(-size // 2), dtype=np.uint64)
    words = philox(seeds, blocks, int(Stream.UNIFORM_CHOICE)).astype(np.uint64)
    halves = words[..., 0::2] | (words[..., 1::2] << np.uint64(32))  # 64 bits: even for any N
    numbers = halves.reshape(len(seeds), 2 * len(blocks))
    drawn = np.full((len(seeds), count), -1, dtype=np.int64)
    pools = None if eligible is None else [np.flatnonzero(mask) for mask in eligible]
    for request, row in enumerate(numbers.tolist()):
        pool = None if pools is None else pools[request if len(pools) > 1 else 0]
        ranks = _draw_ranks(row[:size], arms if pool is None else len(pool))
        drawn[request, : len(ranks)] = ranks if pool is None else pool[ranks]
    return drawn


def draw_eligible_row(
    seed: int, rows: NDArray[np.int64] | None, *, total: int, count: int
) -> NDArray[np.int64]:
    """Draw different rows of some (None: of all in range(total)), each as likely as another."""
    size = total if rows is None else len(rows)
    ranks = draw_eligible(np.array([seed], dtype=np.uint64), None, arms=size, count=count)[0]
    ranks = ranks[ranks >= 0]
    return ranks if rows is None else rows[ranks]


def _draw_ranks(numbers: list[int], size: int) -> list[int]:
    """Shuffle the front of range(size) as Fisher and Yates do, keeping only what moved."""
    moved: dict[int, int] = {}
    ranks = []
    for rank, number in enumerate(numbers[:size]):
        other = rank + number % (size - rank)
        ranks.append(moved.get(other, other))
        moved[other] = moved.get(rank, rank)
    return ranks


def _read(eligible: Any, ids: ArmIds, columns: Columns | None, *, contexts: int) -> Mask:
    mask, arms = as_mask(eligible), len(ids)
    if mask is not None:
        if mask.shape not in {(arms,), (1, arms), (contexts, arms)}:
            raise ShapeError(
                f"A mask of eligible arms needs shape ({arms},) or ({contexts}, {arms}): got "
                f"{mask.shape}. Give one boolean for each arm, in the order of the arms."
            )
        return mask.reshape(-1, arms)
    if isinstance(eligible, Mapping):
        return np.stack([mask_where(eligible, columns)])
    if has_predicates(eligible, contexts=contexts):
        return np.concatenate([_read_one(item, ids, columns) for item in eligible])
    items = list_ids(eligible, what="Eligible arms")
    if not all(map(is_group, items)) or all(item in ids for item in items):
        return _mask_of([items], ids)
    if len(items) != contexts:
        raise ShapeError(
            f"Eligible arms need one list of ids for each of the {contexts} contexts: got "
            f"{len(items)} lists. Give one for each, or a single list of ids for all."
        )
    return _mask_of(items, ids)


def _read_one(eligible: Any, ids: ArmIds, columns: Columns | None) -> Mask:
    if eligible is None:
        return np.ones((1, len(ids)), dtype=np.bool_)
    return _read(eligible, ids, columns, contexts=1)


def as_mask(eligible: Any) -> Mask | None:
    """Return the mask, or None where these are no booleans."""
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


def is_group(given: Any) -> bool:
    """Return whether an item holds ids, rather than being one."""
    return isinstance(given, Collection) and not isinstance(given, str | bytes)


def _mask_of(groups: Iterable[Any], ids: ArmIds) -> Mask:
    rows = [ids.rows(group) for group in groups]
    mask = np.zeros((len(rows), len(ids)), dtype=np.bool_)
    for context, eligible in enumerate(rows):
        mask[context, eligible] = True
    return mask

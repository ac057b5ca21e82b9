"""A catalogue of the few arms that come with a request, whether the whole one has them or not.

All of them are scored. Row 0 is no arm: what compiled code reads needs a row in partitions.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fastbandit.arms.arrays import Mask, read_only
from fastbandit.arms.ids import IdTable
from fastbandit.arms.offers import offer_name
from fastbandit.arms.partitions import Floats
from fastbandit.arms.rows import ArmRows
from fastbandit.errors import InputError, UnknownArmError
from fastbandit.features.kinds import Ids
from fastbandit.runtime.codec import Codec
from fastbandit.runtime.encodings import LinearEncoding
from fastbandit.runtime.frozen_catalogue import EVERYTHING, EligibleRows, FrozenCatalogue
from fastbandit.search.limits import FEW

_NO_ARM = "\x1f\x1f"  # no id has control characters
_REMEMBERED = 8_192  # arms that came of late
_LONGEST = 8_192  # bytes of a key that is remembered
_UNKNOWN = np.iinfo(np.int64).max
_FIRST = np.zeros(1, dtype=np.int64)


class Offer(NamedTuple):
    """An arm that may be chosen: with features of its own, or with those of the catalogue.

    One with a `key`, which stands for id and features, is remembered by it and not encoded again;
    `entry` is remembered with it.
    """

    id: str | int
    features: Any = None
    key: bytes = b""
    entry: Any = None


class Known(NamedTuple):
    """The coordinates of an arm that came, its row where just that was learned, and its entry.

    The coordinates are bytes: those of many arms are an array as soon as they are joined. `among`
    are all that are remembered with it.
    """

    point: bytes
    row: int
    entry: Any
    among: dict[bytes, Any]


class KnownOffers(NamedTuple):
    """Arms that are all known by their features, and that no arm of the catalogue is called as."""

    ids: list[Any]
    known: list[Known]


def known_offers(whole: FrozenCatalogue, codec: Codec, offers: Sequence[Offer]) -> list[Known]:
    """Return what is known of arms with features; one that came of late is not encoded again."""
    found = [codec.offers.get(one.key) if one.key else None for one in offers]
    new = [one for one, known in zip(offers, found, strict=True) if known is None]
    if not new:
        return found  # type: ignore[return-value]
    points = codec.points(_stacked([one.features for one in new]), [one.id for one in new])
    each = zip(points, _rows_of(whole, _names_of(whole, new)).tolist(), new, strict=True)
    fresh = [Known(point.tobytes(), row, one.entry, codec.offers) for point, row, one in each]
    both = zip(new, fresh, strict=True)
    codec.offers.update((one.key, it) for one, it in both if 0 < len(one.key) <= _LONGEST)
    if len(codec.offers) > _REMEMBERED:
        for key in list(codec.offers)[: _REMEMBERED // 2]:
            codec.offers.pop(key, None)
    rest = iter(fresh)
    return [next(rest) if known is None else known for known in found]


def _joined(known: Sequence[Known], columns: int) -> tuple[Floats, NDArray[np.int64]]:
    """Return the coordinates and the rows of arms."""
    points = np.frombuffer(b"".join([one.point for one in known]), dtype=np.float32)
    rows = np.array([one.row for one in known], dtype=np.int64)
    return points.reshape(len(known), columns), rows


def _names_of(whole: FrozenCatalogue, offers: Sequence[Offer]) -> list[Any]:
    """Return what each arm is called if it was learned from: None where it cannot have been."""
    ids = whole.learned_ids  # names take long to make
    are = [str(one.id) in ids or not len(one.features) for one in offers]
    return [
        offer_name(one.id, one.features) if it else None
        for one, it in zip(offers, are, strict=True)
    ]


def _rows_of(whole: FrozenCatalogue, names: list[Any]) -> NDArray[np.int64]:
    """Return the row of each name, though it may not be chosen; the highest number without one."""
    rows = whole.ids.find(names)
    return np.where(rows < 0, _UNKNOWN, rows)


def offered_catalogue(
    whole: FrozenCatalogue, codec: Codec, offers: Sequence[Offer] | KnownOffers
) -> tuple[FrozenCatalogue, NDArray[np.int64]]:
    """Return a catalogue of these arms alone, and for each of its rows that of the whole one.

    Rows that the whole one does not know come last, and are of the highest number there is.
    """
    ids = offers.ids if isinstance(offers, KnownOffers) else [one.id for one in offers]
    if not 0 < len(ids) <= FEW:
        raise InputError(
            f"A request may bring 1 to {FEW:,} arms: got {len(ids):,}. Bring those that are "
            f"most likely, or let them be in the catalogue."
        )
    if _NO_ARM in ids:
        raise InputError(f"An arm of a request may not be called {_NO_ARM!r}. Give it another id.")
    if isinstance(offers, KnownOffers):
        points, rows = _joined(offers.known, whole.more.shape[1])
    else:
        points, rows = _placed(whole, codec, offers)
    if rows.min() < _UNKNOWN:
        order = np.argsort(rows, kind="stable")
        ids, points, rows = [ids[n] for n in order.tolist()], points[order], rows[order]
    live, facts, positions = _shape(len(ids))
    arms = ArmRows(IdTable([_NO_ARM, *ids]), live)
    few = FrozenCatalogue(whole.first_arm, arms, read_only(points))
    vars(arms).update(facts)  # what both would work out, the same for all of so many arms
    vars(few).update(positions)
    return few, np.concatenate([_FIRST, rows])


@lru_cache(maxsize=2 * FEW)
def _shape(count: int) -> tuple[Mask, dict[str, Any], dict[str, Any]]:
    """Return which rows of so many arms are live, and what follows: of rows, and of a catalogue."""
    live, all_rows = np.ones(1 + count, dtype=np.bool_), np.arange(1 + count)
    live[0] = False
    positions = all_rows.astype(np.int32)
    eligible = EligibleRows(EVERYTHING, count, read_only(positions[1:].copy()))
    facts = {"live_count": count, "live_rows": read_only(all_rows[1:])}
    return read_only(live), facts, {"positions": positions, "all_eligible": eligible}


def _placed(
    whole: FrozenCatalogue, codec: Codec, offers: Sequence[Offer]
) -> tuple[Floats, NDArray[np.int64]]:
    """Return the coordinates of each arm, and its row in the whole catalogue if it has one."""
    live = whole.rows.live_rows_of([one.id for one in offers])
    rows = np.where(live >= 0, live, _UNKNOWN)
    points = np.empty((len(live), whole.more.shape[1]), dtype=np.float32)
    if (live >= 0).any():
        points = whole.points_of(live)
    new = [position for position, row in enumerate(live.tolist()) if row < 0]
    if isinstance(codec.arm.kind, Ids):
        ids = [offers[position].id for position in new]
        own = codec.points(None, ids) if new else None
        given, learned = new, _rows_of(whole, ids)
    else:
        is_read = not isinstance(codec.context, LinearEncoding)  # else an arm is its id
        given = [n for n, row in enumerate(live.tolist()) if is_read or row < 0]
        given = [n for n in given if offers[n].features is not None]
        known = known_offers(whole, codec, [offers[position] for position in given])
        own, learned = _joined(known, points.shape[1])
        missing = next((offers[n].id for n in new if offers[n].features is None), None)
        if missing is not None:
            raise UnknownArmError(
                f"An arm of a request needs to be in the catalogue, or to have features: got "
                f"{missing!r} without. Give its features, or add it to the catalogue first."
            )
    if given:
        assert own is not None
        is_held = live[given] >= 0
        if is_held.any():
            is_held &= _are_alike(points[given], own)
        rows[given] = np.where(is_held, rows[given], learned)
        points[given] = own
    return points, rows


def _are_alike(points: Floats, others: Floats) -> NDArray[np.bool_]:
    return np.asarray(np.isclose(points, others, rtol=1e-4, atol=1e-4).all(axis=1))


def unchanged(whole: FrozenCatalogue, few: FrozenCatalogue, ids: Sequence[Any]) -> set[Any]:
    """Return those ids whose features in a catalogue of few arms are those of the whole one."""
    rows = whole.rows.live_rows_of([*ids])
    is_known = rows >= 0
    if not is_known.any():
        return set()
    known = [id for id, is_held in zip(ids, is_known.tolist(), strict=True) if is_held]
    own = few.points_of(few.rows.live_rows_of(known))
    is_same = _are_alike(whole.points_of(rows[is_known]), own)
    return {id for id, is_held in zip(known, is_same.tolist(), strict=True) if is_held}


def _stacked(features: list[Any]) -> Any:
    """Return features as a kind reads them: rows by name, or of numbers."""
    are_named = any(isinstance(one, dict) for one in features)
    return features if are_named else np.array(features, dtype=np.float32)

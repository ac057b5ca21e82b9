"""What versions of a service have learned from its log, in files beside it: training data.

Each version that is published adds its interactions in a block; small blocks are merged. The index
names the blocks, and by the cut of each recent version how many of their interactions it has
learned. All of it follows from the log and its archive: files that are missing or damaged are made
again from these.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, fields, replace
from hashlib import file_digest
from pathlib import Path
from secrets import token_hex
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastbandit.arms.arrays import Mask
from fastbandit.errors import SnapshotError
from fastbandit.files.atomic import raising, rename, write_synced
from fastbandit.files.locks import locking
from fastbandit.files.manifest import write_json
from fastbandit.files.mapped import Arrays, map_arrays, pieces_of
from fastbandit.storage.column_marks import Marks
from fastbandit.storage.snapshot_version import Cut

INDEX = "history.json"
_COMBINATION = "combination"  # of the index: what rewards are made of
_CUTS = 64  # of versions to which one may roll back

Orders = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Learned:
    """Interactions of a log in the order they are learned, one in each row.

    A row of `keys` holds the event that made it ready, that of its decision, and the position of
    its arm: they sort as the interactions do.
    """

    keys: Orders
    contexts: NDArray[np.float32]
    rows: NDArray[np.int64]
    rewards: NDArray[np.float32]

    def __len__(self) -> int:
        return len(self.keys)

    @property
    def arrays(self) -> Arrays:
        return {own.name: getattr(self, own.name) for own in fields(self)}

    def take(self, rows: Any) -> Learned:
        """Return the interactions that a slice, a mask or an array of positions names."""
        return Learned(*(array[rows] for array in self.arrays.values()))

    @staticmethod
    def stack(parts: Iterable[Learned]) -> Learned:
        each = zip(*(part.arrays.values() for part in parts), strict=True)
        return Learned(*map(np.concatenate, each))

    @staticmethod
    def none(features: int) -> Learned:
        """Return no interactions, of contexts with so many features."""
        whole, number = np.int64, np.float32
        contexts = np.empty((0, features), dtype=number)
        return Learned(np.empty((0, 3), whole), contexts, np.empty(0, whole), np.empty(0, number))


class HistoryFiles:
    """Blocks of interactions in a folder, of which one at a time writes.

    What was stored with rewards of another `combination` is not there; None takes any.
    """

    def __init__(self, folder: Path, *, combination: str | None = None) -> None:
        self.folder, self._combination = folder, combination

    def read(self, cut: Cut) -> Learned | None:
        """Return what the version of a cut has learned, None where that is not here, or damaged."""
        for _ in range(2):  # blocks may just have been merged
            index = self._index()
            count = _count_of(index, cut)
            if count is None:
                return None
            with suppress(OSError, ValueError, KeyError, TypeError):
                parts = [self._block(entry) for entry in index["blocks"]]
                found = Learned.stack(parts)
                return found.take(slice(count)) if len(found) >= count else None
        return None

    def write(self, before: Cut, cut: Cut, fresh: Learned) -> None:
        """Add what a version learned to what the version of the cut `before` had."""
        with self._writing():
            index = self._index()
            count = _count_of(index, before) or 0
            fresh = _emptied(index, fresh.take(~_is_gone(index, fresh.keys[:, 1])))
            blocks = [*_first_of(index["blocks"], count), self._written(fresh)]
            while len(blocks) > 1 and blocks[-2]["count"] <= 2 * blocks[-1]["count"]:
                blocks[-2:] = [self._written(Learned.stack(map(self._block, blocks[-2:])))]
            known = [one for one in index["cuts"] if one["count"] <= count]
            known = [one for one in known if one["cut"] != asdict(cut)]
            cuts = [*known, {"cut": asdict(cut), "count": count + len(fresh)}]
            self._save({**index, "blocks": blocks, "cuts": cuts[-_CUTS:]})

    def replace(self, cut: Cut, learned: Learned) -> None:
        """Write all that the version of a cut has learned, in place of what is there."""
        with self._writing():
            index = self._index()
            learned = _emptied(index, learned.take(~_is_gone(index, learned.keys[:, 1])))
            cuts = [{"cut": asdict(cut), "count": len(learned)}]
            self._save({**index, "blocks": [self._written(learned)], "cuts": cuts})

    def remove(self, *, until: int = 0, decisions: Iterable[int] = ()) -> int:
        """Remove what decisions up to a number, and some more, led to; return how many.

        None of theirs is taken later.
        """
        with self._writing():
            index = self._index()
            gone = {"until": max(until, index["gone"]["until"])}
            gone["decisions"] = sorted({*index["gone"]["decisions"], *decisions})
            index = {**index, "gone": gone}
            try:
                index, count = self._without(index)
            except (OSError, ValueError, KeyError, TypeError):  # they are made anew, without these
                index, count = {**_EMPTY, "gone": gone, "dropped": index["dropped"]}, 0
            self._save(index)
        return count

    def drop(self, name: str, *, until: int, span: slice, missing: NDArray[np.float32]) -> int:
        """Hold a column of decisions up to a number as missing; return in how many interactions.

        Those that are written later are held so, too.
        """
        mark = {"name": name, "until": until, "first": span.start, "values": missing.tolist()}
        with self._writing():
            index = self._index()
            others = [one for one in index["dropped"] if one["name"] != name]
            index = {**index, "dropped": [*others, mark]}
            try:
                index, count = self._without_values(index)
            except (OSError, ValueError, KeyError, TypeError):  # they are made anew, without these
                index, count = {**_EMPTY, "gone": index["gone"], "dropped": index["dropped"]}, 0
            self._save(index)
        return count

    def _without_values(self, index: dict[str, Any]) -> tuple[dict[str, Any], int]:
        """Return an index whose blocks hold no dropped value, and of how many interactions."""
        blocks, count = [], 0
        for entry in index["blocks"]:
            block = self._block(entry)
            emptied = _emptied(index, block)
            changed = int((emptied.contexts != block.contexts).any(axis=1).sum())
            blocks.append(self._written(emptied) if changed else entry)
            count += changed
        return {**index, "blocks": blocks}, count

    def dropped(self) -> dict[str, int]:
        """Return up to which number columns are held as missing, by name."""
        return {str(one["name"]): int(one["until"]) for one in self._index()["dropped"]}

    def lacks(self, marks: Marks) -> bool:
        """Return whether something left the log that has not left these files."""
        gone = self._index()["gone"]
        return marks.gone > gone["until"] or not marks.forgotten <= {*gone["decisions"]}

    def count(self, cut: Cut) -> int | None:
        """Return how many interactions of the version of a cut are here, None if it is not."""
        return _count_of(self._index(), cut)

    def forgotten(self) -> set[int]:
        """Return the decisions of which nothing may be learned any more."""
        return {*self._index()["gone"]["decisions"]}

    def files(self) -> list[Path]:
        """Return the files that make it up now."""
        named = [self.folder / str(entry["file"]) for entry in self._index()["blocks"]]
        return [*named, self.folder / INDEX] if (self.folder / INDEX).exists() else []

    def _without(self, index: dict[str, Any]) -> tuple[dict[str, Any], int]:
        """Return an index whose blocks hold nothing that has to go, and how many went."""
        blocks, masks = [], [np.zeros(0, dtype=bool)]
        for entry in index["blocks"]:
            block = self._block(entry)
            is_gone = _is_gone(index, block.keys[:, 1])
            masks.append(is_gone)
            blocks.append(self._written(block.take(~is_gone)) if is_gone.any() else entry)
        before = np.concatenate([[0], np.cumsum(np.concatenate(masks))])
        cuts = [{**one, "count": one["count"] - int(before[one["count"]])} for one in index["cuts"]]
        return {**index, "blocks": blocks, "cuts": cuts}, int(before[-1])

    def _index(self) -> dict[str, Any]:
        try:
            read = json.loads((self.folder / INDEX).read_text(encoding="utf-8"))
            read = {"dropped": [], **read}  # which came later
            index = {name: type(value)(read[name]) for name, value in _EMPTY.items()}
            stored = str(read.get(_COMBINATION, ""))
        except (OSError, ValueError, KeyError, TypeError):
            index, stored = {**_EMPTY}, self._combination or ""
        if self._combination not in (None, stored):
            index, stored = {**_EMPTY, "gone": index["gone"]}, self._combination or ""
        return {**index, _COMBINATION: stored} if stored else index

    def _save(self, index: dict[str, Any]) -> None:
        write_json(self.folder / INDEX, index)
        named = {str(entry["file"]) for entry in index["blocks"]}
        for path in self.folder.glob("*.safetensors*"):
            if path.name not in named:
                path.unlink(missing_ok=True)

    def _written(self, block: Learned) -> dict[str, Any]:
        name = f"{token_hex(8)}.safetensors"
        beside = self.folder / f"{name}.part"
        size, digest = write_synced(beside, pieces_of(block.arrays))
        rename(beside, self.folder / name)
        return {"file": name, "count": len(block), "bytes": size, "sha256": digest}

    def _block(self, entry: dict[str, Any]) -> Learned:
        path = self.folder / Path(str(entry["file"])).name
        with path.open("rb") as file:
            if file_digest(file, "sha256").hexdigest() != entry["sha256"]:
                raise ValueError(f"{path} is not as it was written")
            arrays = map_arrays(file)
        return Learned(*(arrays[own.name] for own in fields(Learned))).take(slice(entry["count"]))

    @contextmanager
    def _writing(self) -> Iterator[None]:
        needs = f"Training data needs a folder that can be written to: {self.folder} cannot"
        with raising(SnapshotError, needs, fix="Make room there, or let it be written to."):
            self.folder.mkdir(parents=True, exist_ok=True)
            with locking(self.folder / ".lock"):
                yield


_NOTHING_GONE = {"until": 0, "decisions": []}
_EMPTY: dict[str, Any] = {"blocks": [], "cuts": [], "gone": _NOTHING_GONE, "dropped": []}


def _count_of(index: dict[str, Any], cut: Cut) -> int | None:
    counts = (one["count"] for one in index["cuts"] if one["cut"] == asdict(cut))
    return next(counts, None)


def _first_of(blocks: Iterable[dict[str, Any]], count: int) -> list[dict[str, Any]]:
    """Return the blocks of the first interactions; of the last of them perhaps a part."""
    found = []
    for entry in blocks:
        if count > 0:
            found.append({**entry, "count": min(entry["count"], count)})
        count -= entry["count"]
    return found


def _emptied(index: dict[str, Any], learned: Learned) -> Learned:
    """Return interactions with the columns that were dropped as missing."""
    marks = index["dropped"]
    if not marks or not len(learned):
        return learned
    contexts = np.array(learned.contexts)
    for one in marks:
        is_old = learned.keys[:, 1] <= one["until"]
        contexts[is_old, one["first"] : one["first"] + len(one["values"])] = one["values"]
    return replace(learned, contexts=contexts)


def _is_gone(index: dict[str, Any], decisions: Orders) -> Mask:
    gone = index["gone"]
    return (decisions <= gone["until"]) | np.isin(decisions, gone["decisions"])

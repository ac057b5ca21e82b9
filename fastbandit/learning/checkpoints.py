"""Checkpoints of an update: a learner that is killed, however often, does not begin anew.

An update trains in one loop or several, one after the other. Every few seconds all that a loop
changes is written into a folder of the loop; the next learner brings each loop to where it was, and
ends with the same numbers as one that was never killed. What lies between the loops it does again.
"""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from fastbandit.errors import SnapshotError
from fastbandit.files.manifest import CHECKPOINT, read_arrays, write_arrays, write_json
from fastbandit.files.mapped import Arrays
from fastbandit.optim.process_group import Loop
from fastbandit.storage.snapshot_store import Reached, nothing_more

FORMAT = 1
_SECONDS = 1.0
_SHARE = 20.0  # of the time, writing takes one in so many parts at most
_UPDATE = "update.json"


class Checkpoints:
    """Those of one update, in a folder: its parent and cut, the loops, and the losses so far.

    `update` says what is trained from what; checkpoints of anything else are removed.
    """

    def __init__(
        self, folder: Path, update: dict[str, Any], *, reached: Reached = nothing_more
    ) -> None:
        self._folder, self._update, self._reached = folder, update, reached
        self._loops = 0
        self.curve: list[tuple[int, float]] = []
        if update_in(folder) != update:
            self.remove()

    def iterations(self, loop: Loop, count: int) -> Iterator[int]:
        """Yield what is left of the next loop, after its last checkpoint."""
        folder, self._loops = self._folder / f"{self._loops}", self._loops + 1
        first, cost = self._resumed(folder, loop), 0.0
        started = saved = time.monotonic()
        for iteration in range(first, count):
            yield iteration
            now = time.monotonic()
            if now - saved >= max(_SECONDS, _SHARE * cost):
                self._save(folder, loop, iteration + 1)
                saved = time.monotonic()
                cost = saved - now
        if first < count and time.monotonic() - started >= _SECONDS:
            self._save(folder, loop, count)

    def remove(self) -> None:
        """Remove all of them: the update is done, or another one is due."""
        shutil.rmtree(self._folder, ignore_errors=True)

    def _save(self, folder: Path, loop: Loop, done: int) -> None:
        """Write a checkpoint; where it finds no room, training goes on."""
        state = loop.optimiser.state_dict()["state"]
        tensors = {f"network.{name}": one for name, one in loop.network.state_dict().items()}
        tensors |= {f"optimiser.{n}.{name}": one for n in state for name, one in state[n].items()}
        tensors |= {"rng": loop.rng.get_state(), "losses": torch.tensor(loop.losses)}
        arrays = {name: one.detach().cpu().numpy() for name, one in tensors.items()}
        arrays["curve"] = np.array(self.curve, dtype=np.float64).reshape(-1, 2)
        notes = {"update": self._update, "done": done}
        with suppress(SnapshotError, OSError):
            self._folder.mkdir(parents=True, exist_ok=True)
            if update_in(self._folder) != self._update:
                write_json(self._folder / _UPDATE, self._update)
            write_arrays(folder, arrays, notes, kind=CHECKPOINT, format=FORMAT)
            self._reached("checkpointed")

    def _resumed(self, folder: Path, loop: Loop) -> int:
        """Bring a loop to its checkpoint; return how many iterations that were, 0 where none."""
        try:
            notes, arrays = read_arrays(folder, kind=CHECKPOINT, format=FORMAT)
        except SnapshotError:
            return 0
        network = {name: _tensor(arrays.get(f"network.{name}")) for name in _shapes(loop)}
        fits = {name: tuple(one.shape) for name, one in network.items()} == _shapes(loop)
        if notes.get("update") != self._update or not fits:
            return 0
        loop.network.load_state_dict(network)
        groups = loop.optimiser.state_dict()["param_groups"]
        loop.optimiser.load_state_dict({"state": _state_in(arrays), "param_groups": groups})
        loop.rng.set_state(_tensor(arrays["rng"]))
        loop.losses[:] = _tensor(arrays["losses"])
        self.curve[:] = [(int(steps), float(loss)) for steps, loss in arrays["curve"]]
        return int(notes["done"])


def update_in(folder: Path) -> dict[str, Any]:
    """Return what the checkpoints in a folder are of, nothing where there are none."""
    try:
        return dict(json.loads((folder / _UPDATE).read_bytes()))
    except (OSError, ValueError, TypeError):
        return {}


def _shapes(loop: Loop) -> dict[str, tuple[int, ...]]:
    return {name: tuple(one.shape) for name, one in loop.network.state_dict().items()}


def _state_in(arrays: Arrays) -> dict[int, dict[str, Tensor]]:
    """Return what an optimiser remembers, by the number of a parameter."""
    state: dict[int, dict[str, Tensor]] = {}
    for name, array in arrays.items():
        kind, _, rest = name.partition(".")
        if kind == "optimiser":
            number, _, what = rest.partition(".")
            state.setdefault(int(number), {})[what] = _tensor(array)
    return state


def _tensor(array: np.ndarray[Any, Any] | None) -> Tensor:
    """Return a copy of an array, which is mapped from a file; an empty one where there is none."""
    return torch.empty(0) if array is None else torch.from_numpy(array.copy())

"""Learning on many workers of Ray: they share each minibatch, and take each step together."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from fastbandit.arms.catalogue import Catalogue
from fastbandit.arms.partition_ranges import writable
from fastbandit.arms.partitions import Partitions, Positions
from fastbandit.bandit import Bandit
from fastbandit.errors import FastbanditError
from fastbandit.learning.update import Taught, teach_here
from fastbandit.optim.process_group import TorchProcessGroup
from fastbandit.packages import needed
from fastbandit.training.fit_reward import Curve

_RETRIES = 2
_BACKENDS = "cpu:gloo,cuda:nccl"

Files = dict[str, NDArray[np.uint8]]
"""The files of a folder, by name."""


@dataclass(frozen=True)
class RayTrainer:
    """Teaches a bandit on so many workers of the Ray that runs, with a GPU each if so told.

    The bandit travels through Ray's object store: workers need no folder in common. Where a
    worker dies, all begin this update again; what comes back is a whole bandit or an error.
    """

    workers: int
    use_gpu: bool = False
    storage: str | None = None

    def __call__(self, bandit: Bandit, taught: Taught, curve: Curve) -> Bandit:
        """Give a bandit that has learned; the one that was given stays as it was."""
        ray = needed("ray", what="The engine ray", extra="cluster")
        train = needed("ray.train", what="The engine ray", extra="cluster")
        by_torch = needed("ray.train.torch", what="The engine ray", extra="cluster")
        told = {"files": ray.put(packed(bandit)), "taught": ray.put(taught)}
        with tempfile.TemporaryDirectory() as folder:
            trainer = by_torch.TorchTrainer(
                _learn,
                train_loop_config={**told, "device": "cuda" if self.use_gpu else "cpu"},
                scaling_config=train.ScalingConfig(num_workers=self.workers, use_gpu=self.use_gpu),
                torch_config=by_torch.TorchConfig(backend=_BACKENDS if self.use_gpu else "gloo"),
                run_config=train.RunConfig(
                    storage_path=self.storage or folder,
                    failure_config=train.FailureConfig(max_failures=_RETRIES),
                ),
            )
            learned = _fitted(train, trainer)
        for steps, loss in learned.curve:
            curve(steps, loss)
        return learned.bandit()


@dataclass(frozen=True, eq=False)
class _Learned:
    """What the first worker gives back: its bandit, the index of its arms, and the losses."""

    files: Files
    curve: list[tuple[int, float]]
    index: tuple[Partitions, Positions] | None

    def bandit(self) -> Bandit:
        """Load the bandit; its index need not be built again."""
        bandit = unpacked(self.files, progress=None)
        arms = bandit.policy.arms
        if self.index is not None and isinstance(arms, Catalogue) and arms.lookup is not None:
            partitions, near = self.index
            parts = (
                partitions.order,
                partitions.vectors,
                partitions.centres,
                partitions.groups,
                partitions.far,
            )
            arms.lookup.partitions = Partitions(*map(writable, parts))
            arms.lookup.near = writable(near)
        return bandit


def _fitted(train: Any, trainer: Any) -> _Learned:
    """Run a trainer; word what went wrong on its workers."""
    try:
        learned: _Learned = trainer.fit().return_value
    except train.TrainingFailedError as error:
        causes = getattr(error, "worker_failures", {}).values()
        known = next((cause for cause in causes if isinstance(cause, FastbanditError)), None)
        if known is not None:
            raise known from error
        words = " ".join(str(next(iter(causes), error)).split())
        raise FastbanditError(
            f"Learning on workers needs all of them to the end: it failed {_RETRIES + 1} times "
            f"({words[-300:]}). Look at their logs, or use fewer workers."
        ) from error
    return learned


def _learn(told: dict[str, Any]) -> _Learned | None:
    """Learn as a member of the team; what Ray Train runs on each worker."""
    import ray

    torch.set_num_threads(1)
    files, taught = ray.get([told["files"], told["taught"]])
    group, curve = TorchProcessGroup(), []
    bandit = unpacked(files, device=told["device"], progress=False)
    teach_here(bandit, taught, lambda steps, loss: curve.append((steps, loss)), group=group)
    if group.rank:
        return None
    return _Learned(packed(bandit), curve, _index_of(bandit))


def _index_of(bandit: Bandit) -> tuple[Partitions, Positions] | None:
    """Give the index of a bandit's arms, where it was built."""
    arms = bandit.policy.arms
    lookup = arms.lookup if isinstance(arms, Catalogue) else None
    is_built = lookup is not None and {"cells", "near"} <= vars(lookup).keys()
    return (lookup.partitions, lookup.near) if lookup is not None and is_built else None


# -- a bandit on its way


def packed(bandit: Bandit) -> Files:
    """Give the files of a saved bandit."""
    with tempfile.TemporaryDirectory() as folder:
        bandit.save(folder)
        return {path.name: np.fromfile(path, dtype=np.uint8) for path in Path(folder).iterdir()}


def unpacked(files: Files, *, device: str = "cpu", progress: bool | None = None) -> Bandit:
    """Load a bandit from its files."""
    with tempfile.TemporaryDirectory() as folder:
        for name, content in files.items():
            content.tofile(Path(folder) / name)
        return Bandit.load(folder, device=device, progress=progress)

"""Training on many workers of Ray: they share each minibatch, and take each step together."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, fields
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
from fastbandit.learning.candidates import TrainingData, train_here
from fastbandit.optim.process_group import TorchProcessGroup
from fastbandit.packages import needed
from fastbandit.training.fit_reward import Curve

_RETRIES = 2
_BACKENDS = "cpu:gloo,cuda:nccl"

Files = dict[str, NDArray[np.uint8]]
"""The files of a folder, by name."""


@dataclass(frozen=True)
class RayTraining:
    """Trains a bandit on so many workers of the Ray that runs, with a GPU each if wanted.

    The bandit travels through Ray's object store: workers need no folder in common. Where a
    worker dies, all begin this update again; what comes back is a whole bandit or an error.
    """

    workers: int
    use_gpu: bool = False
    storage: str | None = None

    def __call__(self, bandit: Bandit, data: TrainingData, curve: Curve) -> Bandit:
        """Return a bandit that was trained; the one that was given stays as it was."""
        ray = needed("ray", what="The engine ray", extra="cluster")
        train = needed("ray.train", what="The engine ray", extra="cluster")
        by_torch = needed("ray.train.torch", what="The engine ray", extra="cluster")
        loop = {"files": ray.put(packed(bandit)), "data": ray.put(data)}
        with tempfile.TemporaryDirectory() as folder:
            trainer = by_torch.TorchTrainer(
                _train,
                train_loop_config={**loop, "device": "cuda" if self.use_gpu else "cpu"},
                scaling_config=train.ScalingConfig(num_workers=self.workers, use_gpu=self.use_gpu),
                torch_config=by_torch.TorchConfig(backend=_BACKENDS if self.use_gpu else "gloo"),
                run_config=train.RunConfig(
                    storage_path=self.storage or folder,
                    failure_config=train.FailureConfig(max_failures=_RETRIES),
                ),
            )
            trained = _fitted(train, trainer)
        for steps, loss in trained.curve:
            curve(steps, loss)
        return trained.bandit()


@dataclass(frozen=True, eq=False)
class _Trained:
    """What the first worker returns: its bandit, the index of its arms, and the losses."""

    files: Files
    curve: list[tuple[int, float]]
    index: tuple[Partitions, Positions] | None

    def bandit(self) -> Bandit:
        """Load the bandit; its index need not be built again."""
        bandit = unpacked(self.files, progress=None)
        arms = bandit.policy.arms
        if self.index is not None and isinstance(arms, Catalogue) and arms.lookup is not None:
            partitions, near = self.index
            arrays = (writable(getattr(partitions, field.name)) for field in fields(partitions))
            arms.lookup.partitions = Partitions(*arrays)
            arms.lookup.near = writable(near)
        return bandit


def _fitted(train: Any, trainer: Any) -> _Trained:
    try:
        trained: _Trained = trainer.fit().return_value
    except train.TrainingFailedError as error:
        causes = getattr(error, "worker_failures", {}).values()
        known = next((cause for cause in causes if isinstance(cause, FastbanditError)), None)
        if known is not None:
            raise known from error
        cause = " ".join(str(next(iter(causes), error)).split())
        raise FastbanditError(
            f"Training on workers needs all of them to the end: it failed {_RETRIES + 1} times "
            f"({cause[-300:]}). Look at their logs, or use fewer workers."
        ) from error
    return trained


def _train(loop: dict[str, Any]) -> _Trained | None:
    """Train as a member of the process group; what Ray Train runs on each worker."""
    import ray

    torch.set_num_threads(1)
    files, data = ray.get([loop["files"], loop["data"]])
    group, curve = TorchProcessGroup(), []
    bandit = unpacked(files, device=loop["device"], progress=False)
    train_here(bandit, data, lambda steps, loss: curve.append((steps, loss)), group=group)
    if group.rank:
        return None
    return _Trained(packed(bandit), curve, _index_of(bandit))


def _index_of(bandit: Bandit) -> tuple[Partitions, Positions] | None:
    arms = bandit.policy.arms
    lookup = arms.lookup if isinstance(arms, Catalogue) else None
    if lookup is None or not {"partitions", "near"} <= vars(lookup).keys():
        return None
    return lookup.partitions, lookup.near


def packed(bandit: Bandit) -> Files:
    with tempfile.TemporaryDirectory() as folder:
        bandit.save(folder)
        return {path.name: np.fromfile(path, dtype=np.uint8) for path in Path(folder).iterdir()}


def unpacked(files: Files, *, device: str = "cpu", progress: bool | None = None) -> Bandit:
    with tempfile.TemporaryDirectory() as folder:
        for name, content in files.items():
            content.tofile(Path(folder) / name)
        return Bandit.load(folder, device=device, progress=progress)

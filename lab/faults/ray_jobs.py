"""What a Ray cluster is asked for while it loses workers: each job, and what came of it."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from fastbandit.arms.catalogue import Catalogue
from fastbandit.arms.lookup import Lookup
from fastbandit.arms.partition_ranges import index_in_ranges
from fastbandit.bandit import Bandit
from fastbandit.cluster.engine import Engine
from fastbandit.cluster.indexing import EngineSpread
from fastbandit.cluster.ray_joining import RayJoin
from fastbandit.cluster.ray_training import RayTraining
from fastbandit.cluster.scoring import ScoringSettings, score_contexts
from fastbandit.demo.synthetic import Synthetic
from fastbandit.learning.candidates import TrainingData
from fastbandit.learning.joining import Joiner
from fastbandit.policy import Arms
from fastbandit.settings.files import Settings
from fastbandit.training.update import embed
from lab.benchmarks.engines import write_environment
from lab.benchmarks.score import write_contexts

NAMES = ("join", "train", "build", "score")
_DIM = 8
_ROUNDS = 2_000
_ENVIRONMENT = "h3"


@dataclass(frozen=True)
class Job:
    """A job by its name: `run` does it on an engine and gives what came of it, as a hash.

    `out` is the folder that it writes to, None for a job that only gives an answer.
    """

    name: str
    run: Callable[[Engine], str]
    out: Path | None = None


@dataclass(frozen=True)
class Sizes:
    """How large jobs are: arms to index, contexts to score, steps to train."""

    arms: int = 400_000
    contexts: int = 400_000
    steps: int = 1_500
    events: int = 60_000

    def scaled(self, factor: float) -> Sizes:
        """Return jobs that are so many times as large."""
        return Sizes(**{name: max(100, round(factor * it)) for name, it in asdict(self).items()})


def jobs_in(folder: Path, sizes: Sizes) -> list[Job]:
    """Make a bandit, a log, arms and contexts, and the jobs that work on them."""
    small = Synthetic(_ENVIRONMENT, _DIM, 2_000)
    bandit = _bandit_of(small, sizes.steps)
    training = _training(small)
    bandit.freeze().save(folder / "frozen")
    write_contexts(small.contexts(0, sizes.contexts), folder / "contexts")
    write_environment(small, folder / "log", sizes.events // 2)
    many = _bandit_of(Synthetic(_ENVIRONMENT, _DIM, sizes.arms), sizes.steps).policy
    assert isinstance(many.arms, Catalogue)
    return [
        Job("join", partial(_join, folder / "log", sizes.events)),
        Job("train", partial(_train, bandit, training)),
        Job("build", partial(_build, embed(many.arms, many.model))),
        Job("score", partial(_score, folder), folder / "scores"),
    ]


def _bandit_of(environment: Synthetic, steps: int) -> Bandit:
    training = {
        "training.reward": {"iterations": steps},
        "training.generator": {"iterations": steps // 4},
    }
    settings = Settings(sections=training)
    return Bandit(
        arms=environment.arms, context=_DIM, reward="real", preset=settings, progress=False
    )


def _training(environment: Synthetic) -> TrainingData:
    rows = np.random.default_rng(1).integers(environment.size, size=_ROUNDS)
    rewards = np.asarray(environment.observed(0, rows), dtype=np.float64)
    return TrainingData(environment.contexts(0, _ROUNDS), rows.tolist(), rewards, version=1)


# -- jobs


def _join(folder: Path, events: int, engine: Engine) -> str:
    found = RayJoin("", folder, engine.workers)(Joiner(), until=events)
    numbers = (found.seqs, found.ats, found.made[np.argsort(found.made)])
    return _hash(*numbers, msgspec.json.encode(found.interactions))


def _train(bandit: Bandit, training: TrainingData, engine: Engine) -> str:
    learned = RayTraining(engine.workers)(bandit, training, lambda steps, loss: None).policy
    arms = learned.arms
    assert isinstance(arms, Catalogue)
    weights = learned.model.state_dict()
    return _hash(*(weights[name].numpy() for name in sorted(weights)), *_index(arms.lookup))


def _build(arms: Arms, engine: Engine) -> str:
    assert isinstance(arms, Catalogue)
    assert arms.lookup is not None
    lookup = Lookup(arms.lookup.vectors, arms.lookup.rows)
    index_in_ranges(lookup, EngineSpread(engine))
    return _hash(*_index(lookup))


def _score(folder: Path, engine: Engine) -> str:
    out = folder / "scores"
    shutil.rmtree(out, ignore_errors=True)
    settings = ScoringSettings(rows=8_192)
    score_contexts(folder / "frozen", folder / "contexts", out, settings=settings, engine=engine)
    return _hash(*(content for _, content in sorted(parts_in(out).items())))


def parts_in(out: Path) -> dict[str, bytes]:
    """Return the bytes of each part that can be seen in a folder, by name."""
    return {path.name: path.read_bytes() for path in out.glob("part-*.parquet")}


def _index(lookup: Lookup | None) -> list[Any]:
    assert lookup is not None
    partitions = lookup.partitions
    return [
        partitions.order,
        partitions.vectors,
        partitions.centres,
        partitions.groups,
        partitions.far,
        lookup.near,
    ]


def _hash(*parts: Any) -> str:
    found = hashlib.sha256()
    for part in parts:
        found.update(part if isinstance(part, bytes) else np.ascontiguousarray(part).tobytes())
    return found.hexdigest()

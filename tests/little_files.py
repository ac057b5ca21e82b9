"""A frozen bandit in a folder, and files of contexts for it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow
from fakes import vectors_of
from pyarrow import parquet

from fastbandit import Bandit, FrozenBandit
from fastbandit.cluster.engine import Engine
from fastbandit.cluster.scoring import Scored, ScoringSettings, score_contexts
from fastbandit.progress import Progress, silent

CONTEXTS = vectors_of(90, 4, seed=2)


def frozen_folder(folder: Path, **changes: Any) -> Path:
    """Save a bandit that learned from a few contexts of 4 features, frozen."""
    bandit = Bandit(**{"context": 4, "reward": "real", "seed": 3, **changes})
    few = CONTEXTS[:30]
    taken = bandit.select(few)
    bandit.update(contexts=few, arms=taken.arms, rewards=few[:, 0])
    bandit.freeze().save(folder)
    return folder


def write_files(folder: Path, contexts: Any = CONTEXTS, *, files: int = 2, group: int = 13) -> Path:
    """Write contexts as columns x_0, x_1, … into files, with a column `user` beside."""
    folder.mkdir(parents=True, exist_ok=True)
    size = -(-len(contexts) // files)
    for number in range(files):
        some = contexts[number * size : (number + 1) * size]
        users = [f"u{number * size + row}" for row in range(len(some))]
        columns = {f"x_{column}": some[:, column] for column in range(some.shape[1])}
        table = pyarrow.table({"user": users, **columns})
        parquet.write_table(table, folder / f"{number}.parquet", row_group_size=group)
    return folder


def read_scores(folder: Path) -> dict[str, list[Any]]:
    """Read what was written, in the order of parts."""
    tables = [parquet.read_table(path) for path in sorted(folder.glob("part-*.parquet"))]
    whole: dict[str, list[Any]] = pyarrow.concat_tables(tables).to_pydict()
    return whole


def bytes_of(folder: Path) -> dict[str, bytes]:
    """Give the bytes of all that was written, by name."""
    return {
        path.name: path.read_bytes() for path in folder.iterdir() if not path.name.endswith(".part")
    }


def load(folder: Path) -> FrozenBandit:
    return FrozenBandit.load(folder)


def score(
    frozen: Path | str,
    contexts: Path | str,
    out: Path | str,
    *,
    engine: Engine | None = None,
    progress: Progress = silent,
    **settings: Any,
) -> Scored:
    """Score contexts with settings that are named as keywords."""
    named = ScoringSettings(**settings)
    return score_contexts(frozen, contexts, out, settings=named, engine=engine, progress=progress)

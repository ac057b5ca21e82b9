"""The command `freeze`: a saved bandit becomes a folder that decides without torch."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import asdict, dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

import click
import numpy as np

from fastbandit.bandit import Bandit
from fastbandit.cli.options import json_option, print_either
from fastbandit.cluster.engine import ENGINES, Engine, engine_for
from fastbandit.cluster.indexing import index_arms
from fastbandit.errors import SettingError, SnapshotError
from fastbandit.features.kinds import FeaturesAndIds, Ids
from fastbandit.progress import Progress, progress_bar, silent
from fastbandit.runtime.frozen import FrozenBandit
from fastbandit.runtime.parts import DTYPES
from fastbandit.storage.snapshot_version import NOTES, POINTER
from fastbandit.types import Decision, Features

_CHECKED = 32
_EQUAL = 1e-3  # two arms whose scores differ by less, of their size, are as good


@dataclass(frozen=True)
class Report:
    """What was frozen, how large it is, and how long it took."""

    snapshot: str
    folder: str
    arms: int
    version: int
    bytes_per_arm: float
    freeze_s: float
    save_s: float
    load_s: float
    checked: int
    same: int


@click.command("freeze")
@click.argument("snapshot", type=click.Path(path_type=Path))
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    help="The folder to write; else the snapshot's name and -frozen, beside it.",
)
@click.option(
    "--dtype",
    type=click.Choice(DTYPES),
    default="float32",
    show_default=True,
    help="The type of the arms' coordinates; those of whole numbers are rounded.",
)
@click.option("--engine", type=click.Choice(ENGINES), help="Index arms on workers of this engine.")
@click.option("--workers", type=click.IntRange(1), help="[default: one for each core]")
@click.option("--address", help="Of a Ray cluster; without, one is started here.")
@json_option
def command(
    snapshot: Path,
    *,
    out: Path | None,
    dtype: str,
    engine: str | None,
    workers: int | None,
    address: str | None,
    as_json: bool,
) -> None:
    """Freeze the bandit that was saved in the folder SNAPSHOT, and check that it decides alike.

    Writes a folder for FrozenBandit.load. Many millions of arms take minutes to index: with
    `--engine ray` the machines of a cluster share that.
    """
    whole = snapshot.resolve()
    folder = out or whole.with_name(f"{whole.name}-frozen")
    if engine is None and (workers is not None or address is not None):
        raise SettingError(
            "--workers and --address need an engine: got none. Add --engine ray, or leave them out."
        )
    started = engine_for(engine, workers=workers, address=address) if engine else nullcontext()
    with progress_bar("Freezing") as progress, started as pool:
        report = freeze_folder(snapshot, folder, dtype=dtype, engine=pool, progress=progress)
    print_either(
        as_json,
        asdict(report),
        f"{report.arms:,} arms, {report.bytes_per_arm:.0f} bytes an arm",
        f"frozen in {report.freeze_s:.2f} s, saved in {report.save_s:.2f} s, loaded in "
        f"{report.load_s:.2f} s",
        f"{report.same} of {report.checked} decisions chose the same arm",
        report.folder,
    )


def freeze_folder(
    snapshot: Path,
    folder: Path,
    *,
    dtype: str = "float32",
    engine: Engine | None = None,
    progress: Progress = silent,
) -> Report:
    """Freeze a saved bandit into a folder; one that decides differently is not written.

    Where coordinates are rounded, decisions may differ. Arms are indexed here, or on the workers
    of an engine, to the same last bit.
    """
    progress(0, 4, "Loading")
    if any((snapshot / name).exists() for name in (NOTES, POINTER, "snapshots")):
        raise SnapshotError(
            f"`fastbandit freeze` needs a folder that Bandit.save wrote: {snapshot} is of a "
            f"service, whose versions are frozen already. Give it to `fastbandit score` as it is, "
            f"or the folder `frozen` in a version to FrozenBandit.load."
        )
    bandit = Bandit.load(snapshot)
    progress(1, 4, "Freezing")
    started = perf_counter()
    if engine is not None:
        index_arms(bandit, engine)
    frozen = bandit.freeze(dtype=dtype)
    frozen_at = perf_counter()
    progress(2, 4, "Checking")
    contexts = draw_contexts(bandit.blueprint.context, _CHECKED, np.random.default_rng(0))
    asked = bandit.select(contexts)
    found = frozen.select(contexts, seeds=asked.seeds)
    if dtype == "float32":
        check_alike(asked, found)
    progress(3, 4, "Saving")
    saving_at = perf_counter()
    frozen.save(folder)
    saved_at = perf_counter()
    loaded = FrozenBandit.load(folder)
    loaded_at = perf_counter()
    check_alike(found, loaded.select(contexts, seeds=asked.seeds))
    progress(4, 4, "Done")
    return Report(
        snapshot=str(snapshot),
        folder=str(folder),
        arms=len(loaded),
        version=loaded.version,
        bytes_per_arm=round(loaded.bytes_per_arm, 1),
        freeze_s=round(frozen_at - started, 4),
        save_s=round(saved_at - saving_at, 4),
        load_s=round(loaded_at - saved_at, 4),
        checked=len(asked),
        same=int(np.count_nonzero(asked.rows[:, 0] == found.rows[:, 0])),
    )


def draw_contexts(kind: Features, count: int, rng: np.random.Generator) -> Any:
    """Draw synthetic contexts of a kind that can be frozen."""
    if isinstance(kind, FeaturesAndIds):
        return draw_contexts(kind.features, count, rng), draw_contexts(kind.ids, count, rng)
    if isinstance(kind, Ids):
        return rng.integers(0, kind.count, count)
    numbers: Any = rng.normal(size=(count, getattr(kind, "dim", 1)))
    return numbers.astype(np.float32)


def check_alike(asked: Decision, found: Decision) -> None:
    """Check that two bandits chose the same arms, or others that score the same."""
    is_other = asked.rows[:, 0] != found.rows[:, 0]
    gaps = np.abs(asked.scores[:, 0] - found.scores[:, 0])
    is_worse = is_other & (gaps > _EQUAL * (1 + np.abs(asked.scores[:, 0])))
    if not is_worse.any():
        return
    first = int(np.flatnonzero(is_worse)[0])
    raise SnapshotError(
        f"A frozen bandit needs to choose as the saved one does: got {found.arms[first]!r} in "
        f"place of {asked.arms[first]!r} (and {is_worse.sum()} of {len(asked)} decisions "
        f"differ). Select with the Bandit, and report this."
    )

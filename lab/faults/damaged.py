"""Versions that are damaged in the store: a decider and a trainer start with empty folders."""

from __future__ import annotations

import shutil
import time
from dataclasses import dataclass, replace
from pathlib import Path

from fastbandit.demo.synthetic import Synthetic
from fastbandit.storage.snapshot_version import PARTS
from lab.faults.cluster_stage import Cluster, cluster_of
from lab.faults.stage import Caller, Stage, wait_for, write_stage

_ANSWER_SECONDS = 10.0


@dataclass(frozen=True)
class Damaged:
    """Seconds until an empty decider answered, and an empty trainer worked, after a damage."""

    version: int
    how: str
    answered_seconds: float
    works_seconds: float
    is_said: bool

    @property
    def is_met(self) -> bool:
        return max(self.answered_seconds, self.works_seconds) <= _ANSWER_SECONDS and self.is_said


def damaged_versions(versions: int, *, newest_only: bool = False, arms: int = 200) -> list[Damaged]:
    """Damage each version in the store in two ways, and start with empty folders each time."""
    environment = Synthetic("h2", 4, arms, seed=0)
    found = []
    with cluster_of(environment, {}, deciders=1) as cluster:
        with cluster.publishing() as store:
            store.pull()
            for version in range(1, versions):
                parent = store.current()
                assert parent is not None
                with store.drafting() as draft:
                    for part in PARTS:
                        shutil.copytree(parent.folder / part, draft / part)
                    store.publish(draft, {}, version=version, parent=parent, cut=parent.cut)
        for version in [versions - 1] if newest_only else range(versions):
            for how in ("flipped", "deleted"):
                (folder,) = (cluster.home / "shared").glob(f"{version:06d}-*")
                aside = shutil.move(folder, cluster.home / "aside")
                if how == "flipped":
                    shutil.copytree(aside, folder)
                    _flip(next(folder.glob("frozen/arrays*")))
                found.append(_started(cluster, version, how, is_newest=version == versions - 1))
                shutil.rmtree(folder, ignore_errors=True)
                shutil.move(aside, folder)
    return found


def _flip(file: Path) -> None:
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)


def _started(cluster: Cluster, version: int, how: str, *, is_newest: bool) -> Damaged:
    own = {"log.url": cluster.database.url, "snapshots.url": f"file://{cluster.home}/shared"}

    def stage(name: str) -> Stage:
        home = cluster.home / f"{name}-{version}-{how}"
        return write_stage(home, cluster.environment, own)

    decider, trainer = stage("empty-decider"), stage("empty-trainer")
    with_trainer = replace(cluster, trainers=(trainer,))
    try:
        answered = cluster.start(decider).first_answer()
        caller = Caller(decider.port)
        status = caller.ask("/v1/status")
        caller.close()
        names = [it["name"] for it in status.content["problems"]] if status else []
        began = time.monotonic()
        with_trainer.start(trainer)
        wait_for(lambda: with_trainer.is_working(trainer), seconds=60.0, what="a trainer")
        works = time.monotonic() - began
    finally:
        for one in (decider, trainer):
            if one.home in cluster.running:
                cluster.running[one.home].end()
    is_said = ("snapshot" in names) == is_newest
    return Damaged(version, how, round(answered, 2), round(works, 2), is_said)

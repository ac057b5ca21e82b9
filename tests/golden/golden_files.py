"""Files of a format that must stay readable, and what reading them gives."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from golden_bandits import weights_of
from msgspec import to_builtins
from numpy.typing import NDArray

from fastbandit import Bandit, Decision, FrozenBandit
from fastbandit.learning.joining import Joiner
from fastbandit.settings.service import Config
from fastbandit.settings.service_files import read_config
from fastbandit.storage.events import DecisionMade, Event, TimePassed
from fastbandit.storage.joined_rows import Bounds, joined_rows
from fastbandit.storage.log_reader import check_integrity, one_moment_of
from fastbandit.storage.snapshot_store import SnapshotStore
from fastbandit.storage.sqlite_log import SqliteLog

FILES = Path(__file__).parent / "files"
EXPECTED = Path(__file__).parent / "files.json"
SMALL_BANDIT = Path(__file__).parent / "small_bandit.toml"
ARMS = 60
DIM = 3
CONTEXTS = np.random.default_rng(11).normal(size=(12, DIM)).astype(np.float32)
SEEDS = np.arange(1, len(CONTEXTS) + 1, dtype=np.uint64) * np.uint64(1_000_003)

Reading = dict[str, Any]
_FORMERLY = {
    "adds_up": "sums",
    "default_reward": "otherwise",
    "epsilon": "floor",
    "interactions": "pairs",
}


def reading_of(folder: Path) -> dict[str, Reading]:
    """Read everything in a copy of the folder."""
    return {
        "bandit": reading_of_bandit(folder / "bandit"),
        "frozen": reading_of_frozen(folder / "frozen"),
        "frozen-int8": reading_of_frozen(folder / "frozen-int8"),
        "log": reading_of_log(folder / "log" / "events.db"),
        "service": reading_of_store(folder / "service" / "snapshots")
        | {"log": reading_of_service_log(folder / "service" / "events.db")},
    }


def reading_of_bandit(folder: Path) -> Reading:
    """Read a saved bandit, and let it decide."""
    bandit = Bandit.load(folder, progress=False)
    plan = bandit.blueprint
    return {
        "version": bandit.version,
        "arms": len(bandit),
        "seed": plan.seed,
        "reward": plan.reward,
        "iterations": [plan.training.reward.iterations, plan.training.generator.iterations],
        "weights": weights_of(bandit),
        "own seeds": _told(bandit.select(CONTEXTS[:4])),
        "one arm": _told(bandit.select(CONTEXTS, seeds=SEEDS)),
        "three arms": _told(bandit.select(CONTEXTS, k=3, seeds=SEEDS)),
        "apart": _told(bandit.select(CONTEXTS, k=3, diversity=0.5, seeds=SEEDS)),
        "without exploring": _told(bandit.select(CONTEXTS, explore=False, seeds=SEEDS)),
        "few eligible": _told(bandit.select(CONTEXTS, eligible=["arm-4", 6, 58], seeds=SEEDS)),
    }


def reading_of_frozen(folder: Path) -> Reading:
    """Read a frozen bandit, and let it decide."""
    frozen = FrozenBandit.load(folder)
    assert frozen.columns is not None
    columns = {
        name: [frozen.columns[name].value(row) for row in range(frozen.columns.rows)]
        for name in frozen.columns
    }
    chosen = frozen.select_one(CONTEXTS[0].tolist(), seed=5, epsilon=0.1)
    likely = frozen.propensities(CONTEXTS[0].tolist(), draws=50, epsilon=0.1, seed=5)
    cheap = frozen.select(CONTEXTS, eligible={"price": {"<": 9}, "colour": "red"}, seeds=SEEDS)
    return {
        "version": frozen.version,
        "arms": len(frozen),
        "columns": columns,
        "own seeds": _told(frozen.select(CONTEXTS[:4])),
        "one arm": _told(frozen.select(CONTEXTS, seeds=SEEDS)),
        "three arms": _told(frozen.select(CONTEXTS, k=3, seeds=SEEDS)),
        "apart": _told(frozen.select(CONTEXTS, k=3, diversity=0.5, seeds=SEEDS)),
        "without exploring": _told(frozen.select(CONTEXTS, explore=False, seeds=SEEDS)),
        "cheap and red": _told(cheap),
        "half of them any": _told(frozen.select(CONTEXTS, epsilon=0.5, seeds=SEEDS)),
        "chosen": {
            name: value
            for name, value in chosen._asdict().items()
            if name not in ("clipped", "dropped")
        },
        "propensities": [likely.arms, likely.probabilities.tolist(), likely.rest],
    }


def reading_of_store(folder: Path) -> Reading:
    """Read the versions that a learner published."""
    store = SnapshotStore(folder)
    current = store.current()
    assert current is not None
    return {
        "current": current.version,
        "fell back": current.fell_back,
        "versions": list(store.versions()),
        "next": store.next_version(),
        "refused": list(store.refused()),
        "whole": [
            {
                "version": one.version,
                "parent": one.parent,
                "cut": by_former_names(asdict(one.cut)),
                "hash": one.hash,
                "notes": one.notes,
                "bandit": _told(Bandit.load(one.bandit).select(CONTEXTS, seeds=SEEDS)),
                "frozen": _told(FrozenBandit.load(one.frozen).select(CONTEXTS, seeds=SEEDS)),
            }
            for one in store.list()
        ],
    }


def reading_of_log(path: Path) -> Reading:
    """Read a log, and join decisions with what came of them, in SQL and as a learner does."""
    log = SqliteLog(path, is_reader=True)
    events = log.read()
    reading = {
        "last": log.last,
        "last at": log.last_at,
        "last change": log.last_change(),
        "events": [[type(event).__name__, _as_before(event)] for event in events],
        "decision": _as_before(log.decision("d1")),
        "nobody": log.decision("nobody"),
        "changes": to_builtins(log.changes(after=1)),
        "after 5": [event.seq for event in log.read(after=5, limit=3)],
    }
    log.close()
    check_integrity(path)
    return reading | {"rows": _rows(path), "pairs": _pairs(events)}


def _as_before(event: Any) -> Any:
    """Return the values of an event, less those of fields that came later."""
    if isinstance(event, DecisionMade):
        assert (event.offered, event.made_at, event.subject) == (None, None, None)
        return to_builtins(event)[:-3]
    if isinstance(event, TimePassed):
        assert event.outage == 0
        return to_builtins(event)[:-1]
    return to_builtins(event)


def reading_of_service_log(path: Path) -> Reading:
    """Read a longer log, of which less is kept."""
    told = reading_of_log(path)
    hashed = {key: _hash(told[key]) for key in ("events", "rows", "pairs")}
    return {key: told[key] for key in ("last", "last at", "last change")} | hashed


def service_config(folder: Path) -> Config:
    """Give the settings of the service whose data lies in a folder."""
    overrides = {
        "server.data_dir": str(folder),
        "context.features": DIM,
        "reward.kind": "real",
        "reward.wait_seconds": 10.0,
        "learn.fresh": 30,
        "learn.held_out": 0.2,
        "learn.min_quality": 0.0,
    }
    return read_config(None, environ={}, overrides=overrides)


def features_of(count: int, *, seed: int) -> NDArray[np.float32]:
    """Give features of arms."""
    return np.random.default_rng(seed).normal(size=(count, DIM)).round(3).astype(np.float32)


def _rows(path: Path) -> list[Any]:
    with one_moment_of(path) as connection:
        rows = [to_builtins(row) for some in joined_rows(connection, Bounds()) for row in some]
        assert all(row.pop("offered") is None for row in rows)
        return [by_former_names(row) for row in rows]


def _pairs(events: list[Event]) -> list[Any]:
    joiner = Joiner()
    for event in events:
        joiner.feed(event)
    cut = joiner.cut(0)
    return [[list(one) for one in joiner.interactions], by_former_names(asdict(cut))]


def by_former_names(value: Reading) -> Reading:
    """Return values by the names they had when they were recorded, in the order of those."""
    return {_FORMERLY.get(name, name): one for name, one in value.items()}


def _told(decision: Decision) -> Reading:
    return {
        "arms": list(decision.arms),
        "rows": decision.rows.tolist(),
        "scores": [[float(f"{score:.7g}") for score in row] for row in decision.scores],
        "seeds": decision.seeds.tolist(),
        "version": decision.version,
        "uniform": decision.uniform,
    }


def _hash(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()

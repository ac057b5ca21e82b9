"""Buckets of time: fine for what is recent, wide for what is old."""

from __future__ import annotations

import json

import pytest

from fastbandit.storage.events import RewardCame
from fastbandit.storage.snapshot_store import SnapshotStore
from fastbandit.storage.snapshot_version import Cut
from tests.serving.little_console import BEGIN, LoggedService, made


def publish(service: LoggedService, version: int, notes: dict[str, object]) -> None:
    store = SnapshotStore(service.folder / "snapshots")
    with store.drafting() as draft:
        for part in ("bandit", "frozen"):
            (draft / part).mkdir()
            (draft / part / "arrays").write_bytes(b"")
            told = {"arrays": {"file": "arrays", "bytes": 0}}
            (draft / part / "manifest.json").write_text(json.dumps(told))
        cut = Cut(seq=5, at=BEGIN, interactions=40)
        store.publish(draft, notes, version=version, parent=store.current(), cut=cut)


def test_decisions_are_shown_in_the_bucket_of_their_time(service: LoggedService) -> None:
    service.write(made("1"), made("2"))
    service.write(made("3"), after_s=125)

    series = service.show(10).series

    assert series.width_s == 10
    assert sum(series.decisions) == 3
    shown = dict(zip(series.starts, series.decisions, strict=True))
    assert shown[BEGIN // 1000] == 2
    assert shown[BEGIN // 1000 + 120_000] == 1
    assert series.per_second[-1] == pytest.approx(1 / 5)


@pytest.mark.parametrize("days", [0.01, 1, 3, 40, 2000])
def test_every_range_is_shown_in_about_sixty_buckets(service: LoggedService, days: float) -> None:
    service.write(made("1"))
    service.write(made("2"), after_s=days * 86400)

    series = service.show().series

    assert 24 <= len(series.starts) <= 74
    assert (series.decisions[0], series.decisions[-1]) == (1, 1)


def test_old_buckets_are_merged_and_nothing_is_lost(service: LoggedService) -> None:
    for n in range(20):
        service.write(made(f"{n}"), RewardCame(f"{n}", 1.0), after_s=600)
    service.show()
    service.write(made("last"), after_s=100 * 3600)

    answer = service.show()

    assert answer.summary.decisions == 21
    assert answer.summary.reward is not None
    assert answer.summary.reward.mean == pytest.approx(20 / 21)
    assert sum(one.count for one in answer.rewards.delays) == 20

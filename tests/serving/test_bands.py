"""Means have bands that say how sure they are."""

from __future__ import annotations

import json

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


def test_ten_equal_rewards_in_a_bucket_still_have_a_band(service: LoggedService) -> None:
    service.write(*(made(f"a{n}") for n in range(10)))
    service.write(*(made(f"b{n}") for n in range(10)), after_s=60)
    service.write(*(RewardCame(f"b{n}", 1.0) for n in range(10)))

    bands = [mean for mean in service.show(10).series.reward if mean is not None]

    assert [mean.mean for mean in bands] == [0.0, 1.0]
    assert all(mean.high is not None and mean.high > mean.mean for mean in bands)

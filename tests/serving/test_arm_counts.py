"""Which arms were chosen, and what they earned."""

from __future__ import annotations

import json

import pytest

from fastbandit.serving.console import arm_counts
from fastbandit.storage.events import Arm, ArmsChanged, RewardCame
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


def test_the_arms_that_win_have_counts_shares_and_rewards(service: LoggedService) -> None:
    service.write(made("1", "a"), made("2", "b"), made("3", "b"), made("4", 7))
    service.write(RewardCame("2", 1.0))

    arms = service.show().arms

    assert [(arm.id, arm.chosen, arm.share) for arm in arms.winners] == [
        ("b", 2, 0.5),
        (7, 1, 0.25),
        ("a", 1, 0.25),
    ]
    assert arms.winners[0].reward is not None
    assert arms.winners[0].reward.mean == 0.5
    assert (arms.different, arms.of, arms.top, arms.top_share) == (3, 4, 1, 0.5)


def test_new_arms_are_those_put_in_within_the_range(service: LoggedService) -> None:
    service.write(ArmsChanged(upserted=[Arm("a", [0.0]), Arm("b", [0.0]), Arm("c", [0.0])]))
    service.write(made("1", "a"))
    service.write(
        ArmsChanged(upserted=[Arm("a", [1.0]), Arm("d", [0.0]), Arm("e", [0.0])]), after_s=900
    )
    service.write(ArmsChanged(discarded=["c"]), made("2", "d"), made("3", "d"))

    arms = service.show(10).arms

    assert (arms.all, arms.fresh, arms.fresh_chosen, arms.fresh_choices) == (4, 2, 1, 2)


def test_arms_are_counted_over_the_latest_choices_at_most(
    service: LoggedService, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(arm_counts, "MOST_DECISIONS", 2)
    service.write(made("1", "a"), made("2", "b"), made("3", "b"))

    arms = service.show().arms

    assert [(arm.id, arm.chosen) for arm in arms.winners] == [("b", 2)]
    assert arms.is_cut

"""What the console shows is what the log holds, at every size, and it says why nothing is shown."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fastbandit.errors import LogError
from fastbandit.serving.console.figures import Figures
from fastbandit.storage.events import RewardCame
from fastbandit.storage.snapshot_store import SnapshotStore
from fastbandit.storage.snapshot_version import Cut
from tests.serving.little_console import BEGIN, LoggedService, made

# -- rewards


def test_rewards_that_may_still_come_count_as_their_default_and_are_reported(
    service: LoggedService,
) -> None:
    service.write(made("1"), made("2"))
    service.write(RewardCame("1", 1.0), after_s=1)

    reward = service.show().summary.reward

    assert reward is not None
    assert (reward.mean, reward.pending) == (0.5, 0.5)


def test_the_baseline_is_version_0_and_the_difference_is_to_it(service: LoggedService) -> None:
    service.write(*(made(f"a{n}") for n in range(10)))
    service.write(*(made(f"b{n}", version=1) for n in range(10)), after_s=600)
    service.write(
        *(RewardCame(f"a{n}", float(n < 2)) for n in range(10)),
        *(RewardCame(f"b{n}", float(n < 6)) for n in range(10)),
    )
    service.write(*(RewardCame(f"b{n}", 1.0) for n in range(3)))

    answer = service.show(5)

    assert answer.summary.decisions == 10
    assert answer.summary.baseline is not None
    assert answer.summary.baseline.mean == 0  # its rewards came too late
    assert answer.summary.difference is not None
    assert answer.summary.difference.mean == pytest.approx(0.6)
    assert answer.summary.difference.low is not None
    assert 0 < answer.summary.difference.low < 0.6
    assert [(one.version, one.reward.mean) for one in answer.versions] == [(1, 0.6)]


def test_each_status_is_counted_with_its_rule_and_delays_have_bins(service: LoggedService) -> None:
    service.write(made("1"), made("2"), made("3"))
    service.write(RewardCame("1", 1.0), RewardCame("nobody", 1.0), after_s=2)
    service.write(RewardCame("1", 1.0), RewardCame("1", 0.0), RewardCame("2", 1.0, "z"), after_s=18)
    service.write(RewardCame("2", 1.0))
    service.write(RewardCame("3", 1.0), after_s=1000)

    answer = service.show()

    assert {one.status: one.count for one in answer.rewards.statuses} == {
        "counted": 2,
        "duplicate": 1,
        "conflicting": 1,
        "late": 1,
        "unknown": 1,
        "unknown arm": 1,
    }
    assert sum(one.share for one in answer.rewards.statuses) == pytest.approx(1)
    assert [(one.from_s, one.to_s, one.count) for one in answer.rewards.delays] == [
        (1, 3, 1),
        (3, 10, 0),
        (10, 30, 1),
    ]
    assert "1 late (came after the decision's wait was over" in answer.notes["dropped"]


# -- traffic and ranges


def test_a_range_leaves_out_what_is_older(service: LoggedService) -> None:
    service.write(made("1"))
    service.write(made("2"), after_s=2000)

    counts = [service.show(minutes).summary.decisions for minutes in (10, 60, 1440, None)]

    assert counts == [1, 2, 2, 2]


# -- arms


# -- the learner's files


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


# -- nothing to show


def test_what_the_service_measured_is_passed_on(service: LoggedService) -> None:
    answer = service.figures.figures(10, serving={"select_p50_s": 0.001, "arms": 500})

    assert answer.serving["select_p50_s"] == 0.001
    assert answer.arms.all == 500


def test_a_log_that_is_not_there_is_an_error_of_ours(tmp_path: Path) -> None:
    figures = Figures(tmp_path / "none.db", tmp_path / "snapshots", tmp_path)

    with pytest.raises(LogError, match="needs a log that can be read"):
        figures.figures(10)


# -- long logs


def test_a_note_on_the_log_is_reported_with_the_others(service: LoggedService) -> None:
    service.write(made("1"))

    assert service.figures.figures(None, note="It is old.").notes["log"] == "It is old."
    assert "log" not in service.show().notes

"""A panel that has nothing to show says why."""

from __future__ import annotations

import json
from pathlib import Path

from fastbandit.serving.console.figures import Figures
from fastbandit.storage.events import RewardCame
from fastbandit.storage.snapshot_store import SnapshotStore
from fastbandit.storage.snapshot_version import Cut
from tests.serving.little_console import BEGIN, HOUR, LoggedService, made


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


def test_an_empty_log_says_why_each_panel_is_empty(service: LoggedService) -> None:
    notes = service.show(60).notes

    assert notes["reward"].startswith("No decision has been made yet")
    assert notes["arms"].startswith("The catalogue has no arms yet")
    assert notes["rewards"] == "No reward can come before the first decision is made."
    assert "has not decided yet" in notes["baseline"]
    assert {"traffic", "models", "audit", "learner"} <= notes.keys()


def test_decisions_that_wait_are_reported_with_the_time_of_the_first(
    service: LoggedService,
) -> None:
    service.write(made("1"), made("2"))

    assert service.show().notes["rewards"] == (
        "No reward has come yet: 2 decisions wait for one, the first counts as 0 at "
        "2023-11-14 00:01 UTC."
    )


def test_a_quiet_range_says_when_the_last_decision_was(service: LoggedService) -> None:
    service.write(made("1"))
    service.now += HOUR

    note = service.show(10).notes["traffic"]

    assert note == (
        "No decision was made in the last 10 minutes: the last one was at 2023-11-14 00:00 UTC."
    )


def test_rewards_none_of_which_counts_name_the_rule(service: LoggedService) -> None:
    service.write(made("1"))
    service.write(RewardCame("nobody", 1.0))

    note = service.show().notes["reward"]

    assert note.startswith("Rewards came so far, but none counts: 1 unknown (names a decision")


def test_where_the_log_is_shared_the_learner_may_be_elsewhere(
    service: LoggedService, tmp_path: Path
) -> None:
    service.write(made("1"))
    figures = Figures(
        tmp_path / "events.db", tmp_path, tmp_path, is_shared=True, clock=lambda: BEGIN
    )

    notes = figures.figures(None).notes
    figures.close()

    assert all("another machine's holds the lease" in notes[name] for name in ("learner", "models"))
    assert "No audit on this machine" in notes["audit"]

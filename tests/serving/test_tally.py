"""Counts of a log by time, read on from where the last reading ended."""

from __future__ import annotations

import json
from math import sqrt
from pathlib import Path

import pytest

from fastbandit.serving.console import arm_counts, tally
from fastbandit.serving.console.figures import Figures
from fastbandit.storage.events import RewardCame, TimePassed
from fastbandit.storage.snapshot_store import SnapshotStore
from fastbandit.storage.snapshot_version import Cut
from fastbandit.storage.sqlite_files import connect
from fastbandit.storage.sqlite_log import SqliteLog
from tests.serving.little_console import BEGIN, SECOND, LoggedService, made


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


def write_quickly(path: Path, *, decisions: int) -> None:
    """Write decisions, ten a second, and two rewards for three of them, by SQL alone."""
    SqliteLog(path).close()
    connection = connect(path)
    connection.execute("PRAGMA synchronous = OFF")
    with connection:
        connection.execute(
            """
            WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?2)
            INSERT INTO decisions
            SELECT i * 5 / 3, ?1 + i * 100000, printf('%08x', i),
                '[0.5]', '["arm ' || (i * 7919 % 1000) || '"]', '[0.5]', i, i / 100000, 0,
                ?1 + i * 100000 + 600000000, 0.0, 0, 1, 0.0, NULL, NULL, 0, 'bandit', NULL, NULL,
                NULL, NULL, NULL
            FROM n
            """,
            (BEGIN, decisions),
        )
        connection.execute(
            """
            INSERT INTO rewards
            SELECT seq + 1, at + 20000, id, arms -> 0, '', seq % 20 IN (1, 3, 6, 8, 11), 'counted'
            FROM decisions WHERE seq % 5 IN (1, 3)
            """
        )
    connection.close()


def test_the_mean_reward_is_that_of_the_join(service: LoggedService) -> None:
    service.write(made("1"), made("2"), made("3", default_reward=0.5), made("4"))
    service.write(RewardCame("1", 1.0), RewardCame("2", 0.0), after_s=1)
    service.write(TimePassed(), after_s=100)

    reward = service.show().summary.reward

    assert reward is not None
    assert reward.count == 4
    assert reward.mean == pytest.approx(1.5 / 4)
    spread = (1.25 - 1.5**2 / 4) / 3
    assert reward.high == pytest.approx(1.5 / 4 + 1.96 * sqrt(spread / 4))
    assert reward.pending == 0


def test_rewards_that_add_up_are_summed_for_each_arm(service: LoggedService) -> None:
    service.write(made("1", "a", "b", default_reward=9.0, adds_up=True))
    service.write(RewardCame("1", 1.0, "a", "x"), RewardCame("1", 3.0, "b", "x"), after_s=1)
    service.show()
    service.write(RewardCame("1", 2.0, "a", "y"), after_s=1)

    answer = service.show()

    assert answer.summary.reward is not None
    assert answer.summary.reward.mean == pytest.approx(3.0)
    assert answer.summary.reward.low == pytest.approx(3.0)  # both arms earned 3
    assert [arm.reward and arm.reward.mean for arm in answer.arms.winners] == [3.0, 3.0]


def test_a_reward_adds_to_the_bucket_of_its_decision(service: LoggedService) -> None:
    service.write(made("1"))
    service.write(made("2"), after_s=30)
    service.show(10)
    service.write(RewardCame("1", 1.0), after_s=5)

    means = [mean.mean for mean in service.show(10).series.reward if mean is not None]

    assert means == [1.0, 0.0]


def test_a_log_read_in_pieces_newest_first_shows_only_what_is_whole(
    service: LoggedService, monkeypatch: pytest.MonkeyPatch
) -> None:
    for n in range(40):
        service.write(made(f"{n}"), after_s=10)
        service.write(RewardCame(f"{n}", 1.0), after_s=25)
    monkeypatch.setattr(tally, "PIECE", 7)
    monkeypatch.setattr("fastbandit.serving.console.figures._READING_S", -1.0)
    service.show()
    service.write(made("last"))

    parts = [service.show()]
    monkeypatch.setattr("fastbandit.serving.console.figures._READING_S", 0.0)
    monkeypatch.setattr(tally, "monotonic", iter([*range(0, -200, -1)]).__next__)
    parts.append(service.show())

    assert parts[0].read < 1
    assert "newest first" in parts[0].notes["reading"]
    assert all(mean is None or mean.mean in (0.0, 1.0) for mean in parts[0].series.reward)
    assert parts[1].read == 1
    assert parts[1].summary.decisions == 41
    assert parts[1].summary.reward is not None
    assert parts[1].summary.reward.mean == pytest.approx(40 / 41)


def test_a_reader_far_behind_begins_anew_with_the_newest(
    service: LoggedService, monkeypatch: pytest.MonkeyPatch
) -> None:
    service.write(made("1"))
    service.show()
    monkeypatch.setattr(tally, "_MOST_BEHIND", 3)
    service.write(*(made(f"more {n}") for n in range(5)), after_s=1)

    assert service.show().summary.decisions == 6


@pytest.mark.slow
def test_a_million_events_are_added_up_without_a_loss(tmp_path: Path) -> None:
    path = tmp_path / "events.db"
    write_quickly(path, decisions=600_000)
    figures = Figures(
        path, tmp_path / "snapshots", tmp_path, clock=lambda: BEGIN + 600_000 * SECOND // 10
    )

    answer = figures.figures(None)
    while answer.read < 1:
        answer = figures.figures(None)

    assert answer.events == 1_000_000
    assert answer.summary.decisions == sum(answer.series.decisions) == 600_000
    assert answer.summary.reward is not None
    assert answer.summary.reward.mean == pytest.approx(250_000 / 600_000)
    assert sum(one.count for one in answer.rewards.delays) == 400_000
    assert answer.arms.of == arm_counts.MOST_DECISIONS
    figures.close()

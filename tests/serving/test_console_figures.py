"""What the console shows is what the log holds, at every size, and it says why nothing is shown."""

from __future__ import annotations

import json
from collections.abc import Iterator
from math import sqrt
from pathlib import Path

import apsw
import pytest

from fastbandit.errors import LogError
from fastbandit.serving.console import chosen, tally
from fastbandit.serving.console.answer import Console
from fastbandit.serving.console.figures import Figures
from fastbandit.storage.events import Arm, ArmsChanged, DecisionMade, Event, RewardCame, TimePassed
from fastbandit.storage.snapshot_store import SnapshotStore
from fastbandit.storage.snapshot_version import Cut
from fastbandit.storage.sqlite_log import SqliteLog

SECOND = 1_000_000
HOUR = 3600 * SECOND
BEGIN = 1_700_000_000 * SECOND - 1_700_000_000 * SECOND % (24 * HOUR)
WAIT = 60 * SECOND


class Service:
    """A data folder with a log, and a clock that goes on when it is told to."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.now = folder, BEGIN
        self.log = SqliteLog(folder / "events.db", clock=lambda: self.now)
        self.figures = Figures(
            folder / "events.db", folder / "snapshots", folder, clock=lambda: self.now
        )

    def write(self, *events: Event, after_s: float = 0.0) -> None:
        self.now += round(after_s * SECOND)
        self.log.append(events)

    def show(self, minutes: int | None = None) -> Console:
        return self.figures.figures(minutes)


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    service = Service(tmp_path)
    yield service
    service.log.close()
    service.figures.close()


def made(
    id: str, *arms: str | int, version: int = 0, default_reward: float = 0.0, adds_up: bool = False
) -> DecisionMade:
    return DecisionMade(
        id=id,
        context=[0.5],
        arms=list(arms or ("a",)),
        scores=[0.0] * len(arms or "a"),
        seed=1,
        version=version,
        catalogue=0,
        wait=WAIT,
        default_reward=default_reward,
        adds_up=adds_up,
    )


# -- rewards


def test_the_mean_reward_is_that_of_the_join(service: Service) -> None:
    service.write(made("1"), made("2"), made("3", default_reward=0.5), made("4"))
    service.write(RewardCame("1", 1.0), RewardCame("2", 0.0), after_s=1)
    service.write(TimePassed(), after_s=100)

    reward = service.show().summary.reward

    assert reward is not None
    assert reward.count == 4
    assert reward.mean == pytest.approx(1.5 / 4)
    spread = (1.25 - 1.5**2 / 4) / 3
    assert reward.high == pytest.approx(1.5 / 4 + 1.96 * sqrt(spread / 4))
    assert reward.open == 0


def test_rewards_that_may_still_come_count_as_their_default_and_are_told(service: Service) -> None:
    service.write(made("1"), made("2"))
    service.write(RewardCame("1", 1.0), after_s=1)

    reward = service.show().summary.reward

    assert reward is not None
    assert (reward.mean, reward.open) == (0.5, 0.5)


def test_rewards_that_add_up_are_summed_for_each_arm(service: Service) -> None:
    service.write(made("1", "a", "b", default_reward=9.0, adds_up=True))
    service.write(RewardCame("1", 1.0, "a", "x"), RewardCame("1", 3.0, "b", "x"), after_s=1)
    service.show()
    service.write(RewardCame("1", 2.0, "a", "y"), after_s=1)

    answer = service.show()

    assert answer.summary.reward is not None
    assert answer.summary.reward.mean == pytest.approx(3.0)
    assert answer.summary.reward.low == pytest.approx(3.0)  # both arms earned 3
    assert [arm.reward and arm.reward.mean for arm in answer.arms.winners] == [3.0, 3.0]


def test_a_reward_adds_to_the_bucket_of_its_decision(service: Service) -> None:
    service.write(made("1"))
    service.write(made("2"), after_s=30)
    service.show(10)
    service.write(RewardCame("1", 1.0), after_s=5)

    means = [mean.mean for mean in service.show(10).series.reward if mean is not None]

    assert means == [1.0, 0.0]


def test_the_baseline_is_version_0_and_the_lift_is_over_it(service: Service) -> None:
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
    assert answer.summary.lift is not None
    assert answer.summary.lift.mean == pytest.approx(0.6)
    assert answer.summary.lift.low is not None
    assert 0 < answer.summary.lift.low < 0.6
    assert [(one.version, one.reward.mean) for one in answer.versions] == [(1, 0.6)]


def test_ten_equal_rewards_in_a_bucket_still_have_a_band(service: Service) -> None:
    service.write(*(made(f"a{n}") for n in range(10)))
    service.write(*(made(f"b{n}") for n in range(10)), after_s=60)
    service.write(*(RewardCame(f"b{n}", 1.0) for n in range(10)))

    bands = [mean for mean in service.show(10).series.reward if mean is not None]

    assert [mean.mean for mean in bands] == [0.0, 1.0]
    assert all(mean.high is not None and mean.high > mean.mean for mean in bands)


def test_each_status_is_counted_with_its_rule_and_delays_have_bins(service: Service) -> None:
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


def test_decisions_are_shown_in_the_bucket_of_their_time(service: Service) -> None:
    service.write(made("1"), made("2"))
    service.write(made("3"), after_s=125)

    series = service.show(10).series

    assert series.width_s == 10
    assert sum(series.decisions) == 3
    shown = dict(zip(series.starts, series.decisions, strict=True))
    assert shown[BEGIN // 1000] == 2
    assert shown[BEGIN // 1000 + 120_000] == 1
    assert series.per_second[-1] == pytest.approx(1 / 5)


def test_a_range_leaves_out_what_is_older(service: Service) -> None:
    service.write(made("1"))
    service.write(made("2"), after_s=2000)

    counts = [service.show(minutes).summary.decisions for minutes in (10, 60, 1440, None)]

    assert counts == [1, 2, 2, 2]


@pytest.mark.parametrize("days", [0.01, 1, 3, 40, 2000])
def test_every_range_is_shown_in_about_sixty_buckets(service: Service, days: float) -> None:
    service.write(made("1"))
    service.write(made("2"), after_s=days * 86400)

    series = service.show().series

    assert 24 <= len(series.starts) <= 74
    assert (series.decisions[0], series.decisions[-1]) == (1, 1)


def test_old_buckets_are_merged_and_nothing_is_lost(service: Service) -> None:
    for n in range(20):
        service.write(made(f"{n}"), RewardCame(f"{n}", 1.0), after_s=600)
    service.show()
    service.write(made("last"), after_s=100 * 3600)

    answer = service.show()

    assert answer.summary.decisions == 21
    assert answer.summary.reward is not None
    assert answer.summary.reward.mean == pytest.approx(20 / 21)
    assert sum(one.count for one in answer.rewards.delays) == 20


# -- arms


def test_the_arms_that_win_have_counts_shares_and_rewards(service: Service) -> None:
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


def test_new_arms_are_those_put_in_within_the_range(service: Service) -> None:
    service.write(ArmsChanged(upserted=[Arm("a", [0.0]), Arm("b", [0.0]), Arm("c", [0.0])]))
    service.write(made("1", "a"))
    service.write(
        ArmsChanged(upserted=[Arm("a", [1.0]), Arm("d", [0.0]), Arm("e", [0.0])]), after_s=900
    )
    service.write(ArmsChanged(discarded=["c"]), made("2", "d"), made("3", "d"))

    arms = service.show(10).arms

    assert (arms.all, arms.fresh, arms.fresh_chosen, arms.fresh_choices) == (4, 2, 1, 2)


def test_arms_are_counted_over_the_latest_choices_at_most(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chosen, "MOST_DECISIONS", 2)
    service.write(made("1", "a"), made("2", "b"), made("3", "b"))

    arms = service.show().arms

    assert [(arm.id, arm.chosen) for arm in arms.winners] == [("b", 2)]
    assert arms.is_cut


# -- the learner's files


def publish(service: Service, version: int, notes: dict[str, object]) -> None:
    store = SnapshotStore(service.folder / "snapshots")
    with store.drafting() as draft:
        for part in ("bandit", "frozen"):
            (draft / part).mkdir()
            (draft / part / "arrays").write_bytes(b"")
            told = {"arrays": {"file": "arrays", "bytes": 0}}
            (draft / part / "manifest.json").write_text(json.dumps(told))
        cut = Cut(seq=5, at=BEGIN, interactions=40)
        store.publish(draft, notes, version=version, parent=store.current(), cut=cut)


def test_versions_and_refusals_are_shown_with_their_checks(service: Service) -> None:
    checks = {"finite": True, "quality": 0.95, "recall": 0.99, "loss": 0.4, "worse": -0.1}
    curve = [[step, 1 / (step + 1)] for step in range(500)]
    publish(service, 0, {"arms": 3})
    publish(service, 1, {"arms": 4, "checks": checks, "curve": curve})
    store = SnapshotStore(service.folder / "snapshots")
    store.refuse(
        2, {"reason": "Its recall is low.", "checks": {"recall": 0.2}, "cut": {"pairs": 60}}
    )

    refused, current, first = service.show().candidates

    assert (refused.version, refused.refused, refused.recall) == (2, "Its recall is low.", 0.2)
    assert (current.version, current.is_current, current.pairs) == (1, True, 40)
    assert (current.quality, current.loss, current.parent_loss) == (0.95, 0.4, 0.5)
    assert 60 <= len(current.curve) <= 120
    assert current.curve[-1][0] == 499
    assert (first.version, first.is_current, first.quality) == (0, False, None)


def test_a_refusal_that_comes_later_is_seen(service: Service) -> None:
    publish(service, 0, {})
    assert len(service.show().candidates) == 1

    SnapshotStore(service.folder / "snapshots").refuse(1, {"reason": "No."})

    assert [one.refused for one in service.show().candidates] == ["No.", None]


def test_the_learner_and_its_audit_are_shown(service: Service) -> None:
    told = {"state": "waiting", "error": "", "seconds": 2.5, "fresh": 12, "needed": 500}
    (service.folder / "learner.json").write_text(json.dumps(told))
    audit = {"version": 3, "quality": 0.97, "count": 64, "lowest": 0.8}
    (service.folder / "audits.json").write_text(json.dumps(audit))

    answer = service.show()

    assert answer.learner is not None
    assert (answer.learner.state, answer.learner.fresh, answer.learner.needed) == (
        "waiting",
        12,
        500,
    )
    assert answer.audit is not None
    assert (answer.summary.quality, answer.audit.lowest) == (0.97, 0.8)
    assert "12 of 500 fresh pairs" in answer.notes["models"]


@pytest.mark.parametrize("text", ["", "{", "[1]", '{"quality": "x"}', '{"quality": NaN}'])
def test_files_that_cannot_be_read_are_as_good_as_missing(service: Service, text: str) -> None:
    for name in ("learner.json", "audits.json"):
        (service.folder / name).write_text(text)

    assert service.show().audit is None


# -- nothing to show


def test_an_empty_log_says_why_each_panel_is_empty(service: Service) -> None:
    notes = service.show(60).notes

    assert notes["reward"].startswith("No decision has been made yet")
    assert notes["arms"].startswith("The catalogue has no arms yet")
    assert notes["rewards"] == "No reward can come before the first decision is made."
    assert "has not decided yet" in notes["baseline"]
    assert {"traffic", "models", "audit", "learner"} <= notes.keys()


def test_decisions_that_wait_are_told_with_the_time_of_the_first(service: Service) -> None:
    service.write(made("1"), made("2"))

    assert service.show().notes["rewards"] == (
        "No reward has come yet: 2 decisions wait for one, the first counts as 0 at "
        "2023-11-14 00:01 UTC."
    )


def test_a_quiet_range_tells_when_the_last_decision_was(service: Service) -> None:
    service.write(made("1"))
    service.now += HOUR

    note = service.show(10).notes["traffic"]

    assert note == (
        "No decision was made in the last 10 minutes: the last one was at 2023-11-14 00:00 UTC."
    )


def test_rewards_none_of_which_counts_name_the_rule(service: Service) -> None:
    service.write(made("1"))
    service.write(RewardCame("nobody", 1.0))

    note = service.show().notes["reward"]

    assert note.startswith("Rewards came so far, but none counts: 1 unknown (names a decision")


def test_what_the_service_measured_is_passed_on(service: Service) -> None:
    answer = service.figures.figures(10, serving={"select_p50_s": 0.001, "arms": 500})

    assert answer.serving["select_p50_s"] == 0.001
    assert answer.arms.all == 500


def test_a_log_that_is_not_there_is_an_error_of_ours(tmp_path: Path) -> None:
    figures = Figures(tmp_path / "none.db", tmp_path / "snapshots", tmp_path)

    with pytest.raises(LogError, match="needs a log that can be read"):
        figures.figures(10)


# -- long logs


def test_a_log_read_in_pieces_newest_first_shows_only_what_is_whole(
    service: Service, monkeypatch: pytest.MonkeyPatch
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
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    service.write(made("1"))
    service.show()
    monkeypatch.setattr(tally, "_MOST_BEHIND", 3)
    service.write(*(made(f"more {n}") for n in range(5)), after_s=1)

    assert service.show().summary.decisions == 6


def test_a_note_on_the_log_is_told_with_the_others(service: Service) -> None:
    service.write(made("1"))

    assert service.figures.figures(None, note="It is old.").notes["log"] == "It is old."
    assert "log" not in service.show().notes


def test_where_the_log_is_shared_the_learner_may_be_elsewhere(
    service: Service, tmp_path: Path
) -> None:
    service.write(made("1"))
    figures = Figures(
        tmp_path / "events.db", tmp_path, tmp_path, is_shared=True, clock=lambda: BEGIN
    )

    notes = figures.figures(None).notes
    figures.close()

    assert all("another machine's holds the lease" in notes[name] for name in ("learner", "models"))
    assert "No audit on this machine" in notes["audit"]


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
    assert answer.arms.of == chosen.MOST_DECISIONS
    figures.close()


def write_quickly(path: Path, *, decisions: int) -> None:
    """Write decisions, ten a second, and two rewards for three of them, by SQL alone."""
    SqliteLog(path).close()
    connection = apsw.Connection(str(path))
    connection.execute("PRAGMA synchronous = OFF")
    with connection:
        connection.execute(
            """
            WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?2)
            INSERT INTO decisions
            SELECT i * 5 / 3, ?1 + i * 100000, printf('%08x', i),
                '[0.5]', '["arm ' || (i * 7919 % 1000) || '"]', '[0.5]', i, i / 100000, 0,
                ?1 + i * 100000 + 600000000, 0.0, 0, 1, 0.0, NULL, NULL, 0, 'bandit', NULL
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

"""A subject leaves a log that machines share: tables, archive, copies, training data, spools."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from machines import Machines
from shared_days import (
    FIRST,
    VALUE,
    WRITTEN,
    archived,
    files,
    forgotten,
    learn,
    made,
    make_older,
    retained,
    tables,
    write_days,
)

from fastbandit.learning.learner import Learner
from fastbandit.settings.service import Config
from fastbandit.storage import shared_forgetting
from fastbandit.storage.deferral import deferred
from fastbandit.storage.events import DecisionMade, RewardCame
from fastbandit.storage.forgetting import forget_archived, forget_seqs
from fastbandit.storage.history_files import HistoryFiles
from fastbandit.storage.local_copy import copy_log, local_copy
from fastbandit.storage.postgres_log import PostgresLog
from fastbandit.storage.retention import changing
from fastbandit.storage.sqlite_files import connect
from fastbandit.storage.sqlite_log import SqliteLog
from fastbandit.testing.logs import Clock


def test_a_reward_that_comes_meanwhile_is_forgotten_too(
    shared: Machines,
    day_log: PostgresLog,
    day_clock: Clock,
    day_config: Config,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    write_days(day_log, day_clock)

    def forget_while_a_reward_comes(*given: Any) -> tuple[int, int]:
        day_log.append([RewardCame("ann-2", 1.0, "arm-1")])
        return forget_archived(*given)

    monkeypatch.setattr(shared_forgetting, "forget_archived", forget_while_a_reward_comes)

    assert forgotten(day_config).rewards == 10
    assert b"ann" not in tables(shared.url)


def test_nothing_of_a_subject_is_left(
    shared: Machines, day_log: PostgresLog, day_clock: Clock, day_config: Config
) -> None:
    write_days(day_log, day_clock)
    learn(day_config)
    left = retained(day_config)
    assert left.days == ("2024-10-04",)
    folder = Path(day_config.server.data_dir)
    local_copy(day_config.log.url, folder)
    assert WRITTEN in tables(shared.url)
    assert "ann" in archived(day_config)

    found = forgotten(day_config)

    assert (found.decisions, found.rewards) == (2, 6)
    assert (found.archived_decisions, found.archived_rewards) == (1, 3)
    assert found.interactions > 0
    assert len(found.unreached) == 4
    rows = tables(shared.url)
    assert b"ann" not in rows
    assert WRITTEN not in rows
    assert "ann" not in archived(day_config)
    assert f"{VALUE}" not in archived(day_config)
    assert b"ann-" not in files(folder / "archive", folder / "copy", folder / "receipts")
    assert WRITTEN not in files(folder / "copy")
    assert b"ann-" not in files(shared.folder / "shared")
    assert forgotten(day_config).decisions == 0


@pytest.mark.parametrize("is_here", [True, False])
def test_the_learner_makes_a_version_without_it(
    day_log: PostgresLog, day_clock: Clock, day_config: Config, tmp_path: Path, is_here: bool
) -> None:
    write_days(day_log, day_clock)
    while _step(day_config) != "waited":
        pass
    place = day_config.server.data_dir if is_here else str(tmp_path / "another machine")
    server = replace(day_config.server, data_dir=place)
    Path(place).mkdir(exist_ok=True)

    assert forgotten(replace(day_config, server=server)).decisions == 3

    assert [_step(day_config) for _ in range(3)] == ["published", "waited", "waited"]


def _step(config: Config) -> str:
    """Let a learner that was started anew make a step."""
    learner = Learner(config)
    assert learner.acquire_lease()
    learner.start()
    did = learner.step().did
    learner._data.close()
    return did


def test_an_older_copy_forgets_too(
    day_log: PostgresLog, day_clock: Clock, day_config: Config
) -> None:
    write_days(day_log, day_clock)
    copied = local_copy(day_config.log.url, Path(day_config.server.data_dir))
    make_older(copied)
    assert b"ann-" in files(copied.parent)

    assert forgotten(day_config).decisions == 3

    assert b"ann-" not in files(copied.parent)
    with closing(SqliteLog(copied, is_reader=True)) as copy:
        assert copy.read() == day_log.read()


@pytest.mark.parametrize("is_newer", [False, True])
def test_a_copy_that_cannot_be_used_is_removed_and_made_anew(
    day_log: PostgresLog,
    day_clock: Clock,
    day_config: Config,
    caplog: pytest.LogCaptureFixture,
    is_newer: bool,
) -> None:
    write_days(day_log, day_clock)
    url, folder = day_config.log.url, Path(day_config.server.data_dir)
    copied = local_copy(url, folder)
    if is_newer:
        with closing(connect(copied)) as connection:
            connection.execute("PRAGMA user_version = 99")
    else:
        copied.write_bytes(b"ann-1 in something else" * 1000)

    assert forgotten(day_config).decisions == 3

    assert not copied.exists()
    assert "could not be used and was removed" in caplog.text
    with closing(SqliteLog(local_copy(url, folder), is_reader=True)) as copy:
        assert copy.read() == day_log.read()


def test_numbers_stay_and_later_rewards_are_unknown(
    day_log: PostgresLog, day_clock: Clock, day_config: Config
) -> None:
    write_days(day_log, day_clock)
    before = day_log.read()

    forgotten(day_config)

    after = day_log.read()
    assert [(one.seq, one.at) for one in after] == [(one.seq, one.at) for one in before]
    changed = [one for one, other in zip(before, after, strict=True) if one != other]
    assert len(changed) == 12
    assert day_log.append([RewardCame("ann-1", 1.0)])[0].status == "unknown"
    assert day_log.append([RewardCame("bob-1", 1.0, "arm-1")])[0].status == "duplicate"


def test_a_spooled_decision_of_it_comes_without_its_content(
    shared: Machines, day_log: PostgresLog, day_clock: Clock, day_config: Config
) -> None:
    write_days(day_log, day_clock, days=1)
    forgotten(day_config)

    spooled = made("ann-9", "ann", made_at=FIRST, eligible=["arm-1", "arm-2"])
    kept = made("bob-9", "bob", made_at=FIRST)
    outcomes = day_log.append([spooled, kept])

    assert [one.status for one in outcomes] == ["written", "written"]
    came = [one for one in day_log.read(after=outcomes[0].seq - 1) if isinstance(one, DecisionMade)]
    assert [one.context for one in came] == [[], kept.context]
    assert (came[0].arms, came[0].scores, came[0].subject) == ([0, 1], [0.0, 0.0], None)
    assert came[1].id == "bob-9"
    assert b"ann" not in tables(shared.url)
    assert [one.status for one in day_log.append([spooled])] == ["repeated"]


def test_a_decision_after_it_was_forgotten_is_its_own(
    day_log: PostgresLog, day_clock: Clock, day_config: Config
) -> None:
    forgotten(day_config)

    day_log.append([made("ann-10", "ann")])

    assert day_log.decision("ann-10") is not None


def test_learners_and_copies_elsewhere_follow(
    shared: Machines, day_log: PostgresLog, day_clock: Clock, day_config: Config
) -> None:
    write_days(day_log, day_clock)
    learn(day_config)
    other = shared.config("office")
    elsewhere, here = Path(other.server.data_dir), Path(day_config.server.data_dir)
    copied = local_copy(other.log.url, elsewhere)
    assert b"ann-" in files(copied.parent)

    found = forgotten(other)
    write_days(day_log, day_clock, days=1)
    learn(day_config)
    local_copy(other.log.url, elsewhere)

    assert found.interactions == 0
    assert HistoryFiles(here / "history").forgotten() >= {1}
    assert b"ann-2" not in files(copied.parent)


def test_a_spooled_decision_that_is_deferred_comes_so_too(
    day_log: PostgresLog, day_clock: Clock, day_config: Config
) -> None:
    write_days(day_log, day_clock, days=1)
    forgotten(day_config)

    (outcome,) = day_log.append([deferred(made("ann-9", "ann", made_at=FIRST), "ann-9")])

    assert outcome.status == "written"
    (came,) = day_log.read(after=outcome.seq - 1)
    assert isinstance(came, DecisionMade)
    assert (came.arms, came.scores, came.context, came.eligible) == ([], [], [], None)


def test_what_a_copy_does_not_hold_yet_is_forgotten_when_it_comes(
    day_log: PostgresLog, day_clock: Clock, day_config: Config
) -> None:
    write_days(day_log, day_clock)
    folder = Path(day_config.server.data_dir)
    copied = copy_log(day_log, folder / "copy", page=4, seconds=0.0)
    assert copied.behind

    with changing(folder / "copy", copied.file) as connection:
        forget_seqs(connection, [1, 19])

    with closing(SqliteLog(copied.file, is_reader=True)) as copy:
        assert copy.marks().forgotten == {1}

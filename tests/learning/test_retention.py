"""Old days leave a log beside a service that writes on: none too early, none twice."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import apsw
import numpy as np
import pytest
from little_service import (
    LittleLog,
    current_of,
    learn_all,
    learned_by,
    little_config,
)

from fastbandit.errors import LogError
from fastbandit.learning.learner import Learner
from fastbandit.settings.service import Config
from fastbandit.storage import backups, retention
from fastbandit.storage.archive import Archive
from fastbandit.storage.events import DecisionMade, RewardCame, TimePassed
from fastbandit.storage.history_files import HistoryFiles
from fastbandit.storage.retention import DAY, Left, delete_asked, retain
from fastbandit.storage.snapshot_store import SnapshotStore
from fastbandit.storage.sqlite_files import connect
from fastbandit.storage.sqlite_log import SqliteLog
from fastbandit.storage.standing_requests import DELETION_FILE, ask, asked_in

FIRST = 20_000 * DAY  # 2024-10-04


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[tuple[Config, LittleLog]]:
    """Return a service with five days of 20 decisions and more on the last, learned twice."""
    config, log = little_config(tmp_path, keep=1), LittleLog(tmp_path)
    for day in range(5):
        log.now = FIRST + day * DAY
        log.decide(20)
        log.let_pass(60)
    learn_all(Learner(config))
    log.decide(40)
    learn_all(Learner(config))
    yield config, log
    log.close()


def retained(config: Config, days: int = 2, **terms: Any) -> Left:
    data = Path(config.server.data_dir)
    terms = {"is_archived": True, "now": FIRST + 5 * DAY, **terms}
    return retain(data, data / "events.db", days=days, **terms)


def test_whole_days_leave_and_the_archive_has_them(folder: tuple[Config, LittleLog]) -> None:
    config, log = folder
    before = log._log.read()
    history = learned_by(config).history

    left = retained(config)

    assert left.days == ("2024-10-04", "2024-10-05", "2024-10-06")
    assert left.counts == {"decisions": 60, "rewards": 60, "ticks": 3}
    assert (left.interactions, left.why, left.compact) == (0, "", True)
    after = log._log.read()
    assert after == before[-len(after) :]
    archive = Archive(Path(config.server.data_dir) / "archive")
    assert [*archive.events(after=0, until=1e9), *after] == before
    assert archive.last == after[0].seq - 1
    shutil.rmtree(archive.folder.parent / "history")
    again = learned_by(config).history
    assert history is not None
    assert again is not None
    np.testing.assert_array_equal(again.contexts.dense, history.contexts.dense)  # type: ignore[arg-type]
    assert retained(config).days == ()


def test_without_an_archive_learning_loses_them(folder: tuple[Config, LittleLog]) -> None:
    config, log = folder
    learned = current_of(config).cut.interactions

    left = retained(config, is_archived=False)

    assert left.interactions == 60
    history = learned_by(config).history
    assert history is not None
    assert len(history) == learned - 60
    log.now = FIRST + 6 * DAY
    log.decide(20)
    log.decide(40)
    learn_all(Learner(config))
    assert current_of(config).cut.interactions > learned  # it goes on counting all


def test_numbers_go_on_after_all_days_left(folder: tuple[Config, LittleLog]) -> None:
    config, log = folder
    log.let_pass(1)
    last = log._log.last
    retained(config, days=1, now=FIRST + 99 * DAY)
    log.close()

    with_none = SqliteLog(Path(config.server.data_dir) / "events.db")
    assert with_none.last == last
    assert with_none.append([TimePassed()])[0].seq == last + 1
    with_none.close()


def test_what_waits_for_rewards_or_was_not_learned_stays(
    folder: tuple[Config, LittleLog],
) -> None:
    config, log = folder
    made = DecisionMade(
        id="slow",
        context=[0.0, 1.0],
        arms=["arm 1"],
        scores=[0.0],
        seed=0,
        version=0,
        catalogue=0,
        wait=9 * DAY,
    )
    log.write(made)
    log.now += DAY
    log.decide(80)

    left = retained(config, days=1, now=FIRST + 8 * DAY)

    assert left.days[-1] == "2024-10-07"
    assert left.why.startswith("versions have learned up to event")
    (outcome,) = log._log.append([RewardCame("slow", 1.0)])
    assert outcome.status == "counted"
    for _ in range(2):
        log.decide(60)
        learn_all(Learner(config))
    left = retained(config, days=1, now=FIRST + 8 * DAY)
    assert (left.days, left.why.split(" ", 2)[2]) == ((), "waits for rewards")
    assert log._log.append([RewardCame("slow", 1.0)])[0].status == "duplicate"


def test_a_run_that_ended_half_way_is_finished(
    folder: tuple[Config, LittleLog], monkeypatch: pytest.MonkeyPatch
) -> None:
    config, log = folder
    before = log._log.read()

    def stop(connection: apsw.Connection) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(retention, "_LEAST", 10)
    with monkeypatch.context() as during:
        during.setattr(retention, "_checkpoint", stop)
        with pytest.raises(KeyboardInterrupt):
            retained(config)
    assert 0 < len(before) - len(log._log.read()) <= 10
    log.decide(1)  # the service goes on meanwhile

    left = retained(config)

    assert len(left.days) == 3
    archive = Archive(Path(config.server.data_dir) / "archive")
    found = [*archive.events(after=0, until=1e9), *log._log.read()]
    assert found[: len(before)] == before


def test_lists_of_eligible_arms_leave_with_their_last_decision(
    folder: tuple[Config, LittleLog],
) -> None:
    config, _ = folder
    other = connect(Path(config.server.data_dir) / "events.db")
    other.execute("INSERT INTO eligible_lists VALUES ('used', '[1]')")
    other.executemany(
        "INSERT INTO eligible_lists VALUES (?, '[2]')", [(f"unused {n}",) for n in range(50)]
    )
    last = "(SELECT max(seq) FROM decisions)"
    other.execute(f"UPDATE decisions SET eligible_hash = 'used' WHERE seq = {last}")

    retained(config)

    assert other.execute("SELECT hash FROM eligible_lists").fetchall() == [("used",)]
    other.close()


def test_it_needs_a_log_of_today(tmp_path: Path) -> None:
    with pytest.raises(LogError, match="found none"):
        retain(tmp_path, tmp_path / "events.db", days=1, is_archived=False, now=0)
    old = apsw.Connection(str(tmp_path / "events.db"))
    old.execute("PRAGMA application_id = 1178750023; PRAGMA user_version = 5")
    old.execute("CREATE TABLE decisions (seq INTEGER)")
    old.close()
    with pytest.raises(LogError, match="Start the service once"):
        retain(tmp_path, tmp_path / "events.db", days=1, is_archived=False, now=0)


def test_what_was_lost_is_not_learned_also_where_a_run_ended_then(
    folder: tuple[Config, LittleLog], monkeypatch: pytest.MonkeyPatch
) -> None:
    config, log = folder

    def delete_and_die(*given: Any) -> None:
        delete(*given)
        raise KeyboardInterrupt

    delete = retention._delete
    monkeypatch.setattr(retention, "_delete", delete_and_die)
    with pytest.raises(KeyboardInterrupt):
        retained(config, is_archived=False)

    first = log._log.read()[0].seq
    assert first > 1
    history = HistoryFiles(Path(config.server.data_dir) / "history").read(current_of(config).cut)
    assert history is not None
    assert history.keys[:, 1].min() >= first


def deleted(config: Config, **terms: Any) -> dict[str, int]:
    data = Path(config.server.data_dir)
    return delete_asked(data, data / "events.db", now=FIRST + 5 * DAY, **terms)


def test_what_was_asked_to_be_deleted_goes_and_stays_learned(
    folder: tuple[Config, LittleLog], tmp_path: Path
) -> None:
    config, log = folder
    retained(config, days=4)
    history, cut = learned_by(config).history, current_of(config).cut
    assert (history is not None, Archive(tmp_path / "archive").days()) == (True, ["2024-10-04"])
    assert deleted(config) == {}
    ask(tmp_path / DELETION_FILE, seq=log._log.last)

    counts = deleted(config)

    assert counts["decisions"] > 100
    assert log._log.read()[0].seq == cut.since + 1
    assert Archive(tmp_path / "archive").days() == []
    again = learned_by(config).history
    assert again is not None
    assert history is not None
    np.testing.assert_array_equal(again.rewards, history.rewards)


def test_the_rest_goes_once_it_is_final_and_nothing_else(
    folder: tuple[Config, LittleLog], tmp_path: Path
) -> None:
    config, log = folder
    asked = log._log.last
    ask(tmp_path / DELETION_FILE, seq=asked)
    deleted(config)
    assert asked_in(tmp_path / DELETION_FILE) is not None
    for _ in range(2):
        log.decide(60)
        learn_all(Learner(config))

    deleted(config)

    assert asked_in(tmp_path / DELETION_FILE) is None
    assert log._log.read()[0].seq == asked + 1
    assert current_of(config).cut.since > asked


def test_what_waits_for_rewards_is_not_deleted(
    folder: tuple[Config, LittleLog], tmp_path: Path
) -> None:
    config, log = folder
    log.write(DecisionMade("slow", [0.0, 1.0], ["arm 1"], [0.0], 0, 0, 0, 9 * DAY))
    seq = log._log.last
    for _ in range(2):
        log.decide(80)
        learn_all(Learner(config))
    ask(tmp_path / DELETION_FILE, seq=log._log.last)
    deleted(config)

    assert log._log.read()[0].seq == seq
    assert log._log.append([RewardCame("slow", 1.0)])[0].status == "counted"


def test_after_a_rollback_it_learns_on_without_what_was_deleted(
    folder: tuple[Config, LittleLog], tmp_path: Path
) -> None:
    config, log = folder
    ask(tmp_path / DELETION_FILE, seq=log._log.last)
    deleted(config)
    SnapshotStore(tmp_path / "snapshots").rollback()
    count = current_of(config).cut.interactions

    log.decide(60)
    learn_all(Learner(config))

    assert current_of(config).cut.interactions > count
    history = learned_by(config).history
    assert history is not None
    assert len(history) > count


@pytest.mark.parametrize("is_before", [True, False])
def test_days_that_leave_while_a_backup_is_made_are_in_it(
    folder: tuple[Config, LittleLog],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    is_before: bool,
) -> None:
    config, log = folder
    before, copy_log = log._log.read(), backups._copy_log

    def meanwhile(*terms: Any) -> dict[str, int]:
        if is_before:
            retained(config)
        counts = copy_log(*terms)
        retained(config)
        return counts

    monkeypatch.setattr(backups, "_copy_log", meanwhile)
    made = backups.back_up(Path(config.server.data_dir), tmp_path / "backup").folder

    archive, copy = Archive(made / "archive"), SqliteLog(made / "events.db")
    assert archive.days() == ["2024-10-04", "2024-10-05", "2024-10-06"]
    assert (copy.read()[0].seq > archive.last) is is_before
    archived = [*archive.events(after=0, until=1e9)]
    assert [*archived, *copy.read(after=archive.last)] == before
    copy.close()


def test_a_backup_holds_no_day_that_is_half_written_or_half_deleted(
    folder: tuple[Config, LittleLog], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config, _ = folder
    retained(config)
    own = Path(config.server.data_dir) / "archive"
    (own / ".2024-10-07-ab.part").mkdir()
    (own / ".2024-10-07-ab.part" / "decisions.parquet").touch()
    (own / "2024-10-05" / "decisions.parquet.1.part").touch()
    copy_file = backups._copy

    def copy_while_a_day_goes(source: Path, target: Path) -> Any:
        if source.parent.name == "2024-10-04" and source.name == "decisions.parquet":
            Archive(own).remove_until(Archive(own).bounds("2024-10-04")[1])
        return copy_file(source, target)

    monkeypatch.setattr(backups, "_copy", copy_while_a_day_goes)
    made = backups.back_up(Path(config.server.data_dir), tmp_path / "backup").folder

    found = {path.relative_to(made / "archive") for path in (made / "archive").rglob("*.*")}
    kinds = ("day.json", "decisions.parquet", "rewards.parquet", "ticks.parquet")
    assert found == {Path(day, kind) for day in ("2024-10-05", "2024-10-06") for kind in kinds}

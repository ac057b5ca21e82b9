"""What only the log in a file has to bear: failing disks, other writers, strangers' files."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import apsw
import numpy as np
import pytest
from msgspec import structs

from fastbandit.errors import InputError, LogError
from fastbandit.storage.events import Arm, ArmsChanged, DecisionMade, Event, RewardCame, TimePassed
from fastbandit.storage.sqlite_files import connect
from fastbandit.storage.sqlite_log import SqliteLog
from fastbandit.testing.logs import Clock
from lab.faults.volatile_disk import VolatileDisk, leave


def made(id: str, *, wait: int = 1_000, adds_up: bool = False) -> DecisionMade:
    return DecisionMade(id, [0.5], ["x", "y"], [1.0, 0.5], 1, 0, 0, wait, adds_up=adds_up)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "events.db"


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[VolatileDisk]:
    disk = VolatileDisk(tmp_path)
    yield disk
    disk.close()
    leave()


# -- a disk that fails


def failures(log: SqliteLog, disk: VolatileDisk, events: list[Event]) -> int:
    """Append events, with the disk failing at the first step, then at the second, and so on."""
    step = 1
    while True:
        disk.steps_left = step
        try:
            log.append(events)
        except LogError:
            step += 1
        finally:
            is_done, disk.has_power, disk.steps_left = disk.steps_left != 0, True, None
        if is_done:
            return step - 1


@pytest.mark.parametrize(
    "events",
    [
        pytest.param([made("b")], id="one statement"),
        pytest.param([RewardCame("a", 1.0), TimePassed(), made("b")], id="a transaction"),
    ],
)
def test_a_failed_append_leaves_all_or_nothing_and_the_next_one_works(
    path: Path, disk: VolatileDisk, events: list[Event]
) -> None:
    log = SqliteLog(path, pragmas=["wal_autocheckpoint = 1"])
    log.append([made("a"), TimePassed()])

    count = failures(log, disk, events)

    numbers = [event.seq for event in log.read()]
    assert count > 3
    assert numbers == sorted(set(numbers))
    assert log.last == numbers[-1] == log.append([TimePassed()])[0].seq - 1
    log.close()


def test_what_an_append_may_have_to_copy_into_the_file_stays_small(tmp_path: Path) -> None:
    log = SqliteLog(tmp_path / "events.db")
    for first in range(0, 4_000, 100):
        log.append([made(f"{n}" * 100) for n in range(first, first + 100)])

    assert (tmp_path / "events.db-wal").stat().st_size < 2 * 2**20
    log.close()


def test_events_of_another_kind_after_a_failed_append_get_other_numbers(
    path: Path, disk: VolatileDisk
) -> None:
    log = SqliteLog(path, pragmas=["wal_autocheckpoint = 1"])
    log.append([made("a")])

    for step in range(1, 12):
        disk.steps_left = step
        for event in (RewardCame("a", 1.0), made(f"{step}"), ArmsChanged()):
            try:
                log.append([event])
            except LogError:
                disk.has_power, disk.steps_left = True, None

    numbers = [event.seq for event in log.read()]
    assert numbers == list(range(1, len(numbers) + 1))
    log.close()


def test_a_disk_that_fails_is_named_in_the_error(path: Path, disk: VolatileDisk) -> None:
    log = SqliteLog(path)
    disk.steps_left = 1

    with pytest.raises(LogError, match="nothing that was acknowledged is lost"):
        log.append([TimePassed()])
    log.close()


def test_a_full_disk_refuses_and_goes_on_when_there_is_room(path: Path) -> None:
    log, kept = SqliteLog(path, pragmas=["max_page_count = 24"]), 0

    def fill() -> None:
        nonlocal kept
        for kept in range(100):
            log.append([structs.replace(made(f"{kept}"), context=[0.1] * 400)])

    with pytest.raises(LogError, match="Make room on the disk"):
        fill()
    log.close()

    log = SqliteLog(path)
    assert log.last == kept
    assert log.append([TimePassed()])[0].seq == kept + 1
    log.close()


# -- one writer, any readers


def test_a_second_writer_is_refused_until_the_first_lets_go(path: Path) -> None:
    first = SqliteLog(path)

    with pytest.raises(LogError, match="one writer"):
        SqliteLog(path)
    first.append([TimePassed()])
    first.close()

    second = SqliteLog(path)
    assert second.last == 1
    second.close()


def test_a_reader_cannot_write(path: Path) -> None:
    SqliteLog(path).close()
    reader = SqliteLog(path, is_reader=True)

    with pytest.raises(LogError, match="ReadOnly"):
        reader.append([TimePassed()])
    reader.close()


def test_a_reader_of_no_file_is_refused_and_makes_none(path: Path) -> None:
    with pytest.raises(LogError):
        SqliteLog(path, is_reader=True)

    assert not path.exists()


def test_a_page_is_read_at_one_moment_while_the_writer_goes_on(path: Path) -> None:
    writer, reader = SqliteLog(path), SqliteLog(path, is_reader=True)
    for number in range(30):
        writer.append([made(f"{number}"), RewardCame(f"{number}", 1.0)])
        page = reader.read()
        assert [event.seq for event in page] == list(range(1, 2 * number + 3))
    reader.close()
    writer.close()


def test_decisions_among_arms_of_their_requests_are_read_by_themselves(path: Path) -> None:
    offering = structs.replace(made("b"), offered=[Arm("x", {"price": 1 / 3})])
    with closing(SqliteLog(path)) as log:
        log.append([made("a"), offering, made("c"), structs.replace(offering, id="d")])

        assert [one.seq for one in log.offers(after=0, until=4)] == [2, 4]
        (found,) = log.offers(after=2, until=4)
        assert found.offered == offering.offered


def test_text_that_is_not_unicode_is_refused_by_name(path: Path) -> None:
    log = SqliteLog(path)

    with pytest.raises(InputError, match="Unicode"):
        log.append([made("\ud800")])
    with pytest.raises(InputError, match="JSON"):
        log.append([DecisionMade("a", [], [], [], 1, 0, 0, 0, eligible=object())])

    assert log.last == 0
    log.close()


def test_threads_that_read_one_log_wait_for_each_other(path: Path) -> None:
    made = [DecisionMade(f"d{n}", [1.0] * 50, ["a"], [0.5], 7, 1, 0, 10) for n in range(2_000)]
    with closing(SqliteLog(path)) as log:
        log.append(made)
    with closing(SqliteLog(path, is_reader=True)) as log, ThreadPoolExecutor(4) as pool:
        assert {*pool.map(lambda _: len(log.read()), range(12))} == {2_000}


def test_many_rewards_of_one_decision_are_judged_one_after_the_other(path: Path) -> None:
    log = SqliteLog(path, clock=Clock())
    log.append([made("a", adds_up=True)])
    parts = [RewardCame("a", 1.0, part=f"{number // 2}") for number in range(600)]

    outcomes = log.append(parts)

    assert [one.status for one in outcomes] == ["counted", "duplicate"] * 300
    log.close()


# -- damage


def test_flipped_bits_raise_an_error_of_ours_or_none(
    path: Path, tmp_path: Path, numbers: np.random.Generator
) -> None:
    log = SqliteLog(path, clock=Clock())
    for number in range(40):
        log.append([made(f"{number}"), RewardCame(f"{number}", 0.1 * number), ArmsChanged()])
    log.close()

    whole = path.read_bytes()
    noticed = [is_flip_noticed(whole, tmp_path / f"{flip}.db", numbers) for flip in range(100)]

    assert sum(noticed) > 5


def is_flip_noticed(whole: bytes, path: Path, rng: np.random.Generator) -> bool:
    """Tell whether reading a file with one flipped bit raises a LogError: any other rises."""
    damaged = bytearray(whole)
    damaged[int(rng.integers(len(whole)))] ^= 1 << int(rng.integers(8))
    path.write_bytes(damaged)
    try:
        log = SqliteLog(path)
        log.read()
        log.close()
    except LogError:
        return True
    return False


def test_an_append_moves_pages_into_the_file_only_after_many_of_its_own(path: Path) -> None:
    with closing(SqliteLog(path)) as log, closing(connect(path)) as other:
        moved: list[int] = []
        other.execute("PRAGMA wal_autocheckpoint = 0; PRAGMA synchronous = NORMAL").fetchall()
        other.execute("INSERT INTO dropped_columns VALUES (?, 0)", ("x" * 2_000_000,))
        for _ in range(260):
            log.append([TimePassed()])
            moved.append(other.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_NOOP)[1])

    assert not any(moved[:80])
    assert any(moved)

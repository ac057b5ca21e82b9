"""The archive of a shared log: each machine has a copy that follows what the log names."""

from __future__ import annotations

from pathlib import Path
from threading import Thread

from machines import Machines
from shared_days import archived, learn, retained, write_days

from fastbandit.settings.service import Config
from fastbandit.storage.postgres_log import PostgresLog
from fastbandit.storage.shared_archive import SharedArchive
from fastbandit.storage.shared_retention import changing_shared
from fastbandit.testing.logs import Clock


def test_copies_follow_a_day_that_is_written_anew(
    shared: Machines, day_log: PostgresLog, day_clock: Clock, day_config: Config
) -> None:
    write_days(day_log, day_clock)
    learn(day_config)
    assert retained(day_config).days == ("2024-10-04",)
    other = shared.config("another")
    assert "bob-0" in archived(other)
    folder, url = Path(day_config.server.data_dir), day_config.log.url
    mine = SharedArchive(url, day_config.snapshots.url, folder)
    with changing_shared(url) as connection, mine.rewriting(connection) as begin:
        begin("2024-10-04")
        rows = mine.local.find("2024-10-04", "decisions", "id", ["bob-0"])
        changed = {row["seq"]: {**row, "id": "someone"} for row in rows}
        mine.local.rewrite("2024-10-04", "decisions", changed)

    assert "someone" in archived(other)
    assert "bob-0'" not in archived(other).replace("decision='bob-0'", "")
    days = [path.name for path in Path(f"{shared.folder}/shared/archive").iterdir()]
    assert len(days) == 1  # what it was before is removed


def test_a_day_that_was_begun_and_never_named_is_removed(
    day_log: PostgresLog, day_clock: Clock, day_config: Config
) -> None:
    write_days(day_log, day_clock, days=1)
    folder, url = Path(day_config.server.data_dir), day_config.log.url
    archive = SharedArchive(url, day_config.snapshots.url, folder)
    archive.local.write_day("2024-10-04", (1, 2), lambda kind: ())
    assert archive.followed().days() == ["2024-10-04"]  # it may be being written

    with changing_shared(url) as connection:
        archive.remove_unnamed(connection)

    assert archive.local.days() == []


def test_a_day_is_not_fetched_while_it_is_written_anew(
    day_log: PostgresLog, day_clock: Clock, day_config: Config
) -> None:
    write_days(day_log, day_clock)
    learn(day_config)
    retained(day_config)
    folder, url, day = Path(day_config.server.data_dir), day_config.log.url, "2024-10-04"
    mine, learners = (SharedArchive(url, day_config.snapshots.url, folder) for _ in range(2))
    follower = Thread(target=learners.followed)
    with changing_shared(url) as connection, mine.rewriting(connection) as begin:
        begin(day)
        rows = mine.local.find(day, "decisions", "id", ["bob-0"])
        mine.local.rewrite(day, "decisions", {row["seq"]: {**row, "id": "someone"} for row in rows})
        follower.start()
        follower.join(0.3)  # it waits
    follower.join()

    assert "id='someone'" in archived(day_config)

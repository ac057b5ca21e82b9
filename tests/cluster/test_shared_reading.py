"""The console and the commands read a shared log as they read the log of one machine."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import httpx
import pytest
from machines import Machines, address, stopped
from random_events import fill

from fastbandit.cli.main import main
from fastbandit.evaluation import read_rounds
from fastbandit.serving.console.figures import Figures
from fastbandit.serving.console.process import LogCopy
from fastbandit.storage.events import DecisionMade, RewardCame
from fastbandit.storage.local_copy import local_copy
from fastbandit.storage.postgres_log import PostgresLog
from fastbandit.storage.sqlite_log import SqliteLog
from fastbandit.testing.logs import Clock
from lab.postgres_server import LittleServer
from tests.serving.little_service import CONTEXT

Said = Callable[..., tuple[int, str, str]]


@pytest.fixture
def log(database: str) -> Iterator[PostgresLog]:
    """A shared log in which two decisions earned something."""
    with closing(PostgresLog(database)) as log:
        log.append([decision("a", "x"), decision("b", "y"), RewardCame("a", 1.0)])
        log.append([RewardCame("b", 0.0)])
        yield log


@pytest.fixture
def run(
    database: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Said:
    """Run a command with the settings of a service that shares its log."""
    (tmp_path / "fastbandit.toml").write_text(
        f'[server]\ndata_dir = "data"\n[log]\nurl = "{database}"\n[snapshots]\nurl = "snapshots"\n'
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FASTBANDIT_DATA", str(tmp_path / "kept"))

    def run(*args: str) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as ended:
            main(args)
        said = capsys.readouterr()
        return int(ended.value.code or 0), said.out, said.err

    return run


def decision(id: str, arm: str) -> DecisionMade:
    return DecisionMade(id, [0.5], [arm], [1.0], 1, 0, 0, 10**9, propensities=[0.5])


# -- figures


def test_figures_of_a_copy_are_those_of_a_local_log(database: str, tmp_path: Path) -> None:
    clock, compiled = Clock(), Clock()
    with closing(PostgresLog(database, clock=clock)) as shared:
        fill(shared, clock, groups=80, seed=7)
    with closing(SqliteLog(tmp_path / "events.db", clock=compiled)) as local:
        fill(local, compiled, groups=80, seed=7)

    path = local_copy(database, tmp_path)

    assert shown(path, clock) == shown(tmp_path / "events.db", clock)


def shown(path: Path, clock: Clock) -> list[Any]:
    with closing(Figures(path, path.parent / "none", path.parent, clock=clock)) as figures:
        return [figures.figures(minutes) for minutes in (None, 1)]


def test_figures_begin_anew_where_the_copy_was_made_anew(tmp_path: Path) -> None:
    for name, count in (("one", 3), ("two", 1)):
        (tmp_path / name).mkdir()
        with closing(SqliteLog(tmp_path / name / "events.db")) as log:
            log.append([decision(f"{number}", "x") for number in range(count)])
    path = tmp_path / "one" / "events.db"

    with closing(Figures(path, tmp_path, tmp_path)) as figures:
        before = figures.figures(None).events
        (tmp_path / "one").rename(tmp_path / "old")
        (tmp_path / "two").rename(tmp_path / "one")

        assert (before, figures.figures(None).events) == (3, 1)


def test_between_questions_the_console_rests(
    log: PostgresLog, database: str, tmp_path: Path
) -> None:
    time = [0.0]
    copy = LogCopy(database, tmp_path, clock=lambda: time[0])
    counts = []
    for time[0] in (0.0, 1.0, 3.0):
        assert copy.go_on() is None
        with closing(SqliteLog(copy.file, is_reader=True)) as read:
            counts.append(read.last)
        log.append([RewardCame("a", 1.0)])

    assert counts == [4, 4, 6]


def test_a_copy_that_cannot_go_on_is_shown_with_the_reason(
    log: PostgresLog, database: str, tmp_path: Path
) -> None:
    LogCopy(database, tmp_path).go_on()
    with closing(SqliteLog(tmp_path / "copy" / "events.db")):  # as copy-log does
        note = LogCopy(database, tmp_path).go_on()

    assert note is not None
    assert "is written by another process" in note


# -- over HTTP


def test_the_console_shows_the_decisions_of_all_deciders(
    shared: Machines, own_server: LittleServer
) -> None:
    with shared.started("a", "serve", "--no-learner") as one:
        url = address(one)
        first = figures_of(url)
        with closing(PostgresLog(shared.url)) as other:
            other.append([decision("elsewhere", "x"), RewardCame("elsewhere", 1.0)])
        select(url)
        one.wait_for(lambda: figures_of(url)["summary"]["decisions"] == 2)
        shows = figures_of(url)
        with stopped(own_server):
            one.wait_for(
                lambda: "The database is unavailable" in figures_of(url)["notes"].get("log", "")
            )
            alone = figures_of(url)
        one.wait_for(lambda: "log" not in figures_of(url)["notes"])
        (arguments,) = arguments_with("fastbandit.serving.console.process", str(one.folder))

    assert (first["summary"]["decisions"], first["notes"].get("log")) == (0, None)
    assert shows["summary"]["reward"]["mean"] == 0.5
    assert alone["summary"] | {"per_second": 0} == shows["summary"] | {"per_second": 0}
    assert "postgresql" not in arguments


def arguments_with(*words: str) -> list[str]:
    """Give the arguments of all processes that have these among them, as any user sees them."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):  # it has just ended
            found.append(path.read_bytes().replace(b"\0", b" ").decode(errors="replace"))
    return [line for line in found if all(word in line for word in words)]


def figures_of(url: str) -> dict[str, Any]:
    answer = httpx.get(f"{url}/v1/console", timeout=30.0)
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


def select(url: str) -> None:
    httpx.post(f"{url}/v1/select", json={"context": CONTEXT}, timeout=30.0).raise_for_status()


# -- commands


def test_export_writes_a_shared_log(log: PostgresLog, run: Said, tmp_path: Path) -> None:
    code, out, _ = run("export", "--format", "jsonl", "--out", "log.jsonl", "--json")

    lines = [json.loads(line) for line in (tmp_path / "log.jsonl").read_text().splitlines()]
    assert (code, json.loads(out)["rows"]) == (0, 2)
    assert [(line["decision"], line["reward"]) for line in lines] == [("a", 1.0), ("b", 0.0)]


def test_export_says_how_old_a_copy_is_while_the_database_is_away(
    log: PostgresLog, run: Said, own_server: LittleServer
) -> None:
    run("export", "--format", "jsonl", "--out", "log.jsonl")
    with stopped(own_server):
        code, out, err = run("export", "--out", "log.jsonl", "--replace")

    assert (code, out.splitlines()[0]) == (0, "2 decisions")
    assert "The database is unavailable: this is the copy of" in err


def test_a_folder_with_a_log_is_read_as_it_is(log: PostgresLog, run: Said, tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    SqliteLog(tmp_path / "mine" / "events.db").close()

    for folder, rows in (("mine", 0), ("empty", 2)):
        named = ("--data-dir", folder, "--out", "log.jsonl", "--replace")
        assert json.loads(run("export", *named, "--json")[1])["rows"] == rows


def test_a_backup_of_a_shared_log_names_what_to_do(log: PostgresLog, run: Said) -> None:
    code, _, err = run("backup", "target")

    assert code == 2
    assert "pg_basebackup" in err
    assert "fastbandit copy-log --out" in err


@pytest.mark.parametrize("by", ["url", "config"])
def test_evaluate_reads_a_shared_log(log: PostgresLog, run: Said, database: str, by: str) -> None:
    named = ("--log", database) if by == "url" else ("--config", "fastbandit.toml")

    code, out, err = run("evaluate", *named, "--policy", "uniform", "--json")

    assert (code, err) == (0, "")
    assert (json.loads(out)["rounds"], json.loads(out)["arms"]) == (2, 2)


def test_rounds_of_a_shared_log_are_those_of_its_copy(
    log: PostgresLog, run: Said, database: str, tmp_path: Path
) -> None:
    copied = read_rounds(local_copy(database, tmp_path).parent)

    found = read_rounds(database)

    assert list(found.rewards) == list(copied.rewards) == [1.0, 0.0]
    assert (found.ids, found.notes) == (copied.ids, copied.notes)


@pytest.mark.parametrize(
    ("has_settings", "begins"),
    [(True, "4 events in postgresql://"), (False, "the copy of a shared log: version")],
)
def test_doctor_looks_at_the_log_and_without_settings_at_its_copy(
    has_settings: bool, begins: str, log: PostgresLog, run: Said, tmp_path: Path
) -> None:
    run("export", "--format", "jsonl", "--out", "log.jsonl")
    if not has_settings:
        (tmp_path / "fastbandit.toml").unlink()

    _, out, _ = run("doctor", "--data-dir", "data", "--json")

    (found,) = [one for one in json.loads(out)["findings"] if one["name"] == "log"]
    assert found["state"] == "ok"
    assert found["found"].startswith(begins)

"""`fastbandit retain` and `fastbandit forget` say what left, and what learning loses."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from fastbandit.cli.forget import command as forget_command
from fastbandit.cli.retain import command
from fastbandit.errors import SettingError
from fastbandit.storage.events import DecisionMade, RewardCame, TimePassed
from fastbandit.storage.snapshot_store import SnapshotStore
from fastbandit.storage.snapshot_version import Cut
from fastbandit.storage.sqlite_log import SqliteLog
from tests.little_versions import publish

DAY = 86_400_000_000


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder with four days of decisions, of which a version learned all."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("os.nice", lambda more: 0)
    at = 20_000 * DAY
    log = SqliteLog(tmp_path / "events.db", clock=lambda: at)
    for day in range(4):
        at = (20_000 + day) * DAY
        terms = {"scores": [0.0], "seed": 0, "version": 0, "catalogue": 0, "wait": 1}
        made = DecisionMade(id=f"d{day}", context=[1.0], arms=["x"], subject="ann", **terms)  # type: ignore[arg-type]
        log.append([made, RewardCame(made.id, 1.0), TimePassed()])
    publish(SnapshotStore(tmp_path / "snapshots"), cut=Cut(seq=12, at=at, since=12))
    log.close()
    return tmp_path


@pytest.fixture
def usual_modes() -> Iterator[None]:
    before = os.umask(0o022)
    yield
    os.umask(before)


def said(*arguments: str, is_forgetting: bool = False) -> str:
    kind = forget_command if is_forgetting else command
    result = CliRunner().invoke(kind, list(arguments), catch_exceptions=False)
    return result.output


def test_it_says_what_left(folder: Path) -> None:
    left = json.loads(said("--days", "1", "--data-dir", str(folder), "--json"))

    assert left["counts"] == {"decisions": 3, "rewards": 3, "ticks": 3}
    assert len(left["days"]) == 3
    assert left["archived"] is True
    assert "Nothing left the log" in said("--days", "1", "--data-dir", str(folder))


@pytest.mark.parametrize("is_forgetting", [False, True])
def test_what_it_writes_is_private(folder: Path, usual_modes: None, is_forgetting: bool) -> None:
    given = ["--subject", "ann"] if is_forgetting else ["--days", "1"]

    said(*given, "--data-dir", str(folder), is_forgetting=is_forgetting)

    written = folder / ("receipts" if is_forgetting else "archive")
    assert {path.stat().st_mode & 0o077 for path in (written, *written.rglob("*"))} == {0}


def test_without_an_archive_it_says_what_learning_loses(folder: Path) -> None:
    text = said("--days", "1", "--no-archive", "--data-dir", str(folder))

    assert "3 days left the log: 3 decisions, 3 rewards, 3 ticks." in text
    assert "Learning goes on without them: 0 interactions." in text


def test_it_needs_days(folder: Path) -> None:
    with pytest.raises(SettingError, match=r"neither --days nor log\.retain_days"):
        said("--data-dir", str(folder))


def test_a_subject_is_forgotten_with_a_receipt(folder: Path) -> None:
    text = said("--subject", "ann", "--data-dir", str(folder), is_forgetting=True)

    assert "Forgotten: 4 decisions and 4 rewards in the log" in text
    assert Path(text.strip().splitlines()[-1]).exists()

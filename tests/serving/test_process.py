"""Figures come from a process of their own, one answer for each question."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import msgspec
import pytest

from fastbandit.errors import LogError
from fastbandit.serving.console import process
from fastbandit.serving.console.process import FiguresProcess, LogCopy
from fastbandit.storage.data_folder import LOG_FILE
from fastbandit.storage.sqlite_log import SqliteLog


def ask(folder: Path, *serving: dict[str, Any]) -> list[dict[str, Any]]:
    async def story() -> list[dict[str, Any]]:
        figures = FiguresProcess(folder)
        try:
            return [msgspec.json.decode(await figures.ask(None, one)) for one in serving]
        finally:
            await figures.stop()

    return asyncio.run(story())


def test_a_child_answers_each_question(tmp_path: Path) -> None:
    SqliteLog(tmp_path / LOG_FILE).close()

    first, second = ask(tmp_path, {"arms": 3}, {"arms": 4})

    assert (first["serving"], second["serving"]) == ({"arms": 3}, {"arms": 4})
    assert first["notes"]["reward"].startswith("No decision has been made yet")


def test_a_log_that_cannot_be_read_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(LogError, match="needs a log that can be read"):
        ask(tmp_path, {})


# -- the copy of a shared log


@pytest.fixture
def copied(monkeypatch: pytest.MonkeyPatch) -> list[Exception | None]:
    """What happens at each copy that is made, in turn: nothing, or an error."""
    outcomes: list[Exception | None] = []

    def copy(url: str, folder: Path, **options: Any) -> None:
        if (error := outcomes.pop(0)) is not None:
            raise error

    monkeypatch.setattr(process, "local_copy", copy)
    return outcomes


def test_a_copy_that_goes_well_has_no_note(copied: list[Any], tmp_path: Path) -> None:
    copied.append(None)

    assert LogCopy("postgresql://x/y", tmp_path, clock=lambda: 0.0).go_on() is None


def test_it_rests_between_two_copies(copied: list[Any], tmp_path: Path) -> None:
    copied.append(None)
    copy = LogCopy("postgresql://x/y", tmp_path, clock=lambda: 0.0)

    copy.go_on()
    copy.go_on()

    assert copied == []


def test_a_copy_that_is_there_is_shown_while_the_log_cannot_be_read(
    copied: list[Any], tmp_path: Path
) -> None:
    copied.append(LogError("It is gone."))
    copy = LogCopy("postgresql://x/y", tmp_path, clock=lambda: 0.0)
    copy.file.parent.mkdir(parents=True)
    copy.file.touch()

    assert copy.go_on() == "The copy of the shared log stays as it is: It is gone."


def test_without_a_copy_there_is_nothing_to_show(copied: list[Any], tmp_path: Path) -> None:
    copied.append(LogError("It is gone."))

    with pytest.raises(LogError, match="It is gone"):
        LogCopy("postgresql://x/y", tmp_path, clock=lambda: 0.0).go_on()

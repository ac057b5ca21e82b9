"""Figures come from a process of their own, one answer for each question."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import msgspec
import pytest

from fastbandit.errors import LogError
from fastbandit.serving.console.process import FiguresProcess
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

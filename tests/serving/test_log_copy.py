"""The console follows a shared log by a copy, and says what the copy lacks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from fastbandit.errors import LogError
from fastbandit.serving.console import log_copy
from fastbandit.serving.console.log_copy import LogCopy


@pytest.fixture
def copied(monkeypatch: pytest.MonkeyPatch) -> list[Exception | None]:
    """What happens at each copy that is made, in turn: nothing, or an error."""
    outcomes: list[Exception | None] = []

    def copy(url: str, folder: Path, **options: Any) -> None:
        if (error := outcomes.pop(0)) is not None:
            raise error

    monkeypatch.setattr(log_copy, "local_copy", copy)
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

"""A bar on a terminal only, and times as people read them."""

from __future__ import annotations

import sys

import pytest

from fastbandit.progress import progress_bar, silent


def test_there_is_no_bar_where_stderr_is_no_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: False, raising=False)

    with progress_bar("Working") as progress:
        progress(1, 2, "one")

    assert progress is silent
    assert capsys.readouterr() == ("", "")


def test_a_bar_is_written_to_stderr(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    with progress_bar("Working", is_shown=True) as progress:
        progress(1, 2, "one")

    printed = capsys.readouterr()
    assert progress is not silent
    assert printed.out == ""
    assert "50%" in printed.err

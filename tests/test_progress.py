"""A bar on a terminal only, and times as people read them."""

from __future__ import annotations

import sys

import pytest

from fastbandit.progress import format_seconds, progress_bar, silent


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


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (4.03, "4.03 s"),
        (31.49, "31.5 s"),
        (1234.0, "1,234 s"),
        (0.012, "12 ms"),
        (1.56e-4, "156 µs"),
        (9.69e-7, "969 ns"),
        (0.99999, "1 s"),
        (0.0, "0 s"),
    ],
)
def test_seconds_have_the_unit_that_suits_them(seconds: float, text: str) -> None:
    assert format_seconds(seconds) == text

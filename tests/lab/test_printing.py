"""Numbers on a terminal."""

from __future__ import annotations

import pytest

from lab.printing import format_seconds, print_lines


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


def test_lines_are_not_cut_however_narrow_the_terminal(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "10")

    print_lines("Measured:", ["search", "p99"], [["generator of arms", "1.25 ms"]])

    assert "generator of arms" in capsys.readouterr().out

"""Tables on a terminal."""

from __future__ import annotations

import pytest

from fastbandit.cli.tables import print_table


def test_a_table_has_its_title_headings_and_rows(capsys: pytest.CaptureFixture[str]) -> None:
    print_table(["name", "count"], [["a", "1"], ["b", "20"]], title="Arms")

    printed = capsys.readouterr().out
    assert all(text in printed for text in ("Arms", "name", "count", "20"))

"""Named columns become numbers: how long that takes, and how much memory."""

from __future__ import annotations

import json

from click.testing import CliRunner

from lab.__main__ import cli
from lab.benchmarks.encode import Row, make_columns, schema_for


def test_one_context_and_a_table_are_measured(little_training: None) -> None:
    done = CliRunner().invoke(
        cli, ["bench", "encode", "--rows=300", "--calls=20", "--json"], catch_exceptions=False
    )
    found = {row["what"]: row for row in json.loads(done.output)}

    assert found["encode one dict"]["columns"] == 20
    assert found["encode a table, again"]["columns"] == 30
    assert found["select_one among 200 arms of a request"]["figure"] > 0
    assert all(row["figure"] >= 0 for row in found.values())
    assert found["of which the numbers"]["figure"] > 0


def test_columns_are_mixed() -> None:
    kinds = {kind for _, kind, _, _ in schema_for(make_columns(300, 10)).rows()}

    assert kinds == {"number", "category", "flag", "id", "text", "date"}


def test_a_figure_stands_beside_its_bar() -> None:
    row = Row("encode one dict", 1, 20, 306, 12.3, "µs", 15.0)

    assert row.cells() == ("encode one dict", "1", "20", "306", "12.3 µs", "15 µs")

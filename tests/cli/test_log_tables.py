"""A log and its arms, read by name."""

from __future__ import annotations

from pathlib import Path

import pytest
from little_tables import ARMS, write_tables

from fastbandit.cli.log_tables import read_log_and_arms
from fastbandit.errors import DataError, SettingError
from fastbandit.evaluation.log_columns import LogColumns


def test_all_other_columns_are_the_context(tmp_path: Path) -> None:
    read = read_log_and_arms(*write_tables(tmp_path), LogColumns())

    assert read.context.names == ("city", "age")
    assert read.ids == [f"item{n}" for n in range(ARMS)]
    assert read.reward_kind == "binary"
    assert len(read.chosen) == 300


def test_ids_stand_in_the_column_that_both_tables_have(tmp_path: Path) -> None:
    for path in write_tables(tmp_path):
        path.write_text(path.read_text().replace("item_id", "sku"))

    read = read_log_and_arms(tmp_path / "decisions.csv", tmp_path / "items.csv", LogColumns())

    assert read.arm.key == "sku"


def test_ids_of_arms_may_be_numbers(tmp_path: Path) -> None:
    for path in write_tables(tmp_path):
        path.write_text(path.read_text().replace(",item", ",").replace("\nitem", "\n"))
    (tmp_path / "decisions.csv").write_text(
        (tmp_path / "decisions.csv").read_text().replace(",_id", ",item_id")
    )

    read = read_log_and_arms(tmp_path / "decisions.csv", tmp_path / "items.csv", LogColumns())

    assert read.ids == list(range(ARMS))


def test_a_kind_corrects_either_table(tmp_path: Path) -> None:
    kinds = {"age": "category", "price": "ignored"}

    read = read_log_and_arms(*write_tables(tmp_path), LogColumns(kinds=kinds))

    assert [row[1] for row in read.context.rows()] == ["category", "category"]
    assert "price" not in read.arm.spans


def test_a_kind_of_no_column_is_rejected(tmp_path: Path) -> None:
    with pytest.raises(SettingError, match="agee"):
        read_log_and_arms(*write_tables(tmp_path), LogColumns(kinds={"agee": "number"}))


def test_arms_without_ids_are_rejected(tmp_path: Path) -> None:
    log, arms = write_tables(tmp_path)
    arms.write_text("title,price\na,1\na,2\n")

    with pytest.raises(DataError, match="another id in each row, such as 'item_id'"):
        read_log_and_arms(log, arms, LogColumns())

"""A folder to serve from is written whole, or not at all."""

from __future__ import annotations

from pathlib import Path

import pytest
from little_tables import write_tables

from fastbandit.cli.log_tables import read_log_and_arms
from fastbandit.cli.service_folder import check_new, write_service
from fastbandit.errors import SettingError
from fastbandit.evaluation.log_columns import LogColumns


def test_what_cannot_be_written_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = read_log_and_arms(*write_tables(tmp_path), LogColumns())

    def full(*args: object, **settings: object) -> None:
        raise OSError("no room")

    monkeypatch.setattr("fastbandit.cli.service_folder.write_config", full)
    with pytest.raises(SettingError, match="no room"):
        write_service(tmp_path / "shop", read, {})

    assert sorted(path.name for path in tmp_path.iterdir()) == ["decisions.csv", "items.csv"]


def test_a_folder_that_is_empty_may_be_used(tmp_path: Path) -> None:
    (tmp_path / "shop").mkdir()

    check_new(tmp_path / "shop")
    write_service(tmp_path / "shop", read_log_and_arms(*write_tables(tmp_path), LogColumns()), {})

    assert (tmp_path / "shop" / "service.toml").exists()

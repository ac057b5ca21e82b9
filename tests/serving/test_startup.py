"""What a first snapshot cannot be made of is noticed before the service listens."""

from __future__ import annotations

from pathlib import Path

import pytest

from fastbandit.errors import FastbanditError, SettingError
from fastbandit.serving.startup import check_startup
from fastbandit.settings.service import Config
from tests.serving.little_service import config_in


def test_a_preset_needs_to_be_a_file_that_exists(tmp_path: Path) -> None:
    with pytest.raises(SettingError, match=r"found none at missing\.toml"):
        check_startup(config_in(tmp_path, select__preset="missing.toml"))


def test_a_file_of_arms_needs_to_exist(tmp_path: Path) -> None:
    with pytest.raises(FastbanditError, match=r"gone\.csv"):
        check_startup(config_in(tmp_path, arms__file=str(tmp_path / "gone.csv")))


def test_where_there_is_a_snapshot_neither_is_needed(config: Config) -> None:
    folder = Path(config.server.data_dir)

    check_startup(config_in(folder, select__preset="missing.toml", arms__file="gone.csv"))

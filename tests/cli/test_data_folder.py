"""Which folder a command means."""

from __future__ import annotations

from pathlib import Path

import pytest
from little_data import fill

from fastbandit.cli.data_folder import data_dir_of, log_folder
from fastbandit.progress import silent


def test_a_folder_that_is_named_goes_first(tmp_path: Path) -> None:
    assert data_dir_of(None, tmp_path) == tmp_path
    assert log_folder(None, fill(tmp_path / "data"), progress=silent) == tmp_path / "data"


def test_else_it_is_that_of_the_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("fastbandit.toml").write_text('[server]\ndata_dir = "elsewhere"\n')

    assert data_dir_of(None, None) == Path("elsewhere")
    assert log_folder(None, None, progress=silent) == Path("elsewhere")

"""Services that share a file of keys, wherever it lies."""

from __future__ import annotations

from pathlib import Path

import pytest

from fastbandit.cli.main import main
from fastbandit.errors import SettingError
from fastbandit.serving.server import key_ring
from tests.serving.little_service import config_in


def test_the_keys_are_in_the_data_folder_unless_told(tmp_path: Path) -> None:
    assert key_ring(config_in(tmp_path)).path == tmp_path / "keys.json"


def test_a_key_that_is_made_for_a_config_opens_each_service_that_names_its_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    shared = tmp_path / "secret" / "keys.json"
    monkeypatch.chdir(tmp_path)
    Path("fastbandit.toml").write_text(f'[server]\nkeys_file = "{shared}"\n')

    with pytest.raises(SystemExit) as ended:
        main(["keys", "create", "--name", "shop", "--scopes", "select"])

    assert ended.value.code == 0
    key = capsys.readouterr().out.strip()
    for name in ("a", "b"):
        ring = key_ring(config_in(tmp_path / name, server__keys_file=str(shared)))
        assert ring.check(key, "select") is None


def test_a_file_that_is_named_and_missing_does_not_leave_a_service_open(tmp_path: Path) -> None:
    config = config_in(tmp_path, server__keys_file=str(tmp_path / "nowhere.json"))

    with pytest.raises(SettingError, match="needs to name a file of keys"):
        key_ring(config)

"""The command `config show`: each setting, and where it came from."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from little_data import invoke

from fastbandit.cli.config import command


def test_a_value_of_the_file_names_the_file(tmp_path: Path) -> None:
    settings = tmp_path / "own.toml"
    settings.write_text("[server]\nport = 9000\n")

    lines = invoke(command, "show", "--config", settings).stdout.splitlines()

    (port,) = (line for line in lines if line.startswith("server.port "))
    assert port.startswith("server.port = 9000 ")
    assert port.endswith(f"# file {settings}")


def test_the_password_of_a_url_is_not_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FASTBANDIT_LOG_URL", "postgresql://me:hush@host/x")
    monkeypatch.setenv("FASTBANDIT_SNAPSHOTS_URL", "s3://bucket/x")
    monkeypatch.chdir(tmp_path)

    shown = json.loads(invoke(command, "show", "--json").stdout)

    assert "hush" not in json.dumps(shown)
    assert shown["log.url"]["source"] == "environment FASTBANDIT_LOG_URL"

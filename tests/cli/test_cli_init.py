"""The command `init`: a file of settings to start from."""

from __future__ import annotations

from pathlib import Path

import pytest
from little_data import invoke

from fastbandit.cli.init import command, write_config
from fastbandit.errors import SettingError
from fastbandit.settings.service import SECTIONS, Config, settings_of
from fastbandit.settings.service_files import CONFIG_FILE, read_config, written


def test_what_is_written_reads_as_the_defaults(tmp_path: Path) -> None:
    done = invoke(command, tmp_path / "new.toml")

    assert done.exit_code == 0
    assert read_config(tmp_path / "new.toml", environ={}) == Config()


def test_a_file_that_is_there_stays_unless_forced(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text("# mine\n")

    with pytest.raises(SettingError, match="--force"):
        invoke(command, path)
    assert path.read_text() == "# mine\n"

    invoke(command, path, "--force")
    assert "[server]" in path.read_text()


def test_init_writes_the_defaults_of_every_setting(tmp_path: Path) -> None:
    write_config(tmp_path / "new.toml")

    text = (tmp_path / "new.toml").read_text(encoding="utf-8")
    assert read_config(tmp_path / "new.toml", environ={}) == Config()
    for section in SECTIONS:
        part = text.partition(f"[{section}]")[2]
        for setting in settings_of(section):
            line = f"{setting.key} = {written(setting.default)}  # {setting.meaning}"
            assert f"\n{line}\n" in part or f"\n# {line}\n" in part


def test_what_init_comments_out_reads_as_the_defaults_too(tmp_path: Path) -> None:
    write_config(tmp_path / "new.toml")
    lines = (tmp_path / "new.toml").read_text(encoding="utf-8").splitlines()
    bare = [line.removeprefix("# ") for line in lines if " = " in line or line.startswith("[")]

    (tmp_path / "bare.toml").write_text("\n".join(bare), encoding="utf-8")
    config = read_config(tmp_path / "bare.toml", environ={})

    assert config == Config()
    assert "default" not in config.sources.values()


def test_init_says_what_to_run_next(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)

    done = invoke(command)

    assert Path(CONFIG_FILE).exists()
    assert "\n  fastbandit config show --config fastbandit.toml\n" in done.output
    assert "\n  fastbandit serve --config fastbandit.toml\n" in done.output


def test_init_says_where_it_cannot_write(tmp_path: Path) -> None:
    with pytest.raises(SettingError, match="Choose another place"):
        invoke(command, tmp_path / "none" / "new.toml")

    assert [*tmp_path.iterdir()] == []

"""The command line: what it prints, where, and how it ends."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import click
import pytest

from fastbandit import __version__
from fastbandit.cli import main as cli
from fastbandit.demo import comparison as demo_module
from fastbandit.errors import SettingError
from lab import __main__ as laboratory

GROUPS = (cli.cli, laboratory.cli, laboratory.experiment, laboratory.bench, laboratory.faults)


def run(*args: str) -> int:
    """Run a command in this process and give its exit status."""
    with pytest.raises(SystemExit) as ended:
        cli.main(args)
    assert isinstance(ended.value.code, int)
    return ended.value.code


def run_without_torch(*args: str) -> subprocess.CompletedProcess[str]:
    """Run a command in a fresh interpreter in which torch cannot be imported."""
    before = "import sys; sys.modules['torch'] = None"
    code = f"{before}\nfrom fastbandit.cli.main import main; main({args})"
    return subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
        env={**os.environ, "PYTHONPATH": str(Path(cli.__file__).parents[2])},
    )


def test_an_error_of_the_project_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(**_: Any) -> None:
        raise SettingError("It needs this:\ngot that.")

    monkeypatch.setattr(demo_module, "run_demo", fail)

    status = run("demo", "--out", str(tmp_path))

    assert status == 2
    assert capsys.readouterr().err == "Error: It needs this: got that.\n"


def test_an_interrupt_exits_with_130_and_a_short_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def stop(**_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(demo_module, "run_demo", stop)

    status = run("demo", "--out", str(tmp_path))

    assert status == 130
    assert capsys.readouterr().err.strip() == "Stopped."
    assert list(tmp_path.iterdir()) == []


def test_too_little_memory_is_a_message(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fill(**_: Any) -> None:
        raise MemoryError

    monkeypatch.setattr(demo_module, "run_demo", fill)

    assert run("demo", "--out", str(tmp_path)) == 2
    assert "more memory" in capsys.readouterr().err


# -- without torch


@pytest.mark.parametrize(
    "args", [("--help",), ("demo", "--help"), ("config", "--help"), ("--version",)]
)
def test_help_works_without_torch(args: tuple[str, ...]) -> None:
    ended = run_without_torch(*args)

    assert (ended.returncode, ended.stderr) == (0, "")
    assert "fastbandit" in ended.stdout


@pytest.mark.parametrize("args", [("demo",), ("freeze", "x")])
def test_a_command_that_needs_torch_says_what_to_install(args: tuple[str, ...]) -> None:
    ended = run_without_torch(*args)

    assert ended.returncode == 2
    assert ended.stderr.splitlines()[-1].endswith("pip install 'fastbandit[train]'")
    assert "Traceback" not in ended.stderr


# -- what is there


def test_version_is_that_of_the_package(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--version") == 0
    assert capsys.readouterr().out == f"fastbandit {__version__}\n"


def test_help_lists_commands_that_are_imported_only_when_run(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run("--help") == 0
    printed = capsys.readouterr().out
    assert all(f"  {name} " in printed for name in ("demo", "evaluate", "freeze", "serve"))


@pytest.mark.parametrize("group", GROUPS, ids=lambda group: group.name)
def test_every_command_can_be_imported(group: cli.LazyGroup) -> None:
    for name in group.lazy:
        command = group.get_command(click.Context(group, info_name="fastbandit"), name)

        assert isinstance(command, click.Command)


def test_an_unknown_command_exits_with_2(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("guesswork") == 2
    assert "guesswork" in capsys.readouterr().err

"""The command `learn` learns here unless it is told where else."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from fastbandit.cli.learn import command as learn_command
from fastbandit.errors import SettingError
from fastbandit.learning import learner_loop


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """What a learner was asked for, instead of learning."""
    found: list[dict[str, Any]] = []
    monkeypatch.setattr("os.nice", lambda more: 0)
    monkeypatch.setattr(learner_loop, "run_learner", lambda config, **how: found.append(how))
    return found


def test_a_learner_learns_in_its_own_process(asked: list[dict[str, Any]], tmp_path: Path) -> None:
    done = CliRunner().invoke(learn_command, ["--data-dir", str(tmp_path), "--once"])

    assert done.exit_code == 0, done.exception
    assert asked == [{"once": True}]


@pytest.mark.parametrize("option", [["--workers", "2"], ["--address", "auto"], ["--gpu"]])
def test_what_only_ray_has_is_rejected_without_it(
    asked: list[dict[str, Any]], option: list[str]
) -> None:
    done = CliRunner().invoke(learn_command, option)

    assert isinstance(done.exception, SettingError)
    assert f"{option[0]} needs the engine ray" in str(done.exception)
    assert asked == []

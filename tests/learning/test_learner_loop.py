"""A learner runs alone, ends on SIGTERM or when its parent dies, and logs why it fails."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from little_service import LittleLog, current_of, learn_all, little_config

from fastbandit.cli.rollback import command as rollback_command
from fastbandit.cli.snapshots import command as snapshots_command
from fastbandit.errors import DataError
from fastbandit.learning.learner import Learner
from fastbandit.learning.learner_loop import run_learner
from fastbandit.serving.learner_process import environment_of

HERE = Path(__file__).parent
_SCRIPT = """
import os, sys
from pathlib import Path
from little_service import little_config
from fastbandit.cli.learn import end_with
from fastbandit.learning.learner_loop import run_learner
config = little_config(Path(sys.argv[1]))
if sys.argv[2:] == ["holding Python's lock"] and os.fork() == 0:
    import ctypes, fcntl
    end_with(os.getppid())
    lock = Path(sys.argv[1], "learner.lock").open("w")
    fcntl.flock(lock, fcntl.LOCK_EX)
    Path(sys.argv[1], "learner.json").write_text('{"state": "waiting"}')
    ctypes.PyDLL(None).sleep(60)
elif len(sys.argv) > 2 and os.fork() == 0:  # the child learns, its parent waits to be killed
    end_with(os.getppid())
    run_learner(config)
elif len(sys.argv) > 2:
    os.wait()
else:
    run_learner(config)
"""


def until(claim: Callable[[], bool]) -> None:
    """Wait for something to come true, half a minute at most."""
    deadline = time.monotonic() + 30
    while not claim():
        assert time.monotonic() < deadline
        time.sleep(0.05)


@pytest.fixture
def started() -> Iterator[Callable[..., subprocess.Popen[bytes]]]:
    processes = []

    def start(*arguments: object) -> subprocess.Popen[bytes]:
        environment = {**os.environ, "PYTHONPATH": f"{HERE}:{HERE.parent.parent}"}
        command = [sys.executable, "-c", _SCRIPT, *map(str, arguments)]
        processes.append(subprocess.Popen(command, env=environment))
        return processes[-1]

    yield start
    for process in processes:
        process.kill()
        process.wait()


def state_in(folder: Path) -> dict[str, Any]:
    try:
        return dict(json.loads((folder / "learner.json").read_text()))
    except FileNotFoundError:
        return {}


def is_free(folder: Path) -> bool:
    """Return whether no learner works on a folder."""
    import fcntl

    with (folder / "learner.lock").open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return False
    return True


def test_it_learns_as_the_log_grows_until_it_is_stopped(
    tmp_path: Path, started: Callable[..., subprocess.Popen[bytes]]
) -> None:
    log = LittleLog(tmp_path)
    learner = started(tmp_path)
    until(lambda: state_in(tmp_path).get("state") == "waiting")
    log.decide(20)
    until(lambda: state_in(tmp_path).get("version") == 1)
    learner.send_signal(signal.SIGTERM)

    assert learner.wait(timeout=30) == 0


@pytest.mark.parametrize("how", ["as a child", "holding Python's lock"])
def test_it_ends_when_its_parent_is_killed(
    tmp_path: Path, started: Callable[..., subprocess.Popen[bytes]], how: str
) -> None:
    parent = started(tmp_path, how)
    until(lambda: state_in(tmp_path).get("state") == "waiting")
    assert not is_free(tmp_path)
    parent.kill()

    until(lambda: is_free(tmp_path))


def test_what_fails_is_written_down(tmp_path: Path) -> None:
    config = little_config(tmp_path)
    (tmp_path / "arms.csv").unlink()

    with pytest.raises(DataError):
        run_learner(config, once=True)
    assert state_in(tmp_path)["state"] == "failed"
    assert "arms.csv" in state_in(tmp_path)["error"]


def test_what_it_does_and_why_it_fails_is_logged(tmp_path: Path) -> None:
    config, arms = little_config(tmp_path), tmp_path / "arms.csv"
    arms.rename(tmp_path / "aside.csv")

    command = [sys.executable, "-m", "fastbandit", "learn"]
    with subprocess.Popen(command, env=environment_of(config), stderr=subprocess.PIPE) as learner:
        assert learner.stderr is not None
        failed = json.loads(learner.stderr.readline())
        (tmp_path / "aside.csv").rename(arms)
        published = json.loads(learner.stderr.readline())
        learner.terminate()

    assert (failed["level"], failed["message"]) == ("error", "the learner failed")
    assert "arms.csv" in failed["reason"]
    assert (published["message"], published["version"]) == ("published", 0)


def test_once_makes_what_is_due_and_ends(tmp_path: Path) -> None:
    LittleLog(tmp_path).decide(20)
    config = little_config(tmp_path)
    run_learner(config, once=True)

    assert current_of(config).version == 1


def test_the_commands_list_and_roll_back(tmp_path: Path) -> None:
    LittleLog(tmp_path).decide(20)
    learn_all(Learner(little_config(tmp_path)))
    where = ["--data-dir", str(tmp_path)]

    before = CliRunner().invoke(snapshots_command, where)
    rolled = CliRunner().invoke(rollback_command, where)
    after = CliRunner().invoke(snapshots_command, [*where, "--json"])

    assert "→ version 1" in before.output
    assert rolled.output == "Version 0 is served now.\n"
    report = json.loads(after.output)
    assert report["current"] == 0
    assert [one["version"] for one in report["snapshots"]] == [0, 1]
    assert report["refused"][0]["version"] == 1


def test_an_empty_folder_is_said_to_be_empty(tmp_path: Path) -> None:
    listed = CliRunner().invoke(snapshots_command, ["--data-dir", str(tmp_path)])

    assert "holds no version yet" in listed.output

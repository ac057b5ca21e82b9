"""The command `demo`: what it prints, and what it writes."""

from __future__ import annotations

import inspect
import json
import math
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fastbandit.cli import demo as demo_command
from fastbandit.cli import main as cli
from fastbandit.demo import comparison as demo_module
from fastbandit.search.fit_generator import GeneratorFit
from fastbandit.settings.blueprint import Blueprint
from fastbandit.settings.presets import PartNames, blueprint
from fastbandit.training.fit_reward import RewardFit
from fastbandit.training.update import Training

POLICIES = (
    "Random",
    "LinearTS",
    "Exhaust TS",
    "FastBandit TS",
    "GANBandit TS",
    "GANBandit UCB",
)
SMALL = ("--arms", "300", "--rounds", "120", "--batch", "60")
SHORT = Training(
    reward=RewardFit(iterations=20), generator=GeneratorFit(iterations=20, targets=64, sample=32)
)


@pytest.fixture
def short_training(monkeypatch: pytest.MonkeyPatch) -> None:
    def plan(parts: PartNames, **settings: Any) -> Blueprint:
        return replace(blueprint(parts, **settings), training=SHORT)

    monkeypatch.setattr("fastbandit.bandit.blueprint", plan)


def run(*args: str) -> int:
    """Run a command in this process and give its exit status."""
    with pytest.raises(SystemExit) as ended:
        cli.main(args)
    assert isinstance(ended.value.code, int)
    return ended.value.code


@pytest.mark.usefixtures("short_training")
def test_the_demo_prints_a_row_for_each_policy_and_the_paths_it_wrote(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    status = run("demo", *SMALL, "--out", str(tmp_path / "out"))

    printed = capsys.readouterr().out
    assert status == 0
    assert all(policy in printed for policy in POLICIES)
    written = list((tmp_path / "out").iterdir())
    assert len(written) == 3
    assert all(str(path) in printed for path in written)


@pytest.mark.usefixtures("short_training")
def test_the_demo_is_silent_on_stderr_where_that_is_no_terminal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run("demo", *SMALL, "--out", str(tmp_path))

    assert capsys.readouterr().err == ""


@pytest.mark.usefixtures("short_training")
def test_json_is_all_that_is_printed_and_its_numbers_are_finite(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    status = run("demo", *SMALL, "--json", "--out", str(tmp_path))

    told = json.loads(capsys.readouterr().out)
    assert status == 0
    assert [row["policy"] for row in told["policies"]] == list(POLICIES)
    for row in told["policies"]:
        numbers = [row["share_of_best"], *row["earned"], *row["speedup"].values()]
        assert all(math.isfinite(number) for number in numbers)
        assert row["milliseconds_per_decision"]["single"] > 0
    assert all(Path(path).is_file() for path in told["files"])


@pytest.mark.usefixtures("short_training")
def test_the_page_names_the_command_that_made_it(tmp_path: Path) -> None:
    run("demo", *SMALL, "--seed", "3", "--out", str(tmp_path))

    page = (tmp_path / "index.html").read_text()
    assert "fastbandit demo --rounds 120 --arms 300 --batch 60 --function h2" in page
    assert "--seed 3" in page


def test_the_command_and_the_function_have_the_same_defaults() -> None:
    options = {option.name: option.default for option in demo_command.command.params}

    settings = inspect.signature(demo_module.run_demo).parameters.values()
    shared = [setting for setting in settings if setting.name in options]
    assert len(shared) == 6
    assert all(options[setting.name] == setting.default for setting in shared)


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (("--arms", "0"), "arms=0"),
        (("--arms", "-5"), "arms=-5"),
        (("--dim", "0"), "dim=0"),
        (("--batch", "0"), "at least one round: got 0"),
        (("--rounds", "10", "--batch", "60"), "10 rounds in batches of 60"),
        (("--rounds", "many"), "'many' is not a valid integer"),
        (("--function", "h9"), "'h9' is not one of"),
    ],
)
def test_bad_numbers_exit_with_2_and_a_clear_message(
    args: tuple[str, ...], words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    status = run("demo", *args, "--out", str(tmp_path))

    captured = capsys.readouterr()
    assert status == 2
    assert words in captured.err
    assert captured.out == ""
    assert "Traceback" not in captured.err


def test_a_folder_that_cannot_be_made_is_rejected_before_the_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(demo_module, "run_demo", None)
    (tmp_path / "taken").write_text("")

    status = run("demo", "--out", str(tmp_path / "taken" / "out"))

    assert status == 2
    assert "Choose another with --out" in capsys.readouterr().err


BLOCKED = """
import sys
from importlib.metadata import PackageNotFoundError, packages_distributions, requires
from packaging.requirements import Requirement

def needed(name, extra, seen):
    try:
        lines = requires(name) or ()
    except PackageNotFoundError:
        return seen
    for one in map(Requirement, lines):
        if one.marker is None or one.marker.evaluate({"extra": extra}):
            own = one.name.lower().replace("_", "-")
            if own not in seen:
                seen.add(own)
                needed(own, "", seen)
    return seen

there = needed("fastbandit", "train", {"fastbandit"})
homes = packages_distributions()
blocked = {
    module for module, names in homes.items()
    if not {name.lower().replace("_", "-") for name in names} & there
}

class Without:
    def __init__(self, finder):
        self.finder = finder
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in blocked:
            return None
        return self.finder.find_spec(name, path, target)
    def __getattr__(self, name):
        return getattr(self.finder, name)

assert {"faiss", "apsw", "uvicorn"} <= blocked
sys.meta_path[:] = map(Without, sys.meta_path)
for name in [name for name in sys.modules if name.partition(".")[0] in blocked]:
    del sys.modules[name]
from fastbandit.cli.main import main
main(sys.argv[1:])
"""


@pytest.mark.slow
def test_the_extra_that_trains_is_enough_for_the_demo(tmp_path: Path) -> None:
    arguments = ("demo", "--arms", "40", "--rounds", "20", "--batch", "10", "--out", str(tmp_path))
    command = [sys.executable, "-c", BLOCKED, *arguments]
    done = subprocess.run(command, capture_output=True, text=True)

    assert done.returncode == 0, done.stderr
    assert (tmp_path / "index.html").exists()

"""The command line: what it prints, where, and how it ends."""

from __future__ import annotations

import inspect
import json
import math
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
import numpy as np
import pytest
from fakes import vectors_of

from fastbandit import Bandit, FeaturesAndIds, FrozenBandit, Ids, Sparse, __version__
from fastbandit.cli import demo as demo_command
from fastbandit.cli import main as cli
from fastbandit.cli.freeze import check_alike, draw_contexts, freeze_folder
from fastbandit.cluster.engine import SerialEngine
from fastbandit.demo import comparison as demo_module
from fastbandit.errors import SettingError, SnapshotError
from fastbandit.features.kinds import Dense
from fastbandit.search.fit_generator import GeneratorFit
from fastbandit.settings.blueprint import Blueprint
from fastbandit.settings.presets import blueprint
from fastbandit.training.fit_reward import RewardFit
from fastbandit.training.update import Training
from lab import __main__ as laboratory

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


GROUPS = (cli.cli, laboratory.cli, laboratory.experiment, laboratory.bench, laboratory.faults)


@pytest.fixture
def short_training(monkeypatch: pytest.MonkeyPatch) -> None:
    def plan(**settings: Any) -> Blueprint:
        return replace(blueprint(**settings), training=SHORT)

    monkeypatch.setattr("fastbandit.bandit.blueprint", plan)


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


# -- the demo


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


# -- freezing


@pytest.fixture(scope="module")
def learned(little_training: None) -> Bandit:
    bandit = Bandit(arms=vectors_of(80, 3), context=4, reward="real")
    contexts = vectors_of(30, 4, seed=1)
    decision = bandit.select(contexts)
    bandit.update(contexts=contexts, arms=decision.arms, rewards=contexts[:, 0])
    return bandit


@pytest.fixture
def snapshot(learned: Bandit, tmp_path: Path) -> Path:
    learned.save(tmp_path / "mine")
    return tmp_path / "mine"


def test_freeze_writes_a_folder_beside_the_snapshot_and_tells_its_size(
    snapshot: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    status = run("freeze", str(snapshot))

    printed = capsys.readouterr()
    folder = snapshot.with_name("mine-frozen")
    assert (status, printed.err) == (0, "")
    assert all(words in printed.out for words in ("80 arms", "bytes an arm", str(folder)))
    assert len(FrozenBandit.load(folder)) == 80
    assert len(Bandit.load(snapshot)) == 80


def test_workers_index_arms_to_the_last_bit(snapshot: Path, tmp_path: Path) -> None:
    freeze_folder(snapshot, tmp_path / "here")
    freeze_folder(snapshot, tmp_path / "there", engine=SerialEngine(3))

    names = sorted(path.name for path in (tmp_path / "here").iterdir())
    here, there = (
        [(tmp_path / one / name).read_bytes() for name in names] for one in ("here", "there")
    )
    assert here == there


def test_workers_need_an_engine(snapshot: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("freeze", str(snapshot), "--workers", "2") == 2

    assert "need an engine" in capsys.readouterr().err


def test_freeze_prints_json_and_takes_another_folder(
    snapshot: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    status = run("freeze", str(snapshot), "--out", str(tmp_path / "there"), "--json")

    told = json.loads(capsys.readouterr().out)
    assert status == 0
    assert told["folder"] == str(tmp_path / "there")
    assert (told["arms"], told["version"]) == (80, 1)
    assert told["same"] == told["checked"] > 0
    assert all(told[name] > 0 for name in ("bytes_per_arm", "freeze_s", "save_s", "load_s"))
    assert FrozenBandit.load(tmp_path / "there").version == 1


@pytest.mark.parametrize(
    ("case", "words"),
    [
        ("missing", "found none in"),
        ("itself", "needs a folder of its own"),
        ("a file", "name another"),
    ],
)
def test_what_cannot_be_frozen_is_one_line(
    case: str, words: str, snapshot: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "taken").write_text("")
    args = {
        "missing": (str(tmp_path / "nowhere"),),
        "itself": (str(snapshot), "--out", str(snapshot)),
        "a file": (str(snapshot), "--out", str(tmp_path / "taken")),
    }

    status = run("freeze", *args[case])

    said = capsys.readouterr().err
    assert status == 2
    assert words in said
    assert said.count("\n") == 1
    assert Bandit.load(snapshot).version == 1


def test_a_frozen_bandit_that_decides_otherwise_is_refused(
    learned: Bandit, snapshot: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = learned.freeze()
    other.discard_arms(range(1, 80))
    monkeypatch.setattr(Bandit, "freeze", lambda self, **settings: other)

    assert run("freeze", str(snapshot), "--out", str(tmp_path / "there")) == 2
    assert not (tmp_path / "there").exists()


@pytest.mark.parametrize(
    "kind", [Dense(3), Sparse(20), Ids(4), FeaturesAndIds(Dense(2), Ids(4))], ids=repr
)
def test_contexts_of_any_kind_can_be_made_up(kind: Any) -> None:
    contexts = draw_contexts(kind, 5, np.random.default_rng(0))

    assert len(kind.read(contexts, what="contexts")) == 5


@pytest.mark.parametrize("name", ["snapshot.json", "current.json", "snapshots"])
def test_a_folder_of_a_service_is_frozen_already(name: str, tmp_path: Path) -> None:
    (tmp_path / name).mkdir()

    with pytest.raises(SnapshotError, match="frozen already"):
        freeze_folder(tmp_path, tmp_path / "out")


def test_another_arm_that_scores_the_same_is_no_difference(learned: Bandit) -> None:
    decision = learned.select(vectors_of(3, 4))

    check_alike(decision, replace(decision, rows=decision.rows + 1))


# -- how it ends


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


def test_an_error_of_the_project_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(**_: Any) -> None:
        raise SettingError("It needs this:\ngot that.")

    monkeypatch.setattr(demo_module, "run_demo", fail)

    status = run("demo", "--out", str(tmp_path))

    assert status == 2
    assert capsys.readouterr().err == "Error: It needs this: got that.\n"


def test_a_folder_that_cannot_be_made_is_refused_before_the_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(demo_module, "run_demo", None)
    (tmp_path / "taken").write_text("")

    status = run("demo", "--out", str(tmp_path / "taken" / "out"))

    assert status == 2
    assert "Choose another with --out" in capsys.readouterr().err


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


@pytest.mark.parametrize("args", [("demo",), ("freeze", "x"), ("plan",)])
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
    assert all(f"  {name} " in printed for name in ("demo", "evaluate", "freeze", "plan", "serve"))


@pytest.mark.parametrize("group", GROUPS, ids=lambda group: group.name)
def test_every_command_can_be_imported(group: cli.LazyGroup) -> None:
    for name in group.lazy:
        command = group.get_command(click.Context(group, info_name="fastbandit"), name)

        assert isinstance(command, click.Command)


def test_an_unknown_command_exits_with_2(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("guesswork") == 2
    assert "guesswork" in capsys.readouterr().err

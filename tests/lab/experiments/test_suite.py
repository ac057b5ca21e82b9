"""Suites: what their files say, which runs they mean, and how those are made."""

from __future__ import annotations

import json
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fastbandit.cli.main import run as run_cli
from fastbandit.cluster.engine import News
from fastbandit.cluster.local_engine import LocalEngine
from fastbandit.errors import DataError, SettingError
from fastbandit.features.kinds import Dense
from fastbandit.types import Inputs
from lab.__main__ import cli
from lab.experiments import datasets, suite
from lab.experiments.environment import Tabled
from lab.experiments.logged import LoggedData
from lab.experiments.results import TRAINING, Key, read_results, write_result
from lab.experiments.suite import describe_failures, jobs_of, read_made, run_job, run_suite
from lab.experiments.suite_file import read_suite, suite_names

RANDOM = Key("h2", {"arms": 50}, "Random", "default", rounds=30, batch=20, seed=0)
ONE = LocalEngine(1)
SMALL = """
title = "Small"
rounds = 20
batch = 10
seeds = 2
policies = ["Random", "Exhaust TS"]
[[datasets]]
name = "h1"
[datasets.options]
arms = 30
[[datasets]]
name = "h2"
rounds = 30
seeds = 1
policies = ["Random"]
"""


@pytest.fixture
def small(tmp_path: Path) -> Path:
    path = tmp_path / "small.toml"
    path.write_text(SMALL)
    return path


def command(*args: object) -> int:
    """Run `python -m lab experiment run` in this process and return its exit status."""
    with pytest.raises(SystemExit) as ended:
        run_cli(cli, ["experiment", "run", *map(str, args)], prog_name="lab")
    assert isinstance(ended.value.code, int)
    return ended.value.code


# -- files


@pytest.mark.parametrize("name", suite_names())
def test_a_suite_of_the_package_can_be_read(name: str) -> None:
    suite = read_suite(name)

    assert suite.name == name
    assert jobs_of(suite)


def test_the_package_has_these_suites() -> None:
    assert suite_names() == ("continuum", "drift", "paper", "quality", "quick", "replay")


def test_a_dataset_takes_from_the_suite_what_it_does_not_say_itself(small: Path) -> None:
    first, second = read_suite(str(small)).parts

    assert (first.rounds, first.batch, first.seeds, first.presets) == (20, 10, 2, ("default",))
    assert (second.rounds, second.seeds, second.policies) == (30, 1, ("Random",))
    assert first.options == {"arms": 30}


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("title =", "titel =", r"titel.*Did you mean 'title'"),
        ("seeds = 1", "sedes = 1", r"key of the dataset h2.*sedes"),
        ('name = "h1"', 'name = "h9"', r"h1, h1b.*'h9'"),
        ('name = "h1"', "", r"needs a name"),
        ('"Exhaust TS"', '"Exhaust T"', r"Random, .*Did you mean 'Exhaust TS'"),
        ("batch = 10", 'batch = 10\npresets = ["papr"]', r"default, paper.*papr"),
        ("batch = 10", 'batch = 10\npresets = ["no.toml"]', r"no\.toml"),
        ("batch = 10", "batch = 0", r"batch needs to be a whole number.*h1 has 0"),
        ("batch = 10", "batch = true", r"batch needs to be a whole number.*h1 has True"),
        ("rounds = 20\n", "", r"rounds needs to be a whole number.*h1 has nothing"),
        ("arms = 30", "arms = [30]", r"h1 has arms = \[30\]"),
        ("arms = 30", "arms = inf", r"h1 has arms = inf"),
        ("batch = 10", "batch = ", r"line 4"),
        ("batch = 10", "batch = 10\ntraining = 1", r"true or false"),
        ('policies = ["Random"]', "policies = []", r"policies needs to be a list.*h2 has \[\]"),
        ('policies = ["Random"]', "policies = 3", r"policies needs to be a list.*h2 has 3"),
    ],
)
def test_what_a_suite_says_wrongly_is_named(old: str, new: str, words: str, small: Path) -> None:
    small.write_text(SMALL.replace(old, new, 1))

    with pytest.raises(SettingError, match=words):
        read_suite(str(small))


@pytest.mark.parametrize("text", ["", "datasets = []", "datasets = 3"])
def test_a_suite_without_datasets_is_refused(text: str, small: Path) -> None:
    small.write_text(text)

    with pytest.raises(SettingError, match="needs datasets"):
        read_suite(str(small))


def test_a_suite_that_is_not_there_is_refused_with_those_that_are() -> None:
    with pytest.raises(
        SettingError, match=r"continuum, drift, paper, quality, quick, replay.*'pepper'"
    ):
        read_suite("pepper")


# -- which runs


def test_presets_and_devices_change_neural_policies_alone(small: Path) -> None:
    suite = read_suite(str(small))
    part = replace(suite.parts[0], presets=("paper", "default"), seeds=1)

    jobs = jobs_of(replace(suite, parts=(part,)), device="cuda")

    assert sorted((key.policy, key.preset, key.device) for key in jobs) == [
        ("Exhaust TS", "default", "cuda"),
        ("Exhaust TS", "paper", "cuda"),
        ("Random", "default", "cpu"),
    ]


def test_seeds_come_one_by_one_slow_policies_first_and_no_run_twice(small: Path) -> None:
    suite = read_suite(str(small))

    jobs = jobs_of(replace(suite, parts=suite.parts * 2))

    assert [(key.dataset, key.policy, key.seed) for key in jobs] == [
        ("h1", "Exhaust TS", 0),
        ("h1", "Random", 0),
        ("h2", "Random", 0),
        ("h1", "Exhaust TS", 1),
        ("h1", "Random", 1),
    ]


def test_training_is_timed_once_for_each_preset(small: Path) -> None:
    suite = read_suite(str(small))
    part = replace(suite.parts[0], training=True, presets=("default", "paper"))

    jobs = jobs_of(replace(suite, parts=(part,)))

    timed = [(key.preset, key.seed) for key in jobs if key.policy == TRAINING]
    assert timed == [("default", 0), ("paper", 0)]


# -- one run


def test_a_run_writes_what_was_earned_and_the_best_possible_by_batch(tmp_path: Path) -> None:
    result = run_job(RANDOM, tmp_path, None)

    environment = datasets.load("h2", arms=50)
    assert result["best"] == pytest.approx(
        [environment.ceiling(0, 20).sum(), environment.ceiling(20, 10).sum()]
    )
    assert len(result["earned"]) == 2
    assert (result["arms"], result["index"], result["played"]) == (50, None, 30)
    assert read_results(tmp_path) == [result]


@pytest.mark.usefixtures("little_training")
def test_a_neural_run_says_its_quality_and_its_index(tmp_path: Path) -> None:
    result = run_job(replace(RANDOM, policy="GANBandit TS"), tmp_path, None)

    assert result["quality"] == pytest.approx(np.mean(result["qualities"]))
    assert result["index"] == "Lookup"
    assert result["update_seconds"] > 0.0


def test_a_run_that_exists_is_not_made_again(tmp_path: Path) -> None:
    first = run_job(RANDOM, tmp_path, None)
    RANDOM.path(tmp_path).write_text(json.dumps({**first, "lookups": 0.125}))

    assert run_job(RANDOM, tmp_path, None)["lookups"] == 0.125


def test_an_interrupted_run_leaves_no_result(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*args: object, **kwargs: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(suite, "run", interrupt)
    with pytest.raises(KeyboardInterrupt):
        run_job(RANDOM, tmp_path, None)

    assert not list(tmp_path.rglob("*"))


def tabled(rounds: int) -> Tabled:
    contexts = np.ones((rounds, 2), dtype=np.float32)
    worth = np.tile(np.array([[0.0, 1.0]], dtype=np.float32), (rounds, 1))
    arms = np.eye(2, dtype=np.float32)
    return Tabled("h2", Dense(2), Inputs(dense=contexts), worth, arms=arms, notes=("a note",))


def loaded(environment: Any) -> Callable[..., Any]:
    return lambda name, **options: environment


def test_a_dataset_is_played_to_its_end_and_the_result_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(datasets, "load", loaded(tabled(25)))

    result = run_job(replace(RANDOM, options={}), tmp_path, None)

    assert (result["rounds"], result["played"]) == (30, 25)
    assert result["best"] == [20.0, 5.0]
    assert result["notes"] == ["a note", "25 rounds are all there are: 30 were asked for"]


def logged() -> LoggedData:
    return LoggedData(
        name="h2",
        context=Dense(2),
        contexts=Inputs(dense=np.ones((60, 2), dtype=np.float32)),
        size=2,
        chosen=np.tile(np.array([0, 1]), 30),
        rewards=np.tile(np.array([0.0, 1.0]), 30),
        arms=np.eye(2, dtype=np.float32),
    )


def test_a_log_is_replayed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(datasets, "load", loaded(logged()))

    result = run_job(replace(RANDOM, options={}, rounds=40), tmp_path, None)

    assert result["kind"] == "replay"
    assert 0 < result["matches"] < 40
    assert result["low"] <= result["mean"] <= result["high"]
    assert len(result["curve"]) == 2


def test_updates_are_not_timed_on_a_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(datasets, "load", loaded(logged()))

    with pytest.raises(SettingError, match=r"needs rewards of all arms.*Use mode=simulator"):
        run_job(replace(RANDOM, options={}, policy=TRAINING), tmp_path, None)


@pytest.mark.slow
@pytest.mark.usefixtures("little_training")
def test_training_times_are_ratios_of_two_medians(tmp_path: Path) -> None:
    result = run_job(replace(RANDOM, policy=TRAINING), tmp_path, None)

    assert result["kind"] == "training"
    for exploration in ("TS", "UCB"):
        mine, yardstick = result["ratios"][f"{exploration} seconds"]
        assert result["ratios"][exploration] == pytest.approx(mine / yardstick)


@pytest.mark.usefixtures("little_training")
def test_a_result_of_other_settings_is_not_taken_for_one_of_these(tmp_path: Path) -> None:
    settings = tmp_path / "mine.toml"
    settings.write_text("format = 1\n[network]\nembedding = 4\n")
    key = replace(RANDOM, policy="Exhaust TS", preset=str(settings))
    first = run_job(key, tmp_path / "out", None)

    assert read_made(key, tmp_path / "out") == first
    settings.write_text("format = 1\n[network]\nembedding = 5\n")
    with pytest.raises(SettingError, match=r"before .*mine\.toml changed"):
        read_made(key, tmp_path / "out")


@pytest.mark.parametrize("base", ["default", "paper"])
def test_a_result_made_before_names_changed_is_still_read(base: str, tmp_path: Path) -> None:
    settings, lines = tmp_path / "mine.toml", "[doubt.gradient]\nridge = 2.0\n"
    settings.write_text(f'format = 1\nbase = "{base}"\n{lines}')
    key = replace(RANDOM, policy="Exhaust UCB", preset=str(settings))
    stored = {"base": base, "sections": {"doubt.gradient": {"ridge": 2.0}}}
    made = write_result(key.path(tmp_path), "play", key, {"settings": stored})

    assert read_made(key, tmp_path) == made


# -- many runs


@pytest.mark.slow
def test_one_that_fails_does_not_lose_the_others(tmp_path: Path) -> None:
    bad = replace(RANDOM, dataset="bibtex", options={})

    results, failed = run_suite([bad, RANDOM], tmp_path, data=tmp_path / "none", engine=ONE)

    assert [result["policy"] for result in results] == ["Random"]
    assert [key for key, _ in failed] == [bad]
    assert len(list(tmp_path.rglob("*.json"))) == 1


def test_what_is_there_needs_no_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run_job(RANDOM, tmp_path, None)
    monkeypatch.setattr(LocalEngine, "start", None)

    results, failed = run_suite([RANDOM], tmp_path, engine=ONE)

    assert (len(results), failed) == (1, [])


def test_a_damaged_result_is_named_before_the_work(tmp_path: Path) -> None:
    path = RANDOM.path(tmp_path)
    path.parent.mkdir(parents=True)
    path.write_text("{")

    with pytest.raises(DataError, match="seed0"):
        run_suite([RANDOM], tmp_path, engine=ONE)


def test_a_result_of_another_machine_is_written_here(tmp_path: Path) -> None:
    made = run_job(RANDOM, tmp_path / "there", None)

    run_suite([RANDOM], tmp_path / "here", engine=Elsewhere(made))

    assert read_results(tmp_path / "here") == [made]


@dataclass(frozen=True)
class Elsewhere:
    """An engine whose workers have disks of their own."""

    result: dict[str, Any]
    workers: int = 1

    def run(self, work: Any, jobs: Sequence[Any]) -> Generator[News, None, None]:
        yield News(0, is_over=True, result=self.result)

    def close(self) -> None: ...


# -- the command


@pytest.mark.slow
def test_the_command_prints_a_table_and_runs_nothing_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    numbers = ("--rounds", "20", "--batch", "10", "--jobs", "1")
    words = ("quick", "--datasets", "h1", "--policies", "Random", *numbers, "--out", tmp_path / "o")

    assert command(*words) == 0
    printed = capsys.readouterr().out
    monkeypatch.setattr(LocalEngine, "start", None)

    assert command(*words) == 0
    assert capsys.readouterr().out == printed
    assert "| default | h1-arms1000 | Random | 1 |" in printed


@pytest.mark.slow
def test_the_command_prints_json_and_names_what_failed(
    small: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    small.write_text(SMALL.replace('name = "h2"', 'name = "bibtex"'))
    out = small.parent / "out"

    words = (small, "--policies", "Random", "--seeds", 1, "--jobs", 1)
    status = command(*words, "--data", out, "--out", out, "--json")

    printed = capsys.readouterr()
    output = json.loads(printed.out)
    assert status == 2
    assert [row["dataset"] for row in output["summary"]] == ["h1"]
    assert output["failed"][0]["dataset"] == "bibtex"
    assert len(printed.err.splitlines()) == 1
    assert printed.err.startswith("Error: bibtex, Random, seed 0: ")


def test_the_command_lists_the_runs_and_which_exist(
    small: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = small.parent / "out"
    key = Key("h1", {"arms": 30}, "Random", "default", rounds=20, batch=10, seed=0)
    run_job(key, out, None)

    assert command(small, "--out", out, "--list") == 0
    text = capsys.readouterr().out
    assert command(small, "--out", out, "--list", "--json") == 0
    output = json.loads(capsys.readouterr().out)

    assert f"made  {key.path(out)}\n" in text
    assert "5 runs, 1 of them made." in text
    assert [job["exists"] for job in output] == [False, True, False, False, False]


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (("nowhere.toml",), "'nowhere.toml', which cannot be read"),
        (("pepper",), "continuum, drift, paper, quality, quick, replay"),
        (("quick", "--datasets", "bibtex"), "h1, h2, h3: got 'bibtex'"),
        (("quick", "--policies", "GANBandits TS"), "Did you mean 'GANBandit TS'?"),
        (("quick", "--presets", "papr"), "Did you mean 'paper'?"),
        (("quick", "--presets", "no.toml"), "no.toml"),
        (("quick", "--seeds", "0"), "0 is not in the range"),
        (("quick", "--out", __file__), "Choose another with --out"),
    ],
)
def test_a_wrong_word_ends_with_2_and_one_line(
    args: tuple[str, ...],
    words: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)

    status = command(*args)

    printed = capsys.readouterr()
    assert status == 2
    assert words in printed.err.splitlines()[-1]
    assert "Traceback" not in printed.err
    assert (printed.out, list(tmp_path.iterdir())) == ("", [])


def test_bad_toml_is_one_line_that_says_where(
    small: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    small.write_text(SMALL.replace("batch = 10", "batch 10"))

    assert command(small) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "small.toml" in line
    assert "line 4" in line


def test_runs_of_one_dataset_with_the_same_error_share_a_line() -> None:
    failed = [(replace(RANDOM, seed=seed), "no data") for seed in range(3)]
    failed.append((replace(RANDOM, policy="HOO"), "no box"))

    assert describe_failures(failed) == [
        "h2-arms50, Random, seed 0 and 2 more: no data",
        "h2-arms50, HOO, seed 0: no box",
    ]

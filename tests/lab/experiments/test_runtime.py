"""Run times: what is timed is the same decision, and all of it is written down."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from fakes import BowlReward, catalogue_of, seeds_of, vectors_of

from fastbandit.cli.main import run as run_cli
from fastbandit.errors import SettingError
from fastbandit.features.kinds import Dense
from fastbandit.score import Score
from fastbandit.search.exhaustive import Exhaustive
from fastbandit.types import Inputs
from lab.__main__ import cli
from lab.experiments import datasets, scaling
from lab.experiments.comparison import Result
from lab.experiments.datasets.synthetic import SyntheticRounds
from lab.experiments.environment import Tabled, as_raw
from lab.experiments.logged import LoggedData
from lab.experiments.report import load_results
from lab.experiments.results import read_results
from lab.experiments.runtime import (
    POLICIES,
    Plan,
    agents_for,
    measure,
    ratios_of,
    ratios_table,
)
from lab.experiments.timing import (
    OneAtATime,
    fitting_size,
    learning,
    one_at_a_time,
    over_and_over,
    requests_after,
    time_alternately,
    training_batches_for,
)

pytestmark = pytest.mark.slow

MEASURES = ("single", "request", "batch", "train")


def command(*args: object) -> int:
    """Run a command of `python -m lab experiment` in this process and return its exit status."""
    with pytest.raises(SystemExit) as ended:
        run_cli(cli, ["experiment", *map(str, args)], prog_name="lab")
    assert isinstance(ended.value.code, int)
    return ended.value.code


def runtime(*args: object, out: Path) -> int:
    few = ("--datasets", "h1", "--arms", 200, "--requests", 4, "--seconds", 0.05)
    return command("runtime", *few, "--batch-size", 5, "--out", out, *args)


# -- one arm at a time


class Counted:
    """A score's function that remembers how many points each call had."""

    def __init__(self, score: Score) -> None:
        self.score, self.calls = score, list[int]()

    def __call__(self, points: torch.Tensor) -> torch.Tensor:
        self.calls.append(points.shape[1])
        return self.score(points)


@pytest.fixture
def score() -> Score:
    return BowlReward(3).mean(torch.from_numpy(vectors_of(2, 3)))


def test_scores_and_slopes_are_the_same_one_at_a_time(score: Score) -> None:
    points = torch.from_numpy(vectors_of(10, 3)).view(2, 5, 3)
    slow = one_at_a_time(score)

    assert torch.allclose(slow(points), score(points))
    for mine, theirs in zip(slow.slope(points), score.slope(points), strict=True):
        assert torch.allclose(mine, theirs)


def test_a_search_scores_one_arm_at_a_time(score: Score) -> None:
    counted = Counted(score)
    arms = catalogue_of(vectors_of(30, 3))

    OneAtATime(Exhaustive()).best(
        Score(counted, score.contexts, score.noise), arms, count=1, seeds=seeds_of(2)
    )

    assert counted.calls == [1] * 30


@pytest.mark.usefixtures("little_training")
@pytest.mark.parametrize("policy", POLICIES)
def test_one_arm_at_a_time_is_the_same_decision_at_the_same_cost(policy: str) -> None:
    environment = SyntheticRounds("h1", arms=200)
    agent = agents_for(environment, Plan((policy,)))[policy]
    learning(agent, training_batches_for(environment, agent))(0)
    contexts, seeds = requests_after(environment, 3), seeds_of(3)
    slow = replace(agent.policy, search=OneAtATime(agent.policy.search))

    together = agent.policy.select(contexts, seeds=seeds)
    apart = slow.select(contexts, seeds=seeds)

    assert torch.allclose(apart.scores, together.scores, atol=1e-4)
    assert torch.equal(apart.evaluations, together.evaluations)
    assert torch.equal(apart.lookups, together.lookups)


# -- alternation


class Ticking:
    """A clock that moves only when a task takes time, and the order in which tasks ran."""

    def __init__(self) -> None:
        self.now, self.ran = 0.0, list[str]()

    def __call__(self) -> float:
        return self.now

    def task(self, name: str, seconds: float) -> Callable[[int], None]:
        def work(number: int) -> None:
            self.now += seconds
            self.ran.append(f"{name}{number}")

        return work


def test_tasks_are_timed_in_alternation_until_each_is_over() -> None:
    clock = Ticking()
    tasks = {"slow": clock.task("slow", 2.0), "quick": clock.task("quick", 0.25)}
    ended: list[str] = []

    taken = time_alternately(tasks, least=2, most=4, seconds=3.0, clock=clock, tick=ended.append)

    assert taken == {"slow": [2.0] * 2, "quick": [0.25] * 4}
    assert clock.ran[:4] == ["slow0", "quick0", "slow1", "quick1"]
    assert ended == ["slow", "quick"]


def test_a_task_has_its_fewest_rounds_however_long_they_take() -> None:
    clock = Ticking()

    taken = time_alternately(
        {"a": clock.task("a", 9.0)}, least=3, most=100, seconds=1.0, clock=clock
    )

    assert taken == {"a": [9.0] * 3}


@pytest.mark.parametrize(("takes", "often"), [(0.5, 4), (2.0, 1), (9.0, 1)])
def test_a_short_task_is_done_until_a_round_is_long_enough(takes: float, often: int) -> None:
    clock = Ticking()

    repeat, times = over_and_over(clock.task("a", takes), seconds=2.0, clock=clock)
    repeat(7)

    assert times == often
    assert clock.ran == ["a0", *["a7"] * often]


class Cramped:
    """An agent that has room for so many contexts."""

    def __init__(self, room: int) -> None:
        self.room = room

    def select(self, contexts: Any, *, seeds: Any) -> None:
        if len(contexts) > self.room:
            raise torch.cuda.OutOfMemoryError


@pytest.mark.parametrize(("room", "size"), [(99, 12), (7, 6), (1, 1)])
def test_a_batch_is_halved_until_there_is_room_for_it(room: int, size: int) -> None:
    contexts = Inputs(dense=np.zeros((12, 2), dtype=np.float32))

    assert fitting_size(Cramped(room), contexts, size=12) == size  # type: ignore[arg-type]


def test_no_room_for_one_context_is_a_lack_of_memory() -> None:
    contexts = Inputs(dense=np.zeros((12, 2), dtype=np.float32))

    with pytest.raises(MemoryError):
        fitting_size(Cramped(0), contexts, size=12)  # type: ignore[arg-type]


# -- what is learned and asked


def tabled(rounds: int) -> Tabled:
    rewards = np.eye(rounds, 4, dtype=np.float32)
    return Tabled("small", Dense(2), Inputs(dense=vectors_of(rounds, 2)), rewards)


def test_training_batches_are_played_evenly_in_the_first_rounds() -> None:
    environment = SyntheticRounds("h1", arms=20)
    agent = agents_for(environment, Plan(("Exhaust TS",)))["Exhaust TS"]

    first, second = training_batches_for(environment, agent)

    assert np.array_equal(second.contexts, environment.contexts(500, 500))
    assert np.allclose(first.rewards, environment.observed(0, first.arms))
    assert len(set(first.arms)) == 20


def test_requests_come_after_the_training_and_over_again_when_they_are_few() -> None:
    environment = tabled(9)

    contexts = requests_after(environment, 5).dense

    assert contexts is not None
    assert np.array_equal(contexts[:3], environment.contexts(6, 3))
    assert np.array_equal(contexts[3:], contexts[:2])


def test_too_few_rounds_are_refused() -> None:
    with pytest.raises(SettingError, match="at least 3 rounds: small has 2"):
        requests_after(tabled(2), 5)


def test_a_log_to_be_replayed_is_not_timed() -> None:
    log: Any = LoggedData(
        name="a log",
        context=Dense(2),
        contexts=Inputs(dense=np.ones((4, 2), dtype=np.float32)),
        size=2,
        chosen=np.array([0, 1, 0, 1]),
        rewards=np.array([0.0, 1.0, 1.0, 0.0]),
    )

    with pytest.raises(SettingError, match=r"Timing needs rewards of all arms.*mode=simulator"):
        measure(log, Plan())


@pytest.mark.usefixtures("little_training")
def test_policies_of_a_plan_are_timed_in_any_environment() -> None:
    plan = Plan(("GANBandit TS",), requests=2, seconds=0.0, batch_size=3, with_single=False)

    times = measure(tabled(30), plan)["GANBandit TS"]

    assert (times["arms"], times["batch_size"], times["requests"]) == (4, 3, 2)
    assert times["single"] is None
    assert all(times[name] > 0 for name in MEASURES[1:])


# -- the command


@pytest.mark.usefixtures("little_training")
def test_every_policy_has_a_file_with_all_that_was_measured(tmp_path: Path) -> None:
    assert runtime("--requests", 1, out=tmp_path) == 0

    results = read_results(tmp_path)
    assert {result["policy"] for result in results} == set(POLICIES)
    for result in results:
        assert (result["kind"], result["dataset"]) == ("runtime", "h1")
        assert result["options"] == {"arms": 200}
        assert (result["preset"], result["device"], result["arms"]) == ("default", "cpu", 200)
        assert (result["batch_size"], result["seed"]) == (5, 0)
        assert result["requests"] == 1
        assert all(result[name] > 0 for name in MEASURES)
        assert result["machine"].endswith(", one thread")
        assert {"version", "commit"} <= result.keys()
    assert load_results(tmp_path) == results


@pytest.mark.usefixtures("little_training")
def test_a_table_stands_beside_the_paper_and_ends_with_ratios(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert runtime("--policies", "Exhaust TS, GANBandit TS, FastBandit TS", out=tmp_path) == 0

    printed = capsys.readouterr().out
    assert "| h1 (arms 200) | Exhaust TS | 200 |" in printed
    assert "| 4.12 s |" in printed
    for words in ("Batch: Exhaust ÷ GANBandit", "Single: Exhaust ÷ FastBandit"):
        assert words in printed
    assert "Train: GANBandit ÷ Exhaust" in printed
    assert "3.45×" in printed


@pytest.mark.usefixtures("little_training")
def test_a_second_measurement_takes_the_place_of_the_first(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    runtime("--policies", "Exhaust TS", out=tmp_path)
    capsys.readouterr()
    assert runtime("--policies", "Exhaust TS", "--no-single", "--json", out=tmp_path) == 0

    output = json.loads(capsys.readouterr().out)
    (result,) = read_results(tmp_path)
    assert result["single"] is None
    assert output["times"][0].items() <= result.items()
    assert (output["ratios"], output["skipped"]) == ([], {})


@pytest.mark.usefixtures("little_training")
def test_a_dataset_without_data_is_left_out_with_a_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = ("--datasets", "bibtex,h3", "--policies", "Exhaust TS", "--data", tmp_path / "none")

    assert command("runtime", *options, "--requests", 1, "--no-single", "--out", tmp_path) == 0

    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("Left out: The dataset bibtex needs")
    assert [result["dataset"] for result in read_results(tmp_path)] == ["h3"]


def test_nothing_but_missing_data_exits_with_2(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = ("--datasets", "bibtex", "--arms", 9, "--data", tmp_path / "none", "--out", tmp_path)

    assert command("runtime", *options) == 2
    assert len(capsys.readouterr().err.splitlines()) == 1


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (("runtime", "--datasets", "h9"), "got 'h9'"),
        (("runtime", "--policies", "GANBandit T"), "Did you mean 'GANBandit TS'?"),
        (("runtime", "--policies", "Random"), "got 'Random'"),
        (("runtime", "--preset", "papr"), "got 'papr'"),
        (("runtime", "--datasets", "h1", "--device", "abacus"), "got 'abacus'"),
        (("scaling", "--policies", "Random"), "got 'Random'"),
        (("scaling", "--arms", "1000,many"), "got '1000,many'"),
        (("scaling", "--arms", "0"), "got '0'"),
        (("scaling", "--rounds", "none"), "--rounds needs"),
        (("scaling", "--rounds", "5", "--policies", "QGLOC"), "got 'QGLOC'"),
    ],
)
def test_what_is_asked_wrongly_is_one_line_and_exits_with_2(
    args: tuple[str, ...], words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command(*args, "--out", tmp_path) == 2

    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("Error: ")
    assert words in line


# -- ratios


def timed(policy: str, **changes: Any) -> Result:
    result = {"dataset": "h1", "options": {}, "policy": policy, "single": 6.0, "request": 1.0}
    return result | {"batch": 0.5, "train": 2.0, "arms": 9} | changes


def test_ratios_are_those_the_paper_claims() -> None:
    results = [
        timed("Exhaust TS"),
        timed("FastBandit TS", single=1.5),
        timed("GANBandit TS", batch=0.002, request=0.5, train=5.0),
    ]

    (row,) = ratios_table(results).rows

    assert row == ("h1", "TS", "250×", "8,537×", "2×", "4×", "3.2×", "2.5×", "3.45×")


def test_a_ratio_of_one_alone_is_not_known() -> None:
    (row,) = ratios_of([timed("Exhaust UCB", single=None), timed("GANBandit UCB")])

    assert (row["batch"], row["single"], row["train"]) == (1.0, None, 1.0)


# -- scaling


@pytest.mark.usefixtures("little_training")
def test_scaling_writes_times_and_q_at_each_number_of_arms(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scaling, "_PAIRS_IN_BATCH", 300)
    options = ("--arms", "200,50", "--policies", "GANBandit TS,Exhaust TS", "--batch-size", 6)

    assert command("scaling", *options, "--seconds", 0, "--out", tmp_path) == 0

    assert "| policy | N = 50 | N = 200 | slope | lowest q |" in capsys.readouterr().out
    exhaust, gan = load_results(tmp_path)
    assert (exhaust["policy"], gan["policy"]) == ("Exhaust TS", "GANBandit TS")
    for result in (exhaust, gan):
        assert (result["kind"], result["dataset"]) == ("scaling", "h2")
        assert result["options"] == {"dim": 4}
        assert result["arms"] == [50, 200]
        assert all(seconds > 0 for seconds in result["seconds"])
        assert result["audited"] == [50, 50]
        assert isinstance(result["slope"], float)
        assert result["bytes"][0] < result["bytes"][1]
    assert exhaust["quality"] == [1.0, 1.0]
    assert (exhaust["batch_size"], gan["batch_size"]) == ([6, 1], [6, 6])


@pytest.mark.usefixtures("little_training")
def test_a_linear_policy_with_an_index_is_timed_beside_and_written_into_a_page(
    tmp_path: Path,
) -> None:
    page = tmp_path / "page.md"
    marks = ("<!-- experiment scaling arms -->", "<!-- end of experiment scaling arms -->")
    page.write_text("\n".join(marks), encoding="utf-8")
    options = ("--arms", "50,100,200", "--policies", "QGLOC,Exhaust TS", "--batch-size", 6)

    assert command("scaling", *options, "--seconds", 0, "--out", tmp_path, "--doc", page) == 0

    text = page.read_text(encoding="utf-8")
    times, memory = text.split("Memory held:")
    assert "| QGLOC |" in times
    assert "| QGLOC |" in memory
    assert "load average" in text


@pytest.mark.usefixtures("little_training")
def test_catalogues_of_any_size_train_the_same() -> None:
    small, large = (datasets.load("h2", arms=arms) for arms in (20, 50))

    spots = list(scaling._spots_of([20, 50], Plan(("Exhaust TS",), batch_size=2), tick=print))

    assert np.array_equal(large.arms[:20], small.arms)
    one, two = (spot.agent._state.history for spot in spots)
    assert one is not None
    assert two is not None
    assert np.array_equal(one.rewards, two.rewards)
    assert np.array_equal(as_raw(one.arms), as_raw(two.arms))
    assert np.array_equal(as_raw(spots[0].contexts), as_raw(spots[1].contexts))

"""Tuning: better settings or the base's own, and the same end after an interruption."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from fastbandit import Bandit
from fastbandit.errors import MissingExtraError, SettingError
from fastbandit.features.kinds import Dense
from fastbandit.settings.files import Settings
from fastbandit.types import Audit, Inputs
from lab.experiments.datasets.synthetic import SyntheticRounds
from lab.experiments.logged import LoggedData
from lab.experiments.recipe import Recipe, recipe_for, write_recipe
from lab.experiments.tune import Tuned, tune, tune_command
from lab.experiments.tune_knobs import knobs_of
from lab.experiments.tune_stages import (
    Bench,
    Measured,
    explained_share,
    log_likelihood,
    predictions,
)

LITTLE = Recipe().merged(
    {
        "network": {"embedding": 4, "hidden": (4,)},
        "training.reward": {"iterations": 10, "batch": 32},
        "training.generator": {"iterations": 10, "batch": 32, "targets": 64, "sample": 32},
    }
)
SMALL = ("--trials", "2", "--rounds", "200", "--batch", "50", "-O", "arms=200")


def environment() -> Any:
    return SyntheticRounds("h1", 3, 200, seed=0)


def bench(
    policy: str = "GANBandit TS", *, evaluations: int | None = None, rounds: int = 200
) -> Bench:
    return Bench(
        environment(),
        policy,
        rounds=rounds,
        batch=50,
        evaluations=evaluations,
        seed=0,
        device="cpu",
    )


def tuned(policy: str = "GANBandit TS", **changes: Any) -> Tuned:
    settings: dict[str, Any] = {"base": LITTLE, "trials": 2, "rounds": 200, "batch": 50}
    return tune(environment(), policy, **{**settings, **changes})


def width_of(settings: Recipe) -> float:
    return float(settings.of("exploration.ucb").get("width", 0.3))


@pytest.fixture
def wide_is_better(monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[float]]:
    """Let stage 2 and the whole be judged by formulas of the width; return the widths asked."""

    def judge(fresh: float = 1.0, whole: float = 1.0, stop_at: int = 999) -> list[float]:
        asked: list[float] = []

        def shared(self: Bench, settings: Recipe, split: int) -> Measured:
            if len(asked) == stop_at:
                raise KeyboardInterrupt
            asked.append(width_of(settings))
            value = (fresh if split else 1.0) * asked[-1]
            return Measured(value, "width", value)

        def played(self: Bench, settings: Recipe, split: int) -> Measured:
            return Measured(whole * width_of(settings), "width", width_of(settings))

        monkeypatch.setattr(Bench, "shared", shared)
        monkeypatch.setattr(Bench, "played", played)
        return asked

    return judge


def widths(**changes: Any) -> Tuned:
    return tuned("FastBandit UCB", stages=(2,), **{"trials": 8, **changes})


def test_all_four_stages_run_and_the_whole_is_never_worse() -> None:
    found = tuned()

    assert [step.stage for step in found.steps] == [1, 2, 3, 4]
    assert all(step.trials == 2 for step in found.steps)
    assert found.is_finished
    if found.is_better:
        assert found.before is not None
        assert found.after is not None
        assert found.after.value >= found.before.value
    else:
        assert found.settings == LITTLE
    json.dumps(found.to_json(), allow_nan=False)


def test_a_better_value_is_found_and_accepted(wide_is_better: Callable[..., list[float]]) -> None:
    asked = wide_is_better()

    found = widths()

    assert width_of(found.settings) == max(asked) > 0.3
    assert found.steps[0].before.value == 0.3
    assert found.steps[0].was["exploration.ucb"] == {"width": 0.3}
    assert found.settings.of("network") == LITTLE.of("network")


def test_the_first_trial_is_where_the_stage_stands(
    wide_is_better: Callable[..., list[float]],
) -> None:
    asked = wide_is_better()

    widths(trials=3)

    assert asked[0] == 0.3
    assert len(set(asked[:3])) == 3


def test_a_winner_that_is_worse_on_fresh_splits_is_not_accepted(
    wide_is_better: Callable[..., list[float]],
) -> None:
    wide_is_better(fresh=-1.0)

    found = widths()

    assert not found.steps[0].is_accepted
    assert found.settings == LITTLE
    assert found.before is None


def test_settings_that_earn_less_than_the_base_are_not_given(
    wide_is_better: Callable[..., list[float]],
) -> None:
    wide_is_better(whole=-1.0)

    found = widths()

    assert found.steps[0].is_accepted
    assert not found.is_better
    assert found.settings == LITTLE


@pytest.mark.parametrize("stop_at", [0, 3, 8, 9])
def test_tuning_that_was_interrupted_goes_on_to_the_same_end(
    wide_is_better: Callable[..., list[float]], tmp_path: Path, stop_at: int
) -> None:
    wide_is_better()
    whole = widths()
    wide_is_better(stop_at=stop_at)
    with pytest.raises(KeyboardInterrupt):
        widths(journal=tmp_path / "journal")

    asked = wide_is_better()
    again = widths(journal=tmp_path / "journal")

    assert again == whole
    assert len(asked) == 12 - min(stop_at, 8)  # trials, then two splits before and after


def test_what_is_done_is_not_done_again(
    wide_is_better: Callable[..., list[float]], tmp_path: Path
) -> None:
    wide_is_better()
    first = widths(journal=tmp_path / "journal")

    asked = wide_is_better()
    again = widths(journal=tmp_path / "journal")

    assert asked == []
    assert again == first


def test_more_trials_go_on_from_those_there_are(
    wide_is_better: Callable[..., list[float]], tmp_path: Path
) -> None:
    wide_is_better()
    widths(trials=4, journal=tmp_path / "journal")

    asked = wide_is_better()
    longer = widths(trials=8, journal=tmp_path / "journal")

    assert len(asked) == 8  # four trials, and the judging
    assert longer == widths()


def test_another_question_has_trials_of_its_own(
    wide_is_better: Callable[..., list[float]], tmp_path: Path
) -> None:
    wide_is_better()
    widths(journal=tmp_path / "journal")

    asked = wide_is_better()
    widths(journal=tmp_path / "journal", about="noise=2")

    assert len(asked) == 12


def test_no_trial_begins_after_the_time_is_over() -> None:
    found = tuned(seconds=-1.0)

    assert found.steps == ()
    assert not found.is_finished
    assert found.settings == LITTLE


def test_what_comes_to_no_number_is_not_chosen(
    wide_is_better: Callable[..., list[float]],
) -> None:
    wide_is_better()
    original = Bench.shared

    def sometimes(self: Bench, settings: Recipe, split: int) -> Measured:
        found = original(self, settings, split)
        return found if width_of(settings) == 0.3 else Measured(math.nan, "width", math.nan)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Bench, "shared", sometimes)

        assert widths().settings == LITTLE


@pytest.mark.parametrize(
    "policy",
    [
        "GANBandit TS",
        "FastBandit UCB",
        "Exhaust TS",
        "NeuralLinear",
        "Bootstrapped heads",
        "Variational layer",
    ],
)
@pytest.mark.parametrize("base", ["default", "paper"])
@pytest.mark.parametrize("stage", [1, 2, 3, 4])
def test_every_range_holds_what_there_is(policy: str, base: str, stage: int) -> None:
    knobs = knobs_of(stage, bench(policy).plan(recipe_for(base)))

    assert bool(knobs) == (stage < 3 or "Bandit" in policy)
    for knob in knobs:
        if knob.choices:
            assert knob.current in knob.choices
        else:
            assert isinstance(knob.current, int | float)
            assert knob.low <= knob.current <= knob.high
        Settings(sections={knob.section: {knob.field: knob.current}})


@pytest.mark.parametrize(
    ("policy", "changed_knobs"),
    [
        ("Exhaust TS", ["network.dropout_penalty"]),
        ("NeuralLinear", ["posterior.last-layer.prior_precision"]),
        (
            "Bootstrapped heads",
            ["posterior.bootstrap.prior_precision", "posterior.bootstrap.heads"],
        ),
        ("Variational layer", ["posterior.variational.prior_precision"]),
    ],
)
def test_the_second_stage_changes_the_posterior(policy: str, changed_knobs: list[str]) -> None:
    names = [knob.name for knob in knobs_of(2, bench(policy).plan(Recipe()))]

    assert names == ["exploration.ts.scale", *changed_knobs]


@pytest.mark.parametrize(
    ("base", "expected"),
    [("default", ["partitions", "lookups", "hops", "beam"]), ("paper", ["neighbours"])],
)
@pytest.mark.parametrize("policy", ["FastBandit TS", "GANBandit TS"])
def test_the_last_stage_changes_what_the_search_looks_up_by(
    policy: str, base: str, expected: list[str]
) -> None:
    fields = [knob.field for knob in knobs_of(4, bench(policy).plan(recipe_for(base)))]

    assert fields == expected


@pytest.mark.parametrize("policy", ["FastBandit TS", "GANBandit TS"])
def test_the_printed_recipe_is_tuned_and_written_with_its_base(policy: str, tmp_path: Path) -> None:
    base = replace(LITTLE, base="paper")

    found = tuned(policy, base=base, stages=(3, 4))

    write_recipe(tmp_path / "tuned.toml", found.settings)
    assert [step.stage for step in found.steps] == [3, 4]
    assert found.to_json()["base"] == "paper"
    assert recipe_for(tmp_path / "tuned.toml") == found.settings


@pytest.mark.parametrize(("evaluations", "is_within"), [(128, True), (129, False)])
def test_more_evaluations_than_the_budget_are_worse_than_any_quality(
    monkeypatch: pytest.MonkeyPatch, evaluations: float, is_within: bool
) -> None:
    audit = Audit(0.9, np.array([0.9], dtype=np.float32), evaluations, 2.0, 1)
    monkeypatch.setattr(Bench, "_audited", lambda self, settings, split: audit)

    value = bench(evaluations=128).searched(LITTLE, 0).value

    assert value == pytest.approx(0.9) if is_within else value < -1


def test_a_look_up_costs_a_little_quality(monkeypatch: pytest.MonkeyPatch) -> None:
    audit = Audit(0.9, np.array([0.9], dtype=np.float32), 10.0, 2.0, 1)
    monkeypatch.setattr(Bench, "_audited", lambda self, settings, split: audit)

    assert bench().landed(LITTLE, 0).value == pytest.approx(0.898)


@pytest.mark.parametrize(
    ("rounds", "splits"), [(101, [(100, 1), (100, 1)]), (70, [(50, 10), (60, 10)])]
)
def test_searches_are_audited_on_rounds_that_were_not_learned(
    monkeypatch: pytest.MonkeyPatch, rounds: int, splits: list[tuple[int, int]]
) -> None:
    seen: list[Any] = []

    def spy(policy: Any, contexts: Any, *, seeds: Any) -> Audit:
        seen.append(contexts.dense)
        return Audit(1.0, np.ones(1, dtype=np.float32), 1.0, 1.0, 1)

    monkeypatch.setattr("lab.experiments.tune_stages.audit", spy)
    mine = bench("FastBandit TS", rounds=rounds)
    for split in (0, 1):
        mine.searched(LITTLE, split)

    for contexts, (first, count) in zip(seen, splits, strict=True):
        assert np.array_equal(contexts, environment().contexts(first, count))


def test_without_a_budget_a_search_may_cost_what_the_base_costs() -> None:
    mine = bench("FastBandit TS")

    mine.allow(LITTLE.merged({"search.ascent": {"starts": 1}}), LITTLE)

    assert mine.evaluations is not None
    assert mine.evaluations > 10 * 2 * 30  # ten starts of thirty steps


def test_predictions_are_the_rewards_that_a_bandit_expects() -> None:
    bandit = bench().bandit(LITTLE)
    contexts = environment().contexts(0, 40)
    decision = bandit.select(contexts)
    bandit.update(contexts=contexts, arms=decision.arms, rewards=np.arange(40.0))

    greedy = bandit.select(contexts, explore=False)
    predicted = predictions(bandit, contexts, greedy.rows[:, 0])

    assert np.allclose(predicted, greedy.scores[:, 0], atol=1e-3)


def test_scores_of_predictions_have_the_values_worked_out_by_hand() -> None:
    halves, truth = np.full(4, 0.5), np.array([0.0, 1.0, 1.0, 0.0])

    assert log_likelihood(halves, truth) == pytest.approx(math.log(0.5))
    assert explained_share(halves, truth) == pytest.approx(0.0)
    assert explained_share(truth, truth) == 1.0
    assert explained_share(np.full(4, 3.0), np.full(4, 1.0)) == -4.0


def test_a_journal_that_is_none_is_refused(tmp_path: Path) -> None:
    (tmp_path / "journal").write_text("not a journal\nat all\n")

    with pytest.raises(SettingError, match="Give another --journal"):
        tuned(journal=tmp_path / "journal")


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"policy": "LinearTS"}, "Only neural policies have settings to tune: got 'LinearTS'"),
        ({"stages": (1, 5)}, r"some of 1, 2, 3 and 4: got \[1, 5\]"),
        ({"stages": ()}, r"got \[\]"),
        ({"trials": 1}, "at least two trials"),
        ({"rounds": 60}, "at least two batches"),
        ({"base": "defalt"}, "Did you mean 'default'"),
        ({"journal": Path("no/such/folder/journal")}, "Give another --journal"),
    ],
)
def test_what_cannot_be_tuned_is_refused(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(SettingError, match=words):
        tuned(**changes)


def test_a_log_to_be_replayed_cannot_be_tuned_on() -> None:
    log: Any = LoggedData(
        name="a log",
        context=Dense(2),
        contexts=Inputs(dense=np.ones((4, 2), dtype=np.float32)),
        size=2,
        chosen=np.array([0, 1, 0, 1]),
        rewards=np.array([0.0, 1.0, 1.0, 0.0]),
    )

    with pytest.raises(SettingError, match=r"Tuning needs rewards of all arms.*mode=simulator"):
        tune(log, base=LITTLE)


def test_without_optuna_tuning_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "optuna", None)

    with pytest.raises(MissingExtraError, match=r"\.\[lab\]"):
        tuned()


def asked(*args: str) -> Any:
    """Run the command in this process."""
    return CliRunner().invoke(tune_command, args)


def test_the_command_writes_settings_that_a_bandit_takes(
    wide_is_better: Callable[..., list[float]], tmp_path: Path
) -> None:
    wide_is_better()
    out = tmp_path / "tuned.toml"

    done = asked("h1", "--policy", "Exhaust UCB", "--stages", "2", *SMALL, "-o", str(out))

    assert done.exit_code == 0, done.output
    assert "2 uncertainty" in done.output
    bandit = Bandit(arms=environment().arms, context=3, exploration="ucb", preset=out)
    width = width_of(recipe_for(out))
    assert bandit.blueprint.exploration.width == width  # type: ignore[attr-defined]
    assert (tmp_path / "tuned.journal").exists()


def test_the_command_prints_json_and_falls_back_to_the_base(
    wide_is_better: Callable[..., list[float]], tmp_path: Path
) -> None:
    wide_is_better(whole=-1.0)
    base, out = tmp_path / "base.toml", tmp_path / "tuned.toml"
    write_recipe(base, LITTLE)
    options = ("--stages", "2", "--base", str(base), "-o", str(out), "--json", "--trials", "8")

    done = asked("h1", "--policy", "Exhaust UCB", *SMALL, *options)

    output = json.loads(done.output)
    assert output["steps"][0]["is_accepted"]
    assert not output["is_better"]
    assert recipe_for(out) == LITTLE
    assert "which is worse: these are the base's" in out.read_text()


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (("h1", "-O", "arms"), "the form name=value"),
        (("h1", "-O", "speed=3"), "takes the options dim, arms, noise"),
        (("h9",), "The dataset needs to be one of"),
        (("h1", "--stages", "one"), "numbers like 1,2,3,4"),
        (("h1", "-o", "no/such/tuned.toml"), "need a folder"),
    ],
)
def test_what_the_command_cannot_read_is_named(args: tuple[str, ...], words: str) -> None:
    done = asked(*args)

    assert isinstance(done.exception, SettingError)
    assert words in str(done.exception)

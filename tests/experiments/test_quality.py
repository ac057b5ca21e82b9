"""The quality suite in small: real training, real searches, judged by their gap."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from fastbandit.errors import SettingError
from fastbandit.experiments.policies import NAMES, player_for
from fastbandit.experiments.quality import (
    _MARKS,
    Job,
    between_marks,
    jobs_of,
    page,
    quality_command,
    run_job,
    summary,
)
from fastbandit.experiments.run import run
from fastbandit.experiments.synthetic import Synthetic
from fastbandit.training.fit_generator import GeneratorFit
from fastbandit.training.fit_reward import RewardFit
from fastbandit.training.update import Training


def job(policy: str, *, preset: str = "default", seed: int = 0, rounds: int = 60) -> Job:
    return Job("h2", 4, 300, rounds, 30, policy, preset, seed)


@pytest.mark.parametrize("dim", [4, 16])
@pytest.mark.parametrize("policy", ["GANBandit TS", "GANBandit UCB"])
def test_the_generator_comes_close_to_the_best_arm_at_small_cost(policy: str, dim: int) -> None:
    world = Synthetic("h3", dim, 5_000, seed=1)
    player = player_for(policy, world, preset="default", seed=1)

    played = run(world, player, rounds=600, batch=300, audits=40)

    assert played.quality is not None
    assert played.quality > 0.97
    assert played.lookups <= 2
    assert played.evaluations <= 128


@pytest.mark.parametrize("policy", ["FastBandit TS", "FastBandit UCB"])
def test_gradient_ascent_comes_close_to_the_best_arm(policy: str) -> None:
    world = Synthetic("h1", 4, 5_000, seed=1)
    player = player_for(policy, world, preset="default", seed=1)

    played = run(world, player, rounds=600, batch=300, audits=40)

    assert played.quality is not None
    assert played.quality > 0.97


def test_thompson_sampling_learns_what_linear_thompson_sampling_cannot() -> None:
    world = Synthetic("h2", 4, 1_000, seed=0)
    shares = {}
    for name in ("LinearTS", "GANBandit TS"):
        player = player_for(name, world, preset="default", seed=0)
        shares[name] = run(world, player, rounds=1_500, batch=300, audits=0).share

    assert shares["GANBandit TS"] > shares["LinearTS"] + 0.2


def test_rewards_are_the_environments_own() -> None:
    world = Synthetic("h1", 4, 200, seed=0)

    played = run(world, player_for("Random", world, preset="default", seed=0), rounds=90, batch=30)

    assert len(played.rewards) == len(played.best) == 90
    assert (played.rewards <= played.best + 1e-9).all()
    assert played.quality is None


@pytest.mark.parametrize("policy", NAMES)
def test_every_policy_runs_with_the_printed_settings(
    policy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    short = Training(
        RewardFit(iterations=20), GeneratorFit(iterations=20, batch=16, target="ascent")
    )
    monkeypatch.setattr("fastbandit.presets._paper_training", lambda doubt: short)
    world = Synthetic("h1", 4, 200, seed=0)
    player = player_for(policy, world, preset="paper", seed=0)

    played = run(world, player, rounds=60, batch=30, audits=10)

    assert len(played.rewards) == 60


def test_a_run_that_exists_is_not_run_again(tmp_path: Path) -> None:
    first = run_job(job("Random"), tmp_path)
    path = job("Random").path(tmp_path)
    path.write_text(json.dumps({**first, "share": 0.125}))

    assert run_job(job("Random"), tmp_path)["share"] == 0.125


def test_an_interrupted_run_leaves_no_result(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*args: object, **kwargs: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("fastbandit.experiments.quality.run", interrupt)
    with pytest.raises(KeyboardInterrupt):
        run_job(job("Random"), tmp_path)

    assert not list(tmp_path.rglob("*.json"))


def test_the_summary_compares_with_the_exhaustive_search(tmp_path: Path) -> None:
    results = [run_job(job("Random", seed=seed), tmp_path) for seed in range(2)]
    exhaust = {**results[0], "policy": "Exhaust TS", "share": 0.8}
    gan = {**results[0], "policy": "GANBandit TS", "share": 0.6, "quality": 0.9}

    rows = {row["policy"]: row for row in summary([*results, exhaust, gan])}

    assert rows["GANBandit TS"]["of_exhaust"] == pytest.approx(0.75)
    assert rows["Random"]["seeds"] == 2
    assert rows["Random"]["of_exhaust"] is None


def test_the_page_says_where_it_comes_from(tmp_path: Path) -> None:
    text = page([run_job(job("Random"), tmp_path)])

    assert "fastbandit experiment quality --doc" in text
    assert "| default | 4 | h2 | Random | 1 |" in text


def test_fresh_results_replace_old_ones_between_the_marks() -> None:
    text = f"before\n{_MARKS[0]}\nold\n{_MARKS[1]}\nafter\n"

    fresh = between_marks(text, "new")

    assert fresh == f"before\n{_MARKS[0]}\nnew\n{_MARKS[1]}\nafter\n"
    with pytest.raises(SettingError, match="in this order"):
        between_marks("no marks", "new")


def test_presets_change_neural_policies_alone() -> None:
    jobs = jobs_of(
        functions=["h1"],
        dims=[4],
        policies=["Random", "Exhaust TS"],
        presets=["default", "paper"],
        seeds=1,
        arms=10,
        rounds=4,
        batch=2,
    )

    assert sorted((j.policy, j.preset) for j in jobs) == [
        ("Exhaust TS", "default"),
        ("Exhaust TS", "paper"),
        ("Random", "default"),
    ]


def test_the_command_prints_json(tmp_path: Path) -> None:
    words = "--functions h1 --policies Random --seeds 1 --arms 50 --rounds 20 --batch 10 --jobs 1"

    ran = CliRunner().invoke(
        quality_command, [*words.split(), "--out", str(tmp_path), "--json"], catch_exceptions=False
    )

    assert json.loads(ran.stdout)["summary"][0]["policy"] == "Random"


@pytest.mark.parametrize("words", [["--policies", "GANBandits TS"], ["--dims", "four"]])
def test_an_unknown_name_is_named(words: list[str], tmp_path: Path) -> None:
    with pytest.raises(SettingError, match=r"GANBandits TS|four"):
        CliRunner().invoke(
            quality_command, [*words, "--out", str(tmp_path)], catch_exceptions=False
        )

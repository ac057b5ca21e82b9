"""Evaluations tell what a policy would earn, and whether to believe it."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from little_log import uniform_log

from fastbandit.cli.evaluate import command as evaluate_command
from fastbandit.errors import DataError, FastbanditError, SettingError
from fastbandit.evaluation import SparsePolicy, evaluate
from fastbandit.evaluation.diagnostics import diagnose
from tests.serving.little_service import Caller, begin, run

CSV = "x_0,arm,reward,propensity\n" + "".join(
    f"{place % 3},{place % 2},{place % 2},0.5\n" for place in range(40)
)


def asked(*args: str) -> str:
    """Run the command; give what it prints."""
    done = CliRunner().invoke(evaluate_command, args)
    if isinstance(done.exception, FastbanditError):
        raise done.exception
    assert done.exit_code == 0, done.output
    return done.output


# -- what is told


def test_the_best_arm_is_worth_what_it_earns() -> None:
    log = uniform_log(4_000)

    found = evaluate(log, SparsePolicy.fixed(log, 3))

    for name in ("replay", "ips", "snips", "dm", "dr", "switch"):
        assert found[name].value == pytest.approx(0.9, abs=0.1)


def test_an_interval_lies_around_its_estimate() -> None:
    log = uniform_log(2_000)

    found = evaluate(log, SparsePolicy.fixed(log, 3))

    assert all(one.low < one.value < one.high for one in found.estimates)


def test_few_matches_are_told_in_words() -> None:
    log = uniform_log(200)

    found = evaluate(log, SparsePolicy.fixed(log, 3), estimators=["ips"])

    count = int((log.chosen == 3).sum())
    assert f"effective sample size {count} of 200: do not trust this" in found.words
    assert not found.diagnostics.is_trusted


def test_the_effective_size_is_the_one_of_its_formula() -> None:
    found = diagnose(np.array([1.0, 3.2, 2.5, 2.0]))

    assert found.effective_size == pytest.approx(8.7**2 / 21.49, abs=1e-9)
    assert found.mean_weight == pytest.approx(8.7 / 4, abs=1e-9)
    assert found.largest_weight == 3.2
    assert found.match_share == 1.0


def test_weights_whose_mean_is_far_from_1_are_told() -> None:
    words = diagnose(np.full(1_000, 0.5)).words

    assert any("should be near 1: the policy takes arms that the log hardly" in w for w in words)


def test_wrong_propensities_are_told_before_anything_else() -> None:
    log = uniform_log(propensities=np.full(400, 0.01))

    words = evaluate(log, "uniform").words

    assert any("12.500 ± 0.000, but it should be near 1: the propensities are" in w for w in words)
    assert any("mend the propensities" in said for said in words)


def test_noisy_weights_are_told() -> None:
    weights = np.zeros(1_000)
    weights[0] = 3_000.0

    assert any("too noisy to tell" in said for said in diagnose(weights).words)


def test_replay_on_an_uneven_log_is_warned_of() -> None:
    log = uniform_log(propensities=np.tile([0.1, 0.2], 200))

    assert any("replay supposes" in said for said in evaluate(log, "uniform").words)


def test_an_evaluation_reads_as_a_table() -> None:
    text = str(evaluate(uniform_log(), "uniform"))

    assert text.splitlines()[0].split()[:4] == ["estimator", "estimate", "low", "high"]
    assert "Doubly robust" in text


def test_an_evaluation_is_json_without_nan() -> None:
    log = uniform_log(chosen=np.zeros(400, dtype=int))

    told = evaluate(log, SparsePolicy.fixed(log, 3)).to_json()

    assert json.loads(json.dumps(told, allow_nan=False))["estimates"][0]["value"] is None


def test_weights_of_clusters_that_are_off_are_told() -> None:
    rng = np.random.default_rng(0)
    chosen = rng.integers(0, 8, 400)  # the policy follows the log, which no context explains
    log = uniform_log(chosen=chosen, propensities=rng.uniform(0.1, 0.2, 400))
    policy = SparsePolicy(chosen, np.ones(400), arms=8)

    words = evaluate(log, policy, estimators=["mips"], clusters=np.arange(8) // 4).words

    assert any("do not trust MIPS: the mean weight of clusters is" in said for said in words)


def test_mips_is_left_out_where_arms_have_no_vectors() -> None:
    names = [one.name for one in evaluate(uniform_log(), "uniform").estimates]

    assert "mips" not in names


# -- made-up logs


def test_mips_needs_fewer_rounds_where_arms_are_many() -> None:
    rng = np.random.default_rng(0)
    chosen = rng.integers(0, 500, 2_000)
    rewards = rng.random(2_000) < np.where(chosen % 2, 0.8, 0.1)
    log = uniform_log(2_000, arms=500, chosen=chosen, rewards=rewards)

    found = evaluate(
        log, SparsePolicy.fixed(log, 7), estimators=["ips", "mips"], clusters=np.arange(500) % 2
    )

    assert found["mips"].value == pytest.approx(0.8, abs=0.05)
    assert found["mips"].high - found["mips"].low < found["ips"].high - found["ips"].low


# -- the command


def test_the_command_prints_a_table_and_words(tmp_path: Path) -> None:
    (tmp_path / "log.csv").write_text(CSV)

    said = asked("--log", str(tmp_path / "log.csv"), "--policy", "arm:1")

    assert "SNIPS" in said
    assert "- effective sample size 20 of 40: do not trust this" in said


def test_the_command_prints_json(tmp_path: Path) -> None:
    (tmp_path / "log.csv").write_text(CSV)

    said = asked(
        "--log", str(tmp_path / "log.csv"), "--policy", "arm:1", "--estimator", "snips", "--json"
    )

    assert json.loads(said)["estimates"][0]["value"] == 1.0


def test_the_command_needs_a_log_and_a_policy() -> None:
    with pytest.raises(SettingError, match="got --log None, --config None and"):
        asked("--policy", "uniform")


def test_a_policy_that_is_not_there_is_named(tmp_path: Path) -> None:
    (tmp_path / "log.csv").write_text(CSV)

    with pytest.raises(DataError, match="got 'nowhere', and there is no such folder"):
        asked("--log", str(tmp_path / "log.csv"), "--policy", "nowhere")


@pytest.mark.usefixtures("little_training")
@pytest.mark.parametrize("is_frozen", [True, False])
def test_a_saved_bandit_is_a_policy(tmp_path: Path, is_frozen: bool) -> None:
    from fastbandit import Bandit

    (tmp_path / "log.csv").write_text(CSV)
    bandit = Bandit(arms=np.eye(2), context=1)
    bandit.update(contexts=np.zeros((4, 1)), arms=[0, 1, 0, 1], rewards=[0, 1, 0, 1])
    (bandit.freeze() if is_frozen else bandit).save(tmp_path / "saved")

    said = asked(
        "--log", str(tmp_path / "log.csv"), "--policy", str(tmp_path / "saved"), "--draws", "2"
    )

    assert "40 rounds, 2 arms" in said


def test_a_service_is_judged_by_its_own_folder(tmp_path: Path) -> None:
    config = begin(tmp_path)

    async def story(ask: Caller) -> None:
        for number in range(12):
            made = await ask.select(propensity=True)
            told = {"decision": made["decision"], "value": float(number % 2)}
            await ask("POST", "/v1/reward", told)

    run(config, story)

    said = asked("--log", str(tmp_path), "--policy", str(tmp_path), "--estimator", "ips")

    assert "12 rounds, 12 arms" in said
    assert "mean weight 1.000 ± 0.000, near 1 as it should be" in said


def test_a_service_without_a_snapshot_is_no_policy(tmp_path: Path) -> None:
    (tmp_path / "log.csv").write_text(CSV)
    (tmp_path / "snapshots").mkdir()

    with pytest.raises(DataError, match=r"needs a snapshot: .* has none yet"):
        asked("--log", str(tmp_path / "log.csv"), "--policy", str(tmp_path))

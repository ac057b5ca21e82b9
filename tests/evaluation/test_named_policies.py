"""Policies that a command names: saved bandits, services, arms."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from fastbandit import Bandit, FrozenBandit
from fastbandit.cli.evaluate import command as evaluate_command
from fastbandit.errors import DataError, FastbanditError
from fastbandit.evaluation import LoggedRounds
from fastbandit.evaluation.named_policies import with_arms_of
from tests.serving.little_service import Caller, begin, run

CSV = "x_0,arm,reward,propensity\n" + "".join(
    f"{place % 3},{place % 2},{place % 2},0.5\n" for place in range(40)
)


def printed(*args: str) -> str:
    """Run the command; return what it prints."""
    done = CliRunner().invoke(evaluate_command, args)
    if isinstance(done.exception, FastbanditError):
        raise done.exception
    assert done.exit_code == 0, done.output
    return done.output


def test_a_policy_that_is_not_there_is_named(tmp_path: Path) -> None:
    (tmp_path / "log.csv").write_text(CSV)

    with pytest.raises(DataError, match="got 'nowhere', and there is no such folder"):
        printed("--log", str(tmp_path / "log.csv"), "--policy", "nowhere")


@pytest.mark.usefixtures("little_training")
@pytest.mark.parametrize("is_frozen", [True, False])
def test_a_saved_bandit_is_a_policy(tmp_path: Path, is_frozen: bool) -> None:
    (tmp_path / "log.csv").write_text(CSV)
    bandit = Bandit(arms=np.eye(2), context=1)
    bandit.update(contexts=np.zeros((4, 1)), arms=[0, 1, 0, 1], rewards=[0, 1, 0, 1])
    (bandit.freeze() if is_frozen else bandit).save(tmp_path / "saved")

    said = printed(
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

    said = printed("--log", str(tmp_path), "--policy", str(tmp_path), "--estimator", "ips")

    assert "12 rounds, 12 arms" in said
    assert "mean weight 1.000 ± 0.000, near 1 as it should be" in said


def test_a_service_without_a_snapshot_is_no_policy(tmp_path: Path) -> None:
    (tmp_path / "log.csv").write_text(CSV)
    (tmp_path / "snapshots").mkdir()

    with pytest.raises(DataError, match=r"needs a snapshot: .* has none yet"):
        printed("--log", str(tmp_path / "log.csv"), "--policy", str(tmp_path))


# -- the arms of a frozen bandit

IDS = ["a", "b", "c", "d"]


def frozen(**changes: Any) -> FrozenBandit:
    settings = {"arms": np.eye(4), "ids": IDS, "context": 1, **changes}
    return Bandit(**settings).freeze()


def log(ids: list[str], **changes: Any) -> LoggedRounds:
    return LoggedRounds(np.zeros((2, 1)), [0, 1], [0.0, 1.0], [0.5, 0.5], ids=ids, **changes)


def test_rounds_are_put_among_all_arms_of_the_bandit() -> None:
    found = with_arms_of(log(["c", "a"]), frozen())

    assert list(found.ids or ()) == IDS
    assert found.chosen.tolist() == [2, 0]
    assert len(found.vectors) == 4
    assert "those of the snapshot" in found.notes[-1]


def test_what_describes_an_arm_goes_with_its_id() -> None:
    bandit = frozen()
    live = bandit.parts[1]
    bandit.discard_arms(["b"])

    found = with_arms_of(log(["d", "a"]), bandit)

    described = dict(zip(found.ids or (), found.vectors.tolist(), strict=True))
    assert described == {id: live.points_of(live.ids.rows([id]))[0].tolist() for id in "acd"}


@pytest.mark.parametrize(
    ("rounds", "changes"),
    [
        (log(["a", "gone"]), {}),
        (log(["a", "b"]), {"arms": None}),
        (log(["a", "b"], vectors=np.eye(2)), {}),
    ],
)
def test_rounds_stay_as_they_are_where_the_arms_do_not_fit(
    rounds: LoggedRounds, changes: dict[str, Any]
) -> None:
    assert with_arms_of(rounds, frozen(**changes)) is rounds

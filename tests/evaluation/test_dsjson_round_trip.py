"""What a policy would have earned is the same from a service's folder and from its DSJSON."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest

from fastbandit.adapters.action_logs import read_action_log
from fastbandit.cli.action_learning import ActionDecisions
from fastbandit.evaluation.run import evaluate
from fastbandit.evaluation.sparse_policy import SparsePolicy
from fastbandit.serving.personalizer.evaluations import evaluation_of, judged
from fastbandit.serving.personalizer.schemas import EvaluationContract
from fastbandit.storage.data_folder import LOG_FILE
from fastbandit.storage.events import Arm, DecisionMade, RewardCame
from fastbandit.storage.exports import export
from fastbandit.storage.joined_rows import Bounds, joined_rows
from fastbandit.storage.log_reader import one_moment_of
from fastbandit.storage.sqlite_log import SqliteLog

IDS = ("sea", "sky", "wood", "town")
EVER = EvaluationContract(
    "ever", datetime(2020, 1, 1, tzinfo=UTC), datetime(2100, 1, 1, tzinfo=UTC)
)
Shares = Callable[[Sequence[str]], list[float]]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A service's folder with decisions among two to four arms, which came with the requests."""
    log, rng = SqliteLog(tmp_path / LOG_FILE), np.random.default_rng(0)
    for n in range(200):
        ids = rng.permutation(IDS)[: 2 + n % 3].tolist()
        made = DecisionMade(
            f"d{n}",
            {"user": {"age": 20 + n % 30}},
            [str(rng.choice(ids))],
            [0.1],
            *(1, 0, 0, 10**9),
            propensities=[float(rng.uniform(0.05, 0.95))],
            eligible=ids,
            offered=[Arm(id, {"id": id, "about": {"topic": id, "length": n}}) for id in ids],
        )
        log.append([made, RewardCame(f"d{n}", float(rng.normal()))])
    log.close()
    return tmp_path


def uniform(ids: Sequence[str]) -> list[float]:
    return [1.0 / len(ids)] * len(ids)


def sea_first(ids: Sequence[str]) -> list[float]:
    """Return a policy that takes one arm wherever it is offered."""
    return [float(id == "sea") for id in ids] if "sea" in ids else uniform(ids)


def of_the_folder(folder: Path, shares: Shares) -> tuple[float, float]:
    """Return IPS and SNIPS as the log has it, by hand."""
    with one_moment_of(folder / LOG_FILE) as log:
        rows = [row for batch in joined_rows(log, Bounds()) for row in batch]
    target = [shares(row.eligible)[row.eligible.index(row.arms[0])] for row in rows]
    weights = np.array(target) / [(row.propensities or [0.0])[0] for row in rows]
    earned = float(weights @ [row.reward for row in rows])
    return earned / len(rows), earned / float(weights.sum())


def of_the_export(folder: Path, shares: Shares) -> tuple[float, float]:
    """Return IPS and SNIPS as our reader and our estimators have it from DSJSON."""
    export(folder, folder / "out.dsjson", "dsjson")
    given = ActionDecisions(read_action_log(folder / "out.dsjson"))
    rounds, known = given.rounds(np.arange(len(given.log)))
    candidates = np.full((len(rounds), len(IDS)), -1, dtype=np.int32)
    likely = np.zeros(candidates.shape)
    for n, offered in enumerate(given.log.offered):
        candidates[n, : len(offered)] = [known[row] for row in offered]
        likely[n, : len(offered)] = shares([given.log.ids[row] for row in offered])
    policy = SparsePolicy(candidates, likely, arms=rounds.arms)
    found = evaluate(rounds, policy, estimators=("ips", "snips"), interval="normal")
    return found["ips"].value, found["snips"].value


@pytest.mark.parametrize("shares", [uniform, sea_first])
def test_estimates_of_the_export_are_those_of_the_folder(folder: Path, shares: Shares) -> None:
    ours = of_the_folder(folder, shares)

    assert of_the_export(folder, shares) == pytest.approx(ours, abs=1e-9)


def test_the_evaluation_of_a_service_has_the_estimates_of_its_export(folder: Path) -> None:
    every = judged(folder, EVER, 1_000)
    found = evaluation_of(EVER, every, id="one", importance=[]).policy_results
    total = next(one.total_summary for one in found if one.name == "Random")
    ips = total.ips_estimator_numerator / total.ips_estimator_denominator

    assert of_the_export(folder, uniform) == pytest.approx((ips, total.average_reward), abs=1e-9)

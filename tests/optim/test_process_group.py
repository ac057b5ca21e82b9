"""Members of a team learn the same, and what one alone would learn."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import multiprocessing

from fastbandit import Bandit
from fastbandit.errors import FastbanditError
from fastbandit.optim.process_group import SINGLE, SingleProcess, TorchProcessGroup, share_of
from fastbandit.training.update import embed

pytestmark = pytest.mark.slow


def world(rounds: int) -> dict[str, Any]:
    rng = np.random.default_rng(3)
    contexts = rng.normal(size=(rounds, 3)).astype(np.float32)
    arms = rng.integers(40, size=rounds)
    rewards = np.cos(contexts[:, 0] + arms / 9) + 0.1 * rng.normal(size=rounds)
    return {"contexts": contexts, "arms": arms, "rewards": rewards}


def bandit() -> Bandit:
    features = np.random.default_rng(5).normal(size=(40, 2)).astype(np.float32)
    features[:, 0] = np.arange(40) / 9
    return Bandit(arms=features, context=3, reward="real", seed=1, search="generator")


def in_team(rank: int, size: int, folder: str, task: Any) -> None:
    """Run a task as a member; the weights and the notes it gives are saved under its rank."""
    torch.set_num_threads(1)
    torch.distributed.init_process_group(
        "gloo", init_method=f"file://{folder}/meet", rank=rank, world_size=size
    )
    try:
        weights, notes = task(TorchProcessGroup())
        save_file(weights, Path(folder) / f"{rank}.safetensors")
        (Path(folder) / f"{rank}.json").write_text(json.dumps(notes), encoding="utf-8")
    finally:
        torch.distributed.destroy_process_group()


@pytest.fixture(scope="module")
def members(tmp_path_factory: pytest.TempPathFactory) -> list[Any]:
    """What two processes that learned together found, by rank."""
    folder = tmp_path_factory.mktemp("team")
    multiprocessing.spawn(in_team, args=(2, str(folder), all_of_it), nprocs=2)
    return [
        {
            "weights": load_file(folder / f"{rank}.safetensors"),
            **json.loads((folder / f"{rank}.json").read_text(encoding="utf-8")),
        }
        for rank in range(2)
    ]


def all_of_it(group: Any) -> tuple[dict[str, torch.Tensor], dict[str, Any]]:
    weights, error = learn(group)
    notes = {
        "error": error,
        "gathered": gather(group).tolist(),
        "told": differ(group),
        "apart": float(embed_arms(group).abs().max()),
    }
    return {name: one.contiguous() for name, one in weights.items()}, notes


def embed_arms(group: Any) -> torch.Tensor:
    """Embed arms together, as far apart from those embedded alone as rounding takes them."""
    policy = bandit().policy
    ours = embed(policy.arms, policy.model, group=group)
    return ours.vectors - embed(policy.arms, policy.model).vectors


def learn(group: Any) -> tuple[dict[str, torch.Tensor], float]:
    one = bandit()
    one.update(**world(600), group=group)
    generator = one.policy.search.generator
    state = {**one.policy.model.state_dict(), **generator.state_dict(prefix="generator.")}
    return state, error_of(one)


def error_of(one: Bandit) -> float:
    """Give the mean squared error on rounds that were not learned."""
    told = {name: values[600:] for name, values in world(900).items()}
    model = one.policy.model
    with torch.no_grad():
        request = one._state.read_request(one.blueprint, told["contexts"], k=1)
        score = model.mean(model.embed_contexts(request.contexts))
        scores = score.through(one.policy.arms.to_embedding)(one.policy.arms.all().points)
        by_surrogate = model.in_rewards(scores)[torch.arange(len(scores)), told["arms"]]
    return float(np.square(by_surrogate.numpy() - told["rewards"]).mean())


def gather(group: Any) -> torch.Tensor:
    return group.gather(torch.full((2 + group.rank, 2), float(group.rank)))


def differ(group: Any) -> str:
    try:
        group.check([torch.full((3,), float(group.rank))])
    except FastbanditError as error:
        return str(error)
    return ""


def test_members_learn_the_same_network(members: list[Any]) -> None:
    first, second = (member["weights"] for member in members)

    assert first.keys() == second.keys()
    assert all(torch.equal(first[name], second[name]) for name in first)


def test_a_team_learns_as_well_as_one_alone(members: list[Any]) -> None:
    _, alone = learn(SINGLE)

    assert members[0]["error"] == pytest.approx(alone, rel=0.3)


def test_rows_are_gathered_in_the_order_of_ranks(members: list[Any]) -> None:
    for member in members:
        assert [row[0] for row in member["gathered"]] == [0, 0, 1, 1, 1]


def test_members_embed_arms_as_one_alone_does(members: list[Any]) -> None:
    assert all(member["apart"] < 1e-5 for member in members)


def test_networks_that_differ_are_noticed(members: list[Any]) -> None:
    assert all("2 different ones" in member["told"] for member in members)


@pytest.mark.parametrize("size", [1, 2, 3])
def test_shares_make_up_the_minibatch_and_weigh_as_much(size: int) -> None:
    rows = torch.arange(7)
    shares = [share_of(rows, SingleProcess(rank, size)) for rank in range(size)]

    assert sorted(row for own, _ in shares for row in own.tolist()) == rows.tolist()
    means = [own.double().mean() * weight for own, weight in shares]
    assert float(sum(means)) / size == pytest.approx(3.0)

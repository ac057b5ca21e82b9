"""Decisions of a policy by torch: where there are few arms, a box, or nothing compiled."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import torch

from fastbandit.arms.box_space import BoxSpace
from fastbandit.arms.requests import ArmTable, Request
from fastbandit.errors import SettingError
from fastbandit.noise.philox import Stream, uniforms
from fastbandit.policy import Policy
from fastbandit.runtime.seeds import read_seeds
from fastbandit.score import Choice
from fastbandit.search.slates import candidates_for, pick_apart
from fastbandit.types import Decision


def decide_by_torch(
    policy: Policy,
    table: ArmTable,
    request: Request,
    *,
    version: int,
    diversity: float,
    explore: bool = True,
    seeds: Any = None,
) -> Decision:
    """Choose arms by the policy itself; before the first update each is equally likely.

    `seeds` stand in place of those of the request.
    """
    if seeds is not None:
        request = replace(request, seeds=read_seeds(seeds, len(request.seeds)))
    if not explore:
        policy = replace(policy, exploration=policy.exploration.quiet())
    if version == 0:
        return _decide_uniformly(policy, table, request)
    choice = _choose(policy, request, diversity=diversity)
    arms, model = policy.arms, policy.model
    scores = model.in_rewards(choice.scores).masked_fill(choice.rows < 0, float("-inf"))
    rows = choice.rows.cpu().numpy()
    rows = np.zeros_like(rows) if isinstance(arms, BoxSpace) else rows
    decision = replace(
        table.decide(request, rows, scores.cpu().numpy(), version=version),
        evaluations=choice.evaluations.cpu().numpy(),
        lookups=choice.lookups.cpu().numpy(),
        clipped=model.is_clipped(request.contexts),
    )
    if isinstance(arms, BoxSpace):
        values = arms.values(choice.points).cpu().numpy()
        return replace(decision, arms=values[:, 0] if request.k == 1 else values)
    return decision


def _choose(policy: Policy, request: Request, *, diversity: float) -> Choice:
    eligible = None
    if request.eligible is not None:
        eligible = torch.from_numpy(request.eligible).to(policy.model.device)
    count = candidates_for(request.k, diversity)
    choice = policy.select(request.contexts, seeds=request.seeds, count=count, eligible=eligible)
    return choice if count == request.k else _slate(choice, request.k, diversity)


def _slate(choice: Choice, k: int, diversity: float) -> Choice:
    """Pick k arms that differ out of a choice of more."""
    scores, points = choice.scores.cpu().numpy(), choice.points.cpu().numpy()
    picked = pick_apart(scores, points, k=k, diversity=diversity)
    taken = torch.from_numpy(picked).to(choice.rows.device)
    return replace(
        choice,
        rows=choice.rows.gather(1, taken),
        points=choice.points.gather(1, taken[..., None].expand(-1, -1, points.shape[2])),
        scores=choice.scores.gather(1, taken),
    )


def _decide_uniformly(policy: Policy, table: ArmTable, request: Request) -> Decision:
    decision = table.decide_uniformly(request, version=0)
    if not isinstance(policy.arms, BoxSpace):
        return decision
    box, k = policy.arms.box, request.k
    numbers = uniforms(request.seeds, k * box.dim, Stream.UNIFORM_CHOICE)
    low, high = np.asarray(box.low), np.asarray(box.high)
    values = (low + (high - low) * numbers.reshape(-1, k, box.dim)).astype(np.float32)
    zeros = np.zeros((len(request.seeds), k))
    return replace(
        decision,
        arms=values[:, 0] if k == 1 else values,
        rows=zeros.astype(np.int64),
        scores=zeros.astype(np.float32),
    )


def check_device(device: str) -> str:
    try:
        chosen = torch.device(device)
    except (RuntimeError, TypeError) as error:
        raise SettingError(
            f"The device needs to be one torch knows: got {device!r}. Use 'cpu' or 'cuda'."
        ) from error
    if chosen.type == "cuda" and not torch.cuda.is_available():
        raise SettingError(
            f"The device {device!r} needs a GPU that torch can see: found none. Use 'cpu'."
        )
    return str(chosen)

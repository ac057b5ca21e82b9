"""Policies of the default shapes that learned nothing: they decide as fast as any."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import torch

from fastbandit.arms.catalogue import Catalogue
from fastbandit.arms.ids import IdTable
from fastbandit.arms.neighbour_graph import NEIGHBOURS
from fastbandit.features.kinds import Dense
from fastbandit.interfaces import RewardModel, Search
from fastbandit.policy import Policy
from fastbandit.runtime.freezing import freeze
from fastbandit.runtime.frozen import FrozenBandit
from fastbandit.search.arm_generator import ArmGenerator
from fastbandit.search.generator import FittedGenerator, GeneratorSearch
from fastbandit.settings.blueprint import Blueprint
from fastbandit.settings.files import Settings
from fastbandit.settings.presets import PartNames, blueprint
from fastbandit.types import Inputs


@dataclass(frozen=True)
class Untrained:
    """A policy that learned nothing, and the parts it was built from."""

    plan: Blueprint
    policy: Policy

    generator: ArmGenerator

    @property
    def search(self) -> GeneratorSearch:
        """The default search; its generator knows nothing."""
        return GeneratorSearch()

    def frozen(self, search: Search) -> FrozenBandit:
        """Freeze the policy with a search."""
        fitted = (
            FittedGenerator(search, self.generator)
            if isinstance(search, GeneratorSearch)
            else search
        )
        return freeze(self.plan, replace(self.policy, search=fitted), 1, 0)


def untrained(arms: int, dim: int, *, hidden: int | None) -> Untrained:
    """Make a policy over random arms.

    Any arms stand for an arm's neighbours: far apart in memory, they are no quicker to walk
    than the true ones, and take no time to find.
    """
    search = GeneratorSearch()
    settings = Settings(sections={"network": {"hidden": (hidden,)}} if hidden else {})
    parts = PartNames("ts", search, "neural")
    plan = blueprint(parts, context=Dense(dim), arm=Dense(dim), reward="real", preset=settings)
    model = plan.model(device="cpu")
    policy = Policy(model, plan.exploration, search, random_catalogue(arms, dim, model))
    zeros = Inputs(dense=np.zeros((1, dim), np.float32))
    with torch.no_grad():
        score = policy.score(zeros, seeds=np.zeros(1, dtype=np.uint64))
    generator = ArmGenerator(
        score.contexts.shape[1] + score.noise.shape[1] + policy.arms.dim,
        policy.arms.dim,
        heads=search.heads,
        hidden=search.hidden,
        rng=torch.Generator().manual_seed(0),
    )
    return Untrained(plan, policy, generator.requires_grad_(False))


def random_catalogue(arms: int, dim: int, model: RewardModel) -> Catalogue:
    """Return arms spread like a Gaussian cloud, with random neighbours, as a model sees them."""
    rng = np.random.default_rng(0)
    features = Inputs(dense=rng.standard_normal((arms, dim), dtype=np.float32))
    model.observe_arms(features)
    with torch.no_grad():
        catalogue = Catalogue.of(IdTable(count=arms), features).embedded_by(model.embed_arms)
    assert catalogue.lookup is not None
    anywhere = rng.integers(arms, size=(arms, NEIGHBOURS), dtype=np.int32)
    catalogue.lookup.graph = torch.from_numpy(anywhere)
    return catalogue

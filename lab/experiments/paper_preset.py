"""The printed recipe of the paper, composed of parts: `preset="paper"` of an experiment.

What the product does otherwise stands here as parts of the laboratory's own: an ascent along the
raw slope, and a generator that sees a Gaussian z, is not held to the arms' box and climbs log D
itself. "paper" and "paper-scaled" are the two readings of "dropout regularization = 1e-1".
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import Any, TypeVar

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Generator, Tensor, nn

from fastbandit import Exhaustive, Greedy, SpannerSearch, ThompsonSampling, UpperConfidence
from fastbandit.declaration import known_name, part, setting
from fastbandit.errors import SettingError
from fastbandit.interfaces import ArmSpace, Search, SearchFit
from fastbandit.noise.philox import Stream, normals
from fastbandit.optim.layers import linear
from fastbandit.optim.nearby import embed_all
from fastbandit.optim.process_group import share_of
from fastbandit.optim.schedule import cosine_factor, set_rate
from fastbandit.score import Choice, Eligible, Score, Seeds
from fastbandit.search.fit_generator import draw_score
from fastbandit.search.gradient_ascent import slope_of, start_points
from fastbandit.search.ranking import SearchRun
from fastbandit.settings.files import Sections, Settings
from fastbandit.settings.parts import find
from lab.experiments.recipe import Preset, recipe_for

_GAUSSIANS = 8  # numbers of z, which are not printed
_Part = TypeVar("_Part")


@part("search", name="printed-ascent")
class PrintedAscent:
    """Algorithm 1 as printed: from `starts` (R) points along slope x s / (s + i), then K arms."""

    starts: int = 10
    steps: int = setting(default=30, least=0)
    step_size: float = 1.0
    enough: float | None = setting(default=None, least=float("-inf"))
    neighbours: int = 1

    def best(
        self, score: Score, arms: ArmSpace, *, count: int, seeds: Seeds, eligible: Eligible = None
    ) -> Choice:
        run = SearchRun(score, arms, count=count, eligible=eligible)
        points = start_points(arms, self.starts, seeds)
        for number in range(1, self.steps + 1):
            scores, slopes = slope_of(run.surrogate, points, run.tally)
            step = slopes * self.step_size / (self.step_size + number)
            if self.enough is not None:  # a climb that has reached it stands still
                step = torch.where((scores > self.enough)[..., None], 0.0, step)
            points = torch.clamp(points + step, arms.low, arms.high)
        with torch.no_grad():
            return run.choice(run.fill(run.land(points, neighbours=self.neighbours)))


@part("search", name="printed-generator")
class PrintedGenerator:
    """GANBandit as printed: one point from (context, z), the K arms nearest to it."""

    hidden: int = 64
    neighbours: int = 3

    def best(
        self, score: Score, arms: ArmSpace, *, count: int, seeds: Seeds, eligible: Eligible = None
    ) -> Choice:
        raise SettingError(
            "A generator search needs a trained generator: got none. Update the bandit first."
        )

    def fit(self, task: SearchFit, *, before: Search) -> Search:
        """Climb minus log D of the generator's arms: the printed, non-saturating objective."""
        embedded = embed_all(task.model.embed_contexts, task.contexts)
        network = PrintedNetwork(
            embedded.shape[1] + _GAUSSIANS, task.arms.dim, hidden=self.hidden, rng=task.rng
        ).to(embedded.device)
        if isinstance(before, FittedPrintedGenerator) and before.network.shape == network.shape:
            network.load_state_dict(before.network.state_dict())
        settings, parameters = task.settings, list(network.parameters())
        optimiser = torch.optim.Adam(parameters, lr=settings.rate, fused=True)
        noise = task.group.noise(task.rng)
        for iteration in range(settings.iterations):
            set_rate(optimiser, settings.rate * cosine_factor(iteration / settings.iterations))
            batch, weight = share_of(torch.arange(settings.batch), task.group)
            score, seeds = draw_score(task, embedded, len(batch), rng=noise)
            points = network(_inputs(score, seeds))
            loss = -F.logsigmoid(score(points)).mean()
            optimiser.zero_grad()
            (loss * weight).backward()
            task.group.average(parameters)
            optimiser.step()
            task.done(iteration + 1)
        task.group.check(parameters)
        return FittedPrintedGenerator(self, network.requires_grad_(False))

    def restored(self, tensors: dict[str, Tensor], notes: dict[str, Any]) -> Search:
        network = PrintedNetwork(
            int(notes["inputs"]), int(notes["dim"]), hidden=self.hidden, rng=Generator()
        )
        network.load_state_dict(tensors)
        device = next(iter(tensors.values())).device
        return FittedPrintedGenerator(self, network.requires_grad_(False).to(device))


class PrintedNetwork(nn.Module):
    """A network from (context, z) to a point anywhere."""

    def __init__(self, inputs: int, dim: int, *, hidden: int, rng: Generator) -> None:
        super().__init__()
        self.inputs, self.dim, self.shape = inputs, dim, (inputs, hidden, dim)
        sizes = ((inputs, hidden), (hidden, hidden), (hidden, dim))
        self.layers = nn.ModuleList(linear(*size, rng=rng) for size in sizes)

    def forward(self, inputs: Float[Tensor, "B I"]) -> Float[Tensor, "B 1 D"]:
        first, second, last = self.layers
        hidden = F.leaky_relu(second(F.leaky_relu(first(inputs), 0.1)), 0.1)
        points: Tensor = last(hidden)
        return points[:, None]


@dataclass(frozen=True)
class FittedPrintedGenerator:
    """The printed generator search with its network."""

    declared: PrintedGenerator
    network: PrintedNetwork

    @torch.no_grad()
    def best(
        self, score: Score, arms: ArmSpace, *, count: int, seeds: Seeds, eligible: Eligible = None
    ) -> Choice:
        run = SearchRun(score, arms, count=count, eligible=eligible)
        landed = run.land(self.network(_inputs(score, seeds)), neighbours=self.declared.neighbours)
        return run.choice(run.fill(landed))

    def fit(self, task: SearchFit, *, before: Search) -> Search:
        return self.declared.fit(task, before=self)

    def restored(self, tensors: dict[str, Tensor], notes: dict[str, Any]) -> Search:
        return self.declared.restored(tensors, notes)

    def state(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        return self.network.state_dict(), {"inputs": self.network.inputs, "dim": self.network.dim}


def _inputs(score: Score, seeds: Seeds) -> Float[Tensor, "B I"]:
    z = torch.from_numpy(normals(np.asarray(seeds), _GAUSSIANS, Stream.STARTS))
    return torch.cat([score.contexts, z.to(score.contexts.device)], dim=1)


# -- the preset


def paper_sections(preset: str, *, is_gradient: bool) -> Sections:
    """Return the printed network and training; the minibatch of the generator is not printed."""
    return {
        "network": {
            "embedding": 8,
            "hidden": (8, 8),
            "weight_penalty": 0.0,
            "dropout_penalty": 0.1,
            "embedding_penalty": 0.0,
            "fourier_features": 0,
            "product": False,
            "wide": False,
            "leak": 0.01,
            "penalties": "constant" if preset == "paper" else "per observation",
        },
        "training.reward": {
            "iterations": 1000,
            "batch": 256,
            "rate": 1e-3,
            "weight_decay": 1e-5,
            "cosine_schedule": False,
        },
        "training.generator": {
            "iterations": 3000,
            "batch": 32 if is_gradient else 256,
            "rate": 1e-3,
            "jitter": 0.0,
        },
    }


def bandit_parts(
    preset: Preset, *, exploration: str, search: str, posterior: str = "auto"
) -> dict[str, Any]:
    """Return what `Bandit` takes for a recipe: its parts, and settings that stand over them."""
    recipe = recipe_for(preset)
    settings = recipe.settings
    if recipe.base == "default":
        named = {"exploration": exploration, "search": search, "posterior": posterior}
        return {**named, "preset": settings}
    known_name("exploration", exploration, tuple(_EXPLORATIONS))
    known_name("search", search, tuple(_SEARCHES))
    if posterior in ("auto", "neural"):
        posterior = "gradient" if exploration == "ucb" else "dropout"
    is_gradient = posterior == "gradient"
    made = find("posterior", posterior)()
    printed = replace(made, gradients="when chosen") if is_gradient else made
    below = Settings(paper_sections(recipe.base, is_gradient=is_gradient))
    return {
        "exploration": settings.over(_EXPLORATIONS[exploration]),
        "search": _SEARCHES[search](settings),
        "posterior": settings.over(printed),
        "preset": below.merged(settings.sections),
        "part_modules": (__name__,),
    }


def _over(part: _Part, settings: Settings, section: str) -> _Part:
    """Return a printed part with the fields that the section of the product's own part sets."""
    known, values = tuple(own.name for own in fields(part)), settings.of(section)  # type: ignore[arg-type]
    for name in values:
        known_name(f"field of [{section}] over the printed recipe", name, known)
    return replace(part, **values)  # type: ignore[type-var]


def _generator(settings: Settings) -> Search:
    return _over(PrintedGenerator(), settings, "search.generator")


_EXPLORATIONS = {
    "ts": ThompsonSampling(1.0),
    "ucb": UpperConfidence(1.0),
    "greedy": Greedy(),
}
_SEARCHES: dict[str, Callable[[Settings], Search]] = {
    "exhaustive": lambda settings: settings.over(Exhaustive()),
    "ascent": lambda settings: _over(PrintedAscent(), settings, "search.ascent"),
    "generator": _generator,
    "auto": _generator,
    "spanner": lambda settings: settings.over(SpannerSearch()),
}

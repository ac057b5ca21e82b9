"""What the stages of tuning may change: fields of settings, about where they stand."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from fastbandit.reward.bootstrap_model import BootstrapPosterior
from fastbandit.reward.gradient_model import GradientPosterior
from fastbandit.reward.last_layer_model import LastLayerPosterior
from fastbandit.reward.variational_model import VariationalPosterior
from fastbandit.search.generator import GeneratorSearch
from fastbandit.search.gradient_ascent import GradientAscent
from fastbandit.settings.blueprint import Blueprint
from fastbandit.settings.files import Value, section_of
from lab.experiments.paper_preset import PrintedAscent, PrintedGenerator


@dataclass(frozen=True)
class Knob:
    """One field that a stage may change: choices, or a range that holds the current value."""

    section: str
    field: str
    current: Value
    choices: tuple[Value, ...] = ()
    low: float = 0
    high: float = 0

    @property
    def name(self) -> str:
        return f"{self.section}.{self.field}"

    @property
    def stored(self) -> Any:
        """The current value as Optuna stores it."""
        return json.dumps(self.current) if self.choices else self.current

    def suggested(self, trial: Any) -> Value:
        """Ask an Optuna trial for a value; numbers have three digits, fit to be read."""
        if self.choices:
            options = [json.dumps(choice) for choice in self.choices]
            value = json.loads(trial.suggest_categorical(self.name, options))
            return tuple(value) if isinstance(value, list) else value
        if isinstance(self.current, int):
            is_log = self.low >= 1
            return int(trial.suggest_int(self.name, int(self.low), int(self.high), log=is_log))
        return float(f"{trial.suggest_float(self.name, self.low, self.high, log=True):.3g}")


def knobs_of(stage: int, plan: Blueprint) -> tuple[Knob, ...]:
    """Return what a stage may change, about where it stands now."""
    return tuple({1: _network, 2: _posterior, 3: _search, 4: _landing}[stage](plan))


def _network(plan: Blueprint) -> Iterable[Knob]:
    network, fit = plan.network, plan.training.reward
    columns, units = network.embedding, network.hidden[0]
    yield _one_of("network", "embedding", columns, (max(1, columns // 2), 2 * columns))
    shapes = ((max(1, units // 2),), (units,), (2 * units,), (units, units))
    yield _one_of("network", "hidden", network.hidden, shapes)
    yield _about("network", "weight_penalty", network.weight_penalty, 30)
    yield _about("training.reward", "rate", fit.rate, 5)
    yield _about("training.reward", "iterations", fit.iterations, 3)


def _posterior(plan: Blueprint) -> Iterable[Knob]:
    section, posterior = section_of(plan.exploration), plan.posterior
    for name in ("scale", "width"):
        if hasattr(plan.exploration, name):
            yield _about(section, name, getattr(plan.exploration, name), 6)
    if isinstance(posterior, GradientPosterior):
        yield _about("posterior.gradient", "ridge", posterior.ridge, 10)
    elif isinstance(posterior, LastLayerPosterior | BootstrapPosterior | VariationalPosterior):
        yield _about(section_of(posterior), "prior_precision", posterior.prior_precision, 10)
        if isinstance(posterior, BootstrapPosterior):
            yield _up_to(
                "posterior.bootstrap", "heads", posterior.heads, 2 * posterior.heads, least=2
            )
    else:
        yield _about("network", "dropout_penalty", plan.network.dropout_penalty, 10)


def _search(plan: Blueprint) -> Iterable[Knob]:
    search, fit = plan.search, plan.training.generator
    if isinstance(search, GeneratorSearch):
        heads = search.heads
        yield _one_of("search.generator", "heads", heads, (max(1, heads // 2), 2 * heads))
        yield _up_to("search.generator", "steps", search.steps, 2 * search.steps + 2)
        yield _about("search.generator", "step_size", search.step_size, 3)
        yield _about("training.generator", "iterations", fit.iterations, 3)
        yield from _walk("search.generator", search)
        yield _up_to("search.generator", "lookups", search.lookups, 2 * search.lookups, least=1)
    elif isinstance(search, GradientAscent | PrintedAscent):
        yield _about("search.ascent", "starts", search.starts, 2)
        yield _up_to("search.ascent", "steps", search.steps, 2 * search.steps + 2)
        yield _about("search.ascent", "step_size", search.step_size, 4)
        if isinstance(search, GradientAscent):
            yield from _walk("search.ascent", search)
    elif isinstance(search, PrintedGenerator):
        units = search.hidden
        yield _one_of("search.generator", "hidden", units, (max(1, units // 2), 2 * units))
        yield _about("training.generator", "iterations", fit.iterations, 3)


def _landing(plan: Blueprint) -> Iterable[Knob]:
    search = plan.search
    if isinstance(search, PrintedAscent):
        yield _about("search.ascent", "neighbours", search.neighbours, 4)
    if isinstance(search, PrintedGenerator):
        yield _about("search.generator", "neighbours", search.neighbours, 4)
    if not isinstance(search, GeneratorSearch | GradientAscent):
        return
    section = section_of(search)
    points = search.heads if isinstance(search, GeneratorSearch) else search.starts
    lookups = min(search.lookups or points, points)
    landing = "neighbours" if search.neighbours else "partitions"  # what of the two is in use
    yield _about(section, landing, getattr(search, landing), 4)
    yield _up_to(section, "lookups", lookups, min(points, 2 * lookups), least=1)
    yield from _walk(section, search)


def _walk(section: str, search: GeneratorSearch | GradientAscent) -> Iterable[Knob]:
    yield _up_to(section, "hops", search.hops, search.hops + 2)
    yield _up_to(section, "beam", search.beam, 2 * search.beam, least=1)


def _one_of(section: str, field: str, current: Any, others: tuple[Any, ...]) -> Knob:
    choices = tuple(dict.fromkeys((current, *others)))
    return Knob(section, field, current, choices=choices)


def _about(section: str, field: str, current: Any, factor: float) -> Knob:
    """Return a range about a number; about nothing, a few numbers of another size."""
    if current == 0:
        return _one_of(section, field, current, (0.01, 0.1, 1.0, 10.0))
    low, high = current / factor, current * factor
    if isinstance(current, int):
        low, high = max(1, math.floor(low)), math.ceil(high)
    return Knob(section, field, current, low=low, high=high)


def _up_to(section: str, field: str, current: int, most: int, *, least: int = 0) -> Knob:
    return Knob(section, field, current, low=least, high=max(most, current))

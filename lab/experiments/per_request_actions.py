"""`python -m lab experiment per-request-actions`: actions with features, beside Vowpal Wabbit.

Rows of a set are contexts, its classes the actions of each request, in a random order, each with
its id and a few descriptors; the right one earns 1. Everyone is handed the same lines of DSJSON and
draws an action by its own probabilities. Vowpal Wabbit learns after each round, with products of
features of contexts and actions; fastbandit after each batch, so it knows each reward later. Before
its first update it takes any action. By ids and by features are the two ways in which `fastbandit
migrate` learns such a log: it takes the one that predicts better. Through the client is a service
that declares nothing, asked by the client of Personalizer; its learner takes the better one, too.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator
from contextlib import closing
from dataclasses import asdict, dataclass, field
from importlib import import_module
from typing import Any, Protocol

import click
import numpy as np
from numpy.typing import NDArray

from fastbandit.adapters.action_logs import context_of, features_of
from fastbandit.bandit import Bandit
from fastbandit.declaration import known_name
from fastbandit.features.schema import Schema
from fastbandit.reward.arm_effects_posterior import ArmEffectsPosterior
from fastbandit.runtime.frozen import FrozenBandit
from fastbandit.runtime.offered_arms import Offer
from lab.bakeoff.vowpal_wabbit import EXPLORATIONS
from lab.experiments.personalizer_agent import ThroughClient
from lab.printing import print_lines

HEADINGS = ("set", "system", "seeds", "rounds", "reward", "last quarter")
SETS = ("digits", "wine", "clusters")
_OURS = ("fastbandit by ids", "fastbandit by features")
_SERVED = "fastbandit through the client"
_THEIRS = {
    "VW squarecb": EXPLORATIONS["SquareCB"],
    "VW regcb": EXPLORATIONS["RegCB"],
    "VW cover": EXPLORATIONS["cover"],
    "VW regcb, plain": "--regcb --cb_min_cost -1 --cb_max_cost 0",
    "VW cover, plain": "--cover 3",
}
SYSTEMS = (_SERVED, *_OURS, *_THEIRS)
Line = dict[str, Any]


@dataclass(frozen=True, eq=False)
class Rounds:
    """Contexts with the rows of their right classes, and the actions of all classes."""

    contexts: list[Line]
    right: NDArray[np.int64]
    actions: list[Line]
    seed: int

    def lines(self) -> Iterator[tuple[Line, int]]:
        """Yield each round as a line of DSJSON without a label, and the position that earns 1."""
        rng = np.random.default_rng([self.seed, 1])
        count = len(self.actions)
        for number, (context, right) in enumerate(zip(self.contexts, self.right, strict=True)):
            order = rng.permutation(count)
            yield (
                {
                    "Version": "1",
                    "EventId": str(number),
                    "a": list(range(1, count + 1)),
                    "c": {**context, "_multi": [self.actions[row] for row in order]},
                    "p": [1.0 / count] * count,
                },
                int(np.flatnonzero(order == right)[0]),
            )


def load(name: str, *, rounds: int, seed: int) -> Rounds:
    """Return so many rows of a set, drawn by the seed, each of them perhaps again."""
    known_name("set", name, SETS)
    features, labels = _rows_of(name, seed)
    drawn = np.random.default_rng([seed, 0]).integers(0, len(features), rounds)
    contexts = [
        {"Context": {f"x{n}": float(value) for n, value in enumerate(features[row])}}
        for row in drawn.tolist()
    ]
    actions = [
        {
            "_tag": f"class{row}",
            "Action": {"id": f"class{row}", "even": row % 2 == 0, "third": f"t{row % 3}"},
        }
        for row in range(int(labels.max()) + 1)
    ]
    return Rounds(contexts, labels[drawn].astype(np.int64), actions, seed)


def _rows_of(name: str, seed: int) -> tuple[NDArray[Any], NDArray[Any]]:
    sets = import_module("sklearn.datasets")
    if name == "clusters":
        found = sets.make_classification(
            n_samples=5000,
            n_features=20,
            n_informative=12,
            n_classes=8,
            n_clusters_per_class=2,
            random_state=seed,
        )
        return found[0], found[1]
    found = getattr(sets, f"load_{name}")()
    return found.data, found.target


# -- who plays


class Agent(Protocol):
    """Draws the position of an action, then learns what it earned."""

    def take(self, line: Line) -> int: ...

    def learn(self, line: Line, position: int, reward: float) -> None: ...

    def close(self) -> None: ...


class VowpalWabbit:
    """An exploration of Vowpal Wabbit on lines of DSJSON."""

    def __init__(self, options: str, *, seed: int) -> None:
        self._workspace = import_module("vowpalwabbit").Workspace(
            f"--cb_explore_adf {options} -q CA -b 22 --dsjson --quiet --random_seed {seed + 1}"
        )
        self._rng, self._likely = np.random.default_rng([seed, 2]), 1.0

    def take(self, line: Line) -> int:
        examples = self._workspace.parse(json.dumps(line))
        shares = np.array(self._workspace.predict(examples), dtype=np.float64)
        self._workspace.finish_example(examples)
        shares /= shares.sum()
        position = int(self._rng.choice(len(shares), p=shares))
        self._likely = float(shares[position])
        return position

    def learn(self, line: Line, position: int, reward: float) -> None:
        label = {
            "_label_cost": -reward,
            "_label_probability": self._likely,
            "_label_Action": position + 1,
            "_labelIndex": position,
        }
        examples = self._workspace.parse(json.dumps({**label, **line}))
        self._workspace.learn(examples)
        self._workspace.finish_example(examples)

    def close(self) -> None:
        self._workspace.finish()


@dataclass
class Ours:
    """A bandit that is offered the actions of each line, and learns after each batch."""

    by_id: bool
    batch: int
    seed: int
    _bandit: Bandit | None = None
    _frozen: FrozenBandit | None = None
    _few: dict[tuple[str, ...], FrozenBandit] = field(default_factory=dict)
    _waiting: list[tuple[Line, str, float]] = field(default_factory=list)
    _arms: dict[str, Line] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._rng = np.random.default_rng([self.seed, 2])

    def take(self, line: Line) -> int:
        actions = line["c"]["_multi"]
        if self._frozen is None:
            return int(self._rng.integers(len(actions)))
        ids = tuple(action["_tag"] for action in actions)
        known = tuple(sorted(ids))
        if known not in self._few:
            offers = [Offer(action["_tag"], features_of(action)) for action in actions]
            self._few[known] = self._frozen.offering(offers)
        seed = int(self._rng.integers(2**62))
        return ids.index(self._few[known].select_one(_context(line), seed=seed).arm)

    def learn(self, line: Line, position: int, reward: float) -> None:
        action = line["c"]["_multi"][position]
        self._arms |= {one["_tag"]: features_of(one) for one in line["c"]["_multi"]}
        self._waiting.append((_context(line), action["_tag"], reward))
        if len(self._waiting) >= self.batch:
            self._update()

    def _update(self) -> None:
        contexts, arms, rewards = (list(column) for column in zip(*self._waiting, strict=True))
        if self._bandit is None:
            self._bandit = self._new(contexts)
        self._bandit.update(contexts=contexts, arms=arms, rewards=rewards)
        self._frozen, self._few, self._waiting = self._bandit.freeze(), {}, []

    def _new(self, contexts: list[Line]) -> Bandit:
        rows = list(self._arms.values())
        return Bandit(
            arms=Schema.open().grown(rows).table(rows),
            ids=list(self._arms),
            context=Schema.open().grown(contexts),
            posterior=ArmEffectsPosterior(own_weights=True) if self.by_id else "auto",
            embed_ids=self.by_id,
            seed=self.seed,
            progress=False,
        )

    def close(self) -> None:
        """Nothing is to be let go of."""


def _context(line: Line) -> Line:
    return context_of({name: one for name, one in line["c"].items() if name != "_multi"})


def agent_of(system: str, *, batch: int, seed: int) -> Agent:
    """Return a system by its name."""
    known_name("system", system, SYSTEMS)
    if system == _SERVED:
        return ThroughClient(batch=batch, seed=seed)
    if system in _THEIRS:
        return VowpalWabbit(_THEIRS[system], seed=seed)
    return Ours(system == _OURS[0], batch, seed)


# -- what is measured


@dataclass(frozen=True)
class Row:
    """What a system earned a round with one seed, in all and in the last quarter."""

    set: str
    system: str
    seed: int
    rounds: int
    reward: float
    last_quarter: float


def measure(name: str, system: str, *, rounds: int, batch: int, seed: int) -> Row:
    """Play the rounds of a set with one system."""
    agent, earned = agent_of(system, batch=batch, seed=seed), []
    with closing(agent):
        for line, right in load(name, rounds=rounds, seed=seed).lines():
            position = agent.take(line)
            earned.append(float(position == right))
            agent.learn(line, position, earned[-1])
    last = earned[3 * rounds // 4 :]
    return Row(name, system, seed, rounds, float(np.mean(earned)), float(np.mean(last)))


def cells_of(rows: list[Row]) -> Iterator[tuple[str, ...]]:
    """Yield a row of the table for each set and system: means and standard errors over seeds."""
    grouped = defaultdict(list)
    for row in rows:
        grouped[row.set, row.system, row.rounds].append(row)
    for (name, system, rounds), some in grouped.items():
        columns = ([one.reward for one in some], [one.last_quarter for one in some])
        shown = [_with_error(np.array(column)) for column in columns]
        yield name, system, f"{len(some)}", f"{rounds:,}", *shown


def _with_error(values: NDArray[np.float64]) -> str:
    if len(values) < 2:
        return f"{values.mean():.3f}"
    return f"{values.mean():.3f} ± {values.std(ddof=1) / np.sqrt(len(values)):.3f}"


@click.command("per-request-actions")
@click.option("--sets", default=",".join(SETS), show_default=True, help="Comma-separated.")
@click.option("--systems", default=";".join(SYSTEMS), help="With semicolons; by default all.")
@click.option("--seeds", default=10, show_default=True, type=click.IntRange(1))
@click.option("--first-seed", default=0, show_default=True, type=click.IntRange(0))
@click.option("--rounds", default=5000, show_default=True, type=click.IntRange(1))
@click.option(
    "--batch",
    default=100,
    show_default=True,
    type=click.IntRange(1),
    help="Rounds between our updates.",
)
@click.option("--json", "as_json", is_flag=True, help="Print a row for each seed, as JSON.")
def per_request_actions_command(
    sets: str,
    systems: str,
    *,
    seeds: int,
    first_seed: int,
    rounds: int,
    batch: int,
    as_json: bool,
) -> None:
    """Play classes as actions with features, beside Vowpal Wabbit on the same DSJSON."""
    rows = []
    for name in sets.split(","):
        for system in systems.split(";"):
            for seed in range(first_seed, first_seed + seeds):
                rows.append(measure(name, system, rounds=rounds, batch=batch, seed=seed))
                click.echo(f"{rows[-1]}", err=True)
    if as_json:
        click.echo(json.dumps([asdict(row) for row in rows], indent=1))
    else:
        print_lines("Reward a round", HEADINGS, list(cells_of(rows)))

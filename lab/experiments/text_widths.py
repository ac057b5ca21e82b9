"""`python -m lab experiment text-widths`: how well a shop is learned as texts become fewer numbers.

Random arms of the synthetic shop are taken, and clicks predicted for rounds that were held out: log
loss by the number of directions that texts have, beside that of a constant and of the truth.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace

import click
import numpy as np
import torch
from numpy.typing import NDArray

from fastbandit.arms.shared_texts import share_texts
from fastbandit.bandit import Bandit
from fastbandit.cores import one_thread
from fastbandit.exploration import Greedy
from fastbandit.features.schema import Schema
from fastbandit.features.text_columns import Text
from fastbandit.score import Candidates
from lab.experiments.shop_data import make_shop, make_users
from lab.printing import print_lines

_ITEMS, _HELD_OUT = 400, 6_000
_MORE = 4.0  # as many clicks as in the shop: fewer rounds tell losses apart
HEADINGS = ("seed", "rounds", "width", "log loss", "constant", "truth")


@dataclass(frozen=True)
class Row:
    """Log losses of held-out rounds, texts being so many numbers."""

    seed: int
    rounds: int
    width: int
    loss: float
    constant: float
    truth: float

    def cells(self) -> tuple[str, ...]:
        """Format the row for a table."""
        losses = (f"{one:.4f}" for one in (self.loss, self.constant, self.truth))
        return (f"{self.seed}", f"{self.rounds:,}", f"{self.width}", *losses)


def measure(
    seed: int, rounds: int, widths: tuple[int, ...], *, held_out: int = _HELD_OUT
) -> Iterator[Row]:
    """Learn so many rounds with texts of each width."""
    count = rounds + held_out
    shop, users = make_shop(_ITEMS, seed=seed), make_users(count, seed=seed)
    rng = np.random.default_rng(seed)
    taken = rng.integers(0, _ITEMS, count)
    rates = np.clip(_MORE * shop.click_rates(users)[np.arange(count), taken], 1e-6, 0.9)
    clicks = (rng.random(count) < rates).astype(float)
    first, rest = users.table.take(np.arange(rounds)), users.table.take(np.arange(rounds, count))
    arms, contexts = Schema.infer(shop.table), Schema.infer(first)
    for width in widths:
        both = (_with_texts(contexts, width), _with_texts(arms, width))
        context, wide = share_texts(*both, first, shop.table, fixed=(False, False))
        bandit = Bandit(context=context, arms=wide.table(shop.table), seed=0, progress=False)
        bandit.fit(contexts=first, arms=taken[:rounds], rewards=clicks[:rounds])
        known = np.full(held_out, clicks[:rounds].mean())
        losses = (_predicted(bandit, rest, taken[rounds:]), known, rates[rounds:])
        yield Row(seed, rounds, width, *(_loss(one, clicks[rounds:]) for one in losses))


def _with_texts(schema: Schema, width: int) -> Schema:
    columns = (
        replace(one, dim=width, space="") if isinstance(one, Text) else one
        for one in schema.columns
    )
    return Schema(tuple(columns))


def _predicted(bandit: Bandit, users: object, taken: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the expected reward of each user with the arm that was taken."""
    inputs = bandit.blueprint.context.read(users, what="contexts")
    policy, chosen = replace(bandit.policy, exploration=Greedy()), torch.from_numpy(taken)[:, None]
    with torch.no_grad():
        score = policy.score(inputs, seeds=np.zeros(len(taken), dtype=np.uint64))
        scores = score.of(Candidates(chosen, policy.arms.at(chosen)))[:, 0]  # type: ignore[union-attr]
        return np.asarray(policy.model.in_rewards(scores).double().numpy().clip(1e-6, 1 - 1e-6))


def _loss(predicted: NDArray[np.float64], clicks: NDArray[np.float64]) -> float:
    return float(-np.log(np.where(clicks > 0.5, predicted, 1 - predicted)).mean())


@click.command("text-widths")
@click.option("--seeds", default=2, show_default=True, type=click.IntRange(1), help="Shops.")
@click.option("--rounds", default="4000,24000", show_default=True, help="Rounds that are learned.")
@click.option("--widths", default="8,16,32", show_default=True, help="Numbers of a text.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON, not a table.")
def text_widths_command(seeds: int, rounds: str, widths: str, as_json: bool) -> None:
    """Learn a synthetic shop with texts of several widths, and compare held-out losses."""
    one_thread()
    sizes = tuple(int(one) for one in widths.split(","))
    rows = [
        row
        for count in rounds.split(",")
        for seed in range(seeds)
        for row in measure(seed, int(count), sizes)
    ]
    if as_json:
        click.echo(json.dumps([asdict(row) for row in rows], indent=1))
    else:
        print_lines(
            "Held-out losses by the width of texts", HEADINGS, [row.cells() for row in rows]
        )

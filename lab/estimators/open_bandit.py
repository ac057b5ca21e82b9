"""One logging policy of Open Bandit judged from the other's log, beside what it truly earned."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from fastbandit.evaluation.estimators import Contributions, declared_estimators
from fastbandit.evaluation.intervals import Interval, intervals_of
from fastbandit.evaluation.open_bandit import read_campaign
from fastbandit.evaluation.report import Estimate, Evaluation
from fastbandit.evaluation.rounds import LoggedRounds, Rows
from fastbandit.evaluation.run import evaluate
from fastbandit.evaluation.sparse_policy import SparsePolicy
from fastbandit.features.csv_files import read_csv, to_numbers
from fastbandit.progress import Progress, silent
from lab.experiments.datasets.files import find
from lab.experiments.datasets.openbandit import CAMPAIGNS, FOLDERS

ASKED = ("ips", "snips", "dm", "dr", "switch", "mips")


@dataclass(frozen=True, eq=False)
class Campaign:
    """Rounds of one campaign, logged by one policy, and where each stood on the page, from 0."""

    name: str
    policy: str
    rounds: LoggedRounds
    positions: Rows

    @staticmethod
    def read(folder: Path) -> Campaign:
        """Read a folder such as obd/random/men."""
        rounds, path = read_campaign(folder), folder / f"{folder.name}.csv"
        found = to_numbers(read_csv(path, ["position"])["position"], path=path, column="position")
        positions = np.unique(found, return_inverse=True)[1].reshape(-1)
        return Campaign(folder.name, folder.parent.name, rounds, positions)


@dataclass(frozen=True)
class Judged:
    """A policy's value from another's log, and what it earned itself."""

    campaign: str
    policy: str
    by: str
    found: Evaluation
    truth: Estimate

    def to_json(self) -> dict[str, Any]:
        """Return all of it as values that JSON knows."""
        named = {"campaign": self.campaign, "policy": self.policy, "log": self.by}
        return {**named, "truth": asdict(self.truth), "found": self.found.to_json()}


def check_open_bandit(
    data: Path | None, *, seed: int = 0, progress: Progress = silent
) -> list[Judged]:
    """Judge each policy of each campaign from the log of the other."""
    found = []
    for done, name in enumerate(CAMPAIGNS):
        progress(2 * done, 2 * len(CAMPAIGNS), f"campaign {name}")
        first, second = (find_campaign(data, policy, name) for policy in ("random", "bts"))
        found += [_judge(second, by=first, seed=seed), _judge(first, by=second, seed=seed)]
    return found


def find_campaign(data: Path | None, policy: str, name: str) -> Campaign:
    """Read a campaign from below the data folder."""
    files = [f"{folder}/{policy}/{name}/{name}.csv" for folder in FOLDERS]
    return Campaign.read(find("openbandit", files, data=data).parent)


def policy_behind(log: Campaign, rounds: Campaign) -> SparsePolicy:
    """Return what the policy that made one log would have done in the rounds of another.

    The policy "random" is uniform. The policy "bts" looks at the position on the page alone and
    changed over the week: its probabilities are its shares of arms at each position, in its log.
    """
    if log.policy == "random":
        return SparsePolicy.uniform(rounds.rounds)
    arms, count = log.rounds.arms, int(log.positions.max()) + 1
    counts = np.bincount(log.positions * arms + log.rounds.chosen, minlength=count * arms)
    shares = counts.reshape(count, arms) / np.bincount(log.positions)[:, None]
    rows = np.broadcast_to(np.arange(arms, dtype=np.int32), (len(rounds.rounds), arms))
    return SparsePolicy(rows, shares[rounds.positions], arms=arms)


def _judge(judged: Campaign, *, by: Campaign, seed: int) -> Judged:
    own = Contributions(judged.rounds.rewards)
    ends = intervals_of([own], Interval(), seed=seed)[0]
    found = evaluate(by.rounds, policy_behind(judged, by), estimators=ASKED, seed=seed)
    return Judged(judged.name, judged.policy, by.policy, found, Estimate("own", own.value, *ends))


def rows_of(found: Sequence[Judged]) -> list[tuple[str, ...]]:
    """Return rows of a table in clicks of a thousand rounds, headings first."""
    names = tuple(declared_estimators()[name].title for name in ASKED)
    rows: list[tuple[str, ...]] = [
        ("campaign", "policy", "from the log of", "effective size", "own mean", *names)
    ]
    for one in found:
        size = f"{one.found.diagnostics.effective_size:,.0f}"
        cells = [_cell(one.found[name]) for name in ASKED]
        rows.append((one.campaign, one.policy, one.by, size, _cell(one.truth), *cells))
    return rows


def _cell(one: Estimate) -> str:
    return f"{1e3 * one.value:.1f} [{1e3 * one.low:.1f}, {1e3 * one.high:.1f}]"


def summary_of(found: Sequence[Judged]) -> str:
    """Say how often the interval of each estimator holds what the policy earned itself."""
    held = []
    for name in ASKED:
        ends = [(one.found[name].low, one.found[name].high, one.truth.value) for one in found]
        title = declared_estimators()[name].title
        held.append(f"{title} {sum(low <= own <= high for low, high, own in ends)}")
    return (
        f"Clicks of a thousand rounds, with 95 % intervals. Of {len(found)} intervals, these held "
        f"the policy's own mean: {', '.join(held)}. (The own mean has an interval itself.)"
    )

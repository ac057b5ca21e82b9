"""Runs put side by side: averages over seeds, curves with their bands, and the bars to clear."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from lab.experiments.environment import Floats
from lab.experiments.figures import STYLES
from lab.experiments.results import DRAWN_FACES, FEW_ARMS, data_of, is_scan, is_simulated

Result = dict[str, Any]

DATASETS = {
    "h1": "h1",
    "h1b": "h1b",
    "h2": "h2",
    "h3": "h3",
    "procedural": "Procedural",
    "bibtex": "Bibtex",
    "celeba": "CelebA",
    DRAWN_FACES: "drawn faces",
    "omniglot": "Omniglot",
    "openbandit": "Open Bandit",
    "movielens": "MovieLens",
    "the-movies": "The Movies",
    "table": "Table",
    "sines": "Sines",
    "branin": "Branin",
    "hartmann6": "Hartmann 6",
}
"""Datasets in the order they are shown, with their names in words."""
CONTINUUM = ("sines", "branin", "hartmann6")
NEAR = 0.98  # of the reward of an exhaustive search is near enough
MET, MISSED, UNDECIDED = "met", "missed", "undecided"
ENOUGH_SEEDS = 10  # a comparison with fewer says how many it has

# Two-sided 95 % quantiles of Student's t with 1, 2, ... degrees of freedom.
_T95 = (
    *(12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228),
    *(2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086),
    *(2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042),
)


@dataclass(frozen=True)
class Setting:
    """A dataset with its options."""

    dataset: str
    options: tuple[tuple[str, str], ...] = ()

    @property
    def label(self) -> str:
        """Name it in words, with the options that were set."""
        said = [f"{name} {value}" for name, value in self.options if value != "simulator"]
        if is_simulated(self.dataset, dict(self.options)):
            said.insert(0, "simulator")
        name = DATASETS.get(self.dataset, self.dataset)
        return f"{name} ({', '.join(said)})" if said else name

    @property
    def sort_key(self) -> tuple[Any, ...]:
        """Return the sorting key: datasets as listed, plain ones before those with options."""
        known = list(DATASETS)
        number = known.index(self.dataset) if self.dataset in known else len(known)
        return (number, self.dataset, len(self.options), self.options)


@dataclass(frozen=True)
class Estimate:
    """A mean over seeds, and half of its 95 % t-interval; None with a single seed."""

    mean: float
    half: float | None


@dataclass(frozen=True)
class Curve:
    """A mean over seeds at the ends of batches, and half the width of its band."""

    rounds: Floats
    mean: Floats
    half: Floats | None


@dataclass(frozen=True, eq=False)
class Standing:
    """How one policy did in one setting with one preset and one length of play."""

    setting: Setting
    preset: str
    policy: str
    runs: tuple[Result, ...]

    @cached_property
    def by_seed(self) -> dict[int, Result]:
        """One run for each seed: rewards of a seed count once, whatever devices it ran on."""
        found: dict[int, Result] = {}
        for run in sorted(self.runs, key=lambda run: (run["seed"], str(run.get("device")))):
            found.setdefault(run["seed"], run)
        return found

    @property
    def rounds(self) -> int:
        """The rounds that were played: a dataset may end before those that were asked for."""
        return played(self.runs[0])

    @property
    def batch(self) -> int:
        return int(self.runs[0]["batch"])

    @property
    def arms(self) -> int | None:
        """The number of arms; None for a continuum."""
        return self.runs[0].get("arms")

    @property
    def has_few_arms(self) -> bool:
        """Whether a scan is as quick as any search: how near one comes says nothing."""
        return self.arms is not None and self.arms <= FEW_ARMS

    @property
    def is_scan(self) -> bool:
        """Whether a search that may miss arms scored as many as there are."""
        return is_scan(self.policy, arms=self.arms, evaluations=self.mean("evaluations"))

    @property
    def share(self) -> Estimate | None:
        """The share of the best possible reward; None where the best is not positive."""
        return self.share_on(self.by_seed)

    def share_on(self, seeds: Iterable[int]) -> Estimate | None:
        """Return that share over some of the seeds."""
        shares = [share_of(self.by_seed[seed]) for seed in seeds]
        return None if None in shares else estimate([s for s in shares if s is not None])

    @property
    def regret(self) -> Estimate:
        return estimate([sum(r["best"]) - sum(r["earned"]) for r in self.by_seed.values()])

    @property
    def lowest_quality(self) -> float | None:
        known = [run["quality"] for run in self.runs if run.get("quality") is not None]
        return min(known, default=None)

    def mean(self, measure: str) -> float | None:
        """Average a number of the result files over all runs that have it."""
        known = [run[measure] for run in self.runs if run.get(measure) is not None]
        return float(np.mean(known)) if known else None

    def by_device(self, measure: str) -> dict[str, float]:
        """Average a time over the runs of each device: times of two are never mixed."""
        devices = sorted({str(run.get("device", "cpu")) for run in self.runs})
        found = {}
        for device in devices:
            mine = [r for r in self.runs if str(r.get("device", "cpu")) == device]
            known = [run[measure] for run in mine if run.get(measure) is not None]
            if known:
                found[device] = float(np.mean(known))
        return found

    def reward_curve(self) -> Curve:
        """Return the cumulative expected reward."""
        return self._curve(lambda run: np.cumsum(run["earned"]))

    def regret_curve(self) -> Curve:
        """Return what the best arms would have earned beyond it."""
        return self._curve(lambda run: np.cumsum(run["best"]) - np.cumsum(run["earned"]))

    def best_curve(self) -> Curve:
        """Return the cumulative expected reward of the best arms."""
        return self._curve(lambda run: np.cumsum(run["best"]))

    def _curve(self, heights: Callable[[Result], Floats]) -> Curve:
        table = np.stack([heights(run) for run in self.by_seed.values()])
        ends = np.minimum(self.batch * np.arange(1, table.shape[1] + 1), self.rounds)
        half = None
        if len(table) > 1:
            half = t_quantile(len(table)) * table.std(axis=0, ddof=1) / np.sqrt(len(table))
        return Curve(ends.astype(float), table.mean(axis=0), half)


def setting_of(result: Result) -> Setting:
    """Return the dataset and options of a result."""
    options = result.get("options") or {}
    return Setting(data_of(result), tuple(sorted((k, str(v)) for k, v in options.items())))


def standings_of(results: Iterable[Result]) -> list[Standing]:
    """Group the played runs by setting, preset, policy and length, in the order they are shown."""
    groups: dict[tuple[Any, ...], list[Result]] = {}
    for run in results:
        if run["kind"] == "play":
            key = (setting_of(run), run["preset"], run["policy"], played(run), run["batch"])
            groups.setdefault(key, []).append(run)
    found = [Standing(key[0], key[1], key[2], tuple(runs)) for key, runs in groups.items()]
    return sorted(found, key=_sort_key)


def _sort_key(standing: Standing) -> tuple[Any, ...]:
    preset = (standing.preset != "default", standing.preset)
    length = (-standing.rounds, -standing.batch)
    return (standing.setting.sort_key, preset, policy_sort_key(standing.policy), length)


def policy_sort_key(policy: str) -> tuple[int, str]:
    """Return the sorting key of a policy."""
    known = list(STYLES)
    return (known.index(policy) if policy in known else len(known), policy)


def longest(standings: Iterable[Standing]) -> list[Standing]:
    """Keep the longest play of each policy in each setting with each preset."""
    found: dict[tuple[Any, ...], Standing] = {}
    for standing in standings:
        found.setdefault((standing.setting, standing.preset, standing.policy), standing)
    return list(found.values())


def played(run: Result) -> int:
    """Return the number of rounds that a run played."""
    return int(run["played"] if "played" in run else run["rounds"])


def share_of(run: Result, batches: int | None = None) -> float | None:
    """Return the share of the best possible reward that a run earned in its first batches."""
    best = sum(run["best"][:batches])
    return sum(run["earned"][:batches]) / best if best > 0 else None


def late_share_of(run: Result) -> float | None:
    """Return the share of the best possible reward that a run earned in its last quarter."""
    first = len(run["best"]) - max(1, len(run["best"]) // 4)
    best = sum(run["best"][first:])
    return sum(run["earned"][first:]) / best if best > 0 else None


def paired_shares(one: Standing, two: Standing) -> tuple[list[float], list[float]] | None:
    """Return the shares of two policies, seed by seed; all there are where they share no seed."""
    seeds = [seed for seed in one.by_seed if seed in two.by_seed]
    batches = None
    if one.batch == two.batch:
        batches = min(len(run["best"]) for run in (*one.runs, *two.runs))
    pair = []
    for standing in (one, two):
        runs = [standing.by_seed[seed] for seed in seeds] or list(standing.by_seed.values())
        shares = [share_of(run, batches) for run in runs]
        pair.append([share for share in shares if share is not None])
        if len(pair[-1]) < len(shares):
            return None
    return pair[0], pair[1]


def yardstick_of(policy: str) -> str | None:
    """Name the exhaustive search with the same exploration as a policy that has one."""
    family, _, exploration = policy.partition(" ")
    is_search = family in ("Exhaust", "FastBandit", "GANBandit") and exploration in ("TS", "UCB")
    return f"Exhaust {exploration}" if is_search else None


def of_exhaust(standing: Standing, others: Iterable[Standing]) -> Estimate | None:
    """Return the share ÷ that of the exhaustive search in the same setting with the same preset.

    The interval is over pairs: the seeds that both played.
    """
    name = yardstick_of(standing.policy)
    wanted = (standing.setting, standing.preset, name)
    exhaust = next((o for o in others if (o.setting, o.preset, o.policy) == wanted), None)
    pair = None if exhaust is None else paired_shares(standing, exhaust)
    if exhaust is None or pair is None or sum(pair[1]) <= 0:
        return None
    mean = float(np.mean(pair[1]))
    ratio = float(np.mean(pair[0])) / mean
    half = None
    if exhaust is not standing and exhaust.by_seed.keys() & standing.by_seed.keys():
        half = estimate([mine - ratio * theirs for mine, theirs in zip(*pair, strict=True)]).half
    return Estimate(ratio, None if half is None else half / mean)


@dataclass(frozen=True)
class Bar:
    """What one policy should reach, as a multiple of another's share, and what came out.

    `gap` is by how much it was cleared, over the `seeds` that both played; `late` are the two
    shares in the last quarter of the rounds. Where a scan is as quick as the search, nothing is
    judged.
    """

    setting: Setting
    policy: str
    other: str
    need: float
    shares: tuple[float, float] | None
    gap: Estimate | None = None
    late: tuple[float, float] | None = None
    seeds: int = 0
    is_scan: bool = False

    @property
    def name(self) -> str:
        times = "" if self.need == 1.0 else f"{self.need:g} × "
        return f"{self.policy} ≥ {times}{self.other}"

    @property
    def verdict(self) -> str | None:
        """Met, missed or undecided; None where one of the two was not played."""
        return None if self.shares is None else verdict_of(self.gap)


def verdict_of(gap: Estimate | None) -> str:
    """Return met or missed where the 95 % interval of a gap is on one side of 0, else undecided."""
    if gap is None or gap.half is None:
        return UNDECIDED
    if gap.mean >= gap.half:
        return MET
    return MISSED if gap.mean < -gap.half else UNDECIDED


def seeds_text(seeds: int) -> str:
    """Return how many seeds a comparison has, where they are fewer than it should have."""
    if seeds >= ENOUGH_SEEDS:
        return ""
    return f" ({seeds} seed{'' if seeds == 1 else 's'})"


PAIRS = (
    ("GANBandit TS", "Exhaust TS", NEAR),
    ("GANBandit UCB", "Exhaust UCB", NEAR),
    ("Exhaust TS", "LinearTS", 1.0),
    ("Exhaust TS", "Overall best arm", 1.0),
    ("Exhaust TS", "Learned best arm", 1.0),
)


def bars_of(standings: Iterable[Standing]) -> list[Bar]:
    """Judge each setting's default runs; bars of settings without either policy are not given."""
    mine = [s for s in longest(standings) if s.preset == "default"]
    bars: list[Bar] = []
    for setting in dict.fromkeys(standing.setting for standing in mine):
        found = {s.policy: s for s in mine if s.setting == setting}
        fresh = list(_bars_in(setting, found))
        bars += fresh if any(bar.shares for bar in fresh) else []
    return bars


def _bars_in(setting: Setting, found: dict[str, Standing]) -> Iterator[Bar]:
    for policy, other, need in PAIRS:
        if policy not in found or other not in found:
            yield Bar(setting, policy, other, need, None)
        elif need == NEAR and found[policy].has_few_arms:
            yield Bar(setting, policy, other, need, None, is_scan=True)
        else:
            yield _bar(setting, found[policy], found[other], need)


def _bar(setting: Setting, one: Standing, two: Standing, need: float) -> Bar:
    pair = paired_shares(one, two)
    if pair is None:
        return Bar(setting, one.policy, two.policy, need, None)
    seeds = len([seed for seed in one.by_seed if seed in two.by_seed])
    gap = None
    if seeds:
        gap = estimate([mine - need * other for mine, other in zip(*pair, strict=True)])
    shares = (float(np.mean(pair[0])), float(np.mean(pair[1])))
    late = (_late(one), _late(two))
    return Bar(setting, one.policy, two.policy, need, shares, gap, late, seeds)


def _late(standing: Standing) -> float:
    known = [late for run in standing.by_seed.values() if (late := late_share_of(run)) is not None]
    return float(np.mean(known)) if known else 0.0


def estimate(values: list[float]) -> Estimate:
    """Average over seeds."""
    if len(values) < 2:
        return Estimate(float(values[0]), None)
    spread = float(np.std(values, ddof=1) / np.sqrt(len(values)))
    return Estimate(float(np.mean(values)), t_quantile(len(values)) * spread)


def t_quantile(seeds: int) -> float:
    """Return how many standard errors a 95 % interval reaches to each side."""
    freedom = seeds - 1
    if freedom <= len(_T95):
        return _T95[freedom - 1]
    z = 1.959964
    second = (5 * z**5 + 16 * z**3 + 3 * z) / (96 * freedom**2)
    return z + (z**3 + z) / (4 * freedom) + second

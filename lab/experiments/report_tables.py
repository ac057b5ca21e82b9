"""The tables of the report, as words: the page and docs/results.md show the same ones."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from lab.experiments import paper_figures
from lab.experiments.comparison import (
    NEAR,
    PAIRS,
    Bar,
    Estimate,
    Result,
    Setting,
    Standing,
    longest,
    of_exhaust,
    policy_sort_key,
    seeds_text,
    setting_of,
    yardstick_of,
)
from lab.experiments.policies import NINE
from lab.experiments.tables import SCANNED, markdown, number
from lab.printing import format_seconds
from lab.stamps import short

NONE = "–"


@dataclass(frozen=True)
class Table:
    """Words in columns, of which the first `names` are names and the others numbers."""

    headings: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    names: int = 1

    def to_markdown(self) -> str:
        """Format it as Markdown."""
        rows = [[word.replace("|", "\\|") for word in row] for row in self.rows]
        return markdown(self.headings, rows, words=self.names)


# -- what policies earned


def standings_table(standings: Sequence[Standing]) -> Table:
    """Return a table of how each policy did in one setting."""
    headings = (
        "policy",
        "share of best",
        "÷ Exhaust",
        "regret",
        "q",
        "lowest q",
        "evaluations",
        "look-ups",
        "ms per decision",
        "s per update",
        "seeds",
        "T",
        "code",
    )
    return Table(headings, tuple(_standing_row(each, standings) for each in standings))


def _standing_row(standing: Standing, others: Sequence[Standing]) -> tuple[str, ...]:
    commits = {short(run.get("commit")) for run in standing.runs}
    return (
        standing.policy,
        plus_minus(standing.share, ".3f"),
        SCANNED if standing.is_scan else plus_minus(of_exhaust(standing, longest(others)), ".3f"),
        plus_minus(standing.regret, ",.0f" if standing.regret.mean >= 100 else ",.1f"),
        quality_text(standing),
        SCANNED if standing.is_scan else number(standing.lowest_quality, ".4f"),
        number(standing.mean("evaluations"), ",.0f"),
        number(standing.mean("lookups"), ",.1f"),
        _by_device(standing.by_device("select_seconds"), 1e3),
        _by_device(standing.by_device("update_seconds"), 1.0),
        str(len(standing.by_seed)),
        f"{standing.rounds:,}",
        ", ".join(f"`{commit}`" for commit in sorted(commits)),
    )


def quality_text(standing: Standing) -> str:
    """Format the mean q of a search; one that scored all there is has none to speak of."""
    return SCANNED if standing.is_scan else number(standing.mean("quality"), ".4f")


def shares_table(standings: Iterable[Standing]) -> Table:
    """Return a table of shares: the nine policies with the default preset, a column a setting.

    Each column is of the seeds that those have which played the most; the last row counts them, and
    brackets the seeds of a policy that played fewer.
    """
    mine = [s for s in longest(standings) if s.preset == "default"]
    settings = plainest(s.setting for s in mine)
    found = {(s.policy, s.setting): s for s in mine if s.policy in NINE}
    seeds = {setting: common_seeds(mine, setting) for setting in settings}
    rows = []
    for policy in NINE:
        row = [found.get((policy, setting)) for setting in settings]
        if any(row):
            many = [s for s in row if s and not s.has_few_arms]
            known = [q for s in many if (q := s.mean("quality")) is not None]
            texts = [_share_text(s, seeds[s.setting]) if s else NONE for s in row]
            rows.append((policy, *texts, number(min(known, default=None), ".4f")))
    if rows:
        rows.append(("seeds", *(str(len(seeds[setting])) for setting in settings), NONE))
    labels = (setting.label for setting in settings)
    return Table(("share of the best possible reward", *labels, "q at least"), tuple(rows))


def common_seeds(standings: Iterable[Standing], setting: Setting) -> list[int]:
    """Return the seeds that those of the nine policies share which played the most."""
    nine = (s for s in standings if s.setting == setting and s.policy in NINE)
    played = [set(standing.by_seed) for standing in nine]
    full = [seeds for seeds in played if len(seeds) == max(map(len, played))]
    return sorted(set.intersection(*full)) if full else []


def _share_text(standing: Standing, seeds: Sequence[int]) -> str:
    mine = [seed for seed in seeds if seed in standing.by_seed] or [*standing.by_seed]
    share = standing.share_on(mine)
    return NONE if share is None else f"{share.mean:.3f}" + f" ({len(mine)})" * (mine != seeds)


def plainest(settings: Iterable[Setting]) -> list[Setting]:
    """Keep one setting of each dataset: the one with the fewest options."""
    chosen: dict[str, Setting] = {}
    for setting in sorted(set(settings), key=lambda setting: setting.sort_key):
        chosen.setdefault(setting.dataset, setting)
    return list(chosen.values())


def bars_table(bars: Sequence[Bar]) -> Table:
    """Return a table of which bars were met, a row for each setting."""
    by_policies = {(bar.setting, bar.policy, bar.other): bar for bar in bars}
    headings = [Bar(Setting(""), *pair, shares=None).name for pair in PAIRS]
    rows = [
        (
            setting.label,
            *(_bar_text(by_policies[setting, policy, other]) for policy, other, _ in PAIRS),
        )
        for setting in dict.fromkeys(bar.setting for bar in bars)
    ]
    return Table(("dataset", *headings), tuple(rows))


def _bar_text(bar: Bar) -> str:
    if bar.shares is None:
        return SCANNED if bar.is_scan else NONE
    one, two = bar.shares
    half = None if bar.gap is None else bar.gap.half
    if bar.need == NEAR and two > 0:
        shown = plus_minus(Estimate(one / two, None if half is None else half / two), ".3f")
    else:
        shown = f"{one:.3f}, {two:.3f}, {plus_minus(Estimate(one - bar.need * two, half), '+.3f')}"
    return f"{bar.verdict}: {shown}{seeds_text(bar.seeds)}"


# -- what a choice and an update cost


def measured(results: Iterable[Result]) -> dict[tuple[Setting, str], Result]:
    """Return the medians of repeated measurements of each setting and policy, in their order."""
    groups: dict[tuple[Setting, str], list[Result]] = {}
    for result in sorted(
        results,
        key=lambda r: (
            setting_of(r).sort_key,
            _exploration(r["policy"]),
            policy_sort_key(r["policy"]),
        ),
    ):
        groups.setdefault((setting_of(result), result["policy"]), []).append(result)
    return {key: _medians(mine) for key, mine in groups.items()}


def _medians(results: Sequence[Result]) -> Result:
    merged = dict(results[0])
    for measure in ("single", "request", "batch", "train"):
        known = [r[measure] for r in results if r.get(measure) is not None]
        merged[measure] = median(known) if known else None
    return merged


def runtime_table(results: Iterable[Result], qualities: dict[tuple[Setting, str], str]) -> Table:
    """Return a table of seconds beside the printed ones; ratios are measured ÷ printed."""
    found = measured(results)
    has_request = any(result["request"] is not None for result in found.values())
    rows = []
    for (setting, policy), result in found.items():
        printed = paper_figures.printed(setting.dataset, policy)
        beside = zip((result["single"], result["batch"]), printed, strict=True)
        single, batch = (_beside(mine, theirs) for mine, theirs in beside)
        request = [_seconds(result["request"])] if has_request else []
        arms = "continuum" if result.get("arms") is None else f"{result['arms']:,}"
        ends = (_seconds(result["train"]), qualities.get((setting, policy), NONE))
        rows.append((setting.label, policy, arms, *single, *request, *batch, *ends))
    headings = ["dataset", "policy", "arms", "Single", "paper", "ratio"]
    headings += ["Request"] if has_request else []
    headings += ["Batch", "paper", "ratio", "Train", "q"]
    return Table(tuple(headings), tuple(rows), names=2)


def speedup_table(results: Iterable[Result]) -> Table:
    """Return a table of how many times as fast as the exhaustive search each other one is."""
    found = measured(results)
    rows = []
    for (setting, policy), result in found.items():
        yardstick = yardstick_of(policy)
        exhaust = found.get((setting, yardstick or ""))
        if exhaust is None or yardstick is None or policy == yardstick:
            continue
        mine = paper_figures.printed(setting.dataset, policy)
        theirs = paper_figures.printed(setting.dataset, yardstick)
        cells = []
        for column, measure in enumerate(("single", "batch")):
            cells += [times(_over(exhaust[measure], result[measure]))]
            cells += [times(_over(theirs[column], mine[column]))]
        cells.append(times(_over(result["train"], exhaust["train"])))
        rows.append((setting.label, policy, *cells))
    headings = ("dataset", "policy", "Single", "paper's", "Batch", "paper's", "Train takes")
    return Table(headings, tuple(rows), names=2)


def averages_table(results: Iterable[Result]) -> Table:
    """Return a table of averages over the datasets of the paper, beside those it prints."""
    groups: dict[str, list[Result]] = {}
    for (setting, policy), result in measured(results).items():
        is_printed = setting.dataset in paper_figures.DATASETS and not result.get("options")
        if is_printed and policy in paper_figures.AVERAGES:
            groups.setdefault(policy, []).append(result)
    rows = []
    for policy, mine in groups.items():
        cells = []
        measures = zip(("single", "batch", "train"), paper_figures.AVERAGES[policy], strict=True)
        for measure, theirs in measures:
            known = [r[measure] for r in mine if r[measure] is not None]
            mean = sum(known) / len(known) if known else None
            cells += _beside(mean, theirs)
        rows.append((policy, str(len({r["dataset"] for r in mine})), *cells))
    headings = ["policy", "datasets"]
    for measure in ("Single", "Batch", "Train"):
        headings += [measure, "paper", "ratio"]
    return Table(tuple(headings), tuple(rows))


def training_table(results: Iterable[Result]) -> Table:
    """Return a table of update times of GANBandit ÷ those of Exhaust, beside those of the paper."""
    rows = []
    for result in sorted(
        results, key=lambda r: (_preset_sort_key(r["preset"]), setting_of(r).sort_key)
    ):
        row = [setting_of(result).label, result["preset"]]
        for exploration in ("TS", "UCB"):
            ratio, seconds = (
                result["ratios"].get(k) for k in (exploration, f"{exploration} seconds")
            )
            row += [number(ratio, ".2f"), " ÷ ".join(map(_seconds, seconds or ())) or NONE]
        rows.append(tuple(row))
    if rows:
        averages = paper_figures.AVERAGES
        row = ["the paper's average", "paper, as printed"]
        for exploration in ("TS", "UCB"):
            pair = (averages[f"GANBandit {exploration}"][2], averages[f"Exhaust {exploration}"][2])
            row += [f"{pair[0] / pair[1]:.2f}", " ÷ ".join(map(_seconds, pair))]
        rows.append(tuple(row))
    headings = ("dataset", "preset", "TS", "TS, times", "UCB", "UCB, times")
    return Table(headings, tuple(rows), names=2)


def scaling_table(results: Sequence[Result]) -> Table:
    """Return a table of seconds per selection by number of arms, the slope and the lowest q."""
    sizes = sorted({size for result in results for size in result["arms"]})
    rows = []
    for result in sorted(results, key=lambda r: policy_sort_key(r["policy"])):
        at = dict(zip(result["arms"], result["seconds"], strict=True))
        known = [q for q in result.get("quality") or () if q is not None]
        texts = [_seconds(at.get(size)) for size in sizes]
        known_slope = result.get("slope")
        half = result.get("slope_half")
        slope = plus_minus(
            known_slope if known_slope is None else Estimate(known_slope, half), ".2f"
        )
        rows.append((result["policy"], *texts, slope, number(min(known, default=None), ".4f")))
    return Table(("policy", *(f"N = {s:,}" for s in sizes), "slope", "lowest q"), tuple(rows))


# -- what a log says


@dataclass(frozen=True)
class Replay:
    """What a policy earned on a log, averaged over seeds; so are the ends of its interval."""

    setting: Setting
    preset: str
    policy: str
    seeds: int
    matches: float | None
    mean: float | None
    low: float | None
    high: float | None


def replays_of(results: Iterable[Result]) -> list[Replay]:
    """Average replayed logs over seeds."""
    groups: dict[tuple[Any, ...], list[Result]] = {}
    for result in results:
        key = (setting_of(result), result["preset"], result["policy"])
        groups.setdefault(key, []).append(result)
    found = []
    for (setting, preset, policy), runs in groups.items():
        matches, mean, low, high = (_mean(runs, m) for m in ("matches", "mean", "low", "high"))
        found.append(Replay(setting, preset, policy, len(runs), matches, mean, low, high))
    return sorted(
        found,
        key=lambda r: (r.setting.sort_key, _preset_sort_key(r.preset), policy_sort_key(r.policy)),
    )


def replays_table(replays: Iterable[Replay]) -> Table:
    """Return a table of what policies earned in the rounds of a log where they agree with it."""
    rows = tuple(
        (
            replay.policy,
            replay.preset,
            number(replay.mean, ".5f"),
            f"{number(replay.low, '.5f')} to {number(replay.high, '.5f')}",
            number(replay.matches, ",.0f"),
            str(replay.seeds),
        )
        for replay in replays
    )
    headings = ("policy", "preset", "mean reward", "95 % interval", "matches", "seeds")
    return Table(headings, rows, names=2)


# -- words


def times(ratio: float | None) -> str:
    """Format a ratio with three digits."""
    if ratio is None:
        return NONE
    return f"{ratio:,.0f}×" if ratio >= 100 else f"{ratio:.3g}×"


def plus_minus(found: Estimate | None, form: str) -> str:
    """Format a mean with half of its interval, where that is known."""
    if found is None:
        return NONE
    about = "" if found.half is None else f" ± {format(found.half, form.lstrip('+'))}"
    return f"{format(found.mean, form)}{about}"


def _by_device(found: dict[str, float], scale: float) -> str:
    texts = {device: _three_digits(scale * seconds) for device, seconds in found.items()}
    if len(texts) == 1:
        return next(iter(texts.values()))
    return ", ".join(f"{word} ({device})" for device, word in texts.items()) or NONE


def _three_digits(number: float) -> str:
    if number < 0.001:
        return "<0.001"
    return f"{number:.3g}" if number < 100 else f"{number:,.0f}"


def _beside(mine: float | None, theirs: float | None) -> list[str]:
    ratio = _over(mine, theirs)
    return [_seconds(mine), _seconds(theirs), NONE if ratio is None else _three_digits(ratio)]


def _over(one: float | None, two: float | None) -> float | None:
    return None if one is None or not two else one / two


def _seconds(seconds: float | None) -> str:
    return NONE if seconds is None else format_seconds(seconds)


def _mean(results: Sequence[Result], measure: str) -> float | None:
    known = [result[measure] for result in results if result.get(measure) is not None]
    return sum(known) / len(known) if known else None


def _exploration(policy: str) -> bool:
    return policy.endswith("UCB")


def _preset_sort_key(preset: str) -> tuple[bool, str]:
    return (preset != "default", preset)

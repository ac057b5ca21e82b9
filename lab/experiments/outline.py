"""What the report says, and in which order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from lab.experiments.comparison import (
    CONTINUUM,
    ENOUGH_SEEDS,
    MET,
    MISSED,
    NEAR,
    UNDECIDED,
    Bar,
    Curve,
    Result,
    Setting,
    Standing,
    bars_of,
    longest,
    of_exhaust,
    standings_of,
    yardstick_of,
)
from lab.experiments.figures import BEST, Dot, Line, draw_curves, draw_dots
from lab.experiments.outline_times import (
    replay_section,
    runtime_section,
    scaling_section,
    training_section,
)
from lab.experiments.policies import NEURAL
from lab.experiments.report_drift import drift_table, drift_text, is_drifting
from lab.experiments.report_tables import (
    bars_table,
    plainest,
    replays_of,
    shares_table,
    standings_table,
)
from lab.experiments.results import FEW_ARMS
from lab.experiments.sections import Block, Notes, Section, Sketch, file_name, stem_of


def outline(results: Sequence[Result]) -> list[Section]:
    """Arrange everything that the results say; what was not measured has no section."""
    standings = standings_of(results)
    kinds = {kind: [r for r in results if r["kind"] == kind] for kind in _KINDS}
    drifting = [s for s in standings if is_drifting(s.setting)]
    still = [s for s in standings if not is_drifting(s.setting)]
    catalogue = [s for s in still if not _is_continuum(s)]
    continuum = [s for s in still if _is_continuum(s)]
    found = [
        *_bars_section(bars_of(standings)),
        *_overview(standings),
        *_plays_section("Datasets", (_DATASETS,), catalogue),
        *_plays_section("Continuum", (_CONTINUUM_TEXT,), continuum),
        *_plays_section("Drift", (drift_text(drifting), drift_table(standings)), drifting),
        *replay_section(replays_of(kinds["replay"])),
        *runtime_section(kinds["runtime"], standings),
        *scaling_section(kinds["scaling"]),
        *training_section(kinds["training"]),
    ]
    return [*found, Section("How to read this", (Notes(READING),))]


_KINDS = ("play", "replay", "training", "runtime", "scaling")

READING = (
    "Share of best: expected reward earned ÷ that of the best arm in every round. The first "
    "batch, of which no policy has learned yet, counts too. ± is half of the 95 % t-interval over "
    "seeds; with one seed there is none.",
    "÷ Exhaust: that share over the one of the exhaustive search with the same exploration and "
    "preset, on the seeds and rounds that both played; ± is of the pairs.",
    "Regret: what the best arms would have earned beyond what was earned.",
    "q: (score of the chosen arm - mean score) ÷ (best score - mean score) under the same draw "
    "or bound, on 50 contexts of each batch after the first; 1 is the arm that an exhaustive "
    "search takes. Of arms that fill a box it sees a sample of points: a search that "
    "climbs can beat that, and q be above 1. Lowest q: that of the worst run.",
    f"Scanned: a set has at most {FEW_ARMS:,} arms, which the default scans by Thompson sampling, "
    "and the search made at least as many evaluations as there are arms: its q would say nothing.",
    "Drawn faces are synthetic pictures in the layout of CelebA. A simulator is a model that was "
    "fitted to a log: its rewards are the model's.",
    "Evaluations and look-ups: arms scored by the network, and searches of the index, for each "
    "decision.",
    "ms per decision in a batch, and s per update, are medians within a run, of processor time "
    "where that decides. Runs share a machine: read ratios, not seconds.",
    "T: the rounds that were played. Code: the commits that the runs of a row were made with.",
)
_DATASETS = "All policies meet the same contexts and the same noise in every round."
_CONTINUUM_TEXT = (
    "Arms that fill a box: there is no catalogue, and nothing to score exhaustively. The best "
    "possible is the highest value of the function."
)


# -- bars and overview


def _bars_section(bars: Sequence[Bar]) -> Iterator[Section]:
    if not bars:
        return
    judged = [bar for bar in bars if bar.verdict is not None]
    met, missed, undecided = (
        [bar for bar in judged if bar.verdict == verdict] for verdict in (MET, MISSED, UNDECIDED)
    )
    summary = (
        f"{len(met)} of {len(judged)} bars are met, {len(missed)} missed and {len(undecided)} "
        f"undecided, with the default preset."
    )
    if missed:
        summary += " Missed: " + "; ".join(f"{b.name} on {b.setting.label}" for b in missed) + "."
    meaning = (
        f"A search should keep at least {NEAR:g} of what the exhaustive one earns (the number is "
        f"the ratio of the two), and the exhaustive one should earn no less than a linear model "
        f"or one arm for all (the numbers are the two shares and their difference). A bar is met "
        f"or missed where the 95 % interval of the difference, over seeds that both played, is on "
        f"one side of it; inside it is undecided. Fewer than {ENOUGH_SEEDS} seeds are counted in "
        f"brackets, and one has no interval (±). Sets of "
        f"at most {FEW_ARMS:,} arms, which the default scans, do not judge a search (scanned). "
        f"Overall best arm knows all rewards beforehand; Learned best arm has to learn, like the "
        f"others."
    )
    late = _late_text([*missed, *undecided])
    yield Section("Bars", (summary, meaning, bars_table(bars), *([late] if late else ())))


def _late_text(unmet: Sequence[Bar]) -> str:
    """Return how one arm for all and what did not meet it compare once most is learned."""
    found = [
        f"{bar.setting.label} {bar.late[0]:.3f}, {bar.late[1]:.3f}"
        for bar in unmet
        if bar.other == "Overall best arm" and bar.late is not None
    ]
    if not found:
        return ""
    return (
        "In the last quarter of the rounds alone, the shares of Exhaust TS and Overall best arm "
        "are, where that bar is not met: " + "; ".join(found) + "."
    )


def _overview(standings: Sequence[Standing]) -> Iterator[Section]:
    table = shares_table(standings)
    if table.rows:
        text = (
            f"Default preset, mean over the seeds that the last row counts; a policy that played "
            f"fewer has them in brackets, and is not side by side with the others. q at "
            f"least: the lowest mean q of the datasets with more than "
            f"{FEW_ARMS:,} arms, or a continuum of them."
        )
        yield Section("At a glance", (text, *_ratio_sketch(standings), table))


def _ratio_sketch(standings: Sequence[Standing]) -> Iterator[Sketch]:
    mine = [s for s in longest(standings) if s.preset == "default"]
    settings = plainest(s.setting for s in mine)
    dots = []
    for standing in (s for setting in settings for s in mine if s.setting == setting):
        ratio = of_exhaust(standing, mine)
        if standing.has_few_arms:
            continue
        if ratio is not None and yardstick_of(standing.policy) != standing.policy:
            dots.append(Dot(standing.setting.label, standing.policy, ratio.mean))
    if dots:
        yield Sketch(
            "of-exhaust",
            "Reward of FastBandit and GANBandit as a share of the exhaustive search's, by dataset.",
            f"Reward ÷ that of the exhaustive search with the same exploration. Dashed: {NEAR:g}.",
            lambda: draw_dots(dots, xlabel="Reward ÷ Exhaust", near=NEAR),
        )


# -- what policies earned


def _is_continuum(standing: Standing) -> bool:
    return standing.setting.dataset in CONTINUUM or standing.arms is None


def _plays_section(
    title: str, blocks: tuple[Block, ...], standings: Sequence[Standing]
) -> Iterator[Section]:
    settings = dict.fromkeys(standing.setting for standing in standings)
    parts = [_setting_section(w, [s for s in standings if s.setting == w]) for w in settings]
    if parts:
        yield Section(title, blocks, tuple(parts))


def _setting_section(setting: Setting, standings: Sequence[Standing]) -> Section:
    plain = [s for s in standings if s.preset == "default"]
    shared = [s for s in plain if _is_free_of_presets(s)]
    blocks: list[Block] = [_settings(plain or standings)]
    if plain:
        blocks += [*_curve_sketches(setting, "default", plain), standings_table(plain)]
    notes = dict.fromkeys(n for s in standings for run in s.runs for n in run.get("notes") or ())
    if lines := (*notes, *_exact_index(standings)):
        blocks.append(Notes(lines))
    parts = []
    for preset in dict.fromkeys(s.preset for s in standings if s.preset != "default"):
        mine = [s for s in standings if s.preset == preset]
        drawn = _curve_sketches(setting, preset, [*shared, *mine])
        title = f"{setting.label} with the preset {preset}"
        content: tuple[Block, ...] = (_settings(mine), *drawn, standings_table(mine))
        parts.append(Section(title, content, is_folded=True))
    return Section(setting.label, tuple(blocks), tuple(parts))


def _is_free_of_presets(standing: Standing) -> bool:
    """Say whether no network is searched: such policies are the same with every preset."""
    return standing.policy not in NEURAL


def _settings(standings: Sequence[Standing]) -> str:
    first = standings[0]
    arms = "A continuum of arms" if first.arms is None else f"{first.arms:,} arms"
    lengths = " or ".join(dict.fromkeys(f"{s.rounds:,}" for s in standings))
    batches = " or ".join(dict.fromkeys(f"{s.batch:,}" for s in standings))
    devices = sorted({str(run.get("device", "cpu")) for s in standings for run in s.runs})
    alone = [s for s in standings if len(s.by_seed) == 1]
    summary = f"{arms}; {lengths} rounds in batches of {batches}; on {', '.join(devices)}."
    if len(alone) == len(standings):
        return f"{summary} One seed each, so there are no bands."
    if alone:
        return f"{summary} One seed, so no band: {', '.join(s.policy for s in alone)}."
    return summary


def _exact_index(standings: Sequence[Standing]) -> Iterator[str]:
    exact = [
        standing.policy
        for standing in standings
        if any(run.get("index") == "ExactIndex" for run in standing.runs)
    ]
    if exact:
        names = ", ".join(dict.fromkeys(exact))
        yield f"Some runs searched an exact index in place of an approximate one: {names}."


def _curve_sketches(
    setting: Setting, preset: str, standings: Sequence[Standing]
) -> Iterator[Sketch]:
    shown = longest(standings)
    stem = file_name(*stem_of(setting), preset)
    where = setting.label if preset == "default" else f"{setting.label}, preset {preset}"
    band = " Bands: 95 % over seeds." if any(len(s.by_seed) > 1 for s in shown) else ""

    def rewards() -> Any:
        lines = [_line(s.policy, s.reward_curve(), _share_label(s)) for s in shown]
        best = max(shown, key=lambda s: s.rounds)
        return draw_curves(
            [_line(BEST, best.best_curve(), BEST), *lines], ylabel="Cumulative expected reward"
        )

    def regrets() -> Any:
        lines = [
            _line(s.policy, s.regret_curve(), f"{s.policy}  {_short(s.regret.mean)}") for s in shown
        ]
        return draw_curves(lines, ylabel="Cumulative regret")

    reward_alt = f"Cumulative reward over rounds on {where}: {_ranking(shown)}."
    yield Sketch(f"{stem}-reward", reward_alt, f"{where}: reward; higher is better.{band}", rewards)
    regret_alt = f"Cumulative regret over rounds on {where}, the same runs."
    yield Sketch(f"{stem}-regret", regret_alt, f"{where}: regret; lower is better.{band}", regrets)


def _line(policy: str, curve: Curve, label: str) -> Line:
    def from_zero(values: Any) -> Any:
        return np.concatenate([[0.0], values])

    half = None if curve.half is None or policy == BEST else from_zero(curve.half)
    return Line(policy, from_zero(curve.rounds), from_zero(curve.mean), label, half)


def _share_label(standing: Standing) -> str:
    share = standing.share
    return standing.policy if share is None else f"{standing.policy}  {share.mean:.1%}"


def _ranking(standings: Sequence[Standing]) -> str:
    known = [(s.share.mean, s.policy) for s in standings if s.share is not None]
    best_first = sorted(known, key=lambda one: -one[0])
    return ", ".join(f"{policy} {share:.1%}" for share, policy in best_first) or "no shares"


def _short(number: float) -> str:
    return f"{number:,.0f}" if abs(number) >= 100 else f"{number:.3g}"

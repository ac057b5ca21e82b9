"""The report's sections on replayed logs, run time, scaling and training."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from lab.experiments import paper_figures
from lab.experiments.comparison import Result, Setting, Standing, longest
from lab.experiments.figures import Dot, Line, draw_dots, draw_scaling
from lab.experiments.report_tables import (
    Replay,
    averages_table,
    measured,
    quality_text,
    replays_table,
    runtime_table,
    scaling_table,
    speedup_table,
    training_table,
)
from lab.experiments.sections import Block, Section, Sketch, file_name, stem_of


def replay_section(replays: Sequence[Replay]) -> Iterator[Section]:
    """Show what policies earned on each log."""
    parts = []
    for setting in dict.fromkeys(replay.setting for replay in replays):
        mine = [r for r in replays if r.setting == setting]
        dots = [
            Dot("default", r.policy, r.mean, r.low, r.high)
            for r in mine
            if r.preset == "default" and r.mean is not None
        ]
        blocks: list[Block] = [replays_table(mine)]
        if dots:
            blocks.insert(0, _replay_sketch(setting, dots))
        parts.append(Section(f"{setting.label}, replayed", tuple(blocks)))
    if parts:
        text = (
            "Each policy is played on a log; only rounds where it chooses what the log chose "
            "count. Intervals are of one run, averaged over seeds where there are several: the "
            "log is the same, so seeds do not narrow them."
        )
        yield Section("Replayed logs", (text,), tuple(parts))


def _replay_sketch(setting: Setting, dots: Sequence[Dot]) -> Sketch:
    rows = [Dot(d.policy, d.policy, d.value, d.low, d.high) for d in dots]
    values = ", ".join(f"{dot.policy} {dot.value:.4f}" for dot in dots)
    return Sketch(
        file_name(*stem_of(setting), "replay"),
        f"Mean reward on the log of {setting.label} with 95 % intervals: {values}.",
        f"{setting.label}: mean reward of the matching rounds, with 95 % intervals.",
        lambda: draw_dots(rows, xlabel="Mean reward"),
    )


def runtime_section(results: Sequence[Result], standings: Sequence[Standing]) -> Iterator[Section]:
    """Show times beside the printed ones, a part for each machine and preset."""
    parts = []
    groups: dict[tuple[str, str], list[Result]] = {}
    for result in sorted(
        results, key=lambda r: (r["preset"] != "default", r["preset"], _machine(r))
    ):
        groups.setdefault((result["preset"], _machine(result)), []).append(result)
    for number, ((preset, machine), mine) in enumerate(groups.items()):
        qualities = {
            (s.setting, s.policy): quality_text(s)
            for s in reversed(longest(standings))
            if s.preset == preset
        }
        parts.append(_machine_section(number, preset, machine, mine, qualities))
    if parts:
        text = (
            "Seconds for one selection. Single: one request at a time, arms scored one at a time. "
            "Request: one request at a time, its arms scored together. Batch: many requests at "
            "once. Train: seconds for one update. q: from the plays above. The paper's "
            f"figures are those it prints, on a {paper_figures.MACHINE}; ratio is measured ÷ "
            "printed, on another machine, so read speed-ups, not seconds. Its averages are its "
            "own: they are not the means of its figures for each dataset."
        )
        yield Section("Run time", (text,), tuple(parts))


def _machine(result: Result) -> str:
    return str(result.get("machine") or result.get("device") or "an unnamed machine")


def _machine_section(
    number: int,
    preset: str,
    machine: str,
    results: Sequence[Result],
    qualities: dict[tuple[Setting, str], str],
) -> Section:
    blocks: list[Block] = []
    for measure in ("batch", "single"):
        blocks += _runtime_sketch(number, measure, machine, results)
    blocks.append(runtime_table(results, qualities))
    for text, table in (
        ("Times as fast as the exhaustive search of the same run:", speedup_table(results)),
        ("Averages over the datasets that the paper has:", averages_table(results)),
    ):
        blocks += [text, table] if table.rows else []
    requests = _from_to([r["requests"] for r in results if r.get("requests")])
    sizes = _from_to([r["batch_size"] for r in results if r.get("batch_size")])
    if requests and sizes:
        blocks.append(f"Requests timed: {requests}; in batches of {sizes}.")
    notes = dict.fromkeys(note for result in results for note in result.get("notes") or ())
    blocks += [f"Note: {note}." for note in notes]
    title = machine if preset == "default" else f"{machine}, preset {preset}"
    return Section(title, tuple(blocks), is_folded=preset != "default")


def _from_to(numbers: Sequence[int]) -> str:
    ends = dict.fromkeys((min(numbers), max(numbers))) if numbers else ()
    return " to ".join(f"{number:,}" for number in ends)


def _runtime_sketch(
    number: int, measure: str, machine: str, results: Sequence[Result]
) -> Iterator[Sketch]:
    dots = []
    for (setting, policy), result in measured(results).items():
        theirs = paper_figures.printed(setting.dataset, policy)[measure == "batch"]
        if result[measure]:
            dots.append(Dot(setting.label, policy, result[measure]))
        if result[measure] and theirs:
            dots.append(Dot(setting.label, policy, theirs, is_hollow=True))
    if dots:
        hollow = " Filled: measured. Hollow: printed in the paper."
        yield Sketch(
            f"runtime-{number}-{measure}",
            f"Seconds per selection, {measure.title()}, of each policy and dataset on {machine}.",
            f"Seconds per selection, {measure.title()}, on {machine}.{hollow}",
            lambda: draw_dots(dots, xlabel=f"Time per selection, {measure.title()}", is_log=True),
        )


def scaling_section(results: Sequence[Result]) -> Iterator[Section]:
    """Show times over the number of arms, a part for each device and preset."""
    groups: dict[tuple[str, str], list[Result]] = {}
    for result in sorted(results, key=lambda r: (r["preset"] != "default", r["preset"])):
        groups.setdefault((result["preset"], str(result.get("device", "cpu"))), []).append(result)
    parts = []
    for (preset, device), mine in groups.items():
        title = f"On {device}" if preset == "default" else f"On {device}, preset {preset}"
        blocks = (_scaling_sketch(preset, device, mine), scaling_table(mine))
        parts.append(Section(title, blocks, is_folded=preset != "default"))
    if parts:
        text = (
            "Seconds per selection as the catalogue grows. The slope is that of the line in the "
            "figure: 1 is proportional to the number of arms, 0 does not depend on it."
        )
        yield Section("Time over the number of arms", (text,), tuple(parts))


def _scaling_sketch(preset: str, device: str, results: Sequence[Result]) -> Sketch:
    lines = []
    for result in results:
        slope = result.get("slope")
        label = result["policy"] if slope is None else f"{result['policy']}  slope {slope:.2f}"
        arms, seconds = (np.array(result[name], dtype=float) for name in ("arms", "seconds"))
        lines.append(Line(result["policy"], arms, seconds, label))
    labels = "; ".join(line.label for line in lines)
    return Sketch(
        file_name("scaling", preset, device),
        f"Seconds per selection over the number of arms on {device}, both logarithmic: {labels}.",
        f"Time per selection on {device}; both axes are logarithmic.",
        lambda: draw_scaling(lines, ylabel="Time per selection"),
    )


def training_section(results: Sequence[Result]) -> Iterator[Section]:
    """Show what updates cost."""
    if results:
        text = "Update of GANBandit ÷ update of Exhaust, on the same data, in alternation."
        yield Section("Training time", (text, training_table(results)))

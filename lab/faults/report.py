"""docs/reliability.md from the results of campaigns: what was asked for, and what was measured.

A result is what a campaign prints with --json, in a file of the campaign's name.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import click

from fastbandit.errors import DataError
from lab.experiments.results import write_beside
from lab.experiments.tables import between_marks, markdown

MARKS = ("<!-- campaigns: written by python -m lab faults report -->", "<!-- end of campaigns -->")
Told = Mapping[str, Any]


class Row(NamedTuple):
    """One bar of a campaign: what it asks for, what was measured, and whether that is enough.

    Where nothing is asked for, `is_met` is None.
    """

    bar: str
    measured: str
    is_met: bool | None


def _power_cut(told: Told) -> Iterator[Row]:
    lost = f"{told['lost']} lost, {told['corrupt']} corrupt, {told['torn']} torn"
    found = (
        f"{told['cuts']:,} cuts, {told['acknowledged']:,} acknowledged events looked for: {lost}"
    )
    is_met = told["cuts"] >= 1000 and told["lost"] == told["corrupt"] == told["torn"] == 0
    yield Row("1,000 cuts: 0 acknowledged lost, 0 corrupt", found, is_met)


def _kills(told: Told) -> Iterator[Row]:
    lost = told["lost_decisions"] + told["lost_rewards"]
    found = (
        f"{told['rounds']} rounds, {told['decisions']:,} decisions and {told['rewards']:,} rewards "
        f"acknowledged: {lost} lost, {told['other_answers']} retries answered otherwise"
    )
    is_met = told["rounds"] >= 100 and lost == told["other_answers"] == told["odd_answers"] == 0
    yield Row("100 rounds of `kill -9`: 0 acknowledged events lost", found, is_met)
    found = f"{told['versions']} versions, {told['learned']:,} pairs: {len(told['faults'])} faults"
    yield Row("0 trained twice", found, not told["faults"])
    slowest = told["slowest_restart_seconds"]
    found = f"slowest of {told['restarts']}: {slowest:.2f} s"
    yield Row("answers within 2 s of a restart", found, slowest <= 2.0)


def _disk(told: Told) -> Iterator[Row]:
    for trial in told["service"]:
        faults = sum(trial[name] for name in ("unlogged", "kept", "unclear", "lost"))
        found = trial["skipped"] or (
            f"{trial['acknowledged']:,} acknowledged, {trial['refused']:,} refused, {faults} "
            f"faults, back after {trial['recovery_seconds']:.1f} s ({trial['means']})"
        )
        bar = f"{trial['name']}: no acknowledgement without a synced write, clear, no restart"
        yield Row(bar, found, not trial["skipped"] and faults == 0)
    learner = told["learner"]
    found = learner["skipped"] or (
        f"{learner['half']} half-made versions, back after {learner['recovery_seconds']:.1f} s"
    )
    bar = "the learner's disk is full: it says so, publishes nothing half, goes on"
    yield Row(bar, found, not learner["skipped"] and learner["half"] == 0)


def _swaps(told: Told) -> Iterator[Row]:
    wrong = told["unknown"] + told["mixed"]
    found = (
        f"{told['swaps']} swaps at {told['arms']:,} arms, {told['requests']:,} requests: "
        f"{told['failed']} failed, {wrong} mixed of {told['checked']:,} checked"
    )
    is_met = told["swaps"] >= 200 and told["failed"] == wrong == 0
    yield Row("200 swaps under load: 0 failed requests, 0 mixed versions", found, is_met)
    found = (
        f"{told['swapping_p99_ms']:.1f} ms / {told['steady_p99_ms']:.1f} ms = {told['slower']:.2f}"
    )
    yield Row("p99 ≤ 1.5 × steady", found, told["slower"] <= 1.5)
    yield Row(
        "memory < 2 % from swap 20 on", f"{100 * told['growth']:.2f} %", told["growth"] < 0.02
    )


def _overload(told: Told) -> Iterator[Row]:
    for one in told["pressed"]:
        share = one["goodput"] / one["peak"]
        found = (
            f"{one['goodput']:,.0f} of {one['peak']:,.0f} contexts/s = {share:.2f}; "
            f"{one['asked']:,.0f} requests/s due, {one['sent']:,.0f} sent; refusals p99 "
            f"{one['refused_p99_ms']:.0f} ms"
        )
        bar = (
            f"5 × capacity, {one['contexts']} a request: goodput ≥ 80 % of peak, refusals ≤ 250 ms"
        )
        is_fast = one["refused_p99_ms"] <= 250 and one["failed"] == one["blunt"] == 0
        yield Row(bar, found, share >= 0.8 and is_fast)
    grown = (told["rss_most"] - told["rss_before"]) / 2**20
    yield Row("memory bounded", f"{grown:+.0f} MiB", grown <= 128)
    kept = ", ".join(f"{count} × {status}" for status, count in told["rewards"].items())
    yield Row("rewards are taken meanwhile", kept, set(told["rewards"]) == {"200"})


def _throughput(told: Told) -> Iterator[Row]:
    quick = [one for one in told["loads"] if one["p99_ms"] <= 15.0] or told["loads"]
    best = max(quick, key=lambda one: one["per_second"])
    for one in sorted(told["loads"], key=lambda one: one is not best):
        ratio = one["per_second"] / one["bare_per_second"]
        found = (
            f"{one['per_second']:,.0f}/s, p50 {one['p50_ms']:.1f} ms, p99 {one['p99_ms']:.1f} ms; "
            f"{ratio:.2f} of a bare handler's {one['bare_per_second']:,.0f}/s"
        )
        is_met = one["p99_ms"] <= 15.0 and one["per_second"] >= 5_000 and one["failed"] == 0
        if one is best:
            bar = f"{told['arms']:,} arms: ≥ 5,000 selects/s, p99 ≤ 15 ms ({one['name']})"
            yield Row(bar, found, is_met)
        else:
            yield Row(f"the same with {one['name']}", found, None)
    found = f"{told['added_us']:.0f} µs on top of {told['choose_us']:.0f}"
    yield Row("the route adds ≤ 100 µs to a choice", found, told["added_us"] <= 100)


def _requests(told: Told) -> Iterator[Row]:
    faults = told["server_errors"] + told["tracebacks"]
    found = f"{told['requests']:,} requests, {told['garbage']} of raw garbage: {faults}"
    is_met = told["requests"] >= 50_000 and faults == 0
    yield Row("50,000 generated requests: 0 server errors, 0 tracebacks", found, is_met)
    yield Row(
        "every error names field, value and fix", f"{told['unfit']} do not", not told["unfit"]
    )


def _learning(told: Told) -> Iterator[Row]:
    shares = "; ".join(f"{one['service']:.3f} / {one['in_process']:.3f}" for one in told["results"])
    bar = f"h2, {told['arms']:,} arms, over HTTP: reward within 3 % of the in-process loop"
    yield Row(bar, f"{told['ratio']:.4f} ({shares})", told["ratio"] >= told["bar"])


def _cluster(told: Told) -> Iterator[Row]:
    lost = told["lost_decisions"] + told["lost_rewards"]
    found = (
        f"{told['minutes']:g} minutes, {sum(told['shots'].values())} kills and outages, "
        f"{told['decisions']:,} decisions and {told['rewards']:,} rewards: {lost} lost, "
        f"{told['doubled']} doubled"
    )
    is_whole = told["minutes"] >= 30 and lost == told["doubled"] == 0
    bar = "3 deciders and PostgreSQL, 30 minutes: 0 acknowledged events lost or doubled"
    yield Row(bar, found, is_whole and told["deciders"] >= 3)
    failed = told["failed_selects"]
    found = f"{failed} failed; the slowest took {told['slowest_select_seconds']:.1f} s"
    yield Row("0 failed selects through the client", found, failed == 0)
    found = f"{told['versions']} versions, {told['learned']:,} pairs: {len(told['faults'])} faults"
    yield Row("0 trained twice", found, not told["faults"])


def _publish(told: Told) -> Iterator[Row]:
    found = (
        f"slowest of {told['times']}: {told['slowest_seconds']:.1f} s, {told['under_load']} of "
        f"them under load"
    )
    is_met = told["slowest_seconds"] <= 10 and told["under_load"] == told["times"]
    yield Row(f"all {told['deciders']} deciders on a new version within 10 s", found, is_met)
    wrong = told["unknown"] + told["mixed"]
    found = (
        f"{told['requests']:,} requests: {told['failed']} failed, {wrong} mixed of "
        f"{told['checked']:,} checked"
    )
    yield Row("meanwhile 0 failed requests, 0 mixed answers", found, told["failed"] == wrong == 0)


def _trainers(told: Told) -> Iterator[Row]:
    found = (
        f"{told['times']} kills: had the turn within {max(told['turn_seconds']):.1f} s, published "
        f"within {told['slowest_seconds']:.1f} s"
    )
    bar = "two trainers: one waits, and takes over within 30 s of a kill"
    is_met = told["slowest_seconds"] <= 30 and told["waited"] == told["times"]
    yield Row(bar, found, is_met and told["together"] == 0)
    faults = len(told["faults"]) + told["missing"]
    yield Row(
        "no version twice, none missing", f"{told['versions']} versions: {faults}", not faults
    )


def _ray(told: Told) -> Iterator[Row]:
    shots = told["shots"]
    found = ", ".join(
        f"{name} {one['workers']} + {one['nodes']} ({one['runs']} runs)"
        for name, one in shots.items()
    )
    wrong = told["failed"] + told["other"]
    bar = "≥ 20 kills of Ray workers + nodes: jobs end by themselves, results as without"
    is_met = told["hits"] >= 20 and not wrong
    yield Row(bar, f"{told['hits']} kills: {found}; {len(wrong)} failed or other", is_met)
    found = f"{told['seen']:,} looks at parts after kills: {told['partial']} partial"
    yield Row("no partial file visible", found, told["partial"] == 0 and told["seen"] > 0)


CAMPAIGNS: dict[str, tuple[str, Callable[[Told], Iterator[Row]]]] = {
    "kills": ("rounds", _kills),
    "power-cut": ("cuts", _power_cut),
    "disk": ("", _disk),
    "swaps": ("swaps", _swaps),
    "overload": ("", _overload),
    "requests": ("", _requests),
    "throughput": ("", _throughput),
    "learning": ("", _learning),
    "cluster": ("minutes", _cluster),
    "publish": ("times", _publish),
    "trainers": ("times", _trainers),
    "ray": ("kills", _ray),
}
"""By name: the option that says how long a campaign is, and what turns its result into rows."""


def tables(folder: Path) -> str:
    """Write a table of all campaigns that have a result, and name those that have none."""
    lines: list[list[str]] = []
    missing = []
    for name, (option, rows) in CAMPAIGNS.items():
        path = folder / f"{name}.json"
        if not path.exists():
            missing.append(name)
            continue
        command, found = _read(path, option, rows)
        for number, row in enumerate(found):
            met = {True: "met", False: "**missed**", None: ""}[row.is_met]
            lines.append(["" if number else f"`{command}`", row.bar, row.measured, met])
    table = markdown(("campaign", "bar", "measured", ""), lines, words=4)
    return f"{table}\n\nNot run: {', '.join(missing)}." if missing else table


def _read(path: Path, option: str, rows: Callable[[Told], Iterator[Row]]) -> tuple[str, list[Row]]:
    """Give the command that was run, and the rows of its result."""
    command = f"python -m lab faults {path.stem}"
    try:
        told = json.loads(path.read_text(encoding="utf-8"))
        found = list(rows(told))
        return f"{command} --{option} {told[option]:g}" if option else command, found
    except (ValueError, KeyError, TypeError, ZeroDivisionError) as error:
        raise DataError(
            f"A result needs to be what `{command} --json` prints: {path} is not "
            f"({type(error).__name__}: {error}). Run the campaign again."
        ) from error


@click.command("report")
@click.argument("folder", type=click.Path(path_type=Path, exists=True, file_okay=False))
@click.option("--doc", type=click.Path(path_type=Path), help="A page with marks to write between.")
def report_command(folder: Path, doc: Path | None) -> None:
    """Turn the results of campaigns in FOLDER into a table, in the page DOC or on the screen."""
    table = tables(folder)
    if doc is None:
        click.echo(table)
        return
    try:
        text = between_marks(doc.read_text(encoding="utf-8"), table, marks=MARKS)
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"The page {doc} cannot be read: {error}. Name another.") from error
    write_beside(doc, text)
    click.echo(f"Written: {doc}")

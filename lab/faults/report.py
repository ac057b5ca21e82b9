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
from lab.stamps import package_trees, short, stamp_of

MARKS = ("<!-- campaigns: written by python -m lab faults report -->", "<!-- end of campaigns -->")
Run = Mapping[str, Any]


class Row(NamedTuple):
    """One bar of a campaign: what it asks for, what was measured, and whether that is enough.

    Where nothing is asked for, `is_met` is None.
    """

    bar: str
    measured: str
    is_met: bool | None


def _power_cut(run: Run) -> Iterator[Row]:
    lost = f"{run['lost']} lost, {run['corrupt']} corrupt, {run['torn']} torn"
    found = f"{run['cuts']:,} cuts, {run['acknowledged']:,} acknowledged events looked for: {lost}"
    is_met = run["cuts"] >= 10_000 and run["lost"] == run["corrupt"] == run["torn"] == 0
    yield Row("10,000 cuts: 0 acknowledged lost, 0 corrupt", found, is_met)


def _behind(run: Run) -> Iterator[Row]:
    found = f"{len(run['lags'])} versions, {run['train_seconds']:g} s each: {run['ratio']:.2f}"
    bar = "training slower than what arrives: lag ≤ 2 trainings"
    yield Row(bar, found, run["ratio"] <= 2.0)
    told = run["told_seconds"]
    found = "not tried" if told is None else f"{told:.1f} s after a version was due"
    yield Row("training hangs: told within a minute", found, told is not None and told <= 60.0)
    found = (
        f"{run['alone_seconds']:.1f} s of training, killed every {run['kill_seconds']:g} s: "
        f"{run['kills']} kills, {'the same' if run['same'] else 'another'} snapshot"
    )
    bar = "kills faster than training: it ends, as if never killed"
    yield Row(bar, found, run["same"] and run["kills"] > 1)


def _clock(run: Run) -> Iterator[Row]:
    found = (
        f"{run['steps']:,} steps, {run['restarts']} restarts, {run['boots']} boots, "
        f"{run['interactions']:,} interactions: {run['differ']} differ ({run['by_wall_clock']:,} "
        f"if the wall clock were trusted)"
    )
    bar = "500 steps of ± 1 s, 1 h or 1 day: joined as an oracle on the true time does"
    yield Row(bar, found, run["steps"] >= 500 and run["differ"] == 0 < run["by_wall_clock"])
    found = f"{run['noticed']:,} of {run['steps']:,}"
    yield Row("each step is noticed", found, run["noticed"] == run["steps"])


def _kills(run: Run) -> Iterator[Row]:
    lost = run["lost_decisions"] + run["lost_rewards"]
    hits = ", ".join(f"{count} of the {name}" for name, count in run["kills"].items())
    found = (
        f"{hits}; {run['decisions']:,} decisions and {run['rewards']:,} rewards acknowledged: "
        f"{lost} lost; {run['asked_again']:,} asked again, {run['other_answers']} answers differ"
    )
    is_met = run["rounds"] >= 1_000 and lost == run["other_answers"] == run["odd_answers"] == 0
    yield Row("1,000 rounds of `kill -9`: 0 acknowledged events lost", found, is_met)
    found = (
        f"{run['versions']:,} versions, {run['learned']:,} interactions: {len(run['faults'])} "
        f"faults, {run['orphans']} learners"
    )
    bar = "0 trained twice, 0 learners outlive their service"
    yield Row(bar, found, not run["faults"] and run["orphans"] == 0)
    rate = run["versions_per_minute"]
    yield Row("a version a minute", f"{rate:.2f} in {run['minutes']:.0f} minutes", rate >= 1)
    slowest = run["slowest_restart_seconds"]
    found = f"slowest of {run['restarts']}: {slowest:.2f} s"
    yield Row("answers within 2 s of a restart", found, slowest <= 2.0)


def _disk(run: Run) -> Iterator[Row]:
    for trial in run["service"]:
        faults = sum(trial[name] for name in ("unlogged", "unclear", "lost"))
        faults += trial["logged"] if "logged" in trial else trial["kept"]  # its name before
        found = trial["skipped"] or (
            f"{trial['acknowledged']:,} acknowledged, {trial['refused']:,} refused, {faults} "
            f"faults, back after {trial['recovery_seconds']:.1f} s ({trial['means']})"
        )
        bar = f"{trial['name']}: no acknowledgement without a synced write, clear, no restart"
        yield Row(bar, found, not trial["skipped"] and faults == 0)
    learner = run["learner"]
    found = learner["skipped"] or (
        f"{learner['half']} half-made versions, back after {learner['recovery_seconds']:.1f} s"
    )
    bar = "the learner's disk is full: it says so, publishes nothing half, goes on"
    yield Row(bar, found, not learner["skipped"] and learner["half"] == 0)


def _swaps(run: Run) -> Iterator[Row]:
    wrong = run["unknown"] + run["mixed"]
    found = (
        f"{run['swaps']} swaps at {run['arms']:,} arms, {run['requests']:,} requests: "
        f"{run['failed']} failed, {wrong} mixed of {run['checked']:,} checked"
    )
    is_met = run["swaps"] >= 200 and run["failed"] == wrong == 0
    yield Row("200 swaps under load: 0 failed requests, 0 mixed versions", found, is_met)
    found = f"{run['swapping_p99_ms']:.1f} ms / {run['steady_p99_ms']:.1f} ms = {run['slower']:.2f}"
    yield Row("p99 ≤ 1.5 × steady", found, run["slower"] <= 1.5)
    yield Row("memory < 2 % from swap 20 on", f"{100 * run['growth']:.2f} %", run["growth"] < 0.02)


def _overload(run: Run) -> Iterator[Row]:
    for one in run["pressed"]:
        share = one["goodput"] / one["peak"]
        found = (
            f"{one['goodput']:,.0f} of {one['peak']:,.0f} contexts/s = {share:.2f}; "
            f"{one['asked']:,.0f} requests/s due, {one['sent']:,.0f} sent; refusals p99 "
            f"{one['refused_p99_ms']:.0f} ms"
        )
        apart = ", a core for the load alone" if one.get("apart") else ""
        bar = (
            f"5 × capacity, {one['contexts']} a request{apart}: goodput ≥ 85 % of peak, refusals "
            f"≤ 100 ms"
        )
        is_fast = one["refused_p99_ms"] <= 100 and one["failed"] == one["blunt"] == 0
        yield Row(bar, found, share >= 0.85 and is_fast)
    grown = (run["rss_most"] - run["rss_before"]) / 2**20
    yield Row("memory bounded", f"{grown:+.0f} MiB", grown <= 128)
    answers = ", ".join(f"{count} × {status}" for status, count in run["rewards"].items())
    yield Row("rewards are taken meanwhile", answers, set(run["rewards"]) == {"200"})


def _throughput(run: Run) -> Iterator[Row]:
    quick = [one for one in run["loads"] if one["p99_ms"] <= 15.0] or run["loads"]
    best = max(quick, key=lambda one: one["per_second"])
    for one in sorted(run["loads"], key=lambda one: one is not best):
        ratio = one["per_second"] / one["bare_per_second"]
        found = (
            f"{one['per_second']:,.0f}/s, p50 {one['p50_ms']:.1f} ms, p99 {one['p99_ms']:.1f} ms; "
            f"{ratio:.2f} of a bare handler's {one['bare_per_second']:,.0f}/s"
        )
        is_met = one["p99_ms"] <= 15.0 and one["per_second"] >= 5_000 and one["failed"] == 0
        if one is best:
            bar = f"{run['arms']:,} arms: ≥ 5,000 selects/s, p99 ≤ 15 ms ({one['name']})"
            yield Row(bar, found, is_met)
        else:
            yield Row(f"the same with {one['name']}", found, None)
    found = f"{run['added_us']:.0f} µs on top of {run['choose_us']:.0f}"
    yield Row("the route adds ≤ 100 µs to a choice", found, run["added_us"] <= 100)


def _requests(run: Run) -> Iterator[Row]:
    faults = run["server_errors"] + run["tracebacks"]
    found = f"{run['requests']:,} requests, {run['garbage']} of raw garbage: {faults}"
    is_met = run["requests"] >= 500_000 and faults == 0
    yield Row("500,000 generated requests: 0 server errors, 0 tracebacks", found, is_met)
    yield Row("every error names field, value and fix", f"{run['unfit']} do not", not run["unfit"])


def _unauthenticated(run: Run) -> Iterator[Row]:
    steady = run["attacks"][0]["longest_ms"]
    for one in run["attacks"][1:]:
        grown = one["grown_bytes"] / 2**20
        found = (
            f"{one['connections']:,} connections, {one['bytes'] / 2**20:,.0f} MiB; longest answer "
            f"to others {one['longest_ms']:.0f} ms ({steady:.0f} without), {one['failed']} of "
            f"{one['asked']:,} failed; {grown:+.0f} MiB"
        )
        is_met = one["longest_ms"] <= 50 and grown <= 64 and one["failed"] == 0
        is_many = one["name"] != "slow" or one["connections"] >= 10_000
        bar = f"{one['name']} without a key: no stall over 50 ms, ≤ 64 MiB"
        yield Row(bar, found, is_met and is_many)


def _worst_request(run: Run) -> Iterator[Row]:
    for one in run["kinds"]:
        slower, grown = one["p99_ms"] / one["steady_p99_ms"], one["grown_bytes"] / 2**20
        found = (
            f"{one['bytes'] / 2**10:,.0f} KiB; {one['p99_ms']:.1f} ms / "
            f"{one['steady_p99_ms']:.1f} ms = {slower:.2f}; {grown:+.0f} MiB"
        )
        is_met = slower <= 3 and grown <= 100 and one["failed"] == 0
        bar = f"the largest permitted, {one['name']}: others' p99 ≤ 3 × steady, ≤ 100 MiB"
        yield Row(bar, found, is_met and set(one["answers"]) == {"200"})


def _flips(run: Run) -> Iterator[Row]:
    faults, pointers = run["unsaid"] + run["lost"] + run["reused"], run.get("pointers", 0)
    found = (
        f"{run['flips']} flips in any file: {run['older']} answered by an older version, "
        f"{pointers} of the pointer by the newest, {faults} without saying so, not at all or "
        f"under a number used again"
    )
    is_met = run["flips"] == run["older"] + pointers >= 200 and not faults
    bar = "200 flips of a bit of the newest version, restart: an older one answers, degraded said"
    yield Row(bar, found, is_met)
    found = f"slowest {run['slowest_seconds']:.1f} s; {run['whole_seconds']:.1f} s without a flip"
    yield Row("within 5 s", found, run["slowest_seconds"] <= 5.0)


def _mutants(run: Run) -> Iterator[Row]:
    found = (
        f"{run['mutants']:,} of {run['originals']} folders: {run['crashes']} crashes, "
        f"{run['hangs']} hangs, {run['untyped']} untyped; {run['refused']:,} refused, "
        f"{run['decided']:,} decided"
    )
    is_met = run["mutants"] >= 20_000 and run["crashes"] == run["hangs"] == run["untyped"] == 0
    bar = "20,000 changed folders, hashes made anew: 0 crashes, 0 hangs, 0 untyped errors"
    yield Row(bar, found, is_met)


def _learning(run: Run) -> Iterator[Row]:
    shares = "; ".join(f"{one['service']:.3f} / {one['in_process']:.3f}" for one in run["results"])
    bar = f"h2, {run['arms']:,} arms, over HTTP: reward within 3 % of the in-process loop"
    yield Row(bar, f"{run['ratio']:.4f} ({shares})", run["ratio"] >= run["bar"])


def _cluster(run: Run) -> Iterator[Row]:
    lost = run["lost_decisions"] + run["lost_rewards"]
    found = (
        f"{run['minutes']:g} minutes, {sum(run['shots'].values())} kills and outages, "
        f"{run['decisions']:,} decisions and {run['rewards']:,} rewards: {lost} lost, "
        f"{run['doubled']} doubled"
    )
    is_whole = run["minutes"] >= 30 and lost == run["doubled"] == 0
    bar = "3 deciders and PostgreSQL, 30 minutes: 0 acknowledged events lost or doubled"
    yield Row(bar, found, is_whole and run["deciders"] >= 3)
    failed = run["failed_selects"]
    found = f"{failed} failed; the slowest took {run['slowest_select_seconds']:.1f} s"
    yield Row("0 failed selects through the client", found, failed == 0)
    found = (
        f"{run['versions']} versions, {run['learned']:,} interactions: {len(run['faults'])} faults"
    )
    yield Row("0 trained twice", found, not run["faults"])


def _publish(run: Run) -> Iterator[Row]:
    found = (
        f"slowest of {run['times']}: {run['slowest_seconds']:.1f} s, {run['under_load']} of "
        f"them under load"
    )
    is_met = run["slowest_seconds"] <= 10 and run["under_load"] == run["times"]
    yield Row(f"all {run['deciders']} deciders on a new version within 10 s", found, is_met)
    wrong = run["unknown"] + run["mixed"]
    found = (
        f"{run['requests']:,} requests: {run['failed']} failed, {wrong} mixed of "
        f"{run['checked']:,} checked"
    )
    yield Row("meanwhile 0 failed requests, 0 mixed answers", found, run["failed"] == wrong == 0)


def _trainers(run: Run) -> Iterator[Row]:
    waits = run["lease_seconds"] if "lease_seconds" in run else run["turn_seconds"]  # before
    found = (
        f"{run['times']} kills: had the leader lease within {max(waits):.1f} s, published within "
        f"{run['slowest_seconds']:.1f} s"
    )
    bar = "two trainers: one waits, and takes over within 30 s of a kill"
    is_met = run["slowest_seconds"] <= 30 and run["waited"] == run["times"]
    yield Row(bar, found, is_met and run["together"] == 0)
    faults = len(run["faults"]) + run["missing"]
    yield Row("no version twice, none missing", f"{run['versions']} versions: {faults}", not faults)


def _ray(run: Run) -> Iterator[Row]:
    shots = run["shots"]
    found = ", ".join(
        f"{name} {one['workers']} + {one['nodes']} ({one['runs']} runs)"
        for name, one in shots.items()
    )
    wrong = run["failed"] + run["other"]
    bar = "≥ 20 kills of Ray workers + nodes: jobs end by themselves, results as without"
    is_met = run["hits"] >= 20 and not wrong
    yield Row(bar, f"{run['hits']} kills: {found}; {len(wrong)} failed or other", is_met)
    found = f"{run['seen']:,} looks at parts after kills: {run['partial']} partial"
    yield Row("no partial file visible", found, run["partial"] == 0 and run["seen"] > 0)


def _shared_log(run: Run) -> Iterator[Row]:
    for one in run["outages"]:
        lost = one["lost_decisions"] + one["lost_rewards"] + one["doubled"]
        wrong = one["late"] + one["wrong_labels"]
        found = (
            f"{one['decisions']:,} decisions ({one['degraded']:,} degraded): "
            f"{one['failed_selects']} failed, {lost} lost or doubled, {wrong} late or learned "
            f"wrongly; delivered {one['back_seconds']:.1f} s after"
        )
        bar = f"database: {one['name']}: 0 failed selects, 0 lost, no label made by the outage"
        yield Row(bar, found, one["failed_selects"] + lost + wrong == 0)
    if (large := run["large"]) is not None:
        slower = large["large_p99_ms"] / large["steady_p99_ms"]
        found = (
            f"{large['large_p99_ms']:.1f} / {large['steady_p99_ms']:.1f} ms = {slower:.2f}; "
            f"{large['failed']} failed, {large['stuck']} stuck; the slowest large one took "
            f"{large['slowest_large_seconds']:.1f} s"
        )
        is_met = slower <= 3 and large["failed"] == large["stuck"] == 0
        yield Row("largest requests: others' p99 ≤ 3 × steady, nothing stuck", found, is_met)
    if damaged := run["damaged"]:
        decider, trainer = (
            max(one[key] for one in damaged) for key in ("answered_seconds", "works_seconds")
        )
        found = f"{len(damaged)} starts: decider {decider:.1f} s, trainer {trainer:.1f} s"
        is_met = max(decider, trainer) <= 10 and all(one["is_said"] for one in damaged)
        bar = "a version in the store flipped or deleted, empty folders: work within 10 s, said"
        yield Row(bar, found, is_met)


def _workers(run: Run) -> Iterator[Row]:
    one, several = run["alone"], run["several"]
    bar = f"{several['workers']} workers beside one process, 4 connections each: 0 failed"
    found = (
        f"{several['per_second']:,.0f} and {one['per_second']:,.0f} selects/s = "
        f"{run['ratio']:.2f}; p99 {several['p99_ms']:.1f} and {one['p99_ms']:.1f} ms"
    )
    yield Row(bar, found, one["failed"] == several["failed"] == 0)
    busy = [*one["cpu_us"].items(), *several["cpu_us"].items(), *run["parts_us"].items()]
    names = ["one process", *several["cpu_us"], *run["parts_us"]]
    costs = ", ".join(f"{name} {us:.0f}" for name, (_, us) in zip(names, busy, strict=True))
    yield Row("µs of the processor for a select", costs, None)
    yield Row("16 cores, by that arithmetic", f"{run['on_16_cores']:,} selects/s", None)


CAMPAIGNS: dict[str, tuple[str, Callable[[Run], Iterator[Row]]]] = {
    "kills": ("rounds workers", _kills),
    "power-cut": ("cuts", _power_cut),
    "behind": ("", _behind),
    "clock": ("steps", _clock),
    "disk": ("", _disk),
    "flips": ("flips", _flips),
    "mutants": ("mutants", _mutants),
    "swaps": ("swaps", _swaps),
    "overload": ("", _overload),
    "requests": ("", _requests),
    "unauthenticated": ("", _unauthenticated),
    "worst-request": ("", _worst_request),
    "throughput": ("", _throughput),
    "learning": ("", _learning),
    "cluster": ("minutes", _cluster),
    "shared-log": ("", _shared_log),
    "publish": ("times", _publish),
    "trainers": ("times", _trainers),
    "ray": ("kills", _ray),
    "workers": ("", _workers),
}
"""By name: the options that say how long a campaign is, and what makes rows of its result."""


def tables(folder: Path) -> str:
    """Write a table of all campaigns that have a result, and name those that have none."""
    lines: list[list[str]] = []
    missing = []
    for name, (option, rows) in CAMPAIGNS.items():
        path = folder / f"{name}.json"
        if not path.exists():
            missing.append(name)
            continue
        command, code, found = _read(path, option, rows)
        for number, row in enumerate(found):
            met = {True: "met", False: "**missed**", None: ""}[row.is_met]
            first = ["", ""] if number else [f"`{command}`", code]
            lines.append([*first, row.bar, row.measured, met])
    table = markdown(("campaign", "code", "bar", "measured", ""), lines, words=5)
    return f"{table}\n\nNot run: {', '.join(missing)}." if missing else table


def _read(
    path: Path, option: str, rows: Callable[[Run], Iterator[Row]]
) -> tuple[str, str, list[Row]]:
    """Return the command that was run, the commit of its code, and the rows of its result."""
    command = f"python -m lab faults {path.stem}"
    try:
        run = json.loads(path.read_text(encoding="utf-8"))
        found = list(rows(run))
        given = "".join(f" --{one} {run[one]:g}" for one in option.split())
        return command + given, f"`{short(run.get('commit'))}`", found
    except (ValueError, KeyError, TypeError, ZeroDivisionError) as error:
        raise DataError(
            f"A result needs to be what `{command} --json` prints: {path} is not "
            f"({type(error).__name__}: {error}). Run the campaign again."
        ) from error


@click.command("report")
@click.argument("folder", type=click.Path(path_type=Path, exists=True, file_okay=False))
@click.option("--doc", type=click.Path(path_type=Path), help="A page with marks to write between.")
def report_command(folder: Path, doc: Path | None) -> None:
    """Write the results of campaigns in FOLDER as a table, in the page DOC or on the screen."""
    table = tables(folder)
    runs = [json.loads(path.read_text(encoding="utf-8")) for path in sorted(folder.glob("*.json"))]
    trees = package_trees((run.get("commit") for run in runs), Path(__file__).parents[2])
    states = "one state" if len(trees) == 1 else f"{len(trees)} states"
    table = f"{table}\n\n{stamp_of('python -m lab faults', runs)} The package was in {states}."
    if doc is None:
        click.echo(table)
        return
    try:
        text = between_marks(doc.read_text(encoding="utf-8"), table, marks=MARKS)
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"The page {doc} cannot be read: {error}. Name another.") from error
    write_beside(doc, text)
    click.echo(f"Written: {doc}")

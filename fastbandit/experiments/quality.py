"""The quality suite: does each search find the arm that an exhaustive one would?

One result file a run, whose path is its key: what exists is not run again.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import click
import numpy as np

from fastbandit.errors import SettingError
from fastbandit.experiments.policies import NAMES, NEURAL, player_for
from fastbandit.experiments.run import one_thread, run
from fastbandit.experiments.synthetic import FUNCTIONS, Synthetic
from fastbandit.presets import known_name
from fastbandit.progress import progress_bar

_TRAINING = "Training time"
_SLOW_FIRST = ("Exhaust UCB", "GANBandit UCB", "FastBandit UCB", "GANBandit TS")


@dataclass(frozen=True)
class Job:
    """One run of the suite."""

    function: str
    dim: int
    arms: int
    rounds: int
    batch: int
    policy: str
    preset: str
    seed: int

    def path(self, folder: Path) -> Path:
        """Give the file of this run's result."""
        place = f"{self.function}-d{self.dim}-n{self.arms}-t{self.rounds}-b{self.batch}"
        policy = self.policy.lower().replace(" ", "-")
        return folder / place / policy / f"{self.preset}-seed{self.seed}.json"


def run_job(job: Job, folder: Path) -> dict[str, Any]:
    """Run one job, or read what an earlier run of it wrote."""
    path = job.path(folder)
    if path.exists():
        return dict(json.loads(path.read_text()))
    started = time.perf_counter()
    found = _training_ratios(job) if job.policy == _TRAINING else _play(job)
    result = {**asdict(job), **found, "seconds": time.perf_counter() - started}
    path.parent.mkdir(parents=True, exist_ok=True)
    write_beside(path, json.dumps(result, indent=1, allow_nan=False))
    return result


def write_beside(path: Path, text: str) -> None:
    """Write a file beside its place, then rename it."""
    beside = path.with_name(f"{path.name}.{os.getpid()}.part")
    beside.write_text(text, encoding="utf-8")
    os.replace(beside, path)


def _play(job: Job) -> dict[str, Any]:
    environment = Synthetic(job.function, dim=job.dim, arms=job.arms, seed=job.seed)
    player = player_for(job.policy, environment, preset=job.preset, seed=job.seed)
    played = run(environment, player, rounds=job.rounds, batch=job.batch)
    arms = getattr(getattr(player, "policy", None), "arms", None)
    return {
        "share": played.share,
        "quality": played.quality,
        "evaluations": played.evaluations,
        "lookups": played.lookups,
        "select_ms": 1e3 * played.select_seconds,
        "update_seconds": played.update_seconds,
        "index": type(getattr(arms, "index", None)).__name__,
        "shares": [
            float(played.rewards[i : i + job.batch].sum() / played.best[i : i + job.batch].sum())
            for i in range(0, job.rounds, job.batch)
        ],
    }


def _training_ratios(job: Job) -> dict[str, Any]:
    """Time the updates of GANBandit and Exhaust on the same data, by turns."""
    environment = Synthetic(job.function, dim=job.dim, arms=job.arms, seed=job.seed)
    ratios: dict[str, Any] = {}
    for explore in ("TS", "UCB"):
        names = (f"GANBandit {explore}", f"Exhaust {explore}")
        pair = [player_for(n, environment, preset=job.preset, seed=job.seed) for n in names]
        seconds: list[list[float]] = [[], []]
        for first in range(0, min(job.rounds, 4 * job.batch), job.batch):
            contexts = environment.contexts(first, job.batch)
            decision = pair[0].select(contexts)
            rewards = environment.observed(first, decision.rows[:, 0])
            for number, player in enumerate(pair):
                started = time.perf_counter()
                player.update(contexts=contexts, arms=decision.arms, rewards=rewards)
                seconds[number].append(time.perf_counter() - started)
        gan, exhaust = (float(np.median(each)) for each in seconds)
        ratios |= {explore: gan / exhaust, f"{explore} seconds": [gan, exhaust]}
    return {"ratios": ratios}


def jobs_of(
    *,
    functions: Iterable[str],
    dims: Iterable[int],
    policies: Iterable[str],
    presets: Iterable[str],
    seeds: int,
    arms: int,
    rounds: int,
    batch: int,
    times: bool = True,
) -> list[Job]:
    """List the runs; with `times`, also the training times of each preset and function."""
    jobs = [
        Job(function, dim, arms, rounds, batch, policy, preset, seed)
        for seed in range(seeds)
        for dim in dims
        for function in functions
        for preset in presets
        for policy in policies
        if policy in NEURAL or preset == "default"
    ]
    timed = {(j.function, j.dim, j.preset): j for j in jobs if j.policy.startswith("GANBandit")}
    training = [
        Job(j.function, j.dim, arms, rounds, batch, _TRAINING, j.preset, 0)
        for j in timed.values()
        if times
    ]
    order = {name: place for place, name in enumerate(_SLOW_FIRST)}
    return training + sorted(jobs, key=lambda job: order.get(job.policy, len(order)))


def run_quality(jobs: list[Job], folder: Path, *, workers: int) -> Iterator[dict[str, Any]]:
    """Run the jobs in separate processes of one thread each, and give results as they come."""
    context = get_context("spawn")
    with ProcessPoolExecutor(workers, mp_context=context, initializer=one_thread) as pool:
        futures = [pool.submit(run_job, job, folder) for job in jobs]
        try:
            for future in as_completed(futures):
                yield future.result()
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


def summary(results: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Average the runs of each policy, function, dimension and preset over the seeds."""
    groups: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for result in results:
        if result["policy"] != _TRAINING:
            key = (result["preset"], result["dim"], result["function"], result["policy"])
            groups.setdefault(key, []).append(result)
    places = {name: place for place, name in enumerate(NAMES)}
    rows = []
    for key in sorted(groups, key=lambda k: (k[0], k[1], k[2], places[k[3]])):
        runs = groups[key]
        row = dict(zip(("preset", "dim", "function", "policy"), key, strict=True))
        row["seeds"] = len(runs)
        for measure in ("share", "quality", "evaluations", "lookups", "select_ms"):
            row[measure] = _mean(run[measure] for run in runs)
        row["share_std"] = float(np.std([run["share"] for run in runs]))
        row["lowest_quality"] = min((r["quality"] for r in runs if r["quality"]), default=None)
        exhaust = groups.get((*key[:3], f"Exhaust {key[3].split()[-1]}"))
        row["of_exhaust"] = None
        if exhaust and key[3] in NEURAL:
            row["of_exhaust"] = row["share"] / float(np.mean([run["share"] for run in exhaust]))
        rows.append(row)
    return rows


def training_times(results: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Give the ratios of update times, GANBandit ÷ Exhaust."""
    timed = [result for result in results if result["policy"] == _TRAINING]
    keys = ("preset", "dim", "function")
    rows = [{**{k: r[k] for k in keys}, **r["ratios"]} for r in timed]
    return sorted(rows, key=lambda row: [row[k] for k in keys])


def _mean(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return float(np.mean(known)) if known else None


def _names(what: str, text: str | None, known: tuple[str, ...]) -> tuple[str, ...]:
    if not text:
        return known
    names = tuple(name.strip() for name in text.split(","))
    for name in names:
        known_name(what, name, known)
    return names


@click.command("quality")
@click.option("--functions", default="h1,h2,h3", show_default=True)
@click.option("--policies", help="Comma-separated; all nine without.")
@click.option("--presets", default="default", show_default=True)
@click.option("--dims", default="4", show_default=True, help="Dimensions, comma-separated.")
@click.option("--seeds", default=5, show_default=True, type=click.IntRange(1))
@click.option("--arms", default=10_000, show_default=True, type=click.IntRange(1))
@click.option("--rounds", default=5_000, show_default=True, type=click.IntRange(2))
@click.option("--batch", default=500, show_default=True, type=click.IntRange(1))
@click.option("--jobs", default=2, show_default=True, type=click.IntRange(1))
@click.option(
    "--out", default="results/quality", show_default=True, type=click.Path(path_type=Path)
)
@click.option("--times/--no-times", default=True, help="Time GANBandit's updates by Exhaust's.")
@click.option(
    "--doc", type=click.Path(path_type=Path), help="Write all results in --out as Markdown."
)
@click.option(
    "--readme",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="Put the share and q of all results in --out between this file's marks.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of a table.")
def quality_command(
    functions: str,
    policies: str | None,
    presets: str,
    dims: str,
    seeds: int,
    arms: int,
    rounds: int,
    batch: int,
    jobs: int,
    out: Path,
    times: bool,
    doc: Path | None,
    readme: Path | None,
    as_json: bool,
) -> None:
    """Measure q, reward and training time of each policy on h1, h2 and h3."""
    if not dims.replace(",", "").isdigit():
        raise SettingError(f"Dimensions need to be whole numbers like 4,16: got {dims!r}.")
    todo = jobs_of(
        functions=_names("function", functions, tuple(FUNCTIONS)),
        dims=[int(dim) for dim in dims.split(",")],
        policies=_names("policy", policies, NAMES),
        presets=_names("preset", presets, ("default", "paper", "paper-scaled")),
        seeds=seeds,
        arms=arms,
        rounds=rounds,
        batch=batch,
        times=times,
    )
    results = []
    with progress_bar("Quality suite") as progress:
        for result in run_quality(todo, out, workers=jobs):
            results.append(result)
            progress(len(results), len(todo), f"{result['policy']} on {result['function']}")
    found = {"summary": summary(results), "training": training_times(results)}
    click.echo(json.dumps(found, indent=1) if as_json else table(found))
    stored = [json.loads(path.read_text()) for path in sorted(out.glob("*/*/*.json"))]
    if doc is not None:
        write_beside(doc, page(stored))
    if readme is not None:
        write_beside(readme, between_marks(readme.read_text(encoding="utf-8"), excerpt(stored)))


_HEAD = (
    "preset",
    "d",
    "function",
    "policy",
    "seeds",
    "share of best",
    "÷ Exhaust",
    "q",
    "lowest q",
    "evaluations",
    "look-ups",
    "ms",
)


def table(found: dict[str, list[dict[str, Any]]]) -> str:
    """Word the results as a Markdown table, and the training times below it."""
    lines = [_line(_HEAD), _line(["---"] * 4 + ["--:"] * 8)]
    for row in found["summary"]:
        names = [row["preset"], str(row["dim"]), row["function"], row["policy"], str(row["seeds"])]
        numbers = [
            f"{row['share']:.3f} ± {row['share_std']:.3f}",
            _word(row["of_exhaust"], ".3f"),
            _word(row["quality"], ".4f"),
            _word(row["lowest_quality"], ".4f"),
            _word(row["evaluations"], ".0f"),
            _word(row["lookups"], ".1f"),
            _word(row["select_ms"], ".3f"),
        ]
        lines.append(_line(names + numbers))
    if found["training"]:
        lines += ["", "Update of GANBandit ÷ update of Exhaust, same data, by turns:", ""]
        lines += [_line(("preset", "d", "function", "TS", "UCB")), _line(["---"] * 3 + ["--:"] * 2)]
    for row in found["training"]:
        names = [row["preset"], str(row["dim"]), row["function"]]
        lines.append(_line([*names, f"{row['TS']:.2f}", f"{row['UCB']:.2f}"]))
    return "\n".join(lines)


def excerpt(results: list[dict[str, Any]]) -> str:
    """Word what each policy keeps on h1, h2, h3 at d = 4, and the lowest mean q of the three."""
    rows = [r for r in summary(results) if (r["preset"], r["dim"]) == ("default", 4)]
    functions = sorted({row["function"] for row in rows})
    lines = [_line(("share of the best possible reward", *functions, "q at least"))]
    lines.append(_line(["---", *["--:"] * (len(functions) + 1)]))
    for name in NAMES:
        mine = {row["function"]: row for row in rows if row["policy"] == name}
        shares = [_word(mine[f]["share"], ".3f") if f in mine else "–" for f in functions]
        known = [row["quality"] for row in mine.values() if row["quality"] is not None]
        if mine:
            lines.append(_line([name, *shares, _word(min(known, default=None), ".4f")]))
    return "\n".join(lines)


_MARKS = ("<!-- results: written by fastbandit experiment quality -->", "<!-- end of results -->")


def between_marks(text: str, fresh: str) -> str:
    """Replace what stands between the two marks of a text."""
    start, end = (text.find(mark) for mark in _MARKS)
    if not 0 <= start < end:
        raise SettingError(
            f"The file needs the lines {_MARKS[0]!r} and {_MARKS[1]!r}, in this order: found "
            f"none. Put them where the results belong."
        )
    return f"{text[:start]}{_MARKS[0]}\n{fresh}\n{text[end:]}"


def page(results: list[dict[str, Any]]) -> str:
    """Word all stored results as docs/results.md."""
    parts = [_INTRODUCTION]
    for arms, rounds, batch in sorted({(r["arms"], r["rounds"], r["batch"]) for r in results}):
        mine = [r for r in results if (r["arms"], r["rounds"], r["batch"]) == (arms, rounds, batch)]
        found = {"summary": summary(mine), "training": training_times(mine)}
        exact = sorted({r["policy"] for r in mine if r.get("index") == "ExactIndex"})
        parts.append(f"## {arms:,} arms, {rounds:,} rounds in batches of {batch:,}\n")
        parts.append(table(found) + "\n")
        if exact:
            parts.append(
                f"Some runs of {', '.join(exact)} were made where faiss was not installed, with "
                f"the exact index in its place.\n"
            )
    return "\n".join(parts)


_INTRODUCTION = """# Results

Written by `fastbandit experiment quality --doc docs/results.md` from its result files; not
typed.

*Share of best*: expected reward kept, of the best possible, mean and deviation over seeds;
the first batch is random for all. *÷ Exhaust*: that share over the one of the exhaustive
search with the same exploration. *q*: (score of the chosen arm - mean score) / (best score -
mean score) under the same draw, audited on 50 contexts of each batch after the first.
*ms*: milliseconds per decision in a batch, one thread; read ratios, not seconds.
"""


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _word(number: float | None, form: str) -> str:
    return "–" if number is None else format(number, form)

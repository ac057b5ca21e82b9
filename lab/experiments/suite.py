"""`python -m lab experiment run`: play a suite, one result file a run; none is made twice."""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any

import click

from fastbandit.cluster.engine import ENGINES, Engine, engine_for
from fastbandit.cores import one_thread
from fastbandit.errors import SettingError
from fastbandit.progress import Progress, progress_bar, silent
from fastbandit.settings.files import is_settings_file
from lab.experiments import datasets
from lab.experiments.environment import Environment, Floats
from lab.experiments.kept import keep_rows, not_kept
from lab.experiments.logged import LoggedData, check_no_log
from lab.experiments.policies import NEURAL, agent_for
from lab.experiments.recipe import recipe_for, recipe_from_json
from lab.experiments.replay import replay
from lab.experiments.results import (
    TRAINING,
    Key,
    keep_result,
    read_result,
    setting_name,
    summarise,
    summarise_replays,
    training_ratios,
    write_result,
)
from lab.experiments.run import Agent, run
from lab.experiments.suite_file import (
    Part,
    Suite,
    check_policies,
    check_presets,
    read_suite,
)
from lab.experiments.tables import table
from lab.experiments.training_times import time_updates

AfterBatch = Callable[[int], None]
_SLOW_FIRST = (
    TRAINING,
    "Exhaust UCB",
    "GANBandit UCB",
    "FastBandit UCB",
    "GP-TS",
    "GP-UCB",
    "Exhaust TS",
    "GANBandit TS",
    "FastBandit TS",
)


# -- one run


def run_job(
    key: Key, folder: Path, data: Path | None, *, after_batch: AfterBatch = lambda rounds: None
) -> dict[str, Any]:
    """Make one run and write its result, or read what an earlier one wrote."""
    if (made := read_made(key, folder)) is not None:
        return made
    started = time.perf_counter()
    environment = datasets.load(key.dataset, data=data, seed=key.seed, **key.options)
    rounds = min(key.rounds, key.rounds if environment.rounds is None else environment.rounds)
    found: dict[str, Any] = {"arms": environment.size, "played": rounds}
    if key.policy == TRAINING:
        kind, more = "training", _time(key, environment, rounds)
    elif isinstance(environment, LoggedData):
        kind, more = "replay", _replay(key, environment, rounds, after_batch=after_batch)
    else:
        kind, more = "play", _play(key, environment, rounds, after_batch=after_batch)
    notes = list(getattr(environment, "notes", ()))
    if rounds < key.rounds:
        notes.append(f"{rounds:,} rounds are all there are: {key.rounds:,} were asked for")
    found |= {**more, "settings": _settings(key)}
    found |= {"seconds": time.perf_counter() - started, "notes": notes}
    return write_result(key.path(folder), kind, key, found)


def read_made(key: Key, folder: Path) -> dict[str, Any] | None:
    """Read the result of a run where it was made before; None where it was not."""
    path = key.path(folder)
    if not path.exists():
        return None
    result = read_result(path)
    if not _has_settings(result, key):
        raise SettingError(
            f"A result needs to be of the settings that its name says: {path} was made before "
            f"{key.preset} changed. Remove it, or give the settings another name."
        )
    return result


def _has_settings(result: Mapping[str, Any], key: Key) -> bool:
    """Return whether a result is of the settings of its key, also by the names of before."""
    stored = result.get("settings")
    if stored is None or not is_settings_file(key.preset):
        return bool(stored == _settings(key))
    try:
        return recipe_from_json(stored) == recipe_for(key.preset)
    except SettingError:  # a name that there never was
        return False


def _settings(key: Key) -> Any:
    """Return what a file of settings says as JSON would; None for a preset's name."""
    return recipe_for(key.preset).to_json() if is_settings_file(key.preset) else None


def _play(
    key: Key, environment: Environment, rounds: int, *, after_batch: AfterBatch
) -> dict[str, Any]:
    agent = _agent(key, environment, rounds)
    clock = time.process_time if key.device == "cpu" else time.perf_counter
    played = run(
        environment, agent, rounds=rounds, batch=key.batch, after_batch=after_batch, clock=clock
    )
    index = getattr(getattr(getattr(agent, "policy", None), "arms", None), "lookup", None)
    return {
        "earned": _by_batch(played.rewards, key.batch),
        "best": _by_batch(played.best, key.batch),
        "quality": played.quality,
        "qualities": list(played.qualities),
        "evaluations": played.evaluations,
        "lookups": played.lookups,
        "select_seconds": played.select_seconds,
        "update_seconds": played.update_seconds,
        "index": None if index is None else type(index).__name__,
    }


def _by_batch(rewards: Floats, batch: int) -> list[float]:
    return [float(rewards[i : i + batch].sum()) for i in range(0, len(rewards), batch)]


def _replay(key: Key, log: LoggedData, rounds: int, *, after_batch: AfterBatch) -> dict[str, Any]:
    cut = _first_rounds(log, rounds)
    agent = _agent(key, cut, rounds)
    replayed = replay(
        cut, agent, batch=key.batch, progress=lambda done, steps, doing: after_batch(done)
    )
    low, high = replayed.interval or (None, None)
    return {
        "matches": replayed.matches,
        "mean": replayed.mean,
        "low": low,
        "high": high,
        "curve": replayed.curve,
    }


def _first_rounds(log: LoggedData, rounds: int) -> LoggedData:
    propensities = None if log.propensities is None else log.propensities[:rounds]
    return replace(
        log,
        contexts=log.contexts.take(slice(rounds)),
        chosen=log.chosen[:rounds],
        rewards=log.rewards[:rounds],
        propensities=propensities,
    )


def _time(key: Key, environment: Environment, rounds: int) -> dict[str, Any]:
    check_no_log(environment, "Timing updates")
    return time_updates(
        environment,
        preset=key.preset,
        seed=key.seed,
        rounds=rounds,
        batch=key.batch,
        device=key.device,
    )


def _agent(key: Key, environment: Any, rounds: int) -> Agent:
    return agent_for(
        key.policy, environment, preset=key.preset, seed=key.seed, rounds=rounds, device=key.device
    )


# -- many runs


def jobs_of(suite: Suite, *, device: str = "cpu") -> list[Key]:
    """List the runs of a suite, each once, seed by seed, of a seed the slowest first.

    Presets and devices make a difference to neural policies alone: others run once.
    """
    keys: dict[Path, Key] = {}
    for part in suite.parts:
        for key in _jobs_of_part(part, device):
            keys.setdefault(key.path(Path()), key)
    order = {name: position for position, name in enumerate(_SLOW_FIRST)}
    return sorted(keys.values(), key=lambda key: (key.seed, order.get(key.policy, len(order))))


def _jobs_of_part(part: Part, device: str) -> Iterator[Key]:
    def key(policy: str, preset: str, seed: int) -> Key:
        is_neural = policy in NEURAL or policy == TRAINING
        return Key(
            dataset=part.dataset,
            options=dict(part.options),
            policy=policy,
            preset=preset if is_neural else "default",
            rounds=part.rounds,
            batch=part.batch,
            seed=seed,
            device=device if is_neural else "cpu",
        )

    for preset in part.presets:
        if part.training:
            yield key(TRAINING, preset, 0)
        for seed in range(part.seeds):
            yield from (key(policy, preset, seed) for policy in part.policies)


def run_suite(
    jobs: Sequence[Key],
    folder: Path,
    *,
    engine: Engine,
    data: Path | None = None,
    progress: Progress = silent,
) -> tuple[list[dict[str, Any]], list[tuple[Key, str]]]:
    """Make the runs that are not there yet; return all results, and what failed with its error.

    A result of another machine, whose disk is not this one's, is written here as well.
    """
    made = [(key, read_made(key, folder)) for key in jobs]
    todo = [key for key, result in made if result is None]
    results = [result for _, result in made if result is not None]
    failed: list[tuple[Key, str]] = []
    steps = [0] * len(todo)
    work = partial(_work, folder=folder.resolve(), data=data and data.resolve())
    with closing(engine.run(work, todo)) as news:
        for item in news:
            key = todo[item.job]
            steps[item.job] = key.rounds if item.is_over else item.steps
            progress(
                sum(steps), sum(each.rounds for each in todo), f"{key.policy} on {key.dataset}"
            )
            if item.error is not None:
                failed.append((key, item.error))
            elif item.is_over:
                keep_result(key.path(folder), item.result)
                results.append(item.result)
    return results, failed


def _work(key: Key, *, folder: Path, data: Path | None, report: AfterBatch) -> dict[str, Any]:
    one_thread()
    return run_job(key, folder, data, after_batch=report)


# -- the command


@click.command("run")
@click.argument("suite")
@click.option("--datasets", "only", help="Of the suite's datasets these alone; comma-separated.")
@click.option("--policies", help="These policies instead of the suite's; comma-separated.")
@click.option("--presets", help="These presets (or TOML files of settings) instead.")
@click.option("--seeds", type=click.IntRange(1), help="So many seeds instead: 0, 1, …")
@click.option("--rounds", type=click.IntRange(1), help="So many rounds instead.")
@click.option("--batch", type=click.IntRange(1), help="So many rounds between updates instead.")
@click.option(
    "--workers", "--jobs", default=2, show_default=True, type=click.IntRange(1), help="Processes."
)
@click.option("--engine", type=click.Choice(ENGINES), default="local", show_default=True)
@click.option("--address", help="Of a Ray cluster; without, one is started here.")
@click.option("--data", type=click.Path(path_type=Path), help="Folder of the datasets' files.")
@click.option("--out", type=click.Path(path_type=Path), help="Results.  [default: results/SUITE]")
@click.option("--keep", type=click.Path(path_type=Path), help="File of rows: skip those, add new.")
@click.option("--device", default="cpu", show_default=True, help="Where neural policies train.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of tables.")
@click.option("--list", "is_list", is_flag=True, help="List the runs and run none.")
def run_command(
    suite: str,
    only: str | None,
    policies: str | None,
    presets: str | None,
    seeds: int | None,
    rounds: int | None,
    batch: int | None,
    workers: int,
    engine: str,
    address: str | None,
    data: Path | None,
    out: Path | None,
    keep: Path | None,
    device: str,
    as_json: bool,
    is_list: bool,
) -> None:
    """Play SUITE: paper, quality, quick, continuum, drift, or a TOML file. Runs are reused.

    Whatever was made before, or before Ctrl-C, is not made again. Seeds are made one after another.
    """
    chosen = _changed(
        _filtered(read_suite(suite), only),
        policies=None if policies is None else check_policies(_names(policies)),
        presets=None if presets is None else check_presets(_names(presets)),
        seeds=seeds,
        rounds=rounds,
        batch=batch,
    )
    todo = not_kept(keep, jobs_of(chosen, device=device))
    folder = Path("results") / chosen.name if out is None else out
    if is_list:
        click.echo(_listed(todo, folder, as_json=as_json))
        return
    _make_folder(folder)
    with (
        progress_bar(chosen.title) as progress,
        engine_for(engine, workers=workers, address=address) as pool,
    ):
        results, failed = run_suite(todo, folder, engine=pool, data=data, progress=progress)
    keep_rows(keep, results)
    click.echo(_as_json(results, failed) if as_json else table(results))
    for line in describe_failures(failed):
        click.echo(f"Error: {line}", err=True)
    if failed:
        click.get_current_context().exit(2)


def _make_folder(folder: Path) -> None:
    """Make sure that results can be written there, before the work rather than after it."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise SettingError(
            f"Results need a folder that can be written to: got {str(folder)!r} "
            f"({error.strerror}). Choose another with --out."
        ) from error


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",")]


def _filtered(suite: Suite, only: str | None) -> Suite:
    if only is None:
        return suite
    known = tuple(dict.fromkeys(part.dataset for part in suite.parts))
    for name in _names(only):
        if name not in known:
            raise SettingError(
                f"--datasets needs to name datasets of the suite {suite.name}, which are "
                f"{', '.join(known)}: got {name!r}."
            )
    return replace(suite, parts=tuple(p for p in suite.parts if p.dataset in _names(only)))


def _changed(suite: Suite, **changes: Any) -> Suite:
    given = {name: value for name, value in changes.items() if value is not None}
    return replace(suite, parts=tuple(replace(part, **given) for part in suite.parts))


def _listed(jobs: Iterable[Key], folder: Path, *, as_json: bool) -> str:
    rows = [(key, key.path(folder)) for key in jobs]
    if as_json:
        listed = [{**asdict(k), "path": str(p), "exists": p.exists()} for k, p in rows]
        return json.dumps(listed, indent=1)
    lines = [f"{'made' if path.exists() else 'to do'}  {path}" for _, path in rows]
    made = sum(path.exists() for _, path in rows)
    return "\n".join([*lines, f"{len(rows)} runs, {made} of them made."])


def _as_json(results: Sequence[dict[str, Any]], failed: Iterable[tuple[Key, str]]) -> str:
    output = {"summary": summarise(results), "replays": summarise_replays(results)}
    output["training"] = training_ratios(results)
    output["failed"] = [{**asdict(key), "error": error} for key, error in failed]
    return json.dumps(output, indent=1, allow_nan=False)


def describe_failures(failed: Iterable[tuple[Key, str]]) -> list[str]:
    """Format what failed, a line each; runs of one dataset with the same error share a line."""
    groups: dict[tuple[str, str], list[Key]] = {}
    for key, error in failed:
        groups.setdefault((setting_name(key.dataset, key.options), error), []).append(key)
    lines = []
    for (name, error), keys in groups.items():
        more = f" and {len(keys) - 1} more" if len(keys) > 1 else ""
        lines.append(f"{name}, {keys[0].policy}, seed {keys[0].seed}{more}: {error}")
    return lines

"""`python -m lab experiment runtime`: times of decisions and updates, beside the paper's."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any, cast

import click

from fastbandit.bandit import Bandit
from fastbandit.cores import one_thread
from fastbandit.declaration import known_name
from fastbandit.demo.page import make_folder
from fastbandit.errors import DataError, MissingExtraError
from fastbandit.progress import progress_bar
from fastbandit.settings.presets import settings_for
from fastbandit.types import Inputs
from lab.experiments import datasets, paper_figures
from lab.experiments.comparison import Result
from lab.experiments.environment import Environment
from lab.experiments.logged import check_no_log
from lab.experiments.policies import NEURAL, player_for
from lab.experiments.report_tables import Table, measured, runtime_table, times
from lab.experiments.results import Key, write_result
from lab.experiments.timing import (
    ROUNDS,
    UPDATES,
    Clock,
    Task,
    Tick,
    batch_of,
    by_turns,
    clock_on,
    each_arm,
    each_request,
    fitting_size,
    learning,
    lessons_for,
    machine_of,
    over_and_over,
    requests_after,
    warm_up,
)

POLICIES = tuple(name for name in NEURAL if name.endswith((" TS", " UCB")))
_FAMILIES = ("Exhaust", "FastBandit", "GANBandit")
_ANY_SIZE = ("h1", "h1b", "h2", "h3", "procedural")
_FEWEST_REQUESTS = 3
_REPETITIONS = 5
_TURN_SECONDS = 0.05  # batches are decided for over and over until a turn takes about so long

Players = Mapping[str, Bandit]


@dataclass(frozen=True)
class Plan:
    """Which policies are timed, where, and for how long; `batch_size` is the usual one if None."""

    policies: tuple[str, ...] = POLICIES
    preset: str = "default"
    device: str = "cpu"
    requests: int = 100
    seconds: float = 10.0
    batch_size: int | None = None
    with_single: bool = True

    @property
    def ticks(self) -> int:
        """How many tasks there are to be timed on each dataset."""
        return len(self.policies) * (3 + self.with_single)


# -- one dataset


def measure(
    world: Environment, plan: Plan, *, tick: Tick = lambda name: None
) -> dict[str, dict[str, Any]]:
    """Give the times of each policy: seconds of one update, and seconds for one selection.

    All learn from the same rounds, and decide for the same contexts under the same seeds.
    """
    clock = clock_on(plan.device)
    players = players_for(world, plan)
    train = _time_updates(players, world, clock=clock, tick=tick)
    usual = {name: plan.batch_size or batch_size_of(name, plan.device) for name in players}
    contexts = requests_after(world, max(plan.requests, *usual.values()))
    sizes = {name: fitting_size(players[name], contexts, size=usual[name]) for name in players}
    batch = _time_batches(players, contexts, sizes, clock=clock, tick=tick)
    request = _time_requests(each_request, players, contexts, plan, clock=clock, tick=tick)
    single = None
    if plan.with_single:
        single = _time_requests(each_arm, players, contexts, plan, clock=clock, tick=tick)
    return {
        name: {
            "arms": world.size,
            "single": None if single is None else median(single[name]),
            "request": median(request[name]),
            "batch": median(batch[name]) / sizes[name],
            "train": median(train[name]),
            "requests": len((single or request)[name]),
            "batch_size": sizes[name],
        }
        for name in players
    }


def players_for(world: Environment, plan: Plan) -> dict[str, Bandit]:
    """Make the policies of a plan; they know nothing yet."""
    check_no_log(world, "Timing")
    rounds, preset, device = UPDATES * ROUNDS, plan.preset, plan.device
    players = {
        name: player_for(name, world, seed=0, rounds=rounds, preset=preset, device=device)
        for name in plan.policies
    }
    return cast(dict[str, Bandit], players)


def batch_size_of(policy: str, device: str) -> int:
    """Give how many contexts are decided for at once, where nothing else is asked for."""
    if not device.startswith("cuda"):
        return 100
    return 1024 if NEURAL[policy][1] == "exhaustive" else 65_536


def _time_updates(
    players: Players, world: Environment, *, clock: Clock, tick: Tick
) -> dict[str, list[float]]:
    lessons = lessons_for(world, next(iter(players.values())))
    tasks = {name: learning(player, lessons) for name, player in players.items()}
    return by_turns(tasks, least=UPDATES, most=UPDATES, seconds=math.inf, clock=clock, tick=tick)


def _time_batches(
    players: Players, contexts: Inputs, sizes: Mapping[str, int], *, clock: Clock, tick: Tick
) -> dict[str, list[float]]:
    tasks = {name: batch_of(player, contexts, sizes[name]) for name, player in players.items()}
    pairs = {
        name: over_and_over(task, seconds=_TURN_SECONDS, clock=clock)
        for name, task in tasks.items()
    }
    taken = by_turns(
        {name: repeat for name, (repeat, _) in pairs.items()},
        least=_REPETITIONS,
        most=_REPETITIONS,
        seconds=math.inf,
        clock=clock,
        tick=tick,
    )
    return {name: [turn / pairs[name][1] for turn in turns] for name, turns in taken.items()}


def _time_requests(
    task_of: Callable[[Bandit, Inputs, int], Task],
    players: Players,
    contexts: Inputs,
    plan: Plan,
    *,
    clock: Clock,
    tick: Tick,
) -> dict[str, list[float]]:
    tasks = {name: task_of(player, contexts, plan.requests) for name, player in players.items()}
    least = min(_FEWEST_REQUESTS, plan.requests)
    return by_turns(
        tasks, least=least, most=plan.requests, seconds=plan.seconds, clock=clock, tick=tick
    )


def write_times(results: Sequence[Result], plan: Plan, folder: Path) -> None:
    """Write the times of each policy, over those of an earlier run."""
    for result in results:
        dataset, options, policy = (result[name] for name in ("dataset", "options", "policy"))
        key = Key(dataset, options, policy, plan.preset, UPDATES * ROUNDS, ROUNDS, 0, plan.device)
        write_result(key.path(folder), "runtime", key, result)


# -- words


def ratios_of(results: Sequence[Result]) -> Iterator[dict[str, Any]]:
    """Give what the paper claims as ratios, for each dataset and exploration, with its own."""
    found = measured(results)
    for world in dict.fromkeys(world for world, _ in found):
        for explore in ("TS", "UCB"):
            names = [f"{family} {explore}" for family in _FAMILIES]
            exhaust, fast, gan = (found.get((world, name), {}) for name in names)
            printed = [paper_figures.printed(world.dataset, name) for name in names]
            ratios = {
                "batch": _over(exhaust.get("batch"), gan.get("batch")),
                "request": _over(exhaust.get("request"), gan.get("request")),
                "single": _over(exhaust.get("single"), fast.get("single")),
                "train": _over(gan.get("train"), exhaust.get("train")),
            }
            theirs = {
                "paper_batch": _over(printed[0][1], printed[2][1]),
                "paper_single": _over(printed[0][0], printed[1][0]),
                "paper_train": paper_figures.printed_training_ratio(explore),
            }
            if any(ratios.values()):
                yield {"dataset": world.label, "explore": explore, **ratios, **theirs}


def ratios_table(results: Sequence[Result]) -> Table:
    """Word the ratios: above 1 are speed-ups, and what longer training costs."""
    headings = (
        "dataset",
        "explore",
        "Batch: Exhaust ÷ GANBandit",
        "paper's",
        "Request: Exhaust ÷ GANBandit",
        "Single: Exhaust ÷ FastBandit",
        "paper's",
        "Train: GANBandit ÷ Exhaust",
        "paper's average",
    )
    columns = ("batch", "paper_batch", "request", "single", "paper_single", "train", "paper_train")
    rows = tuple(
        (row["dataset"], row["explore"], *(times(row[column]) for column in columns))
        for row in ratios_of(results)
    )
    return Table(headings, rows, names=2)


def _over(one: float | None, two: float | None) -> float | None:
    return None if one is None or not two else one / two


# -- the command


@click.command("runtime")
@click.option("--datasets", "names", help="Datasets, comma-separated.  [default: the paper's 8]")
@click.option("--policies", help="Neural policies, comma-separated.  [default: the paper's 6]")
@click.option("--preset", default="default", show_default=True, help="Name or file of settings.")
@click.option("--device", default="cpu", show_default=True, help="Where policies are timed.")
@click.option("--arms", type=click.IntRange(1), help="Arms of h1, h2, h3 and procedural.")
@click.option("--data", type=click.Path(path_type=Path), help="Folder of the datasets' files.")
@click.option(
    "--requests",
    default=100,
    show_default=True,
    type=click.IntRange(1),
    help="Requests timed one by one.",
)
@click.option(
    "--batch-size",
    type=click.IntRange(1),
    help="Requests at once.  [default: 100; on a GPU 65536, or 1024 for Exhaust]",
)
@click.option(
    "--seconds",
    default=10.0,
    show_default=True,
    type=click.FloatRange(0.0),
    help="Time no more requests one by one after so long, once 3 are timed.",
)
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    default=Path("results/runtime"),
    show_default=True,
    help="Results; earlier ones are written over.",
)
@click.option("--no-single", is_flag=True, help="Leave out arms that are scored one at a time.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of tables.")
def runtime_command(
    names: str | None,
    policies: str | None,
    preset: str,
    device: str,
    arms: int | None,
    data: Path | None,
    requests: int,
    batch_size: int | None,
    seconds: float,
    out: Path,
    no_single: bool,
    as_json: bool,
) -> None:
    """Time updates and decisions of the neural policies, in one process and by turns.

    Single: one request at a time, arms scored one at a time. Request: one request at a time,
    its arms scored together. Batch: many requests at once. Datasets without data are left out.
    """
    plan = Plan(
        policies=POLICIES if policies is None else listed("policy", policies, tuple(NEURAL)),
        preset=preset,
        device=device,
        requests=requests,
        seconds=seconds,
        batch_size=batch_size,
        with_single=not no_single,
    )
    settings_for(preset)
    chosen = listed("dataset", names, datasets.NAMES) if names else paper_figures.DATASETS
    make_folder(out)
    one_thread()
    warm_up(device)
    results: list[Result] = []
    skipped: dict[str, str] = {}
    for name in chosen:
        try:
            fresh = _time_dataset(name, plan, arms=arms, data=data)
        except (DataError, MissingExtraError) as error:
            skipped[name] = " ".join(str(error).split())
            click.echo(f"Left out: {skipped[name]}", err=True)
            continue
        if not as_json:
            click.echo(f"{runtime_table(fresh, {}).to_markdown()}\n")
        write_times(fresh, plan, out)
        results += fresh
    if as_json:
        told = {"times": results, "ratios": list(ratios_of(results)), "skipped": skipped}
        click.echo(json.dumps(told, indent=1, allow_nan=False))
    elif (table := ratios_table(results)).rows:
        click.echo(f"{table.to_markdown()}\n")
    if results and not as_json:
        click.echo(f"Written: {out}")
    if not results:
        click.get_current_context().exit(2)


def _time_dataset(name: str, plan: Plan, *, arms: int | None, data: Path | None) -> list[Result]:
    options = {} if arms is None or name not in _ANY_SIZE else {"arms": arms}
    world = datasets.load(name, data=data, **options)
    ended: list[str] = []
    with progress_bar(name) as progress:

        def tick(policy: str) -> None:
            ended.append(policy)
            progress(len(ended), plan.ticks, f"{policy} on {name}")

        found = measure(world, plan, tick=tick)
    common = {"dataset": name, "options": options, "preset": plan.preset}
    common |= {"device": plan.device, "machine": machine_of(plan.device)}
    return [{**common, "policy": policy, **numbers} for policy, numbers in found.items()]


def listed(what: str, text: str, known: tuple[str, ...]) -> tuple[str, ...]:
    """Read names that are separated by commas, each once; raise unless all are known."""
    names = tuple(dict.fromkeys(name.strip() for name in text.split(",")))
    for name in names:
        known_name(what, name, known)
    return names

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
from fastbandit.types import Inputs
from lab.experiments import datasets, paper_figures
from lab.experiments.comparison import Result
from lab.experiments.environment import Environment
from lab.experiments.logged import check_no_log
from lab.experiments.policies import NEURAL, agent_for
from lab.experiments.recipe import recipe_for
from lab.experiments.report_tables import Table, measured, runtime_table, times
from lab.experiments.results import Key, write_result
from lab.experiments.timing import (
    ROUNDS,
    UPDATES,
    Clock,
    Task,
    Tick,
    batch_of,
    clock_on,
    each_arm,
    each_request,
    fitting_size,
    learning,
    machine_of,
    over_and_over,
    requests_after,
    time_alternately,
    training_batches_for,
    warm_up,
)

POLICIES = tuple(name for name in NEURAL if name.endswith((" TS", " UCB")))
_FAMILIES = ("Exhaust", "FastBandit", "GANBandit")
_ANY_SIZE = ("h1", "h1b", "h2", "h3", "procedural")
_FEWEST_REQUESTS = 3
_REPETITIONS = 5
_ROUND_SECONDS = 0.05  # batches are decided for over and over until a round takes about so long

Agents = Mapping[str, Bandit]


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
    environment: Environment, plan: Plan, *, tick: Tick = lambda name: None
) -> dict[str, dict[str, Any]]:
    """Return the times of each policy: seconds of one update, and seconds for one selection.

    All learn from the same rounds, and decide for the same contexts under the same seeds.
    """
    clock = clock_on(plan.device)
    agents = agents_for(environment, plan)
    train = _time_updates(agents, environment, clock=clock, tick=tick)
    usual = {name: plan.batch_size or batch_size_of(name, plan.device) for name in agents}
    contexts = requests_after(environment, max(plan.requests, *usual.values()))
    sizes = {name: fitting_size(agents[name], contexts, size=usual[name]) for name in agents}
    batch = _time_batches(agents, contexts, sizes, clock=clock, tick=tick)
    request = _time_requests(each_request, agents, contexts, plan, clock=clock, tick=tick)
    single = None
    if plan.with_single:
        single = _time_requests(each_arm, agents, contexts, plan, clock=clock, tick=tick)
    return {
        name: {
            "arms": environment.size,
            "single": None if single is None else median(single[name]),
            "request": median(request[name]),
            "batch": median(batch[name]) / sizes[name],
            "train": median(train[name]),
            "requests": len((single or request)[name]),
            "batch_size": sizes[name],
        }
        for name in agents
    }


def agents_for(environment: Environment, plan: Plan) -> dict[str, Bandit]:
    """Make the policies of a plan; they know nothing yet."""
    check_no_log(environment, "Timing")
    rounds, preset, device = UPDATES * ROUNDS, plan.preset, plan.device
    agents = {
        name: agent_for(name, environment, seed=0, rounds=rounds, preset=preset, device=device)
        for name in plan.policies
    }
    return cast(dict[str, Bandit], agents)


def batch_size_of(policy: str, device: str) -> int:
    """Return how many contexts are decided for at once, where nothing else is asked for."""
    if not device.startswith("cuda"):
        return 100
    return 1024 if NEURAL[policy][1] == "exhaustive" else 65_536


def _time_updates(
    agents: Agents, environment: Environment, *, clock: Clock, tick: Tick
) -> dict[str, list[float]]:
    batches = training_batches_for(environment, next(iter(agents.values())))
    tasks = {name: learning(agent, batches) for name, agent in agents.items()}
    return time_alternately(
        tasks, least=UPDATES, most=UPDATES, seconds=math.inf, clock=clock, tick=tick
    )


def _time_batches(
    agents: Agents, contexts: Inputs, sizes: Mapping[str, int], *, clock: Clock, tick: Tick
) -> dict[str, list[float]]:
    tasks = {name: batch_of(agent, contexts, sizes[name]) for name, agent in agents.items()}
    repeats = {
        name: over_and_over(task, seconds=_ROUND_SECONDS, clock=clock)
        for name, task in tasks.items()
    }
    taken = time_alternately(
        {name: repeat for name, (repeat, _) in repeats.items()},
        least=_REPETITIONS,
        most=_REPETITIONS,
        seconds=math.inf,
        clock=clock,
        tick=tick,
    )
    return {name: [one / repeats[name][1] for one in seconds] for name, seconds in taken.items()}


def _time_requests(
    task_of: Callable[[Bandit, Inputs, int], Task],
    agents: Agents,
    contexts: Inputs,
    plan: Plan,
    *,
    clock: Clock,
    tick: Tick,
) -> dict[str, list[float]]:
    tasks = {name: task_of(agent, contexts, plan.requests) for name, agent in agents.items()}
    least = min(_FEWEST_REQUESTS, plan.requests)
    return time_alternately(
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
    """Return what the paper claims as ratios, for each dataset and exploration, with its own."""
    found = measured(results)
    for setting in dict.fromkeys(setting for setting, _ in found):
        for exploration in ("TS", "UCB"):
            names = [f"{family} {exploration}" for family in _FAMILIES]
            exhaust, fast, gan = (found.get((setting, name), {}) for name in names)
            printed = [paper_figures.printed(setting.dataset, name) for name in names]
            ratios = {
                "batch": _over(exhaust.get("batch"), gan.get("batch")),
                "request": _over(exhaust.get("request"), gan.get("request")),
                "single": _over(exhaust.get("single"), fast.get("single")),
                "train": _over(gan.get("train"), exhaust.get("train")),
            }
            theirs = {
                "paper_batch": _over(printed[0][1], printed[2][1]),
                "paper_single": _over(printed[0][0], printed[1][0]),
                "paper_train": paper_figures.printed_training_ratio(exploration),
            }
            if any(ratios.values()):
                yield {"dataset": setting.label, "exploration": exploration, **ratios, **theirs}


def ratios_table(results: Sequence[Result]) -> Table:
    """Return a table of the ratios: above 1 are speed-ups, and what longer training costs."""
    headings = (
        "dataset",
        "exploration",
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
        (row["dataset"], row["exploration"], *(times(row[column]) for column in columns))
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
    """Time updates and decisions of the neural policies, in one process and in alternation.

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
    recipe_for(preset)
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
        output = {"times": results, "ratios": list(ratios_of(results)), "skipped": skipped}
        click.echo(json.dumps(output, indent=1, allow_nan=False))
    elif (table := ratios_table(results)).rows:
        click.echo(f"{table.to_markdown()}\n")
    if results and not as_json:
        click.echo(f"Written: {out}")
    if not results:
        click.get_current_context().exit(2)


def _time_dataset(name: str, plan: Plan, *, arms: int | None, data: Path | None) -> list[Result]:
    options = {} if arms is None or name not in _ANY_SIZE else {"arms": arms}
    environment = datasets.load(name, data=data, **options)
    ended: list[str] = []
    with progress_bar(name) as progress:

        def tick(policy: str) -> None:
            ended.append(policy)
            progress(len(ended), plan.ticks, f"{policy} on {name}")

        found = measure(environment, plan, tick=tick)
    common = {"dataset": name, "options": options, "preset": plan.preset}
    common |= {"device": plan.device, "machine": machine_of(plan.device)}
    common |= {"data_notes": list(getattr(environment, "notes", ()))}
    return [{**common, "policy": policy, **numbers} for policy, numbers in found.items()]


def listed(what: str, text: str, known: tuple[str, ...]) -> tuple[str, ...]:
    """Read names that are separated by commas, each once; raise unless all are known."""
    names = tuple(dict.fromkeys(name.strip() for name in text.split(",")))
    for name in names:
        known_name(what, name, known)
    return names

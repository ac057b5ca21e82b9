"""`python -m lab bench log`: durable events a second, in PostgreSQL and in SQLite."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any
from uuid import uuid4

import click
import numpy as np

from fastbandit.cores import cores
from fastbandit.errors import SettingError
from fastbandit.progress import progress_bar
from fastbandit.storage.events import DecisionMade, Event, RewardCame
from fastbandit.storage.sqlite_log import SqliteLog
from lab.benchmarks.reporting import output_options, print_rows, read_doc, seconds_option
from lab.experiments.timing import Task, machine_of, time_alternately

_FEWEST, _MOST_EVENTS = 5, 150_000
_WAIT = 3_600_000_000
_FEATURES = 8
HEADINGS = (
    "decisions in a group",
    "rewards in it",
    "PostgreSQL, events/s",
    "bare COPY, events/s",
    "of bare COPY",
    "SQLite, events/s",
)
Group = list[Event]


@dataclass(frozen=True)
class Row:
    """Events a second in groups of one size, each group committed and synced by itself.

    Bare COPY puts the same rows, written as text beforehand, into tables without any index.
    """

    decisions: int
    rewards: int
    postgres_per_s: float
    copy_per_s: float
    of_copy: float
    sqlite_per_s: float

    def cells(self) -> tuple[str, ...]:
        """Format the row for a table."""
        return (
            f"{self.decisions:,}",
            f"{self.rewards:,}",
            f"{self.postgres_per_s:,.0f}",
            f"{self.copy_per_s:,.0f}",
            f"{self.of_copy:.2f}",
            f"{self.sqlite_per_s:,.0f}",
        )


def measure_log(url: str, folder: Path, *, size: int, seconds: float) -> Row:
    """Append groups of one size to three logs in alternation, and time each."""
    from fastbandit.storage.postgres_log import PostgresLog

    repeats = max(_FEWEST, _MOST_EVENTS // size)
    groups = groups_of(size, repeats)
    schema = f"bench_{uuid4().hex}"
    log, beside = PostgresLog(url, schema=schema), SqliteLog(folder / f"{size}.db")
    with closing(log), closing(beside), dropping(url, schema) as connection:
        tasks: dict[str, Task] = {
            "postgres": lambda number: log.append(groups[number]),
            "copy": copying(connection, groups),
            "sqlite": lambda number: beside.append(groups[number]),
        }
        clock = time.perf_counter
        taken = time_alternately(tasks, least=_FEWEST, most=repeats, seconds=seconds, clock=clock)
    rate = {name: len(groups[0]) / median(took) for name, took in taken.items()}
    return Row(
        decisions=size,
        rewards=len(groups[0]) - size,
        postgres_per_s=rate["postgres"],
        copy_per_s=rate["copy"],
        of_copy=rate["postgres"] / rate["copy"],
        sqlite_per_s=rate["sqlite"],
    )


def groups_of(size: int, count: int) -> list[Group]:
    """Make groups of decisions, with a reward of every second one."""
    rng = np.random.default_rng(0)
    return [group_of(size, f"{number}", rng) for number in range(count)]


def group_of(size: int, name: str, rng: np.random.Generator) -> Group:
    """Make a group of decisions with ids of their own, and a reward of every second one."""
    contexts = rng.standard_normal((size, _FEATURES)).astype(np.float32).tolist()
    arms = rng.integers(1_000_000, size=size).tolist()
    made = [
        DecisionMade(
            f"{rng.integers(2**63):016x}-{name}-{index}",
            context=context,
            arms=[f"arm-{arm}"],
            scores=[context[0]],
            seed=arm,
            version=1,
            catalogue=1,
            wait=_WAIT,
        )
        for index, (context, arm) in enumerate(zip(contexts, arms, strict=True))
    ]
    return [*made, *(RewardCame(one.id, 1.0) for one in made[1::2])]


@contextmanager
def dropping(url: str, schema: str) -> Iterator[Any]:
    """Return a connection into the schema of a log, all of which is dropped in the end."""
    from fastbandit.storage.postgres_connection import Connection

    with Connection.connect(url, autocommit=True) as connection:
        connection.execute(f"SET search_path = {schema}".encode())
        try:
            yield connection
        finally:
            connection.execute(f"DROP SCHEMA {schema} CASCADE".encode())


def copying(connection: Any, groups: Sequence[Group]) -> Callable[[int], None]:
    """Make the task of copying the rows of a group into tables without an index."""
    from fastbandit.storage.postgres_rows import stage
    from fastbandit.storage.postgres_sql import COPY_DECISIONS, COPY_REWARDS, STAGING

    connection.execute(STAGING.replace("TEMPORARY ", ""))
    blocks = [stage(group) for group in groups]

    def copy(number: int) -> None:
        with connection.transaction(), connection.cursor() as cursor:
            for query, block in (
                (COPY_DECISIONS, blocks[number].decisions),
                (COPY_REWARDS, blocks[number].rewards),
            ):
                with cursor.copy(query) as into:
                    into.write(block)

    return copy


# -- the command


@click.command("log")
@click.option("--url", default="", help="A PostgreSQL server.  [default: one is started]")
@click.option(
    "--group",
    default="1,64,256,1024",
    show_default=True,
    help="Decisions in a group, comma-separated.",
)
@seconds_option(3.0, "Append groups of each size to each log for so long.")
@output_options
def log_command(url: str, group: str, seconds: float, doc: Path | None, as_json: bool) -> None:
    """Time appends to the event log: in PostgreSQL, by bare COPY, and in SQLite.

    Every group is synced before the next one; every second decision has a reward. What was
    written is dropped again.
    """
    sizes = sizes_of(group)
    if doc is not None:
        read_doc(doc)
    rows = []
    with serving(url) as found, TemporaryDirectory() as folder, progress_bar("Log") as progress:
        for done, size in enumerate(sizes):
            progress(done, len(sizes), f"groups of {size:,}")
            rows.append(measure_log(found, Path(folder), size=size, seconds=seconds))
    print_rows("log", HEADINGS, rows, note=note_on(), doc=doc, as_json=as_json)


def sizes_of(text: str) -> list[int]:
    """Read sizes of groups, separated by commas: smallest first, each once."""
    try:
        sizes = sorted({int(size) for size in text.split(",")})
    except ValueError:
        sizes = [0]
    if not 1 <= sizes[0] <= sizes[-1] <= 10_000:
        raise SettingError(
            f"--group needs whole numbers from 1 to 10,000, separated by commas: got {text!r}. "
            f"Write 64,1024 for example."
        )
    return sizes


@contextmanager
def serving(url: str) -> Iterator[str]:
    """Return the URL of a server: of the one that is named, or of one that lives meanwhile."""
    if url:
        yield url
        return
    from lab.postgres_server import little_server

    with little_server() as started:
        yield started.url


def note_on() -> str:
    """Say what was timed, and on which machine."""
    return (
        f"Events of {_FEATURES} features, each group synced, {machine_of('cpu')} writes "
        f"({cores()} cores)"
    )

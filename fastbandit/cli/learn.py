"""The command `learn`: versions of a service's bandit, made here or on a cluster."""

from __future__ import annotations

import ctypes
import os
import shlex
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from fastbandit.cli.options import (
    config_option,
    data_dir_option,
    json_option,
    print_either,
    read_service,
    taking,
)
from fastbandit.cli.schema_options import kind_option
from fastbandit.cluster.engine import ENGINES, engine_for
from fastbandit.errors import SettingError
from fastbandit.evaluation.log_columns import LogColumns
from fastbandit.features.schema import Schema
from fastbandit.settings.service import Config

_LESS_URGENT = 5
_WATCH_SECONDS = 0.5
_ENDING_SECONDS = 1.0


@dataclass(frozen=True)
class Options:
    """What the command was asked for: an option each."""

    path: Path | None
    data_dir: Path | None
    log: Path | None
    arms: Path | None
    out: Path | None
    context: tuple[str, ...]
    arm: str | None
    reward: str | None
    propensity: str | None
    context_schema: Path | None
    arm_schema: Path | None
    kinds: dict[str, Any]
    held_out: float
    preset: str
    seed: int
    as_json: bool
    once: bool
    engine: str
    workers: int | None
    address: str | None
    gpu: bool
    parent: int | None


_FILE = click.Path(path_type=Path)


@click.command("learn", cls=taking(Options))
@config_option
@data_dir_option
@click.option(
    "--log", type=_FILE, help="A table of decisions to start from, in place of a service."
)
@click.option("--arms", type=_FILE, help="With --log: the table of all arms.")
@click.option("--out", type=_FILE, help="With --log: the new folder to serve from.")
@click.option("--context", multiple=True, help="A column of the context; else all others are.")
@click.option("--arm", help="The column of the arm that was taken.")
@click.option("--reward", help="The column of its reward.")
@click.option("--propensity", help="The column of how likely it was, if there is one.")
@click.option("--context-schema", type=_FILE, help="What the columns of contexts mean.")
@click.option("--arm-schema", type=_FILE, help="What the columns of arms mean.")
@kind_option
@click.option(
    "--held-out",
    type=click.FloatRange(0.0, 0.9),
    default=0.2,
    show_default=True,
    help="Share of the log that is not learned at first, and judges the rest.",
)
@click.option("--preset", default="default", show_default=True, help="Or a TOML file of settings.")
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True)
@json_option
@click.option("--once", is_flag=True, help="Make the versions that are due now, and end.")
@click.option("--engine", type=click.Choice(ENGINES), default="local", show_default=True)
@click.option("--workers", type=click.IntRange(1), help="Of Ray.  [default: one for each core]")
@click.option("--address", help="Of a Ray cluster; without, one is started here.")
@click.option("--gpu", is_flag=True, help="Learn with a GPU for each worker of Ray.")
@click.option("--parent", type=int, hidden=True, help="End once another process is the parent.")
def command(options: Options) -> None:
    """Learn from the log of a service, and publish new versions of its bandit.

    `fastbandit serve` starts this by itself. With `--engine ray`, workers take each step of
    learning together, and join the log where the learner is far behind.

    With `--log`, `--arms` and `--out`, learn from tables of decisions and arms instead (CSV or
    Parquet, columns by name), say how well, and write a folder for `fastbandit serve --from`.
    """
    if options.parent is not None:
        end_with(options.parent)  # before the slow imports: the service may be killed meanwhile
    if options.log is not None or options.arms is not None or options.out is not None:
        _learn_tables(options)
        return
    from fastbandit.learning.learner_loop import run_learner
    from fastbandit.serving.json_logs import start_json_logs

    config = read_service(options.path, options.data_dir)
    if options.engine == "local":
        _reject(workers=options.workers, address=options.address, gpu=options.gpu or None)
    if not options.once:
        start_json_logs(config.server.log_level)
    os.nice(_LESS_URGENT)  # decisions come first
    if options.engine == "local":
        run_learner(config, once=options.once)
        return
    with _on_ray(config, workers=options.workers, address=options.address, gpu=options.gpu) as how:
        run_learner(config, once=options.once, **how)


def _learn_tables(options: Options) -> None:
    """Learn from tables, report, and write a folder to serve from."""
    from fastbandit.cli.log_learning import LogLearning, TableDecisions
    from fastbandit.cli.log_tables import print_schemas, read_log_and_arms
    from fastbandit.cli.service_folder import SETTINGS, begun, write_service

    log, arms, out = options.log, options.arms, options.out
    if log is None or arms is None or out is None or options.path or options.data_dir:
        raise SettingError(
            f"Learning from tables needs --log, --arms and --out, and no service: got --log {log}, "
            f"--arms {arms}, --out {out}, --config {options.path}. Name all three, for example "
            f"--log decisions.csv --arms items.csv --out shop."
        )
    config, paths = begun(out), (options.context_schema, options.arm_schema)
    schemas: list[Schema | None] = [None if one is None else Schema.load(one) for one in paths]
    if config is not None:
        own = [config.context.read_schema(), config.arms.read_schema()]
        if any(one not in (None, its) for one, its in zip(schemas, own, strict=True)):
            raise SettingError(
                f"A folder with settings is learned into by its own schemas: got others than those "
                f"that {out / SETTINGS} names. Correct these, or name another --out."
            )
        schemas = own
    columns = LogColumns(
        context=options.context,
        arm=options.arm,
        reward=options.reward,
        propensity=options.propensity,
        schema=schemas[0],
        kinds=options.kinds,
    )
    read = read_log_and_arms(log, arms, columns, arm_schema=schemas[1])
    if not options.as_json:
        print_schemas(read)
    how = LogLearning(
        preset=options.preset,
        seed=options.seed,
        held_out=options.held_out,
        say=lambda text: click.echo(text, err=True),
    )
    bandit, learned = how.learn(TableDecisions(read))
    done = "written" if config is None else "kept"
    report = {"log": str(log), "out": str(out), **learned.to_json()}
    preset = options.preset
    if preset != "default":
        preset = str(Path(preset).expanduser().absolute())
    settings = {"select.search": "auto", "select.preset": preset}
    write_service(out, read, {**settings, "select.seed": options.seed}, learned=(bandit, report))
    print_either(
        options.as_json,
        report,
        *(f"- {sentence}" for sentence in learned.sentences),
        f"{out / SETTINGS} is {done}, with version {bandit.version}. Serve it:",
        f"  fastbandit serve --from {shlex.quote(str(out))}",
    )


def end_with(parent: int) -> None:
    """End this process once its parent is another: the service was killed.

    Imports and compilers hold that up, so Linux ends it at once; nothing is left half-done.
    """
    if os.uname().sysname == "Linux":
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(_WATCH_SECONDS)
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(_ENDING_SECONDS)
        os.kill(os.getpid(), signal.SIGKILL)

    threading.Thread(target=watch, daemon=True).start()


def _reject(**options: Any) -> None:
    for name, value in options.items():
        if value is not None:
            raise SettingError(
                f"--{name} needs the engine ray: got it for the engine local, which learns in one "
                f"process. Add --engine ray, or leave it out."
            )


@contextmanager
def _on_ray(
    config: Config, *, workers: int | None, address: str | None, gpu: bool
) -> Iterator[dict[str, Any]]:
    """Start or join a Ray; yield how a learner trains and joins on it."""
    from fastbandit.cluster.ray_joining import RayJoin
    from fastbandit.cluster.ray_training import RayTraining

    with engine_for("ray", workers=workers, address=address) as engine:
        folder = Path(config.server.data_dir).absolute()
        join = RayJoin(config.log.url, folder, engine.workers)
        yield {"train": RayTraining(engine.workers, use_gpu=gpu), "join": join}

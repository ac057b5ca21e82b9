"""The command `learn`: versions of a service's bandit, made here or on a cluster."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from fastbandit.cli.options import config_option, data_dir_option, read_service
from fastbandit.cluster.engine import ENGINES, engine_for
from fastbandit.errors import SettingError
from fastbandit.settings.service import Config

_LESS_URGENT = 5
_WATCH_SECONDS = 0.5
_ENDING_SECONDS = 1.0


@click.command("learn")
@config_option
@data_dir_option
@click.option("--once", is_flag=True, help="Make the versions that are due now, and end.")
@click.option("--engine", type=click.Choice(ENGINES), default="local", show_default=True)
@click.option("--workers", type=click.IntRange(1), help="Of Ray.  [default: one for each core]")
@click.option("--address", help="Of a Ray cluster; without, one is started here.")
@click.option("--gpu", is_flag=True, help="Learn with a GPU for each worker of Ray.")
@click.option("--parent", type=int, hidden=True, help="End once another process is the parent.")
def command(
    path: Path | None,
    data_dir: Path | None,
    *,
    once: bool,
    engine: str,
    workers: int | None,
    address: str | None,
    gpu: bool,
    parent: int | None,
) -> None:
    """Learn from the log of a service, and publish new versions of its bandit.

    `fastbandit serve` starts this by itself. With `--engine ray`, workers take each step of
    learning together, and join the log where the learner is far behind.
    """
    if parent is not None:
        end_with(parent)  # before the slow imports: the service may be killed meanwhile
    from fastbandit.learning.learner_loop import run_learner
    from fastbandit.serving.json_logs import start_json_logs

    config = read_service(path, data_dir)
    if engine == "local":
        _reject(workers=workers, address=address, gpu=gpu or None)
    if not once:
        start_json_logs(config.server.log_level)
    os.nice(_LESS_URGENT)  # decisions come first
    if engine == "local":
        run_learner(config, once=once)
        return
    with _on_ray(config, workers=workers, address=address, gpu=gpu) as how:
        run_learner(config, once=once, **how)


def end_with(parent: int) -> None:
    """End this process as SIGTERM does, once its parent is another: the service was killed.

    A compiler may hold that up: then it ends at once, which leaves nothing half-done either.
    """

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

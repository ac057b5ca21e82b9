"""The command `serve`: a service that decides, remembers, learns, and shows what it does."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import click

from fastbandit.errors import MissingExtraError
from fastbandit.settings.service_files import CONFIG_FILE, read_config

_DEMO: dict[str, Any] = {
    "context.features": 4,
    "reward.kind": "real",
    "reward.wait_seconds": 10.0,
    "learn.fresh": 500,
    "learn.seconds": 30.0,
}
_CONFIG_HELP = f"The settings; {CONFIG_FILE} where there is one."


@click.command("serve")
@click.option("--config", "path", type=click.Path(path_type=Path), help=_CONFIG_HELP)
@click.option("--port", type=int, help="The port to listen on; 0 takes a free one.")
@click.option("--data-dir", help="The folder of the log, the snapshots and the keys.")
@click.option("--demo", is_flag=True, help="10,000 built-in arms and simulated visitors.")
@click.option("--no-learner", is_flag=True, help="Do not learn: another process does.")
def command(
    path: Path | None, port: int | None, data_dir: str | None, demo: bool, no_learner: bool
) -> None:
    """Serve decisions over HTTP, and learn from the rewards in a process beside it.

    Needs a config file (`fastbandit init` writes one), or --demo. Stops at Ctrl-C.
    """
    with _needs_serve():
        from fastbandit.serving.journal import start_journal
        from fastbandit.serving.learner_process import learner_command
        from fastbandit.serving.server import make_server
        from fastbandit.serving.service import Service
        from fastbandit.serving.startup import check_beginning
    overrides = {"server.port": port, "server.data_dir": data_dir}
    told = {name: value for name, value in overrides.items() if value is not None}
    if demo:
        told = _demo_settings(told)
    elif path is None and Path(CONFIG_FILE).exists():
        path = Path(CONFIG_FILE)
    config = read_config(None if demo else path, overrides=told)
    config.context.dim  # noqa: B018 - raises where it is not known
    start_journal(config.server.log_level)
    learns = config.learn.enabled and not no_learner
    if learns:
        check_beginning(config)
    service = Service(config, learner=learner_command() if learns else None)
    server = make_server(config, service)
    with _visitors(is_wanted=demo) as start_visitors:

        def tell(url: str) -> None:
            click.echo(f"fastbandit serves on {url}", err=True)
            if config.server.console:
                click.echo(f"The console is on {url}/console/", err=True)
            start_visitors(url)

        server.on_started = tell
        server.run()


def _demo_settings(told: dict[str, Any]) -> dict[str, Any]:
    """Write the built-in catalogue, and give settings that show something within a minute."""
    from fastbandit.demo.visitors import write_catalogue

    folder = Path(told.get("server.data_dir", "fastbandit-demo-data"))
    arms = folder / "demo-arms.npy"
    write_catalogue(arms)
    return {**_DEMO, "server.data_dir": str(folder), "arms.file": str(arms), **told}


@contextmanager
def _visitors(*, is_wanted: bool) -> Iterator[Any]:
    """Send simulated visitors once a service listens, and end them with it."""
    started: list[Any] = []

    def start(url: str) -> None:
        if is_wanted:
            from fastbandit.demo.visitors import visit

            process = get_context("spawn").Process(target=visit, args=(url,), daemon=True)
            process.start()
            started.append(process)

    try:
        yield start
    finally:
        for process in started:
            process.terminate()
            process.join(5)


@contextmanager
def _needs_serve() -> Iterator[None]:
    """Turn a missing import of the extra `serve` into an error that says how to install it."""
    try:
        yield
    except ModuleNotFoundError as error:
        missing = (error.name or "").partition(".")[0]
        if missing == "fastbandit":
            raise
        raise MissingExtraError(
            f"Serving needs {missing}, which is not installed. Run: pip install 'fastbandit[serve]'"
        ) from error

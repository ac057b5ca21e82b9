"""The command `serve`: a service that decides, remembers, learns, and shows what it does."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fastbandit.cli.main import needs_extra
from fastbandit.cli.options import config_option, data_dir_option
from fastbandit.errors import SettingError
from fastbandit.settings.service import Config
from fastbandit.settings.service_files import find_config, read_config

if TYPE_CHECKING:
    from fastbandit.serving.server import Server
    from fastbandit.serving.workers import Workers
    from fastbandit.settings.service import Config

_DEMO: dict[str, Any] = {
    "context.features": 4,
    "reward.kind": "real",
    "reward.wait_seconds": 10.0,
    "learn.fresh": 500,
    "learn.seconds": 30.0,
}


@click.command("serve")
@config_option
@click.option(
    "--from",
    "folder",
    type=click.Path(path_type=Path),
    help="The folder that `fastbandit learn --log` wrote, in place of --config.",
)
@click.option("--port", type=int, help="The port to listen on; 0 takes a free one.")
@data_dir_option
@click.option("--workers", type=int, help="Processes that decide, on one log.  [default: 1]")
@click.option("--demo", is_flag=True, help="10,000 built-in arms and simulated visitors.")
@click.option("--no-learner", is_flag=True, help="Do not learn: another process does.")
@click.option(
    "--accept-log", is_flag=True, help="Go on with a log that is not the one of the snapshots."
)
def command(
    path: Path | None,
    data_dir: Path | None,
    *,
    folder: Path | None,
    port: int | None,
    workers: int | None,
    demo: bool,
    no_learner: bool,
    accept_log: bool,
) -> None:
    """Serve decisions over HTTP, and learn from the rewards in a process beside it.

    Needs a config file (`fastbandit init` writes one), a folder that learned from tables
    (--from), or --demo. Stops at Ctrl-C.
    """
    with needs_extra("Serving", extra="serve"):
        from fastbandit.serving.json_logs import start_json_logs
        from fastbandit.serving.learner_process import check_startup, learner_command
    path, data_dir = named_by(path, data_dir, folder)
    data = None if data_dir is None else str(data_dir)
    overrides: dict[str, Any] = {"server.port": port, "server.data_dir": data}
    overrides["server.workers"] = workers
    if demo:
        overrides = _demo_settings(overrides)
    config = read_config(None if demo else find_config(path), overrides=overrides)
    config.context.dim  # noqa: B018 - raises where it is not known
    start_json_logs(config.server.log_level)
    if accept_log:
        _accept_log(config)
    learns = config.learn.enabled and not no_learner
    if learns:
        check_startup(config)
    server = _server(config, learner_command() if learns else None)
    with ExitStack() as ending:

        def announce(url: str) -> None:
            click.echo(f"fastbandit serves on {url}", err=True)
            if config.server.console:
                click.echo(f"The console is on {url}/console/", err=True)
            if demo:
                ending.enter_context(_visitors(url))

        server.on_started = announce
        server.run()


def _server(config: Config, learner: list[str] | None) -> Server | Workers:
    """Return what serves: this process, or several that it starts."""
    with needs_extra("Serving", extra="serve"):
        if config.server.workers > 1:
            from fastbandit.serving.workers import Workers

            return Workers(config, learner=learner)
        from fastbandit.serving.server import make_server
        from fastbandit.serving.service import Service

        return make_server(config, Service(config, learner=learner))


def named_by(
    path: Path | None, data_dir: Path | None, folder: Path | None
) -> tuple[Path | None, Path | None]:
    """Return the file of settings and the data folder, which --from names both."""
    if folder is None:
        return path, data_dir
    if path is not None or not (folder / "service.toml").exists():
        raise SettingError(
            f"--from needs a folder with service.toml, and no --config beside it: got --from "
            f"{folder} and --config {path}. Run `fastbandit learn --log decisions.csv --arms "
            f"items.csv --out {folder}` first, or name the config alone."
        )
    return folder / "service.toml", data_dir or folder


def _accept_log(config: Config) -> None:
    """Let the snapshots of a data folder go on with the log there, whatever they learned from."""
    from fastbandit.storage.log_match import accept_log
    from fastbandit.storage.shared import open_log, service_store

    if config.log.url:
        raise SettingError(
            "--accept-log is for a log in the data folder: log.url names a shared one. Restore its "
            "database, or roll back to a version that it covers: fastbandit rollback"
        )
    folder = Path(config.server.data_dir)
    folder.mkdir(parents=True, exist_ok=True)
    with closing(open_log("", folder)) as log:
        found = accept_log(log, service_store(config), folder)
    click.echo(f"Accepted: {found}" if found else "The log is the one of the snapshots.", err=True)


def _demo_settings(overrides: dict[str, Any]) -> dict[str, Any]:
    """Write the built-in catalogue, and return settings that show something within a minute."""
    from fastbandit.demo.visitors import write_catalogue

    folder = Path(overrides["server.data_dir"] or "fastbandit-demo-data")
    arms = folder / "demo-arms.npy"
    write_catalogue(arms)
    return {**_DEMO, **overrides, "server.data_dir": str(folder), "arms.file": str(arms)}


@contextmanager
def _visitors(url: str) -> Iterator[None]:
    """Send simulated visitors to a service that listens."""
    from fastbandit.demo.visitors import visit

    process = get_context("spawn").Process(target=visit, args=(url,), daemon=True)
    process.start()
    try:
        yield
    finally:
        process.terminate()
        process.join(5)

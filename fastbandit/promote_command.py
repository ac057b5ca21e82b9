"""The commands `shadow` and `promote`: how a bandit compares with its baseline, and who decides."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any, TypeVar

import click

from fastbandit.config import Config, find_config, read_config
from fastbandit.errors import SettingError, SnapshotError
from fastbandit.events import Who
from fastbandit.lift import Evidence
from fastbandit.progress import progress_bar
from fastbandit.serving.console.compared import read_evidence
from fastbandit.serving.decides import Decides, read_decides, write_decides
from fastbandit.storage.log_reader import LOG_FILE
from fastbandit.storage.snapshot_store import SnapshotStore
from fastbandit.storage.sqlite_log import now

_Command = TypeVar("_Command", bound=Callable[..., Any])


def _options(command: _Command) -> _Command:
    """Add the options that say which service is meant, and what of its log."""
    for option in (
        click.option("--json", "as_json", is_flag=True, help="Print JSON."),
        click.option(
            "--minutes",
            type=click.IntRange(min=1),
            help="Go by decisions of so many last minutes, not by all.",
        ),
        click.option(
            "--data-dir", type=click.Path(), help="The folder of the log and the snapshots."
        ),
        click.option(
            "--config",
            "path",
            type=click.Path(path_type=Path),
            help="The file of the service's settings.",
        ),
    ):
        command = option(command)
    return command


@click.command("shadow")
@_options
def shadow_command(
    path: Path | None, data_dir: str | None, minutes: int | None, as_json: bool
) -> None:
    """Say how the bandit compares with the baseline beside it; nothing is changed."""
    config = _read(path, data_dir)
    evidence, decides = _evidence(config, minutes), read_decides(Path(config.server.data_dir))
    if as_json:
        _print(decides, evidence)
        return
    click.echo(f"The {decides.decides if decides else 'baseline'} decides.")
    _tell(evidence)


@click.command("promote")
@click.option("--back", is_flag=True, help="Let the baseline decide again.")
@_options
def promote_command(
    back: bool, path: Path | None, data_dir: str | None, minutes: int | None, as_json: bool
) -> None:
    """Let the bandit decide in place of the baseline, and say what speaks for it.

    A service that runs follows within a second, and keeps to it when it starts again.
    """
    config = _read(path, data_dir)
    evidence = _evidence(config, minutes)
    who: Who = "baseline" if back else "bandit"
    folder = Path(config.server.data_dir)
    decides = write_decides(folder, who, version=_version(folder))
    if as_json:
        _print(decides, evidence)
        return
    _tell(evidence)
    click.echo(f"The {who} decides from now on.")


def _read(path: Path | None, data_dir: str | None) -> Config:
    return read_config(find_config(path), overrides={"server.data_dir": data_dir})


def _evidence(config: Config, minutes: int | None) -> list[Evidence]:
    log = Path(config.server.data_dir) / LOG_FILE
    with progress_bar("Reading") as progress:
        found = read_evidence(log, minutes=minutes, now=now(), progress=progress)
    if not found and minutes is None and not config.shadow.baseline:
        raise SettingError(
            f"Shadow mode needs a baseline beside the bandit: shadow.baseline is empty, and {log} "
            f"compares nothing. Set shadow.baseline to request or random, and start the service."
        )
    return found


def _version(folder: Path) -> int | None:
    with suppress(SnapshotError):
        current = SnapshotStore(folder / "snapshots").current()
        return None if current is None else current.version
    return None


def _tell(evidence: list[Evidence]) -> None:
    if not evidence:
        click.echo("No decision names an arm of both the bandit and the baseline yet.")
        click.secho("There is no evidence to go by.", fg="yellow", err=True)
    for one in evidence:
        for sentence in one.words:
            click.echo(sentence)
        for doubt in one.doubts:
            click.secho(f"  {doubt}", fg="yellow", err=True)


def _print(decides: Decides | None, evidence: list[Evidence]) -> None:
    told = {
        "decides": decides.decides if decides else "baseline",
        "since": decides.since if decides else None,
        "version": decides.version if decides else None,
        "evidence": [asdict(one) for one in evidence],
    }
    click.echo(json.dumps(told, indent=1))

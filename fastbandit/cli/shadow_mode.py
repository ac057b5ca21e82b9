"""What `shadow` and `promote` share: who decides, and what speaks for the bandit."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from fastbandit.errors import LogUnavailableError, SettingError, SnapshotError
from fastbandit.evaluation.shadow_comparison import Evidence
from fastbandit.progress import progress_bar
from fastbandit.serving.console.compared import read_evidence
from fastbandit.serving.decides import Decides, read_decides, write_decides
from fastbandit.settings.service import Config
from fastbandit.settings.service_files import find_config, read_config
from fastbandit.storage.events import Who
from fastbandit.storage.local_copy import local_copy
from fastbandit.storage.log_file import LOG_FILE
from fastbandit.storage.snapshot_store import SnapshotStore
from fastbandit.storage.sqlite_log import now

if TYPE_CHECKING:
    from fastbandit.serving.shared_decides import SharedDecides

Command = TypeVar("Command", bound=Callable[..., Any])


def service_options(command: Command) -> Command:
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


def read_service(path: Path | None, data_dir: str | None) -> Config:
    return read_config(find_config(path), overrides={"server.data_dir": data_dir})


def who_decides(config: Config) -> Decides | None:
    """Read who decides; while a shared log is away, what a decider here was told last."""
    folder = Path(config.server.data_dir)
    if not config.log.url:
        return read_decides(folder)
    try:
        with closing(_shared(config.log.url)) as shared:
            return shared.read()
    except LogUnavailableError:
        if (here := read_decides(folder)) is None:
            raise
        return here


def let_decide(config: Config, who: Who, *, is_told: bool) -> Decides:
    if config.log.url:
        with closing(_shared(config.log.url)) as shared:
            decides = shared.write(who)
    else:
        folder = Path(config.server.data_dir)
        decides = write_decides(folder, who, version=_version(folder))
    if is_told:
        click.echo(f"The {who} decides from now on.")
    return decides


def _shared(url: str) -> SharedDecides:
    from fastbandit.serving.shared_decides import SharedDecides

    return SharedDecides(url)


def find_evidence(config: Config, minutes: int | None) -> list[Evidence]:
    folder = Path(config.server.data_dir)
    with progress_bar("Reading") as progress:
        log = folder / LOG_FILE
        if config.log.url:
            log = local_copy(config.log.url, folder, tell=_warn, progress=progress)
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


def _warn(text: str) -> None:
    click.secho(text, fg="yellow", err=True)


def tell_evidence(evidence: list[Evidence]) -> None:
    if not evidence:
        click.echo("No decision names an arm of both the bandit and the baseline yet.")
        _warn("There is no evidence to go by.")
    for one in evidence:
        for sentence in one.summary:
            click.echo(sentence)
        for warning in one.warnings:
            _warn(f"  {warning}")


def print_comparison(decides: Decides | None, evidence: list[Evidence]) -> None:
    told = {
        "decides": decides.decides if decides else "baseline",
        "since": decides.since if decides else None,
        "version": decides.version if decides else None,
        "evidence": [asdict(one) for one in evidence],
    }
    click.echo(json.dumps(told, indent=1))

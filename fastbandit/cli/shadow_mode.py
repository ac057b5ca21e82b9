"""What `shadow` and `promote` share: who decides, and what speaks for the bandit."""

from __future__ import annotations

from contextlib import closing, suppress
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from fastbandit.cli.options import Command, print_json, service_options, warn
from fastbandit.errors import LogUnavailableError, SettingError, SnapshotError
from fastbandit.evaluation.shadow_comparison import Evidence
from fastbandit.progress import progress_bar
from fastbandit.serving.console.comparison import read_evidence
from fastbandit.serving.promotion import Promotion, read_promotion, write_promotion
from fastbandit.settings.service import Config
from fastbandit.storage.data_folder import LOG_FILE
from fastbandit.storage.events import Who
from fastbandit.storage.local_copy import local_copy
from fastbandit.storage.snapshot_store import SnapshotStore

if TYPE_CHECKING:
    from fastbandit.serving.shared_promotion import SharedPromotion


def shadow_options(command: Command) -> Command:
    """Add the options that say which service is meant, and what of its log."""
    minutes_option = click.option(
        "--minutes",
        type=click.IntRange(min=1),
        help="Go by decisions of so many last minutes, not by all.",
    )
    return service_options(minutes_option(command))


def who_decides(config: Config) -> Promotion | None:
    """Read who decides; while a shared log is unavailable, what the file here says."""
    folder = Path(config.server.data_dir)
    if not config.log.url:
        return read_promotion(folder)
    try:
        with closing(_shared(config.log.url)) as shared:
            return shared.read()
    except LogUnavailableError:
        if (here := read_promotion(folder)) is None:
            raise
        return here


def let_decide(config: Config, who: Who, *, is_silent: bool) -> Promotion:
    """Let the bandit or the baseline decide from now on."""
    if config.log.url:
        with closing(_shared(config.log.url)) as shared:
            promotion = shared.write(who)
    else:
        folder = Path(config.server.data_dir)
        promotion = write_promotion(folder, who, version=_version(folder))
    if not is_silent:
        click.echo(f"The {who} decides from now on.")
    return promotion


def _shared(url: str) -> SharedPromotion:
    from fastbandit.serving.shared_promotion import SharedPromotion

    return SharedPromotion(url)


def find_evidence(config: Config, minutes: int | None) -> list[Evidence]:
    """Read how bandit and baseline compare, from the log or the copy of a shared one."""
    folder = Path(config.server.data_dir)
    with progress_bar("Reading") as progress:
        log = folder / LOG_FILE
        if config.log.url:
            log = local_copy(config.log.url, folder, warn=warn, progress=progress)
        found = read_evidence(log, minutes=minutes, progress=progress)
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


def print_evidence(evidence: list[Evidence]) -> None:
    """Print what the decisions say, and why not to go by it."""
    if not evidence:
        click.echo("No decision names an arm of both the bandit and the baseline yet.")
        warn("There is no evidence to go by.")
    for one in evidence:
        for sentence in one.summary:
            click.echo(sentence)
        for caveat in one.warnings:
            warn(f"  {caveat}")


def print_comparison(promotion: Promotion | None, evidence: list[Evidence]) -> None:
    """Print who decides, and the evidence, as JSON."""
    found = promotion or Promotion("baseline", 0.0)
    since = promotion and promotion.since
    head = {"decides": found.decides, "since": since, "version": found.version}
    print_json({**head, "evidence": [asdict(one) for one in evidence]})

"""The command `migrate`: from Personalizer or Vowpal Wabbit, log and settings, to a service."""

from __future__ import annotations

import json
import shlex
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import click
import numpy as np

from fastbandit.adapters.action_logs import ActionLog, read_action_log
from fastbandit.adapters.vowpal_wabbit_arguments import (
    Arguments,
    Translated,
    of_configuration,
    read_arguments,
)
from fastbandit.cli.action_learning import ActionDecisions, better_learned
from fastbandit.cli.log_learning import LearnedLog, LogLearning
from fastbandit.cli.options import counted, json_option, print_either, taking
from fastbandit.cli.service_folder import SETTINGS, check_new, write_service
from fastbandit.errors import DataError
from fastbandit.progress import progress_bar

_FILE = click.Path(path_type=Path)
SOURCES = ("personalizer", "vw")


@dataclass(frozen=True)
class Options:
    """What the command was asked for: an option each."""

    source: str
    log: Path
    out: Path
    arguments: str
    configuration: Path | None
    id_name: str
    held_out: float
    preset: str
    seed: int
    as_json: bool


@click.command("migrate", cls=taking(Options))
@click.argument("source", type=click.Choice(SOURCES))
@click.argument("log", type=_FILE)
@click.option("--out", type=_FILE, required=True, help="The new folder to serve from.")
@click.option(
    "--args",
    "arguments",
    default="",
    help='The command line of Vowpal Wabbit, or the learning settings: "--cb_explore_adf -q UA".',
)
@click.option(
    "--configuration",
    type=_FILE,
    help="JSON of a Personalizer resource: its configuration, or its learning settings.",
)
@click.option(
    "--id",
    "id_name",
    default="id",
    show_default=True,
    help="The feature of an action that holds its id, where that is not its tag.",
)
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
def command(options: Options) -> None:
    """Move in with the log of another service: personalizer or vw.

    Reads LOG, a file or a folder of them (DSJSON, or Vowpal Wabbit's text of --cb_explore_adf),
    learns from its first part and judges what it learned on the rest beside the policy that made
    the log, then learns from all of it, and writes a folder for `fastbandit serve --from`.
    """
    check_new(options.out)
    with progress_bar("Reading") as progress:
        log = read_action_log(options.log, id_name=options.id_name, progress=progress)
    arguments = settings_of(options, log)
    settings: dict[str, Any] = arguments.settings
    if options.source == "personalizer":
        settings = {"personalizer.enabled": True, **settings}  # its clients stay as they are
    seed = int(settings.get("select.seed", options.seed))
    how = LogLearning(
        preset=options.preset,
        seed=seed,
        held_out=options.held_out,
        say=lambda text: click.echo(text, err=True),
    )
    with progress_bar("Judging") as progress:
        given = ActionDecisions(log, settings, arguments, progress=progress)
        decisions, bandit, learned = better_learned(given, how)
    preset = options.preset
    if preset != "default":
        preset = str(Path(preset).expanduser().absolute())
    settings = {"select.search": "auto", "select.preset": preset, "select.seed": seed, **settings}
    report = report_of(options, decisions, learned)
    write_service(options.out, decisions, settings, learned=(bandit, report))
    print_either(
        options.as_json,
        report,
        *(f"- {sentence}" for sentence in sentences(decisions, learned)),
        f"{options.out / SETTINGS} is written, with version {bandit.version}. Serve it:",
        f"  fastbandit serve --from {shlex.quote(str(options.out))}",
    )


# -- settings


def settings_of(options: Options, log: ActionLog) -> Arguments:
    """Return what is known of settings: from the log, below the configuration, below the flags."""
    given = read_arguments(options.arguments)
    stored = Arguments() if options.configuration is None else _stored(options.configuration)
    named = {*given.settings, *stored.settings}
    found = [one for one in of_log(log) if one.setting not in named]
    return replace(
        given,
        flags=(*found, *stored.flags, *given.flags),
        ignored=given.ignored | stored.ignored,
        retained=given.retained | stored.retained,
    )


def _stored(path: Path) -> Arguments:
    try:
        given = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(given, dict):
            raise ValueError("it holds no object")
    except (OSError, ValueError) as error:
        raise DataError(
            f"A configuration needs a file with a JSON object: {path} is none ({error}). Save the "
            f"answer of configurations/service, or leave it out."
        ) from error
    return of_configuration(given)


def of_log(log: ActionLog) -> list[Translated]:
    """Return the settings that a log lets one know: its default reward, and how it explored."""
    found = []
    if len(log.unrewarded) == 1:
        default, why = log.unrewarded[0] + 0.0, "counted where no outcome came"
        found.append(Translated("", "", "reward.default", default, why))
    known = log.explored[np.isfinite(log.explored)]
    if len(known):
        share = round(float(np.median(known)), 4)
        why = "the least probability times the number of actions, as a median"
        found.append(Translated("", "", "select.epsilon", share, why))
    return found


# -- what is reported


def report_of(options: Options, decisions: ActionDecisions, learned: LearnedLog) -> dict[str, Any]:
    """Return the report as values that JSON knows."""
    log, arguments = decisions.log, decisions.arguments
    return {
        "source": options.source,
        "log": str(options.log),
        "out": str(options.out),
        "files": log.files,
        "left_out": log.left_out,
        "damaged": list(log.damaged),
        "settings": arguments.settings,
        "flags": [asdict(one) for one in arguments.flags],
        "arms_known_by": decisions.known_by,
        **learned.to_json(),
    }


def sentences(decisions: ActionDecisions, learned: LearnedLog) -> list[str]:
    """Return what to make of it, a sentence each."""
    log, flags = decisions.log, decisions.arguments.flags
    said = [f"{counted(log.files, 'file')}; {counted(len(log.ids), 'set')} of actions' features"]
    said += [f"lines with {why} are left out ({count:,})" for why, count in log.left_out.items()]
    said += [*log.damaged, f"arms are known by their {decisions.known_by}: that predicts better"]
    return [*said, *learned.sentences, *map(str, flags)]

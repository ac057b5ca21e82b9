"""The command `init`: a commented file of settings to start from."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import click

from fastbandit.errors import SettingError
from fastbandit.files.atomic import write_atomic
from fastbandit.settings.service import SECTIONS, settings_of
from fastbandit.settings.service_files import CONFIG_FILE, written

_FILE = click.Path(path_type=Path)
_QUESTIONS = (
    "Table of decisions, CSV or Parquet (Enter for none)",
    "Table of the arms",
    "New folder to serve from",
)
_HEAD = (
    "Settings of a fastbandit service. A line that is commented out shows the default.",
    "An environment variable stands over this file: FASTBANDIT_SERVER_PORT over [server] port.",
)


@click.command("init")
@click.argument("path", type=click.Path(path_type=Path), default=Path(CONFIG_FILE))
@click.option("--force", is_flag=True, help="Replace a file that is there.")
@click.option("--log", type=_FILE, help="A table of decisions, to infer what contexts are.")
@click.option("--arms", type=_FILE, help="The table of the arms.")
@click.option("--out", type=_FILE, help="With --log: the new folder to serve from.")
def command(
    path: Path, *, force: bool, log: Path | None, arms: Path | None, out: Path | None
) -> None:
    """Write a commented file of all settings to PATH (fastbandit.toml).

    With --log, --arms and --out, or the answers to questions on a terminal, show what the columns
    of these tables seem to mean, and write settings and schemas into a new folder.
    """
    asked = None if force or path != Path(CONFIG_FILE) else _ask(log, arms, out)
    given = (log, arms, out) if asked is None else asked
    if any(one is not None for one in given):
        _start(*given)
        return
    write_config(path, force=force)
    named = shlex.quote(str(path))
    click.echo(f"{path} is written. Set context.features and arms.file in it, then run:")
    click.echo(f"  fastbandit config show --config {named}")
    click.echo(f"  fastbandit serve --config {named}")


def _ask(*given: Path | None) -> tuple[Path | None, ...] | None:
    """Ask for what is not named, on a terminal alone; None where there is no table."""
    if all(given) or not (sys.stdin.isatty() and sys.stdout.isatty()):
        return None
    found: list[Path | None] = []
    for question, one in zip(_QUESTIONS, given, strict=True):
        text = str(one) if one is not None else click.prompt(question, default="", err=True)
        if not text and not any(found):
            return None
        found.append(Path(text) if text else None)
    return tuple(found)


def _start(log: Path | None, arms: Path | None, out: Path | None) -> None:
    """Write the folder of a service that two tables describe, and has learned nothing."""
    from fastbandit.cli.log_tables import print_schemas, read_log_and_arms
    from fastbandit.cli.service_folder import SETTINGS, check_new, write_service
    from fastbandit.evaluation.log_columns import LogColumns

    if log is None or arms is None or out is None:
        raise SettingError(
            f"Settings for tables need --log, --arms and --out: got --log {log}, --arms {arms} and "
            f"--out {out}. Name all three, for example --log decisions.csv --arms items.csv --out "
            f"shop."
        )
    check_new(out)
    read = read_log_and_arms(log, arms, LogColumns())
    print_schemas(read)
    write_service(out, read, {"arms.file": str(arms.expanduser().absolute())})
    named = shlex.quote(str(out))
    click.echo(f"{out / SETTINGS} is written, and beside it what columns mean. Serve it:")
    click.echo(f"  fastbandit serve --from {named}")
    click.echo("Or let it learn from the log first, with what you corrected there:")
    tables = f"--log {shlex.quote(str(log))} --arms {shlex.quote(str(arms))}"
    click.echo(f"  fastbandit learn {tables} --out {named}")


def write_config(
    path: Path, *, force: bool = False, values: Mapping[str, Any] | None = None
) -> None:
    """Write a file of all settings: those given, such as {"server.port": 80}, else the defaults.

    It replaces none without `force`.
    """
    if path.exists() and not force:
        raise SettingError(
            f"`fastbandit init` needs a path where no file is: found one at {path}. Name another, "
            f"or add --force to replace it."
        )
    try:
        write_atomic(path, "\n".join([*_lines(values or {}), ""]).encode(), sync=False)
    except OSError as error:
        raise SettingError(
            f"A file of settings needs a folder that can be written to: got {path} ({error}). "
            f"Choose another place."
        ) from error


def _lines(values: Mapping[str, Any]) -> Iterator[str]:
    yield from (f"# {line}" for line in _HEAD)
    for section, kind in SECTIONS.items():
        yield from ("", f"# {kind.__doc__}", f"[{section}]")
        known = {own.name: own for own in settings_of(section)}
        for own in known.values():
            mark = "" if own.is_asked or own.name in values else "# "
            value = values.get(own.name, own.default)
            yield f"{mark}{own.key} = {written(value)}  # {own.meaning}"
        for name, value in values.items():
            if name.startswith(f"{section}.") and name not in known:
                yield f"{name.partition('.')[2]} = {written(value)}"

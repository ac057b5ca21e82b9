"""Who decides in shadow mode, as a file in the data folder says: the bandit or the baseline.

Where a log is shared its database says so for all, and each decider brings the file in line.
"""

from __future__ import annotations

import shlex
import time
from contextlib import suppress
from pathlib import Path

import msgspec
from msgspec import Struct

from fastbandit.errors import DataError
from fastbandit.files.atomic import raising
from fastbandit.files.manifest import write_json
from fastbandit.settings.service import Config
from fastbandit.settings.service_files import CONFIG_FILE
from fastbandit.storage.backups import DECIDES_FILE
from fastbandit.storage.events import Who


class Promotion(Struct, frozen=True):
    """Who decides since when (seconds since 1970), and the version that served then."""

    decides: Who
    since: float
    version: int | None = None


def read_promotion(folder: Path) -> Promotion | None:
    """Read who decides; None where nothing says so yet."""
    path = folder / DECIDES_FILE
    try:
        return msgspec.json.decode(path.read_bytes(), type=Promotion)
    except FileNotFoundError:
        return None
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise DataError(
            f"Who decides needs to stand in a file that can be read: {path} cannot ({error}). Run "
            f"`fastbandit promote`, with --back for the baseline: it is written anew."
        ) from error


def write_promotion(folder: Path, decides: Who, *, version: int | None) -> Promotion:
    """Say who decides from now on; a service that runs follows within a second."""
    promotion = Promotion(decides, round(time.time(), 3), version)
    store_promotion(folder, promotion)
    return promotion


def store_promotion(folder: Path, promotion: Promotion) -> None:
    """Store what holds for all; a file that says the same is left as it is."""
    with suppress(DataError):
        if read_promotion(folder) == promotion:
            return
    needs = f"Who decides needs a data folder that can be written to: {folder} cannot"
    with raising(DataError, needs, fix="Make room there, or run it as who runs the service."):
        write_json(folder / DECIDES_FILE, msgspec.to_builtins(promotion))


def promote_command(config: Config, decides: Who) -> str:
    """Return the command that lets the other one decide, with the options that serve was given."""
    files = {source for source in config.sources.values() if source.startswith("file ")}
    command = ["fastbandit", "promote", *(["--back"] if decides == "bandit" else [])]
    for source in files - {f"file {CONFIG_FILE}"}:  # at most one
        command += ["--config", source.removeprefix("file ")]
    if config.sources.get("server.data_dir") == "command line":
        command += ["--data-dir", config.server.data_dir]
    return shlex.join(command)

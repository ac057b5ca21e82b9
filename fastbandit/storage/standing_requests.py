"""What a client asked of a data folder that another process does, once: a file until it is done."""

from __future__ import annotations

import json
from pathlib import Path
from secrets import token_hex
from typing import Any

from fastbandit.errors import DataError
from fastbandit.files.atomic import raising
from fastbandit.files.locks import locking
from fastbandit.files.manifest import write_json

RESET_FILE, DELETION_FILE = "model_reset.json", "log_deletion.json"


def ask(path: Path, *, seq: int) -> None:
    """Write a request about all events up to a number, in place of one that was not done yet."""
    needs = f"A request needs a data folder that can be written to: {path.parent} cannot"
    with raising(DataError, needs, fix="Make room there."), locking(path.with_suffix(".lock")):
        write_json(path, {"seq": seq, "id": token_hex(8)})


def asked_in(path: Path) -> Any:
    """Return the request that stands in a file, None where there is none."""
    return json.loads(path.read_bytes()) if path.exists() else None


def withdraw(path: Path, asked: Any) -> None:
    """Remove a request that was done, unless another came meanwhile."""
    with locking(path.with_suffix(".lock")):
        if asked_in(path) == asked:
            path.unlink()

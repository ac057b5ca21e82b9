"""Who else uses a file or a folder."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from fcntl import LOCK_EX, flock
from pathlib import Path


@contextmanager
def locking(path: Path) -> Iterator[None]:
    """Wait until nobody else holds the lock of a file, and hold it."""
    with path.open("w") as file:
        flock(file, LOCK_EX)
        yield


def is_used(draft: Path) -> bool:
    """Return whether another process that lives may write into a draft."""
    try:
        process = int(draft.name.split("-")[1])
        os.kill(process, 0)
    except (ValueError, IndexError, ProcessLookupError):
        return False
    except PermissionError:
        return True
    return process != os.getpid()

"""Records what must not change into this folder: `python tests/golden/capture.py [part …]`."""

from __future__ import annotations

import json
import logging
import os
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parents[1]), str(HERE.parent)]  # the package of this tree, and tests
os.environ["OMP_NUM_THREADS"] = "1"

from compiled import numba_cache  # noqa: E402  the path must be set before

os.environ.setdefault("NUMBA_CACHE_DIR", str(numba_cache()))


def write_json(path: Path, told: Any) -> None:
    """Write JSON with one line for each entry of the outermost object."""
    lines = (f"{json.dumps(key)}: {json.dumps(value)}" for key, value in told.items())
    path.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


def capture_decisions() -> None:
    """Record decisions of every way to explore and search."""
    from golden_bandits import COMBINATIONS, RECORDED, record_of

    write_json(RECORDED, {one.name: record_of(one) for one in COMBINATIONS})


def capture_files() -> None:
    """Write files of the format of today, and what reading them gives."""
    from golden_files import EXPECTED, FILES, reading_of
    from make_golden_files import make_files

    make_files()
    with tempfile.TemporaryDirectory() as folder:  # a log leaves files beside it when it is read
        write_json(EXPECTED, reading_of(Path(shutil.copytree(FILES, Path(folder) / "files"))))


def capture_routes() -> None:
    """Record the answers of every route; the files must be there."""
    from golden_routes import RECORDED, answers

    logging.disable()  # one of the requests fails, as it should
    write_json(RECORDED, answers())


PARTS = {"decisions": capture_decisions, "files": capture_files, "routes": capture_routes}

if __name__ == "__main__":
    for part in sys.argv[1:] or PARTS:
        PARTS[part]()
        print(f"captured {part}")

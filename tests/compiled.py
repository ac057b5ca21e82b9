"""Where tests keep what numba compiled: a folder for each state of the compiled sources."""

from __future__ import annotations

import hashlib
from pathlib import Path

_ROOT = Path(__file__).parent.parent


def numba_cache() -> Path:
    """Give the folder that belongs to the compiled sources as they are now."""
    sources = [
        _ROOT / "fastbandit/arms/partitions.py",
        *sorted(_ROOT.glob("fastbandit/runtime/*.py")),
    ]
    stamp = hashlib.sha256(b"".join(path.read_bytes() for path in sources)).hexdigest()
    return _ROOT / ".numba_cache" / stamp[:12]

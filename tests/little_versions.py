"""Versions of next to nothing, for tests of where they are kept."""

from __future__ import annotations

import numpy as np

from fastbandit.files.manifest import write_arrays
from fastbandit.storage.snapshot_store import SnapshotStore
from fastbandit.storage.snapshot_version import Cut, Snapshot


class Killed(BaseException):
    """What a process that is killed would not survive."""


def publish(store: SnapshotStore, *, kill_at: str = "", cut: Cut | None = None) -> Snapshot:
    """Publish a next version; its arrays hold its number."""
    version, parent = store.next_version(), store.current()

    def reached(step: str) -> None:
        if step == kill_at:
            raise Killed

    with store.drafting() as draft:
        for part, kind in (("bandit", "bandit"), ("frozen", "frozen bandit")):
            arrays = {"number": np.array([version], dtype=np.int64)}
            write_arrays(draft / part, arrays, {}, kind=kind, format=1)
        cut = cut or Cut(seq=10 * version, interactions=version)
        return store.publish(
            draft, {"arms": 3}, version=version, parent=parent, cut=cut, reached=reached
        )

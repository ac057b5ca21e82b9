"""Whether a version can be served: the one check for whoever loads one."""

from __future__ import annotations

import numpy as np

from fastbandit.errors import FastbanditError, SnapshotError
from fastbandit.runtime.frozen import FrozenBandit
from fastbandit.storage.snapshot_version import Snapshot, check_hashes


def servable(snapshot: Snapshot) -> FrozenBandit:
    """Return the frozen bandit of a version that can be served, or raise SnapshotError.

    All of its files are as they were saved, its arrays fit one another, and it decides. Its notes,
    and their signature, were checked by whoever read it.
    """
    check_hashes(snapshot)
    bandit = FrozenBandit.load(snapshot.frozen, verify=False)
    try:
        bandit.warm()
        bandit.select(bandit.parts[2].typical, seeds=np.zeros(1, np.uint64))
    except FastbanditError as error:
        raise SnapshotError(
            f"Version {snapshot.version} in {snapshot.folder} cannot decide ({error}). Roll back "
            f"to an older one."
        ) from error
    return bandit

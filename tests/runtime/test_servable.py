"""One check says whether a version can be served: hashes, arrays, and a first decision."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fakes import vectors_of
from little_frozen import CONTEXTS, arrays_of

from fastbandit import Bandit
from fastbandit.errors import SnapshotError
from fastbandit.runtime.frozen import FrozenBandit
from fastbandit.runtime.servable import servable
from fastbandit.storage.snapshot_store import SnapshotStore
from fastbandit.storage.snapshot_version import Cut, Snapshot

pytestmark = pytest.mark.usefixtures("hardly_any_training")


@pytest.fixture
def snapshot(tmp_path: Path) -> Snapshot:
    bandit = Bandit(arms=vectors_of(60, 3), context=4, reward="real", search="exhaustive")
    bandit.update(contexts=CONTEXTS, arms=[0, 1, 2] * 10, rewards=CONTEXTS[:, 0])
    store = SnapshotStore(tmp_path)
    with store.drafting() as draft:
        bandit.save(draft / "bandit")
        bandit.freeze().save(draft / "frozen")
        return store.publish(draft, {}, version=1, parent=None, cut=Cut())


def test_a_whole_version_comes_back_ready_to_decide(snapshot: Snapshot) -> None:
    assert len(servable(snapshot)) == 60


@pytest.mark.parametrize("part", ["bandit", "frozen"])
def test_a_flipped_bit_in_either_part_is_noticed(snapshot: Snapshot, part: str) -> None:
    path = arrays_of(snapshot.folder / part)
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)

    with pytest.raises(SnapshotError, match=rf"{part} are not the ones .* SHA-256"):
        servable(snapshot)


def test_missing_arrays_are_noticed(snapshot: Snapshot) -> None:
    arrays_of(snapshot.bandit).unlink()

    with pytest.raises(SnapshotError, match="cannot be read"):
        servable(snapshot)


def test_one_that_cannot_decide_is_no_version_to_serve(
    snapshot: Snapshot, monkeypatch: pytest.MonkeyPatch
) -> None:
    def select(self: FrozenBandit, contexts: Any, **terms: Any) -> Any:
        from fastbandit.runtime.batches import no_score

        raise no_score()

    monkeypatch.setattr(FrozenBandit, "select", select)
    with pytest.raises(SnapshotError, match=r"Version 1 .* cannot decide"):
        servable(snapshot)


def test_scores_that_are_no_numbers_choose_no_arm(snapshot: Snapshot) -> None:
    from dataclasses import replace

    from fastbandit.errors import NotFiniteError

    model, catalogue, codec = servable(snapshot).parts
    numbers = np.full_like(model.last_weights, np.nan)
    broken = FrozenBandit(replace(model, last_weights=numbers), catalogue, codec)

    with pytest.raises(NotFiniteError, match="score that is a number"):
        broken.select_one(np.zeros(4))
    with pytest.raises(NotFiniteError, match="score that is a number"):
        broken.select(np.zeros((2, 4)))

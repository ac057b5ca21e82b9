"""What a log and its snapshots hold, compared with what a service acknowledged."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from fastbandit.storage.events import DecisionMade, Event, RewardCame
from fastbandit.storage.snapshot_version import Snapshot

Rewards: TypeAlias = "Counter[tuple[str, float, str]]"
"""Acknowledged rewards: the decision, the value, and the status that was answered."""


def lost_decisions(
    asked: Mapping[str, Mapping[str, Any]],
    answers: Mapping[str, Mapping[str, Any]],
    events: Sequence[Event],
) -> int:
    """Count the answers that the log does not hold exactly once, and just so."""
    made = [event for event in events if isinstance(event, DecisionMade)]
    times = Counter(one.id for one in made)
    stored = {one.id: one for one in made}
    lost = 0
    for id, answer in answers.items():
        one = stored.get(id)
        is_there = times[id] == 1 and one is not None and one.context == asked[id]["context"]
        keys = ("arms", "scores", "version", "catalogue")
        lost += not (is_there and all(getattr(one, key) == answer[key] for key in keys))
    return lost


def lost_rewards(acknowledged: Rewards, events: Sequence[Event]) -> int:
    """Count the rewards that the log does not hold with the status that was answered."""
    came = [event for event in events if isinstance(event, RewardCame)]
    return (acknowledged - Counter((it.decision, it.value, str(it.status)) for it in came)).total()


def lineage_faults(snapshots: Sequence[Snapshot], events: Sequence[Event]) -> list[str]:
    """Say where a version does not go on from its parent, with what the log had ready by then."""
    by_version, faults = {one.version: one for one in snapshots}, []
    ready = [one.ready for one in _joined(events)]
    for one in snapshots[1:]:
        parent = by_version.get(-1 if one.parent is None else one.parent)
        if parent is None or not parent.cut.seq < one.cut.seq:
            faults.append(f"version {one.version} does not come after its parent")
        elif one.cut.interactions != parent.cut.interactions + one.notes["learned"]:
            faults.append(f"version {one.version} does not add what it learned to its parent")
        if one.cut.interactions + one.cut.held != bisect_right(ready, one.cut.seq):
            faults.append(f"version {one.version} looked at other interactions than were ready")
    return faults


def history_faults(snapshot: Snapshot, events: Sequence[Event]) -> list[str]:
    """Say whether a version learned other interactions than the log's first, each once.

    Its training data lies beside its snapshots, or with the neighbour who made it.
    """
    from fastbandit.storage.history_files import HistoryFiles

    joined = _joined(events)[: snapshot.cut.interactions]
    depths = ("history", "*/history", "*/*/history")  # a store lies beside the folders of trainers
    above = snapshot.folder.parents[1:3]
    places = [place for one in above for depth in depths for place in one.glob(depth)]
    found = (HistoryFiles(place).read(snapshot.cut) for place in places)
    history = next((learned for learned in found if learned is not None), None)
    if len({(one.decision, one.position) for one in joined}) != len(joined):
        return ["an interaction was joined twice"]
    if history is None or len(history) != snapshot.cut.interactions:
        return [
            f"{0 if history is None else len(history)} learned, {snapshot.cut.interactions} noted"
        ]
    contexts = np.array([one.context for one in joined], dtype=np.float32)
    rewards = np.array([one.reward for one in joined], dtype=history.rewards.dtype)
    is_same = np.array_equal(history.contexts, contexts)
    is_same = is_same and np.array_equal(history.rewards, rewards)
    return [] if is_same else ["what was learned is not what the log holds"]


def _joined(events: Sequence[Event]) -> list[Any]:
    from fastbandit.learning.joining import Joiner

    joiner = Joiner()
    for event in events:
        joiner.feed(event)
    return joiner.interactions

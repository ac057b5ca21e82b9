"""Decisions as lines that the DSJSON reader of Vowpal Wabbit takes.

The context is the namespace `context`. Each action is an arm: its id in the namespace `arm`,
and its numbers in `features` where the log holds them. The first arm that was chosen is the
first action, and has the label: a cost of minus the reward, and how likely it was. Arms that
were listed as eligible are the other actions; each has an even part of the rest.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import apsw
from msgspec import Struct, json

from fastbandit.storage.column_marks import NOTHING, SecretNames
from fastbandit.storage.events import ArmId
from fastbandit.storage.joined_rows import Row

NO_REWARD = "no reward yet"
NO_PROPENSITY = "no propensity"
_CHANGES = "SELECT seq, upserted FROM changes WHERE seq > ? AND seq <= ? ORDER BY seq"


class _Arm(Struct, array_like=True):
    """An arm as a change holds it, less what is not needed."""

    id: ArmId
    features: list[float] | dict[str, Any]


class DsjsonLines:
    """Turns rows into lines, in their order; remembers the features of each arm it met.

    Of features, those that are secret are left out; rows come without them.
    """

    def __init__(self, log: apsw.Connection, secret: SecretNames = NOTHING) -> None:
        self._log, self._known, self._secret = log, 0, secret
        self._features: dict[ArmId, Any] = {}

    def of(self, rows: Sequence[Row]) -> tuple[list[bytes], Counter[str]]:
        """Return the lines of rows, and how many had none: a label needs all of its parts."""
        reasons = [_why_not(row) for row in rows]
        lines = [self._line(row) for row, why in zip(rows, reasons, strict=True) if not why]
        return lines, Counter(filter(None, reasons))

    def _line(self, row: Row) -> bytes:
        self._learn_arms(row.catalogue)
        listed = row.eligible if isinstance(row.eligible, list) else []
        arms = [*row.arms, *(arm for arm in listed if arm not in row.arms)]
        own = {arm.id: _plain(arm.features) for arm in row.offered or ()}
        probability = _probability(row) or 0.0
        others = len(arms) - 1
        rest = (1.0 - probability) / others if others else 0.0
        line = {
            "_label_cost": -(row.reward or 0.0),
            "_label_probability": probability,
            "_label_Action": 1,
            "_labelIndex": 0,
            "Timestamp": row.at,
            "Version": "1",
            "EventId": row.decision,
            "a": list(range(1, len(arms) + 1)),
            "c": {
                "context": _plain(row.context),
                "_multi": [self._action(arm, own) for arm in arms],
            },
            "p": [probability, *[rest] * others],
            "VWState": {"m": str(row.version)},
        }
        return json.encode(line)

    def _action(self, arm: ArmId, own: dict[ArmId, Any]) -> dict[str, Any]:
        found = own.get(arm) or self._features.get(arm)
        features = {"features": found} if found is not None else {}
        return {"_tag": str(arm), "arm": {"id": str(arm)}, **features}

    def _learn_arms(self, catalogue: int) -> None:
        """Take in the changes that a decision knew of; an arm that went keeps its features."""
        for _, upserted in self._log.execute(_CHANGES, (self._known, catalogue)):
            for arm in json.decode(upserted, type=list[_Arm]):
                self._features[arm.id] = _plain(self._secret.public_features(arm.features))
        self._known = max(self._known, catalogue)


def _plain(features: Any) -> Any:
    """Return features as Vowpal Wabbit reads them: no null, and names in a list as flags."""
    if not isinstance(features, dict):
        return features
    plain = {name: value for name, value in features.items() if value is not None}
    for name, value in plain.items():
        if isinstance(value, list) and any(isinstance(one, str) for one in value):
            plain[name] = {str(one): True for one in value}
    return plain


def _probability(row: Row) -> float | None:
    """Return how likely the first arm was, where that is known."""
    if row.propensities:
        return row.propensities[0]
    is_certain = row.decided_by == "bandit" and not (row.explored or row.epsilon)
    return 1.0 if is_certain else None


def _why_not(row: Row) -> str:
    if row.reward is None:
        return NO_REWARD
    return NO_PROPENSITY if _probability(row) is None else ""

"""Events as rows of a database, in the order of their fields, read back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from msgspec import json

from fastbandit.storage.events import (
    REWARD_STATUSES,
    WHO,
    Arm,
    ArmsChanged,
    DecisionMade,
    RewardCame,
    RewardStatus,
    TimePassed,
    Who,
)

_numbers = json.Decoder(list[float]).decode
_anything = json.Decoder().decode
_arms = json.Decoder(list[Arm]).decode


def _same(value: Any) -> Any:
    return value


def _if_any(text: str | None) -> Any:
    return None if text is None else _anything(text)


def _who(name: str) -> Who:
    return WHO[WHO.index(name)]


def _status(name: str) -> RewardStatus:
    return REWARD_STATUSES[REWARD_STATUSES.index(name)]


_READERS: tuple[Callable[[Any], Any], ...] = (
    _same,  # id
    _numbers,  # context
    _anything,  # arms
    _numbers,  # scores
    _same,  # seed
    _same,  # version
    _same,  # catalogue
    _same,  # wait
    _same,  # default_reward
    bool,  # adds_up
    bool,  # explored
    _same,  # epsilon
    _if_any,  # propensities
    _if_any,  # eligible
    bool,  # degraded
    _who,  # decided_by
    _if_any,  # other
    _same,  # seq
    _same,  # at
)


def to_decision(row: Sequence[Any]) -> DecisionMade:
    """Read a decision."""
    return DecisionMade(*[read(value) for read, value in zip(_READERS, row, strict=True)])


def to_reward(row: Sequence[Any]) -> RewardCame:
    """Read a reward."""
    decision, value, arm, part, status, seq, at = row
    return RewardCame(decision, value, _if_any(arm), part, _status(status), seq, at)


def to_change(row: Sequence[Any]) -> ArmsChanged:
    """Read a change of the arms."""
    upserted, discarded, seq, at = row
    return ArmsChanged(_arms(upserted), _anything(discarded), seq, at)


def to_tick(row: Sequence[Any]) -> TimePassed:
    """Read that time passed."""
    return TimePassed(*row)

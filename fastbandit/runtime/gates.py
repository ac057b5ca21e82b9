"""What callers allow, read against the arms there are: ids, masks and predicates to gates."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastbandit.arms.eligibility import read_eligible
from fastbandit.errors import ShapeError
from fastbandit.runtime.live import Gate, Live
from fastbandit.runtime.propensity import draw_eligible_row
from fastbandit.search.limits import FEW


def gate_for_one(live: Live, eligible: Any) -> Gate:
    """Read what one context may choose: a predicate, a list of ids, or a mask by row."""
    if eligible is None:
        return live.gate
    if isinstance(eligible, Gate):
        return eligible
    if isinstance(eligible, Mapping):
        return live.gate_where(eligible)
    is_list = isinstance(eligible, list | tuple | set) and len(eligible) <= FEW
    if is_list and not any(isinstance(item, bool | np.bool_) for item in eligible):
        return live.gate_to(live.ids.rows(eligible))
    masks = read_eligible(eligible, live.ids, contexts=1)
    assert masks is not None
    return live.gate_for(masks[0])


def gates_for(live: Live, eligible: Any, *, contexts: int) -> list[Gate]:
    """Read what contexts may choose: one gate for all of them, or one for each."""
    if eligible is None or isinstance(eligible, Gate | Mapping):
        return [gate_for_one(live, eligible)]
    if isinstance(eligible, list) and any(isinstance(item, Mapping) for item in eligible):
        if len(eligible) != contexts:
            raise ShapeError(
                f"Eligible arms need one predicate for each of the {contexts} contexts: got "
                f"{len(eligible)}. Give one for each, or a single one for all."
            )
        return [gate_for_one(live, item) for item in eligible]
    masks = read_eligible(eligible, live.ids, contexts=contexts)
    assert masks is not None
    return [live.gate_for(mask) for mask in masks]


def gate_to_any(live: Live, rows: NDArray[np.int64] | None, seed: int, *, count: int) -> Gate:
    """Let only a few arms through, drawn evenly from some rows (None: from all)."""
    return live.gate_to(draw_eligible_row(seed, rows, total=live.rows, count=count))

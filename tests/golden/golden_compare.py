"""Tells where two JSON values differ, numbers up to rounding."""

from __future__ import annotations

import json
import math
from typing import Any


def as_json(value: Any) -> Any:
    """Give a value as it would be read back from JSON."""
    return json.loads(json.dumps(value))


def first_difference(wanted: Any, got: Any, *, rtol: float = 1e-5, at: str = "") -> str:
    """Name the first place at which two values differ, with both; nothing where none does."""
    if isinstance(wanted, dict) and isinstance(got, dict):
        if wanted.keys() != got.keys():
            return f"{at or 'the whole'}: wanted the keys {list(wanted)}, got {list(got)}"
        pairs = [(f"{at}.{key}".lstrip("."), wanted[key], got[key]) for key in wanted]
    elif isinstance(wanted, list) and isinstance(got, list) and len(wanted) == len(got):
        pairs = [(f"{at}[{n}]", *both) for n, both in enumerate(zip(wanted, got, strict=True))]
    else:
        is_same = type(wanted) is type(got) and wanted == got
        if isinstance(wanted, float) and isinstance(got, float):
            is_same = math.isclose(wanted, got, rel_tol=rtol, abs_tol=rtol / 10)
        return "" if is_same else f"{at or 'the whole'}: wanted {wanted!r}, got {got!r}"
    found = (first_difference(one, other, rtol=rtol, at=place) for place, one, other in pairs)
    return next((told for told in found if told), "")

"""Ids of arms as JSON values: strings, numbers, and tuples of them."""

from __future__ import annotations

import math
from collections.abc import Hashable
from typing import Any

from fastbandit.errors import SettingError


def id_to_json(id: Hashable) -> Any:
    if isinstance(id, str | int) or (isinstance(id, float) and math.isfinite(id)):
        return id
    if isinstance(id, tuple):
        return {"tuple": [id_to_json(item) for item in id]}
    raise SettingError(
        f"Ids that are saved need to be strings, finite numbers or tuples of them: got {id!r} "
        f"of type {type(id).__name__}. Use such ids."
    )


def id_from_json(written: Any) -> Hashable:
    if isinstance(written, dict):
        return tuple(id_from_json(item) for item in written["tuple"])
    return written

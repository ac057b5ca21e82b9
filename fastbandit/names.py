"""Names that stand for something known."""

from __future__ import annotations

import difflib
from typing import Any

from fastbandit.errors import SettingError


def known_name(what: str, name: Any, known: tuple[str, ...], *, or_object: bool = False) -> None:
    """Raise unless `name` is one of the known ones, and suggest the nearest."""
    if name not in known:
        near = difflib.get_close_matches(str(name), known, n=1)
        other = ", or give an object" if or_object else ""
        hint = f"Did you mean {near[0]!r}?" if near else f"Use one of them{other}."
        raise SettingError(
            f"The {what} needs to be one of {', '.join(known)}: got {name!r}. {hint}"
        )

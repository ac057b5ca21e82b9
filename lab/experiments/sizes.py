"""Numbers of arms, as they are written on a command line."""

from __future__ import annotations

from fastbandit.errors import SettingError


def sizes_of(text: str, *, option: str = "--arms") -> list[int]:
    """Read numbers of arms, or of what an option names, by commas: smallest first, each once."""
    try:
        sizes = sorted({int(size) for size in text.split(",")})
    except ValueError:
        sizes = [0]
    if sizes[0] < 1:
        raise SettingError(
            f"{option} needs whole numbers of at least 1, separated by commas: got {text!r}. "
            f"Write 10000,100000 for example."
        )
    return sizes

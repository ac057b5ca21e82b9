"""What a report is made of: sections of sentences, tables and figures."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from lab.experiments.comparison import Setting
from lab.experiments.report_tables import Table


@dataclass(frozen=True)
class Sketch:
    """A figure that can be drawn: the name of its file, what it shows in words, its caption."""

    name: str
    alt: str
    caption: str
    draw: Callable[[], Any]


@dataclass(frozen=True)
class Notes:
    """A list of remarks."""

    lines: tuple[str, ...]


Block = str | Table | Notes | Sketch


@dataclass(frozen=True)
class Section:
    """A heading and what stands below it; a folded one is opened by its reader."""

    title: str
    blocks: tuple[Block, ...] = ()
    parts: tuple[Section, ...] = field(default=())
    is_folded: bool = False


def stem_of(setting: Setting) -> list[str]:
    """Return the parts that the names of a setting's figures begin with."""
    return [setting.dataset, *(f"{name}{value}" for name, value in setting.options)]


def file_name(*parts: str) -> str:
    """Make a file's name of safe characters, which no other parts have."""
    name = "-".join(parts)
    if re.fullmatch(r"[a-z0-9.-]+", name):
        return name
    safe = re.sub(r"[^a-z0-9.]+", "-", name.lower())[:60].strip("-.")
    return f"{safe}-{hashlib.sha256(name.encode()).hexdigest()[:8]}"


def sketches(sections: Iterable[Section]) -> Iterator[Sketch]:
    """Return all figures in the order they are shown."""
    for section in sections:
        yield from (block for block in section.blocks if isinstance(block, Sketch))
        yield from sketches(section.parts)

"""`python -m lab architecture`: the floors of the package, drawn from the imports of its code."""

from __future__ import annotations

import ast
import sys
from collections import defaultdict
from collections.abc import Iterable
from functools import cache
from itertools import combinations
from pathlib import Path
from typing import NamedTuple

import click

import fastbandit

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "fastbandit"
PICTURE = ROOT / "docs" / "pictures" / "floors.svg"

FLOORS = (
    ("errors", "types", "cores", "progress", "compiler"),
    ("packages", "declaration", "noise", "features", "optim", "score", "interfaces", "files"),
    ("arms",),
    ("exploration", "reward", "search", "policy"),
    ("training", "audit", "baselines"),
    ("settings",),
    ("storage", "runtime"),
    ("bandit", "client"),
    ("learning", "evaluation", "adapters", "demo", "cluster", "serving", "testing"),
    ("cli", "__main__"),
)
"""Lowest first: a room imports only from floors below its own. The last one is the roof."""

NEIGHBOURS = {
    ("features", "declaration"): "a kind of features is a part, and so declared as one",
    ("features", "files"): "a schema is a file of its own, written as all files are",
    (
        "interfaces",
        "score",
    ): "exploration, model and search meet in a score, and their roles name it",
    ("interfaces", "optim"): "a role that trains names the group of processes it trains in",
    ("runtime", "storage"): "the state of a bandit is what a snapshot saves and gives back",
    ("evaluation", "adapters"): "a log in the format of Vowpal Wabbit is read by its adapter",
    ("adapters", "learning"): "an adapter learns after so many rewards, by the learner's schedule",
    ("cluster", "learning"): "workers join and train stretches of the log as the learner does",
    ("serving", "learning"): "the service checks the file of arms before it starts a learner",
    ("serving", "evaluation"): "the console compares policies as the evaluation does",
    ("testing", "cluster"): "the contract of an engine needs what an engine is",
    ("__main__", "cli"): "`python -m fastbandit` is the command line and nothing else",
}
"""Imports between neighbours on one floor, importer first, and the reason for each."""


class Import(NamedTuple):
    """An import of one module of the package by another: who, what, and where it stands."""

    importer: str
    imported: str
    path: str
    line: int

    @property
    def rooms(self) -> tuple[str, str]:
        return room_of(self.importer), room_of(self.imported)

    def __str__(self) -> str:
        return f"{self.path}:{self.line} imports {self.imported}"


def room_of(module: str) -> str:
    """Return the room of a module: the name below the package."""
    return module.split(".")[1]


def rooms_in(package: Path = PACKAGE) -> set[str]:
    """Return the names that stand at the top of the package, its own `__init__` left out."""
    folders = {path.parent.name for path in package.glob("*/__init__.py")}
    return (folders | {path.stem for path in package.glob("*.py")}) - {"__init__"}


@cache
def imports_in(package: Path = PACKAGE) -> tuple[Import, ...]:
    """Return the imports between rooms, wherever they stand: lazy and for types alone, too."""
    found = []
    for path in sorted(package.rglob("*.py")):
        parts = path.relative_to(package.parent).with_suffix("").parts
        importer = ".".join(part for part in parts if part != "__init__")
        if importer == package.name:
            continue  # the list of public names, which stands above all floors
        for name, line in _imported(path):
            if room_of(name) != room_of(importer):
                shown = path.relative_to(package.parent).as_posix()
                found.append(Import(importer, name, shown, line))
    return tuple(found)


def level_of(room: str) -> int:
    """Return on which floor a room stands, the lowest being 0."""
    for level, rooms in enumerate(FLOORS):
        if room in rooms:
            return level
    raise click.ClickException(
        f"{room} needs a floor in FLOORS of lab/architecture.py: got none. Add it."
    )


def broken(imports: Iterable[Import]) -> list[Import]:
    """Return the imports that point up, or at a neighbour without a reason."""
    return [
        one
        for one in imports
        if level_of(one.rooms[1]) >= level_of(one.rooms[0])
        and (level_of(one.rooms[1]) > level_of(one.rooms[0]) or one.rooms not in NEIGHBOURS)
    ]


def two_way_pairs(imports: Iterable[Import]) -> list[tuple[str, str]]:
    """Return the pairs of rooms that import each other, if only by way of further rooms."""
    below = _below(imports)
    reached = {room: _reached(room, below) for room in below}
    return [
        (one, other)
        for one, other in combinations(sorted(below), 2)
        if other in reached[one] and one in reached[other]
    ]


def unused_reasons(imports: Iterable[Import]) -> set[tuple[str, str]]:
    """Return the neighbours that have a reason and do not import each other any more."""
    return set(NEIGHBOURS) - {one.rooms for one in imports}


def _imported(path: Path) -> list[tuple[str, int]]:
    found = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found += [(alias.name, node.lineno) for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module == "fastbandit":
            names = [alias.name for alias in node.names if alias.name != "__version__"]
            homes = [fastbandit._HOMES.get(name, f"fastbandit.{name}") for name in names]
            found += [(home, node.lineno) for home in homes]
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.append((node.module, node.lineno))
    return [(name, line) for name, line in found if name.startswith("fastbandit.")]


def _below(imports: Iterable[Import]) -> dict[str, set[str]]:
    below: dict[str, set[str]] = defaultdict(set)
    for one in imports:
        below[one.rooms[0]].add(one.rooms[1])
    return dict(below)


def _reached(room: str, below: dict[str, set[str]]) -> set[str]:
    """Return the rooms that a room imports, and those that they import, and so on."""
    found: set[str] = set()
    waiting = [room]
    while waiting:
        further = below.get(waiting.pop(), set()) - found
        found |= further
        waiting += further
    return found


# -- drawing


def as_text(imports: Iterable[Import]) -> str:
    """Return the floors as text, the roof first: each room with the rooms that it imports."""
    below = _below(imports)
    lines = []
    for level in reversed(range(len(FLOORS))):
        lines.append(f"{level + 1:>2}  {'  '.join(FLOORS[level])}")
        for room in FLOORS[level]:
            used = sorted(below.get(room, ()), key=lambda name: (-level_of(name), name))
            lines += [f"      {room} -> {' '.join(used)}"] if used else []
    return "\n".join(lines) + "\n"


def direct(below: dict[str, set[str]]) -> list[tuple[str, str]]:
    """Return the imports that no way through a third room would show as well."""
    reached = {room: _reached(room, below) for room in below}
    return [
        (room, used)
        for room in below
        for used in sorted(below[room])
        if not any(used in reached.get(third, ()) for third in below[room] - {used})
    ]


_WIDTH, _STEP, _BOX = 900, 64, 30
_COLOURS = (
    "--ink:#263238;--soft:#78909c;--one:#00796b",
    "--ink:#e3e8ea;--soft:#9fb0b8;--one:#4db6ac",
)
_STYLE = (
    f".floors{{{_COLOURS[0]};font:13px sans-serif;max-width:100%;height:auto}}"
    f"@media(prefers-color-scheme:dark){{.floors{{{_COLOURS[1]}}}}}"
    ".floors text{fill:var(--ink)}.floors .soft{fill:var(--soft)}"
    ".floors rect{stroke:var(--soft);fill:var(--soft);fill-opacity:.12}"
    ".floors path{stroke:var(--one);stroke-opacity:.55;fill:none}"
)


def as_svg(imports: Iterable[Import]) -> str:
    """Return the floors as a picture: a line goes from a room down to one that it imports.

    A line that follows from others is left out, so that the rest can be seen.
    """
    boxes = {}
    for level, rooms in enumerate(FLOORS):
        width = (_WIDTH - 40) / len(rooms)
        y = 10 + _STEP * (len(FLOORS) - 1 - level)
        for number, room in enumerate(rooms):
            wide = min(width - 10, 120)
            boxes[room] = (40 + width * (number + 0.5) - wide / 2, y, wide)
    drawn = []
    for room, used in direct(_below(imports)):
        (x, y, wide), (to_x, to_y, to_wide) = boxes[room], boxes[used]
        start, end = (x + wide / 2, y + _BOX), (to_x + to_wide / 2, to_y)
        if y == to_y:  # neighbours: an arc below both
            start, end = start, (end[0], to_y + _BOX)
            middle = f"C{start[0]:.0f} {y + _BOX + 22:.0f} {end[0]:.0f} {y + _BOX + 22:.0f}"
        else:
            half = (start[1] + end[1]) / 2
            middle = f"C{start[0]:.0f} {half:.0f} {end[0]:.0f} {half:.0f}"
        drawn.append(
            f'<path d="M{start[0]:.0f} {start[1]:.0f}{middle} {end[0]:.0f} {end[1]:.0f}"/>'
        )
    for level in range(len(FLOORS)):
        y = 10 + _STEP * (len(FLOORS) - 1 - level)
        drawn.append(f'<text x="8" y="{y + 20}" class="soft">{level + 1}</text>')
    for room, (x, y, wide) in boxes.items():
        drawn.append(
            f'<rect x="{x:.0f}" y="{y}" width="{wide:.0f}" height="{_BOX}" rx="6"/>'
            f'<text x="{x + wide / 2:.0f}" y="{y + 20}" text-anchor="middle">{room}</text>'
        )
    height = _STEP * len(FLOORS) - 10
    inside = "\n".join(drawn)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="floors" width="{_WIDTH}" '
        f'viewBox="0 0 {_WIDTH} {height}"><title>The floors of the package</title>'
        f"<style>{_STYLE}</style>\n{inside}\n</svg>\n"
    )


@click.command("architecture")
@click.option("--check", is_flag=True, help="Write nothing.")
def architecture_command(check: bool) -> None:
    """Print the floors, draw them into docs/pictures, and exit with 1 where an import is wrong."""
    imports = imports_in()
    click.echo(as_text(imports), nl=False)
    for (importer, imported), reason in NEIGHBOURS.items():
        click.echo(f"{importer} -> {imported}: {reason}")
    wrong = [str(one) for one in broken(imports)]
    wrong += [f"{one} and {other} import each other" for one, other in two_way_pairs(imports)]
    wrong += [f"{one} -> {other}: needs no reason" for one, other in unused_reasons(imports)]
    for line in wrong:
        click.echo(line, err=True)
    if not check:
        PICTURE.write_text(as_svg(imports), encoding="utf-8")
    if wrong:
        sys.exit(1)

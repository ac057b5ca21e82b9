"""`python -m lab size`: the shape of the product, beside the bars it is held to."""

from __future__ import annotations

import ast
import json
import math
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import click

from fastbandit.cli.main import cli
from fastbandit.cli.tables import print_table
from lab.architecture import FLOORS, broken, imports_in, two_way_pairs
from lab.benchmarks.before_after import checked_out, compare
from lab.code_shape import (
    Function,
    files_to_touch,
    functions_in,
    is_kernel_file,
    keyword_share,
    lines_of,
    modules_among,
    parts_in,
    shown,
    tree_of,
    untested,
)
from lab.words import all_hits

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "fastbandit"
PAGE = ROOT / "CONTRIBUTING.md"
MARKS = ("<!-- table of python -m lab size -->\n", "<!-- end of table -->")
GOLDEN = "recorded decisions, files or routes differ"
SPEED = "frozen select, p50 before ÷ after, {arms:,} arms"
ARMS = (10_000, 100_000)
ROLES = ("posterior", "search", "exploration", "estimator")


BEFORE = {
    "lines of Python in the wheel": "59,535",
    "modules at the top of the package": "44",
    "import floors": "20",
    "two-way pairs of rooms": "2",
    "files touched to add a part: posterior": "8–10",
    "files touched to add a part: search": "9",
    "files touched to add a part: exploration": "6",
    "files touched to add a part: estimator": "4",
    "functions of more than 8 parameters, no kernels": "34",
    "% keyword-only where more than four parameters": "73",
    "banned words in names, settings, commands, docs": "hundreds",
    "lines of the longest file, no kernels": "564",
    "% of modules with a test file of their name": "46.8",
}
"""What was measured at commit 2887d03, before the parts were declared, by row."""


@dataclass(frozen=True)
class Measure:
    """One number, the bar it is held to (the most, or the least), and what it counts.

    A number that could not be had is not a number, and misses its bar.
    """

    name: str
    value: float
    bar: float | None = None
    is_least: bool = False
    counted: tuple[str, ...] = ()

    @property
    def is_met(self) -> bool | None:
        if self.bar is None:
            return None
        return self.value >= self.bar if self.is_least else self.value <= self.bar

    def cells(self) -> tuple[str, ...]:
        """Return the row of a table."""
        met = {None: "", True: "met", False: "missed"}[self.is_met]
        return (self.name, self.number(), self.limit(), met)

    def number(self) -> str:
        if math.isnan(self.value):
            return "–"
        return f"{self.value:,.3g}" if self.value < 100 else f"{self.value:,.0f}"

    def limit(self) -> str:
        if self.bar is None:
            return "–"
        return f"{'≥' if self.is_least else '≤'} {self.bar:,.10g}"


def sources() -> list[Path]:
    """Return the Python files of the package, as the wheel has them."""
    return sorted(path for path in PACKAGE.rglob("*.py") if "__pycache__" not in path.parts)


def commands(group: click.Group, context: click.Context) -> Iterator[str]:
    """Yield the name of each command, below groups too."""
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if isinstance(command, click.Group):
            yield from (f"{name} {below}" for below in commands(command, context))
        else:
            yield name


def imports_of_the_laboratory(paths: list[Path]) -> int:
    """Count imports of `lab` in the product; there may be none."""
    found = 0
    for path in paths:
        for node in ast.walk(tree_of(path)):
            if isinstance(node, ast.ImportFrom):
                found += (node.module or "").partition(".")[0] == "lab"
            elif isinstance(node, ast.Import):
                found += any(alias.name.partition(".")[0] == "lab" for alias in node.names)
    return found


def measure() -> list[Measure]:
    """Measure the tree as it is."""
    paths = sources()
    context = click.Context(cli, info_name="fastbandit")
    functions = [one for path in paths for one in functions_in(path)]
    return [
        Measure("lines of Python in the wheel", sum(map(lines_of, paths)), 40_000),
        Measure("modules at the top of the package", len(list(PACKAGE.glob("*.py"))), 14),
        *of_floors(),
        *(of_role(paths, role) for role in ROLES),
        *of_functions(functions),
        of_words(),
        of_longest(paths),
        of_tests(paths),
        Measure("commands of fastbandit", len(list(commands(cli, context))), 24),
        Measure("imports of the laboratory in the product", imports_of_the_laboratory(paths), 0),
        Measure("files in the wheel", len(paths)),
        Measure("lines of the laboratory", sum(map(lines_of, (ROOT / "lab").rglob("*.py")))),
    ]


def of_floors() -> list[Measure]:
    """Count the floors, the roof included, and the imports that do not keep to them."""
    imports = imports_in()
    wrong = tuple(map(str, broken(imports)))
    pairs = tuple(" and ".join(pair) for pair in two_way_pairs(imports))
    return [
        Measure("import floors", len(FLOORS), 10),
        Measure("imports that break the floors", len(wrong), 0, counted=wrong),
        Measure("two-way pairs of rooms", len(pairs), 0, counted=pairs),
    ]


def of_role(paths: Sequence[Path], role: str) -> Measure:
    """Count the files that one more part of a role touches: its own, and each list of parts."""
    listing = tuple(map(shown, files_to_touch(paths, role)))
    value = 1 + len(listing) if parts_in(paths, role) else math.nan
    return Measure(f"files touched to add a part: {role}", value, 1, counted=listing)


def of_functions(functions: Sequence[Function]) -> list[Measure]:
    """Count long lists of parameters, and those that are forced by keyword."""
    plain = [one for one in functions if not one.is_kernel]
    wide = tuple(str(one) for one in plain if one.parameters > 8)
    bare = [one for one in functions if one.is_public and one.parameters > 4]
    loose = tuple(str(one) for one in bare if not one.keyword_only)
    share, name = keyword_share(functions), "% keyword-only where more than four parameters"
    return [
        Measure("functions of more than 8 parameters, no kernels", len(wide), 6, counted=wide),
        Measure(name, share, 82, is_least=True, counted=loose),
        Measure("% the same, no kernels", keyword_share(plain)),
    ]


def of_words() -> Measure:
    hits = tuple(str(hit) for found in all_hits().values() for hit in found)
    return Measure("banned words in names, settings, commands, docs", len(hits), 0, counted=hits)


def of_longest(paths: Sequence[Path]) -> Measure:
    """Find the longest file that is no kernel."""
    by_length = {path: lines_of(path) for path in paths if not is_kernel_file(path)}
    longest = max(by_length.values())
    over = tuple(f"{shown(path)} has {lines}" for path, lines in by_length.items() if lines > 400)
    return Measure("lines of the longest file, no kernels", longest, 400, counted=over)


def of_tests(paths: Sequence[Path]) -> Measure:
    """Return the share of modules that a test file is named after."""
    lacking, all_modules = untested(paths, ROOT / "tests"), modules_among(paths)
    share = 100 * (1 - len(lacking) / len(all_modules))
    name = "% of modules with a test file of their name"
    return Measure(name, share, 90, is_least=True, counted=tuple(map(shown, lacking)))


def minutes_of(*command: str) -> float:
    """Run a command, and return the minutes it took."""
    started = time.perf_counter()
    done = subprocess.run(command, cwd=ROOT, stdout=sys.stderr, check=False)
    if done.returncode:
        raise click.ClickException(
            f"`{' '.join(command)}` ended with {done.returncode}: see above."
        )
    return (time.perf_counter() - started) / 60


def golden_failures() -> int:
    """Run the tests of recorded decisions, files and routes, and return 1 where any fails."""
    command = [sys.executable, "-m", "pytest", "tests/golden", "-m", "slow or not slow"]
    return int(subprocess.run(command, cwd=ROOT, stdout=sys.stderr, check=False).returncode != 0)


def speeds(before: str) -> list[Measure]:
    """Time one decision beside that of another commit, in one run."""
    with checked_out(before) as tree:
        rows = [compare(tree, arms, repeats=15) for arms in ARMS]
    return [Measure(SPEED.format(arms=row.arms), row.ratio, 0.95, is_least=True) for row in rows]


# -- the table of CONTRIBUTING


def asked_for() -> list[Measure]:
    """Return the rows that take minutes, not measured: a table holds what it had of them."""
    speed = [Measure(SPEED.format(arms=arms), math.nan, 0.95, is_least=True) for arms in ARMS]
    return [*speed, Measure(GOLDEN, math.nan, 0)]


def table(found: Sequence[Measure], former: Sequence[str] = ()) -> str:
    """Return the measures that have a bar as a table of Markdown, former rows for the rest."""
    rows = {one.name: _row_of(one) for one in found if one.bar is not None}
    had = {_name_of(row): row for row in former}
    for one in asked_for():
        rows.setdefault(one.name, had.get(one.name, _row_of(one)))
    return "".join(["| | at 2887d03 | now | bar |\n| --- | --: | --: | --: |\n", *rows.values()])


def _row_of(one: Measure) -> str:
    return f"| {one.name} | {BEFORE.get(one.name, '–')} | {one.number()} | {one.limit()} |\n"


def with_table(page: str, found: Sequence[Measure]) -> str:
    """Return a page with the table between its marks renewed."""
    before, start, rest = page.partition(MARKS[0])
    former, end, after = rest.partition(MARKS[1])
    return f"{before}{start}{table(found, former.splitlines(keepends=True))}{end}{after}"


def rows_of(page: str) -> list[str]:
    """Return the names of the rows between the marks of a page."""
    between = page.partition(MARKS[0])[2].partition(MARKS[1])[0]
    return [_name_of(row) for row in between.splitlines()[2:]]


def _name_of(row: str) -> str:
    return row.removeprefix("| ").partition(" | ")[0]


@click.command("size")
@click.option("--tests", is_flag=True, help="Also time `make test`, on a quiet machine.")
@click.option("--ci", is_flag=True, help="Also time `.ci/run`, which tests everything.")
@click.option("--golden", is_flag=True, help="Also compare with recorded decisions and files.")
@click.option("--before", help="Also time one decision beside that of this commit.")
@click.option("--write", is_flag=True, help="Write the table into CONTRIBUTING.md.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON, with what was counted.")
def size_command(
    tests: bool, ci: bool, golden: bool, before: str | None, write: bool, as_json: bool
) -> None:
    """Print the shape of the product beside its bars; exit with 1 where one is missed."""
    found = measure()
    if tests:
        found.append(Measure("minutes of make test", minutes_of("make", "test"), 5.0))
    if ci:
        found.append(Measure("minutes of .ci/run", minutes_of("bash", ".ci/run"), 45.0))
    if golden:
        found.append(Measure(GOLDEN, golden_failures(), 0))
    if before is not None:
        found += speeds(before)
    if write:
        PAGE.write_text(with_table(PAGE.read_text(encoding="utf-8"), found), encoding="utf-8")
    if as_json:
        click.echo(json.dumps([_as_json(one) for one in found], indent=1))
    else:
        print_table(("", "now", "bar", ""), [one.cells() for one in found], title="Shape")
    if any(one.is_met is False for one in found):
        sys.exit(1)


def _as_json(one: Measure) -> dict[str, object]:
    value = None if math.isnan(one.value) else one.value
    return {**asdict(one), "value": value, "is_met": one.is_met}

"""`python -m lab size`: how big the product is, beside the bars it is held to."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import click

from fastbandit.cli.main import cli
from fastbandit.cli.tables import print_table
from lab.benchmarks.before_after import checked_out, compare

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "fastbandit"


@dataclass(frozen=True)
class Measure:
    """One number, the bar it is held to (the most, or the least), and whether it meets the bar."""

    name: str
    value: float
    bar: float | None = None
    is_least: bool = False

    @property
    def is_met(self) -> bool | None:
        if self.bar is None:
            return None
        return self.value >= self.bar if self.is_least else self.value <= self.bar

    def cells(self) -> tuple[str, ...]:
        """Return the row of a table."""
        sign = "≥" if self.is_least else "≤"
        bar = "–" if self.bar is None else f"{sign} {self.bar:,.10g}"
        met = {None: "", True: "met", False: "missed"}[self.is_met]
        value = f"{self.value:,.3g}" if self.value < 100 else f"{self.value:,.0f}"
        return (self.name, value, bar, met)


def sources() -> list[Path]:
    """Return the Python files of the package, as the wheel has them."""
    return sorted(path for path in PACKAGE.rglob("*.py") if "__pycache__" not in path.parts)


def lines_of(paths: list[Path]) -> int:
    return sum(path.read_text(encoding="utf-8").count("\n") for path in paths)


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
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom):
                found += (node.module or "").partition(".")[0] == "lab"
            elif isinstance(node, ast.Import):
                found += any(alias.name.partition(".")[0] == "lab" for alias in node.names)
    return found


def measure() -> list[Measure]:
    """Measure the tree as it is."""
    paths = sources()
    context = click.Context(cli, info_name="fastbandit")
    return [
        Measure("lines of Python in the wheel", lines_of(paths), 42_500),
        Measure("modules at the top of the package", len(list(PACKAGE.glob("*.py"))), 26),
        Measure("commands of fastbandit", len(list(commands(cli, context))), 24),
        Measure("imports of the laboratory in the product", imports_of_the_laboratory(paths), 0),
        Measure("files in the wheel", len(paths)),
        Measure("lines of the longest file", max(lines_of([path]) for path in paths)),
        Measure("lines of the laboratory", lines_of(sorted((ROOT / "lab").rglob("*.py")))),
    ]


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


@click.command("size")
@click.option("--tests", is_flag=True, help="Also time `make test`, on a quiet machine.")
@click.option("--ci", is_flag=True, help="Also time `.ci/run`, which tests everything.")
@click.option("--golden", is_flag=True, help="Also compare with recorded decisions and files.")
@click.option("--before", help="Also time one decision beside that of this commit.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def size_command(tests: bool, ci: bool, golden: bool, before: str | None, as_json: bool) -> None:
    """Print the size of the product beside its bars; exit with 1 where one is missed."""
    found = measure()
    if tests:
        found.append(Measure("minutes of make test", minutes_of("make", "test"), 5.0))
    if ci:
        found.append(Measure("minutes of .ci/run", minutes_of("bash", ".ci/run"), 45.0))
    if golden:
        found.append(Measure("recorded decisions, files or routes differ", golden_failures(), 0))
    if before is not None:
        with checked_out(before) as tree:
            rows = [compare(tree, arms, repeats=15) for arms in (10_000, 100_000)]
        found += [
            Measure(f"p50 before ÷ after, {row.arms:,} arms", row.ratio, 0.95, is_least=True)
            for row in rows
        ]
    if as_json:
        listed = [{**asdict(one), "is_met": one.is_met} for one in found]
        click.echo(json.dumps(listed, indent=1))
    else:
        print_table(("", "now", "bar", ""), [one.cells() for one in found], title="Size")
    if any(one.is_met is False for one in found):
        sys.exit(1)

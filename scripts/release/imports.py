"""Which packages each of our modules needs, read from its source and from pyproject.toml."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "fastbandit"
LABORATORY = ROOT / "lab"
IMPORTED_AS = {
    "faiss-cpu": "faiss",
    "pillow": "PIL",
    "scikit-learn": "sklearn",
}
"""The module of a package, where it is not the package's name."""
_OURS = (PACKAGE.name, LABORATORY.name)
BROUGHT_BY = {"llvmlite": "numba", "psycopg_pool": "psycopg", "triton": "torch"}
"""Modules that come with another package, which pins them: they are not asked for by name."""


@dataclass(frozen=True)
class Import:
    """A module that a file imports, and whether that happens when the file is imported."""

    module: str
    is_at_once: bool

    @property
    def root(self) -> str:
        return self.module.partition(".")[0]


# -- what the sources import


@cache
def modules(package: Path = PACKAGE) -> dict[str, Path]:
    """Return the files of the package, or of the laboratory, by the names of their modules."""
    return {_module_of(path): path for path in sorted(package.rglob("*.py"))}


@cache
def imports_of(path: Path) -> tuple[Import, ...]:
    """Read what a file imports, but for types alone."""
    return tuple(_imports_in(ast.parse(path.read_text(encoding="utf-8")), is_at_once=True))


def others_in(path: Path) -> set[str]:
    """Return the modules of other packages that a file imports, wherever in the file.

    The laboratory may import the product, and the product nothing of the laboratory.
    """
    roots = {one.root for one in imports_of(path)}
    ours = {PACKAGE.name, path.relative_to(ROOT).parts[0]}
    return {root for root in roots if root not in sys.stdlib_module_names} - ours


def needs_of(module: str) -> frozenset[str]:
    """Give the modules of other packages that are imported when a module is."""
    seen: set[str] = set()
    _follow(module, seen)
    theirs = {name.partition(".")[0] for name in seen}
    return frozenset(
        BROUGHT_BY.get(name, name)
        for name in theirs
        if name not in _OURS and name not in sys.stdlib_module_names
    )


def _follow(module: str, seen: set[str]) -> None:
    if module in seen:
        return
    seen.add(module)
    known, parts = modules() | modules(LABORATORY), module.split(".")
    for length in range(1, len(parts)):  # a package is imported before what is in it
        _follow(".".join(parts[:length]), seen)
    for one in imports_of(known[module]) if module in known else ():
        if one.is_at_once:
            _follow(one.module, seen)


def _imports_in(node: ast.AST, *, is_at_once: bool) -> Iterator[Import]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Import):
            yield from (Import(alias.name, is_at_once) for alias in child.names)
        elif isinstance(child, ast.ImportFrom) and child.module:
            yield Import(child.module, is_at_once)
            names = (f"{child.module}.{alias.name}" for alias in child.names)
            yield from (Import(name, is_at_once) for name in names if _is_module(name))
        elif isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test):
            continue
        else:
            is_function = isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
            yield from _imports_in(child, is_at_once=is_at_once and not is_function)


def _is_module(name: str) -> bool:
    parts = name.split(".")
    if parts[0] not in _OURS:
        return False
    path = ROOT.joinpath(*parts)
    return path.with_suffix(".py").exists() or (path / "__init__.py").exists()


def _module_of(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(part for part in parts if part != "__init__")


# -- what pyproject.toml asks for


def project() -> dict[str, object]:
    """Read the project's table of pyproject.toml."""
    told = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    table: dict[str, object] = told["project"]
    return table


def extras() -> dict[str, list[str]]:
    """Give the requirements of each extra, as they are written."""
    found = project()["optional-dependencies"]
    assert isinstance(found, dict)
    return found


def base() -> list[str]:
    """Give the requirements of the base install."""
    found = project()["dependencies"]
    assert isinstance(found, list)
    return found


def provided_by(extra: str = "") -> frozenset[str]:
    """Give the modules that come with the base, and with an extra on top of it."""
    provided = {module_of(line) for line in base()}
    for line in extras()[extra] if extra else ():
        inner = re.match(r"fastbandit\[([\w,-]+)\]", line)
        for name in inner[1].split(",") if inner else ():
            provided |= provided_by(name)
        if inner is None:
            provided.add(module_of(line))
    return frozenset(provided)


def module_of(requirement: str) -> str:
    """Give the module that a requirement brings."""
    found = re.match(r"[\w.-]+", requirement)
    assert found is not None, requirement
    return IMPORTED_AS.get(found[0], found[0].replace("-", "_"))

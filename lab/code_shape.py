"""Counts read from the syntax of the package: functions, kernels, parts, and tests of modules."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parent.parent
AnyFunction = ast.FunctionDef | ast.AsyncFunctionDef
_LISTS = ast.Tuple | ast.List | ast.Set | ast.Dict | ast.match_case | ast.Compare


class Function(NamedTuple):
    """A function or method: its parameters without `self`, and what it is."""

    name: str
    path: str
    line: int
    parameters: int
    keyword_only: int
    is_public: bool
    is_kernel: bool

    def __str__(self) -> str:
        return f"{self.path}:{self.line} {self.name} has {self.parameters}"


@cache
def tree_of(path: Path) -> ast.Module:
    """Return the syntax of a file."""
    return ast.parse(path.read_text(encoding="utf-8"))


def shown(path: Path) -> str:
    """Return a path as people write it: from the root of the repository."""
    return (path.relative_to(ROOT) if path.is_relative_to(ROOT) else path).as_posix()


def lines_of(path: Path) -> int:
    """Return the lines of a file, blank ones and comments included."""
    return path.read_text(encoding="utf-8").count("\n")


# -- functions


def functions_in(path: Path) -> list[Function]:
    """Return all functions and methods of a file.

    One is public if no name on the way to it begins with `_` (constructors apart) and it does not
    stand inside another function. A kernel is decorated with `compiled`, or a `jit`.
    """
    return list(_functions(tree_of(path), path, is_public=True, in_class=False))


def is_kernel_file(path: Path) -> bool:
    """Return whether most functions of a file are compiled."""
    found = functions_in(path)
    return sum(one.is_kernel for one in found) * 2 > len(found)


def keyword_share(functions: Sequence[Function]) -> float:
    """Return the share, in %, of wide public functions that force some parameters by keyword.

    Wide are those with more than four parameters; kernels count, though numba forces none.
    """
    wide = [one for one in functions if one.is_public and one.parameters > 4]
    return 100 * sum(one.keyword_only > 0 for one in wide) / max(len(wide), 1)


def _functions(node: ast.AST, path: Path, *, is_public: bool, in_class: bool) -> Iterator[Function]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, AnyFunction):
            yield _function(child, path, is_public=is_public, in_class=in_class)
            yield from _functions(child, path, is_public=False, in_class=False)
        elif isinstance(child, ast.ClassDef):
            is_open = is_public and not child.name.startswith("_")
            yield from _functions(child, path, is_public=is_open, in_class=True)
        else:
            yield from _functions(child, path, is_public=is_public, in_class=in_class)


def _function(node: AnyFunction, path: Path, *, is_public: bool, in_class: bool) -> Function:
    positional = [*node.args.posonlyargs, *node.args.args]
    has_self = in_class and positional and positional[0].arg in ("self", "cls")
    return Function(
        node.name,
        shown(path),
        node.lineno,
        parameters=len(positional) - bool(has_self) + len(node.args.kwonlyargs),
        keyword_only=len(node.args.kwonlyargs),
        is_public=is_public and (not node.name.startswith("_") or node.name == "__init__"),
        is_kernel=any(_compiles(ast.unparse(one)) for one in node.decorator_list),
    )


def _compiles(decorator: str) -> bool:
    return "jit" in decorator or decorator.startswith("compiled(")


# -- parts


def parts_in(paths: Sequence[Path], role: str) -> dict[str, tuple[str, Path]]:
    """Return the declared parts of a role: class, name in settings, and the file of each.

    The role "model" stands for the classes that are reward models: each posterior has one. An
    estimator may be declared, or else be a subclass of `Estimator`.
    """
    found = {}
    for path in paths:
        for node in ast.walk(tree_of(path)):
            if isinstance(node, ast.ClassDef):
                name = _declared_name(node, role)
                if name is not None:
                    found[node.name] = (name, path)
    if role == "estimator" and not found:
        return _heirs(paths, "Estimator")
    return _heirs(paths, "RewardModel") if role == "model" else found


def _heirs(paths: Sequence[Path], base: str) -> dict[str, tuple[str, Path]]:
    classes = {
        node.name: (path, {ast.unparse(one).rpartition(".")[2] for one in node.bases})
        for path in paths
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.ClassDef)
    }
    found = {base}
    while True:
        further = {name for name, (_, bases) in classes.items() if bases & found} - found
        if not further:
            return {name: ("", classes[name][0]) for name in sorted(found - {base})}
        found |= further


def files_to_touch(paths: Sequence[Path], role: str) -> list[Path]:
    """Return the files that list the parts of a role, so that one more has to be entered.

    Such a file names, in one function or one statement, at least three parts that it does not
    define itself, each where parts are distinguished: inside a tuple, list, set or dict, a union
    of types, a `match`, an `isinstance`, or a comparison. A default that is built,
    `Exhaustive()`, is no entry of a list, and neither is an import, a public name in an
    `__init__.py`, or an example that the demo shows.
    """
    families = [parts_in(paths, role)]
    if role == "posterior":
        families.append(parts_in(paths, "model"))
    return [
        path
        for path in paths
        if path.name != "__init__.py" and path.parent.name != "demo"
        if any(_lists(path, family) for family in families)
    ]


def _lists(path: Path, family: dict[str, tuple[str, Path]]) -> bool:
    others = {kind: name for kind, (name, home) in family.items() if home != path}
    for block in _blocks(tree_of(path)):
        named = _distinguished(block)
        found = [kind for kind, name in others.items() if {kind, repr(name or kind)} & named]
        if len(found) >= 3:
            return True
    return False


def _blocks(tree: ast.Module) -> Iterator[ast.AST]:
    """Yield functions, each whole, and the statements that stand outside of them."""
    for node in ast.walk(tree):
        if isinstance(node, AnyFunction):
            yield node
        elif isinstance(node, ast.Module | ast.ClassDef):
            yield from (one for one in node.body if not isinstance(one, AnyFunction | ast.ClassDef))


def _declared_name(node: ast.ClassDef, role: str) -> str | None:
    for decorator in node.decorator_list:
        if isinstance(decorator, ast.Call) and ast.unparse(decorator.func) == "part":
            said = decorator.args and ast.literal_eval(decorator.args[0])
            names = [one.value for one in decorator.keywords if one.arg == "name"]
            if said == role:
                return str(ast.literal_eval(names[0])) if names else ""
    return None


def _distinguished(tree: ast.AST) -> set[str]:
    """Return the names, and the texts as `repr`, that stand where one of several is picked."""
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, _LISTS) or (
            isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr)
        ):
            found |= _names(node)
        elif isinstance(node, ast.Call) and ast.unparse(node.func) in ("isinstance", "issubclass"):
            found |= _names(node.args[1])
        elif isinstance(node, ast.Subscript) and ast.unparse(node.value) == "Literal":
            found |= _names(node.slice)
    return found


def _names(node: ast.AST) -> set[str]:
    found = set()
    for child in ast.walk(node):
        if isinstance(child, ast.Name):
            found.add(child.id)
        elif isinstance(child, ast.Attribute):
            found.add(child.attr)
        elif isinstance(child, ast.Constant) and isinstance(child.value, str):
            found |= {child.value, repr(child.value)}
    return found


# -- tests


def untested(paths: Sequence[Path], tests: Path) -> list[Path]:
    """Return the modules without a file `test_<module>.py` or `test_<room>_<module>.py`."""
    there: dict[str, int] = defaultdict(int)
    for path in tests.rglob("test_*.py"):
        there[path.name] += 1
    return [
        path
        for path in modules_among(paths)
        if not there.get(f"test_{path.stem}.py")
        and not there.get(f"test_{path.parent.name}_{path.stem}.py")
    ]


def modules_among(paths: Sequence[Path]) -> list[Path]:
    """Return the files that hold code of their own: neither `__init__.py` nor `__main__.py`."""
    return [path for path in paths if path.stem not in ("__init__", "__main__")]

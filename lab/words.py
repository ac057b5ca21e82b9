"""The words that names, settings, commands, routes and pages do not use, and where they stand."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import click

from fastbandit.cli.main import cli as product
from fastbandit.serving.openapi import openapi
from fastbandit.settings.service import SECTIONS
from lab.code_shape import AnyFunction, shown, tree_of

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "fastbandit"

IN_NAMES = {
    "ailment": "problem, reason, health",
    "alive": "live",
    "allowed": "eligible",
    "asker": "client, caller, context",
    "away": "unavailable",
    "beginning": "what it checks",
    "belief": "posterior",
    "cell": "partition",
    "chance": "probability, propensity",
    "cooling": "cosine schedule",
    "crew": "workers",
    "doubt": "posterior",
    "floor": "epsilon, minimum",
    "gate": "eligibility",
    "guess": "surrogate",
    "item": "arm",
    "kept": "stored, retained",
    "key": "id",
    "lesson": "training, interactions",
    "lift": "difference",
    "lot": "propensity, draw",
    "nobody": "none",
    "nought": "zero",
    "open": "eligible",
    "otherwise": "default reward",
    "pair": "interaction",
    "place": "row, position",
    "player": "agent",
    "put": "upsert",
    "query": "context",
    "refusing": "reject",
    "seal": "checksum",
    "sealed": "checksum",
    "settle": "re-rank, resolve",
    "shelf": "partition",
    "shelve": "partition",
    "state": "context, status",
    "taught": "trained",
    "teach": "train",
    "team": "process group",
    "tell": "report, describe",
    "telling": "report",
    "told": "report, answer, described",
    "turn": "leader lease",
    "twin": "compiled policy, snapshot",
    "wave": "random Fourier feature",
    "wish": "score",
    "word": "text, embedding",
    "world": "environment",
}
"""A word that no public name holds, in one number or the other, and what to say instead."""

MEANT = {
    "alive": (r"function timeout_keep_alive_handler",),  # of uvicorn
    "cell": (r"parameter cell",),  # of a table
    "item": (r"(function|field) items",),  # of a mapping, of the Open Bandit data
    "kept": (r"parameter kept",),  # of the candidates so far
    "key": (
        r"\w+ (tls_key|(create|revoke|list)_keys?|keys?)",  # of the API
        r"\w+ (?i:(signing_)?keys?_(file|path|ring))",
        r"field Keys",  # that sign
        r"function read_keys",
        r"\w+ Key(Ring|Fault)?",
        r"option --(tls-)?keys?(-\w+)*",
        r"command keys( \w+)?",
        r"\w+ (primary|foreign|sort)_key",
    ),
    "open": (  # a file, a connection, a data set
        r"function open(_(bandit|for_reading|log|parquet|snapshots|store|text|url))?",
        r"module open_bandit",
        r"(command|option) \S*open-bandit",
        r"parameter (open_log|is_open)",
    ),
    "place": (r"\w+ placeholders?",),
    "put": (r"method put",),  # of HTTP
    "query": (r"parameter query", r"text query_string"),  # of a URL, or in SQL
    "state": (
        r"\w+ random_state",  # of scikit-learn
        r"\w+ (load_)?state_dict",  # of torch
        r"(module|parameter|field|function) state",  # of a process, of a check
        r"(class|field) State",
    ),
    "word": (r"\w+ passwords?", r"\w+ keywords?", r"function (add|count)_words"),  # or of a text
}
"""Names in which such a word means what everybody means by it, by word: kind and name."""

RENAMED = {
    "Box.between": "Box(low, high)",
    ".choose(": "select_one",
    "doubt=": "posterior=",
    'explore="': "exploration=",
    "keep_as": "dtype",
    "LogAwayError": "LogUnavailableError",
    "otherwise=": "default_reward=",
    "put_arms": "upsert_arms",
    "quality_floor": "min_quality",
    "remove_arms": "discard_arms",
    "take_arms": "discard_arms",
}
"""What was called otherwise before: pages name it no more, except for those of the changes."""

IN_PAGES = (
    r"ailments?",
    r"alive",
    r"allowed arms?",
    r"arms? (?:that (?:is|are) )?allowed",
    r"askers?",
    r"by lot",
    r"cooling",
    r"crews?",
    r"doubt(?:s|ed|ful)?",
    r"draws? lots",
    r"gates?",
    r"guess(?:es|ed)?",
    r"lessons?",
    r"lift",
    r"made[- ]up",
    r"nobody",
    r"nought",
    r"players?",
    r"sealed",
    r"settl(?:e|es|ed|ing)",
    r"shel(?:f|ves)",
    r"taught",
    r"team",
    r"the otherwise",
    r"twins?",
    r"waves?",
    r"wish(?:es|ed)?",
    r"worlds?",
)
"""Words and phrases that no page and no help text uses, in small letters or capitals."""

_IN_PAGES = re.compile(rf"(?<![\w-])(?:{'|'.join(IN_PAGES)})(?![\w-])", re.IGNORECASE)
_SNAKE = r"[a-z]+(_[a-z]+)+"
_CELLS = re.compile(r"\bcells?\b(?! of (?:a|the) notebook)", re.IGNORECASE)
_RENAMED = re.compile("|".join(rf"(?<!\w){re.escape(old)}" for old in RENAMED))


class Named(NamedTuple):
    """Something that has a name: what kind of thing it is, its name, and where it stands."""

    kind: str
    name: str
    place: str


class Hit(NamedTuple):
    """A banned word: the word, in what, and where."""

    word: str
    name: str
    place: str

    def __str__(self) -> str:
        return f"{self.place}: {self.name} ({self.word})"


def all_hits() -> dict[str, list[Hit]]:
    """Return the banned words of the product and its pages, by where they were looked for."""
    paths = sorted(PACKAGE.rglob("*.py"))
    return {
        "public names": list(in_names(public_names(paths))),
        "settings": list(in_names(settings(paths))),
        "commands": list(in_names(commands(product))) + list(in_help(product)),
        "routes and JSON fields": list(in_names(routes(openapi()))),
        "metrics": list(in_names(texts_like_names(sorted((PACKAGE / "serving").rglob("*.py"))))),
        "docs": [hit for path in pages() for hit in in_page(path)],
        "docstrings": list(in_docstrings(paths)),
    }


# -- names


def words_of(name: str) -> list[str]:
    """Return the words of a name in any style, in small letters."""
    return [word.lower() for word in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+", name)]


def in_names(named: Iterable[Named]) -> Iterator[Hit]:
    """Yield each banned word of each name, where it does not mean what everybody means by it."""
    for one in named:
        said = words_of(one.name)
        if "made_up" in one.name or "made-up" in one.name:
            yield Hit("made-up", f"{one.kind} {one.name}", one.place)
        for word in dict.fromkeys(_singular(word) for word in said):
            patterns = MEANT.get(word, ())
            is_meant = any(re.fullmatch(each, f"{one.kind} {one.name}") for each in patterns)
            if word in IN_NAMES and not is_meant:
                yield Hit(word, f"{one.kind} {one.name}", one.place)


def _singular(word: str) -> str:
    for ending in ("es", "s", ""):
        if word.endswith(ending) and word.removesuffix(ending) in IN_NAMES:
            return word.removesuffix(ending)
    return word


def public_names(paths: Iterable[Path]) -> Iterator[Named]:
    """Yield modules, classes, functions, parameters and fields that do not begin with `_`."""
    for path in paths:
        name = path.parent.name if path.stem == "__init__" else path.stem
        if not name.startswith("_"):
            yield Named("module", name, shown(path))
        yield from _names_in(tree_of(path), shown(path))


def _names_in(node: ast.AST, file: str) -> Iterator[Named]:
    for child in ast.iter_child_nodes(node):
        place = f"{file}:{getattr(child, 'lineno', 0)}"
        if isinstance(child, AnyFunction):
            if _is_public(child.name) or child.name == "__init__":
                yield Named("function", child.name, place)
                taken = child.args
                for one in (*taken.posonlyargs, *taken.args, *taken.kwonlyargs):
                    if _is_public(one.arg):
                        yield Named("parameter", one.arg, f"{file}:{one.lineno}")
        elif isinstance(child, ast.ClassDef):
            if _is_public(child.name):
                yield Named("class", child.name, place)
                yield from _names_in(child, file)
        elif isinstance(child, ast.Assign | ast.AnnAssign):
            targets = child.targets if isinstance(child, ast.Assign) else [child.target]
            for target in targets:
                if isinstance(target, ast.Name) and _is_public(target.id):
                    yield Named("field", target.id, place)
        elif isinstance(child, ast.If | ast.Try | ast.With):
            yield from _names_in(child, file)


def _is_public(name: str) -> bool:
    return not name.startswith("_")


def settings(paths: Iterable[Path]) -> Iterator[Named]:
    """Yield sections and settings of the service, and the roles and names of declared parts."""
    for section, kind in SECTIONS.items():
        yield Named("section", section, "fastbandit.toml")
        for name in getattr(kind, "__dataclass_fields__", {}):
            yield Named("setting", name, f"[{section}]")
    for path in paths:
        for node in ast.walk(tree_of(path)):
            if isinstance(node, ast.ClassDef):
                for text in _texts_of_part(node):
                    yield Named("part", text, f"{shown(path)}:{node.lineno}")


def _texts_of_part(node: ast.ClassDef) -> Iterator[str]:
    for decorator in node.decorator_list:
        if isinstance(decorator, ast.Call) and ast.unparse(decorator.func) == "part":
            said = [*decorator.args, *(k.value for k in decorator.keywords if k.arg == "name")]
            yield from (str(one.value) for one in said if isinstance(one, ast.Constant))
            for child in ast.walk(node):
                if isinstance(child, ast.keyword) and child.arg == "choices":
                    yield from (str(text) for text in ast.literal_eval(child.value))


# -- commands and routes


def commands(group: click.Command, name: str = "") -> Iterator[Named]:
    """Yield commands, below groups too, and the options and arguments of each."""
    for option in group.params:
        for said in (*option.opts, *option.secondary_opts):
            kind = "option" if said.startswith("-") else "argument"
            yield Named(kind, said, name or "fastbandit")
    if isinstance(group, click.Group):
        for below, command in _below(group):
            full = f"{name} {below}".strip()
            yield Named("command", full, "fastbandit")
            yield from commands(command, full)


def in_help(group: click.Command, name: str = "fastbandit") -> Iterator[Hit]:
    """Yield each banned word of a help text."""
    said = [group.help or ""] + [getattr(option, "help", None) or "" for option in group.params]
    for text in said:
        yield from (Hit(word, text, f"help of {name}") for word in _banned(text))
    if isinstance(group, click.Group):
        for below, command in _below(group):
            yield from in_help(command, f"{name} {below}")


def _below(group: click.Group) -> Iterator[tuple[str, click.Command]]:
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if command is not None:
            yield name, command


def routes(described: Mapping[str, Any]) -> Iterator[Named]:
    """Yield routes, their parameters, and every field of what they take and answer."""
    for route, methods in described["paths"].items():
        yield Named("route", route, "HTTP")
        for method, about in methods.items():
            for taken in about.get("parameters", ()):
                yield Named("parameter", taken["name"], f"{method.upper()} {route}")
    yield from _fields(described)


def _fields(described: Any) -> Iterator[Named]:
    if isinstance(described, Mapping):
        for name in described.get("properties", {}):
            yield Named("JSON field", name, "HTTP")
        for below in described.values():
            yield from _fields(below)
    elif isinstance(described, list):
        for below in described:
            yield from _fields(below)


def texts_like_names(paths: Iterable[Path]) -> Iterator[Named]:
    """Yield the texts of code that look like names: metrics, labels, fields of the status."""
    for path in paths:
        for node in ast.walk(tree_of(path)):
            if isinstance(node, ast.Constant) and re.fullmatch(_SNAKE, str(node.value)):
                yield Named("text", str(node.value), f"{shown(path)}:{node.lineno}")


# -- pages


def pages() -> list[Path]:
    """Return the pages that people read: README, CONTRIBUTING, docs and notebooks."""
    docs = ROOT / "docs"
    found = [*docs.glob("*.md"), *docs.glob("reference/*.md"), *docs.glob("notebooks/*.ipynb")]
    return [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(found)]


def in_page(path: Path) -> Iterator[Hit]:
    """Yield the banned words and former names of a page; those of a notebook, without outputs."""
    is_notebook = path.suffix == ".ipynb"
    text = path.read_text(encoding="utf-8")
    if is_notebook:
        text = "\n".join("".join(cell["source"]) for cell in json.loads(text)["cells"])
    for number, line in enumerate(text.splitlines(), start=1):
        found = _banned(line) + ([] if is_notebook else _CELLS.findall(line))
        for word in [*found, *_RENAMED.findall(line)]:
            yield Hit(word.lower(), line.strip(), f"{shown(path)}:{number}")


def _banned(text: str) -> list[str]:
    return _IN_PAGES.findall(text)


def in_docstrings(paths: Iterable[Path]) -> Iterator[Hit]:
    """Yield docstrings that begin with Give or Tell: they say Return, or what is done."""
    for path in paths:
        for node in ast.walk(tree_of(path)):
            if isinstance(node, AnyFunction | ast.ClassDef | ast.Module):
                said = ast.get_docstring(node) or ""
                first = re.match(r"(Gives?|Tells?)\b", said)
                if first:
                    place = f"{shown(path)}:{getattr(node, 'lineno', 1)}"
                    yield Hit(first[0].lower(), said.partition("\n")[0], place)

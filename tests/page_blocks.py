"""The fenced blocks of the documentation, and how each kind of them is run or checked."""

from __future__ import annotations

import ast
import io
import json
import os
import re
import shlex
import tomllib
from collections.abc import Callable, Iterator
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from textwrap import dedent
from typing import Any
from urllib.parse import urlsplit

import click
import jsonschema
import numpy as np
import pytest
import yaml

from fastbandit import Bandit, Schema
from fastbandit.cli.main import cli as product
from fastbandit.cli.main import run as run_program
from fastbandit.serving.openapi import openapi
from fastbandit.settings.service import SECTIONS
from fastbandit.settings.service_files import read_config
from lab.__main__ import cli as laboratory
from lab.experiments.suite_file import read_suite

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
CLIENT = ROOT / "clients" / "typescript"
NOBODY = "http://127.0.0.1:9"  # nothing listens there

PROGRAMS: dict[str, click.Group] = {"fastbandit": product, "python -m lab": laboratory}
"""Our own programs, by how a shell calls them."""

NOT_RUN = {
    "takes minutes": "it trains or measures for longer than a test may",
    "takes hours": "it plays whole suites",
    "downloads": "it needs the network",
    "until Ctrl-C": "it does not end by itself",
    "with a service": "it asks a service that runs; the tests of the service do",
    "with its data folder": "it needs what a service wrote; the tests of the commands do",
    "with your files": "the files it names are the reader's",
    "in a page": "it needs a page; the tests of the client in TypeScript open one",
    "on a GPU": "it needs a GPU",
    "on a cluster": "it needs machines that a test has not",
    "layout": "it shows names of files, or a shape",
}
"""Titles of fences that are read and parsed, and not run: why."""

_FENCE = re.compile(
    r"^(?P<indent> *)```(?P<info>[^\n`]*)\n(?P<text>.*?)^(?P=indent)``` *$",
    re.MULTILINE | re.DOTALL,
)
_TITLE = re.compile(r'^(?P<language>\w*)(?: title="(?P<title>[^"]+)")?$')


@dataclass(frozen=True)
class Block:
    """A fenced block: its language, its title, its text, and where it begins."""

    language: str
    title: str
    text: str
    place: str


@dataclass
class Page:
    """A page under way: what its blocks so far have left to those that follow."""

    names: dict[str, Any] = field(default_factory=dict)
    printed: str = ""
    answer: dict[str, Any] | None = None
    missing: list[str] = field(default_factory=list)


def pages() -> list[Path]:
    """Give every page of the documentation, the README first."""
    found = sorted(path for path in DOCS.rglob("*.md") if "notebooks" not in path.parts)
    return [ROOT / "README.md", *found]


def blocks_of(path: Path) -> Iterator[Block]:
    """Give the blocks of a page, in their order."""
    text = path.read_text(encoding="utf-8")
    for found in _FENCE.finditer(text):
        place = f"{path.name}, line {text[: found.start()].count(chr(10)) + 1}"
        said = _TITLE.match(found["info"].strip())
        assert said, f"{place}: a fence is a language and at most a title, not {found['info']!r}"
        code = dedent(found["text"])
        yield Block(said["language"], said["title"] or "", code, place)


def unfenced(path: Path) -> str:
    """Give the text of a page outside of its blocks."""
    return _FENCE.sub("", path.read_text(encoding="utf-8"))


def run_page(path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run the blocks of a page in their order, in one folder and among the same names."""
    monkeypatch.chdir(folder)
    monkeypatch.setenv("FASTBANDIT_DATA", str(folder / "no-data"))
    monkeypatch.setattr("os.fsync", lambda file: None)  # no power is cut here
    page = Page()
    for block in blocks_of(path):
        run_block(block, page)
    if page.missing:
        pytest.skip(f"not installed: {', '.join(page.missing)}")


def run_block(block: Block, page: Page) -> None:
    """Run a block after those before it, in the working folder; an unknown kind is a mistake."""
    known = ", ".join(sorted(_RUNNERS))
    assert block.language in _RUNNERS, (
        f"{block.place}: a block needs a language out of {known}, not {block.language!r}"
    )
    assert not block.title or block.title in {*NOT_RUN, "prints"}, (
        f"{block.place}: the title {block.title!r} means nothing; use one of NOT_RUN, or prints"
    )
    _RUNNERS[block.language](block, page)


# -- Python


def run_python(block: Block, page: Page) -> None:
    """Run code among the names of the page; what it prints is kept, warnings are none."""
    code = block.text.replace("http://127.0.0.1:8080", NOBODY)
    if block.title:
        compile(code, block.place, "exec")
        return
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        exec(compile(code, block.place, "exec", dont_inherit=True), page.names)
    assert err.getvalue() == "", f"{block.place}: {err.getvalue()}"
    page.printed = out.getvalue()


def run_python_with_packages(block: Block, page: Page) -> None:
    """Run code that needs other packages, where they are installed."""
    missing = [name for name in imported(block.text) if find_spec(name) is None]
    if missing:
        page.missing += missing
    else:
        run_python(block, page)


def imported(code: str) -> set[str]:
    """Give the packages that code imports."""
    found = set()
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Import):
            found |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module.partition(".")[0])
            if node.module == "fastbandit.adapters.scikit_learn":
                found.add("sklearn")
            elif node.module == "fastbandit.adapters.onnx_export":
                found |= {"onnx", "onnxruntime"}
    return found


# -- the shell


def run_shell(block: Block, page: Page) -> None:
    """Run each command of ours, or parse it where the title says so; check all others."""
    page.printed = ""
    for line in block.text.replace("\\\n", " ").splitlines():
        words = shlex.split(line, comments=True)
        variables = {}
        while words and re.fullmatch(r"[A-Z_]+=.*", words[0]):
            name, _, variables[name] = words.pop(0).partition("=")
        if not words:
            continue
        program, words = split_program(words)
        assert program in _COMMANDS, f"{block.place}: nothing here checks `{program}`"
        if program in PROGRAMS and not block.title:
            assert not _LONG & {*words} or "--list" in words, (
                f"{block.place}: `{line.strip()}` takes long; give the fence one of the titles "
                f"of NOT_RUN"
            )
            page.printed += run_command(program, words, variables)
        else:
            _COMMANDS[program](words, page)


def split_program(words: list[str]) -> tuple[str, list[str]]:
    """Part the program of a line from its arguments: `python -m lab` is one."""
    length = 3 if words[:2] == ["python", "-m"] else 1
    return " ".join(words[:length]), words[length:]


def run_command(program: str, words: list[str], variables: dict[str, str]) -> str:
    """Run a command of ours in this process, and return what it printed."""
    out, before, code = io.StringIO(), os.environ.copy(), None
    os.environ.update(variables)
    try:
        with redirect_stdout(out):
            run_program(PROGRAMS[program], words, prog_name=program)
    except SystemExit as ended:
        code = ended.code
    finally:
        os.environ.clear()
        os.environ.update(before)
    assert code == 0, f"`{program} {shlex.join(words)}` ended with {code}"
    return out.getvalue()


def parse_command(program: str, words: list[str], page: Page) -> None:
    """Parse a command: its options exist, its values are valid; files may be missing."""
    command: click.Command = PROGRAMS[program]
    context = click.Context(command, info_name=program)
    while isinstance(command, click.Group) and words:
        found = command.get_command(context, words[0])
        assert found is not None, f"there is no `{program} {shlex.join(words)}`"
        command, words = found, words[1:]
        context = click.Context(command, info_name=command.name, parent=context)
    try:
        command.make_context(command.name, words)
    except click.BadParameter as error:
        if not isinstance(getattr(error.param, "type", None), click.Path):
            raise


def check_pip(words: list[str], page: Page) -> None:
    """Check that what is installed of fastbandit has such extras."""
    extras = set(project()["project"]["optional-dependencies"])
    assert words[0] == "install", words
    for named in re.findall(r"(?:fastbandit|\.)\[([\w,-]+)\]", " ".join(words)):
        assert set(named.split(",")) <= extras, f"there are no extras {named}"


def check_make(words: list[str], page: Page) -> None:
    """Check that the targets are there."""
    targets = re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.M)
    for word in words:
        assert "=" in word or word in targets, f"the Makefile has no target {word}"


def check_curl(words: list[str], page: Page) -> None:
    """Check a request against the description of the interface, and remember what answers it."""
    told: dict[str, str | None] = {"method": None, "body": None}
    url = ""
    left = iter(words)
    for word in left:
        if word in ("-X", "--request"):
            told["method"] = next(left).lower()
        elif word in ("-d", "--data", "--json"):
            told["body"] = next(left)
        elif word in ("-H", "--header", "-o", "--cacert"):
            next(left)
        elif not word.startswith("-"):
            url = word
    method = told["method"] or ("get" if told["body"] is None else "post")
    path = urlsplit(url if "//" in url else f"//{url}").path
    described = openapi()["paths"].get(path, {})
    if path in ("/openapi.json", "/v1/console"):
        return
    assert method in described, f"there is no {method.upper()} {path}"
    if told["body"] is not None:
        shape = described[method]["requestBody"]["content"]["application/json"]["schema"]
        _validate(json.loads(told["body"]), shape)
    answers = described[method]["responses"]["200"]["content"]
    page.answer = next(iter(answers.values()))["schema"]


def check_npm(words: list[str], page: Page) -> None:
    """Check that a script is there, and that a package has the name and version that ours has."""
    package = json.loads((CLIENT / "package.json").read_text(encoding="utf-8"))
    assert words[0] in ("ci", "install", "run", "test"), words
    if words[0] == "run":
        assert words[1] in package["scripts"], f"there is no script {words[1]}"
    packed = [word for word in words if word.endswith(".tgz")]
    assert packed in ([], [f"./{package['name']}-{package['version']}.tgz"]), words


def check_file_names(words: list[str], page: Page) -> None:
    """Check that files of the repository that a command names are there."""
    for word in words:
        if re.match(r"(deploy|scripts|docs|lab|tests)/", word):
            assert (ROOT / word).exists(), f"there is no {word}"


def check_nothing(words: list[str], page: Page) -> None:
    """Take a command that every shell has."""


def project() -> dict[str, Any]:
    """Give what pyproject.toml says."""
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


# -- TypeScript


def check_typescript(block: Block, page: Page) -> None:
    """Check that our package exports what is imported; its own tests compile and run the code."""
    sources = "".join(
        (CLIENT / "src" / name).read_text(encoding="utf-8") for name in ("index.ts", "api.ts")
    )
    for names in re.findall(r'^import (?:type )?{([^}]+)} from "fastbandit";$', block.text, re.M):
        for name in names.split(","):
            assert re.search(rf"\b{name.strip()}\b", sources), f"{block.place}: no {name.strip()}"


# -- data


def read_toml(block: Block, page: Page) -> None:
    """Read a suite, a file of settings, a schema, or a service's config, by what is in it."""
    told = tomllib.loads(block.text)
    file = Path("block.toml")
    file.write_text(block.text, encoding="utf-8")
    if "datasets" in told:
        read_suite(str(file))
    elif "format" in told or "base" in told:
        Bandit(arms=np.eye(5), context=3, preset=str(file))
    elif "columns" in told:
        Schema.load(file)
    else:
        assert set(told) <= set(SECTIONS), f"{block.place}: neither suite, settings nor config"
        read_config(file, environ={})
    file.unlink()


def read_json(block: Block, page: Page) -> None:
    """Parse JSON; after a request it has to be an answer to that."""
    told = json.loads(block.text)
    if page.answer is not None:
        _validate(told, page.answer)


def read_yaml(block: Block, page: Page) -> None:
    """Parse YAML."""
    assert list(yaml.safe_load_all(block.text)), f"{block.place}: nothing in it"


def compare_text(block: Block, page: Page) -> None:
    """Compare with what the block before printed; any other text needs a title that says why."""
    assert block.title, f"{block.place}: a text is titled prints, or with one of NOT_RUN"
    if block.title == "prints":
        assert page.printed.strip() == block.text.strip(), f"{block.place} says otherwise"


def _validate(told: Any, shape: dict[str, Any]) -> None:
    whole = {**shape, "components": openapi()["components"]}
    jsonschema.Draft202012Validator(whole).validate(told)


_RUNNERS: dict[str, Callable[[Block, Page], None]] = {
    "python": run_python,
    "py": run_python_with_packages,
    "sh": run_shell,
    "ts": check_typescript,
    "toml": read_toml,
    "json": read_json,
    "yaml": read_yaml,
    "text": compare_text,
}
_LONG = {
    *("demo", "learn", "plan", "serve"),
    *("bench", "estimators", "experiment", "faults", "size", "tune"),
}
_COMMANDS: dict[str, Callable[[list[str], Page], None]] = {
    **{program: partial(parse_command, program) for program in PROGRAMS},
    "pip": check_pip,
    "make": check_make,
    "npm": check_npm,
    "curl": check_curl,
    "docker": check_file_names,
    "kubectl": check_file_names,
    "helm": check_file_names,
    "python": check_file_names,
    "cd": check_nothing,
    "mkdir": check_nothing,
    "git": check_nothing,
}

"""The examples in the README and the docs run; public names and commands are documented."""

from __future__ import annotations

import inspect
import re
import tomllib
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import click
import pytest

import fastbandit
from fastbandit import baselines
from fastbandit.cli import cli
from fastbandit.experiments import datasets, policies
from fastbandit.experiments.datasets.sources import SOURCES, Source
from fastbandit.experiments.suite_file import read_suite, suite_names

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", *sorted(DOCS.glob("*.md"))]
TYPED = [path for path in PAGES if path.name != "results.md"]  # which a command writes
COMMANDS = (
    "bench batch",
    "bench gpu",
    "bench index",
    "bench peers",
    "bench select",
    "demo",
    "experiment run",
    "experiment runtime",
    "experiment scaling",
    "freeze",
    "plan",
    "report",
    "tune",
    "data list",
    "data fetch",
    "data where",
    "data sample",
    "backup",
    "chaos disk",
    "chaos kills",
    "chaos learning",
    "chaos overload",
    "chaos power-cut",
    "chaos report",
    "chaos requests",
    "chaos swaps",
    "chaos throughput",
    "config show",
    "evaluate",
    "export",
    "init",
    "keys create",
    "keys list",
    "keys revoke",
    "learn",
    "restore",
    "rollback",
    "serve",
    "snapshots",
)


def blocks(language: str) -> Iterator[tuple[str, str]]:
    """Give the blocks of all pages in a language, each with a name."""
    for path in PAGES:
        found = re.findall(rf"```{language}\n(.*?)```", path.read_text(), re.DOTALL)
        yield from ((f"{path.name}-{number}", text) for number, text in enumerate(found))


def examples(language: str, *, having: str = "") -> list[Any]:
    return [pytest.param(text, id=name) for name, text in blocks(language) if having in text]


def page(name: str) -> str:
    return (DOCS / name).read_text(encoding="utf-8")


# -- examples


@pytest.mark.parametrize("code", examples("python"))
def test_an_example_runs(
    code: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)

    exec(compile(code, "example", "exec"), {})

    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("text", examples("toml", having="[[datasets]]"))
def test_a_suite_in_the_docs_can_be_read(text: str, tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text(text, encoding="utf-8")

    for part in read_suite(str(tmp_path / "mine.toml")).parts:
        assert set(part.options) <= set(options_of(part.dataset))


def test_a_source_release_holds_what_the_tests_read() -> None:
    told = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))

    included = told["tool"]["hatch"]["build"]["targets"]["sdist"]["include"]
    assert {"/fastbandit", "/tests", "/docs", "/README.md"} <= set(included)


# -- names


@pytest.mark.parametrize("name", fastbandit.__all__)
def test_a_public_name_is_documented(name: str) -> None:
    assert any(f"`{name}`" in path.read_text() for path in PAGES), f"{name} stands in no page"


@pytest.mark.parametrize("name", baselines.__all__)
def test_a_baseline_is_documented(name: str) -> None:
    assert f"`{name}`" in page("reference.md")


@pytest.mark.parametrize("name", policies.NAMES)
def test_a_policy_has_a_row_of_its_own(name: str) -> None:
    assert page("experiments.md").count(f"\n| `{name}` |") == 1


@pytest.mark.parametrize("name", suite_names())
def test_a_suite_is_documented(name: str) -> None:
    assert f"\n| `{name}` |" in page("experiments.md")


# -- datasets


def section_of(dataset: str) -> str:
    """Give the part of the page below the heading that names a dataset."""
    parts = page("datasets.md").split("\n## ")[1:]
    found = [part for part in parts if f"`{dataset}`" in part.partition("\n")[0]]
    assert len(found) == 1, f"{dataset} needs one section: it has {len(found)}"
    return found[0]


def options_of(dataset: str) -> dict[str, inspect.Parameter]:
    home = import_module(f"fastbandit.experiments.datasets.{datasets._HOMES[dataset]}")
    taken = inspect.signature(home.load).parameters
    return {name: option for name, option in taken.items() if name not in ("name", "data", "seed")}


@pytest.mark.parametrize("dataset", datasets.NAMES)
def test_a_dataset_has_a_section_with_all_its_options(dataset: str) -> None:
    section = section_of(dataset)

    assert set(re.findall(r"^\| `(\w+)` \| [^|]+ \| [^|]+ \|$", section, re.MULTILINE)) == set(
        options_of(dataset)
    )


@pytest.mark.parametrize("dataset", datasets.NAMES)
def test_an_option_stands_with_its_default(dataset: str) -> None:
    for name, option in options_of(dataset).items():
        if isinstance(option.default, str | int | float):
            shown = f'"{option.default}"' if isinstance(option.default, str) else option.default
            assert f"| `{name}` | {shown} |" in section_of(dataset)


@pytest.mark.parametrize("source", SOURCES.values(), ids=lambda source: source.name)
def test_the_source_of_a_dataset_is_documented(source: Source) -> None:
    dataset = "movielens" if source.name.startswith("ml-") else source.name
    section = " ".join(section_of(dataset).split())

    assert f"<{source.page}>" in section
    assert f"Terms: {source.terms}" in section
    if source.downloads:
        assert "`fastbandit data fetch" in section
        assert source.name in section
    if source.rounds:
        assert f"| `{dataset}` | {source.rounds:,} × {source.arms:,} |" in page("datasets.md")


# -- commands


def commands_of(group: click.Group, before: str = "") -> Iterator[str]:
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if isinstance(command, click.Group):
            yield from commands_of(command, f"{before}{name} ")
        else:
            yield f"{before}{name}"


def test_there_are_no_commands_but_these() -> None:
    assert sorted(commands_of(cli)) == sorted(COMMANDS)


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_is_documented(name: str) -> None:
    assert f"| `fastbandit {name}` |" in page("reference.md")


@pytest.mark.parametrize("path", [*TYPED, ROOT / "CONTRIBUTING.md"], ids=lambda path: path.name)
def test_a_command_in_the_docs_is_one(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    said = re.findall(r"^(?: {4})?fastbandit ([a-z -]+)", _code(text), re.MULTILINE)
    said += re.findall(r"`fastbandit ([a-z -]+)", text)
    groups = {name.split()[0] for name in COMMANDS if " " in name}

    for words in (line.split() for line in said):
        asked = " ".join(words[:2]) if words[0] in groups else words[0]
        assert asked in (*COMMANDS, *groups), f"{path.name} has `fastbandit {asked}`"


def _code(text: str) -> str:
    fenced = re.findall(r"```sh\n(.*?)```", text, re.DOTALL)
    return "\n".join([*fenced, *re.findall(r"^ {4}.*$", text, re.MULTILINE)])

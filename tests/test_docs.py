"""Every example in the documentation runs; names, commands and routes are in it."""

from __future__ import annotations

import inspect
import re
from importlib import import_module
from pathlib import Path
from pkgutil import resolve_name
from runpy import run_path
from typing import Any

import pytest
from page_blocks import (
    DOCS,
    NOT_RUN,
    PROGRAMS,
    ROOT,
    blocks_of,
    pages,
    project,
    run_page,
    unfenced,
)

import fastbandit
from fastbandit import baselines, client, evaluation
from fastbandit.serving.openapi import openapi
from lab import baselines as research
from lab.architecture import FLOORS
from lab.experiments import datasets, policies
from lab.experiments.datasets.sources import SOURCES, Source
from lab.experiments.suite_file import read_suite, suite_names

PAGES = pages()
TYPED = [path for path in PAGES if path.name != "results.md"]  # which a command writes
PRODUCT = (
    "backup",
    "config show",
    "copy-log",
    "demo",
    "doctor",
    "evaluate",
    "export",
    "forget",
    "freeze",
    "init",
    "keys create",
    "keys list",
    "keys revoke",
    "learn",
    "migrate",
    "promote",
    "restore",
    "retain",
    "rollback",
    "score",
    "serve",
    "shadow",
    "snapshots",
    "verify",
)
LABORATORY = (
    "architecture",
    "bench arm-effects",
    "bench batch",
    "bench before-after",
    "bench deltas",
    "bench encode",
    "bench engines",
    "bench explain",
    "bench gpu",
    "bench index",
    "bench log",
    "bench named",
    "bench peers",
    "bench rank",
    "bench score",
    "bench select",
    "bench years",
    "data fetch",
    "data list",
    "data sample",
    "data where",
    "estimators coverage",
    "estimators open-bandit",
    "estimators speed",
    "experiment bakeoff",
    "experiment equal-latency",
    "experiment multiple-plays",
    "experiment per-request-actions",
    "experiment run",
    "experiment runtime",
    "experiment scaling",
    "experiment text-widths",
    "faults behind",
    "faults clock",
    "faults cluster",
    "faults disk",
    "faults flips",
    "faults kills",
    "faults learning",
    "faults mutants",
    "faults overload",
    "faults power-cut",
    "faults publish",
    "faults ray",
    "faults report",
    "faults requests",
    "faults shared-log",
    "faults swaps",
    "faults throughput",
    "faults trainers",
    "faults unauthenticated",
    "faults workers",
    "faults worst-request",
    "figures check",
    "figures list",
    "plan cluster",
    "plan search",
    "report",
    "routing",
    "shop",
    "size",
    "tune",
)
COMMANDS = {"fastbandit": PRODUCT, "python -m lab": LABORATORY}
MOST_OF_THE_PRODUCT = 24
"""Commands that a user has to know of: another one takes the place of one of these."""


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


def page(name: str) -> str:
    return (DOCS / name).read_text(encoding="utf-8")


# -- examples


@pytest.mark.usefixtures("little_training")
@pytest.mark.parametrize(
    "path", [path for path in PAGES if path.name != "quickstart.md"], ids=name_of
)
def test_every_block_of_a_page_runs(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_page(path, tmp_path, monkeypatch)


@pytest.mark.parametrize("path", PAGES, ids=name_of)
def test_a_quoted_table_is_that_of_its_page(path: Path) -> None:
    text = path.read_text(encoding="utf-8")

    assert run_path(str(DOCS / "quoted_tables.py"))["refreshed"](text) == text, "Run: make docs"


@pytest.mark.parametrize("path", PAGES, ids=name_of)
def test_code_stands_in_fences(path: Path) -> None:
    assert re.findall(r"^(?: {4}|\t)(?![ *-]).*$", unfenced(path), re.MULTILINE) == []


@pytest.mark.parametrize("title", NOT_RUN)
def test_a_reason_not_to_run_a_block_is_used(title: str) -> None:
    assert any(block.title == title for path in PAGES for block in blocks_of(path))


@pytest.mark.parametrize("path", PAGES, ids=name_of)
def test_a_suite_in_the_docs_takes_the_options_of_its_datasets(path: Path, tmp_path: Path) -> None:
    suites = [b.text for b in blocks_of(path) if b.language == "toml" and "[[datasets]]" in b.text]

    for text in suites:
        (tmp_path / "mine.toml").write_text(text, encoding="utf-8")
        for part in read_suite(str(tmp_path / "mine.toml")).parts:
            assert set(part.options) <= set(options_of(part.dataset))


def test_a_source_release_holds_what_the_tests_read() -> None:
    included = project()["tool"]["hatch"]["build"]["targets"]["sdist"]["include"]

    assert {"/fastbandit", "/lab", "/tests", "/docs", "/mkdocs.yml", "/README.md"} <= set(included)


# -- names


@pytest.mark.parametrize("name", fastbandit.__all__)
def test_a_public_name_is_documented(name: str) -> None:
    assert f"`{name}`" in page("reference.md")
    assert any(is_told(name, path) for path in DOCS.glob("reference/*.md"))


@pytest.mark.parametrize("name", baselines.__all__)
def test_a_baseline_is_documented(name: str) -> None:
    assert f"`{name}`" in page("reference.md")
    assert f"::: fastbandit.baselines.{name}\n" in page("reference/baselines.md")


@pytest.mark.parametrize("name", research.__all__)
def test_a_baseline_of_the_laboratory_is_documented(name: str) -> None:
    assert f"`{name}`" in page("reference.md")
    assert f"::: lab.baselines.{name}\n" in page("reference/baselines.md")


@pytest.mark.parametrize("name", evaluation.__all__)
def test_a_name_of_the_evaluation_is_documented(name: str) -> None:
    assert f"::: fastbandit.evaluation.{name}\n" in page("reference/evaluation.md")


@pytest.mark.parametrize("name", client.__all__)
def test_a_name_of_the_client_is_documented(name: str) -> None:
    assert f"::: fastbandit.client.{name}\n" in page("reference/client.md")


ADAPTERS = (
    "arm_tables",
    "coba",
    "mabwiser",
    "obp",
    "onnx_export",
    "scikit_learn",
    "vowpal_wabbit",
)


@pytest.mark.parametrize("home", ADAPTERS)
def test_the_names_of_an_adapter_are_documented(home: str) -> None:
    code = (Path(fastbandit.__file__).parent / "adapters" / f"{home}.py").read_text("utf-8")

    for name in re.findall(r"^(?:class|def) ([A-Za-z]\w*)", code, re.MULTILINE):
        assert f"::: fastbandit.adapters.{home}.{name}\n" in page("reference/adapters.md")


LAWS_AND_ERRORS = (
    *(f"testing.{role}" for role in ("arm_spaces", "explorations", "posteriors", "searches")),
    "errors",
)


@pytest.mark.parametrize("home", LAWS_AND_ERRORS)
def test_every_law_and_every_error_is_documented(home: str) -> None:
    place = Path(fastbandit.__file__).parent.joinpath(*home.split(".")).with_suffix(".py")
    code = place.read_text("utf-8")
    told = page("reference/parts.md") + page("reference/errors.md")

    for name in re.findall(r"^(?:class|def) ([A-Za-z]\w*)", code, re.MULTILINE):
        assert f"::: fastbandit.{home}.{name}\n" in told


def is_told(name: str, path: Path) -> bool:
    return re.search(rf"^::: [\w.]+\.{name}$", path.read_text(encoding="utf-8"), re.M) is not None


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
    home = import_module(f"lab.experiments.datasets.{datasets._HOMES[dataset]}")
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
        assert "`python -m lab data fetch" in section
        assert source.name in section
    if source.rounds:
        assert f"| `{dataset}` | {source.rounds:,} × {source.arms:,} |" in page("datasets.md")


# -- commands


COMMAND_PAGE = run_path(str(DOCS / "command_page.py"))


@pytest.mark.parametrize("program", COMMANDS)
def test_there_are_no_commands_but_these(program: str) -> None:
    found = COMMAND_PAGE["commands_of"](PROGRAMS[program], program)

    names = [context.info_name for context in found]
    assert sorted(names) == [f"{program} {name}" for name in COMMANDS[program]]


def test_the_product_has_few_commands() -> None:
    assert len(PRODUCT) <= MOST_OF_THE_PRODUCT


@pytest.mark.parametrize(
    ("program", "heading"),
    [("fastbandit", "Commands"), ("python -m lab", "Commands of the laboratory")],
)
def test_all_commands_of_a_program_are_in_one_table(program: str, heading: str) -> None:
    section = page("reference.md").split(f"\n## {heading}\n")[1].partition("\n## ")[0]

    named = re.findall(r"^\| `([^`]+)` \|", section, re.MULTILINE)
    assert sorted(named) == [f"{program} {name}" for name in COMMANDS[program]]


@pytest.mark.parametrize("written", COMMAND_PAGE["PAGES"], ids=lambda written: written.name)
def test_every_option_of_every_command_is_documented(written: Any) -> None:
    assert page(f"reference/{written.name}") == COMMAND_PAGE["written_page"](written), (
        "Run: make docs"
    )


def test_each_program_has_a_page_of_its_commands() -> None:
    assert {written.program: written.group for written in COMMAND_PAGE["PAGES"]} == PROGRAMS


@pytest.mark.parametrize("path", [*TYPED, ROOT / "CONTRIBUTING.md"], ids=name_of)
@pytest.mark.parametrize("program", COMMANDS)
def test_a_command_in_the_docs_is_one(program: str, path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    said = re.findall(rf"^(?: {{4}})?{program} ([a-z -]+)", _code(text), re.MULTILINE)
    said += re.findall(rf"`{program} ([a-z\s-]+)", text)
    known = COMMANDS[program]
    groups = {name.split()[0] for name in known if " " in name}

    for words in (line.split() for line in said):
        asked = " ".join(words[:2]) if words[0] in groups else words[0]
        assert asked in (*known, *groups), f"{path.name} has `{program} {asked}`"


@pytest.mark.parametrize("path", [*TYPED, ROOT / "CONTRIBUTING.md"], ids=name_of)
def test_a_file_of_the_sources_that_a_page_names_is_there(path: Path) -> None:
    named = re.findall(r"`((?:fastbandit|lab|tests|docs|scripts)/[\w./-]+)", unfenced(path))

    assert [name for name in named if not (ROOT / name).exists()] == []


@pytest.mark.parametrize("path", [*TYPED, ROOT / "CONTRIBUTING.md"], ids=name_of)
def test_a_module_that_a_page_names_is_there(path: Path) -> None:
    for name in re.findall(r"`((?:fastbandit|lab)(?:\.\w+)+)`", unfenced(path)):
        if name != "fastbandit.toml":
            assert resolve_name(name) is not None


def _code(text: str) -> str:
    fenced = re.findall(r"```sh[^\n]*\n(.*?)```", text, re.DOTALL)
    return "\n".join([*fenced, *re.findall(r"^ {4}.*$", text, re.MULTILINE)])


# -- how to contribute


def rows_of(heading: str) -> list[list[str]]:
    """Return the rows of the table below a heading of CONTRIBUTING, without its head."""
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    section = text.split(f"\n## {heading}\n")[1].partition("\n## ")[0]
    rows = re.findall(r"^\|(.+)\|$", section, re.MULTILINE)
    return [[one.strip() for one in row.split(" | ")] for row in rows[2:]]


def test_fifteen_changes_name_the_one_or_two_files_that_they_touch() -> None:
    rows = rows_of("Fifteen changes, and the files they touch")

    assert len(rows) == 15
    for change, touched in rows:
        files = re.findall(r"`((?:fastbandit|lab)/[\w./]+)`", touched)
        assert 1 <= len(files) <= 2, change
        assert all((ROOT / file).exists() for file in files), change


def test_the_floors_are_those_that_imports_are_held_to() -> None:
    shown = [set(re.findall(r"`(\w+)`", rooms)) for _, rooms, _ in rows_of("Floors")]

    assert shown == [set(rooms) - {"__main__"} for rooms in reversed(FLOORS)]


# -- routes (tests/test_config.py looks for the settings)


@pytest.mark.parametrize(
    ("method", "route"),
    [(method.upper(), path) for path, told in openapi()["paths"].items() for method in told],
)
def test_a_route_is_documented(method: str, route: str) -> None:
    assert f"| `{method} {route}` |" in page("serving.md")

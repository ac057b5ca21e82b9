"""The page about the client in TypeScript: its examples run, and it leaves nothing out."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from little_app import App
from node_package import PACKAGE, ROOT, must_run
from page_blocks import Block, blocks_of

from scripts.release import npm_package

PAGE = ROOT / "docs" / "typescript.md"
TEXT = PAGE.read_text(encoding="utf-8")
EXAMPLES = [block for block in blocks_of(PAGE) if block.language == "ts"]
IN_NODE = [block for block in EXAMPLES if not block.title]
IN_A_PAGE = [block for block in EXAMPLES if block.title == "in a page"]
ADDRESS = "http://127.0.0.1:8080"
NOBODY = "http://127.0.0.1:9"


def source(name: str) -> str:
    return (PACKAGE / "src" / name).read_text(encoding="utf-8")


def test_every_setting_has_a_row() -> None:
    (options,) = re.findall(r"interface ClientOptions {(.*?)\n}", source("client.ts"), re.DOTALL)

    settings = re.findall(r"^  readonly (\w+)\??:", options, re.MULTILINE)
    assert re.findall(r"^\| `(\w+)` \|[^|]*\|[^|]+\|$", TEXT, re.MULTILINE) == settings


def test_every_call_is_documented() -> None:
    (client,) = re.findall(r"export class Client {(.*?)\n}", source("client.ts"), re.DOTALL)

    calls = set(re.findall(r"^  (?:async |get )?([a-z]\w+)\(", client, re.MULTILINE))
    assert {"select", "rewards", "spooled", "close"} <= calls
    for call in calls - {"constructor"}:
        assert re.search(rf"^\| .*`{call}[(`]", TEXT, re.MULTILINE), call


def test_every_error_is_documented() -> None:
    for name in re.findall(r"^export class (\w+)", source("errors.ts"), re.MULTILINE):
        assert f"`{name}`" in TEXT


@pytest.fixture(scope="module")
def project(built: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project that has installed the package."""
    folder = tmp_path_factory.mktemp("project")
    tarball = npm_package.pack(built, tmp_path_factory.mktemp("packed"))
    (folder / "package.json").write_text('{"private": true, "type": "module"}')
    must_run(folder, "npm", "install", "--offline", "--no-audit", "--no-fund", str(tarball))
    return folder


def compiled(block: Block, url: str, *, built: Path, project: Path) -> Path:
    """Compile an example as strictly as can be; give its program."""
    patient = re.sub(r"timeoutMs: [\d_]+", "timeoutMs: 20_000", block.text)
    (project / "example.ts").write_text(patient.replace(ADDRESS, url), encoding="utf-8")
    compiler = built / "node_modules" / "typescript" / "bin" / "tsc"
    strict = ("--strict", "--module", "nodenext", "--target", "es2022")
    must_run(project, "node", str(compiler), *strict, "example.ts")
    return project / "example.js"


@pytest.mark.slow
@pytest.mark.parametrize("block", IN_NODE, ids=lambda block: block.place)
def test_an_example_runs_with_a_service_and_without(
    block: Block, app: App, built: Path, project: Path
) -> None:
    for url in (f"{app.url}/bandit", NOBODY):
        program = compiled(block, url, built=built, project=project)
        assert must_run(project, "node", program.name).strip()
    assert {path for path, _ in app.asked} <= {"/v1/select", "/v1/reward"}


@pytest.mark.slow
def test_the_first_example_is_answered_and_counted(app: App, built: Path, project: Path) -> None:
    program = compiled(IN_NODE[0], f"{app.url}/bandit", built=built, project=project)

    said = must_run(project, "node", program.name)

    assert re.fullmatch(r"arm-\d+ false\ncounted\n", said), said


@pytest.mark.slow
@pytest.mark.parametrize("block", IN_A_PAGE, ids=lambda block: block.place)
def test_the_example_of_a_page_runs_in_one(
    block: Block, browser: Any, app: App, built: Path, project: Path
) -> None:
    program = compiled(block, app.url, built=built, project=project).read_text(encoding="utf-8")
    page = browser.new_page()
    page.goto(app.url)
    script = program.replace('"fastbandit"', '"/fastbandit/index.js"')
    page.add_script_tag(content=script, type="module")

    page.wait_for_function("() => document.title.startsWith('arm-')")
    with page.expect_response("**/v1/reward") as answered:
        page.click("html")
    assert answered.value.json()["rewards"][0]["status"] == "counted"
    page.close()


def test_there_are_examples_for_node_and_for_pages() -> None:
    assert IN_NODE
    assert IN_A_PAGE

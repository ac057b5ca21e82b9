"""The examples in the README and the docs run; public names and commands are documented."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import fastbandit
from fastbandit.cli import cli

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
EXAMPLES = [
    pytest.param(code, id=f"{page.name}-{number}")
    for page in PAGES
    for number, code in enumerate(re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL))
]


@pytest.mark.parametrize("code", EXAMPLES)
def test_an_example_runs(
    code: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)

    exec(compile(code, "example", "exec"), {})

    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("name", fastbandit.__all__)
def test_a_public_name_is_documented(name: str) -> None:
    assert any(f"`{name}`" in page.read_text() for page in PAGES), f"{name} stands in no page"


@pytest.mark.parametrize("name", ["demo", "experiment quality"])
def test_a_command_is_documented(name: str) -> None:
    assert name.split()[0] in cli.commands
    assert any(f"fastbandit {name}" in page.read_text() for page in PAGES)

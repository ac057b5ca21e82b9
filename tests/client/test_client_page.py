"""The examples on the page about the client run, with a service and without one."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from fake_service import NOBODY, FakeService

from fastbandit.storage.events import REWARD_STATUSES

PAGE = (Path(__file__).parents[2] / "docs" / "client.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
ADDRESS = "http://127.0.0.1:8080"


def run(block: str, url: str) -> None:
    assert ADDRESS in block
    exec(compile(block.replace(ADDRESS, url), "example", "exec"), {})


@pytest.mark.parametrize("number", range(len(BLOCKS)))
def test_an_example_runs_without_a_service(
    number: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)

    run(BLOCKS[number], NOBODY)

    assert capsys.readouterr().err == ""


def test_the_first_example_runs_with_a_service(
    service: FakeService,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)

    run(BLOCKS[0], service.url)

    assert capsys.readouterr().out == "arm 0 False\ncounted\n"


def test_the_other_examples_run_with_a_service(
    service: FakeService, capsys: pytest.CaptureFixture[str]
) -> None:
    run(BLOCKS[1], service.url)
    run(BLOCKS[2], service.url)

    assert capsys.readouterr().out == "['counted', 'counted']\narm 2\n"


@pytest.mark.parametrize("status", REWARD_STATUSES)
def test_the_page_says_each_status_of_a_reward(status: str) -> None:
    assert re.search(rf"^\| (\w+, )?{status}( \||, )", PAGE, re.MULTILINE)

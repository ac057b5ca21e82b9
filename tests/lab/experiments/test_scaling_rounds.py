"""Time and memory over the rounds that were learned."""

import json
from pathlib import Path

import pytest

from fastbandit.cli.main import run as run_cli
from lab.__main__ import cli
from lab.experiments.scaling_rounds import measure_rounds, rounds_text


def test_memory_grows_with_the_rounds_that_a_policy_keeps() -> None:
    found = measure_rounds([20, 80, 320], ["GP-UCB", "HOO"], seconds=0.0)

    assert [result["policy"] for result in found] == ["GP-UCB", "HOO"]
    for result in found:
        assert result["rounds"] == [20, 80, 320]
        assert result["bytes"] == sorted(result["bytes"])
        assert result["memory_slope"] > 0.1
        assert result["repetitions"] == [5, 5, 5]
        assert all(seconds > 0 for seconds in result["seconds"] + result["update_seconds"])


def test_the_text_has_decisions_updates_and_memory() -> None:
    text = rounds_text(measure_rounds([5, 10], ["HOO"], seconds=0.0))

    assert text.count("| policy | T = 5 | T = 10 | slope to 1,000 | slope |") == 3


def test_the_command_takes_rounds_and_writes_them_into_a_page(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "page.md"
    marks = ("<!-- experiment scaling rounds -->", "<!-- end of experiment scaling rounds -->")
    page.write_text("\n".join(marks), encoding="utf-8")
    few = ("--rounds", "5,10,20", "--policies", "HOO", "--seconds", "0", "--json")

    with pytest.raises(SystemExit) as ended:
        run_cli(cli, ["experiment", "scaling", *few, "--doc", str(page)], prog_name="lab")

    assert ended.value.code == 0
    (result,) = json.loads(capsys.readouterr().out)
    assert result["rounds"] == [5, 10, 20]
    assert "| HOO |" in page.read_text(encoding="utf-8")

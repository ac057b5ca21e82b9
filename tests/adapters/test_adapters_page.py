"""The examples on the page of adapters that need another package run where it is installed."""

from __future__ import annotations

import re
from importlib.util import find_spec
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "adapters.md"
BLOCKS = re.findall(r"```py\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
NEEDED = {"coba": "coba", "scikit_learn": "sklearn", "onnx_export": "onnx", "choose": "onnxruntime"}


def package_of(code: str) -> str:
    return next(package for word, package in NEEDED.items() if word in code)


@pytest.mark.usefixtures("little_training")
@pytest.mark.parametrize("code", BLOCKS, ids=package_of)
def test_an_example_runs(
    code: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    if find_spec(package_of(code)) is None:
        pytest.skip(f"{package_of(code)} is not installed")
    monkeypatch.chdir(tmp_path)

    exec(compile(code, "example", "exec"), {})

    assert capsys.readouterr().err == ""

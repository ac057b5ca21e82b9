"""Functions are compiled into our folder, and those of others where they were."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numba
import pytest

from fastbandit.compiler import compiled as module
from fastbandit.compiler.compiled import compiled

CODE = "import numba\n@compiled()\ndef double(x):\n    return {factor} * x\n"
IMPORT = "from fastbandit.compiler.compiled import compiled\n"
CALL = "import sys, own; print(own.double(21), dict(own.double.stats.cache_hits))"


def run_in(folder: Path, **environment: str) -> str:
    """Call the function of a module in a process of its own."""
    root = Path(__file__).parents[2]
    paths = {"PYTHONPATH": f"{root}:{folder}", "HOME": str(folder), "PATH": ""}
    command = [sys.executable, "-B", "-c", CALL]
    done = subprocess.run(
        command, env={**paths, **environment}, capture_output=True, text=True, check=True
    )
    return done.stdout


def test_code_is_found_again_and_a_changed_file_is_compiled_anew(tmp_path: Path) -> None:
    own, cache = tmp_path / "own.py", {"FASTBANDIT_CACHE_DIR": str(tmp_path / "cache")}
    own.write_text(IMPORT + CODE.format(factor=2))

    assert run_in(tmp_path, **cache) == "42 {}\n"
    assert run_in(tmp_path, **cache).startswith("42 {(int64,): 1}")
    own.write_text(IMPORT + CODE.format(factor="(1 + 2)"))
    assert run_in(tmp_path, **cache) == "63 {}\n"
    assert not list(tmp_path.glob("__pycache__/*.nbi"))


def test_the_folder_of_others_is_as_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = numba.config
    before = config.CACHE_DIR  # type: ignore[attr-defined]
    monkeypatch.setattr(module, "_folder", lambda: tmp_path)

    @compiled()
    def half(number: float) -> float:
        return number / 2

    assert before == config.CACHE_DIR  # type: ignore[attr-defined]
    assert half.stats.cache_path.startswith(str(tmp_path))  # type: ignore[attr-defined]
    assert half(3.0) == 1.5

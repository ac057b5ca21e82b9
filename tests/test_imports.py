"""Imports point downwards, and the base install needs no torch."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

import fastbandit
from lab.architecture import (
    FLOORS,
    NEIGHBOURS,
    broken,
    imports_in,
    level_of,
    rooms_in,
    two_way_pairs,
    unused_reasons,
)

PACKAGE = Path(fastbandit.__file__).parent

WITHOUT_TORCH = [
    "fastbandit",
    "fastbandit.arms.partitions",
    "fastbandit.baselines",
    "fastbandit.cluster",
    "fastbandit.evaluation",
    "fastbandit.features.kinds",
    "fastbandit.cli.learn",
    "fastbandit.learning.arm_file",
    "fastbandit.cli.snapshots",
    "fastbandit.learning.joining",
    "fastbandit.declaration",
    "fastbandit.noise.philox",
    "fastbandit.runtime.folder",
    "fastbandit.runtime.frozen",
    "fastbandit.serving.server",
    "lab.experiments.datasets",
    "lab.experiments.policies",
    "lab.experiments.report",
    "lab.experiments.results",
]


def module_of(path: Path) -> str:
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(part for part in parts if part != "__init__")


def test_every_room_stands_on_one_floor() -> None:
    placed = [room for rooms in FLOORS for room in rooms]

    assert sorted(placed) == sorted(rooms_in())


def test_there_are_ten_floors_at_most() -> None:
    assert len(FLOORS) <= 10


def test_imports_point_downwards() -> None:
    assert [str(one) for one in broken(imports_in())] == []


def test_no_two_rooms_import_each_other() -> None:
    assert two_way_pairs(imports_in()) == []


def test_each_reason_for_an_import_between_neighbours_is_needed() -> None:
    assert unused_reasons(imports_in()) == set()


def test_neighbours_with_a_reason_stand_on_one_floor() -> None:
    assert [pair for pair in NEIGHBOURS if level_of(pair[0]) != level_of(pair[1])] == []


def test_the_product_never_imports_the_laboratory() -> None:
    importing = {
        module_of(path)
        for path in PACKAGE.rglob("*.py")
        if re.search(r"^\s*(?:from|import) lab\b", path.read_text("utf-8"), re.MULTILINE)
        or 'import_module(f"lab' in path.read_text("utf-8")
    }

    assert importing == set()


def test_the_product_runs_where_there_is_no_laboratory() -> None:
    code = (
        "import sys; sys.modules['lab'] = None\n"
        "import click\n"
        "from fastbandit.cli.main import cli\n"
        "context = click.Context(cli, info_name='fastbandit')\n"
        "print(len([cli.get_command(context, name) for name in cli.list_commands(context)]))\n"
    )

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)

    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 15


@pytest.mark.parametrize("module", WITHOUT_TORCH)
def test_the_base_install_needs_no_torch(module: str) -> None:
    code = (
        "import sys\n"
        "for name in ('torch', 'jaxtyping', 'scipy', 'pandas'): sys.modules[name] = None\n"
        f"import {module}\n"
    )

    done = subprocess.run(
        [sys.executable, "-c", code], cwd=PACKAGE.parent, capture_output=True, text=True
    )

    assert done.returncode == 0, done.stderr


def test_a_baseline_decides_and_learns_without_torch() -> None:
    code = (
        "import sys; sys.modules['torch'] = None\n"
        "import numpy as np\n"
        "from fastbandit import LinearTS\n"
        "bandit = LinearTS(arms=np.eye(3), context=2)\n"
        "rows = bandit.select(np.ones((4, 2))).arms\n"
        "bandit.update(contexts=np.ones((4, 2)), arms=rows, rewards=[0, 1, 0, 1])\n"
    )

    done = subprocess.run(
        [sys.executable, "-c", code], cwd=PACKAGE.parent, capture_output=True, text=True
    )

    assert done.returncode == 0, done.stderr


def test_a_name_that_needs_torch_says_what_to_install() -> None:
    code = (
        "import sys; sys.modules['torch'] = None\n"
        "import fastbandit\n"
        "try: fastbandit.Bandit\n"
        "except fastbandit.FastbanditError as error: print(error)\n"
    )

    done = subprocess.run(
        [sys.executable, "-c", code], cwd=PACKAGE.parent, capture_output=True, text=True
    )

    assert "pip install 'fastbandit[train]'" in done.stdout, done.stderr


def test_nothing_uses_the_global_random_state() -> None:
    for path in PACKAGE.rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        for word in ("torch.manual_seed(", "np.random.seed(", "import random\n", "F.dropout("):
            assert word not in text, f"{path} uses {word}"

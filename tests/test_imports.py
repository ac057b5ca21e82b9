"""Imports point downwards, and the base install needs no torch."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

import fastbandit

PACKAGE = Path(fastbandit.__file__).parent

LAYERS = [
    ["types", "errors", "noise", "layers", "progress", "cores"],
    ["device_noise", "features", "names", "packages", "ranges"],
    ["events", "rewards", "interfaces"],
    ["arms"],
    ["exploration", "reward", "search"],
    ["arm_table", "policy"],
    ["audit", "baselines", "training"],
    ["blueprint"],
    ["settings", "storage"],
    ["presets"],
    ["runtime"],
    ["bandit", "config"],
    ["demo", "learning", "planning"],
    ["adapters", "cluster"],
    ["evaluation"],
    ["client", "serving", "testing"],
    ["cli"],
    ["__main__"],
]
"""Lowest first: a module imports only from lines above its own in this list."""


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


def level_of(module: str) -> int:
    part = module.split(".")[1]
    return next(level for level, parts in enumerate(LAYERS) if part in parts)


def imports_of(path: Path) -> set[str]:
    """List the modules of the package that a file imports, wherever in the file."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module == "fastbandit":
            names = [alias.name for alias in node.names if alias.name != "__version__"]
            found |= {fastbandit._HOMES.get(name, f"fastbandit.{name}") for name in names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module)
    return {name for name in found if name.startswith("fastbandit.")}


def module_of(path: Path) -> str:
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(part for part in parts if part != "__init__")


def upward_imports() -> set[tuple[str, str]]:
    """List pairs of a module and what it imports from its own line or from a higher one."""
    pairs = {
        (module_of(path), name)
        for path in PACKAGE.rglob("*.py")
        for name in imports_of(path)
        if module_of(path) != "fastbandit"
    }
    return {
        (module, name)
        for module, name in pairs
        if module.split(".")[1] != name.split(".")[1] and level_of(name) >= level_of(module)
    }


def test_every_module_has_its_place() -> None:
    parts = {path.stem for path in PACKAGE.iterdir()}
    known = {part for line in LAYERS for part in line}

    assert parts - {"__init__", "__main__", "__pycache__", "py"} <= known


def test_imports_point_downwards() -> None:
    assert upward_imports() == set()


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

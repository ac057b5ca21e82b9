"""Every package that a module imports is declared, and the base API needs none of an extra."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import click
import pytest

import fastbandit
from fastbandit.cli.main import cli
from fastbandit.packages import EXTRAS
from lab.__main__ import cli as laboratory
from scripts.release import imports, trying

NOT_BASE = sorted(set().union(*map(imports.provided_by, imports.extras())) - imports.provided_by())
BASE_NAMES = (
    "Audit",
    "BestArmBandit",
    "Box",
    "Budget",
    "Chosen",
    "Decision",
    "Dense",
    "FastbanditError",
    "FeaturesAndIds",
    "FrozenBandit",
    "Ids",
    "Image",
    "LinUCB",
    "LinearTS",
    "RandomBandit",
    "Schema",
    "Sparse",
    "evaluate",
)
"""What a base install has."""
OF_THE_LABORATORY = (
    "bench arm-effects",
    "bench batch",
    "bench before-after",
    "bench explain",
    "bench gpu",
    "bench index",
    "bench peers",
    "bench select",
    "data fetch",
    "estimators coverage",
    "experiment multiple-plays",
    "experiment run",
    "experiment runtime",
    "experiment scaling",
    "faults report",
    "report",
    "size",
    "tune",
)
"""Commands that need no service, no cluster and no other library."""


def run(code: str) -> subprocess.CompletedProcess[str]:
    blocked = f"import sys\nfor name in {NOT_BASE!r}: sys.modules[name] = None\n"
    command = [sys.executable, "-c", blocked + code]
    return subprocess.run(command, cwd=imports.ROOT, capture_output=True, text=True)


def undeclared(provided: frozenset[str], package: Path = imports.PACKAGE) -> set[str]:
    """Return the modules of other packages that a package of ours imports and nothing brings."""
    paths = imports.modules(package).values()
    used = {other for path in paths for other in imports.others_in(path)}
    return {imports.BROUGHT_BY.get(name, name) for name in used} - provided


def all_provided(*, without: str = "") -> frozenset[str]:
    brought = frozenset().union(*map(imports.provided_by, imports.extras()))
    return brought - {without}


@pytest.mark.parametrize("package", [imports.PACKAGE, imports.LABORATORY], ids=lambda it: it.name)
def test_every_import_is_declared_by_the_base_or_an_extra(package: Path) -> None:
    assert undeclared(all_provided(), package) == set()


def test_a_package_that_is_no_longer_declared_is_found() -> None:
    assert undeclared(all_provided(without="msgspec")) == {"msgspec"}


def test_a_module_imports_with_one_extra_or_with_those_that_belong_together() -> None:
    assert trying.promised_by_none() == []


def home_of(group: click.Group, name: str) -> str:
    """Return the module of a command, by its words."""
    command: click.Command = group
    for word in name.split():
        assert isinstance(command, click.Group)
        found = command.get_command(click.Context(command), word)
        assert found is not None, name
        command = found
    return str(getattr(command.callback, "__module__", ""))


@pytest.mark.parametrize(("extra", "names"), trying.COMMANDS.items())
def test_an_extra_alone_brings_what_its_commands_import(extra: str, names: tuple[str, ...]) -> None:
    for name in names:
        assert imports.needs_of(home_of(cli, name)) <= imports.provided_by(extra), name


@pytest.mark.parametrize("name", OF_THE_LABORATORY)
def test_the_extra_of_the_laboratory_brings_what_its_commands_import(name: str) -> None:
    assert imports.needs_of(home_of(laboratory, name)) <= imports.provided_by("lab")


@pytest.mark.parametrize("module", sorted(EXTRAS))
def test_the_extra_that_is_named_for_a_module_brings_it(module: str) -> None:
    assert imports.BROUGHT_BY.get(module, module) in imports.provided_by(EXTRAS[module])


def test_an_import_in_a_function_happens_later(tmp_path: Path) -> None:
    path = tmp_path / "some.py"
    path.write_text("import numpy\ndef later() -> None:\n    import torch\n", encoding="utf-8")

    found = {one.module: one.is_at_once for one in imports.imports_of(path)}

    assert found == {"numpy": True, "torch": False}


def test_an_import_for_types_alone_does_not_count(tmp_path: Path) -> None:
    path = tmp_path / "some.py"
    path.write_text("if TYPE_CHECKING:\n    import torch\n", encoding="utf-8")

    assert imports.imports_of(path) == ()


def test_what_a_module_needs_includes_what_it_imports_of_ours() -> None:
    assert {"torch", "jaxtyping", "numpy"} <= imports.needs_of("fastbandit.bandit")
    assert imports.needs_of("fastbandit.runtime.frozen") == {"numpy", "numba"}


def test_all_names_of_the_base_come_without_any_extra() -> None:
    done = run(f"import fastbandit\nfor name in {BASE_NAMES!r}: getattr(fastbandit, name)")

    assert done.returncode == 0, done.stderr


def test_all_other_names_say_which_extra_to_install() -> None:
    others = [name for name in fastbandit.__all__ if name not in BASE_NAMES]
    code = (
        f"import fastbandit\nfor name in {others!r}:\n"
        "    try: getattr(fastbandit, name)\n"
        "    except fastbandit.FastbanditError as error: print(name, error)\n"
    )

    done = run(code)

    said = done.stdout.splitlines()
    assert [line.split()[0] for line in said] == others, done.stderr
    assert all("pip install 'fastbandit[train]'" in line for line in said)


def test_a_command_without_its_extra_says_what_to_install() -> None:
    done = run("from fastbandit.cli.main import main\nmain(['keys', 'list', '--data-dir', '.'])")

    assert done.returncode in (0, 2), done.stderr
    assert "Traceback" not in done.stderr


def test_every_command_runs_or_names_an_extra_in_a_base_install() -> None:
    trial = imports.ROOT / "scripts/release/trial.py"
    code = (
        f"sys.argv = ['trial', '[]']\nexec(compile(open({str(trial)!r}).read(), 'trial', 'exec'))"
    )

    done = run(code)

    assert done.returncode == 0, done.stderr


def test_evaluation_leaves_out_what_needs_faiss() -> None:
    code = (
        "import numpy as np\n"
        "from fastbandit.evaluation import LoggedRounds, evaluate\n"
        "rounds = LoggedRounds(np.ones((9, 2)), np.arange(9) % 3, np.ones(9), np.full(9, 1 / 3),\n"
        "                      vectors=np.eye(3))\n"
        "told = evaluate(rounds, 'uniform')\n"
        "print([one.name for one in told.estimates], told.notes)\n"
    )

    done = run(code)

    assert "'mips'" not in done.stdout, done.stderr
    assert "pip install 'fastbandit[evaluation]'" in done.stdout

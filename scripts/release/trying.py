"""Try what was built: the base install for its purpose, and each extra for what it promises."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from scripts.release.building import ReleaseError
from scripts.release.environments import Environment
from scripts.release.imports import extras, modules, needs_of, provided_by

HERE = Path(__file__).parent
COMBINED = (("train", "serve"), ("train", "serve", "client", "cluster"))
"""Extras that some modules need together: a service that learns, on one machine or on many."""
NOT_TRIED = ("fastbandit.__main__", "fastbandit.search.gpu_kernel")
"""What runs when it is imported, and what needs the Triton of a torch for GPUs."""
_BANDIT = """
import numpy as np
from fastbandit import Bandit
rng = np.random.default_rng(0)
bandit = Bandit(arms=rng.normal(size=(30, 4)), context=4, reward="real", seed=0)
contexts = rng.normal(size=(20, 4))
arms = bandit.select(contexts).arms
bandit.update(contexts=contexts, arms=arms, rewards=contexts[:, 0])
"""
_ROUNDS = """
import numpy as np
from fastbandit.evaluation import LoggedRounds, evaluate
rng = np.random.default_rng(0)
rounds = LoggedRounds(rng.normal(size=(60, 4)), rng.integers(0, 9, 60), rng.random(60),
                      np.full(60, 1 / 9), arms=9, vectors=rng.normal(size=(9, 3)))
"""
ACTIONS = {
    "train": _BANDIT
    + """
from fastbandit.demo.figures import import_matplotlib
bandit.save('saved')
import_matplotlib()
""",
    "evaluation": _ROUNDS + "evaluate(rounds, 'uniform', estimators=['mips'])",
    "adapters": """
import faiss, numpy as np
from fastbandit.adapters.arm_tables import arms_from_faiss
from fastbandit.adapters.scikit_learn import BanditClassifier
index = faiss.IndexFlatL2(2)
index.add(np.ones((3, 2), np.float32))
assert len(arms_from_faiss(index)) == 3
BanditClassifier().fit(np.eye(4), [0, 1, 0, 1]).predict(np.eye(4))
""",
    "onnx": _BANDIT
    + "from fastbandit.adapters.onnx_export import export_onnx\nexport_onnx(bandit, 'exported')",
    "client": "from fastbandit.client import Client\nClient('http://127.0.0.1:1').close()",
    "serve": """
from pathlib import Path
from fastbandit.serving.openapi import openapi
from fastbandit.storage.sqlite_log import SqliteLog
assert openapi()["paths"]
SqliteLog(Path("events.db")).close()
""",
}
"""What is done with an extra, beside importing all that it brings."""


COMMANDS = {
    "train": ("demo", "freeze"),
    "evaluation": ("evaluate",),
    "onnx": ("export", "freeze"),
    "serve": ("serve", "keys create", "backup", "restore", "export", "snapshots", "rollback"),
}
"""Commands that an extra alone must be able to run."""


@dataclass(frozen=True)
class Tried:
    """What an environment could do: modules imported, and commands that can be run or not."""

    modules: int
    commands: int
    refused: dict[str, str]


def try_base(environment: Environment, folder: Path) -> dict[str, object]:
    """Choose and evaluate without torch, by the library and by the commands."""
    told: dict[str, object] = json.loads(
        environment.told("python", str(HERE / "smoke.py"), str(folder))
    )
    environment.told("fastbandit", "--help")
    columns = ["--context", "x_*", "--arm", "arm", "--reward", "reward", "--propensity", "p"]
    log, frozen = str(folder / "log.csv"), str(folder / "frozen")
    asked = ["evaluate", "--log", log, *columns, "--policy", frozen, "--json"]
    told["evaluate"] = json.loads(environment.told("fastbandit", *asked))["rounds"]
    doctor = json.loads(environment.told("fastbandit", "doctor", "--json"))
    told["doctor"] = {one["name"]: one["state"] for one in doctor["findings"]}
    return told


def try_extra(environment: Environment, *names: str) -> Tried:
    """Import every module that these extras promise, ask all commands for help, and act."""
    promised = promised_by(*names)
    printed = environment.told("python", str(HERE / "trial.py"), json.dumps(promised))
    told: dict[str, str] = json.loads(printed.splitlines()[-1])
    refused = {name: said for name, said in told.items() if said != "ok"}
    for name, said in refused.items():
        if any(f"fastbandit[{extra}]" in said for extra in names):
            raise ReleaseError(f"{name} asks for an extra that is installed: {said}")
    for name in set(refused) & {one for extra in names for one in COMMANDS.get(extra, ())}:
        raise ReleaseError(f"{name} is promised by {','.join(names)}: {refused[name]}")
    packages = {module for name in names for module in provided_by(name) - provided_by()}
    environment.told("python", "-c", "\n".join(f"import {module}" for module in sorted(packages)))
    for name in names:
        if name in ACTIONS:
            environment.told("python", "-W", "ignore", "-c", ACTIONS[name], timeout_seconds=600)
    return Tried(len(promised), len(told) - len(refused), refused)


def promised_by(*names: str) -> list[str]:
    """Give the modules of fastbandit that import with the base and some extras."""
    provided = provided_by().union(*(provided_by(name) for name in names))
    return [module for module, needed in needs().items() if needed <= provided]


def promised_by_none() -> list[str]:
    """Give the modules that no extra alone imports, nor those that belong together."""
    groups = [(), *((name,) for name in extras()), *COMBINED]
    found = {module for group in groups for module in promised_by(*group)}
    return sorted(set(needs()) - found)


@cache
def needs() -> dict[str, frozenset[str]]:
    """Give what each module needs to be imported."""
    return {module: needs_of(module) for module in modules() if module not in NOT_TRIED}

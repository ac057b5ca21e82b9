"""Runs a learner that kills itself at a step, then another that goes on: prints what is left.

One process does this for many steps: it forks after the slow imports. Usage: killing.py FOLDER
STEP:TIMES…, where the learner dies when it reaches a step for so many times.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
from collections.abc import Callable
from pathlib import Path

from little_service import LittleLog, current_of, learn_all, little_config, store_of

from fastbandit import Bandit, FrozenBandit
from fastbandit.learning.learner import Learner


def in_fork(work: Callable[[], None]) -> int:
    """Do something in a process of its own; give how that ended (-9: it was killed)."""
    child = os.fork()
    if child == 0:
        try:
            work()
            os._exit(0)
        except BaseException as error:
            print(repr(error), file=sys.stderr)
            os._exit(1)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def run(folder: Path, *, kill_at: str = "", times: int = 1) -> None:
    left = [times]

    def reached(step: str) -> None:
        left[0] -= step == kill_at
        if left[0] == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    learn_all(Learner(little_config(folder), reached=reached))


def look(folder: Path, name: str) -> None:
    """Write down what is served, after trying it."""
    config = little_config(folder)
    told: dict[str, object] = {"versions": list(store_of(config).versions()), "served": None}
    if store_of(config).current() is not None:
        current = current_of(config)
        history = Bandit.load(current.bandit)._state.history
        told["served"] = FrozenBandit.load(current.frozen).choose([0.0, 1.0]).version
        told["hashes"] = [one.hash for one in store_of(config).list()]
        told["learned"] = 0 if history is None else len(history)
        told["pairs"] = current.cut.pairs
        told["leftovers"] = [path.name for path in store_of(config).folder.glob(".draft-*")]
    (folder / name).write_text(json.dumps(told))


def tell(folder: Path, name: str) -> dict[str, object]:
    assert in_fork(lambda: look(folder, name)) == 0
    told: dict[str, object] = json.loads((folder / name).read_text())
    return told


def main(root: Path, cases: list[str]) -> None:
    template = root / "template"
    template.mkdir()
    LittleLog(template).decide(45)
    results = {}
    for case in ["none:1", *cases]:
        step, times = case.split(":")
        folder = root / case.replace(":", " ")
        shutil.copytree(template, folder)
        ended = in_fork(lambda: run(folder, kill_at=step, times=int(times)))  # noqa: B023
        after = tell(folder, "after")
        again = in_fork(lambda: run(folder))  # noqa: B023
        final = tell(folder, "final")
        results[case] = {"ended": ended, "after": after, "again": again, "final": final}
    print(json.dumps(results))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])

"""Runs learners that kill themselves at a step, then others that go on: prints what is left.

Usage: killing.py FOLDER STEP:TIMES…, where a learner dies when it reaches a step for so many
times; with STEP:TIMES:again, so does the one that goes on, until one reaches the end. With
STEP:TIMES:reset the model is to be reset. The first learner is not killed; the others are forked
from it, which saves the imports.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import torch
from little_service import (
    LittleLog,
    current_of,
    learn_all,
    learned_by,
    little_config,
    store_of,
)

from fastbandit import FrozenBandit
from fastbandit.learning import checkpoints
from fastbandit.learning.learner import Learner
from fastbandit.storage.sqlite_log import SqliteLog
from fastbandit.storage.standing_requests import RESET_FILE, ask


def in_fork(work: Callable[[], Any]) -> tuple[int, Any]:
    """Do something in a process of its own; give how that ended (-9: killed), and its answer."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.write(writer, json.dumps(work()).encode())
            os._exit(0)
        except BaseException as error:
            print(repr(error), file=sys.stderr, flush=True)
            os._exit(1)
    os.close(writer)
    with os.fdopen(reader) as file:
        content = file.read()
    ended = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return ended, json.loads(content) if content else None


def learn(folder: Path, *, kill_at: str = "", times: int = 1) -> None:
    left = [times]
    if kill_at == "checkpointed":  # after each iteration
        checkpoints._SECONDS = checkpoints._SHARE = 0.0

    def reached(step: str) -> None:
        left[0] -= step == kill_at
        if left[0] == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    learn_all(Learner(little_config(folder), reached=reached))


def look(folder: Path) -> dict[str, Any] | None:
    """Tell what is served, after trying it."""
    config = little_config(folder)
    if store_of(config).current() is None:
        return None
    current = current_of(config)
    history = learned_by(config).history
    return {
        "served": FrozenBandit.load(current.frozen).select_one([0.0, 1.0]).version,
        "hashes": [one.hash for one in store_of(config).list()],
        "learned": 0 if history is None else len(history),
        "pairs": current.cut.interactions,
        "drafts": [path.name for path in store_of(config).folder.glob(".draft-*")],
    }


def go_on(folder: Path) -> tuple[Any, Any]:
    """Tell what is served after the kill, and after another learner went on."""
    before = look(folder)
    learn(folder)
    return before, look(folder)


def main(root: Path, cases: list[str]) -> None:
    torch.set_num_threads(1)  # threads do not survive a fork
    template, whole = root / "template", root / "whole"
    template.mkdir()
    LittleLog(template).decide(45)
    shutil.copytree(template, whole)
    learn(whole)
    shutil.copytree(whole, asked := root / "asked")
    with closing(SqliteLog(whole / "events.db", is_reader=True)) as log:
        ask(asked / RESET_FILE, seq=log.last)
    shutil.copytree(asked, reset := root / "reset")
    learn(reset)
    results: dict[str, Any] = {"never": {"final": look(whole)}, "reset": {"final": look(reset)}}
    for case in cases:
        step, times, *more = case.split(":")
        folder = root / case.replace(":", " ")
        shutil.copytree(asked if more == ["reset"] else template, folder)
        ended, kills = -9, 0
        while ended == -9 and (more == ["again"] or not kills):
            ended, _ = in_fork(lambda: learn(folder, kill_at=step, times=int(times)))  # noqa: B023
            kills += ended == -9
        again, (after, final) = in_fork(lambda: go_on(folder))  # noqa: B023
        results[case] = {"ended": ended, "after": after, "again": again, "final": final}
        results[case] |= {"kills": kills, "left": [path.name for path in folder.glob("training*")]}
    print(json.dumps(results))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])

"""What is asked beside a load ends with it."""

from __future__ import annotations

import threading

from lab.faults.meanwhile import meanwhile
from lab.faults.stage import Caller, free_port


def test_steps_are_taken_in_another_thread_until_the_end() -> None:
    taken, is_enough = list[int](), threading.Event()

    def step(caller: Caller) -> None:
        taken.append(threading.get_ident())
        assert caller.ask("/live") is None  # nobody listens
        if len(taken) == 3:
            is_enough.set()

    with meanwhile(free_port(), step):
        assert is_enough.wait(60)

    assert len(taken) >= 3
    assert threading.get_ident() not in taken
    assert not {one.ident for one in threading.enumerate()} & {*taken}  # it ended

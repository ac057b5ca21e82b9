"""A visitor insists on an answer, and remembers it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from fastbandit.demo.synthetic import Synthetic
from lab.faults.stage import Reply, write_stage
from lab.faults.visitor import Visitor


class _Scripted:
    """Answers in a given order, whatever is asked."""

    def __init__(self, *replies: Reply | None) -> None:
        self.replies = list(replies)

    def ask(self, path: str, content: Any = None) -> Reply | None:
        return self.replies.pop(0)


def visitor(home: Path, *replies: Reply | None) -> Visitor:
    one = Visitor(write_stage(home, Synthetic("h2", 2, 5), {}), 0)
    one._caller = _Scripted(*replies)  # type: ignore[assignment]
    return one


def test_a_visitor_asks_until_it_is_answered(tmp_path: Path) -> None:
    made = Reply(200, "json", {"arms": [3]})
    one = visitor(tmp_path, None, Reply(503, "json", {}), made)

    one._visit(0)

    assert (one.answers, one.broken) == ({"v0-0": made.content}, 2)


def test_an_answer_that_no_kill_explains_is_odd(tmp_path: Path) -> None:
    one = visitor(tmp_path, Reply(500, "json", {}))

    one._visit(0)

    assert len(one.odd) == 1
    assert not one.answers


def test_a_retry_that_is_answered_otherwise_is_counted(tmp_path: Path) -> None:
    one = visitor(tmp_path, *(Reply(200, "json", {"arms": [arm]}) for arm in (3, 3, 4)))
    one._visit(0)

    one._ask_again()
    one._ask_again()

    assert (one.asked_again, one.other_answers) == (2, 1)

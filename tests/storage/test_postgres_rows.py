"""Events as the text that PostgreSQL's COPY reads."""

from __future__ import annotations

import pytest
from little_exports import made

from fastbandit.errors import InputError
from fastbandit.storage.events import Arm, ArmsChanged, Outcome, RewardCame, TimePassed
from fastbandit.storage.postgres_rows import stage


def test_a_decision_is_a_line_of_its_columns() -> None:
    staged = stage([made("a", ("x", 7), eligible={"price": 3}, other="y")])

    assert staged.decisions.decode() == (
        '1\ta\t[0.5,1.5]\t["x",7]\t[0.1,0.1]\t1\t2\t0\t10\t-1.0\tf\tt\t0.0\t\\N\t{"price":3}\tf'
        '\tbandit\t"y"\t\\N\t\\N\t\\N\t\\N\n'
    )


def test_characters_that_copy_reads_otherwise_are_escaped() -> None:
    staged = stage([RewardCame("a\tb\n\\", 1.0, '"')])

    assert staged.rewards.decode() == '1\ta\\tb\\n\\\\\t"\\\\""\t\t1.0\n'


def test_eligible_arms_of_a_request_are_staged_once() -> None:
    arms = [f"arm {n}" for n in range(100)]
    staged = stage([made("a", eligible=arms), TimePassed(), made("b", eligible=arms), made("c")])

    (hash,) = staged.lists
    lines = staged.decisions.decode().splitlines()
    assert [line.split("\t")[-1] for line in lines] == [hash, hash, r"\N"]
    assert "arm" not in staged.decisions.decode()


def test_an_outage_ends_with_the_first_event() -> None:
    assert stage([TimePassed(outage=7), TimePassed(outage=5)]).outage == 7
    assert stage([RewardCame("a", 1.0), TimePassed(outage=5)]).outage == 0


def test_a_decision_that_comes_again_has_the_number_of_the_first() -> None:
    staged = stage([made("a"), made("a"), made("b"), TimePassed()])

    assert (staged.made, staged.again, staged.ticks) == (2, {2: 1}, [4])
    assert staged.outcomes(10, {3: 5}, {}) == [
        Outcome(11, "written"),
        Outcome(11, "repeated"),
        Outcome(5, "repeated"),
        Outcome(14, "written"),
    ]


def test_changes_are_json() -> None:
    staged = stage([ArmsChanged([Arm("x", [0.5])], [7])])

    assert staged.changes == [(1, '[["x",[0.5],null]]', "[7]")]


def test_a_text_that_postgresql_cannot_hold_is_an_error() -> None:
    with pytest.raises(InputError, match="the character 0"):
        stage([made("a\0")])

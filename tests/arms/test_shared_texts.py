"""Texts of contexts and arms lie in one space."""

from __future__ import annotations

from typing import Any

import numpy as np

from fastbandit.arms.shared_texts import share_texts, with_shared_texts
from fastbandit.bandit import Bandit
from fastbandit.features.schema import Schema
from fastbandit.features.tables import table_of

WORDS = ("boat", "sail", "wave", "hill", "tree", "path")


def rows_of(column: str, count: int, seed: int) -> dict[str, list[Any]]:
    rng = np.random.default_rng(seed)
    return {
        column: [" ".join([*rng.choice(WORDS, 4), f"w{n}"]) for n in range(count)],
        "size": rng.normal(size=count).tolist(),
    }


VIEWED, TITLES = rows_of("viewed", 200, 1), rows_of("title", 300, 2)


def schemas_of(bandit: Bandit) -> tuple[Schema, Schema]:
    plan: Any = bandit.blueprint
    return plan.context.schema, plan.arm.schema


def test_frames_of_contexts_and_arms_have_one_space() -> None:
    bandit = Bandit(context=VIEWED, arms=TITLES, progress=False)
    context, arm = schemas_of(bandit)

    assert context["viewed"].space == arm["title"].space != ""  # type: ignore[attr-defined]
    again = {"title": VIEWED["viewed"], "size": VIEWED["size"]}
    ours, theirs = context.encode(VIEWED), arm.encode(again)
    assert (ours[:, context.spans["viewed"]] == theirs[:, arm.spans["title"]]).all()


def test_arms_take_the_space_of_a_schema_of_contexts() -> None:
    context = Schema.infer(VIEWED)
    bandit = Bandit(context=context, arms=TITLES, progress=False)

    assert schemas_of(bandit)[0] == context
    assert schemas_of(bandit)[1]["title"].space == context["viewed"].space  # type: ignore[attr-defined]


def test_contexts_take_the_space_of_a_schema_of_arms() -> None:
    arm = Schema.infer(TITLES)
    bandit = Bandit(context=VIEWED, arms=arm.table(TITLES), progress=False)

    assert schemas_of(bandit)[1] == arm
    assert schemas_of(bandit)[0]["viewed"].space == arm["title"].space  # type: ignore[attr-defined]


def test_schemas_that_are_known_stay() -> None:
    ours, theirs = Schema.infer(VIEWED), Schema.infer(TITLES)
    tables = (table_of(VIEWED, what="contexts"), table_of(TITLES, what="arms"))

    assert share_texts(ours, theirs, *tables, fixed=(True, True)) == (ours, theirs)


def test_what_has_no_names_or_no_texts_is_returned_as_it_came() -> None:
    numbers, sizes = np.zeros((3, 2)), {"size": [1.0, 2.0, 4.0]}

    assert with_shared_texts(4, numbers) == (4, numbers)
    assert with_shared_texts(4, sizes) == (4, sizes)
    context, arms = with_shared_texts(sizes, TITLES)
    assert context.schema == Schema.infer(sizes)
    assert arms.schema == Schema.infer(TITLES)

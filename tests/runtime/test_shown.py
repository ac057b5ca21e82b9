"""What a bandit is fits on a line, and into a small table."""

from __future__ import annotations

import numpy as np

from fastbandit import Bandit, Box
from fastbandit.baselines import RandomBandit
from fastbandit.types import Audit, html_table


def test_a_bandit_says_its_arms_its_parts_and_its_version() -> None:
    bandit = Bandit(arms=np.eye(3, dtype=np.float32), context=2, seed=7)

    assert repr(bandit).startswith("Bandit(arms 3, ")
    assert "version 0, seed 7)" in repr(bandit)
    assert "<td>search</td>" in bandit._repr_html_()


def test_a_box_has_no_number_of_arms() -> None:
    assert "arms a box" in repr(Bandit(arms=Box((0.0,), (1.0,)), context=2))


def test_a_frozen_bandit_says_its_arms_and_version() -> None:
    frozen = Bandit(arms=np.eye(3, dtype=np.float32), context=2, seed=7).freeze()

    assert repr(frozen).startswith("FrozenBandit(arms 3, waiting 0, ")
    assert "<td>version</td><td>0</td>" in frozen._repr_html_()


def test_a_decision_shows_its_first_arms_and_what_was_dropped() -> None:
    bandit = RandomBandit(ids=["<b>"], context=1)
    decision = bandit.select(np.zeros((9, 1)))

    assert repr(decision).startswith("Decision(9 contexts, any arm")
    assert repr(decision).endswith(", …])")
    assert "&lt;b&gt;" in decision._repr_html_()
    assert "<b>" not in decision._repr_html_()


def test_an_audit_shows_its_quality() -> None:
    audit = Audit(0.5, np.array([0.25, 0.75], dtype=np.float32), 10.0, 2.0, 2)

    assert repr(audit).startswith("Audit(quality 0.5000, lowest 0.2500, ")
    assert "<td>contexts</td><td>2</td>" in audit._repr_html_()


def test_all_text_of_a_table_is_escaped() -> None:
    shown = html_table("<t>", [("<a>", 1)], ("<h>",))

    assert "&lt;t&gt;" in shown
    assert "<th>&lt;h&gt;</th>" in shown
    assert "<td>&lt;a&gt;</td><td>1</td>" in shown

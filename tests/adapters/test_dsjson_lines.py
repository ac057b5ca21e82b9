"""A line of DSJSON is a decision with its outcome, or says why it is none."""

from __future__ import annotations

import pytest

from fastbandit.adapters.dsjson_lines import NO_LABEL, decision_of, parse_line, why_not
from fastbandit.errors import DataError


def test_a_line_without_a_label_says_so() -> None:
    assert why_not(parse_line('{"c": {"_multi": []}}', "line 1"), "line 1") == NO_LABEL


def test_a_list_of_namespaces_may_hold_the_id() -> None:
    text = (
        '{"_label_cost": 0, "_label_probability": 0.5, "_label_Action": 1, '
        '"c": {"_multi": [{"j": [{"n": 1}, {"id": "x"}]}, {"j": [{"id": "y"}]}]}}'
    )

    found = decision_of(parse_line(text, "line 1"), "line 1")

    assert (found.names, found.taken, found.propensity) == (["x", "y"], 0, 0.5)


def test_a_line_that_is_no_object_is_named() -> None:
    with pytest.raises(DataError, match="in line 3"):
        parse_line("[1]", "line 3")

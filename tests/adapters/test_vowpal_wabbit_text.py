"""Examples in Vowpal Wabbit's text become what a line of DSJSON says."""

from __future__ import annotations

import pytest

from fastbandit.adapters.vowpal_wabbit_text import examples, fields_of
from fastbandit.errors import DataError


def numbered(text: str) -> list[tuple[str, str]]:
    return [(f"line {number}", line) for number, line in enumerate(text.split("\n"), start=1)]


def test_an_empty_line_ends_an_example() -> None:
    found = list(examples(numbered("shared |u a\n|i b\n\n\nshared |u c\n|i d\n")))

    assert [[where for where, _ in one] for one in found] == [
        ["line 1", "line 2"],
        ["line 5", "line 6"],
    ]


def test_namespaces_features_tags_and_the_label_are_read() -> None:
    text = "shared |User age:30 member |Hour:2 h:3\n|Item price:2.5\n0:-1:0.25 second|Item new"

    fields = fields_of(numbered(text))

    assert fields == {
        "_labelIndex": 1,
        "_label_cost": -1.0,
        "_label_probability": 0.25,
        "c": {
            "User": {"age": 30.0, "member": 1.0},
            "Hour": {"h": 6.0},
            "_multi": [{"Item": {"price": 2.5}}, {"_tag": "second", "Item": {"new": 1.0}}],
        },
    }


def test_a_tag_may_have_an_apostrophe_and_features_no_namespace() -> None:
    fields = fields_of(numbered("1:0.5:1 'first |  a b:2"))

    assert fields["c"]["_multi"] == [{"_tag": "first", "": {"a": 1.0, "b": 2.0}}]


def test_an_example_without_a_label_has_none() -> None:
    assert "_label_cost" not in fields_of(numbered("shared |u a\n|i b"))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("0:1 |i a", "action:cost:probability"),
        ("0:1:0.5 |i a\n1:1:0.5 |i b", "at most one action with a label"),
        ("0:1:0.5", "features after a bar"),
        ("|i a:much", "a finite number"),
        ("|i a:nan", "a finite number"),
    ],
)
def test_what_cannot_be_read_is_named(text: str, said: str) -> None:
    with pytest.raises(DataError, match=f"{said}.* in line [12]"):
        fields_of(numbered(text))

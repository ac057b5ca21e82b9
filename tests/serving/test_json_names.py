"""Keys that stand twice in an object are found, whatever else the JSON holds."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastbandit.serving.json_names import check_names, may_repeat
from fastbandit.serving.problems import Rejection
from fastbandit.settings.service import Config
from tests.serving.little_service import Caller, run

BYTES = np.frombuffer(b'{"features": [{"a": 1}]}', dtype=np.uint8)
SIZES = np.array([0, len(BYTES)], dtype=np.int64)
_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


@pytest.mark.parametrize(
    "body",
    [
        b'{"a": 1, "a": 2}',
        b'{"a": 1, "\\u0061": 2}',
        b'{"x": [{"b": 1, "c": [], "b": {}}]}',
        b'{"x": {"y": 1}, "x": 1}',
        b'{"": 1, "":2}',
        b'{"a":"\\"","b":"{","a":[]}',
        b'{"n": ' + b"9" * 5_000 + b', "n": 1}',
    ],
)
def test_a_key_twice_is_rejected(body: bytes) -> None:
    with pytest.raises(Rejection) as caught:
        check_names(body)
    assert caught.value.status == 400


@pytest.mark.parametrize(
    "body",
    [
        b'{"a": {"a": 1}, "b": [{"a": 1}, {"a": 2}]}',
        b'{"a": "b", "b": "a", "c": ["a", "b", ":", ","]}',
        b'{"a": ":\\"a\\": 1", "b": 1}',
        b"[1, 2]",
        b'"a:b:c"',
    ],
)
def test_the_same_key_in_two_objects_is_none_twice(body: bytes) -> None:
    check_names(body)


@given(_VALUES, st.booleans())
def test_nothing_is_found_in_what_has_each_key_once(value: Any, is_ascii: bool) -> None:
    check_names(json.dumps(value, ensure_ascii=is_ascii).encode("utf-8", "surrogatepass"))


@given(st.dictionaries(st.text(), _VALUES, min_size=1, max_size=6), _VALUES)
def test_a_key_is_found_wherever_it_comes_again(value: dict[str, Any], more: Any) -> None:
    again = json.dumps({next(iter(value)): more})
    body = (json.dumps(value)[:-1] + "," + again[1:]).encode()

    with pytest.raises(Rejection):
        check_names(b'{"x": [1, ' + body + b"]}")


def test_many_keys_take_one_pass() -> None:
    body = json.dumps([{f"k{n}": n for n in range(300)}] * 20).encode()

    assert not may_repeat(np.frombuffer(body, dtype=np.uint8), SIZES[:0], BYTES[:0])


def test_a_service_says_which_key_stands_there_twice(config: Config) -> None:
    async def story(ask: Caller) -> None:
        raw = b'{"context": [1, 2, 3], "k": 1, "k": 2}'
        reply = await ask("POST", "/v1/select", raw=raw)
        assert (reply.status, reply.body["title"], reply.body["field"]) == (400, "key twice", "k")

    run(config, story)


KNOWN = (
    b'{"contextFeatures": [{"features": 1}], "actions": [{"id": "x"}, {"features": [{"a": 1}]}]}'
)


@pytest.mark.parametrize(
    ("old", "new", "is_found"),
    [
        (b"", b"", False),
        (b'"id": "x"', b'"id": "x", "id": "y"', True),
        (b'"actions": [', b'"actions": [], "actions": [', True),
        (b"}]}]}", b'}], "features": 2}]}', True),
        (b'{"features": [{"a"', b'{"features": [], "features": [{"a"', True),
    ],
)
def test_what_is_known_of_actions_is_passed_over(old: bytes, new: bytes, is_found: bool) -> None:
    body = KNOWN.replace(old, new, 1)

    assert may_repeat(np.frombuffer(body, dtype=np.uint8), SIZES, BYTES) is is_found


def test_names_within_what_is_known_are_not_looked_at() -> None:
    twice = b'{"id":"x","features":[{"a":1,"a":2}]}'
    body = b'{"actions":[%b, %b]}' % (twice, twice)

    check_names(body, [twice] * 2)
    with pytest.raises(Rejection):
        check_names(body, [twice, b""])

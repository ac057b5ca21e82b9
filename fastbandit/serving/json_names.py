"""Finds keys that stand twice in one object of JSON, of which a parser would take either."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastbandit.compiler.compiled import compiled
from fastbandit.serving.problems import Rejection, shortened

_DEEPEST = 64
_ACTIONS = np.frombuffer(b"actions", dtype=np.uint8)


def check_names(body: bytes, known: Sequence[Any] = ()) -> None:
    """Reject a body, which is JSON, where an object of it has a key twice.

    For each of its `actions`, `known` may hold its bytes, which are an object, where they were
    checked before, and none elsewhere.
    """
    sizes = np.array([len(one) for one in known], dtype=np.int64)
    text, joined = (np.frombuffer(one, dtype=np.uint8) for one in (body, b"".join(known)))
    if may_repeat(text, sizes, joined):
        json.loads(body, object_pairs_hook=_checked, parse_int=len)  # which takes any length


def _checked(pairs: list[tuple[str, Any]]) -> None:
    seen: set[str] = set()
    for key, _ in pairs:
        if key in seen:
            raise Rejection(
                400,
                "key twice",
                f"An object of JSON needs each key once: {shortened(key)!r} stands there twice.",
                fix="Leave out one of the two.",
                field=shortened(key) or "body",
                value=key,
            )
        seen.add(key)


@compiled()
def _is(text: NDArray[np.uint8], name: NDArray[np.uint8]) -> bool:
    """Return whether some text is a name."""
    is_same = len(text) == len(name)
    for at in range(len(name)):
        is_same = is_same and text[at] == name[at]
    return is_same


@compiled()
def may_repeat(
    text: NDArray[np.uint8], known: NDArray[np.int64], joined: NDArray[np.uint8]
) -> bool:
    """Return False where no object of some JSON has a key twice.

    Keys are compared by hashes, and those with a backslash not at all: True means "look". So many
    bytes of each action are `known`, `joined` in their order, and not looked at.
    """
    most = 0
    for sign in text:
        most += sign == 58  # : stands once after each key
    room = 4
    while room < 2 * most + 2:
        room *= 2
    table = np.zeros(room, dtype=np.uint64)
    frames = np.zeros(_DEEPEST + 1, dtype=np.uint64)  # the number of an object, 0 for a list
    depth, objects, at, is_key = 0, 0, 0, False
    are_actions, action, passed = False, 0, 0
    while at < len(text):
        sign = text[at]
        at += 1
        if sign == 34:  # "
            hashed, first = np.uint64(14695981039346656037) ^ frames[depth], at
            while is_key and text[at] != 34:
                if text[at] == 92:
                    return True
                hashed = (hashed ^ np.uint64(text[at])) * np.uint64(1099511628211)
                at += 1
            while text[at] != 34:
                at += 2 if text[at] == 92 else 1  # after a backslash, a sign is no end
            at += 1
            if is_key:
                hashed = ((hashed ^ frames[depth]) * np.uint64(1099511628211)) | np.uint64(1)
                place = np.int64((hashed >> np.uint64(20)) & np.uint64(room - 1))
                while table[place] != 0:
                    if table[place] == hashed:
                        return True
                    place = (place + 1) & (room - 1)
                table[place] = hashed
                is_key = False
                if depth == 1:
                    are_actions = _is(text[first : at - 1], _ACTIONS)
        elif sign == 123 and are_actions and depth == 2 and action < len(known) and known[action]:
            last = at - 1 + known[action]
            if not _is(text[at - 1 : last], joined[passed : passed + known[action]]):
                return True  # others came under this name, too
            passed += known[action]
            at, action = last, action + 1
        elif sign == 123 or sign == 91:  # { [
            depth += 1
            if depth > _DEEPEST:
                return True
            is_key = sign == 123
            objects += is_key
            action += is_key and are_actions and depth == 3
            frames[depth] = np.uint64(objects) if is_key else np.uint64(0)
        elif sign == 125 or sign == 93:  # } ]
            depth -= 1
            is_key = False
        elif sign == 44:  # ,
            is_key = frames[depth] != 0
    return False

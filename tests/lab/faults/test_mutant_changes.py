"""Changes of arrays, notes and headers are many, and leave something that can be written."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np

from fastbandit.files.mapped import pieces_of
from lab.faults.mutant_changes import change_arrays, change_header, change_notes


def arrays() -> dict[str, Any]:
    named = {"a.x": np.arange(6, dtype=np.int32), "a.y": np.ones((2, 3), np.float32)}
    return {**named, "b": np.zeros(4, np.bool_), "c": np.zeros((0, 2), np.float32)}


def test_changed_arrays_can_be_written() -> None:
    done = set()
    for seed in range(300):
        changed = arrays()
        done.add(change_arrays(changed, np.random.default_rng(seed)).split(" ")[0])
        assert b"".join(map(bytes, pieces_of(changed)))

    assert {"values", "fill", "length", "dtype", "shape", "bits", "without", "more"} <= done


def test_notes_are_changed_in_one_place_at_any_depth() -> None:
    notes = {"rows": 3, "words": {"sizes": [1, 2], "kind": "x"}, "arrays": {"file": "a"}}
    changed = 0
    for seed in range(100):
        other = copy.deepcopy(notes)
        change_notes(other, np.random.default_rng(seed))
        assert other["arrays"] == notes["arrays"]
        changed += other != notes

    assert changed > 80


def test_a_header_says_something_else_of_the_same_numbers() -> None:
    content = b"".join(map(bytes, pieces_of(arrays())))
    others = {change_header(content, np.random.default_rng(seed))[0] for seed in range(30)}

    assert len(others - {content}) > 20

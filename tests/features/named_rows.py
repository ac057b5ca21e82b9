"""Rows of every kind of column, for tests."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from hypothesis import strategies as st

SOME = ["Oslo", "Rome", "Paris, France", "Köln", "", None]
WORDS = ["red", "blue", "wool", "Größe", "ΟΔΟΣ", "İstanbul", "x\x00y", "42", "naïve"]


def rows(count: int = 40) -> list[dict[str, Any]]:
    """Return rows with a column of every kind."""
    return [
        {
            "price": None if n % 7 == 0 else 1.5 * n,
            "income": float(10 ** (n % 6)) + n % 5,
            "member": n % 3 == 0,
            "city": SOME[n % len(SOME)],
            "user_id": f"u{n % 70}",
            "tags": ["a", "b", "c"][: n % 4],
            "query": f"{WORDS[n % 9]} {WORDS[n % 5]} shoe number {n}",
            "seen": datetime(2024, 1 + n % 12, 1 + n % 28, n % 24, n % 60, tzinfo=UTC).isoformat(),
            "vector": [n / 10, -1.0, 2.0],
        }
        for n in range(count)
    ]


def some_rows() -> st.SearchStrategy[list[dict[str, Any]]]:
    """Draw rows, of any values that the columns of `rows` may have."""
    numbers = st.none() | st.floats(-1e30, 1e30) | st.integers(-(10**12), 10**12)
    texts = st.none() | st.text(max_size=40) | st.lists(st.sampled_from(WORDS)).map(" ".join)
    moments = st.datetimes(datetime(1950, 1, 1), datetime(2200, 1, 1))
    return st.lists(
        st.fixed_dictionaries(
            {
                "price": numbers,
                "income": numbers,
                "member": st.sampled_from([True, False, None, 0, 1]),
                "city": st.sampled_from(SOME) | st.text(max_size=5),
                "user_id": st.none() | st.text(max_size=8) | st.integers(),
                "tags": st.none() | st.lists(st.sampled_from(["a", "b", "z", "é"])),
                "query": texts,
                "seen": st.none() | moments | moments.map(datetime.isoformat),
                "vector": st.none() | st.lists(st.floats(-1e6, 1e6), min_size=3, max_size=3),
            }
        ),
        min_size=1,
        max_size=8,
    )

"""A mapping reads features that were not declared: it grows, and what it read before stays."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fastbandit import Schema
from fastbandit.errors import SettingError, ValueOfColumnError
from fastbandit.features.mapping_columns import FeatureMapping, merged
from fastbandit.features.tables import Table
from fastbandit.settings.parts import read, write

NAMES = ["user", "device", "age", "city", "tags", "a.b", "x=y", "é", ""]
SCALARS = (
    st.none()
    | st.booleans()
    | st.floats(-1e30, 1e30)
    | st.integers(-(10**12), 10**12)
    | st.sampled_from(["Oslo", "Rome", "", "true"])
    | st.text(max_size=5)
)
VALUES = st.recursive(
    SCALARS,
    lambda some: (
        st.lists(some, max_size=3) | st.dictionaries(st.sampled_from(NAMES), some, max_size=4)
    ),
    max_leaves=12,
)
ROWS = st.lists(
    st.dictionaries(st.sampled_from(NAMES), VALUES, max_size=4), min_size=1, max_size=12
)


def visits(count: int = 40) -> list[dict[str, Any]]:
    """Return contexts as services send them that declare nothing."""
    return [
        {
            "user": {"age": 20.0 + n % 30, "city": ["Oslo", "Rome", "Köln"][n % 3]},
            "device": {"mobile": n % 2 == 0, "os": {"name": "ios", "version": n % 4}},
            "tags": ["new", "vip"][: 1 + n % 2],
            "session": f"s{n}",
        }
        for n in range(count)
    ]


GROWN = Schema.open().grown(visits())


def test_numbers_and_levels_have_slots_of_their_own() -> None:
    column = GROWN.others

    assert column.numbers == ("user.age", "device.os.version")
    assert set(column.levels) == {
        *(f"user.city={name}" for name in ("Oslo", "Rome", "Köln")),
        *("device.mobile=true", "device.mobile=false", "device.os.name=ios"),
        *("tags=new", "tags=vip"),
    }


def test_a_number_is_standardised_and_a_level_is_one() -> None:
    encoded = GROWN.encode(visits())
    ages = encoded[:, 1]
    slot = GROWN.others.slots - GROWN.others.levels.index("user.city=Rome")

    assert abs(ages.mean()) < 1e-5
    assert abs(ages.std() - 1) < 1e-5
    assert encoded[:3, slot].tolist() == [0.0, 1.0, 0.0]


def test_what_is_in_most_rows_has_a_slot_first() -> None:
    few = Schema.open(slots=2).grown([{"rare": 1.0}] * 2 + [{"often": 1.0, "city": "Oslo"}] * 9)

    assert (few.others.numbers, few.others.levels) == (("often",), ("city=Oslo",))


def test_what_is_seen_once_among_many_has_no_slot() -> None:
    assert not any(level.startswith("session=") for level in GROWN.others.levels)


def test_what_has_no_slot_is_hashed() -> None:
    one, other = GROWN.encode([{"never": "seen"}, {"never": 3.0}])
    hashed = slice(1 + GROWN.others.slots, None)

    assert np.flatnonzero(one).min() >= hashed.start
    assert np.count_nonzero(one) == 2
    assert np.count_nonzero(other[hashed]) == 2
    assert not np.array_equal(one, other)


def test_null_and_what_is_missing_say_nothing() -> None:
    empty = GROWN.encode_one({})

    assert not empty.any()
    assert np.array_equal(GROWN.encode_one({"user": {"age": None, "city": ""}, "x": []}), empty)
    assert GROWN.encode_one({"user": {"age": float("nan")}}).tobytes() == empty.tobytes()


@settings(max_examples=60, deadline=None)
@given(ROWS, ROWS)
def test_growth_only_appends(some: list[dict[str, Any]], more: list[dict[str, Any]]) -> None:
    first = Schema.open(slots=8, hashed=4).grown(some)
    second = first.grown(more)
    old, new = first.others, second.others

    assert second.dim == first.dim
    assert new.used <= new.slots
    for name in ("numbers", "means", "stds", "levels"):
        assert getattr(new, name)[: len(getattr(old, name))] == getattr(old, name)


def test_rows_whose_features_have_slots_are_encoded_after_growth_as_before() -> None:
    known = {"user": {"age": 31.0, "city": "Oslo"}, "device": {"mobile": True}}
    later = GROWN.grown([{"basket": {"sum": 3.0, "kind": "shoes"}}] * 3)

    assert later.others.used == GROWN.others.used + 2
    assert later.encode_one(known).tobytes() == GROWN.encode_one(known).tobytes()


def test_a_schema_that_has_nothing_to_learn_stays_itself() -> None:
    plain = Schema.from_dict({"columns": {"x": "number"}})

    assert GROWN.grown(visits()) is GROWN
    assert plain.grown([{"x": 1.0}]) is plain


@settings(max_examples=60, deadline=None)
@given(ROWS)
def test_one_row_and_many_are_encoded_alike(some: list[dict[str, Any]]) -> None:
    schema = Schema.open(slots=8, hashed=4).grown(some)
    many = schema.encode(some)

    assert np.isfinite(many).all()
    assert many.tobytes() == np.stack([schema.encode_one(row) for row in some]).tobytes()


@settings(max_examples=40, deadline=None)
@given(ROWS)
def test_the_order_of_names_never_matters(some: list[dict[str, Any]]) -> None:
    schema = Schema.open(slots=4, hashed=4).grown(some)
    turned = [dict(reversed(row.items())) for row in some]

    assert schema.encode(turned).tobytes() == schema.encode(some).tobytes()


@settings(max_examples=40, deadline=None)
@given(ROWS)
def test_a_mapping_that_was_saved_encodes_alike(some: list[dict[str, Any]]) -> None:
    schema = Schema.open(slots=8, hashed=4).grown(some)
    as_json = Schema.from_dict(json.loads(json.dumps(schema.as_dict())))
    as_part = read(json.loads(json.dumps(write(schema))))

    assert as_json == as_part == schema
    assert as_json.encode(some).tobytes() == schema.encode(some).tobytes()


def test_a_name_that_nothing_has_any_more_is_forgotten_and_its_slot_stays() -> None:
    rows = [{"n": 2.0, "a": "x"}, {"n": 3.0, "a": "y", "m": 7.0}, {"b": "z"}] * 2
    schema = Schema.open().grown(rows)
    left = [row for row in rows if "m" not in row]
    used = (schema.encode(left) != 0).any(axis=0)

    after = schema.without_unused(used, None)

    (column,) = after.columns
    assert isinstance(column, FeatureMapping)
    assert not any(one in str(column) for one in ("'m'", "a=y", "7.0"))
    assert {"a=x", "b=z", "n"} <= {*column.levels, *column.numbers}
    assert np.array_equal(after.encode(left), schema.encode(left))
    assert after.without_unused(used, None) == after
    assert schema.without_unused(used, schema) == schema  # which declares all of it


def test_one_number_alone_guesses_its_scale_from_its_size() -> None:
    alone = Schema.open().grown([{"price": 200.0}])

    assert alone.encode([{"price": 200.0}, {"price": 400.0}, {"price": 0.0}])[:, 1].tolist() == [
        0.0,
        pytest.approx(1.2247449),
        pytest.approx(-1.2247449),
    ]


def test_a_name_has_no_more_levels_than_it_may() -> None:
    rows = [{"city": f"c{n % 20}"} for n in range(100)]
    column = FeatureMapping("x", True, most_levels=5)

    assert len(Schema((column,)).grown(rows).others.levels) == 5


def test_no_more_names_have_slots_than_may() -> None:
    rows = [{f"n{k}": float(n) for k in range(9)} for n in range(20)]
    column = FeatureMapping("x", True, most_names=4)

    assert Schema((column,)).grown(rows).others.numbers == ("n0", "n1", "n2", "n3")


def deep(levels: int) -> dict[str, Any]:
    """Return a dict in a dict, so many times."""
    value: Any = 1.0
    for _ in range(levels):
        value = {"a": value}
    return dict(value)


@pytest.mark.parametrize(
    ("row", "needed"),
    [
        ({f"n{n}": 1.0 for n in range(10_000)}, r"1,000 features in a value \(most_features\)"),
        ({"user": [{"a": n} for n in range(2_000)]}, "most_features"),
        (deep(10), r"nested at most 8 deep \(depth\)"),
        ({"a": [[[[[[[[[1.0]]]]]]]]]}, "depth"),
        ({"a": float("inf")}, r"finite numbers \(a\)"),
        ({"a": {"b": 10**400}}, r"finite numbers \(a\.b\)"),
        ({"a": object()}, "numbers, texts, flags, lists and dicts below 'a'"),
        ({"a": {3: 1.0}}, "names that are texts below 'a'"),
    ],
)
def test_what_no_service_could_bear_is_an_error(row: dict[str, Any], needed: str) -> None:
    with pytest.raises(ValueOfColumnError, match=needed):
        Schema.open().encode_one(row)
    with pytest.raises(ValueOfColumnError, match=needed):
        Schema.open().grown([row])


def test_nine_deep_is_an_error_and_eight_is_not() -> None:
    assert Schema.open().encode_one(deep(8)).any()
    with pytest.raises(ValueOfColumnError, match="depth"):
        Schema.open().encode_one(deep(9))


def test_a_list_of_objects_merges() -> None:
    apart = {"user": [{"age": 30.0}, {"city": "Oslo"}]}

    assert np.array_equal(
        GROWN.encode_one(apart), GROWN.encode_one({"user": {"age": 30.0, "city": "Oslo"}})
    )


def test_namespaces_are_merged_and_the_last_of_a_name_counts() -> None:
    found = merged([{"user": {"age": 1}, "x": 1}, {"user": {"city": "Oslo"}, "x": 2}])

    assert found == {"user": {"age": 1, "city": "Oslo"}, "x": 2}
    assert merged(None) == {}


def test_numbers_in_a_list_are_named_by_their_position() -> None:
    rows = [{"v": [float(n), 2.0 * n]} for n in range(40)]

    assert Schema.open().grown(rows).others.numbers == ("v.0", "v.1")


def test_a_mapping_may_be_a_column_among_others() -> None:
    named = Schema.from_dict({"columns": {"price": "number", "more": "mapping"}})
    rows = [{"price": 1.0, "more": {"a": 2.0}}, {"price": 2.0, "more": None}]
    grown = named.grown(rows)

    assert grown["more"].numbers == ("a",)  # type: ignore[attr-defined]
    assert grown.encode(rows)[1, 2] == 1.0  # it is missing
    with pytest.raises(ValueOfColumnError, match="'more': it is missing"):
        grown.encode_one({"price": 1.0})


def test_declared_columns_and_open_ones_mix() -> None:
    mixed = Schema.from_dict(
        {"columns": {"price": "number", "rest": {"kind": "mapping", "takes_others": True}}}
    )
    rows = [{"price": 1.0, "a": 2.0, "rest": "x"}, {"price": 2.0}]
    grown = mixed.grown(rows)

    assert (grown.others.numbers, grown.others.levels) == (("a",), ("rest=x",))
    assert grown.encode(rows).tobytes() == np.stack(list(map(grown.encode_one, rows))).tobytes()
    with pytest.raises(ValueOfColumnError, match="'price': it is missing"):
        grown.encode_one({"a": 2.0})


def test_rows_of_a_csv_file_are_read_by_what_their_cells_say() -> None:
    grown = Schema.open().grown(Table({"age": ["31", "42"], "city": ["Oslo", ""]}, 2, True))

    assert (grown.others.numbers, grown.others.levels) == (("age",), ("city=Oslo",))


def test_only_one_column_takes_others() -> None:
    column = {"kind": "mapping", "takes_others": True}

    with pytest.raises(SettingError, match="at most one column that takes_others"):
        Schema.from_dict({"columns": {"a": column, "b": column}})


def test_a_mapping_with_more_than_its_slots_is_refused() -> None:
    with pytest.raises(SettingError, match="a slot for each number and level"):
        FeatureMapping("x", slots=1, levels=("a=b", "a=c"))


def test_a_mapping_says_what_it_learned_to_read() -> None:
    assert "2 numbers, 8 levels: 10 of 128 slots, 32 hashed (user.age" in GROWN.others.says()
    assert "mapping" in str(GROWN)
    assert GROWN.shape()["additionalProperties"] is True
    assert GROWN.shape()["properties"] == {}

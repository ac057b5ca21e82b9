"""What arms that come with a request are called once they are learned."""

from __future__ import annotations

from fastbandit.arms.offers import offer_name, offered_ids


def test_an_arm_without_features_keeps_its_id() -> None:
    assert offer_name("a", []) == "a"
    assert offer_name(7, None) == 7


def test_the_same_features_have_the_same_name_in_any_order() -> None:
    assert offer_name("a", {"x": 1, "y": "z"}) == offer_name("a", {"y": "z", "x": 1})


def test_other_features_another_id_or_an_id_of_another_kind_have_another_name() -> None:
    names = [
        offer_name("7", [1.0]),
        offer_name("7", [2.0]),
        offer_name("8", [1.0]),
        offer_name(7, [1.0]),
    ]

    assert len(set(names)) == 4


def test_names_say_of_which_ids_they_are() -> None:
    names = ["plain", 3, offer_name("a", {"x": 1}), offer_name(7, [2.0]), offer_name("a", [1.0])]

    assert offered_ids(names) == {"a", "7"}

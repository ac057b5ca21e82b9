"""Events have ids that the log takes."""

from __future__ import annotations

from fastbandit.serving.personalizer.events import decision_id, slot_id


def test_a_plain_id_is_its_own_and_others_have_a_hash() -> None:
    assert decision_id("75269AD0-BFEE") == "75269AD0-BFEE"
    assert decision_id("a b") != decision_id("a c")
    assert decision_id("a b").startswith("event:")
    assert slot_id("one", "top") == "one:top"
    assert slot_id("one:a", "b") != slot_id("one", "a:b")


def test_no_slot_has_the_id_of_another_event() -> None:
    odd = decision_id("a b")
    assert slot_id("one", "top") != decision_id("one:top")
    assert slot_id("one", "the top") != decision_id("one\nthe top")
    assert slot_id(*odd.split(":", 1)) != odd
    assert decision_id(odd) != odd

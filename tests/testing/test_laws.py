"""A law that is broken says what was seen."""

from __future__ import annotations

import pytest
import torch

from fastbandit.testing.laws import need, need_close, need_equal


def test_a_law_that_is_met_raises_nothing() -> None:
    need(True, "broken")
    need_equal([1], [1], "a list")
    need_close(torch.ones(2), torch.ones(2) + 1e-5, "ones")
    need_close(torch.ones(0), torch.ones(0), "nothing")


def test_a_broken_law_says_what_was_seen() -> None:
    with pytest.raises(AssertionError, match=r"^broken$"):
        need(False, "broken")
    with pytest.raises(AssertionError, match=r"a list: \[1\], not \[2\]"):
        need_equal([1], [2], "a list")


def test_rounding_is_judged_at_the_scale_of_the_largest_number() -> None:
    need_close(torch.tensor([1000.0, 0.5]), torch.tensor([1000.0, 0.0]), "large numbers")

    with pytest.raises(AssertionError, match=r"small numbers: differs by 0\.5"):
        need_close(torch.tensor([1.0, 0.5]), torch.tensor([1.0, 0.0]), "small numbers")


def test_another_shape_is_a_broken_law() -> None:
    with pytest.raises(AssertionError, match="shape"):
        need_close(torch.ones(2), torch.ones(3), "ones")

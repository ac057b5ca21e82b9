"""The learning rate falls along half a cosine."""

from __future__ import annotations

import pytest
import torch

from fastbandit.optim.schedule import cosine_factor, set_rate


def test_the_learning_rate_falls_from_all_to_a_hundredth() -> None:
    assert cosine_factor(0.0) == pytest.approx(1.0)
    assert cosine_factor(1.0) == pytest.approx(0.01)
    assert cosine_factor(0.2) > cosine_factor(0.8)


def test_a_rate_is_set_for_all_groups_of_parameters() -> None:
    groups = [{"params": [torch.zeros(1, requires_grad=True)]} for _ in range(2)]
    optimiser = torch.optim.Adam(groups, lr=1.0)

    set_rate(optimiser, 0.25)

    assert [group["lr"] for group in optimiser.param_groups] == [0.25, 0.25]

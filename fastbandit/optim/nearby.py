"""Contexts near those of a history: what a generator or a surrogate is trained on."""

from __future__ import annotations

from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Generator, Tensor

from fastbandit.types import Inputs

_CHUNK = 8192


def contexts_near(
    embedded: Float[Tensor, "n E"], count: int, jitter: float, *, rng: Generator
) -> Float[Tensor, "B E"]:
    """Draw contexts near some: one of them, and a share of the way between two others."""
    rows = torch.randint(len(embedded), (3, count), generator=rng)
    share = jitter * torch.rand(count, 1, generator=rng)
    one, two, three = embedded[rows.to(embedded.device)]
    return one + share.to(embedded.device) * (two - three)


@torch.no_grad()
def embed_all(embed: Callable[[Inputs], Tensor], contexts: Inputs) -> Float[Tensor, "n E"]:
    """Embed many contexts, a chunk at a time."""
    firsts = range(0, len(contexts), _CHUNK)
    return torch.cat([embed(contexts.take(slice(first, first + _CHUNK))) for first in firsts])

"""The least that any policy should beat: an arm at random."""

from __future__ import annotations

from dataclasses import dataclass

from fastbandit.arms.requests import Request
from fastbandit.baselines.baseline import Baseline
from fastbandit.types import Decision


@dataclass(kw_only=True, eq=False, repr=False)
class RandomBandit(Baseline):
    """Every eligible arm is equally likely, for ever; rewards are checked and forgotten.

    There is nothing to be greedy about: `explore` changes nothing. Without `context`, any
    dense, sparse or image contexts are taken.
    """

    def _decide(self, request: Request, *, explore: bool) -> Decision:
        return self._table.decide_uniformly(request, version=self._version)

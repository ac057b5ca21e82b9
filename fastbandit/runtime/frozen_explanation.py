"""Explains scores of a frozen bandit: which features an arm has, and what each adds to it."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from fastbandit.errors import UnknownArmError
from fastbandit.features.kinds import FeaturesAndIds, Ids
from fastbandit.runtime.codec import Codec
from fastbandit.runtime.explanation import ARM, OWN, Asked, Explanation, Floats, explain
from fastbandit.runtime.feature_groups import FeatureGroups, names_and_spans
from fastbandit.runtime.frozen_catalogue import FrozenCatalogue
from fastbandit.runtime.frozen_scores import FrozenArmScores
from fastbandit.runtime.parts import FrozenModel
from fastbandit.types import Inputs

Parts = tuple[FrozenModel, FrozenCatalogue, Codec]


class _Steps(NamedTuple):
    """Features of an arm by name, and what each adds to its coordinates: (names, D)."""

    names: tuple[str, ...]
    steps: Floats


def explain_frozen(
    parts: Parts,
    inputs: Inputs,
    asked: Asked,
    *,
    best: Any,
    features: Any = None,
    propensity: float | None = None,
) -> Explanation:
    """Explain the score of an arm; `best` are the rows of the two best arms under its draw.

    `features` are those of the arm, in a row; where they are left out they are worked out from its
    coordinates, if these tell them.
    """
    _, catalogue, codec = parts
    row = int(catalogue.ids.rows([asked.arm])[0])
    context = FeatureGroups.of(
        inputs, codec.context.kind, typical=codec.context.typical, prefix="context"
    )
    mine = arm_scores(parts, context, row, features=features)
    rival = next((int(other) for other in best if other not in (row, -1)), None)
    if rival is None:
        return explain(asked, mine, propensity=propensity)
    return explain(
        asked,
        mine,
        runner_up=catalogue.ids.id(rival),
        others=whole_scores(parts, context, rival),
        propensity=propensity,
    )


def whole_scores(parts: Parts, context: FeatureGroups, row: int) -> FrozenArmScores:
    """Return the scores of the arm in a row, with its features always as they are."""
    model, catalogue, codec = parts
    embedding = np.zeros(0)
    if not len(model.own_shared):
        embedding = _embedding(model, catalogue.points_of(np.array([row]))[0])
    nothing = np.zeros((0, len(embedding)))
    return FrozenArmScores(model, codec, context, row, embedding, nothing, (), False)


def _embedding(model: FrozenModel, point: Any) -> Floats:
    axes = model.to_embedding.astype(np.float64)
    return np.asarray(axes[-1] + point @ axes[:-1])


def arm_scores(
    parts: Parts, context: FeatureGroups, row: int, *, features: Any = None
) -> FrozenArmScores:
    """Return the scores of the arm in a row, each of whose features can be typical."""
    model, catalogue, codec = parts
    if len(model.own_shared):  # weights of its own, and no features
        nothing = np.zeros((1, 0))
        return FrozenArmScores(model, codec, context, row, nothing, nothing, (OWN,), True)
    if catalogue.positions[row] < 0:
        raise UnknownArmError(
            f"An explanation needs an arm that this version knows: got {catalogue.ids.id(row)!r}, "
            f"which was discarded before. Ask for one that can be chosen."
        )
    point = catalogue.points_of(np.array([row]))[0].astype(np.float64)
    own = _own_step(codec, row, point)
    found = _feature_steps(codec, point if own is None else point - own, features)
    has_own = own is not None or len(model.own_constants) > 0
    if has_own:
        mine = np.zeros(len(point)) if own is None else own
        found = _Steps((*found.names, OWN), np.vstack([found.steps, mine]))
    embedding = _embedding(model, point)
    steps = found.steps @ model.to_embedding[:-1].astype(np.float64)
    return FrozenArmScores(model, codec, context, row, embedding, steps, found.names, has_own)


def _own_step(codec: Codec, row: int, point: Floats) -> Floats | None:
    """Return what the arm's id adds to its coordinates, where the model embeds ids."""
    ids = codec.arm.ids
    if not ids.size:
        return None
    if isinstance(codec.arm.kind, Ids):  # nothing else is known of it
        return point - codec.origin
    inverse = codec.inverse.astype(np.float64)
    return ids[row].astype(np.float64) @ inverse if row < len(ids) else np.zeros(len(point))


def _feature_steps(codec: Codec, point: Floats, features: Any) -> _Steps:
    """Return what each feature adds to an arm's coordinates, or all of them together."""
    kind, arm = codec.arm.kind, codec.arm
    plain = kind.features if isinstance(kind, FeaturesAndIds) else kind
    if isinstance(plain, Ids):
        return _Steps((), np.zeros((0, len(point))))
    if arm.matrix.size:
        columns, usual, origin, solver = codec.arm_axes
        away = _from_typical(codec, usual, features)
        away = (point - origin) @ solver if away is None and solver.size else away
        if away is None:
            return _Steps((ARM,), (point - origin)[None])
        spans = names_and_spans(plain, prefix="arm")
        return _Steps(tuple(spans), np.stack([away[s] @ columns[s] for s in spans.values()]))
    if features is not None:
        row = plain.read(features, what="features of the arm").sparse
        assert row is not None
        length = float(np.sqrt(np.square(row.data).sum())) or 1.0
        steps = (row.data / length)[:, None] * (
            arm.tokens[row.indices] @ codec.inverse.astype(np.float64)
        )
        return _Steps(tuple(f"arm[{n}]" for n in row.indices), steps)
    return _Steps((ARM,), (point - codec.origin)[None])


def _from_typical(codec: Codec, usual: Any, features: Any) -> Floats | None:
    """Return how far the features of an arm are from typical ones, where they were given."""
    if features is None:
        return None
    kind = codec.arm.kind
    plain = kind.features if isinstance(kind, FeaturesAndIds) else kind
    row = plain.read(features, what="features of the arm").dense
    assert row is not None
    bounds = codec.arm.bounds
    cut = np.clip(row[0], *bounds) if bounds.size else row[0]
    return np.asarray(cut - usual, dtype=np.float64)

"""An evaluation is a table, JSON and sentences."""

from __future__ import annotations

import json

import numpy as np
from little_log import uniform_log

from fastbandit.evaluation import SparsePolicy, evaluate


def test_few_matches_are_reported() -> None:
    log = uniform_log(200)

    found = evaluate(log, SparsePolicy.fixed(log, 3), estimators=["ips"])

    count = int((log.chosen == 3).sum())
    assert f"effective sample size {count} of 200: do not trust this" in found.sentences
    assert not found.diagnostics.is_trusted


def test_wrong_propensities_are_reported_before_anything_else() -> None:
    log = uniform_log(propensities=np.full(400, 0.01))

    words = evaluate(log, "uniform").sentences

    assert any("12.500 ± 0.000, but it should be near 1: the propensities are" in w for w in words)
    assert any("mend the propensities" in said for said in words)


def test_an_evaluation_reads_as_a_table() -> None:
    text = str(evaluate(uniform_log(), "uniform"))

    assert text.splitlines()[0].split()[:4] == ["estimator", "estimate", "low", "high"]
    assert "Doubly robust" in text


def test_an_evaluation_is_json_without_nan() -> None:
    log = uniform_log(chosen=np.zeros(400, dtype=int))

    told = evaluate(log, SparsePolicy.fixed(log, 3)).to_json()

    assert json.loads(json.dumps(told, allow_nan=False))["estimates"][0]["value"] is None

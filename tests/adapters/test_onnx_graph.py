"""Formulas over signals become graphs that ONNX Runtime works out."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from fastbandit.adapters.onnx_graph import Graph, Signal

pytest.importorskip("onnx")
runtime = pytest.importorskip("onnxruntime")

X = np.array([[-2.0, 0.5], [3.0, 1.0]], dtype=np.float32)

FORMULAS: dict[str, tuple[Callable[[Signal], Signal], np.ndarray]] = {
    "arithmetic": (lambda x: (x * 2.0 + 1.0 - x) / 2.0, (X + 1.0) / 2.0),
    "a product": (lambda x: x @ np.eye(2)[:, :1], X[:, :1]),
    "a column": (lambda x: x.columns(1, 2), X[:, 1:]),
    "sums": (lambda x: x.summed(), X.sum(axis=1, keepdims=True)),
    "a leaky rectifier": (lambda x: x.bent(0.1), np.where(X > 0, X, 0.1 * X)),
    "its slope": (lambda x: x.bends(0.1), np.where(X > 0, 1.0, 0.1)),
    "bounds": (lambda x: x.within(-1.0, 2.0), np.clip(X, -1.0, 2.0)),
    "side by side": (lambda x: x.beside(x), np.concatenate([X, X], axis=1)),
    "another shape": (lambda x: x.wider(1).turned().shaped([0, -1]), X),
    "an operation": (lambda x: x.through("Tanh"), np.tanh(X)),
}


@pytest.mark.parametrize("name", FORMULAS)
def test_a_formula_is_worked_out_as_numpy_does(name: str) -> None:
    formula, expected = FORMULAS[name]
    graph = Graph("formula")
    graph.output("y", formula(graph.input("x", ("batch", 2))), ("batch", "columns"))

    session = runtime.InferenceSession(graph.to_bytes(producer="tests"))
    (found,) = session.run(None, {"x": X})

    assert np.allclose(found, expected, atol=1e-6)

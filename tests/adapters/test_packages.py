"""A package that is missing is named, with what to install."""

from __future__ import annotations

import sys

import pytest

from fastbandit.errors import MissingExtraError
from fastbandit.packages import needed


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "onnx", None)

    with pytest.raises(MissingExtraError, match=r"pip install 'fastbandit\[onnx\]'"):
        needed("onnx", what="Writing ONNX", extra="onnx")


def test_a_missing_scikit_learn_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "fastbandit.adapters.scikit_learn", raising=False)
    monkeypatch.setitem(sys.modules, "sklearn", None)
    monkeypatch.delitem(sys.modules, "sklearn.base", raising=False)

    with pytest.raises(MissingExtraError, match=r"pip install 'fastbandit\[adapters\]'"):
        __import__("fastbandit.adapters.scikit_learn")

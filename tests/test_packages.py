"""A package that is missing is named, with what to install."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from fastbandit.errors import MissingExtraError
from fastbandit.packages import missing_extra, needed


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


def test_a_module_that_is_there_is_imported() -> None:
    assert needed("sys", what="This") is sys


def test_a_module_that_another_one_lacks_is_no_missing_extra(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "half_installed.py").write_text("import not_installed_at_all\n")
    monkeypatch.syspath_prepend(tmp_path)

    with pytest.raises(ModuleNotFoundError, match="not_installed_at_all") as raised:
        needed("half_installed", what="This", extra="train")

    assert not isinstance(raised.value, MissingExtraError)


def test_a_failed_import_names_its_extra_where_there_is_one() -> None:
    ours = missing_extra(ModuleNotFoundError(name="torch.nn"), what="Training")

    assert str(ours) == (
        "Training needs torch, which is not installed. Run: pip install 'fastbandit[train]'"
    )
    assert missing_extra(ModuleNotFoundError(name="elsewhere"), what="Training") is None

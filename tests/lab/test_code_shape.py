"""Functions, kernels, lists of parts and tests of modules are counted from the syntax."""

from __future__ import annotations

from pathlib import Path

import pytest

from lab.code_shape import (
    files_to_touch,
    functions_in,
    is_kernel_file,
    keyword_share,
    lines_of,
    parts_in,
    untested,
)

PARTS = """
from fastbandit.declaration import part

@part("search", name="one")
class One: ...

@part("search", name="two")
class Two: ...

@part("search", name="three")
class Three: ...
"""


def written(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def test_lines_are_counted(tmp_path: Path) -> None:
    assert lines_of(written(tmp_path, "one.py", "a = 1\n\n# why\n")) == 3


def test_parameters_are_counted_without_self(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        "one.py",
        "class A:\n    def __init__(self, a, *, b): ...\n    def _hidden(self): ...\n"
        "class _B:\n    def seen(self): ...\n"
        "def f(self, a, /, b):\n    def inside(): ...\n",
    )

    found = {one.name: one for one in functions_in(path)}

    assert (found["__init__"].parameters, found["__init__"].keyword_only) == (2, 1)
    assert found["f"].parameters == 3
    assert [name for name, one in found.items() if one.is_public] == ["__init__", "f"]


def test_a_file_of_compiled_functions_is_a_kernel(tmp_path: Path) -> None:
    kernel = "@njit(cache=True)\ndef f(): ...\n\n@triton.jit\ndef g(): ...\n\ndef h(): ...\n"

    assert is_kernel_file(written(tmp_path, "kernel.py", kernel))
    assert not is_kernel_file(written(tmp_path, "plain.py", "def f(): ...\n"))


def test_the_share_of_keywords_is_that_of_wide_public_functions(tmp_path: Path) -> None:
    text = (
        "def a(a, b, c, *, d, e): ...\ndef b(a, b, c, d, e): ...\n"
        "def c(a, b): ...\ndef _d(a, b, c, d, e): ...\n"
    )

    assert keyword_share(functions_in(written(tmp_path, "one.py", text))) == 50


@pytest.mark.parametrize(
    "listing",
    [
        "ALL = (One, Two, Three)\n",
        "NAMES = ('one', 'two', 'three')\n",
        "Any = One | Two | Three\n",
        "if name == 'one': f()\nelif name == 'two': g()\nelif name in ('three',): h()\n",
        "def f(x):\n    isinstance(x, One)\n    isinstance(x, Two)\n    return type(x) is Three\n",
        "match x:\n    case One(): 1\n    case Two(): 2\n    case Three(): 3\n",
    ],
)
def test_a_file_that_lists_three_parts_has_to_be_touched(tmp_path: Path, listing: str) -> None:
    home = written(tmp_path, "parts.py", PARTS)
    path = written(tmp_path, "lists.py", listing)

    assert files_to_touch([home, path], "search") == [path]


@pytest.mark.parametrize(
    "text",
    [
        "ALL = (One, Two)\n",
        "from parts import One, Two, Three\none = One()\ntwo = Two()\nthree = Three()\n",
        "def f(one: One, two: Two, three: Three): ...\n",
        "def f(x): return x is One\ndef g(x): return x is Two\ndef h(x): return x is Three\n",
    ],
)
def test_defaults_and_imports_are_no_list(tmp_path: Path, text: str) -> None:
    home = written(tmp_path, "parts.py", PARTS + "ALL = (One, Two, Three)\n")
    path = written(tmp_path, "uses.py", text)

    assert files_to_touch([home, path], "search") == []


def test_models_are_the_heirs_of_their_base(tmp_path: Path) -> None:
    path = written(
        tmp_path, "models.py", "class A(model.RewardModel): ...\nclass B(A): ...\nclass C: ...\n"
    )

    assert list(parts_in([path], "model")) == ["A", "B"]


def test_a_module_is_tested_by_a_file_of_its_name(tmp_path: Path) -> None:
    paths = [
        written(tmp_path, f"fastbandit/arms/{name}.py", "") for name in ("box", "ids", "index")
    ]
    written(tmp_path, "tests/arms/test_box.py", "")
    written(tmp_path, "tests/arms/test_arms_ids.py", "")

    assert [path.stem for path in untested(paths, tmp_path / "tests")] == ["index"]

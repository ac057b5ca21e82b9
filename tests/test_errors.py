"""Every error is one of ours, and one of Python's that a caller would expect."""

from __future__ import annotations

import builtins
import re
from typing import Any

import pytest

from fastbandit import errors
from fastbandit.errors import FastbanditError, ServiceUnavailable, UnknownArmError

ERRORS: dict[str, Any] = {
    name: value
    for name, value in vars(errors).items()
    if isinstance(value, type) and issubclass(value, Exception)
}


@pytest.mark.parametrize("name", ERRORS)
def test_an_error_is_ours_and_one_of_pythons(name: str) -> None:
    error = ERRORS[name]

    assert issubclass(error, FastbanditError)
    assert error.__doc__
    if error is not FastbanditError:
        assert any(base.__module__ == "builtins" for base in error.__mro__[1:-3])


def test_the_tree_in_the_docstring_names_every_error_and_its_base() -> None:
    tree = errors.__doc__ or ""

    for name in ERRORS:
        assert re.search(rf"\b{name}\b", tree), name
    for name, builtin in re.findall(r"(\w+) \((\w+)\)", tree):
        assert issubclass(ERRORS[name], getattr(builtins, builtin)), name


def test_an_unknown_arm_is_shown_as_it_was_written() -> None:
    assert str(UnknownArmError("There is no arm 'a'.")) == "There is no arm 'a'."
    assert str(UnknownArmError()) == ""


def test_an_error_of_the_service_has_its_status_and_problem() -> None:
    problem = {"title": "Too busy"}
    error = ServiceUnavailable("It did not answer.", status=503, problem=problem)
    problem["title"] = "changed"

    assert (error.status, error.problem) == (503, {"title": "Too busy"})
    assert (ServiceUnavailable("none").status, ServiceUnavailable("none").problem) == (0, {})

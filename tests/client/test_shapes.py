"""The client speaks the language of the service, and needs little to do so."""

from __future__ import annotations

import subprocess
import sys

import pytest
from msgspec import UNSET, Struct, json
from msgspec.structs import fields

from fastbandit.client import shapes
from fastbandit.errors import InputError
from fastbandit.serving import schemas

SENT = [
    (shapes.Reward, schemas.Reward),
    (shapes.ArmUpsert, schemas.ArmUpsert),
    (shapes.Baseline, schemas.Baseline),
]
GOT = [
    (shapes.Selected, schemas.SelectAnswer),
    (shapes.SelectedMany, schemas.SelectAnswers),
    (shapes.RewardAnswer, schemas.RewardAnswer),
    (shapes.RewardAnswers, schemas.RewardAnswers),
    (shapes.UpsertArmsAnswer, schemas.UpsertArmsAnswer),
    (shapes.DiscardArmsAnswer, schemas.DiscardArmsAnswer),
]


def names(shape: type[Struct], *, required: bool = False) -> set[str]:
    return {field.name for field in fields(shape) if field.required or not required}


@pytest.mark.parametrize(("ours", "theirs"), SENT)
def test_what_is_sent_is_what_the_service_reads(ours: type[Struct], theirs: type[Struct]) -> None:
    assert names(ours) == names(theirs)
    assert names(ours, required=True) == names(theirs, required=True)


@pytest.mark.parametrize(("ours", "theirs"), GOT)
def test_what_is_read_is_what_the_service_sends(ours: type[Struct], theirs: type[Struct]) -> None:
    assert names(theirs) == names(ours) - {"is_fallback"}
    assert names(ours, required=True) <= names(theirs, required=True)


def test_what_is_left_out_of_a_select_is_what_the_service_takes_anyway() -> None:
    usual = schemas.SelectRequest()

    assert (usual.k, usual.eligible, usual.explore, usual.propensity) == (1, None, True, False)
    assert usual.contexts is UNSET


@pytest.mark.parametrize("propensity", [0.0, -0.5, 1.5, float("nan")])
def test_a_propensity_that_cannot_be_is_noticed_before_it_is_sent(propensity: float) -> None:
    with pytest.raises(InputError, match="above 0 and at most 1"):
        shapes.to_baseline(shapes.Baseline("a", propensity))


def run(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)


def test_a_client_needs_neither_torch_nor_numpy() -> None:
    done = run(
        "import sys\n"
        "for name in ('torch', 'numba', 'numpy', 'faiss', 'apsw', 'click', 'rich'):\n"
        "    sys.modules[name] = None\n"
        "from fastbandit.client import AsyncClient, Client\n"
        "Client('http://127.0.0.1:1', fallback='a').select([0.1])\n"
        "AsyncClient('http://127.0.0.1:1')\n"
    )

    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("package", ["httpx", "msgspec"])
def test_a_missing_package_is_named_with_what_to_install(package: str) -> None:
    done = run(
        f"import sys; sys.modules[{package!r}] = None\n"
        "from fastbandit.errors import MissingExtraError\n"
        "try: import fastbandit.client\n"
        "except MissingExtraError as error: print(error)\n"
    )

    assert f"needs {package}" in done.stdout, done.stderr
    assert "pip install 'fastbandit[client]'" in done.stdout


def test_values_of_any_kind_are_sent_and_dates_as_iso_text() -> None:
    from datetime import date, datetime

    import numpy as np

    context = {
        "text": "DE",
        "gap": None,
        "likes": ["jazz"],
        "day": date(2026, 3, 1),
        "time": datetime(2026, 3, 1, 12),
        "numpy": np.datetime64("2026-03-01"),
        "none": np.datetime64("NaT"),
        "age": np.float32(31.5),
    }

    assert json.decode(shapes.encode({"context": context}))["context"] == {
        **context,
        "day": "2026-03-01",
        "time": "2026-03-01T12:00:00",
        "numpy": "2026-03-01",
        "none": None,
        "age": 31.5,
    }


def test_dates_and_gaps_of_pandas_are_sent() -> None:
    pandas = pytest.importorskip("pandas")

    sent = json.decode(shapes.encode([pandas.Timestamp("2026-03-01"), pandas.NaT, pandas.NA]))

    assert sent == ["2026-03-01T00:00:00", None, None]

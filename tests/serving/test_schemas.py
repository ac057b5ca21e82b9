"""The shapes of requests leave nothing unnoticed."""

from __future__ import annotations

import msgspec
import pytest

from fastbandit.serving import schemas

REQUESTS = [
    schemas.SelectRequest,
    schemas.RewardRequest,
    schemas.UpsertArmsRequest,
    schemas.DiscardArmsRequest,
]


@pytest.mark.parametrize("shape", REQUESTS)
def test_a_misspelt_field_is_rejected(shape: type[msgspec.Struct]) -> None:
    with pytest.raises(msgspec.ValidationError, match=r"unknown field|missing required"):
        msgspec.json.decode(b'{"contxt": [1.0]}', type=shape)


@pytest.mark.parametrize(
    "text", [b'{"k": 0}', b'{"k": 1001}', b'{"eligible": []}', b'{"id": "a b"}']
)
def test_a_value_out_of_range_is_rejected(text: bytes) -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.json.decode(text, type=schemas.SelectRequest)


@pytest.mark.parametrize("propensity", [0.0, 1.5])
def test_a_propensity_lies_above_0_and_at_most_at_1(propensity: float) -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert({"arm": "a", "propensity": propensity}, schemas.Baseline)

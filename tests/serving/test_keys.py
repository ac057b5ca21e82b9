"""API keys: what opens, what does not and why, and what the file survives."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastbandit.errors import DataError
from fastbandit.files.manifest import digest_of
from fastbandit.serving.keys import (
    KEYS_FILE,
    SCOPES,
    Key,
    KeyFault,
    KeyRing,
    Scope,
    create_key,
    revoke_key,
)

TODAY = date(2026, 3, 1)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "data" / KEYS_FILE


def new_key(path: Path, *scopes: str, expires: date | None = None) -> str:
    text, _ = create_key(path, name="shop", scopes=scopes, expires=expires, today=TODAY)
    return text


def fault(path: Path, presented: str | None, scope: Scope = "select") -> KeyFault | None:
    return KeyRing.load(path).check(presented, scope)


def altered(text: str, place: int) -> str:
    other = "0" if text[place] != "0" else "1"
    return text[:place] + other + text[place + 1 :]


# -- what opens


def test_a_key_opens_its_scope_and_says_whose_it_is(path: Path) -> None:
    text = new_key(path, "select")

    ring = KeyRing.load(path)

    assert ring.check(text, "select") is None
    assert [(key.name, key.id) for key in ring.keys] == [("shop", text.split("_")[1])]


@pytest.mark.parametrize("held", SCOPES)
@pytest.mark.parametrize("asked", SCOPES)
def test_a_scope_opens_itself_and_admin_opens_all(path: Path, held: Scope, asked: Scope) -> None:
    text = new_key(path, held)

    opens = held in (asked, "admin")
    assert fault(path, text, asked) == (None if opens else KeyFault.LACKS_SCOPE)


def test_a_key_may_have_two_scopes(path: Path) -> None:
    text = new_key(path, "reward", "select")

    assert [fault(path, text, scope) for scope in SCOPES] == [None, None, KeyFault.LACKS_SCOPE]


def test_a_key_lasts_to_the_end_of_its_last_day(path: Path) -> None:
    text = new_key(path, "select", expires=date(2026, 3, 2))

    def at(*moment: int) -> KeyFault | None:
        when = datetime(*moment, tzinfo=UTC).timestamp()  # type: ignore[misc,arg-type]
        return KeyRing.load(path, clock=lambda: when).check(text, "select")

    assert at(2026, 3, 2, 23, 59, 59) is None
    assert at(2026, 3, 3, 0, 0, 0) == KeyFault.EXPIRED
    assert at(2030, 1, 1) == KeyFault.EXPIRED


def test_a_key_that_expired_still_needs_its_secret(path: Path) -> None:
    text = new_key(path, "select", expires=TODAY)

    assert fault(path, altered(text, 20)) == KeyFault.UNKNOWN


# -- what does not


@pytest.mark.parametrize("presented", [None, ""])
def test_no_key_is_missing(path: Path, presented: str | None) -> None:
    new_key(path, "select")

    assert fault(path, presented) == KeyFault.MISSING


@pytest.mark.parametrize(
    "shape",
    [
        lambda key: key[:-1],
        lambda key: key + "A",
        lambda key: key + "\n",
        lambda key: " " + key,
        lambda key: "Bearer " + key,
        lambda key: key.upper(),
        lambda key: key.replace("fb_", "sk_"),
        lambda key: key[:12],
        lambda key: key[:20] + "ä" + key[21:],
        lambda key: key[:20] + "\0" + key[21:],
        lambda key: key * 1_000,
        lambda key: "fb__",
        lambda key: "hello",
    ],
)
def test_another_shape_is_malformed(path: Path, shape: Any) -> None:
    text = new_key(path, "select")

    assert fault(path, shape(text)) == KeyFault.MALFORMED


def test_an_altered_key_is_unknown_wherever_it_was_altered(path: Path) -> None:
    text = new_key(path, "admin")
    ring = KeyRing.load(path)

    places = [*range(3, 11), *range(12, len(text))]
    assert {ring.check(altered(text, place), "select") for place in places} == {KeyFault.UNKNOWN}


def test_a_key_of_another_service_is_unknown(path: Path, tmp_path: Path) -> None:
    new_key(path, "select")
    foreign = new_key(tmp_path / "other" / KEYS_FILE, "admin")

    assert fault(path, foreign) == KeyFault.UNKNOWN


def test_the_secret_of_another_key_does_not_open(path: Path) -> None:
    first, second = new_key(path, "select"), new_key(path, "admin")

    assert fault(path, first[:12] + second[12:], "admin") == KeyFault.UNKNOWN


def test_an_unknown_key_looks_alike_whatever_its_id(path: Path) -> None:
    text = new_key(path, "select")
    ring = KeyRing.load(path)

    assert ring.check(altered(text, 5), "select") == ring.check(altered(text, 30), "select")


def test_an_unknown_id_is_compared_too(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = new_key(path, "select")
    ring, compared = KeyRing.load(path), []

    def compare(left: bytes, right: bytes) -> bool:
        compared.append((len(left), len(right)))
        return True

    monkeypatch.setattr("fastbandit.serving.keys.hmac.compare_digest", compare)

    assert ring.check(altered(text, 5), "select") == KeyFault.UNKNOWN
    assert compared == [(32, 32)]


@given(st.text())
def test_any_text_is_rejected_without_an_error(presented: str) -> None:
    assert KeyRing().check(presented, "select") is not None


# -- the file


def test_the_file_holds_no_secret_and_is_for_its_owner_alone(path: Path) -> None:
    text = new_key(path, "select")

    assert text[12:] not in path.read_text()
    assert path.stat().st_mode & 0o777 == 0o600
    assert [*path.parent.iterdir()] == [path]


def test_two_keys_are_never_alike(path: Path) -> None:
    texts = [new_key(path, "select") for _ in range(3)]

    raw = json.loads(path.read_text())["keys"]
    assert len({text[12:] for text in texts}) == 3
    assert len({key["salt"] for key in raw}) == len({key["id"] for key in raw}) == 3


def test_an_id_that_is_taken_is_not_given_again(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ids = iter(["00000001", "00000001", "00000002"])
    monkeypatch.setattr("fastbandit.serving.keys.secrets.token_hex", lambda count: next(ids))

    texts = [new_key(path, "select"), new_key(path, "select")]

    assert [text[3:11] for text in texts] == ["00000001", "00000002"]


def test_a_file_reads_back_as_it_was_written(path: Path) -> None:
    _, key = create_key(path, name="tür", scopes=["admin", "select"], expires=date(2027, 1, 31))

    assert KeyRing.load(path).keys == (key,)
    assert key.scopes == ("select", "admin")
    assert not KeyRing.load(path).is_open


def test_a_key_shows_neither_salt_nor_hash(path: Path) -> None:
    _, key = create_key(path, name="shop", scopes=["select"])

    assert "salt" not in repr(key)
    assert "digest" not in repr(key)


def test_no_file_is_an_open_ring_that_takes_no_key(path: Path) -> None:
    ring = KeyRing.load(path)

    assert ring.is_open
    assert ring.check("fb_00000000_" + "A" * 43, "select") == KeyFault.UNKNOWN


def test_a_file_whose_keys_are_all_revoked_is_not_open(path: Path) -> None:
    revoke_key(path, new_key(path, "select")[3:11])

    assert KeyRing.load(path).keys == ()
    assert not KeyRing.load(path).is_open


def keys_if_whole(path: Path) -> tuple[Key, ...] | None:
    try:
        return KeyRing.load(path).keys
    except DataError:
        return None


def test_a_flipped_bit_never_changes_the_keys(path: Path) -> None:
    new_key(path, "select", expires=date(2027, 1, 31))
    whole, keys = path.read_bytes(), KeyRing.load(path).keys

    for place in range(len(whole)):
        for bit in range(8):
            flipped = bytes([whole[place] ^ (1 << bit)])
            path.write_bytes(whole[:place] + flipped + whole[place + 1 :])
            # The same where the bit was of a space between two values; else rejected.
            assert keys_if_whole(path) in (keys, None)


@pytest.mark.parametrize("length", [0, 1, 100, -1])
def test_a_torn_file_is_damaged(path: Path, length: int) -> None:
    new_key(path, "select")
    path.write_bytes(path.read_bytes()[:length])

    with pytest.raises(DataError, match="need to be as they were written"):
        KeyRing.load(path)


@pytest.mark.parametrize("text", ["[]", "null", '"keys"', "{}", '{"keys": []}', "[" * 100_000])
def test_another_file_is_damaged(path: Path, text: str) -> None:
    path.parent.mkdir()
    path.write_text(text)

    with pytest.raises(DataError, match="move the file away"):
        KeyRing.load(path)


def test_a_folder_in_place_of_the_file_is_an_error(path: Path) -> None:
    path.mkdir(parents=True)

    with pytest.raises(DataError, match="need to be as they were written"):
        KeyRing.load(path)


def test_a_later_format_is_rejected(path: Path) -> None:
    held = {"format": 2, "keys": []}
    path.parent.mkdir()
    path.write_text(json.dumps({**held, "sha256": digest_of(held)}))

    with pytest.raises(DataError, match=r"format 1: .* has 2"):
        KeyRing.load(path)


def test_a_damaged_file_takes_no_new_key(path: Path) -> None:
    new_key(path, "select")
    path.write_text("{}")

    with pytest.raises(DataError):
        new_key(path, "admin")
    assert path.read_text() == "{}"
    assert [*path.parent.iterdir()] == [path]


def test_one_command_at_a_time_changes_the_keys(path: Path) -> None:
    text = new_key(path, "select")
    beside = path.with_name(f"{KEYS_FILE}.part")
    beside.touch()

    with pytest.raises(DataError, match="one writer at a time"):
        new_key(path, "admin")
    assert beside.exists()
    assert fault(path, text) is None


def test_a_folder_that_cannot_be_made_is_reported(tmp_path: Path) -> None:
    (tmp_path / "data").touch()

    with pytest.raises(DataError, match="can be written to"):
        new_key(tmp_path / "data" / KEYS_FILE, "select")


def test_a_write_that_fails_leaves_the_old_keys(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = new_key(path, "select")

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("fastbandit.serving.keys.os.fsync", full)
    with pytest.raises(DataError, match="No space left"):
        new_key(path, "admin")

    assert [*path.parent.iterdir()] == [path]
    assert fault(path, text) is None


# -- reading again


def test_a_ring_whose_file_did_not_change_stays(path: Path) -> None:
    new_key(path, "select")
    ring, none = KeyRing.load(path), KeyRing()

    assert ring.reload() is ring
    assert none.reload() is none


def test_a_revoked_key_is_rejected_after_reading_again(path: Path) -> None:
    text, kept = new_key(path, "select"), new_key(path, "select")
    ring = KeyRing.load(path)
    assert ring.check(text, "select") is None

    revoke_key(path, text[3:11])

    assert ring.reload().check(text, "select") == KeyFault.UNKNOWN
    assert ring.reload().check(kept, "select") is None


def test_the_first_key_closes_an_open_ring(path: Path) -> None:
    ring = KeyRing.load(path)
    assert ring.reload() is ring

    text = new_key(path, "select")

    assert not ring.reload().is_open
    assert ring.reload().check(text, "select") is None


def test_a_file_that_is_gone_does_not_open_the_ring(path: Path) -> None:
    text = new_key(path, "select")
    ring = KeyRing.load(path)
    path.unlink()

    again = ring.reload()

    assert not again.is_open
    assert again.check(text, "select") == KeyFault.UNKNOWN
    assert again.reload() is again


def test_a_file_that_was_damaged_meanwhile_is_reported(path: Path) -> None:
    new_key(path, "select")
    ring = KeyRing.load(path)
    path.write_text("{}")

    with pytest.raises(DataError):
        ring.reload()

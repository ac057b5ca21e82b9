"""URLs without the passwords in them."""

from __future__ import annotations

import pytest

from fastbandit.settings.passwords import hide_password


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://user:hush@host/db",
        "postgresql://user:hu@hush@host/db",
        "postgresql://:hush@host:5432/db?sslmode=require",
        "postgresql://user@host/db?password=hush&sslmode=require",
        "https://host/db?sig=hush",
        "s3://host/db?secret=hush&region=eu",
        "https://host/db?X-Amz-Signature=hush&X-Amz-Expires=3",
        "https://host/db?a=hush;token=hush",
        "https://host/db?TOKEN=hush#part",
        "postgresql://user@host/db?sslpassword=hush",
    ],
)
def test_a_password_is_not_shown(url: str) -> None:
    shown = hide_password(url)

    assert "hush" not in shown
    assert "/db" in shown


def test_a_url_without_a_password_stays_as_it_is() -> None:
    url = "postgresql://user@host:5432/db?sslmode=require"

    assert hide_password(url) == url


def test_each_url_in_a_text_loses_its_password() -> None:
    text = "got s3://me:hush@a/x and ftp://you:hush@b/y"

    assert hide_password(text) == "got s3://me:…@a/x and ftp://you:…@b/y"

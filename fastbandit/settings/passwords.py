"""Words URLs without the passwords in them."""

from __future__ import annotations

import re


def hide_password(url: str) -> str:
    """Word a URL, or a text with some in it, without their passwords."""
    hidden = re.sub(r"(password=)[^&\s]*", r"\1…", url)
    return re.sub(r"(://[^:/@\s]*):\S*@", r"\1:…@", hidden)

"""Words URLs without the passwords and other secrets in them."""

from __future__ import annotations

import re

_HARMLESS = re.compile(
    r"(?i)application_name|connect_timeout|dbname|endpoint(_url)?|host|port|prefix|region|sslmode"
    r"|target_session_attrs|user|version"
)
"""Parameters whose values are shown; whatever else stands in a query may be a secret."""
_PARAMETER = re.compile(r"([?&;])([^=&;\s]*)=([^&;\s'\")]*)")


def hide_password(url: str) -> str:
    """Word a URL, or a text with some in it, without their secrets."""
    hidden = re.sub(r"(://[^:/@\s]*):\S*@", r"\1:…@", url)
    hidden = re.sub(r"(?i)(password=)[^&\s]*", r"\1…", hidden)
    return _PARAMETER.sub(_hidden, hidden)


def _hidden(found: re.Match[str]) -> str:
    sign, name, value = found.groups()
    return f"{sign}{name}={value if _HARMLESS.fullmatch(name) else '…'}"

"""Which operation of Personalizer a path stands for."""

from __future__ import annotations

import re
from urllib.parse import quote

_VERSION = re.compile(r"/v1\.(0|1-preview\.\d+)(?=/)")
_WITH_ID = re.compile(
    r"(/events/|/multislot/events/|/evaluations/)(.+?)(/reward|/activate|)\Z", re.DOTALL
)
OLD = "/v1.0/"


def operation_of(path: str, prefix: str) -> tuple[str, bytes] | None:
    """Return the operation of a path, and an id within it as a part of the query."""
    if not path.startswith(f"{prefix}/"):
        return None
    rest = path[len(prefix) :]
    version = _VERSION.match(rest)
    rest = rest[version.end() :] if version else rest
    found = _WITH_ID.match(rest)
    if found is None or (found[1] == "/evaluations/") == bool(found[3]):
        return rest, b""
    return f"{found[1]}{{id}}{found[3]}", f"id={quote(found[2], safe='')}&".encode()

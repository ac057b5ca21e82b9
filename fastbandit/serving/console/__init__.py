"""The web page that shows what the service does: its files, and what it may load."""

from __future__ import annotations

from importlib.resources import files

_TYPES = {
    "html": "text/html; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
}


def _read(name: str) -> tuple[bytes, str]:
    return files(__name__).joinpath(name).read_bytes(), _TYPES[name.rpartition(".")[2]]


STATIC: dict[str, tuple[bytes, str]] = {
    "/console/": _read("index.html"),
    "/console/console.css": _read("console.css"),
    "/console/console.js": _read("console.js"),
    "/console/drawing.js": _read("drawing.js"),
    "/console/explanation.js": _read("explanation.js"),
    "/console/names.js": _read("names.js"),
    "/console/shadow.js": _read("shadow.js"),
}
"""The page's files by their path: content and content type."""
CONTENT_SECURITY_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
"""To be sent with each of them: nothing runs or loads but the page's own files."""

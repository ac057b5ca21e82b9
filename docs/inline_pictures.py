"""A hook of MkDocs: puts pictures into their pages, where they follow the page's light or dark."""

from __future__ import annotations

import re
from pathlib import Path

FOLDER = Path(__file__).parent / "pictures"
IMAGE = re.compile(r'<img alt="(?P<alt>[^"]*)" src="[^"]*pictures/(?P<name>[\w-]+)\.svg" ?/?>')


def on_page_content(html: str, **_: object) -> str:
    """Give a page with the pictures that it names."""
    return IMAGE.sub(_inlined, html)


def _inlined(found: re.Match[str]) -> str:
    drawn = (FOLDER / f"{found['name']}.svg").read_text(encoding="utf-8")
    return drawn.replace("<svg ", f'<svg role="img" aria-label="{found["alt"]}" ', 1)

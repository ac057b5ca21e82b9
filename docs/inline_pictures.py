"""A hook of MkDocs: puts pictures into their pages, and lets links of notebooks lead to pages."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent / "pictures"
IMAGE = re.compile(r'<img alt="(?P<alt>[^"]*)" src="[^"]*pictures/(?P<name>[\w-]+)\.svg" ?/?>')
PAGE = re.compile(r'href="\.\./(?P<name>[\w-]+)\.md')


def on_page_content(html: str, page: Any, **_: object) -> str:
    """Give a page with the pictures that it names; they follow its light or dark."""
    if page.file.src_uri.endswith(".ipynb"):  # whose links are left as they are
        html = PAGE.sub(r'href="../../\g<name>/', html)
    return IMAGE.sub(_inlined, html)


def _inlined(found: re.Match[str]) -> str:
    drawn = (FOLDER / f"{found['name']}.svg").read_text(encoding="utf-8")
    return drawn.replace("<svg ", f'<svg role="img" aria-label="{found["alt"]}" ', 1)

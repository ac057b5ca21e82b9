"""Copy tables that commands wrote into the pages that quote them, so that no figure is typed."""

from __future__ import annotations

import re
from pathlib import Path

DOCS = Path(__file__).parent
_QUOTE = re.compile(
    r"(?P<mark><!-- table from (?P<page>[\w.-]+): (?P<heading>[^\n]+?) -->\n)"
    r".*?(?P<end><!-- end of table -->)",
    re.DOTALL,
)


def refreshed(text: str) -> str:
    """Give a page with every table that it quotes as it stands in its own page now."""
    return _QUOTE.sub(
        lambda found: f"{found['mark']}{table_of(found['page'], found['heading'])}{found['end']}",
        text,
    )


def table_of(page: str, heading: str) -> str:
    """Give the last table below a heading of a page."""
    text = (DOCS / page).read_text(encoding="utf-8")
    section = re.search(
        rf"^#+ {re.escape(heading)}\n(.*?)(?=^#|\Z)", text, re.DOTALL | re.MULTILINE
    )
    if section is None:
        raise SystemExit(f"{page} has no heading {heading!r}. Mend the mark that names it.")
    tables = re.findall(r"(?:^\|.*\n)+", section[1], re.MULTILINE)
    return str(tables[-1])


if __name__ == "__main__":
    for path in (DOCS.parent / "README.md", *DOCS.glob("*.md")):
        before = path.read_text(encoding="utf-8")
        after = refreshed(before)
        if after != before:
            path.write_text(after, encoding="utf-8")

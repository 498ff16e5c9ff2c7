"""The pages of the documentation, and what stands on them."""

from __future__ import annotations

import json
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
FRONT = [ROOT / f"{name}.md" for name in ("README", "CONTRIBUTING", "SECURITY", "CODE_OF_CONDUCT")]
PAGES = [*sorted(DOCS.rglob("*.md")), *FRONT]
NOTEBOOKS = sorted(DOCS.rglob("*.ipynb"))

PYTHON = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
FENCED = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
INDENTED = re.compile(r"(?<=\n\n)(?: {4}.*\n|\n(?= {4}))+")


def shown(page: Path) -> str:
    """The path of a page as people write it."""
    return str(page.relative_to(ROOT))


def read(page: Path) -> str:
    """The text of a page; of a notebook, its text cells."""
    text = page.read_text(encoding="utf-8")
    if page.suffix != ".ipynb":
        return text
    cells = [cell for cell in json.loads(text)["cells"] if cell["cell_type"] == "markdown"]
    return "\n\n".join("".join(cell["source"]) for cell in cells) + "\n"


def prose(page: Path) -> str:
    """A page without its blocks of code."""
    return INDENTED.sub("\n", FENCED.sub("\n", read(page)))


def commands(page: Path) -> list[str]:
    """The commands of a page: indented lines; one that ends in a backslash goes on in the next."""
    blocks = INDENTED.findall(FENCED.sub("\n", read(page)))
    lines = "".join(blocks).replace("\\\n", " ").splitlines()
    return [line.strip() for line in lines if re.match(r" {4}(?:coterie|make|python -m) ", line)]


def slug(heading: str) -> str:
    """The anchor of a heading, as the toc extension makes it."""
    plain = re.sub(r"[^\w\s-]", "", heading.replace("`", ""), flags=re.ASCII).strip().lower()
    return re.sub(r"[-\s]+", "-", plain)


def anchors(page: Path) -> set[str]:
    """The anchors that a link to this page may name."""
    headings = re.findall(r"^#+ (.+)$", FENCED.sub("", read(page)), re.MULTILINE)
    return {slug(heading) for heading in headings}

"""A drawing as part of a page."""

from __future__ import annotations

import re
from pathlib import Path


def inlined(path: Path, prefix: str) -> str:
    """An SVG file as an element; its ids get a prefix, so that drawings on one page do not share them."""
    text = path.read_text(encoding="utf-8")
    drawing = text[text.index("<svg") :]
    drawing = re.sub(r'\bid="([^"]+)"', rf'id="{prefix}-\1"', drawing)
    drawing = re.sub(r'href="#([^"]+)"', rf'href="#{prefix}-\1"', drawing)
    drawing = re.sub(r"url\(#([^)]+)\)", rf"url(#{prefix}-\1)", drawing)
    return re.sub(r"<metadata>.*?</metadata>", "", drawing, flags=re.DOTALL)

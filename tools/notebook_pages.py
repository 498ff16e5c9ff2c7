"""Notebooks of the documentation: execute them, and show them as pages of the site (a hook of MkDocs)."""

from __future__ import annotations

import base64
import os
import re
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient

SETTINGS = {"MPLBACKEND": "module://matplotlib_inline.backend_inline", "PYDEVD_DISABLE_FILE_VALIDATION": "1"}
"""What the kernel finds in its environment."""

read_notebook: Callable[..., Any] = nbformat.read
"""`nbformat.read`, which has no types of its own."""


def execute(path: Path, *, seconds: int = 120) -> Any:
    """Execute a notebook in an empty folder, and return it with its outputs.

    Parameters
    ----------
    path : Path
        The notebook; it stays as it is.
    seconds : int
        How long a cell may take.

    Raises
    ------
    nbclient.exceptions.CellExecutionError
        If a cell raises; the message shows the cell and the error.
    """
    notebook = read_notebook(path, as_version=4)
    with tempfile.TemporaryDirectory() as folder:
        client = NotebookClient(
            notebook,
            timeout=seconds,
            resources={"metadata": {"path": folder}},
            extra_arguments=["--log-level=ERROR"],
        )
        client.execute(env=os.environ | SETTINGS | {"COTERIE_CACHE": f"{folder}/cache"})
    return notebook


def pictures(notebook: Any, name: str) -> dict[str, bytes]:
    """The pictures that a notebook drew, by the file names that `markdown` gives them."""
    found: dict[str, bytes] = {}
    for output in (output for cell in notebook.cells for output in cell.get("outputs", ())):
        if "image/png" in output.get("data", ()):
            found[f"{name}-{len(found) + 1}.png"] = base64.b64decode(output["data"]["image/png"])
    return found


def markdown(notebook: Any, name: str) -> str:
    """A notebook as a page: text, code in fences, and below it what it printed and drew."""
    parts: list[str] = []
    drawn = iter(pictures(notebook, name))
    for cell in notebook.cells:
        parts.append(f"```python\n{cell.source}\n```" if cell.cell_type == "code" else cell.source)
        for output in cell.get("outputs", ()):
            data = output.get("data", {})
            if "image/png" in data:
                parts.append(f"![What the code above draws]({next(drawn)})")
            else:
                parts.append(f"```text\n{output.get('text', data.get('text/plain', '')).rstrip()}\n```")
    return "\n\n".join(parts) + f"\n\n[Download this page as a notebook]({name}.ipynb){{ download }}\n"


def on_files(files: Any, config: Any) -> Any:
    """Add a page and its pictures for each notebook among the files of the site (called by MkDocs)."""
    for file in [file for file in files if file.src_uri.endswith(".ipynb")]:
        notebook, name = execute(Path(file.abs_src_path)), Path(file.src_uri).stem
        folder = file.src_uri.rpartition("/")[0]
        for picture, content in pictures(notebook, name).items():
            files.append(type(file).generated(config, f"{folder}/{picture}", content=content))
        files.append(type(file).generated(config, f"{folder}/{name}.md", content=markdown(notebook, name)))
    return files


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Let links to notebooks lead to their pages, but for downloads (called by MkDocs)."""
    return re.sub(r"\]\(([^):]+)\.ipynb\)(?!\{)", r"](\1.md)", markdown)

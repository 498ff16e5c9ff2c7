"""Notebooks of the documentation: store their outputs, and show them as pages of the site (a hook of MkDocs).

    python tools/notebook_pages.py [NOTEBOOK ...]

executes notebooks, all by default, and stores their outputs in them. One that reads real data is executed
only where `COTERIE_DATA` names a folder that has them.
"""

from __future__ import annotations

import base64
import os
import re
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient

TUTORIALS = Path(__file__).parents[1] / "docs" / "tutorials"
DATA = {"who-thinks-alike": "polis"}
"""Folder of `COTERIE_DATA` that a notebook reads."""
NUMBER = re.compile(r"\d[\d,]*\.?\d*")
HASH = re.compile(r"\b[0-9a-f]{64}\b")
CLOSE, LEAST = 0.5, 3.0
"""How far a number may be from the stored one: a half, or 3 if that is more.

Numbers move when an algorithm is improved; what a notebook claims of them, it asserts itself."""

SETTINGS = {"MPLBACKEND": "module://matplotlib_inline.backend_inline", "PYDEVD_DISABLE_FILE_VALIDATION": "1"}
"""What the kernel finds in its environment."""

read_notebook: Callable[..., Any] = nbformat.read
"""`nbformat.read`, which has no types of its own."""
write_notebook: Callable[..., Any] = nbformat.write


def has_data(path: Path) -> bool:
    """Whether the real data that a notebook reads, if any, are there."""
    needed = DATA.get(path.stem)
    return needed is None or (Path(os.environ.get("COTERIE_DATA", "")) / needed).is_dir()


def execute(path: Path, *, seconds: int = 120, data: Path | None = None) -> Any:
    """Execute a notebook in an empty folder, and return it with its outputs.

    Parameters
    ----------
    path : Path
        The notebook; it stays as it is.
    seconds : int
        How long a cell may take.
    data : Path, optional
        The folder that the notebook finds as `COTERIE_DATA`; by default that of this process.

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
        given = {} if data is None else {"COTERIE_DATA": str(data)}
        client.execute(env=os.environ | SETTINGS | given | {"COTERIE_CACHE": f"{folder}/cache"})
    return notebook


def store(path: Path) -> None:
    """Execute a notebook, and write it with its outputs, without what differs from run to run."""
    notebook = execute(path)
    for number, cell in enumerate(cell for cell in notebook.cells if cell.cell_type == "code"):
        cell.execution_count = number + 1
        cell.metadata = {}
        for output in cell.outputs:
            if "execution_count" in output:
                output.execution_count = number + 1
    notebook.metadata.language_info = {"name": "python"}
    write_notebook(notebook, path)


def texts(notebook: Any) -> Iterator[str]:
    """What each output of a notebook says; a picture by the word."""
    for output in (output for cell in notebook.cells for output in cell.get("outputs", ())):
        data = output.get("data", {})
        yield "picture" if "image/png" in data else output.get("text", data.get("text/plain", ""))


def differs(stored: Any, fresh: Any) -> str:
    """Return the first output of a fresh run that says something else than the stored one, or nothing."""
    # A hash tells nothing that the numbers beside it do not tell.
    old, new = ([HASH.sub("hash", text) for text in texts(notebook)] for notebook in (stored, fresh))
    for one, other in zip(old, new, strict=False):
        numbers = [[float(found.replace(",", "")) for found in NUMBER.findall(text)] for text in (one, other)]
        words = NUMBER.sub("#", one).split() == NUMBER.sub("#", other).split()
        near = zip(*numbers, strict=False)
        if not words or any(abs(a - b) > max(LEAST, CLOSE * max(abs(a), abs(b))) for a, b in near):
            return f"stored:\n{one}\nfresh:\n{other}"
    return "" if len(old) == len(new) else f"{len(old)} outputs are stored, a fresh run has {len(new)}"


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
        notebook, name = read_notebook(file.abs_src_path, as_version=4), Path(file.src_uri).stem
        folder = file.src_uri.rpartition("/")[0]
        for picture, content in pictures(notebook, name).items():
            files.append(type(file).generated(config, f"{folder}/{picture}", content=content))
        files.append(type(file).generated(config, f"{folder}/{name}.md", content=markdown(notebook, name)))
    return files


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Let links to notebooks lead to their pages, but for downloads (called by MkDocs)."""
    return re.sub(r"\]\(([^):]+)\.ipynb\)(?!\{)", r"](\1.md)", markdown)


def main(names: list[str]) -> None:
    """Store the outputs of these notebooks, or of all."""
    for path in [Path(name) for name in names] or sorted(TUTORIALS.glob("*.ipynb")):
        if not has_data(path):
            print(f"{path.name}: left as it is, COTERIE_DATA names no folder with {DATA[path.stem]}")
            continue
        store(path)
        print(path)


if __name__ == "__main__":
    main(sys.argv[1:])

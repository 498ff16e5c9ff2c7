"""`python tools/cythonize.py ROOT FOLDER SOURCE... -- CYTHON...`: make the C files that are not up to date.

`club/components.pyx` below ROOT becomes `club.components.c` in FOLDER. Cython takes a second to start and
half a second a module: one process for all is twice as fast as one each. C files that are up to date keep
their time, so that ninja compiles only what has changed.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from tempfile import TemporaryDirectory


def c_file(source: Path, root: Path, folder: Path) -> Path:
    """Where the C code of a source goes; modules of one name in different packages do not collide."""
    parts = source.resolve().relative_to(root.resolve()).with_suffix(".c").parts
    return folder / ".".join(parts)


def made_from(c: Path) -> list[Path]:
    """What Cython read to make a C file, from its list beside it: `file.c: one two`, `\\` at line ends."""
    _, _, listed = c.with_name(f"{c.name}.dep").read_text(encoding="utf-8").partition(": ")
    names = listed.replace("\\\n", " ").replace("\\ ", "\0").split()
    return [Path(name.replace("\0", " ")) for name in names]


def is_current(c: Path) -> bool:
    """Is the C file newer than all that it was made from?"""
    try:
        made = c.stat().st_mtime_ns
        return all(path.stat().st_mtime_ns < made for path in made_from(c))
    except FileNotFoundError:
        return False


def ninja_rule(files: list[Path]) -> str:
    """All that any of the files was made from, in the words of make, which ninja reads."""
    names = sorted({path.resolve().as_posix().replace(" ", "\\ ") for c in files for path in made_from(c)})
    return f"{files[0].as_posix()}: {' '.join(names)}\n"


def batches(wanted: Iterable[tuple[Path, Path]]) -> list[dict[str, tuple[Path, Path]]]:
    """Sources and their C files, such that no two of a batch have the same name: Cython names C files so."""
    found: list[dict[str, tuple[Path, Path]]] = []
    for source, c in wanted:
        batch = next((one for one in found if source.stem not in one), None)
        if batch is None:
            found.append(batch := {})
        batch[source.stem] = (source, c)
    return found


def run_cython(command: list[str], batch: dict[str, tuple[Path, Path]], folder: Path) -> int:
    """Make the C files of a batch, each with the list of what it was made from; the exit code of Cython."""
    with TemporaryDirectory(dir=folder) as made:
        sources = [str(source) for source, _ in batch.values()]
        done = subprocess.run([*command, "--depfile", "--output-file", made, *sources])
        if done.returncode == 0:
            for name, (_, c) in batch.items():
                (Path(made) / f"{name}.c.dep").replace(c.with_name(f"{c.name}.dep"))
                (Path(made) / f"{name}.c").replace(c)
    return done.returncode


def main(arguments: list[str]) -> int:
    """Run Cython once, for all sources that need it."""
    place = arguments.index("--")
    root, folder, *sources = map(Path, arguments[:place])
    command, files = arguments[place + 1 :], [c_file(source, root, folder) for source in sources]
    last = folder / "cythonize.command"
    used = last.read_text(encoding="utf-8") if last.exists() else ""
    same = used == repr(command) and last.stat().st_mtime_ns > Path(command[0]).stat().st_mtime_ns
    wanted = ((s, c) for s, c in zip(sources, files, strict=True) if not (same and is_current(c)))
    for batch in batches(wanted):
        if failed := run_cython(command, batch, folder):
            return failed
        last.write_text(repr(command), encoding="utf-8")
    (folder / "cythonize.d").write_text(ninja_rule(files), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

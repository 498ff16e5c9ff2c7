"""`python tools/cythonize.py FOLDER SOURCE... -- CYTHON...`: the C files of sources that are not up to date.

Cython takes a second to start and half a second a module: one process for all is twice as fast as one each.
C files that are up to date keep their time, so that ninja compiles only what has changed.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path


def c_file(source: Path, folder: Path) -> Path:
    """Where the C code of a source goes."""
    return folder / f"{source.stem}.c"


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


def main(arguments: list[str]) -> int:
    """Run Cython once, for all sources that need it."""
    place = arguments.index("--")
    folder, *sources = map(Path, arguments[:place])
    command, files = arguments[place + 1 :], [c_file(source, folder) for source in sources]
    last = folder / "cythonize.command"
    used = last.read_text(encoding="utf-8") if last.exists() else ""
    same = used == repr(command) and last.stat().st_mtime_ns > Path(command[0]).stat().st_mtime_ns
    wanted = [str(s) for s, c in zip(sources, files, strict=True) if not (same and is_current(c))]
    if wanted:
        done = subprocess.run([*command, "--depfile", "--output-file", str(folder), *wanted])
        if done.returncode:
            return done.returncode
        last.write_text(repr(command), encoding="utf-8")
    (folder / "cythonize.d").write_text(ninja_rule(files), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

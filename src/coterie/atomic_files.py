"""Files that are whole or absent: written beside their target, made durable, then renamed."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache
from hashlib import sha256
from pathlib import Path
from platform import node
from secrets import token_hex
from time import time
from typing import BinaryIO

ABANDONED = 24 * 3600
"""Seconds after which a temporary file is stale, whichever process or machine wrote it."""


def atomic_write(path: Path, write: Callable[[BinaryIO], object] | bytes) -> None:
    """Replace a file by new content in one step.

    The content goes to a temporary file in the same folder, which is flushed, fsynced and renamed. Readers
    see the old content or the new one, never a part. Temporary files of the same target that killed
    processes left behind are removed.

    Parameters
    ----------
    path : Path
        The target; missing parent folders are made.
    write : callable or bytes
        The content, or a function that writes it to an open binary file.

    Raises
    ------
    OSError
        If the folder cannot be written, or the disk is full; it names the target. The temporary file is
        removed, here and after any other exception.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     atomic_write(Path(folder, "a.txt"), b"whole")
    ...     Path(folder, "a.txt").read_text()
    'whole'
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    remove_stale(path)
    temporary = path.with_name(f".{path.name}.{os.getpid()}-{machine()}-{token_hex(4)}.tmp")
    try:
        with open(temporary, "xb") as file:
            if isinstance(write, bytes):
                file.write(write)
            else:
                write(file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException as error:
        temporary.unlink(missing_ok=True)
        if isinstance(error, OSError) and error.errno is not None:  # a full disk names no file
            raise OSError(error.errno, error.strerror, os.fspath(path)) from error
        raise
    with suppress(OSError):  # not every system can fsync a folder
        _sync_folder(path.parent)


def remove_stale(path: Path) -> None:
    """Remove the temporary files of a target whose writers are gone; those of running writers stay."""
    for temporary, pid, where in _temporaries(path):
        with suppress(OSError):
            gone = where == machine() and not process_exists(pid)
            if gone or time() - temporary.stat().st_mtime > ABANDONED:
                temporary.unlink()


def _temporaries(path: Path) -> Iterator[tuple[Path, int, str]]:
    """Each temporary file of a target, with the process and the machine that wrote it."""
    pattern = re.compile(rf"\.{re.escape(path.name)}\.(\d+)-([0-9a-f]+)-[0-9a-f]+\.tmp")
    with os.scandir(path.parent) as entries:
        for entry in entries:
            if found := pattern.fullmatch(entry.name):
                yield Path(entry.path), int(found[1]), found[2]


@cache
def machine() -> str:
    """A mark of the host and its process ids: a folder may be shared by machines and containers."""
    space = ""
    with suppress(OSError, AttributeError):
        space = os.readlink("/proc/self/ns/pid")
    return sha256(f"{node()} {space}".encode()).hexdigest()[:8]


def process_exists(pid: int) -> bool:
    """Whether a process of this id exists on this machine."""
    if sys.platform == "win32":
        return _windows_process_exists(pid)
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:  # it belongs to another user
        return True
    return True


def _windows_process_exists(pid: int) -> bool:
    """The same on Windows, where signal 0 would be Ctrl-C."""
    import ctypes

    if sys.platform != "win32":
        return True
    kernel = ctypes.windll.kernel32
    handle = kernel.OpenProcess(0x100000, False, pid)  # SYNCHRONIZE
    if not handle:
        return bool(kernel.GetLastError() == 5)  # access denied: it exists
    running = bool(kernel.WaitForSingleObject(handle, 0) == 0x102)  # WAIT_TIMEOUT
    kernel.CloseHandle(handle)
    return running


def _sync_folder(folder: Path) -> None:
    """Make a rename durable."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)

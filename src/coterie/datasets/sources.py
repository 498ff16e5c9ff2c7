"""Data files: their names and origins, and how they are found, hashed and opened."""

from __future__ import annotations

import os
import re
import tarfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import IO, NamedTuple

from coterie.datasets.request import Frame, Source
from coterie.errors import ArgumentError, DataError, MissingData
from coterie.progress import progress_bar


@dataclass(frozen=True, slots=True)
class About:
    """Description of a dataset: its content, where to download it, and its licence.

    Parameters
    ----------
    name : str
        Name of the dataset.
    summary : str
        What it is, in one line.
    feedback : str
        When feedback is 1, in words.
    files : tuple of str, default ()
        Names of the files, any of which will do; empty where no file is needed or any file will do.
    archive : str, default ""
        Name of the archive to download.
    url : str, default ""
        Page to download it from.
    licence : str, default ""
        Conditions of the licence.
    first_line : str, default ""
        Regular expression that the first line of the file begins with, where another dataset has a file
        of the same name; empty where none has.
    is_collection : bool, default False
        Whether there may be many such files, each in a folder of its own, that make one dataset together.

    Examples
    --------
    >>> About(name="mine", summary="my own", feedback="1 for every row").hint()
    'mine: nothing to download'
    """

    name: str
    summary: str
    feedback: str
    files: tuple[str, ...] = ()
    archive: str = ""
    url: str = ""
    licence: str = ""
    first_line: str = ""
    is_collection: bool = False

    def hint(self) -> str:
        """Build a hint: where to download the file, its name, and its licence.

        Returns
        -------
        str
            One line.
        """
        if not self.files:
            return f"{self.name}: nothing to download"
        place = f"download {self.archive} from {self.url} and give it, or its {self.wanted()}"
        return f"{place}; licence: {self.licence}"

    def wanted(self) -> str:
        """List the file names that will do.

        Returns
        -------
        str
            A phrase such as "ratings.csv or ratings.dat".
        """
        *others, last = self.files
        return f"{', '.join(others)} or {last}" if others else last

    def missing(self, where: str) -> MissingData:
        """Make the error for a file that is not there.

        Parameters
        ----------
        where : str
            Where it was looked for, as a phrase such as "in 'data'".

        Returns
        -------
        MissingData
            The error, to be raised.
        """
        return MissingData(f"no {self.name} file {where}; {self.hint()}")


HOME = "COTERIE_DATA"
TARS = (".tar", ".tgz", ".tar.gz")
ARCHIVES = (".zip", *TARS)
CHUNK = 1 << 22


class FileStream(NamedTuple):
    """An open file or archive member, its size once unpacked, and its own name."""

    file: IO[bytes]
    size: int
    name: str


def find_file(about: About, source: Source) -> Path:
    """The file or archive to read: itself, or the one in the folder, or the one under $COTERIE_DATA."""
    if isinstance(source, Frame):
        raise ArgumentError(f"{about.name!r} reads a file; for a data frame use 'interactions'")
    home = os.environ.get(HOME)
    if source is None and not home:
        raise about.missing(f"was given and ${HOME} is not set")
    path = Path((home or "") if source is None else source).expanduser()
    if path.is_dir():
        return _in_folder(about, path)
    if not path.exists():
        raise about.missing(f"at {str(path)!r}")
    return path


def _in_folder(about: About, folder: Path) -> Path:
    """The file or the archive of the right name in a folder, or else in one of its subfolders.

    Of a collection, the folder itself, if there are such files in it, in its subfolders or one level below.
    """
    if about.is_collection:
        patterns = [deep + name for deep in ("", "*/", "*/*/") for name in about.files]
        if any(path.is_file() for pattern in patterns for path in folder.glob(pattern)):
            return folder
        raise about.missing(f"in {str(folder)!r}")
    others: list[str] = []
    for pattern in ("", "*/"):
        for name in (*about.files, about.archive):
            named = sorted(path for path in folder.glob(pattern + name) if path.is_file())
            found = [path for path in named if is_file_of(about, path)]
            others += [str(path.relative_to(folder)) for path in named if path not in found]
            if len(found) > 1:
                several = ", ".join(str(path.relative_to(folder)) for path in found)
                raise ArgumentError(f"{str(folder)!r} holds several {name}, name one: {several}")
            if found:
                return found[0]
    passed_over = f" ({', '.join(others)} is of another dataset, by its first line)" if others else ""
    raise about.missing(f"in {str(folder)!r}{passed_over}")


def is_file_of(about: About, path: Path) -> bool:
    """Whether a file has a name and a first line that files of the dataset have; an archive, its name."""
    if path.name not in about.files:
        return path.name == about.archive
    if not about.first_line:
        return True
    with path.open("rb") as file:
        start = file.readline(1000).decode("utf-8-sig", errors="replace")
    return re.match(about.first_line, start) is not None


def beside(about: About, path: Path, name: str, folder: str = "") -> tuple[About, Path]:
    """Another file of a dataset, to be `opened`: in the same archive or folder, or in a subfolder of it.

    Parameters
    ----------
    about : About
        The dataset.
    path : Path
        The file or archive that was found first.
    name : str
        Name of the other file.
    folder : str, default ""
        Subfolder that it may be in.

    Returns
    -------
    (About, Path)
        The dataset with the other file in place of its own, and where that file is.

    Raises
    ------
    MissingData
        If the file is not there.
    """
    other = replace(about, files=(name,), first_line="")
    if path.name.lower().endswith(ARCHIVES):
        return other, path
    for place in (path.parent / name, path.parent / folder / name):
        if place.is_file():
            return other, place
    raise other.missing(f"beside {str(path)!r}")


def digest(path: Path) -> str:
    """The sha256 of a file, read piece by piece."""
    hasher = sha256()
    size, label = path.stat().st_size, f"hashing {path.name}"
    with path.open("rb") as file, progress_bar(size, "B", label=label) as advance:
        while chunk := file.read(CHUNK):
            hasher.update(chunk)
            advance(len(chunk))
    return hasher.hexdigest()


@contextmanager
def opened(about: About, path: Path) -> Iterator[FileStream]:
    """The file itself, or the member of the archive that has the right name."""
    with path.open("rb") as file:
        if not path.name.lower().endswith(ARCHIVES):
            yield FileStream(file, path.stat().st_size, path.name)
            return
        try:
            with _unpacked(about, file, path.name) as stream:
                yield stream
        except (zipfile.BadZipFile, tarfile.TarError) as error:
            raise DataError(f"{path.name} cannot be unpacked: {error}") from error


@contextmanager
def _unpacked(about: About, file: IO[bytes], name: str) -> Iterator[FileStream]:
    """The wanted member of an archive, or of a tar inside a zip, which is how Yelp packs its own."""
    if name.lower().endswith(TARS):
        with tarfile.open(fileobj=file, mode="r|*") as tar:
            yield _tar_member(about, tar, name)
        return
    with zipfile.ZipFile(file) as archive:
        member = _zip_member(about, archive, name)
        with archive.open(member) as inner:
            if not member.filename.lower().endswith(TARS):
                yield FileStream(inner, member.file_size, _last(member.filename))
                return
            with _unpacked(about, inner, _last(member.filename)) as stream:
                yield stream


def _zip_member(about: About, archive: zipfile.ZipFile, name: str) -> zipfile.ZipInfo:
    members = [m for m in archive.infolist() if not m.is_dir() and not m.filename.startswith("__MACOSX/")]
    wanted = [m for file in about.files for m in members if _last(m.filename) == file]
    wanted += [m for m in members if m.filename.lower().endswith(TARS)]
    if not wanted:
        raise about.missing(f"inside {name!r}")
    return wanted[0]


def _tar_member(about: About, tar: tarfile.TarFile, name: str) -> FileStream:
    for member in tar:
        inner = tar.extractfile(member) if _last(member.name) in about.files else None
        if inner is not None:
            return FileStream(inner, member.size, _last(member.name))
    raise about.missing(f"inside {name!r}")


def _last(path: str) -> str:
    """The part after the last slash: members of archives are always spelled with slashes."""
    return path.rsplit("/", 1)[-1]

"""What a dataset is, where its file is to be had, and what its licence asks."""

from __future__ import annotations

from dataclasses import dataclass

from coterie.errors import MissingData


@dataclass(frozen=True, slots=True)
class About:
    """A dataset in words; `files` is empty where no file is needed or any file will do."""

    name: str
    summary: str
    feedback: str
    files: tuple[str, ...] = ()
    archive: str = ""
    url: str = ""
    licence: str = ""

    def hint(self) -> str:
        """Where to download the file, what it is called and what its licence asks, in one line."""
        if not self.files:
            return f"{self.name}: nothing to download"
        place = f"download {self.archive} from {self.url} and give it, or its {self.wanted()}"
        return f"{place}; licence: {self.licence}"

    def wanted(self) -> str:
        """The file names that will do, as a phrase."""
        *others, last = self.files
        return f"{', '.join(others)} or {last}" if others else last

    def missing(self, where: str) -> MissingData:
        """The error for a file that is not there."""
        return MissingData(f"no {self.name} file {where}; {self.hint()}")

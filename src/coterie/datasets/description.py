"""Descriptions of datasets: what they are, where to get them, and what their licences ask."""

from __future__ import annotations

from dataclasses import dataclass

from coterie.errors import MissingData


@dataclass(frozen=True, slots=True)
class About:
    """Description of a dataset: what it is, where to download it and what its licence asks.

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
        What the licence asks.

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

    def hint(self) -> str:
        """Tell where to download the file, what it is called and what its licence asks.

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

"""The datasets of an experiment, loaded once, each with the hash of its file."""

from __future__ import annotations

import os
from hashlib import sha256
from pathlib import Path

from coterie import datasets
from coterie.datasets.dataset import Dataset
from coterie.datasets.sources import HOME
from coterie.experiments.specs import EnvironmentSpec

FOLDERS = {
    "movielens": ("ml-25m", "ml-32m", "ml-latest", "ml-latest-head", "ml-20m", "ml-10m", "ml-latest-small")
}
"""Subfolders to prefer, in this order, where a folder holds several files that would do."""


class Shelf:
    """Datasets by what an environment asks of them, found in one folder."""

    def __init__(self, folder: Path | None = None) -> None:
        """A shelf over a folder of data files; None means $COTERIE_DATA, if that is set."""
        home = folder or os.environ.get(HOME)
        self.folder = Path(home).expanduser() if home else None
        self._kept: dict[tuple[object, ...], Dataset] = {}

    def dataset(self, environment: EnvironmentSpec) -> Dataset:
        """The vectors that an environment draws from; `MissingData` says how to get a missing file."""
        name, options = environment.dataset, environment.data_options()
        key = (name, *options.values())
        if key not in self._kept:
            self._kept[key] = datasets.load(name, self.place(name), **options)
        return self._kept[key]

    def sha256(self, environment: EnvironmentSpec) -> str | None:
        """The hash of the file behind an environment."""
        return self.dataset(environment).provenance.sha256

    def place(self, name: str) -> Path | None:
        """The folder to look in for a dataset."""
        if self.folder is None or not datasets.about(name).files:
            return None
        inside = [self.folder / sub for sub in FOLDERS.get(name, ())]
        return next((path for path in inside if path.is_dir()), self.folder)


class OwnTable(Shelf):
    """A shelf with one thing on it: the user's own table, read with these columns and this threshold."""

    def __init__(self, file: str | None, columns: tuple[str, ...] | None, threshold: float | None) -> None:
        """Nothing is read yet."""
        super().__init__(None)
        self._file, self._columns, self._threshold = file, columns, threshold
        self._made: Dataset | None = None

    def dataset(self, environment: EnvironmentSpec) -> Dataset:
        """The vectors made from the table."""
        if self._made is None:
            self._made = datasets.load(
                environment.dataset,
                self._file,
                **environment.data_options(),
                columns=self._columns,
                threshold=self._threshold,
            )
        return self._made

    def sha256(self, environment: EnvironmentSpec) -> str | None:
        """A hash of the file and of how it was read."""
        how = repr((self.dataset(environment).provenance.sha256, self._columns, self._threshold))
        return sha256(how.encode()).hexdigest()

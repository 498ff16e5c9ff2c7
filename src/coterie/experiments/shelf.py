"""The datasets of an experiment, loaded once, each with the hash of its file."""

from __future__ import annotations

from pathlib import Path

from coterie import datasets
from coterie.datasets.dataset import Dataset
from coterie.experiments.worlds import World

FOLDERS = {
    "movielens": ("ml-25m", "ml-32m", "ml-latest", "ml-latest-head", "ml-20m", "ml-10m", "ml-latest-small")
}
"""Subfolders to prefer, in this order, where a folder holds several files that would do."""


class Shelf:
    """Datasets by what a world asks of them, found in one folder."""

    def __init__(self, folder: Path | None = None) -> None:
        """A shelf over a folder of data files; None searches $COTERIE_DATA."""
        self.folder = folder
        self._kept: dict[tuple[object, ...], Dataset] = {}

    def dataset(self, world: World) -> Dataset:
        """The vectors that a world draws from; `MissingData` says how to get a file that is not there."""
        key = (world.dataset, world.dim, world.pool_users, world.pool_items, world.scale, world.data_seed)
        if key not in self._kept:
            self._kept[key] = datasets.load(
                world.dataset,
                self.place(world.dataset),
                dim=world.dim,
                n_users=world.pool_users,
                n_items=world.pool_items,
                scale=world.scale,
                seed=world.data_seed,
            )
        return self._kept[key]

    def sha256(self, world: World) -> str | None:
        """The hash of the file behind a world."""
        return self.dataset(world).provenance.sha256

    def place(self, name: str) -> Path | None:
        """The folder to look in for a dataset."""
        if self.folder is None or not datasets.about(name).files:
            return None
        inside = [self.folder / sub for sub in FOLDERS.get(name, ())]
        return next((path for path in inside if path.is_dir()), self.folder)

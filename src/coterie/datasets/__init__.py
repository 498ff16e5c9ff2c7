"""Datasets: vectors of users and items, drawn at random or learnt from who liked what."""

from coterie.datasets.catalogue import about, load, names
from coterie.datasets.dataset import Dataset, Provenance
from coterie.datasets.description import About

__all__ = ["About", "Dataset", "Provenance", "about", "load", "names"]

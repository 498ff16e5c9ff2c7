"""Datasets: vectors of users and items, drawn at random or learnt, and payoffs of real feedback."""

from coterie.datasets.catalogue import about, load, names
from coterie.datasets.dataset import Dataset, Provenance
from coterie.datasets.payoff_table import PayoffSource, PayoffTable, payoff_table
from coterie.datasets.real_feedback import load_payoffs
from coterie.datasets.sources import About

__all__ = [
    "About",
    "Dataset",
    "PayoffSource",
    "PayoffTable",
    "Provenance",
    "about",
    "load",
    "load_payoffs",
    "names",
    "payoff_table",
]

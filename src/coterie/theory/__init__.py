"""Formulas of the paper as functions: lengths of exploration, radii, and regret bounds.

Pure functions of scalars. All logarithms are natural unless a docstring says log₂. Equations, lemmas and
algorithms are cited by their number in Li, Liu, Dai and Lui, "Demystifying Online Clustering of Bandits"
(ICLR 2025). As in the paper, u is the number of users, d the dimension, m the number of clusters, K the
number of arms, T the horizon, L the length of the longest arm and λ the ridge.
"""

from coterie.theory.bounds import (
    Bound,
    theorem_1,
    theorem_2,
    theorem_3,
    theorem_4,
    theorem_4_sets,
)
from coterie.theory.lengths import pulls_needed, t0, t_init, t_phase, whole
from coterie.theory.radii import Radius, beta, lambda_tilde, norm_tilde, radius, radius_shape
from coterie.theory.setup import Setup
from coterie.theory.table import BoundRow, markdown, table_1

__all__ = [
    "Bound",
    "BoundRow",
    "Radius",
    "Setup",
    "beta",
    "lambda_tilde",
    "markdown",
    "norm_tilde",
    "pulls_needed",
    "radius",
    "radius_shape",
    "t0",
    "t_init",
    "t_phase",
    "table_1",
    "theorem_1",
    "theorem_2",
    "theorem_3",
    "theorem_4",
    "theorem_4_sets",
    "whole",
]

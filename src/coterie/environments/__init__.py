"""Environments for simulations: they generate users, arms and rewards."""

from coterie.environments.blocks import Block, Environment
from coterie.environments.delays import Delay
from coterie.environments.disturbed import Disturbed
from coterie.environments.duel import Duel, PayoffDuel
from coterie.environments.features import lifted, low_rank, onehot, rescaled
from coterie.environments.lists import Cascade
from coterie.environments.noise import Bernoulli, Cauchy, Contaminated, Gaussian, Noise, Uniform
from coterie.environments.payoffs import Payoffs
from coterie.environments.recorded import Rounds, Stream
from coterie.environments.shifted import Shifted
from coterie.environments.smoothed import Smoothed
from coterie.environments.stochastic import Stochastic

__all__ = [
    "Bernoulli",
    "Block",
    "Cascade",
    "Cauchy",
    "Contaminated",
    "Delay",
    "Disturbed",
    "Duel",
    "Environment",
    "Gaussian",
    "Noise",
    "PayoffDuel",
    "Payoffs",
    "Rounds",
    "Shifted",
    "Smoothed",
    "Stochastic",
    "Stream",
    "Uniform",
    "lifted",
    "low_rank",
    "onehot",
    "rescaled",
]

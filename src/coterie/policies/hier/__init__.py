"""Hierarchical Bayesian bandits: each user's preference is drawn from a learnt prior."""

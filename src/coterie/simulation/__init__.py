"""A policy meets an environment, round by round; what comes of it is a trace."""

from coterie.simulation.simulator import Stopped, simulate, simulate_many
from coterie.simulation.traces import Trace

__all__ = ["Stopped", "Trace", "simulate", "simulate_many"]

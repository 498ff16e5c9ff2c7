"""Simulation: policies play in environments, and traces record what they gained."""

from coterie.simulation.simulator import Stopped, simulate, simulate_many
from coterie.simulation.traces import Trace

__all__ = ["Stopped", "Trace", "simulate", "simulate_many"]

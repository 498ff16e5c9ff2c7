"""Simulation: runs policies in environments and records regret, reward and clusters as traces."""

from coterie.simulation.simulator import Stopped, simulate, simulate_many
from coterie.simulation.traces import Trace

__all__ = ["Stopped", "Trace", "simulate", "simulate_many"]

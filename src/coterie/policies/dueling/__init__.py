"""Policies for duels: a user tells which of two arms it prefers."""

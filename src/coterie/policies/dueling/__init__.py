"""Policies for duels: the feedback is which of two arms a user prefers."""

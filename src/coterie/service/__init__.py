"""Decisions for users with names, feedback that comes late, and a store that loses nothing."""

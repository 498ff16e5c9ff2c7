"""The room policies."""

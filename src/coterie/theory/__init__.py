"""The room theory."""

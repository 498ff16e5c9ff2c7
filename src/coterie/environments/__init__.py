"""The room environments."""

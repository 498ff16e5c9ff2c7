"""Loaders, one for each dataset: what its files are called and how they are read."""

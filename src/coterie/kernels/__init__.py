"""Compiled functions on plain arrays: what a policy computes, with no classes and no I/O."""

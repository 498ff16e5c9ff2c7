"""Policies that are given a graph over users."""

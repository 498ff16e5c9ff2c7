"""Policies for users who change."""

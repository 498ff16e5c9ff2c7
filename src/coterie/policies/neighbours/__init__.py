"""Clusters around a user, which differ from arm to arm or overlap."""

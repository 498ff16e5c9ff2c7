"""Clusters of users whose rewards are corrupted, or not quite linear."""

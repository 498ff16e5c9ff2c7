"""Online clustering of bandits."""

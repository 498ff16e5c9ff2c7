"""ItemUCB and ItemTS: a mean reward for each item, the same for all users."""

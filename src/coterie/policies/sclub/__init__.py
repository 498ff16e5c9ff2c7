"""SCLUB and its kin: sets of users that split and merge."""

"""CLUB and its kin: a graph over users that loses edges."""

"""Where runs are played: on this machine, or on a Ray cluster."""

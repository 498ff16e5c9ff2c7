"""Speed as ratios, measured in one run on one thread: ours, plain NumPy, and the arithmetic floor."""

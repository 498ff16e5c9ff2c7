"""Speed as ratios, measured in one run on one thread: ours, plain NumPy, and arithmetic floors."""

import os

for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"  # before anything imports NumPy

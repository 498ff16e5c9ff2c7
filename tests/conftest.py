"""One thread for BLAS, since small matrices are slower on many; and no time limit on any test."""

import os

from hypothesis import settings

for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(variable, "1")

settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")

"""Keep BLAS to one thread, if imported before numpy. Programs of this package import it; libraries do not.

The matrices are small, so more threads gain nothing. On a busy machine they wait for each other: with both of two
cores taken, a fit of 7 s took 90 s.
"""

import os

for _name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

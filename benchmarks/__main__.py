"""``python -m benchmarks``: one thread for everything, then the suite."""

import os

# Read when NumPy and Pinocchio are loaded, which the suite does.
for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[name] = "1"

from .suite import main  # noqa: E402

if __name__ == "__main__":
    main()

"""One thread per test process, and one mark per test, given by the file that it stands in.

Matrices here are small, and BLAS threads that wait for each other cost time.
"""

from __future__ import annotations

import os
import signal
from pathlib import Path, PurePath

import pytest

for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(name, "1")

# Where the tests run in the background, a shell has Ctrl-C ignored, and programs that they start
# inherit that: tests of Ctrl-C would wait for ever.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

DEFAULT = "slow"
MARKS: dict[str, tuple[str, ...]] = {
    "browser": ("test_*_pixels.py",),
    "docs": (
        *("test_docs.py", "test_gallery.py", "test_measured_pages.py", "test_notebooks.py"),
        *("test_*_documented.py", "test_site.py"),
    ),
    "peers": (
        *("test_*_peers.py", "test_objects.py", "test_example_robot_data.py"),
        *("test_benchmarks.py", "test_optimal_control.py"),
    ),
    "slow": (
        *("space/test_clearance.py", "space/test_swept.py", "io/test_mjcf_copies.py"),
        *("boundary/test_yamltools.py", "boundary/test_arguments.py", "boundary/test_files.py"),
        *("boundary/test_meshes.py", "boundary/test_sizes.py", "io/test_fuzz_loaders.py"),
        "boundary/test_pickles.py",
        *("dynamics/test_threads.py", "assembly/test_rounding.py", "simulation/test_runfile.py"),
    ),
    "fast": (
        *("boundary/test_*.py", "constraints/test_*.py", "dynamics/test_*.py"),
        *("integrate/test_*.py", "interop/test_*.py", "io/test_*.py", "linalg/test_*.py"),
        *("model/test_absolute.py", "model/test_mechanism.py", "model/test_tree.py"),
        *("model/test_validate.py", "brakes/test_*.py", "space/test_*.py", "spatial/test_*.py"),
        *("stopping/test_gauss.py", "stopping/test_record*.py", "tables/test_*.py"),
        *("assembly/test_assembly_velocity.py", "regularization/test_diagnosis.py"),
        *("robots/test_shipped_files.py", "project/test_project_files.py", "test_units.py"),
        *("simulation/test_failures.py", "simulation/test_manifold.py"),
        *("simulation/test_modes.py", "simulation/test_start.py", "simulation/test_tangents.py"),
    ),
    "physics": (
        *("assembly/test_assembly.py", "assembly/test_closing.py", "model/test_*.py"),
        *("papers/test_*.py", "physics/test_*.py", "regularization/test_*.py"),
        *("simulation/test_*.py", "stopping/test_*.py"),
    ),
}
"""Patterns of test files by mark: the first that matches decides; the other files are `DEFAULT`.

`fast` is the algebra, the readers and the equations: milliseconds per case. `physics` follows
motions and compares them with laws and closed forms, and holds the dearer algebra; these two are
what another rounding could break. `browser` looks at pages with a browser,
`docs` runs what the documentation says, `peers` compares with other libraries. `slow` is what
is none of these: commands in processes of their own, studies, reports and random robots.
"""


def mark_and_pattern(path: PurePath) -> tuple[str, str]:
    """The mark of the tests in a file, and the pattern that decides it."""
    patterns = ((mark, pattern) for mark, several in MARKS.items() for pattern in several)
    return next((each for each in patterns if path.match(each[1])), (DEFAULT, "*"))


@pytest.hookimpl(tryfirst=True)  # before marks are selected with -m
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Give every test its mark."""
    marks: dict[Path, pytest.MarkDecorator] = {}
    for item in items:
        if item.path not in marks:
            marks[item.path] = getattr(pytest.mark, mark_and_pattern(item.path)[0])
        item.add_marker(marks[item.path])

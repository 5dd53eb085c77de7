"""One thread per test process, and one mark per test, given by the file that it stands in.

Matrices here are small, and BLAS threads that wait for each other cost time.
"""

from __future__ import annotations

import os
from pathlib import Path, PurePath

import pytest

for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(name, "1")

DEFAULT = "slow"
MARKS: dict[str, tuple[str, ...]] = {
    "browser": ("test_*_pixels.py",),
    "docs": (
        *("test_docs.py", "test_gallery.py", "test_measured_pages.py", "test_notebooks.py"),
        *("test_*_documented.py", "test_site.py"),
    ),
    "peers": (
        *("test_mjcf_peers.py", "test_objects.py", "test_example_robot_data.py"),
        "test_benchmarks.py",
    ),
    "slow": (
        *("geometry/test_clearance.py", "geometry/test_swept.py", "load/test_mjcf_copies.py"),
        *("load/test_yamltools.py", "stopping/test_report.py"),
    ),
    "fast": (
        *("dynamics/test_*.py", "geometry/test_*.py", "integrate/test_*.py", "load/test_*.py"),
        *("robots/test_shipped_files.py", "stopping/test_brake*.py", "stopping/test_gauss.py"),
        *("stopping/test_record*.py", "stopping/test_sheet.py"),
        *("test_absolute.py", "test_assembly_velocity.py", "test_bad_input.py", "test_checks.py"),
        *("test_constraints.py", "test_diagnosis.py", "test_failures.py", "test_forces.py"),
        *("test_holonomy.py", "test_lie.py", "test_loading.py", "test_loading_refused.py"),
        *("test_manifold.py", "test_mechanism.py", "test_modes.py", "test_partition.py"),
        *("test_project_files.py", "test_rows.py", "test_saddle.py", "test_start.py"),
        *("test_tangents.py", "test_topinocchio.py", "test_tree.py", "test_units.py"),
        *("test_validate.py", "test_xmltools.py"),
    ),
    "physics": (
        *("papers/test_*.py", "physics/test_*.py", "stopping/test_*.py", "test_analysis.py"),
        *("test_assembly.py", "test_balance.py", "test_branches.py", "test_closing.py"),
        *("test_events.py", "test_graph.py", "test_kept_coordinates.py", "test_limits.py"),
        *("test_motion.py", "test_pairs.py", "test_recording.py", "test_regularize*.py"),
        *("test_run.py", "test_simulate.py", "test_speedloss.py", "test_stabilization.py"),
        *("test_trajectory.py", "test_transitions.py", "test_workspace.py"),
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

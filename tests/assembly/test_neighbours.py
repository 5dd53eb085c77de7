"""Linkages that hang on each other, rounded: no more parallel than their file has digits."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import pinloop as pl

from ..rounded import in_other_frames, parallelograms, saved_with_digits


@pytest.mark.parametrize("count", [5, 7, 9, 12])
@pytest.mark.parametrize("seed", [0, 2, 16, 19])
def test_stacked_parallelograms_need_as_many_rows_as_with_all_digits(
    seed: int, count: int, tmp_path: Path
) -> None:
    linkage, mobility = parallelograms(np.random.default_rng(seed))
    exact = in_other_frames(pl.load(linkage), np.random.default_rng(seed + 1))
    robot = pl.load(saved_with_digits(exact, tmp_path / "robot.urdf", count), kinematics_only=True)
    report = pl.diagnose(robot)
    # Each parallelogram is planar: of the five rows of its cut hinge two are needed.
    assert (report.mobility, report.reduced_rows) == (mobility, 2 * mobility)
    reduced = pl.regularize(robot)
    assert reduced.regularization is not None
    assert reduced.regularization.rows == len(pl.Constraints(reduced)) == 2 * mobility

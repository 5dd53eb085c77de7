"""Ladders of loops that share joints: the work that rounding costs grows as they do, no faster."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pinloop as pl
from pinloop.assembly.rounding import exact, fitting
from pinloop.assembly.rounding.fitting import LoopCluster
from pinloop.linalg.dense import block_matrix
from pinloop.model.description import GROUND

from .. import rounded
from ..mechanisms import Z
from ..screw_tables import Table, joint, table


def cranks(count: int) -> Table:
    """Equal cranks side by side, each joined to the next by a coupler: neighbours share a crank."""
    joints = [
        joint(f"foot{k}", "revolute", GROUND, f"crank{k}", [0.3 * k, 0, 0], Z)
        for k in range(count + 1)
    ]
    for k in range(count):
        left, right = np.array([0.3 * k + 0.1, 0.4, 0]), np.array([0.3 * k + 0.4, 0.4, 0])
        joints += [
            joint(f"left{k}", "revolute", f"crank{k}", f"coupler{k}", left, Z),
            joint(f"right{k}", "revolute", f"coupler{k}", f"crank{k + 1}", right, Z, cut=True),
        ]
    return table("cranks", *joints)


def rungs(count: int) -> Table:
    """Two rails on the ground and rungs between them: all loops share the feet of the rails."""
    joints = [
        joint("left", "revolute", GROUND, "left rail", [0, 0, 0], Z),
        joint("right", "revolute", GROUND, "right rail", [0.5, 0, 0], Z),
    ]
    for k in range(count):
        end = np.array([0.1, 0.3 * (k + 1), 0])
        joints += [
            joint(f"left{k}", "revolute", "left rail", f"rung{k}", end, Z),
            joint(f"right{k}", "revolute", f"rung{k}", "right rail", [0.6, end[1], 0], Z, cut=True),
        ]
    return table("rungs", *joints)


def work(
    entries: Table, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> tuple[int, int, pl.Mechanism]:
    """Entries of all equations of the fits of a rounded robot, and residuals that were taken."""
    turned = rounded.in_other_frames(pl.from_screws(entries, tolerance=0), np.random.default_rng(1))
    path = rounded.saved_with_digits(turned, folder / "robot.urdf", 6)
    sizes, calls = list[int](), list[None]()
    whole, residual = block_matrix, LoopCluster.residual

    def counted_matrix(*args: Any) -> Any:
        matrix = whole(*args)
        sizes.append(matrix.size)  # of a sparse one its entries
        return matrix

    def counted_residual(self: LoopCluster, q: Any) -> Any:
        calls.append(None)
        return residual(self, q)

    with monkeypatch.context() as patch:
        patch.setattr(fitting, "block_matrix", counted_matrix)
        patch.setattr(LoopCluster, "residual", counted_residual)
        robot = pl.load(path, kinematics_only=True)
    return sum(sizes), len(calls), robot


@pytest.mark.parametrize("ladder", [cranks, rungs])
def test_the_work_of_a_fit_is_linear_in_the_loops(
    ladder: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    small, large = (work(ladder(count), tmp_path, monkeypatch) for count in (15, 30))
    assert large[0] < 2.5 * small[0]
    assert large[1] < 1.5 * small[1]
    for count, (_, _, robot) in zip((15, 30), (small, large), strict=True):
        assert robot.description.rounding is not None
        report = pl.diagnose(robot, samples=1)
        assert report.assembled and report.mobility == 1
        assert report.reduced_rows == 2 * count


def test_a_hundred_equal_rungs_are_fitted_at_one_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    entries, residuals, robot = work(rungs(100), tmp_path, monkeypatch)
    # Asked for at many places at once, 29,000 entries and three residuals a rung were needed.
    assert entries < 4_000 * 100 and residuals < 150
    assert pl.diagnose(robot, samples=1).mobility == 1


def test_a_long_ladder_is_not_said_to_be_barely_held(monkeypatch: pytest.MonkeyPatch) -> None:
    # The longer it is, the softer: its least singular value is a thousandth of the largest.
    def fail(*_: Any) -> None:
        raise AssertionError("no fit is due")

    robot = pl.from_screws(cranks(60), tolerance=0)
    monkeypatch.setattr(exact, "_fits", fail)
    assert not pl.diagnose(robot, samples=1).warnings

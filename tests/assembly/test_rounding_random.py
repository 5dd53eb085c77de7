"""Random overconstrained linkages, each link in a frame of its own, with 3 to 9 digits.

What is expected is known by construction, not computed: the mobility of Bennett's and Goldberg's
linkages, of Sarrus', and ``n - 3`` of planar and spherical loops. A rounded linkage has that
mobility, or is said not to close; there is no third answer without a word.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import pinloop as pl

from .. import rounded

DIGITS = (3, 4, 5, 6, 9)


SEEDS = [6 * ((kind + 2 * step) % 5) + kind for kind in range(6) for step in range(3)]
"""Every kind with three of the numbers of digits."""


@pytest.mark.parametrize("seed", SEEDS)
def test_random_linkages_come_back(seed: int, tmp_path: Path) -> None:
    entries, mobility = rounded.random_linkage(seed)
    exact = pl.from_screws(entries, tolerance=0)
    turned = rounded.in_other_frames(exact, np.random.default_rng(seed))
    path = rounded.saved_with_digits(turned, tmp_path / "robot.urdf", DIGITS[seed // 6 % 5])
    robot = pl.load(path, kinematics_only=True)
    report = pl.diagnose(robot, samples=3)
    assert report.assembled and report.mobility == mobility
    # With every digit it does not move.
    strict = pl.diagnose(pl.load(path, kinematics_only=True, tolerance=0), samples=3)
    assert not strict.assembled or strict.mobility < mobility


def test_far_less_change_than_rules_ask_for_refutes_them(tmp_path: Path) -> None:
    # Two axes of this linkage of Goldberg's are parallel but for 0.01 rad, which three digits allow
    # for. Made parallel, it would have a second degree of freedom.
    entries, mobility = rounded.random_linkage(151)
    turned = rounded.in_other_frames(pl.from_screws(entries), np.random.default_rng(1_000_151))
    path = rounded.saved_with_digits(turned, tmp_path / "robot.urdf", 3)
    assert pl.diagnose(pl.load(path, kinematics_only=True), samples=3).mobility == mobility

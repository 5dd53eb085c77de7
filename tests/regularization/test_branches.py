"""Assembly branches: a sign per group of loops, from geometry that is known by hand."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import pinloop as pl
from pinloop.regularization.regularize import branch_signs

from ..fourbar_files import fourbar, rocker_angle

ROBOTS = Path(__file__).parents[2] / "urdf"


def driven_fourbar(folder: Path) -> pl.Mechanism:
    """Crank 0.3 with the drive at the origin, coupler 0.6, rocker 0.4 on (0.6, 0)."""
    path = fourbar(folder)
    loops = folder / "bars.loops.yaml"
    loops.write_text("loops: []\nactuated: [drive]\n")
    return pl.load(path, loops=loops)


@pytest.mark.parametrize("drive", [-1.2, 0.3, 2.0])
def test_the_two_closures_of_a_fourbar_have_two_signs(tmp_path: Path, drive: float) -> None:
    robot = driven_fourbar(tmp_path)
    found = []
    for side in (1, -1):
        fixed = {"drive": drive, "swing": rocker_angle(drive, side)}
        signs = branch_signs(robot, pl.assemble(robot, fixed=fixed, limits=False))
        assert signs is not None
        found.append(signs["closer"])
    assert sorted(found) == [-1, 1]
    # The drive does not decide: the same side has the same sign all the way round.
    start = pl.assemble(robot, fixed={"drive": 0.0, "swing": rocker_angle(0.0, 1)}, limits=False)
    assert branch_signs(robot, start) == {"closer": found[0]}


def test_a_dead_point_has_no_sign(tmp_path: Path) -> None:
    # Coupler and rocker in line: knee at distance 1.0 from (0.6, 0), which 0.3 + 0.6 does not
    # reach; with a rocker drive instead, crank and coupler in line at 0.3 + 0.6 = 0.9.
    path = fourbar(tmp_path)
    loops = tmp_path / "bars.loops.yaml"
    loops.write_text("loops: []\nactuated: [swing]\n")
    robot = pl.load(path, loops=loops)
    # Law of cosines at the rocker's axis: sides 0.6 and 0.4, opposite 0.9.
    corner = np.arccos((0.6**2 + 0.4**2 - 0.9**2) / (2 * 0.6 * 0.4))
    x, z = 0.6 + 0.4 * np.cos(np.pi - corner), 0.4 * np.sin(np.pi - corner)
    q = {"drive": -np.arctan2(z, x), "knee": 0.0, "swing": np.arctan2(x - 0.6, z)}
    assert branch_signs(robot, robot.configuration(q)) == {"closer": 0}


def test_each_parallelogram_of_the_palletizer_has_its_own_sign() -> None:
    robot = pl.load(ROBOTS / "palletizer.urdf")
    signs = branch_signs(robot, pl.assemble(robot, {"shoulder": 0.4}))
    assert signs is not None and set(signs) == {loop.name for loop in robot.loops}
    assert set(map(abs, signs.values())) == {1}
    # Antiparallel: the level rods of one loop crossed, the drives and the other loops as they were.
    crossed = pl.assemble(
        robot,
        robot.configuration({"shoulder": 0.4, "plate_hinge": 2.5, "rear_rod_hinge": -2.0}),
        fixed={"shoulder": 0.4, "elbow": 0.0, "wrist": 0.0, "base_yaw": 0.0},
        limits=False,
    )
    other = branch_signs(robot, crossed)
    assert other is not None
    assert other["drive_loop"] == signs["drive_loop"]
    assert other["rear_level_loop"] == -signs["rear_level_loop"]


def test_where_there_is_nothing_to_tell() -> None:
    arm = pl.load(ROBOTS / "six_axis_arm.urdf")
    assert branch_signs(arm, arm.neutral) == {}
    delta = pl.load(ROBOTS / "delta.urdf")  # six idle rotations of rods: no square system
    assert branch_signs(delta, pl.assemble(delta)) is None

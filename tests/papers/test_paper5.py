"""Paper 5 (geometric constraint regularization): the examples of section 7, with its own numbers.

Section 7.1 prints the Jacobian H of the rows of the cut hinge, in the frame of the hinge on body 2,
as a function of q1 and q2, and a matrix U for it. H alone gives the geometry back:

* its last row vanishes and rows 1 to 4 have the form (wx, wy, d wy, -d wx) throughout: the hinge
  frame sits on the axis at the distance d from the centre, and d is the square root of 3. The text
  says "unit distance"; corners of a cube with half side 1 are meant, or the unit is another one;
* at q = 0 the columns are the axes of joints 1, 4 and 2, without their z components; how they
  depend on q1 and q2 gives those. All four axes are diagonals of a cube, in the order
  e1.e2 = e1.e4 = 1/3, e2.e3 = e3.e4 = -1/3;
* so at q = 0 they are not in one plane, and the rank of the printed H there is 2, while the text
  says that the reference configuration is flat and singular. The flat geometry of figure 6 is not
  in the text; the shipped `spherical_fourbar` is a flat one.

The paper writes twists (w, v); rows here come as (v_x, v_y, v_z, w_x, w_y).
"""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.linalg import orth

import pinloop as pl

from .. import linkages as k
from ..screw_tables import Table, joint, table

Array = NDArray[np.float64]

URDF = Path(__file__).parents[2] / "urdf"
GROUND = "ground"

R2, R3, R6 = np.sqrt([2.0, 3.0, 6.0])
E1 = np.array([2 * R2 / 3, 0, 1 / 3])
E2 = np.array([R2 / 3, R6 / 3, -1 / 3])
E3 = np.array([0, 0, 1.0])
E4 = np.array([R2 / 3, -R6 / 3, -1 / 3])
DISTANCE = R3

PAPERS_U = np.array(
    [
        [0.193497, 0.461041, 0.798547, -0.335146, 0.0],
        [-0.461041, 0.193497, 0.335146, 0.798547, 0.0],
    ]
)
PAPERS_ORDER = [3, 4, 0, 1, 2]
"""Where the paper's rows (w_x, w_y, v_x, v_y, v_z) are among ours."""


def papers_jacobian(q1: float, q2: float) -> Array:
    """H as printed; columns are joints 1, 4 and 2."""
    s1, s2, c1, c2 = np.sin(q1), np.sin(q2), np.cos(q1), np.cos(q2)
    minus, plus = np.cos(q1 - q2), np.cos(q1 + q2)
    s_minus = np.sin(q1 - q2)
    first = [
        R2 / 9 * (R3 * s2 - 1 - 5 * c2),
        (R6 * (c2 - 1) - 3 * R2 * s2) / 9,
        R2 / 3 * (c2 - 1 - R3 * s2),
        R2 / 9 * (R3 * (1 + 5 * c2) - 3 * s2),
        0.0,
    ]
    long = -4 + 7 * c2 + 7 * R3 * s2
    second = [
        R2 / 27 * (1 - 4 * R3 * s1 + c2 * (5 + R3 * s1) - (R3 + 9 * s1) * s2 + c1 * long),
        -R2 / 27 * (-R3 + 4 * R3 * c1 + R3 * minus + R3 * c2 + 4 * R3 * plus
                    + 12 * s1 - 3 * s_minus - 3 * s2),
        -R2 / 9 * (-1 + 4 * c1 + minus + c2 + 4 * plus + 4 * R3 * s1 - R3 * s_minus - R3 * s2),
        -R2 / 27 * (R3 + 5 * R3 * c2 - 3 * s2 + c1 * (-4 * R3 + 7 * R3 * c2 + 21 * s2)
                    + 3 * s1 * (-4 + c2 - 3 * R3 * s2)),
        0.0,
    ]  # fmt: skip
    third = [-R2 / 3, -np.sqrt(2 / 3), -R2, np.sqrt(2 / 3), 0.0]
    return np.array([first, second, third]).T


def four_bar() -> Table:
    """The linkage that H describes; B of the cut hinge is on body 2, as the paper has it."""
    origin = np.zeros(3)
    return table(
        "spherical four-bar of paper 5",
        joint("J1", "revolute", GROUND, "B1", origin, E1),
        joint("J2", "revolute", "B1", "B2", origin, E2),
        joint("J4", "revolute", GROUND, "B3", origin, E4),
        joint("J3", "revolute", "B3", "B2", DISTANCE * E3, E3, cut=True),
    )


def papers_rows(jacobian: Array, robot: pl.Mechanism) -> Array:
    """Our rows in the order of the paper, and our columns too."""
    columns = [robot.coordinates(name).v.start for name in ("J1", "J4", "J2")]
    return jacobian[PAPERS_ORDER][:, columns]


def turned(angle: float) -> Array:
    """Rows of a hinge frame whose x and y axes are turned about z."""
    c, s = np.cos(angle), np.sin(angle)
    turn = np.array([[c, -s], [s, c]])
    found = np.eye(5)
    found[:2, :2] = found[2:4, 2:4] = turn
    return found


# -- 7.1 ------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(8))
def test_printed_jacobian_is_that_of_the_cube(seed: int) -> None:
    robot = pl.from_screws(four_bar())
    rng = np.random.default_rng(seed)
    q1, q2 = rng.uniform(-3, 3, 2)
    q = robot.configuration({"J1": q1, "J2": q2, "J4": 0.0})
    H = papers_jacobian(q1, q2)
    # The form that tells the distance from the centre, and that there is one.
    np.testing.assert_allclose(H[2], R3 * H[1], atol=1e-12)
    np.testing.assert_allclose(H[3], -R3 * H[0], atol=1e-12)
    # Joints 1 and 2 against the paper's body 3 minus body 2, joint 4 at rest.
    ours = papers_rows(-pl.Constraints(robot).jacobian(q), robot)
    x_axis = robot.placement(robot.neutral, "J3/B").rotation[:, 0]
    ours = turned(np.arctan2(x_axis[1], x_axis[0])) @ ours
    np.testing.assert_allclose(ours, H, atol=1e-12)


def test_rank_of_the_printed_jacobian() -> None:
    rng = np.random.default_rng(0)
    for q1, q2 in [(0.0, 0.0), *rng.uniform(-3, 3, (20, 2))]:
        assert np.linalg.matrix_rank(papers_jacobian(q1, q2), tol=1e-9) == 2


def test_our_rows_span_those_of_the_paper() -> None:
    reduced = pl.regularize(pl.from_screws(four_bar()))
    report = reduced.regularization
    assert report is not None and (report.full_rows, report.rows) == (5, 2)
    ours = report.selection("J3")[:, PAPERS_ORDER]
    # Turning x and y of the hinge frame does not change this row space.
    for angle in (0.0, 0.7):
        basis = orth(turned(angle) @ ours.T)
        np.testing.assert_allclose(basis @ basis.T, PAPERS_U.T @ PAPERS_U, atol=3e-6)
    np.testing.assert_allclose(PAPERS_U @ PAPERS_U.T, np.eye(2), atol=3e-6)
    # And it is what any twist about the centre looks like at the distance d: (wx, wy, d wy, -d wx).
    w = np.random.default_rng(1).normal(size=(2, 6))
    seen = np.vstack([w[0], w[1], DISTANCE * w[1], -DISTANCE * w[0], 0 * w[0]])
    np.testing.assert_allclose(seen - ours.T @ (ours @ seen), 0, atol=1e-12)


@pytest.mark.parametrize("distance", [1.0, 0.2, 50.0])
def test_rows_at_another_distance(distance: float) -> None:
    entries = four_bar()
    entries["joints"][-1]["point"] = distance * E3
    report = pl.regularize(pl.from_screws(entries)).regularization
    assert report is not None and report.rows == 2
    ours = report.selection("J3")[:, PAPERS_ORDER]
    expected = orth(np.array([[1, 0, 0, -distance, 0], [0, 1, distance, 0, 0]]).T)
    np.testing.assert_allclose(ours.T @ ours, expected @ expected.T, atol=1e-10)


@pytest.mark.parametrize("cut", ["J1", "J2", "J3", "J4"])
def test_any_cut_leaves_two_rows(cut: str) -> None:
    # "For any selection of cut-joint" both chains generate so(3); alone, a single hinge does not.
    report = pl.regularize(pl.from_screws(k.marked(four_bar(), cut))).regularization
    assert report is not None and report.rows == 2 and report.mobility == 1


def test_one_row_would_do_in_a_flat_reference_but_two_are_kept() -> None:
    robot = pl.load(URDF / "spherical_fourbar.urdf")
    full = pl.Constraints(robot).jacobian(robot.neutral)
    assert np.linalg.matrix_rank(full, tol=1e-9) == 1
    reduced = pl.regularize(robot)
    report = reduced.regularization
    assert report is not None and report.rows == 2
    # Joint frames at unit distance from the centre, axis x of the file is z of the hinge.
    ours = report.selection("joint_3")[:, PAPERS_ORDER]
    expected = orth(np.array([[1, 0, 0, -1, 0], [0, 1, 1, 0, 0.0]]).T)
    np.testing.assert_allclose(ours.T @ ours, expected @ expected.T, atol=1e-10)
    q = pl.assemble(robot, fixed={"joint_1": 0.4})
    assert np.linalg.matrix_rank(pl.Constraints(reduced).jacobian(q), tol=1e-9) == 2


# -- 7.2 ------------------------------------------------------------------------------------


def test_multi_loop_manipulator() -> None:
    robot = pl.load(URDF / "prrr3.urdf")
    # "10 constraints imposed to the 10 joint angles of the tree-topology system."
    assert (len(pl.Constraints(robot)), robot.nv) == (10, 10)
    q = pl.assemble(robot)
    # "3 of these constraints are redundant."
    assert np.linalg.matrix_rank(pl.Constraints(robot).jacobian(q), tol=1e-9) == 7
    # "The constraints for each individual loop are correctly reduced to 4, so that each loop alone
    # would have 3 DOF" - of its 7 joint variables.
    for legs in ("xy", "xz"):
        alone = pl.regularize(pl.from_screws(k.prrr3(legs))).regularization
        assert alone is not None
        assert (alone.rows, alone.mobility) == (4, 3)
    # "The overall system of 8 constraints contains one redundant constraint": not here.
    reduced = pl.regularize(robot)
    report = reduced.regularization
    assert report is not None and (report.rows, report.mobility) == (7, 3)
    rows = pl.Constraints(reduced).jacobian(q)
    assert rows.shape == (7, 10) and np.linalg.matrix_rank(rows, tol=1e-9) == 7


def test_legs_of_the_manipulator_generate_what_the_paper_says() -> None:
    # "se(2) x R" with the normal along the slide: the Schoenflies group of four dimensions.
    reduced = pl.regularize(pl.load(URDF / "prrr3.urdf")).regularization
    assert reduced is not None
    names = {name for loop in reduced.loops for name in (loop.algebra_a, loop.algebra_b)}
    assert names == {f"Schoenflies, axis {axis}" for axis in "xyz"}
    sums = [loop.rows for loop in reduced.loops]
    assert sorted(sums, reverse=True) == [4, 3] and all(a >= b for a, b in pairwise(sums))

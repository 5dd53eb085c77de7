"""A catalogue of linkages and the rows that they need, counted by hand; no test lives here.

Rows of a single loop by hand: with the motion algebras of both chains, dim(A + B + cut) - dim(cut).
A group of dimension d that holds the whole loop gives d - dim(cut) at most.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np
import pinocchio as pin

import pinloop as pl
from pinloop.model.description import GROUND

from . import linkages as k
from . import mechanisms as m
from .reductions import jacobians, lost, rank
from .screw_tables import Array, Table, joint, table

Maker = Callable[[], Table]


def flat_spherical() -> Table:
    return m.spherical_four_bar(flat=True)


def geared_five_bar() -> Table:
    gear = {"name": "gear", "joint": "m2", "source": "m1", "ratio": -1.0}
    return m.five_bar() | {"couplings": [gear]}


def idle_turn() -> Table:
    """A hinge in line with the cut hinge, and a slide across: the turn is idle, the slide held."""
    return table(
        "idle turn",
        joint("turn", "revolute", GROUND, "spinner", [0, 0, 0], m.Z),
        joint("slide", "prismatic", GROUND, "slider", [0, 0, 0], m.X),
        joint("close", "revolute", "slider", "spinner", [0, 0, 1], m.Z, cut=True),
    )


def locked() -> Table:
    """Hinge along z, oblique slide, hinge along y: what each allows the others forbid."""
    return k.chain(
        "locked",
        ("revolute", [0, 0, 0], m.Z, None),
        ("prismatic", [0, 0, 0], m.X + m.Z, None),
        ("revolute", [0.3, 0.2, 0], m.Y, None),
    )


# Rows of all pairs, rows that are left, rank in general.
KNOWN: dict[str, tuple[Maker, int, int, int]] = {
    # Planar, dim 3: 3 - 1 per hinge or slide that is cut, whatever the number of bars.
    "four-bar": (m.four_bar, 5, 2, 2),
    "parallelogram": (m.parallelogram, 5, 2, 2),
    "five-bar": (m.five_bar, 5, 2, 2),
    "slider-crank": (m.slider_crank, 5, 2, 2),
    "scotch yoke": (k.scotch_yoke, 5, 2, 2),
    "oldham": (k.oldham, 5, 2, 2),
    "collinear three-bar": (k.collinear_three_bar, 5, 2, 2),
    "floating four-bar": (k.floating_four_bar, 5, 2, 2),
    "planar 3-RRR": (k.planar_3rrr, 10, 4, 4),
    # The coupling is one row more, and stays.
    "geared five-bar": (geared_five_bar, 6, 3, 3),
    # 8 bars, 12 hinges, 5 loops: one freedom in 7 coordinates, where 10 planar rows leave none.
    "hoberman 4": (k.hoberman, 25, 10, 6),
    "triple parallelogram": (k.triple_parallelogram, 10, 4, 3),
    # Planar chains, other cuts: 3 less what the pair leaves free in the plane.
    "four-bar with ball": (lambda: k.four_bar_with("spherical"), 3, 2, 2),
    "four-bar with sleeve": (lambda: k.four_bar_with("cylindrical"), 4, 2, 2),
    "four-bar welded": (lambda: k.four_bar_with("fixed"), 6, 3, 3),
    "four-bar with table": (lambda: k.four_bar_with("planar"), 3, 0, 0),
    "four-bar with cross slide": (lambda: k.four_bar_with("planar_translation"), 4, 1, 1),
    "four-bar with shifts": (lambda: k.four_bar_with("spatial_translation"), 3, 1, 1),
    "four-bar with schoenflies": (lambda: k.four_bar_with("schoenflies"), 2, 0, 0),
    # Spherical, dim 3; the universal joint sees one of three rotations.
    "spherical four-bar": (m.spherical_four_bar, 5, 2, 2),
    "flat spherical four-bar": (flat_spherical, 5, 2, 2),
    "spherical five-bar": (k.spherical_five_bar, 5, 2, 2),
    "cardan": (k.cardan, 5, 2, 2),
    "cardan cut in its cross": (lambda: k.cardan("cross"), 4, 1, 1),
    # Cylindrical, dim 2; translations, dim 2 and 3; parallel screws, dim 3; Schoenflies, dim 4.
    "screw jack": (m.screw_jack, 5, 1, 1),
    "differential screw": (k.differential_screw, 5, 1, 1),
    "plunger": (k.plunger, 4, 0, 0),
    "wedge": (k.wedge, 5, 1, 1),
    "translator": (k.translator, 5, 2, 2),
    "screw four-bar": (k.screw_four_bar, 5, 2, 2),
    "schoenflies loop": (k.schoenflies_loop, 5, 3, 3),
    # One body twice on one axis.
    "door": (m.door, 5, 0, 0),
    "idle turn": (idle_turn, 5, 1, 1),
    # Hinge and slide keep all directions but z; the hinge along y that is cut cannot turn, so the
    # slide's direction stays one: 1 + 1.
    "locked": (locked, 5, 2, 2),
    # Two planes at right angles: 3 + 3 - 1 shift in common, less the cut hinge.
    "sarrus": (m.sarrus, 5, 4, 4),
    # Paper 5, section 7.2: 4 + 4 - 1 for the three shifts that two legs leave.
    "3-PRRR": (k.prrr3, 10, 7, 7),
    # Nothing in common: all rows stay, and are needed.
    "rssr": (m.rssr, 3, 3, 3),
    "spinning rods": (m.spinning_rods, 6, 6, 6),
    "tip on plane": (m.tip_on_plane, 1, 1, 1),
    "rod pendulums": (m.rod_pendulums, 1, 1, 1),
    "ball loop": (m.ball_loop, 2, 2, 2),
    "3-UPU": (lambda: k.upu(3), 8, 8, 8),
    # Paradoxical: nothing in common, but not all needed.
    "double cardan": (m.double_cardan, 4, 4, 3),
    "bent double cardan": (k.bent_double_cardan, 4, 4, 3),
    "4-UPU": (lambda: k.upu(4), 12, 12, 11),
    "universal delta": (k.universal_delta, 20, 20, 14),
    "bennett": (m.bennett, 5, 5, 2),
    "goldberg": (k.goldberg, 5, 5, 3),
}
NAMES = list(KNOWN)

OTHERS: dict[str, Maker] = {
    "four-bar with cross": lambda: k.four_bar_with("universal"),
    "cardan cut at its input": lambda: k.cardan("input"),
    "screw trap": k.screw_trap,
    "slanted triple parallelogram": lambda: k.triple_parallelogram(in_line=False),
    "two four-bars": lambda: k.together("two", m.four_bar(), k.cardan()),
    "gear pair": m.gear_pair,
    "planar 3R": m.planar_3r,
}
"""Mechanisms whose rows are looked at elsewhere or not at all."""

URDF = Path(__file__).parents[1] / "urdf"
SHIPPED = {
    "fourbar": 2,
    "fivebar": 2,
    "sevenbar": 4,
    "palletizer": 6,
    "spherical_fourbar": 2,
    "spherical_threebar": 3,
    "prrr3": 7,
    "delta": 15,
    "stewart": 18,
    "bricard": 5,
    "planar_3r": 0,
    "six_axis_arm": 0,
}
"""Rows that shipped robots keep: 2 per planar loop, and see the paper for the others."""


@cache
def robot_called(name: str) -> pl.Mechanism:
    if (URDF / f"{name}.urdf").is_file():
        return pl.load(URDF / f"{name}.urdf")
    return pl.from_screws((KNOWN[name][0] if name in KNOWN else OTHERS[name])())


@cache
def reduced_called(name: str) -> pl.Mechanism:
    return pl.regularize(robot_called(name), compare_cuts=True)


def report_of(robot: pl.Mechanism) -> pl.Regularization:
    assert robot.regularization is not None
    return robot.regularization


def rows_of(entries: Table) -> int:
    return report_of(pl.regularize(pl.from_screws(entries))).rows


def assert_nothing_lost(robot: pl.Mechanism, q: Array) -> None:
    """Same rank and same kernel of the reduced rows as of the full ones, closed loops given."""
    assert np.linalg.norm(pl.Constraints(robot, full=True).residual(q)) < 1e-9 * (1 + robot.length)
    full, reduced = jacobians(robot, q)
    assert rank(full) == rank(reduced)
    assert lost(robot, q) < 1e-6


FAR = pin.SE3(pin.exp3(np.array([0.3, -1.0, 0.5])), np.array([600.0, -800.0, 20.0]))
"""A placement a kilometre away."""

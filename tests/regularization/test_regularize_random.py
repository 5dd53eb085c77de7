"""Tests of `pinloop.regularize` on random linkages: no row too few, and none too many."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pinocchio as pin
from hypothesis import given, settings
from hypothesis import strategies as st

import pinloop as pl
from pinloop.model.mechanism import build
from pinloop.model.pairs import MotionGroup

from .. import random_linkages as some
from ..linkages import chain
from ..reductions import configurations, jacobians, lost, rank

bounded = settings(max_examples=40, deadline=None, derandomize=True)
seeds = st.integers(0, 10**6)

SUBGROUPS = {
    "cylindrical": {"revolute", "prismatic", "helical", "cylindrical"},
    "planar translation": {"prismatic", "planar translation"},
    "spatial translation": {"prismatic", "planar translation", "spatial translation"},
    "planar": {"revolute", "prismatic", "planar translation", "planar"},
    "helical planar": {"helical", "prismatic", "planar translation", "helical planar"},
    "spherical": {"revolute", "spherical"},
}
"""What chains inside a group can generate."""


def assert_nothing_lost(robot: pl.Mechanism, seed: int, walk: int = 5, restarts: int = 1) -> None:
    """At random assembled configurations the reduced rows allow no motion that the full ones do."""
    rng = np.random.default_rng(seed)
    for q in configurations(robot, rng, walk, restarts):
        assert lost(robot, q) < 1e-6
        full, reduced = jacobians(robot, q)
        assert rank(full) == rank(reduced)


@bounded
@given(seeds, st.sampled_from(sorted(some.DIMENSIONS)), st.integers(2, 6))
def test_loops_inside_one_group(seed: int, group: str, count: int) -> None:
    entries, frame = some.group_loop(seed, group, count)
    robot = pl.regularize(pl.from_screws(entries))
    report = robot.regularization
    assert report is not None
    # All twists are in the group, and the cut joint sees all of them but its own.
    assert report.rows <= some.DIMENSIONS[group] - 1
    (loop,) = report.loops
    for name in (loop.algebra_a, loop.algebra_b):
        kind = name.split(",")[0]
        assert kind == "fixed" or kind in SUBGROUPS.get(group, {kind})
        if kind == "spherical":
            centre = np.fromstring(name.split("(")[1].rstrip(")"), sep=",")
            np.testing.assert_allclose(centre, frame.translation, rtol=1e-3, atol=1e-4)
    assert_nothing_lost(robot, seed)


@bounded
@given(seeds, st.booleans(), st.integers(4, 6))
def test_generic_planar_and_spherical_loops_keep_two_rows(
    seed: int, spherical: bool, count: int
) -> None:
    # Two hinges generate these groups of dimension 3; the cut hinge sees all but its own turn.
    rng = np.random.default_rng(seed)
    centre, normal = rng.uniform(-1, 1, 3), rng.normal(size=3)
    hinges = [
        ("revolute", centre, rng.normal(size=3), None)
        if spherical
        else ("revolute", rng.uniform(-1, 1, 3), normal, None)
        for _ in range(count)
    ]
    robot = pl.regularize(pl.from_screws(chain("generic", *hinges)))
    assert robot.regularization is not None and robot.regularization.rows == 2
    assert_nothing_lost(robot, seed)


@bounded
@given(seeds)
def test_parallel_mechanisms(seed: int) -> None:
    assert_nothing_lost(pl.regularize(pl.from_screws(some.parallel_mechanism(seed))), seed)


@bounded
@given(seeds)
def test_graphs(seed: int) -> None:
    robot = pl.from_screws(some.graph(seed))
    assert_nothing_lost(pl.regularize(robot), seed)


def opened(robot: pl.Mechanism, rng: np.random.Generator) -> pl.Mechanism:
    """The robot with every joint of the tree displaced, so that its loops are open at neutral."""
    cuts = {loop.name for loop in robot.loops}
    joints = []
    for joint in robot.description.joints:
        if joint.name not in cuts and isinstance(joint.pair, MotionGroup):
            shift = joint.pair.free @ rng.uniform(-0.3, 0.3, joint.pair.dof)
            joint = replace(joint, frame_child=joint.frame_child * pin.exp6(shift))
        joints.append(joint)
    return build(replace(robot.description, joints=tuple(joints)))


@bounded
@given(seeds, st.booleans())
def test_a_reference_that_has_to_be_searched_gives_the_same_rows(seed: int, legs: bool) -> None:
    robot = pl.from_screws(some.parallel_mechanism(seed) if legs else some.graph(seed))
    apart = opened(robot, np.random.default_rng(seed))
    first, other = pl.regularize(robot), pl.regularize(apart)
    assert first.regularization is not None and other.regularization is not None
    assert first.regularization.rows == other.regularization.rows
    assert_nothing_lost(other, seed, walk=3)

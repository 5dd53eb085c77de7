"""Tests of `pinloop.safety.space.clearance.self_collisions`: chains that fold, pairs left out."""

from __future__ import annotations

import numpy as np
import pytest

import pinloop as pl
from pinloop.model.description import GROUND
from pinloop.safety.space.clearance import Approach, self_collisions

from ...screw_tables import Array
from ...states import robot
from .moving_bodies import LENGTH, THICK, at, chain, fling, rod, shape

UPPER, LAST = 0.5, 0.6


def folding(spin: float, until: float = 0.8) -> pl.Trajectory:
    """Three rods; the first along x, the second upright, the third folds down onto the first.

    Args:
        spin: speed at which the whole chain turns [rad/s].
        until: end [s].
    """
    rods = (rod("a"), rod("b", UPPER), rod("c", LAST))
    links = chain("revolute", "revolute", "revolute", length=UPPER, geometry=rods)
    given = (
        lambda t: (spin * t, spin, 0.0),
        lambda t: (np.pi / 2, 0.0, 0.0),
        lambda t: (0.2 + 5 * t, 5.0, 0.0),
    )
    rows = [pl.constraints.Prescribed(f"j{k + 1}", motion) for k, motion in enumerate(given)]
    return pl.simulate(
        links, [0.0, np.pi / 2, 0.2], [spin, 0.0, 5.0], until=until, rows=rows, losses=False,
        save_every=until / 3,
    )  # fmt: skip


@pytest.mark.parametrize("spin", [0.0, 25.0])
def test_a_chain_folds_onto_itself(spin: float) -> None:
    """The tip of c is at the height 0.5 + 0.6 cos(angle); a is touched at twice the radius."""
    found = self_collisions(folding(spin))
    (touch,) = found.touching
    assert {touch.body, touch.other} == {"a", "c"}
    angle = np.arccos((2 * THICK - UPPER) / LAST)
    assert touch.t == pytest.approx((angle - 0.2) / 5, abs=2e-5)
    assert found.excluded == {("a", "b"): "a joint joins them", ("b", "c"): "a joint joins them"}
    assert found.approaches == (touch,)


@pytest.mark.parametrize("spin", [0.0, 25.0])
def test_how_near_a_chain_comes_to_itself(spin: float) -> None:
    until = 0.3
    found = self_collisions(folding(spin, until))
    (nearest,) = found.approaches
    assert found.touching == ()
    # Points of the middle line of c, and their distance from that of a.
    angles, along = 0.2 + 5 * np.linspace(0, until, 2001), np.linspace(0, LAST, 401)
    x = UPPER - np.outer(np.sin(angles), along)
    y = UPPER + np.outer(np.cos(angles), along)
    beyond = np.maximum(np.maximum(x - LENGTH, -x), 0)
    law = float(np.hypot(beyond, y).min() - 2 * THICK)
    assert nearest.distance == pytest.approx(law, abs=0.0015)
    assert nearest.at_least <= law + 1e-5


def test_pairs_that_are_left_out() -> None:
    geometry = (
        rod("a", 0.4),
        rod("b", 0.4),
        shape("c", "box", (0.6, 0.02, 0.02), at(-0.2, 0, 0.06)),
        shape("d", "box", (0.1, 0.1, 0.1), at(0.2, 0, 0)),
        shape(GROUND, "box", (0.2, 0.2, 0.2), at(0.0, -1.7, 0)),
    )
    run = pl.simulate(
        chain("revolute", "revolute", "revolute", "fixed", geometry=geometry),
        [0, 0, 0], [-3.0, 0, 0], until=0.6, mode=pl.Mode(["j2", "j3"]), losses=False,
    )  # fmt: skip
    found = self_collisions(run)
    assert found.excluded == {
        ("a", "b"): "a joint joins them",
        ("b", "c"): "a joint joins them",
        ("c", "d"): "they are welded to each other",
        ("a", GROUND): "a joint joins them",
    }
    pairs = {(one.body, one.other) for one in found.approaches}
    assert pairs == {("a", "c"), ("a", "d"), ("b", "d"), ("b", GROUND), ("c", GROUND),
                     ("d", GROUND)}  # fmt: skip
    assert [one.body for one in found.touching] == ["d"]


def test_bodies_that_overlap_at_the_start_are_left_out() -> None:
    geometry = (rod("a"), rod("b", 0.1), rod("c", 0.3))
    links = chain("revolute", "revolute", "revolute", geometry=geometry, length=0.4)
    run = pl.simulate(links, [0, 0, 0], [1.0, 0, 0], until=0.1, losses=False)
    assert self_collisions(run).excluded["a", "c"] == "they overlap at the start"


def test_loop_joints_join_bodies_too() -> None:
    linkage = robot("palletizer")
    found = self_collisions(fling(linkage, seed=2, until=0.05), tolerance=0.01)
    for loop in linkage.loops:
        pair = loop.body_a, loop.body_b
        if pair in found.excluded or pair[::-1] in found.excluded:
            reason = found.excluded.get(pair) or found.excluded.get(pair[::-1])
            assert reason == "a joint joins them"
        assert all({one.body, one.other} != set(pair) for one in found.approaches)
    assert found.approaches == tuple(sorted(found.approaches, key=lambda one: one.distance))


def test_approaches_print() -> None:
    here: Array = np.zeros(3)
    near = Approach("arm", "wall", 0.0123, 0.012, 0.5, here, here)
    assert repr(near) == "<Approach: 'arm' and 'wall' 12.3 mm apart at t = 0.5 s>"

"""Tests of bounds on relative motion: chains, several chains, and machines from books."""

from __future__ import annotations

from itertools import combinations, compress, permutations

import numpy as np
import pinocchio as pin
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.linalg import null_space

from pinloop.regularization.loop_bounds import MotionNetwork
from pinloop.spatial.lie import EVERYTHING, NOTHING, Algebras, Subspace, identify, span

Array = NDArray[np.float64]

bounded = settings(max_examples=40, deadline=None, derandomize=True)
seeds = st.integers(0, 10**6)

x, y, z, rx, ry, rz = np.eye(6)
GROUND, PLATFORM = 0, 1


def of(*twists: Array) -> Subspace:
    return span(np.array(twists).T)


def at(point: list[float], axis: Array) -> Array:
    """Turn about an axis of direction ``axis`` through a point."""
    return np.append(np.cross(point, axis[3:]), axis[3:])


def network(*ties: tuple[int, int, Subspace]) -> MotionNetwork:
    """Network with all ties taken into account at once."""
    algebras = Algebras()
    found = MotionNetwork(algebras)
    found.tighten([(a, b, algebras.number(space)) for a, b, space in ties])
    return found


def bound(of_network: MotionNetwork, a: int, b: int) -> Subspace:
    return of_network.algebras[of_network.number(a, b)]


def kind(of_network: MotionNetwork, a: int, b: int) -> str:
    return identify(bound(of_network, a, b)).kind


# -- interned algebras ----------------------------------------------------------------------


def test_equal_subspaces_share_a_number() -> None:
    algebras = Algebras()
    plane = algebras.number(of(x, y, rz))
    assert algebras.number(of(x + y, x - y, rz + 3 * x)) == plane
    tilt = pin.SE3(pin.exp3(np.array([1e-13, 0, 0])), np.zeros(3))
    assert algebras.number(of(x, y, rz).moved(tilt)) == plane
    assert algebras[plane].same(of(x, y, rz)) and algebras.dim(plane) == 3
    assert algebras.number(NOTHING) == algebras.nothing != plane
    assert algebras.number(EVERYTHING) == algebras.everything != plane


@pytest.mark.parametrize("off", [1e-3, 1e-5, 3e-7])
def test_nearly_equal_subspaces_do_not(off: float) -> None:
    algebras = Algebras()
    tilt = pin.SE3(pin.exp3(np.array([off, 0, 0])), np.zeros(3))
    plane = of(x, y, rz)
    assert algebras.number(plane) != algebras.number(plane.moved(tilt))
    assert algebras.number(of(rz)) != algebras.number(of(at([off, 0, 0], rz)))


def test_a_minus_sign_of_zero_is_no_difference() -> None:
    algebras = Algebras()
    basis = np.zeros((6, 1))
    basis[2] = 1.0
    other = -basis
    assert algebras.number(Subspace(basis)) == algebras.number(Subspace(other))


def test_operations_by_hand() -> None:
    algebras = Algebras()
    turn, slide, ball = (algebras.number(space) for space in (of(rz), of(x), of(rx, ry, rz)))
    assert algebras[algebras.join(turn, slide)].same(of(x, y, rz))
    assert algebras[algebras.plus(turn, slide)].same(of(x, rz))
    assert algebras[algebras.meet(ball, algebras.number(of(x, y, rz)))].same(of(rz))
    assert algebras[algebras.intersection(ball, turn)].same(of(rz))
    # What a turn makes of a slide, but not what a slide makes of a turn.
    assert algebras[algebras.sweep(slide, turn)].same(of(x, y))
    assert algebras[algebras.sweep(turn, slide)].same(of(y, rz))
    for number in (turn, slide, ball):
        assert algebras.join(number, algebras.nothing) == number
        assert algebras.join(algebras.everything, number) == algebras.everything
        assert algebras.meet(number, algebras.everything) == number
        assert algebras.meet(algebras.nothing, number) == algebras.nothing


@pytest.mark.parametrize(
    ("whole", "is_maximal"),
    [
        (of(x, y, rz), {"rz": True, "x": False, "xy": True}),
        (of(rx, ry, rz), {"rz": True}),
        (of(z, rz), {"rz": True, "z": True}),
        (of(x, y, z, rz), {"rz": False, "xy": False, "xyz": True, "z": False}),
        (EVERYTHING, {"rz": False, "xyz": False}),
    ],
)
def test_maximal_algebras_by_hand(whole: Subspace, is_maximal: dict[str, bool]) -> None:
    named = {"rz": of(rz), "x": of(x), "z": of(z), "xy": of(x, y), "xyz": of(x, y, z)}
    assert {name: named[name].is_maximal(whole) for name in is_maximal} == is_maximal
    # What is not inside the whole is not looked at.
    assert not of(rz + x).moved(pin.SE3(pin.exp3(np.ones(3)), np.ones(3))).is_maximal(of(x, y, rz))


@bounded
@given(seeds, st.sampled_from([of(x, y, rz), of(rx, ry, rz), of(x, y, z, rz), of(z, rz)]))
def test_what_is_seen_to_generate_the_whole_does(seed: int, whole: Subspace) -> None:
    rng, algebras = np.random.default_rng(seed), Algebras()
    picks = (rng.choice([-1.0, 0.0, 1.0], (whole.dim, int(count))) for count in (1, 1, 1, 2, 2))
    numbers = [algebras.number(span(whole.basis @ pick).closure()) for pick in picks]
    total = algebras.number(whole)
    for a in numbers:
        seen = algebras.generating(a, numbers, total)
        assert all(algebras.join(a, b) == total for b in compress(numbers, seen))
        if algebras[a].is_maximal(whole):
            # Nothing is overlooked among algebras of its dimension.
            alike = [b for b in numbers if algebras.dim(b) == algebras.dim(a) and b != a]
            assert all(seen[numbers.index(b)] for b in alike)


HELIX, STEEPER = rz + 0.3 * z, rz + 0.5 * z


@pytest.mark.parametrize(
    ("one", "other", "shared"),
    [
        # Whole turns of a thread are shifts, and two threads agree after some turns: other
        # assemblies, which a bound has to hold. The groups below have them in common.
        (of(HELIX), of(z), of(z)),
        (of(HELIX), of(x, y, z), of(z)),
        (of(HELIX), of(STEEPER), of(z, rz)),
        (of(HELIX), of(at([1, 0, 0], rz) + 0.3 * z), of(z)),
        (of(x, y, HELIX), of(x, y, z), of(x, y, z)),
        # None here: one lies in the other, or only the unit is shared.
        (of(HELIX), of(z, rz), of(HELIX)),
        (of(HELIX), of(x, y, HELIX), of(HELIX)),
        (of(HELIX), of(rx + 0.3 * x), NOTHING),
        (of(HELIX), of(x, y, rx), NOTHING),
        (of(x, y, rz), of(rx, ry, rz), of(rz)),
    ],
)
def test_what_screws_have_in_common(one: Subspace, other: Subspace, shared: Subspace) -> None:
    algebras = Algebras()
    a, b = algebras.number(one), algebras.number(other)
    assert algebras[algebras.meet(a, b)].contains(shared.basis)
    assert algebras[algebras.meet(b, a)].contains(shared.basis)
    # No larger than what both leave when turns and shifts of a screw are told apart.
    assert algebras.dim(algebras.meet(a, b)) == shared.dim
    assert algebras[algebras.intersection(a, b)].same(one & other)


# -- chains and loops -----------------------------------------------------------------------


def test_a_joint_bounds_its_two_bodies() -> None:
    found = network((0, 1, of(rz)))
    assert bound(found, 0, 1).same(of(rz)) and bound(found, 1, 0).same(of(rz))
    assert bound(found, 0, 2).dim == bound(found, 1, 2).dim == 6
    assert bound(found, 2, 2).dim == 0


def test_a_chain_is_the_closure_of_its_joints() -> None:
    hinges = [of(at(point, rz)) for point in ([0.0, 0, 0], [1.0, 0, 0], [1.0, 1, 3])]
    found = network(*((k, k + 1, hinge) for k, hinge in enumerate(hinges)))
    assert bound(found, 0, 3).same(of(x, y, rz))
    assert bound(found, 0, 2).same(of(x, y, rz)) and bound(found, 1, 2).same(hinges[1])
    skew = network((0, 1, of(rz)), (1, 2, of(at([0, 1, 0], rx))))
    assert bound(skew, 0, 2).dim == 6


def test_two_chains_leave_their_intersection() -> None:
    # Sarrus: hinges along x in one leg, along y in the other. The platform moves along z only.
    one = [of(at([0, 1, h], rx)) for h in (0.0, 0.3, 0.6)]
    two = [of(at([1, 0, h], ry)) for h in (0.0, 0.3, 0.6)]
    legs = [(0, 2, one[0]), (2, 3, one[1]), (3, 1, one[2])]
    legs += [(0, 4, two[0]), (4, 5, two[1]), (5, 1, two[2])]
    found = network(*legs)
    assert bound(found, GROUND, PLATFORM).same(of(z))
    # And so does everything seen from the platform: the middle of leg one stays in its plane.
    assert bound(found, 0, 3).same(of(y, z, rx))


@bounded
@given(seeds, st.sampled_from(["planar", "spherical", "any"]))
def test_what_the_whole_allows_need_not_be_stored(seed: int, kind: str) -> None:
    # A tree and some joints more, with the closure of all joints as the whole or se(3).
    rng = np.random.default_rng(seed)
    size = int(rng.integers(4, 9))

    def hinge() -> Subspace:
        if kind == "planar":
            return of(at(list(rng.uniform(-1, 1, 3)), rz))
        axis = np.append(np.zeros(3), rng.normal(size=3))
        return of(at([0.0, 0, 0] if kind == "spherical" else list(rng.uniform(-1, 1, 3)), axis))

    ends = [(int(rng.integers(body)), body) for body in range(1, size)]
    ends += [(int(a), int(b)) for a, b in rng.choice(size, (2, 2)) if a != b]
    algebras = Algebras()
    ties = [(a, b, algebras.number(hinge())) for a, b in ends]
    whole = algebras.nothing
    for _, _, number in ties:
        whole = algebras.join(whole, number)
    all_of_it, tight = MotionNetwork(algebras), MotionNetwork(algebras, whole)
    all_of_it.tighten(ties)
    tight.tighten(ties)
    for a, b in combinations(range(size), 2):
        assert algebras[tight.number(a, b)].same(algebras[all_of_it.number(a, b)])
        assert (b in tight.bounded(a)) == (tight.number(a, b) != whole)


def test_tightening_names_the_pairs_whose_bound_changes() -> None:
    algebras = Algebras()
    found = MotionNetwork(algebras)
    turn, slide = algebras.number(of(rz)), algebras.number(of(x))
    assert found.tighten([(0, 1, turn), (2, 3, slide)]) == {(0, 1), (1, 0), (2, 3), (3, 2)}
    assert found.tighten([(0, 1, turn)]) == set()
    new = {(0, 2), (0, 3), (1, 2), (1, 3)}
    assert found.tighten([(1, 2, algebras.nothing)]) == new | {(b, a) for a, b in new}
    other = found.copy()
    new = {(group, 4) for group in range(4)}
    assert other.tighten([(0, 4, turn)]) == new | {(b, a) for a, b in new}
    assert found.bounded(4) == set()


def prrr3(legs: str) -> MotionNetwork:
    """Legs of a slide and three hinges along an axis, between ground and platform."""
    ties, body = [], 2
    for leg in legs:
        axis = "xyz".index(leg)
        turn, tip = np.eye(6)[3 + axis], np.roll([0, -0.06, 0.0], axis)
        joints = [of(np.eye(6)[axis]), *(of(at(list(tip + h), turn)) for h in (0.0, 0.4, 0.1))]
        chain = [GROUND, body, body + 1, body + 2, PLATFORM]
        ties += [(a, b, joint) for a, b, joint in zip(chain, chain[1:], joints, strict=False)]
        body += 3
    return network(*ties)


@pytest.mark.parametrize(
    ("legs", "expected"),
    [("x", "Schoenflies"), ("xy", "spatial translation"), ("xyz", "spatial translation")],
)
def test_the_platform_of_the_3_prrr(legs: str, expected: str) -> None:
    # Paper 5, section 7.2: one leg leaves one rotation, two legs none.
    assert kind(prrr3(legs), GROUND, PLATFORM) == expected


def test_a_tied_stretch_helps_the_next_loop() -> None:
    # Bodies 1 and 2 stay parallel thanks to two legs; a joint behind them gains from that.
    legs = [(1, 3, of(x, y, z, rx)), (3, 2, NOTHING), (1, 4, of(x, y, z, ry)), (4, 2, NOTHING)]
    found = network((0, 1, of(z)), *legs)
    assert bound(found, 1, 2).same(of(x, y, z))
    assert bound(found, 0, 2).same(of(x, y, z))


def test_a_copy_goes_its_own_way() -> None:
    found = network((0, 1, of(rz)))
    other = found.copy()
    other.tighten([(1, 2, other.algebras.number(of(z)))])
    assert bound(other, 0, 2).same(of(z, rz)) and bound(found, 0, 2).dim == 6
    assert other.algebras is found.algebras


def test_a_joint_within_a_body_bounds_nothing() -> None:
    found = network((1, 1, of(rz)), (0, 1, of(x)))
    assert bound(found, 1, 1).dim == 0 and bound(found, 0, 1).same(of(x))


# -- any network ----------------------------------------------------------------------------

CLASSES = [[rz], [z], [x, y], [x, y, z], [x, y, rz], [z, rz], [rx, ry, rz], [x, y, z, rz]]
SCREWS = [[HELIX], [STEEPER], [x, y, HELIX]]
AXES = [np.eye(3), np.roll(np.eye(3), 1, axis=0), np.roll(np.eye(3), 2, axis=0)]

Ties = list[tuple[int, int, Subspace]]


def random_ties(seed: int, size: int, *, screws: bool = False) -> Ties:
    """Joints along the coordinate axes, so that many of them have something in common."""
    rng = np.random.default_rng(seed)
    pool = CLASSES + (SCREWS * 3 if screws else [])
    ties = []
    for _ in range(rng.integers(2, 2 * size)):
        a, b = (int(k) for k in rng.choice(size, 2, replace=False))
        T = pin.SE3(AXES[rng.integers(3)], rng.integers(0, 2, 3).astype(float))
        if screws and rng.random() < 0.8:
            T = pin.SE3.Identity()
        ties.append((a, b, of(*pool[rng.integers(len(pool))]).moved(T)))
    return ties


@bounded
@given(seeds, st.integers(3, 6))
def test_the_order_of_the_joints_does_not_matter(seed: int, size: int) -> None:
    ties = random_ties(seed, size)
    found = network(*ties)
    rng = np.random.default_rng(seed)
    other = network()
    for k in rng.permutation(len(ties)):
        a, b, space = ties[k]
        ends = (b, a) if rng.random() < 0.5 else (a, b)
        other.tighten([(*ends, other.algebras.number(space))])
    for a, b in combinations(range(size), 2):
        assert bound(found, a, b).same(bound(other, a, b))


@bounded
@given(seeds, st.integers(3, 6))
def test_no_way_round_is_shorter(seed: int, size: int) -> None:
    ties = random_ties(seed, size)
    found = network(*ties)
    for a, b, space in ties:
        assert space.contains(bound(found, a, b).basis)
    for a, b, c in permutations(range(size), 3):
        way = (bound(found, a, c) + bound(found, c, b)).closure()
        assert way.contains(bound(found, a, b).basis)
        assert bound(found, a, b).is_algebra()


def by_force(size: int, ties: Ties) -> dict[tuple[int, int], Subspace]:
    """Bounds by going round all triples until nothing changes any more."""
    bounds = dict.fromkeys(permutations(range(size), 2), EVERYTHING)
    for a, b, space in ties:
        bounds[a, b] = bounds[b, a] = common(bounds[a, b], space)
    while True:
        before = sum(space.dim for space in bounds.values())
        for a, b, c in permutations(range(size), 3):
            way = (bounds[a, c] + bounds[c, b]).closure()
            bounds[a, b] = bounds[b, a] = common(bounds[a, b], way)
        if sum(space.dim for space in bounds.values()) == before:
            return bounds


def common(one: Subspace, other: Subspace) -> Subspace:
    """Intersection by SciPy's null space."""
    kernel = null_space(np.hstack([one.basis, -other.basis]), rcond=1e-9)
    return span(one.basis @ kernel[: one.dim], scale=1.0)


@bounded
@given(seeds, st.integers(3, 5))
def test_bounds_against_brute_force(seed: int, size: int) -> None:
    ties = random_ties(seed, size)
    found = network(*ties)
    for (a, b), space in by_force(size, ties).items():
        assert bound(found, a, b).same(space)


@bounded
@given(seeds, st.integers(3, 6))
def test_tightening_never_loosens(seed: int, size: int) -> None:
    found = network()
    for a, b, space in random_ties(seed, size, screws=True):
        before = {pair: bound(found, *pair) for pair in combinations(range(size), 2)}
        found.tighten([(a, b, found.algebras.number(space))])
        for pair, old in before.items():
            assert bound(found, *pair).dim <= old.dim

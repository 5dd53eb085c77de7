"""Tests of `pinloop.model.pairs` against the motions, twists and memberships of `pairs_by_hand`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pinocchio as pin
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pinloop.errors import BadValue
from pinloop.model.pairs import PAIR_NAMES, MotionGroup, Rod, Universal, align_z, make_pair
from pinloop.model.tree import motion_of
from pinloop.spatial.lie import span

from ..pairs_by_hand import (
    BLOCKED,
    CASES,
    EYE,
    GROUPS,
    ROWS,
    SPECIAL_ANGLES,
    TWIST,
    Array,
    Case,
    anywhere,
    assembled,
    assert_close,
    defect,
    every_case,
    every_group,
    every_other,
    free_twists,
    members,
    rate_along,
    slope,
    turn,
)
from ..states import rank


def test_every_pair_has_a_case() -> None:
    assert {case.name for case in CASES} == set(PAIR_NAMES)
    assert len(PAIR_NAMES) == len(set(PAIR_NAMES))


@every_case
def test_counts_follow_the_table(case: Case) -> None:
    pair = case.pair
    assert pair.name == case.name
    assert (pair.rows, pair.dof) == (ROWS[case.name], 6 - ROWS[case.name])
    assert len(set(pair.labels)) == pair.rows
    key = {"helical": "pitch", "rod": "length"}.get(case.name)
    assert pair.parameters == ({key: case.value} if key else {})


@every_case
def test_assembled_placements_are_closed_and_their_free_twists_pass(case: Case) -> None:
    pair = case.pair
    for T in members(case, 40):
        S, F = pair.selector(T), free_twists(case, T)
        assert np.abs(pair.residual(T)).max(initial=0.0) < 1e-12
        assert np.abs(S @ F).max(initial=0.0) < 1e-12
        assert S.shape == (pair.rows, 6)
        assert rank(S) == pair.rows
        assert rank(F) == pair.dof


@pytest.mark.parametrize("case", [*GROUPS, Case("universal")], ids=str)
def test_free_spans_the_free_twists_of_the_reference_position(case: Case) -> None:
    pair, expected = case.pair, free_twists(case, pin.SE3.Identity())
    assert isinstance(pair, (MotionGroup, Universal))
    assert pair.free.shape == (6, pair.dof)
    assert rank(pair.free) == rank(np.c_[expected, pair.free]) == expected.shape[1]


@every_case
def test_the_algebra_holds_every_motion_of_the_pair(case: Case) -> None:
    algebra = case.pair.algebra
    assert span(algebra).is_algebra()
    for T in members(case, 10):
        assert rank(np.c_[algebra, free_twists(case, T)]) == rank(algebra)
    smallest = {"universal": 3} | {group.name: group.pair.dof for group in GROUPS}
    assert rank(algebra) == smallest.get(case.name, 6)


@every_case
def test_sample_selectors_span_those_of_all_placements(case: Case) -> None:
    pair = case.pair
    if not pair.sample_selectors:
        return
    # Turned into B's axes at the placement, an angle row is one of the samples' combinations.
    samples = np.vstack(pair.sample_selectors)
    for T in members(case, 10):
        assert rank(np.r_[samples, pair.selector(T)]) == rank(samples)


@every_case
def test_held_points_stay_where_they_are_and_others_do_not(case: Case) -> None:
    held, rng = case.pair.held_points, np.random.default_rng(11)
    directions = np.zeros((3, 0)) if held is None else held
    point = directions @ rng.normal(size=directions.shape[1])
    other = rng.normal(size=3)
    other -= directions @ (directions.T @ other)
    seen = np.array([[T.act(point), T.act(point + other)] for T in members(case, 20)])
    spread = np.ptp(seen, axis=0).max(axis=1)
    assert (spread[0] < 1e-12) == (held is not None)
    assert spread[1] > 0.1 or case.name == "fixed"


@every_case
def test_a_file_must_give_what_the_motions_depend_on(case: Case) -> None:
    """Another point or axis of both frames is another pair exactly if the class says so."""
    placed = any(feature.is_placed for feature in case.pair.features)
    rng = np.random.default_rng(12)
    shifts = [pin.SE3(EYE, rng.normal(size=3)) for _ in range(10)]
    turns = [pin.SE3(pin.exp3(rng.normal(size=3)), np.zeros(3)) for _ in range(10)]
    for moved, matters in ((shifts, placed), (turns, bool(case.pair.axis_count()))):
        away = [
            defect(case, X.actInv(T * X)) for X, T in zip(moved, members(case, 10), strict=True)
        ]
        assert (max(away) > 1e-6) == matters


@every_group
def test_group_selectors_are_those_of_the_paper(case: Case) -> None:
    labels = BLOCKED[case.name].split()
    expected = np.zeros((len(labels), 6))
    for row, label in enumerate(labels):
        expected[row, TWIST.index(label)] = 1.0
        if case.name == "helical" and label == "v_z":
            expected[row, 5] = -case.value
    assert case.pair.labels == tuple(labels)
    for T in anywhere(5):
        S = case.pair.selector(T)
        np.testing.assert_array_equal(S, expected)
        assert not S.flags.writeable, "all placements share it"


@every_case
def test_residual_rate_on_the_manifold_is_selector_times_twist(case: Case) -> None:
    pair, rng = case.pair, np.random.default_rng(3)
    for T in members(case, 20, seed=4):
        V = rng.normal(size=6)
        assert_close(rate_along(pair.residual, T, V), pair.selector(T) @ V, 1e-7)


@every_other
def test_rows_off_the_manifold_measure_what_they_should(case: Case) -> None:
    """Rates of the distances and angles in question; the universal pair adds B's velocity in B."""
    pair, rng = case.pair, np.random.default_rng(5)
    measures: dict[str, Callable[[Any], Array]] = {
        "universal": lambda T: (T.rotation @ EYE[0])[2:],
        "point_on_line": lambda T: np.array(T.translation[:2]),
        "point_on_plane": lambda T: np.array(T.translation[2:]),
        "rod": lambda T: np.array([np.sqrt(T.translation @ T.translation)]),
    }
    measure = measures[case.name]
    for T in anywhere(20):
        V = rng.normal(size=6)
        expected = rate_along(measure, T, V)
        if case.name == "universal":
            expected = np.r_[V[:3], expected]
        assert_close(pair.selector(T) @ V, expected, 1e-7)


@every_case
@pytest.mark.parametrize("placements", ["on", "off"])
def test_bias_completes_the_rate_of_selector_times_twist(case: Case, placements: str) -> None:
    """Along ``T exp(t V0 + t^2/2 V1)`` the body twist is ``V0 + t V1`` up to second order."""
    pair, rng = case.pair, np.random.default_rng(6)
    for T in members(case, 10) if placements == "on" else anywhere(20):
        for V1 in (np.zeros(6), rng.normal(size=6)):
            V0 = rng.normal(size=6)

            def row_rates(t: float, T: Any = T, V0: Array = V0, V1: Array = V1) -> Array:
                moved = T * pin.exp6(t * V0 + t * t / 2 * V1)
                return np.asarray(pair.selector(moved) @ (V0 + t * V1))

            bias = pair.bias(T, V0)
            assert bias.shape == (pair.rows,)
            assert_close(slope(row_rates), pair.selector(T) @ V1 + bias, 1e-6)


@every_group
def test_finite_openings_of_groups_are_read_in_metres_and_radians(case: Case) -> None:
    """Shift or turn B along one of its axes, by much: the residual is that opening, exactly."""
    thread = abs(case.value) or 1.0  # within one thread of a screw the opening is unambiguous
    for member in members(case, 12):
        for i in range(6):
            size = 0.7 * thread if i < 3 else 2.5
            opening = size * np.eye(6)[i]
            residual = case.pair.residual(member * pin.exp6(opening))
            expected = [opening[TWIST.index(label)] for label in BLOCKED[case.name].split()]
            if case.name == "helical":
                expected[2] -= case.value * opening[5]
            np.testing.assert_allclose(residual, expected, rtol=0, atol=1e-11)


def test_finite_openings_of_the_other_pairs() -> None:
    p = np.array([0.3, -0.4, 1.2])
    T = pin.SE3(turn("z", 0.5) @ turn("y", 0.3) @ turn("x", 2.0), p)
    in_B = turn("x", -2.0) @ turn("y", -0.3) @ turn("z", -0.5) @ p
    np.testing.assert_allclose(
        make_pair("universal").residual(T), [*in_B, -np.sin(0.3)], rtol=0, atol=1e-14
    )
    np.testing.assert_array_equal(make_pair("point_on_line").residual(T), [0.3, -0.4])
    np.testing.assert_array_equal(make_pair("point_on_plane").residual(T), [1.2])
    assert Rod(1.0).residual(T) == pytest.approx([0.3], abs=1e-14)  # |p| = 1.3
    assert Rod(1.5).residual(T) == pytest.approx([-0.2], abs=1e-14)


@every_group
@pytest.mark.parametrize("axis", ["x", "y", "z"])
def test_flipped_pairs_are_open_by_pi(case: Case, axis: str) -> None:
    """Remark 4 of paper 1: antiparallel axes satisfy the entries of table 1, but are not closed."""
    blocked = f"w_{axis}" in BLOCKED[case.name]
    for member in members(case, 20):
        flipped = member * pin.SE3(turn(axis, np.pi), np.zeros(3))
        opening = np.linalg.norm(case.pair.residual(flipped))
        if case.name == "helical":
            # About z, half a turn without its advance; about x and y the advance is arbitrary.
            expected = np.pi * abs(case.value) if axis == "z" else np.pi
            assert opening > expected - 1e-9
        else:
            assert opening == pytest.approx(np.pi if blocked else 0.0, abs=1e-9)


def test_a_universal_pair_may_be_flipped_about_both_of_its_axes() -> None:
    for T in members(Case("universal"), 10):
        for axis in "xyz":  # a half turn about z or y of B leaves the line of x of B where it was
            flipped = T * pin.SE3(turn(axis, np.pi), np.zeros(3))
            assert np.abs(make_pair("universal").residual(flipped)).max() < 1e-12


lengths = st.one_of(st.sampled_from([0.0, 1.0, -0.5]), st.floats(-3, 3))
angles = st.one_of(st.sampled_from(SPECIAL_ANGLES), st.floats(-20, 20))


@every_case
@settings(derandomize=True, deadline=None, database=None, max_examples=150)
@given(
    u=st.tuples(lengths, lengths, lengths, angles, angles, angles),
    flip=st.sampled_from(["", "x", "y", "z"]),
    direction=st.tuples(lengths, lengths, lengths, lengths, lengths, lengths),
    size=st.sampled_from([0.0, 0.0, 1e-13, 1e-10, 1e-8, 1e-6, 1e-3, 1.0]),
)
def test_the_residual_vanishes_exactly_on_assembled_placements(
    case: Case, u: tuple[float, ...], flip: str, direction: tuple[float, ...], size: float
) -> None:
    T = assembled(case, np.array(u)) * pin.exp6(size * np.array(direction))
    if flip:
        T = T * pin.SE3(turn(flip, np.pi), np.zeros(3))
    opening, away = float(np.linalg.norm(case.pair.residual(T))), defect(case, T)
    assert opening >= 1e-9 or away < 1e-6
    assert away >= 1e-10 or opening < 1e-6


@every_case
def test_random_placements_are_open(case: Case) -> None:
    closed = [np.linalg.norm(case.pair.residual(T)) < 1e-6 for T in anywhere(100)]
    assert all(closed) if case.name == "free" else not any(closed)


@every_group
def test_group_residuals_do_not_see_where_the_pair_stands(case: Case) -> None:
    """The closest motion is taken out on the left, so ``residual(N X) = residual(X)``."""
    for N, X in zip(members(case, 30), anywhere(30), strict=True):
        expected = case.pair.residual(X)
        np.testing.assert_allclose(case.pair.residual(N * X), expected, rtol=0, atol=1e-10)


@every_case
@pytest.mark.parametrize("half_turn", [-np.pi, np.pi, 3 * np.pi])
def test_no_jump_at_half_turns(case: Case, half_turn: float) -> None:
    pair, rng = case.pair, np.random.default_rng(7)
    for _ in range(10):
        u, E = rng.uniform(-2, 2, 6), 1e-5 * rng.normal(size=6)
        near = []
        for angle in (half_turn - 1e-9, half_turn, half_turn + 1e-9):
            u[3:] = angle
            T = assembled(case, u)
            near.append(pair.residual(T * pin.exp6(E)))
            assert_close(near[-1] / 1e-5, pair.selector(T) @ E / 1e-5, 1e-3)
        np.testing.assert_allclose(near[0], near[1], rtol=0, atol=1e-12)
        np.testing.assert_allclose(near[2], near[1], rtol=0, atol=1e-12)


@every_group
def test_closest_is_a_projection_on_the_group(case: Case) -> None:
    for T in anywhere(20):
        assert defect(case, case.group.closest(T)) < 1e-12
    for member in members(case, 20):
        again = case.group.closest(member).homogeneous
        np.testing.assert_allclose(again, member.homogeneous, rtol=0, atol=1e-12)


@every_group
def test_no_member_is_closer_than_closest(case: Case) -> None:
    """Rotation angle first; then, with that rotation, the distance of the origins."""
    rng = np.random.default_rng(8)
    others = [assembled(case, u) for u in rng.uniform(-4, 4, (200, 6))]
    for T in anywhere(10):
        best = case.group.closest(T)
        angle = np.linalg.norm(pin.log3(best.rotation.T @ T.rotation))
        shift = np.linalg.norm(best.translation - T.translation)
        for other in others:
            assert np.linalg.norm(pin.log3(other.rotation.T @ T.rotation)) > angle - 1e-9
        if case.name == "helical":  # members with the same rotation are whole turns apart
            turns = 2 * np.pi * case.value * np.r_[-5:6, rng.integers(-20000, 20000, 50)]
            shifts = best.translation + turns[:, None] * EYE[2]
        else:
            shifts = np.array([other.translation for other in others])
        assert np.linalg.norm(shifts - T.translation, axis=1).min() > shift - 1e-9


def test_a_screw_knows_its_whole_turns() -> None:
    """M10-like thread: 1.5 mm per turn; the angle of the rotation alone would lose the turns."""
    lead = 0.0015
    screw = make_pair("helical", pitch=lead / (2 * np.pi))
    assert isinstance(screw, MotionGroup)
    nut = pin.SE3(turn("z", 0.25 * 2 * np.pi), np.array([0.0, 0.0, 7.25 * lead]))
    np.testing.assert_allclose(screw.residual(nut), np.zeros(5), atol=1e-14)
    assert screw.closest(nut).translation[2] == pytest.approx(7.25 * lead, abs=1e-15)
    for excess in (0.4 * lead, -0.4 * lead):
        pushed = pin.SE3(nut.rotation, nut.translation + excess * EYE[2])
        assert screw.residual(pushed)[2] == pytest.approx(excess, abs=1e-15)
    backwards = make_pair("helical", pitch=-lead / (2 * np.pi))
    assert abs(backwards.residual(nut)[2]) == pytest.approx(0.5 * lead, abs=1e-15)


@every_case
def test_reactions_do_no_work_on_the_motions_of_the_pair(case: Case) -> None:
    """Differentiate the motions themselves: ``T(s)^-1 T'(s)`` against wrenches ``S' lambda``."""
    pair, rng = case.pair, np.random.default_rng(9)
    for u in np.c_[rng.uniform(-2, 2, (10, 3)), rng.uniform(-9, 9, (10, 3))]:
        motions = []
        for du in rng.normal(size=(8, 6)):
            before, after = assembled(case, u - 1e-5 * du), assembled(case, u + 1e-5 * du)
            motions.append(pin.log6(before.actInv(after)).vector / 2e-5)
        wrench = pair.selector(assembled(case, u)).T @ rng.normal(size=pair.rows)
        assert np.abs(np.array(motions) @ wrench).max() < 1e-7
        assert np.linalg.matrix_rank(motions, tol=1e-6) == pair.dof


def test_a_rod_without_direction_still_gives_a_row() -> None:
    """An assembly may start with both ends in one point."""
    T, V = pin.SE3(turn("x", 0.4), np.zeros(3)), np.arange(1.0, 7.0)
    rod = Rod(0.5)
    np.testing.assert_array_equal(rod.residual(T), [-0.5])
    np.testing.assert_allclose(np.linalg.norm(rod.selector(T)), 1.0, atol=1e-14)
    assert np.all(np.isfinite(rod.bias(T, V)))


ALIASES = {
    "continuous": "revolute",
    "hinge": "revolute",
    "slide": "prismatic",
    "slider": "prismatic",
    "ball": "spherical",
    "weld": "fixed",
    "floating": "free",
    "Point-On-Line": "point_on_line",
    "PLANAR translation": "planar_translation",
    "  Schoenflies\n": "schoenflies",
}


@pytest.mark.parametrize("asked", ALIASES)
def test_make_pair_is_lenient_about_spelling(asked: str) -> None:
    assert make_pair(asked) == make_pair(ALIASES[asked])
    assert make_pair(asked).name == ALIASES[asked]


def test_make_pair_passes_numbers_on() -> None:
    assert make_pair("Screw", pitch=-0.1).parameters == {"pitch": -0.1}
    assert make_pair("ROD", length=2).parameters == {"length": 2.0}


def test_unknown_pair_lists_the_known_ones() -> None:
    with pytest.raises(BadValue, match="'gear'") as caught:
        make_pair("gear")
    assert all(name in str(caught.value) for name in PAIR_NAMES)


@pytest.mark.parametrize(
    ("name", "numbers", "says"),
    [
        ("helical", {}, "pitch"),
        ("screw", {"length": 1.0}, "has no length"),
        ("rod", {}, "length"),
        ("rod", {"pitch": 1.0}, "has no pitch"),
        ("revolute", {"pitch": 0.3}, "has no pitch"),
        ("helical", {"pitch": np.nan}, "pitch.*nan"),
        ("helical", {"pitch": np.inf}, "pitch.*inf"),
        ("rod", {"length": np.nan}, "length.*nan"),
        ("rod", {"length": -np.inf}, "length.*inf"),
        ("rod", {"length": 0.0}, "length 0"),
        ("rod", {"length": -0.2}, "length -0.2"),
    ],
)
def test_make_pair_rejects_bad_numbers(name: str, numbers: dict[str, float], says: str) -> None:
    with pytest.raises(BadValue, match=says):
        make_pair(name, **numbers)


@pytest.mark.parametrize("length", [0.0, -1.0, np.nan])
def test_rod_rejects_lengths_that_are_none(length: float) -> None:
    with pytest.raises(BadValue, match="length"):
        Rod(length)


@settings(derandomize=True, deadline=None, database=None)
@given(axis=st.tuples(lengths, lengths, lengths).filter(lambda a: np.linalg.norm(a) > 1e-3))
def test_align_z_is_a_rotation_onto_the_axis(axis: tuple[float, ...]) -> None:
    R = align_z(np.array(axis))
    np.testing.assert_allclose(R.T @ R, EYE, atol=1e-14)
    assert np.linalg.det(R) == pytest.approx(1.0, abs=1e-14)
    np.testing.assert_allclose(R[:, 2] * np.linalg.norm(axis), axis, atol=1e-14)


@pytest.mark.parametrize("length", [1.0, -1.0, 0.1, -37.5])
@pytest.mark.parametrize("i", range(3))
def test_align_z_is_exact_on_coordinate_axes(i: int, length: float) -> None:
    R = align_z(length * EYE[i])
    assert set(R.ravel()) <= {-1.0, 0.0, 1.0}
    np.testing.assert_array_equal(R[:, 2], np.sign(length) * EYE[i])
    np.testing.assert_array_equal(np.cross(R[:, 0], R[:, 1]), R[:, 2])


@every_case
def test_motions_in_the_tree_are_members_of_the_pair(case: Case) -> None:
    pair, rng = case.pair, np.random.default_rng(13)
    assert pair.carries_bodies == (case.name not in ("point_on_line", "point_on_plane", "rod"))
    if not pair.carries_bodies or not pair.dof:
        return
    for _ in range(5):
        T = motion_of(pair, rng.uniform(-2, 2, pair.dof))
        assert defect(case, T) < 1e-12
        assert np.linalg.norm(pin.log6(T).vector) > 1e-6

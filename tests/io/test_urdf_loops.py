"""Loops in a URDF, dialect by dialect, against motions that are written out by hand.

Two bodies float freely. For a pair about the axis ``a`` of the declared frames A (on p) and B (on
q), q is put where a member ``M`` of the pair's motions says: ``q = p A M B^-1``. There, and only
there, the loop must be closed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pinocchio as pin
import pytest

import pinloop as pl

from .urdf_by_hand import (
    Array,
    pair_of_arms,
    place,
    pose,
    random_placement,
    rotation,
    shift,
    turn,
    two_bodies,
    words,
)

POSE_A = ((0.3, -0.2, 0.5), (0.4, -0.3, 0.8))
POSE_B = ((-0.1, 0.6, 0.2), (-1.2, 0.5, 0.3))
AXIS = np.array([2.0, -1.0, 2.0]) / 3
ACROSS = np.array([1.0, 2.0, 0.0]) / np.sqrt(5)
PITCH, LENGTH = 0.07, 0.9

Member = Callable[[np.random.Generator], pin.SE3]


def _turned(rng: np.random.Generator) -> pin.SE3:
    return turn(AXIS, rng.uniform(-6, 6))


def _slid(rng: np.random.Generator) -> pin.SE3:
    return shift(*(rng.normal() * AXIS))


def _in_plane(rng: np.random.Generator) -> pin.SE3:
    return shift(*(rng.normal() * ACROSS + rng.normal() * np.cross(AXIS, ACROSS)))


def _anyhow(rng: np.random.Generator) -> pin.SE3:
    return pin.SE3(rotation(rng.normal(size=3), rng.uniform(-3, 3)), np.zeros(3))


def _screw(rng: np.random.Generator) -> pin.SE3:
    angle = rng.uniform(-12, 12)
    return shift(*(PITCH * angle * AXIS)) * turn(AXIS, angle)


def _away(rng: np.random.Generator) -> pin.SE3:
    direction = rng.normal(size=3)
    return shift(*(LENGTH * direction / np.linalg.norm(direction)))


MEMBERS: dict[str, tuple[int, Member]] = {
    "fixed": (6, lambda rng: pin.SE3.Identity()),
    "weld": (6, lambda rng: pin.SE3.Identity()),
    "revolute": (5, _turned),
    "continuous": (5, _turned),
    "prismatic": (5, _slid),
    "helical": (5, _screw),
    "cylindrical": (4, lambda rng: _slid(rng) * _turned(rng)),
    "universal": (4, lambda rng: _turned(rng) * turn(ACROSS, rng.uniform(-3, 3))),
    "spherical": (3, _anyhow),
    "ball": (3, _anyhow),
    "planar": (3, lambda rng: _in_plane(rng) * _turned(rng)),
    "planar_translation": (4, _in_plane),
    "spatial_translation": (3, lambda rng: shift(*rng.normal(size=3))),
    "schoenflies": (2, lambda rng: shift(*rng.normal(size=3)) * _turned(rng)),
    "point_on_line": (2, lambda rng: _slid(rng) * _anyhow(rng)),
    "point_on_plane": (1, lambda rng: _in_plane(rng) * _anyhow(rng)),
    "rod": (1, lambda rng: _away(rng) * _anyhow(rng)),
}
"""Per type the number of rows, and the motions that it allows."""

PARAMETERS = {"helical": f'pitch="{PITCH}"', "rod": f'length="{LENGTH}"'}


def placed(values: tuple[tuple[float, ...], tuple[float, ...]]) -> str:
    return f'xyz="{words(values[0])}" rpy="{words(values[1])}"'


AXES = f'<axis xyz="{words(4 * AXIS)}"/><axis2 xyz="{words(0.5 * ACROSS)}"/>'


def loop_joint(kind: str) -> str:
    return (
        f'<loop_joint name="l" type="{kind}" {PARAMETERS.get(kind, "")}>{AXES}'
        f'<link1 link="p" {placed(POSE_A)}/><link2 link="q" {placed(POSE_B)}/></loop_joint>'
    )


def urdf_plus(kind: str, tag: str = "loop") -> str:
    return (
        f'<{tag} name="l" type="{kind}" {PARAMETERS.get(kind, "")}>{AXES}'
        f'<predecessor link="p"><origin {placed(POSE_A)}/></predecessor>'
        f'<successor link="q"><origin {placed(POSE_B)}/></successor></{tag}>'
    )


def urdf_plus_constraint(kind: str) -> str:
    return urdf_plus(kind, "constraint")


def ros_proposal(kind: str) -> str:
    second = ACROSS if kind == "universal" else AXIS
    return (
        f'<constraint name="l" type="{kind}" {PARAMETERS.get(kind, "")}>'
        f'<parent link="p"/><parent_origin {placed(POSE_A)}/><parent_axis xyz="{words(AXIS)}"/>'
        f'<child link="q"/><child_origin {placed(POSE_B)}/><child_axis xyz="{words(second)}"/>'
        "</constraint>"
    )


def closed(motion: pin.SE3, rng: np.random.Generator, on_p: pin.SE3, on_q: pin.SE3) -> Array:
    """Configuration with p anywhere and q where the motion of the pair puts it."""
    p = random_placement(rng)
    return place([p, p * on_p * motion * on_q.inverse()])


def check_pair(loaded: pl.Mechanism, kind: str, on_p: pin.SE3, on_q: pin.SE3) -> None:
    """The loop is closed at all motions of the pair, at no others, and has no row too many."""
    rows, member = MEMBERS[kind]
    constraints = pl.Constraints(loaded)
    rng = np.random.default_rng(11)
    assert len(constraints) == rows
    for _ in range(8):
        q = closed(member(rng), rng, on_p, on_q)
        np.testing.assert_allclose(constraints.residual(q), 0, atol=1e-12)
        assert np.linalg.matrix_rank(constraints.jacobian(q), 1e-9) == rows
        off = closed(random_placement(rng), rng, on_p, on_q)
        assert np.abs(constraints.residual(off)).max() > 1e-3


@pytest.mark.parametrize("dialect", [loop_joint, urdf_plus, urdf_plus_constraint, ros_proposal])
@pytest.mark.parametrize("kind", MEMBERS)
def test_a_loop_is_closed_where_the_motions_of_its_pair_lead(
    kind: str, dialect: Callable[[str], str]
) -> None:
    loaded = pl.load(two_bodies(dialect(kind)))
    (loop,) = loaded.loops
    assert (loop.name, loop.body_a, loop.body_b) == ("l", "p", "q")
    assert loaded.warnings == ()
    check_pair(loaded, kind, pose(*POSE_A), pose(*POSE_B))


def test_poses_are_optional_and_the_axis_is_x_by_default() -> None:
    texts = [
        '<loop_joint name="l" type="revolute"><link1 link="p"/><link2 link="q"/></loop_joint>',
        '<loop name="l" type="revolute"><predecessor link="p"/><successor link="q"/></loop>',
        '<constraint name="l" type="revolute"><parent link="p"/><child link="q"/></constraint>',
    ]
    identity = pin.SE3.Identity()
    rng = np.random.default_rng(0)
    for text in texts:
        constraints = pl.Constraints(pl.load(two_bodies(text)))
        q = closed(turn((1, 0, 0), 2.0), rng, identity, identity)
        np.testing.assert_allclose(constraints.residual(q), 0, atol=1e-12)
        q = closed(turn((0, 0, 1), 2.0), rng, identity, identity)
        assert np.linalg.norm(constraints.residual(q)) == pytest.approx(2.0)


@pytest.mark.parametrize("kind", ["revolute", "prismatic", "cylindrical", "planar"])
def test_the_ros_proposal_may_name_another_axis_on_each_side(kind: str) -> None:
    """Assembled, the child's axis lies along the parent's, after the smallest rotation."""
    other = np.array([0.0, 0.6, -0.8])
    text = ros_proposal(kind).replace(
        f'<child_axis xyz="{words(AXIS)}"', f'<child_axis xyz="{words(other)}"'
    )
    swing = np.cross(other, AXIS)
    first = turn(swing, float(np.arctan2(np.linalg.norm(swing), other @ AXIS)))
    np.testing.assert_allclose(first.rotation @ other, AXIS, atol=1e-15)
    check_pair(pl.load(two_bodies(text)), kind, pose(*POSE_A), pose(*POSE_B) * first.inverse())


# -- dialects of Gazebo and Drake, on a tree whose zero configuration is known -----------------

ZERO_Q = pose((0.1, 0, 0), (0, 0, 0)) * pose((0.5, 0, 0.1), (0.3, -0.2, 0.5))
ZERO_S = pose((0, 0.4, 0), (0, 0.4, 0)) * pose((0.3, 0.2, 0), (0.1, 0, 0.7))
"""Placements of q and s of `pair_of_arms` at zero coordinates."""

ON_Q = ZERO_Q.actInv(ZERO_S * pose(*POSE_B))
"""The frame `POSE_B` of s, seen from q, where all coordinates are zero."""


def same_constraints(first: pl.Mechanism, second: pl.Mechanism) -> None:
    """Equal up to the choice of axes within the pair: ``J' J`` and the norm of the residual."""
    one, other = pl.Constraints(first), pl.Constraints(second)
    assert len(one) == len(other)
    rng = np.random.default_rng(4)
    for _ in range(4):
        q = rng.uniform(-2, 2, first.nq)
        J, K = one.jacobian(q), other.jacobian(q)
        assert np.linalg.norm(J) > 0.1
        np.testing.assert_allclose(J.T @ J, K.T @ K, atol=1e-12)
        r, s = one.residual(q), other.residual(q)
        assert np.linalg.norm(r) == pytest.approx(np.linalg.norm(s), abs=1e-12)


def quat(T: pin.SE3) -> str:
    return f'xyz="{words(T.translation)}" quat_xyzw="{words(pin.Quaternion(T.rotation).coeffs())}"'


def same_loop(kind: str, axes: str = f'<axis xyz="{words(AXIS)}"/>') -> pl.Mechanism:
    """The loop between the known frames of q and s, as ``<loop_joint>``."""
    return pl.load(
        pair_of_arms(
            f'<loop_joint name="l" type="{kind}" {PARAMETERS.get(kind, "")}>{axes}'
            f'<link1 link="q" {quat(ON_Q)}/><link2 link="s" {placed(POSE_B)}/></loop_joint>'
        )
    )


def gazebo(kind: str, inside: str, parent: str = "q") -> str:
    return (
        f'<gazebo><joint name="l" type="{kind}"><parent>{parent}</parent><child>s</child>'
        f"<pose>{words(POSE_B[0])} {words(POSE_B[1])}</pose>{inside}</joint></gazebo>"
    )


SDF_AXIS = f"<axis><xyz>{words(3 * AXIS)}</xyz></axis>"


@pytest.mark.parametrize(
    ("kind", "ours", "inside"),
    [
        ("revolute", "revolute", SDF_AXIS),
        ("continuous", "revolute", SDF_AXIS),
        ("prismatic", "prismatic", SDF_AXIS),
        ("ball", "spherical", ""),
        ("fixed", "fixed", ""),
        ("screw", "helical",
         f"{SDF_AXIS}<screw_thread_pitch>{2 * np.pi * PITCH!r}</screw_thread_pitch>"),
        ("screw", "helical", f"{SDF_AXIS}<thread_pitch>{-1 / PITCH!r}</thread_pitch>"),
    ],
)  # fmt: skip
def test_a_gazebo_joint_is_closed_where_all_coordinates_are_zero(
    kind: str, ours: str, inside: str
) -> None:
    loaded = pl.load(pair_of_arms(gazebo(kind, inside)))
    rigid = () if kind == "ball" else ("loop 'l' can be closed, but cannot move (mobility 0)",)
    assert tuple(warning.partition(": ")[2] for warning in loaded.warnings) == rigid
    np.testing.assert_allclose(pl.Constraints(loaded).residual(np.zeros(4)), 0, atol=1e-14)
    same_constraints(loaded, same_loop(ours))


@pytest.mark.parametrize("kind", ["universal", "revolute2"])
def test_a_gazebo_cross_turns_about_two_axes_of_its_own_frame(kind: str) -> None:
    inside = f"{SDF_AXIS}<axis2><xyz>{words(2 * ACROSS)}</xyz></axis2>"
    loaded = pl.load(pair_of_arms(gazebo(kind, inside)))
    np.testing.assert_allclose(pl.Constraints(loaded).residual(np.zeros(4)), 0, atol=1e-14)
    same_constraints(loaded, same_loop("universal", AXES))


def test_a_gazebo_joint_turns_about_z_unless_told_otherwise_and_may_hold_the_world() -> None:
    loaded = pl.load(pair_of_arms(gazebo("revolute", "", "world")))
    (loop,) = loaded.loops
    assert (loop.body_a, loop.body_b) == ("ground", "s")
    text = (
        '<loop_joint name="l" type="revolute"><axis xyz="0 0 1"/>'
        f'<link1 link="base" {quat(ZERO_S * pose(*POSE_B))}/>'
        f'<link2 link="s" {placed(POSE_B)}/></loop_joint>'
    )
    same_constraints(loaded, pl.load(pair_of_arms(text)))
    bare = gazebo("ball", "").replace(f"<pose>{words(POSE_B[0])} {words(POSE_B[1])}</pose>", "")
    point = f'<link1 link="q" {quat(ZERO_Q.actInv(ZERO_S))}/><link2 link="s"/>'
    same_constraints(
        pl.load(pair_of_arms(bare)),
        pl.load(pair_of_arms(f'<loop_joint name="l" type="ball">{point}</loop_joint>')),
    )


def drake(name: str = "") -> str:
    ends = (("A", "q", "p_AP", ON_Q.translation), ("B", "s", "p_BQ", POSE_B[0]))
    inside = "".join(
        f'<drake:ball_constraint_body_{side} name="{body}"/>'
        f'<drake:ball_constraint_{key} value="{words(point)}"/>'
        for side, body, key, point in ends
    )
    return f"<drake:ball_constraint {name}>{inside}</drake:ball_constraint>"


def test_a_ball_of_drake_is_a_spherical_loop() -> None:
    loaded = pl.load(pair_of_arms(drake('name="l"')))
    assert [loop.name for loop in loaded.loops] == ["l"]
    same_constraints(loaded, same_loop("spherical"))
    (loop,) = pl.load(pair_of_arms(drake())).loops
    assert "q" in loop.name and "s" in loop.name


def test_other_constraints_of_drake_are_warned_of() -> None:
    loaded = pl.load(pair_of_arms("<drake:bushing/>"))
    (warning,) = loaded.warnings
    assert "<text>:11:" in warning and "<drake:bushing>" in warning


def closing_links() -> str:
    """Frames of onshape-to-robot: links without mass, fixed to q and s."""
    text = ""
    for number, body, where in (("1", "q", ON_Q), ("2", "s", pose(*POSE_B))):
        text += (
            f'<link name="closing_x_{number}"/><joint name="closing_x_{number}_frame" type="fixed">'
            f'<origin {quat(where)}/><parent link="{body}"/><child link="closing_x_{number}"/>'
            "</joint>"
        )
    return text


def as_dict(pair: str, **more: Any) -> Mapping[str, Any]:
    roll = pin.rpy.matrixToRpy(ON_Q.rotation)
    return {
        "loops": [
            {
                "name": "l",
                "pair": pair,
                "a": {"body": "q", "xyz": ON_Q.translation, "rpy": roll},
                "b": {"body": "s", "xyz": POSE_B[0], "rpy": POSE_B[1]},
                **more,
            }
        ]
    }


DIALECTS: dict[str, list[tuple[str, Mapping[str, Any] | None]]] = {
    "spherical": [
        (gazebo("ball", ""), None),
        (drake(), None),
        (closing_links(), None),
        ("", as_dict("spherical")),
        (closing_links(), {"closed_loop": [["closing_x_1", "closing_x_2"]], "type": ["3d"]}),
    ],
    "revolute": [
        (gazebo("revolute", SDF_AXIS), None),
        ("", as_dict("revolute", axis=AXIS)),
        (closing_links(), {"loops": [{
            "name": "closing_x", "pair": "revolute", "axis": AXIS,
            "a": {"frame": "closing_x_1"}, "b": {"frame": "closing_x_2"}}]}),
        (
            f'<loop name="l" type="revolute"><axis xyz="{words(AXIS)}"/>'
            f'<predecessor link="q"><origin {quat(ON_Q)}/></predecessor>'
            f'<successor link="s"><origin {placed(POSE_B)}/></successor></loop>', None,
        ),
        (
            f'<constraint name="l" type="revolute"><parent link="q"/><parent_origin {quat(ON_Q)}/>'
            f'<parent_axis xyz="{words(AXIS)}"/><child link="s"/><child_origin {placed(POSE_B)}/>'
            f'<child_axis xyz="{words(AXIS)}"/></constraint>', None,
        ),
    ],
    "fixed": [
        (gazebo("fixed", ""), None),
        (closing_links(), {"closed_loop": [["closing_x_1", "closing_x_2"]], "type": ["6d"]}),
    ],
}  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "number"), [(kind, n) for kind, many in DIALECTS.items() for n in range(len(many))]
)
def test_every_dialect_says_the_same(kind: str, number: int) -> None:
    extra, loops = DIALECTS[kind][number]
    loaded = pl.load(pair_of_arms(extra), loops=loops)
    assert len(loaded.loops) == 1
    same_constraints(loaded, same_loop(kind))

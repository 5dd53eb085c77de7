"""URDF: links, joints and what belongs to them; loop elements are in `test_urdf_loops`."""

from __future__ import annotations

import numpy as np
import pinocchio as pin
import pytest

import pinloop as pl

from .urdf_by_hand import (
    INERTIAL,
    Array,
    inertial,
    joint,
    link,
    pose,
    robot,
    rotation,
    shift,
    turn,
    words,
)

ORIGIN = ((0.3, -0.1, 0.2), (0.4, -0.7, 1.1))
AXIS = np.array([1.0, -2.0, 2.0]) / 3


def one_joint(kind: str, *, inside: str = "", attributes: str = "", child: str = "") -> str:
    """A joint called j from base to tip, its axis not of unit length."""
    text = joint("j", "base", "tip", kind, xyz=ORIGIN[0], rpy=ORIGIN[1], axis=5 * AXIS,
                 inside=inside, attributes=attributes)  # fmt: skip
    text = text.replace('<child link="tip"/>', f'<child link="tip" {child}/>')
    return robot(link("base", ""), link("tip"), text)


def circle(angle: float) -> list[float]:
    return [np.cos(angle), np.sin(angle)]


def quaternion(R: Array) -> list[float]:
    return list(pin.Quaternion(R).coeffs())


def perpendicular(a: Array) -> tuple[Array, Array]:
    """Two unit vectors with ``a``, right-handed."""
    x = np.cross(a, [0.1, 0.7, -0.3])
    x /= np.linalg.norm(x)
    return x, np.cross(a, x)


SECOND = perpendicular(AXIS)[0]

MOTIONS: list[tuple[str, str, list[float], pin.SE3]] = [
    ("fixed", "", [], pin.SE3.Identity()),
    ("revolute", "", [0.8], turn(AXIS, 0.8)),
    ("continuous", "", [7.5], turn(AXIS, 7.5)),
    ("continuous", 'coordinates="circle"', circle(2.1), turn(AXIS, 2.1)),
    ("prismatic", "", [0.8], shift(*(0.8 * AXIS))),
    ("helical", 'pitch="0.05"', [0.8], shift(*(0.04 * AXIS)) * turn(AXIS, 0.8)),
    ("screw", 'pitch="-0.5"', [-0.8], shift(*(0.4 * AXIS)) * turn(AXIS, -0.8)),
    ("cylindrical", "", [0.3, 0.8], shift(*(0.3 * AXIS)) * turn(AXIS, 0.8)),
    ("universal", "", [0.8, -0.5], turn(AXIS, 0.8) * turn(SECOND, -0.5)),
    (
        "spherical", "", quaternion(rotation((1, 2, 3), 1.2)),
        pin.SE3(rotation((1, 2, 3), 1.2), np.zeros(3)),
    ),
    (
        "ball", 'coordinates="zyx"', [0.3, 0.4, 0.5],
        turn((0, 0, 1), 0.3) * turn((0, 1, 0), 0.4) * turn((1, 0, 0), 0.5),
    ),
    ("spatial_translation", "", [0.1, 0.2, 0.3], shift(0.1, 0.2, 0.3)),
    (
        "floating", "", [0.1, 0.2, 0.3, *quaternion(rotation((1, 2, 3), 1.2))],
        shift(0.1, 0.2, 0.3) * turn((1, 2, 3), 1.2),
    ),
    (
        "free", 'coordinates="SO3xR3"', [0.1, 0.2, 0.3, *quaternion(rotation((1, 2, 3), 1.2))],
        shift(0.1, 0.2, 0.3) * turn((1, 2, 3), 1.2),
    ),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "attributes", "q", "motion"), MOTIONS)
def test_a_joint_moves_its_child_about_its_normalised_axis(
    kind: str, attributes: str, q: list[float], motion: pin.SE3
) -> None:
    inside = f'<axis2 xyz="{words(3 * SECOND)}"/>'
    loaded = pl.load(one_joint(kind, inside=inside, attributes=attributes))
    expected = pose(*ORIGIN) * motion
    np.testing.assert_allclose(
        loaded.placement(q, "tip").homogeneous, expected.homogeneous, atol=1e-14
    )
    # Our own addition: where the joint sits on its child.
    on_child = pose((0.2, 0.1, -0.4), (0.5, 0.6, -0.7))
    child = 'xyz="0.2 0.1 -0.4" rpy="0.5 0.6 -0.7"'
    moved = pl.load(one_joint(kind, inside=inside, attributes=attributes, child=child))
    expected = expected * on_child.inverse()
    np.testing.assert_allclose(
        moved.placement(q, "tip").homogeneous, expected.homogeneous, atol=1e-14
    )


@pytest.mark.parametrize("kind", ["planar", "planar_translation", "schoenflies"])
def test_pairs_with_a_plane_slide_along_it_and_turn_about_its_normal(kind: str) -> None:
    loaded = pl.load(one_joint(kind))
    model = loaded.model
    rng = np.random.default_rng(2)
    turned = 0.0
    for q in (pin.randomConfiguration(model, *_box(model)) for _ in range(5)):
        T = pose(*ORIGIN).actInv(loaded.placement(q, "tip"))
        np.testing.assert_allclose(T.rotation @ AXIS, AXIS, atol=1e-14)
        if kind != "schoenflies":
            assert abs(AXIS @ T.translation) < 1e-14
        turned = max(turned, float(np.linalg.norm(T.rotation - np.eye(3))))
        # The axes of the plane are orthonormal: lengths are kept.
        assert np.linalg.norm(T.translation) == pytest.approx(
            np.linalg.norm(q[: 3 if kind == "schoenflies" else 2])
        )
        v = rng.normal(size=loaded.nv)
        assert np.isfinite(pin.integrate(model, q, v)).all()
    assert (turned > 0.1) == (kind != "planar_translation")


def _box(model: pin.Model) -> tuple[Array, Array]:
    return -np.ones(model.nq), np.ones(model.nq)


def test_without_an_axis_the_joint_turns_about_x() -> None:
    text = robot(link("base", ""), link("tip"), joint("j", "base", "tip"))
    np.testing.assert_allclose(
        pl.load(text).placement([0.8], "tip").rotation, rotation((1, 0, 0), 0.8), atol=1e-15
    )
    bare = text.replace("</joint>", "<axis/></joint>")
    np.testing.assert_allclose(
        pl.load(bare).placement([0.8], "tip").rotation, rotation((1, 0, 0), 0.8), atol=1e-15
    )


def random_tree(rng: np.random.Generator, size: int) -> str:
    """A tree whose joint names do not come in the order of the file."""
    names = [f"j{number}" for number in rng.permutation(size)]
    parts = [link("l0")]
    for index, name in enumerate(names):
        kind = str(rng.choice(["revolute", "prismatic", "fixed", "floating", "revolute"]))
        A = rng.normal(size=(3, 3))
        inside = inertial(
            rng.uniform(0.5, 2), A @ A.T + np.eye(3), rng.normal(size=3), rng.normal(size=3)
        )
        parts.append(link(f"l{index + 1}", inside))
        limit = '<limit lower="-1" upper="2" effort="3" velocity="4"/>'
        axis = [(1, 0, 0), (0, -1, 0), (0, 0, 1), (0.6, 0, 0.8)][rng.integers(4)]
        parts.append(
            joint(
                name,
                f"l{rng.integers(index + 1)}",
                f"l{index + 1}",
                kind,
                xyz=rng.normal(size=3),
                rpy=rng.normal(size=3),
                axis=axis,
                inside="" if kind == "floating" else limit,
            )
        )
    return robot(*(parts[place] for place in rng.permutation(len(parts))))


@pytest.mark.parametrize("seed", range(12))
def test_a_tree_is_the_one_that_pinocchio_reads(seed: int) -> None:
    rng = np.random.default_rng(seed)
    text = random_tree(rng, int(rng.integers(1, 12)))
    loaded, theirs = pl.load(text), pin.buildModelFromXML(text)
    ours = loaded.model
    assert list(ours.names)[1:] == list(theirs.names)[1:]
    assert (ours.nq, ours.nv) == (theirs.nq, theirs.nv)
    q = pin.randomConfiguration(theirs, *_box(theirs))
    v, a = rng.normal(size=ours.nv), rng.normal(size=ours.nv)
    np.testing.assert_allclose(
        pin.rnea(ours, ours.createData(), q, v, a),
        pin.rnea(theirs, theirs.createData(), q, v, a),
        atol=1e-9,
    )
    for body in loaded.bodies:
        data = theirs.createData()
        pin.framesForwardKinematics(theirs, data, q)
        np.testing.assert_allclose(
            loaded.placement(q, body).homogeneous,
            data.oMf[theirs.getFrameId(body, pin.FrameType.BODY)].homogeneous,
            atol=1e-12,
        )


def test_an_inertia_is_that_of_the_points_it_stands_for() -> None:
    """Point masses in the inertial frame: moments and products are summed there and in the link."""
    rng = np.random.default_rng(7)
    points, masses = rng.normal(size=(6, 3)), rng.uniform(0.2, 1, 6)
    points -= masses @ points / masses.sum()
    x, y, z = points.T
    where = (0.3, -0.2, 0.1), (0.3, 0.9, -1.2)
    products = [[-masses @ (a * b) for a in points.T] for b in points.T]
    tensor = np.array(products) + masses @ (x**2 + y**2 + z**2) * np.eye(3)
    inside = inertial(masses.sum(), tensor, *where)
    free = joint("j", "base", "tip", "free")
    loaded = pl.load(robot(link("base", ""), link("tip", inside), free))
    frame = pose(*where)
    placed = points @ frame.rotation.T + frame.translation
    inertia = loaded.model.inertias[1]
    assert inertia.mass == pytest.approx(masses.sum())
    np.testing.assert_allclose(inertia.lever, masses @ placed / masses.sum(), atol=1e-14)
    arms = placed - inertia.lever
    expected = sum(
        m * (p @ p * np.eye(3) - np.outer(p, p)) for m, p in zip(masses, arms, strict=True)
    )
    np.testing.assert_allclose(inertia.inertia, expected, atol=1e-14)


def limits(loaded: pl.Mechanism) -> dict[str, float]:
    model = loaded.model
    return {
        "lower": model.lowerPositionLimit[0],
        "upper": model.upperPositionLimit[0],
        "velocity": model.upperVelocityLimit[0],
        "effort": model.upperEffortLimit[0],
    }


NONE = {"lower": -np.inf, "upper": np.inf, "velocity": np.inf, "effort": np.inf}


@pytest.mark.parametrize(
    ("kind", "limit", "expected"),
    [
        ("revolute", 'lower="-1" upper="2" velocity="3" effort="4"',
         {"lower": -1, "upper": 2, "velocity": 3, "effort": 4}),
        ("prismatic", 'lower="-1" upper="2"', {"lower": -1, "upper": 2}),
        ("revolute", 'upper="2"', {"lower": 0, "upper": 2}),
        ("revolute", 'lower="-2"', {"lower": -2, "upper": 0}),
        ("revolute", 'lower="-inf" upper="inf" effort="inf"', {}),
        ("continuous", 'lower="-1" upper="2" velocity="3" effort="4"',
         {"velocity": 3, "effort": 4}),
        ("revolute", 'velocity="3" effort="0"', {"velocity": 3, "effort": 0}),
        ("cylindrical", 'velocity="3 4" effort="5 6" lower="-1 -2" upper="1 2"',
         {"lower": -1, "upper": 1, "velocity": 3, "effort": 5}),
        ("planar", 'effort="4" velocity="3"', {"effort": 4, "velocity": 3}),
    ],
)  # fmt: skip
def test_limits_are_kept_and_what_is_not_given_is_unlimited(
    kind: str, limit: str, expected: dict[str, float]
) -> None:
    loaded = pl.load(one_joint(kind, inside=f"<limit {limit}/>"))
    assert limits(loaded) == NONE | expected
    if loaded.nv == 2:
        assert loaded.model.upperPositionLimit[1] == 2 and loaded.model.upperEffortLimit[1] == 6
    warned = any(
        "<joint name='j'> has no position limits" in warning for warning in loaded.warnings
    )
    assert warned == (kind == "revolute" and "er=" not in limit)


def test_losses_and_armature_are_kept_for_every_degree_of_freedom() -> None:
    dynamics = '<dynamics damping="0.5" friction="0.25" armature="0.125"/>'
    for kind, dof in (("revolute", 1), ("universal", 2), ("floating", 6)):
        inside = f'<limit effort="1" velocity="1" lower="-1" upper="1"/>{dynamics}'
        inside = dynamics if dof > 1 else inside
        model = pl.load(one_joint(kind, inside=f'{inside}<axis2 xyz="{words(SECOND)}"/>')).model
        np.testing.assert_array_equal(model.damping, np.full(dof, 0.5))
        np.testing.assert_array_equal(model.upperDryFrictionLimit, np.full(dof, 0.25))
        np.testing.assert_array_equal(model.armature, np.full(dof, 0.125))
    two = '<dynamics damping="1 2" friction="3 4" armature="5 6"/>'
    model = pl.load(one_joint("cylindrical", inside=two)).model
    np.testing.assert_array_equal(model.damping, [1, 2])
    np.testing.assert_array_equal(model.upperDryFrictionLimit, [3, 4])
    np.testing.assert_array_equal(model.armature, [5, 6])
    assert pl.load(one_joint("fixed", inside=dynamics)).nv == 0


def closed(first: str, second: str) -> str:
    """Base, p and q one above the other, and a link r that both carry at (0, 1, 0)."""
    return robot(
        link("base", ""),
        link("p"),
        link("q"),
        link("r", INERTIAL.replace('value="1"', 'value="8"')),
        joint("on_p", "base", "p", axis=(0, 0, 1)),
        joint("on_q", "base", "q", xyz=(0, 0, 0.2), axis=(0, 0, 1)),
        joint(first, "p", "r", xyz=(0, 1, 0), axis=(0, 0, 1)),
        joint(second, "q", "r", xyz=(0, 1, -0.2), axis=(0, 0, 1)),
    )


def test_a_link_with_two_parents_is_one_body_in_a_loop() -> None:
    """Which joint comes first in the file decides, not which comes first in the alphabet."""
    for first, second in (("r_a", "r_b"), ("r_b", "r_a")):
        loaded = pl.load(closed(first, second))
        assert loaded.bodies == ("base", "p", "q", "r")
        assert [loop.name for loop in loaded.loops] == [second]
        assert set(loaded.joints) == {"on_p", "on_q", first}
        assert sum(inertia.mass for inertia in loaded.model.inertias) == pytest.approx(10)
        (warning,) = (w for w in loaded.warnings if "second parent" in w)
        assert "<text>:9:" in warning and f"'{second}'" in warning and f"'{first}'" in warning
        # Turned alike, p and q carry r along, however r turns.
        constraints = pl.Constraints(loaded)
        np.testing.assert_allclose(constraints.residual(np.zeros(3)), 0, atol=1e-15)
        closed_q = loaded.configuration({"on_p": 0.3, "on_q": 0.3, first: -0.7})
        np.testing.assert_allclose(constraints.residual(closed_q), 0, atol=1e-15)
        assert np.abs(constraints.residual(loaded.configuration({"on_p": 0.3}))).max() > 0.2


def test_the_way_to_a_link_with_two_parents_leads_over_the_first() -> None:
    """The angle of the link for a coupling, and its place for a joint of Gazebo."""
    coupling = (
        '<coupling name="c"><predecessor link="base"/><successor link="r"/><ratio value="1"/>'
        "</coupling>"
    )
    for first, second in (("r_a", "r_b"), ("r_b", "r_a")):
        text = closed(first, second)
        (loaded,) = pl.load(text.replace("</robot>", coupling + "</robot>")).couplings
        assert set(loaded.joints) == {"on_p", first}
        # The second joint is open by 3 m at zero coordinates: that must not move the link.
        apart = text.replace("0.0 1.0 -0.2", "0.0 4.0 -0.2")
        ball = (
            '<gazebo><joint name="g" type="ball"><parent>world</parent><child>r</child></joint>'
            "</gazebo></robot>"
        )
        robot = pl.load(apart.replace("</robot>", ball))
        frame = robot.model.frames[robot.model.getFrameId("g/A")]
        np.testing.assert_allclose(frame.placement.translation, [0, 1, 0], atol=1e-15)


def test_the_user_may_cut_the_other_parent() -> None:
    both = [pl.load(closed("r_a", "r_b"), loops=loops) for loops in ({"cut": ["r_a"]}, None)]
    assert [[loop.name for loop in loaded.loops] for loaded in both] == [["r_a"], ["r_b"]]
    assert set(both[0].joints) == {"on_p", "on_q", "r_b"}
    # The same mechanism: a configuration closes one if it closes the other.
    for angle in (0.4, -1.1):
        for loaded in both:
            free = loaded.joints[[name.startswith("r_") for name in loaded.joints].index(True)]
            q = loaded.configuration({"on_p": angle, "on_q": angle, free: -2 * angle})
            np.testing.assert_allclose(pl.Constraints(loaded).residual(q), 0, atol=1e-15)
            np.testing.assert_allclose(
                loaded.placement(q, "r").translation, rotation((0, 0, 1), angle) @ [0, 1, 0],
                atol=1e-15,
            )  # fmt: skip

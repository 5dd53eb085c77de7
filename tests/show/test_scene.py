"""What is drawn, where and in which colour: through the commands, as the page would play them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pinocchio as pin
import pytest
from numpy.testing import assert_allclose

from pinloop.model.description import GROUND, Body, Description, Joint, NamedFrame, constant
from pinloop.model.mechanism import Mechanism, build
from pinloop.model.pairs import PAIR_NAMES, make_pair
from pinloop.show.scene.commands import packed
from pinloop.show.scene.scene import LOOP, make_scene

from .scenes import RED, Played, arm, at, moved, open_pair, visual

DOWN = np.array([np.pi / 2])
"""The hinge about y turned by a quarter: the link's x points down, its z along the world's x."""


def played(robot: Mechanism, q: object = None) -> Played:
    return Played(make_scene(robot).commands(robot.neutral if q is None else q))  # type: ignore[arg-type]


def test_a_cylinder_of_the_page_lies_along_z_of_the_file() -> None:
    robot = arm(visual("tube", "link", "cylinder", (0.1, 0.6), at(0.3, 0, 0)))
    page = played(robot)
    geometry = page.geometry("robot", "link", "tube")
    assert geometry["type"] == "CylinderGeometry"
    assert (geometry["radiusTop"], geometry["radiusBottom"]) == (0.1, 0.1)
    assert geometry["height"] == 0.6
    # three.js centres its cylinder and lays it along y; the tube stands upright at x = 0.3.
    matrix = page.matrix("robot", "link", "tube")
    assert_allclose(moved(matrix, (0, 0.3, 0)), (0.3, 0, 0.5), atol=1e-12)
    assert_allclose(moved(matrix, (0, -0.3, 0)), (0.3, 0, -0.1), atol=1e-12)
    assert np.linalg.det(matrix[:3, :3]) == pytest.approx(1)


def test_parts_move_with_their_body() -> None:
    robot = arm(visual("tube", "link", "cylinder", (0.1, 0.6), at(0.3, 0, 0)))
    matrix = played(robot, DOWN).matrix("robot", "link", "tube")
    # The link's point (0.3, 0, 0.3) goes to (0.3, 0, -0.3), from the hinge at z = 0.2.
    assert_allclose(moved(matrix, (0, 0.3, 0)), (0.3, 0, -0.1), atol=1e-12)
    assert_allclose(moved(matrix, (0, -0.3, 0)), (-0.3, 0, -0.1), atol=1e-12)


def test_placing_moves_what_commands_drew() -> None:
    robot = arm(visual("tube", "link", "cylinder", (0.1, 0.6), at(0.3, 0, 0)))
    scene = make_scene(robot)
    page = Played([*scene.commands(robot.neutral), *scene.placing(DOWN)])
    expected = played(robot, DOWN)
    path = ("robot", "link", "tube")
    assert_allclose(page.matrix(*path), expected.matrix(*path), atol=1e-15)


def test_a_box_keeps_its_edges_and_its_placement() -> None:
    quarter = pin.utils.rotate("z", np.pi / 2)
    robot = arm(visual("block", "base", "box", (1.0, 2.0, 3.0), at(5, 6, 7, quarter)))
    page = played(robot)
    geometry = page.geometry("robot", "base", "block")
    assert [geometry[key] for key in ("width", "height", "depth")] == [1.0, 2.0, 3.0]
    assert_allclose(moved(page.matrix("robot", "base", "block"), (0.5, 0, 0)), (5, 6.5, 7))


def test_spheres_and_ellipsoids() -> None:
    robot = arm(
        visual("ball", "base", "sphere", (0.2,), at(1, 0, 0)),
        visual("egg", "base", "ellipsoid", (0.1, 0.2, 0.3), at(0, 1, 0)),
    )
    page = played(robot)
    assert page.geometry("robot", "base", "ball")["radius"] == 0.2
    assert page.geometry("robot", "base", "egg")["radius"] == 1.0
    matrix = page.matrix("robot", "base", "egg")
    poles = [moved(matrix, axis) for axis in np.eye(3)]
    assert_allclose(poles, [(0.1, 1, 0), (0, 1.2, 0), (0, 1, 0.3)], atol=1e-12)


def test_a_capsule_is_round_at_both_ends() -> None:
    robot = arm(visual("pill", "base", "capsule", (0.1, 0.6), at(0, 0, 0)))
    page = played(robot)
    geometry = page.geometry("robot", "base", "pill")
    profile = np.array([(point["x"], point["y"]) for point in geometry["points"]])
    assert_allclose(profile[[0, -1]], [(0, -0.4), (0, 0.4)], atol=1e-12)
    # Every point of the profile is 0.1 from the axis or from the nearer end of the tube.
    distance = np.hypot(profile[:, 0], profile[:, 1] - np.clip(profile[:, 1], -0.3, 0.3))
    assert_allclose(distance, 0.1, atol=1e-12)
    assert_allclose(moved(page.matrix("robot", "base", "pill"), (0, 0.4, 0)), (0, 0, 0.4))


def test_colours_of_the_file() -> None:
    robot = arm(
        visual("a", "base", "sphere", (1.0,), at(0, 0, 0), color=(1.0, 0.5, 0.0, 1.0)),
        visual("b", "base", "sphere", (1.0,), at(0, 0, 0), color=(0.0, 0.0, 1.0, 0.25)),
    )
    page = played(robot)
    first, second = (page.material("robot", "base", name) for name in "ab")
    assert first["color"] == 0xFF8000
    assert not first["transparent"]
    assert first["depthTest"]
    assert second["color"] == 0x0000FF
    assert (second["transparent"], second["opacity"]) == (True, 0.25)


def test_bodies_without_a_colour_differ() -> None:
    robot = arm(
        visual("a", "base", "sphere", (1.0,), at(0, 0, 0)),
        visual("b", "base", "sphere", (1.0,), at(0, 0, 0)),
        visual("c", "link", "sphere", (1.0,), at(0, 0, 0)),
    )
    page = played(robot)
    colors = [page.material("robot", *path)["color"] for path in (("base", "a"), ("base", "b"))]
    assert colors[0] == colors[1] != page.material("robot", "link", "c")["color"]


def test_collision_shapes_stand_in_for_visuals_only_if_there_are_none() -> None:
    seen = visual("seen", "link", "sphere", (0.1,), at(0, 0, 0))
    hull = visual("hull", "link", "box", (0.1, 0.1, 0.1), at(0, 0, 0), role="collision")
    assert played(arm(seen, hull)).below("robot") == [("robot", "link", "seen")]
    assert played(arm(hull)).below("robot") == [("robot", "link", "hull")]


def test_sticks_stand_in_for_shapes() -> None:
    naked = arm()
    page = played(naked)
    assert not page.below("robot")
    assert "visible" not in page.properties.get(("skeleton",), {})
    # The hinge: a pin along y. The link: a stick from the hinge to its centre of mass.
    hinge = page.matrix("skeleton", "base", "hinge A")
    pin_axis = moved(hinge, (0, 1, 0)) - moved(hinge, (0, 0, 0))
    assert_allclose(np.abs(pin_axis), (0, 1, 0), atol=1e-12)
    assert_allclose(moved(hinge, (0, 0, 0)), (0, 0, 0.2), atol=1e-12)
    stick = page.matrix("skeleton", "link", "stick 0")
    length = page.geometry("skeleton", "link", "stick 0")["height"]
    ends = sorted(tuple(np.round(moved(stick, (0, s * length / 2, 0)), 12)) for s in (-1, 1))
    assert_allclose(ends, [(0, 0, 0.2), (0.3, 0, 0.2)], atol=1e-9)


def test_a_named_frame_is_where_a_last_link_leads_to() -> None:
    robot = arm()
    tool = NamedFrame("tool", "link", at(0, 0, 0.7))
    robot = build(replace(robot.description, frames=(tool,)))
    page = played(robot)
    assert page.geometry("skeleton", "link", "stick 0")["height"] == pytest.approx(0.7)


def test_the_skeleton_of_a_dressed_robot_waits_to_be_switched_on() -> None:
    page = played(arm(visual("ball", "link", "sphere", (0.1,), at(0, 0, 0))))
    assert page.below("skeleton")
    assert page.properties[("skeleton",)] == {"visible": False}


def test_loop_joints_are_drawn_at_both_their_frames() -> None:
    robot = open_pair(make_pair("spherical"), 0.8)
    page = played(robot)
    for side, place in (("A", (0, 0, 0)), ("B", (0.8, 0, 0.4))):
        (path,) = page.below("loops", "closer", side)
        assert_allclose(moved(page.matrix(*path), (0, 0, 0)), place, atol=1e-12)
        red, green, blue = (round(255 * value) for value in LOOP[:3])
        assert page.material(*path)["color"] == red * 65536 + green * 256 + blue


def test_a_rod_is_drawn_from_end_to_end() -> None:
    robot = open_pair(make_pair("rod", length=0.5), 0.3)
    page = played(robot)
    (path,) = page.below("loops", "closer", "rod")
    length = page.geometry(*path)["height"]
    assert length == 0.5
    # From the origin to (0.3, 0, 0.4), which is 0.5 away: the rod fits.
    ends = [moved(page.matrix(*path), (0, s * 0.25, 0)) for s in (-1, 1)]
    assert_allclose(sorted(map(tuple, ends)), [(0, 0, 0), (0.3, 0, 0.4)], atol=1e-9)


@pytest.mark.parametrize("name", [name for name in PAIR_NAMES if name != "free"])
def test_every_pair_has_a_symbol_at_both_ends(name: str) -> None:
    parameters = {"helical": {"pitch": 0.1}, "rod": {"length": 0.5}}
    page = played(open_pair(make_pair(name, **parameters.get(name, {})), 0.3))
    assert page.below("loops", "closer", "A")
    assert page.below("loops", "closer", "B")


def test_symbols_of_loop_joints_shine_through_links() -> None:
    bare = open_pair(make_pair("revolute"), 0.3)
    ball = visual("ball", "a", "sphere", (0.1,), at(0, 0, 0))
    dressed = build(replace(bare.description, geometry=(ball,)))
    path = ("loops", "closer", "A", "symbol")
    assert played(bare).material(*path)["depthTest"]
    assert not played(dressed).material(*path)["depthTest"]


def test_names_do_not_fall_apart_into_paths() -> None:
    robot = arm(
        visual("left/wheel", "link", "sphere", (0.1,), at(0, 0, 0)),
        visual("left/wheel", "link", "sphere", (0.2,), at(0, 0, 0)),
    )
    paths = played(robot).below("robot", "link")
    assert len(paths) == len(set(paths)) == 2
    assert {len(path) for path in paths} == {3}


def test_shapes_on_the_ground_stay_there() -> None:
    robot = arm(visual("floor", "ground", "box", (1.0, 1.0, 0.1), at(0, 0, -0.05), color=RED))
    matrix = played(robot, DOWN).matrix("robot", "ground", "floor")
    assert_allclose(matrix[:3, 3], (0, 0, -0.05))


def test_the_same_robot_gives_the_same_bytes() -> None:
    shapes = (visual("a", "link", "sphere", (0.1,), at(0, 0, 0)),)
    first, second = (
        [packed(command) for command in make_scene(arm(*shapes)).commands(DOWN)] for _ in range(2)
    )
    assert first == second


def test_the_points_to_be_seen_move_with_the_robot() -> None:
    scene = make_scene(arm(visual("tube", "link", "cylinder", (0.1, 0.6), at(0.3, 0, 0))))
    for q, low, high in (
        ([0.0], (0.2, -0.1, -0.1), (0.4, 0.1, 0.5)),
        (DOWN, (-0.3, -0.1, -0.2), (0.3, 0.1, 0.0)),
    ):
        points = scene.points(q)
        assert_allclose(points.min(axis=0), low, atol=1e-12)
        assert_allclose(points.max(axis=0), high, atol=1e-12)


def floating_triangle() -> Mechanism:
    """A floating plate with three feet on hinges at the corners of a triangle."""
    corners = {"foot_a": (0.9, 0, 0), "foot_b": (0, 0.9, 0), "foot_c": (0, 0, 0.9)}
    moments = constant(0.01 * np.eye(3))
    joints = [Joint("float", make_pair("free"), GROUND, "plate", at(5, 5, 5), at(0, 0, 0))]
    for name, corner in corners.items():
        joints.append(
            Joint(f"hinge_{name}", make_pair("revolute"), "plate", name, at(*corner), at(0, 0, 0))
        )
    bodies = tuple(Body(name, 1.0, inertia=moments) for name in ("plate", *corners))
    return build(Description("plate", bodies, tuple(joints)))


def test_sticks_of_a_platform_meet_in_its_middle() -> None:
    page = played(floating_triangle())
    sticks = page.below("skeleton", "plate", "stick 0") + page.below("skeleton", "plate", "stick 1")
    # The centre of the corners, 5 m away in each direction; nothing leads to the free joint.
    for path in sticks:
        half = page.geometry(*path)["height"] / 2
        ends = [moved(page.matrix(*path), (0, s * half, 0)) for s in (-1, 1)]
        assert min(np.linalg.norm(end - (5.3, 5.3, 5.3)) for end in ends) < 1e-12
    assert len([path for path in page.below("skeleton") if path[2].startswith("stick")]) == 3
    assert not page.below("skeleton", "ground")

"""Replays: poses over time as the page decodes them, who stands when, lines, lighter meshes."""

from __future__ import annotations

import base64
import json
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pinocchio as pin
import pytest
import trimesh
from numpy.testing import assert_allclose
from numpy.typing import NDArray

import pinloop as pl
from pinloop.model.description import NamedFrame
from pinloop.model.mechanism import build
from pinloop.show.scene.motion import frame_times, standing_spans
from pinloop.show.scene.replay import Additions, Layer, Trace, make_replay
from pinloop.show.scene.scene import make_scene
from pinloop.show.scene.solids import Solid, decimate, tube
from pinloop.simulation.trajectory import Trajectory

from .scenes import Played, arm, at, visual

Array = NDArray[np.float64]
BAR = visual("bar", "link", "box", (0.6, 0.1, 0.1), at(0.3, 0, 0))


def swing(until: float = 0.8, speed: float = 3.0, **more: Any) -> Trajectory:
    """The arm of `scenes` let go."""
    robot = arm(BAR)
    return pl.simulate(robot, robot.neutral, np.array([speed]), until=until, **more)


def decoded(data: dict[str, Any]) -> tuple[Array, Array]:
    """Positions and quaternions of the frames, as the page has them."""
    shape = len(data["times"]), len(data["paths"])
    cells = np.frombuffer(base64.b64decode(data["positions"]), "<u2").reshape(*shape, 3)
    turns = np.frombuffer(base64.b64decode(data["quaternions"]), "<i2").reshape(*shape, 4)
    return np.array(data["low"]) + np.array(data["step"]) * cells, turns / 32767.0


def test_frames_show_where_bodies_are() -> None:
    run = swing()
    data = make_replay(run).data()
    positions, quaternions = decoded(data)
    column = data["paths"].index("robot/link")
    # The link turns about y, its frame is in the hinge 0.2 m above the ground.
    angle = run(data["times"]).q[:, 0]
    expected = np.column_stack([0 * angle, np.sin(angle / 2), 0 * angle, np.cos(angle / 2)])
    assert_allclose(positions[:, column], np.tile([0, 0, 0.2], (len(angle), 1)), atol=1e-9)
    assert_allclose(quaternions[:, column], expected * np.sign(expected[0, 3]), atol=2e-5)


def test_places_are_kept_to_a_few_hundredths_of_a_millimetre() -> None:
    run = swing()
    robot = run.robot
    replay = make_replay(run, marked=["hinge"])
    scene = make_scene(robot, marked=["hinge"])
    positions, _ = decoded(replay.data())
    nodes = [node.path for node in scene.nodes]
    for t, row in zip(replay.t, positions, strict=True):
        matrices = scene.placements(run(t).q)
        for path, place in zip(replay.paths, row, strict=True):
            assert_allclose(place, matrices[nodes.index(path)][:3, 3], atol=2e-5)


def test_quaternions_do_not_jump() -> None:
    run = swing(until=1.5, speed=40.0)
    assert np.ptp(run.q[:, 0]) > 4 * np.pi
    quaternions = make_replay(run).quaternions
    turns = np.sum(quaternions[1:] * quaternions[:-1], axis=2)
    assert turns.min() > 0.8


def test_what_does_not_move_is_not_in_the_frames() -> None:
    robot = arm(BAR, visual("foot", "base", "box", (0.2, 0.2, 0.1), at(0, 0, 0.05)))
    run = pl.simulate(robot, robot.neutral, [1.0], until=0.2)
    replay = make_replay(run)
    assert replay.paths == ("robot/link",)
    played = Played(replay.commands)
    assert_allclose(played.matrix("robot", "base", "foot")[:3, 3], (0, 0, 0.05), atol=1e-12)


@pytest.mark.parametrize(("until", "count"), [(0.1, 41), (2.0, 121)])
def test_frames_are_even_and_enough(until: float, count: int) -> None:
    times = frame_times(swing(until))
    assert len(times) == count
    assert_allclose(np.diff(times), until / (count - 1))
    assert times[0] == 0.0
    assert times[-1] == until


def test_the_end_may_be_earlier() -> None:
    run = swing(until=1.0)
    assert make_replay(run, times=frame_times(run, 0.5)).data()["times"][-1] == 0.5
    assert frame_times(run, 5.0)[-1] == 1.0


def locked_run() -> Trajectory:
    """Two states free, three locked, one free, two locked."""
    run = swing()
    t = np.array([0.0, 0.1, 0.1, 0.2, 0.3, 0.3, 0.5, 0.6])
    q, v, a = (np.repeat(x[:1], 8, axis=0) for x in (run.q, run.v, run.a))
    modes = pl.Mode(), pl.Mode("hinge")
    mode = np.array([0, 0, 1, 1, 1, 0, 1, 1])
    return replace(
        run, t=t, mode=mode, modes=modes, psi=np.zeros((7, 1)), q=q, v=v, a=a, inner=None
    )


def test_spans_in_which_a_joint_stands() -> None:
    # From the state that begins to be locked to the next one that is not.
    assert standing_spans(locked_run()) == {"hinge": ((0.1, 0.3), (0.5, 0.6))}
    assert standing_spans(swing()) == {}


def test_frames_at_changes_of_the_mode() -> None:
    times = frame_times(locked_run())
    assert {0.1, 0.3, 0.5} <= set(times.tolist())


def test_a_joint_that_stands_is_marked() -> None:
    replay = make_replay(locked_run())
    (joint,) = replay.data()["joints"]
    assert joint["name"] == "hinge"
    assert joint["standing"] == ((0.1, 0.3), (0.5, 0.6))
    played = Played(replay.commands)
    (path,) = joint["paths"]
    symbol = tuple(path.split("/"))
    # A hinge's symbol lies along its axis y, where the hinge is, and is drawn in front.
    matrix = played.matrix(*symbol)
    assert_allclose(matrix[:3, 3], (0, 0, 0.2), atol=1e-12)
    assert_allclose(np.abs(matrix[:3, 1]), (0, 1, 0), atol=1e-12)
    assert played.material(*symbol)["depthTest"] is False
    assert make_replay(swing()).data()["joints"] == []
    assert make_replay(swing(), marked=["hinge"]).data()["joints"][0]["standing"] == ()


def test_a_marked_scene_has_nothing_hidden() -> None:
    robot = arm(BAR)
    scene = make_scene(robot, marked=["hinge"])
    assert scene.hidden == ()
    assert all(part.shown for part in scene.parts)
    assert {part.path.split("/")[0] for part in scene.parts} == {"robot", "joints"}
    assert make_replay(swing()).ghost == ("robot",)


def test_a_robot_without_shapes_is_its_skeleton() -> None:
    robot = arm()
    run = pl.simulate(robot, robot.neutral, [1.0], until=0.2)
    replay = make_replay(run, marked=["hinge"])
    assert replay.ghost == ("skeleton",)
    assert make_replay(run, additions=Additions(ghosts=())).ghost == ()


def test_a_trace_follows_its_point() -> None:
    run = swing()
    orange, red = (1.0, 0.5, 0.0, 1.0), (1.0, 0.0, 0.0, 1.0)
    traces = (Trace("link", orange, end=0.3), Trace("link", red, start=0.3))
    robot = arm(BAR)
    moved = pl.simulate(robot, robot.neutral, [3.0], until=0.8)
    played = Played(make_replay(moved, additions=Additions(traces=traces)).commands)
    # The origin of the link is in the hinge: both lines are points there.
    for k, color in enumerate((0xFF8000, 0xFF0000)):
        points = played.attribute("position", "traces", str(k))
        assert_allclose(points.mean(axis=0), (0, 0, 0.2), atol=1e-6)
        assert played.material("traces", str(k))["color"] == color
    assert make_replay(run).data()["traces"] is False


def test_a_trace_is_cut_where_it_is_told() -> None:
    description = replace(arm(BAR).description, frames=(NamedFrame("tip", "link", at(0.6, 0, 0)),))
    robot = build(description)
    run = pl.simulate(robot, robot.neutral, [3.0], until=0.8)
    gray = (0.5, 0.5, 0.5, 1.0)
    traces = (Trace("tip", gray, end=0.3), Trace("tip", gray, start=0.3))
    played = Played(make_replay(run, additions=Additions(traces=traces)).commands)
    ends = []
    for k in ("0", "1"):
        rings = played.attribute("position", "traces", k).reshape(-1, 8, 3).mean(axis=1)
        # On a circle about the hinge, whose angle turns x down.
        assert_allclose(np.linalg.norm(rings - (0, 0, 0.2), axis=1), 0.6, atol=1e-4)
        angles = np.unwrap(np.arctan2(0.2 - rings[:, 2], rings[:, 0]))
        assert len(angles) > 10
        ends.append((angles[0], angles[-1]))
    expected = run([0.0, 0.3, 0.8]).q[:, 0]
    assert_allclose(np.exp(1j * np.array(ends)), np.exp(1j * expected[[[0, 1], [1, 2]]]), atol=1e-3)


def circle(count: int) -> Array:
    angles = np.linspace(0, 2 * np.pi, count)
    return np.column_stack([np.cos(angles), np.sin(angles), 0.3 * np.sin(2 * angles)])


def vertices_of(solid: Solid) -> tuple[Array, NDArray[np.int64]]:
    data = solid.geometry["data"]
    vertices = np.frombuffer(data["attributes"]["position"]["array"].data, "<f4")
    faces = np.frombuffer(data["index"]["array"].data, "<u4")
    return vertices.reshape(-1, 3).astype(float), faces.reshape(-1, 3).astype(np.int64)


@pytest.mark.parametrize(
    "path",
    [
        circle(200),
        np.array([[0.0, 0, 0], [0, 0, 1], [0, 0, 2]]),
        np.array([[0.0, 0, 0], [1, 0, 0], [0, 0, 0]]),
    ],
    ids=["curved", "upright", "to and fro"],
)
def test_a_tube_is_everywhere_as_thick(path: Array) -> None:
    vertices, faces = vertices_of(tube(path, 0.01))
    assert np.isfinite(vertices).all()
    rings = vertices.reshape(len(path), -1, 3)
    assert_allclose(np.linalg.norm(rings - path[:, None], axis=2), 0.01, rtol=1e-4)
    # Each ring stands across the line, and the tube has no fold: neighbours of a ring keep apart.
    along = np.gradient(path, axis=0)
    inner = np.linalg.norm(along, axis=1) > 1e-9
    across = np.einsum("kai,ki->ka", rings - path[:, None], along)[inner]
    assert np.abs(across).max() < 1e-4 * np.abs(along).max()
    edges = np.linalg.norm(rings - np.roll(rings, 1, axis=1), axis=2)
    assert_allclose(edges, 2 * 0.01 * np.sin(np.pi / rings.shape[1]), rtol=1e-3)
    assert faces.max() == len(vertices) - 1


def test_a_tube_along_a_curve_does_not_twist() -> None:
    rings = vertices_of(tube(circle(400), 0.01))[0].reshape(400, -1, 3)
    steps = np.linalg.norm(np.diff(rings - circle(400)[:, None], axis=0), axis=2)
    assert steps.max() < 0.02 * 0.03


def test_a_point_has_a_tube_too() -> None:
    vertices, _ = vertices_of(tube(np.tile([1.0, 2.0, 3.0], (5, 1)), 0.1))
    assert_allclose((vertices.min(axis=0) + vertices.max(axis=0)) / 2, (1, 2, 3), atol=1e-6)


def test_normals_of_a_tube_point_outwards() -> None:
    solid = tube(np.array([[0.0, 0, 0], [1, 0, 0]]), 0.1)
    vertices, faces = vertices_of(solid)
    mesh = trimesh.Trimesh(vertices, faces, process=False)
    middle = vertices[faces].mean(axis=1) * (0, 1, 1)
    assert np.all(np.einsum("ij,ij->i", mesh.face_normals, middle) > 0)


# -- lighter meshes -----------------------------------------------------------------------------


def ball(folder: Path) -> pl.Mechanism:
    path = folder / "ball.stl"
    trimesh.creation.icosphere(subdivisions=4, radius=0.2).export(str(path))
    return arm(visual("ball", "link", "mesh", (1.0, 1.0, 1.0), at(0.3, 0, 0), path=path), BAR)


def test_meshes_get_lighter_until_they_fit(tmp_path: Path) -> None:
    solids = [part.solid for part in make_scene(ball(tmp_path), marked=()).parts]
    same, cell = decimate(solids, 10_000_000)
    assert same == solids
    assert cell == 0.0
    light, cell = decimate(solids, 20_000)
    assert light[0] is not None
    vertices, faces = vertices_of(light[0])
    assert 12 * faces.size / 3 + 24 * len(vertices) <= 20_000
    assert len(faces) > 100
    assert 0 < cell < 0.1
    # Means of points on the ball that share a cell are no farther from it than the cell is long.
    away = np.abs(np.linalg.norm(vertices, axis=1) - 0.2)
    assert away.max() < np.sqrt(3) * cell
    assert light[1] is solids[1]


def test_a_light_mesh_is_still_a_closed_ball(tmp_path: Path) -> None:
    mesh_solid = make_scene(ball(tmp_path), marked=()).parts[0].solid
    (light,), _ = decimate([mesh_solid], 20_000)
    assert light is not None
    mesh = trimesh.Trimesh(*vertices_of(light))
    mesh.merge_vertices(merge_norm=True, merge_tex=True)
    assert mesh.volume == pytest.approx(4 / 3 * np.pi * 0.2**3, rel=0.1)


def test_meshes_that_no_cell_can_hold_vanish(tmp_path: Path) -> None:
    robot = ball(tmp_path)
    solids = [part.solid for part in make_scene(robot, marked=()).parts]
    light, _ = decimate(solids, 1)
    assert light == [None, solids[1]]
    run = pl.simulate(robot, robot.neutral, [1.0], until=0.1)
    parts = make_replay(run, mesh_bytes=1).scene.parts
    assert [part.path for part in parts] == ["robot/link/bar"]


# -- the page's side ----------------------------------------------------------------------------


class Reader(HTMLParser):
    """Collects tags with their attributes, and the data."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.script = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        if self.tags and self.tags[-1][0] == "script" and not self.script:
            self.script = data


def test_the_markup_holds_the_data_and_the_controls() -> None:
    square = np.array([[0.0, 0, 0], [1, 0, 0], [0, 1, 0]])
    layer = Layer("</script><b>", square, np.array([[0, 1, 2]]), (0.0, 1.0, 0.0, 0.25))
    replay = make_replay(swing(), marked=["hinge"], additions=Additions(layers=[layer]))
    text = replay.player()
    reader = Reader(text)
    tags = [tag for tag, _ in reader.tags]
    assert tags.count("script") == 1
    assert "b" not in tags
    assert json.loads(reader.script) == json.loads(json.dumps(replay.data()))
    assert json.loads(reader.script)["layers"][0]["opacity"] == 0.25
    (slider,) = (given for _, given in reader.tags if given.get("type") == "range")
    assert (slider["min"], slider["max"]) == ("0.0", "0.8")
    assert sum(given.get("class") == "replay-show-layer-0" for _, given in reader.tags) == 1
    assert not any(given.get("class") == "replay-show-traces" for _, given in reader.tags)


@pytest.mark.parametrize("until", [30.0, 0.8, 0.04])
def test_replays_begin_in_real_time(until: float) -> None:
    reader = Reader(make_replay(swing(until)).player())
    options = [given for tag, given in reader.tags if tag == "option"]
    assert [given["value"] for given in options if "selected" in given] == ["1"]
    assert options[0]["value"] == ("1" if until < 20 else "100")


def test_turns_are_those_of_the_nodes() -> None:
    run = swing()
    replay = make_replay(run)
    scene = make_scene(run.robot, marked=())
    R = scene.placements(run(replay.t[-1]).q)[0][:3, :3]
    x, y, z, w = replay.quaternions[-1, 0]
    assert_allclose(pin.Quaternion(w, x, y, z).toRotationMatrix(), R, atol=1e-12)

"""Robots and runs in a MeshCat viewer of the user's, in a real browser beside another object."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pinocchio as pin
import pytest
import umsgpack
from numpy.testing import assert_allclose
from numpy.typing import NDArray

import pinloop as pl
from pinloop.show.scene.solids import meshcat

from ..fourbar_files import fourbar
from .browser import Browser, end_server, needs_browser, until

pytestmark = needs_browser

Array = NDArray[np.float64]
ROOT = "meshcat/pinloop/bars"
BALL = (-0.3, 0.1, 0.3)


@pytest.fixture(scope="module")
def robot(tmp_path_factory: pytest.TempPathFactory) -> pl.Mechanism:
    path = fourbar(tmp_path_factory.mktemp("bars"))
    text = path.read_text().replace("<inertial>", '<inertial><origin xyz="0.2 0 0.1"/>')
    path.write_text(text)
    return pl.load(path)


@pytest.fixture(scope="module")
def run(robot: pl.Mechanism) -> pl.Trajectory:
    """The crank locks at 0.2 s, the loop opens at 0.4 s."""
    q = pl.assemble(robot, fixed={"drive": -1.0})
    v = pl.consistent_velocity(robot, q, {"drive": 4.0})
    changes = [pl.lock("drive", at=0.2), pl.open_loop("closer", at=0.4)]
    return pl.simulate(robot, q, v, until=0.6, events=changes)


@pytest.fixture(scope="module")
def vis() -> Iterator[Any]:
    """A viewer with a magenta ball in it."""
    with contextlib.redirect_stdout(io.StringIO()):
        viewer = meshcat.Visualizer()
    shapes = meshcat.geometry
    viewer["ball"].set_object(shapes.Sphere(0.1), shapes.MeshLambertMaterial(color=0xFF00FF))
    viewer["ball"].set_transform(meshcat.transformations.translation_matrix(BALL))
    # The camera is on the left of the robot, which is flat.
    viewer["/Cameras/default/rotated/<object>"].set_property("position", [0.3, 0.4, 0.9])
    yield viewer
    end_server(viewer.window)


class Following(Browser):
    """A browser that is looked at when it has done all that its viewer was told."""

    vis: Any = None

    def value(self, expression: str) -> Any:
        if self.vis is not None:
            self.vis.get_image()
        return super().value(expression)


@pytest.fixture(scope="module")
def browser(vis: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    profile = tmp_path_factory.mktemp("meshcat") / "profile"
    following = Following(vis.url(), profile, (700, 500))
    with following:
        until(lambda: following.value("viewer.connection.readyState === 1"))
        following.vis = vis
        yield following


def matrix(browser: Browser, path: str) -> Array:
    """Where a node is in the browser's scene, from its coordinates to those of the world."""
    return np.array(browser.value(
        "(() => { const at = (path) => viewer.scene_tree.find(path.split('/').filter((s) => s));"
        "viewer.scene.updateMatrixWorld(true);"
        f"const node = at({path!r}).object, root = viewer.scene;"
        "return root.matrixWorld.clone().invert().multiply(node.matrixWorld).toArray(); })()"
    )).reshape(4, 4).T  # fmt: skip


def visible(browser: Browser, path: str) -> bool:
    steps = path.split("/")
    return bool(browser.value(f"viewer.scene_tree.find({steps!r}).object.visible"))


def pixels(browser: Browser, name: str) -> int:
    red, green, blue = np.moveaxis(browser.picture("#meshcat-pane"), 2, 0)
    return int({
        "magenta": (np.minimum(red, blue) > 100) & (np.minimum(red, blue) > 3 * green),
        "crimson": (red > 100) & (red > 3 * green) & (red > 2 * blue),
    }[name].sum())  # fmt: skip


def test_a_robot_is_drawn_beside_what_is_there(
    vis: Any, browser: Browser, robot: pl.Mechanism
) -> None:
    until(lambda: pixels(browser, "magenta") > 100)
    ball = pixels(browser, "magenta")
    others = pixels(browser, "crimson")
    camera = browser.value("viewer.camera.position.toArray()")
    q = pl.assemble(robot, fixed={"drive": -1.0})
    display = pl.view(robot, q, viewer=vis)
    assert isinstance(display, pl.MeshcatRobot)
    until(lambda: pixels(browser, "crimson") > others + 30)
    assert abs(pixels(browser, "magenta") - ball) < 0.5 * ball
    assert browser.value("viewer.camera.position.toArray()") == camera
    assert_allclose(matrix(browser, "meshcat/ball")[:3, 3], BALL, atol=1e-6)
    # Everything that was drawn is below the path of the robot.
    below = browser.value("Object.keys(viewer.scene_tree.find(['meshcat']).children)")
    assert set(below) == {"ball", "pinloop"}


def test_display_puts_bodies_and_loop_joints_in_their_places(
    vis: Any, browser: Browser, robot: pl.Mechanism
) -> None:
    display = pl.MeshcatRobot(vis, robot)
    for angle in (-1.2, -0.6):
        q = pl.assemble(robot, fixed={"drive": angle})
        display.display(q)
        for node, frame in (
            *(("skeleton/" + body, body) for body in ("crank", "coupler", "rocker")),
            ("loops/closer/A", "closer/A"),
            ("loops/closer/B", "closer/B"),
        ):
            shown = matrix(browser, f"{ROOT}/visuals/{node}")
            assert_allclose(shown, robot.placement(q, frame).homogeneous, atol=1e-9)


def test_locked_joints_have_a_symbol_and_open_loops_have_none(
    vis: Any, browser: Browser, robot: pl.Mechanism
) -> None:
    display = pl.MeshcatRobot(vis, robot)
    q = pl.assemble(robot)
    group, loop = f"{ROOT}/visuals/joints", f"{ROOT}/visuals/loops/closer/A/symbol"
    lock = f"{group}/base/drive A"
    for locked, opened in (((), ()), (["drive"], ()), ((), "closer"), ("drive", ["closer"])):
        display.display(q, locked=locked, opened=opened)
        assert visible(browser, lock) is bool(locked)
        assert visible(browser, loop) is not bool(opened)
    with pytest.raises(pl.UnknownName, match="drive"):
        display.display(q, locked="drife")
    with pytest.raises(pl.UnknownName, match="closer"):
        display.display(q, opened=["open"])
    with pytest.raises(pl.BadValue, match="numbers"):
        display.display([0.0])


def loop_of_pinocchio(viz: Any, model: pin.Model, q: Array) -> list[Array]:
    """Pinocchio's example with a viewer: free fall of the tree, frames and velocities, a video."""
    frame, dt = model.getFrameId("coupler"), 0.01
    qs, v = [q], 0.3 * np.ones(model.nv)
    for _ in range(5):
        v = v + dt * pin.aba(model, viz.data, qs[-1], v, np.zeros(model.nv))
        qs.append(pin.integrate(model, qs[-1], dt * v))
        viz.display(qs[-1])
        viz.drawFrameVelocities(frame_id=frame)
    viz.displayFrames(True, [frame])
    return list(viz.play(qs, dt, callback=lambda k: viz.drawFrameVelocities(frame), capture=True))


def test_loops_written_for_pinocchios_viewer_run_unchanged(
    vis: Any, browser: Browser, robot: pl.Mechanism
) -> None:
    q = pl.assemble(robot)
    own = pl.MeshcatRobot(vis, robot)
    own.initViewer(open=False)
    own.loadViewerModel()
    theirs = pin.visualize.MeshcatVisualizer(robot.model, pin.GeometryModel(), pin.GeometryModel())
    theirs.initViewer(vis)
    theirs.loadViewerModel(rootNodeName="theirs")
    assert isinstance(own, pin.visualize.MeshcatVisualizer)
    for viz in (own, theirs):
        pictures = loop_of_pinocchio(viz, robot.model, q)
        assert len(pictures) == 6
        assert pictures[0].shape[:2] == (500, 700)
    for name in ("frames/coupler", f"visuals/lines/ee_vel/{robot.model.getFrameId('coupler')}"):
        one, other = (matrix(browser, f"{root}/{name}") for root in (ROOT, "meshcat/theirs"))
        assert_allclose(one, other, atol=1e-12)
    assert own.captureImage(350, 250).shape == (250, 350, 3)
    own.displayVisuals(False)
    assert not visible(browser, f"{ROOT}/visuals")
    own.displayVisuals(True)
    own.setCameraTarget([0.3, 0.0, 0.2])
    own.setCameraPosition([0.0, -2.0, 0.5])
    eye = matrix(browser, "Cameras/default/rotated/<object>")[:3, 3]
    assert_allclose(eye, [0.3, -2.0, 0.7], atol=1e-9)
    own.setCameraTarget(np.zeros(3))
    own.setCameraPosition([0.3, -0.9, 0.4])
    vis["theirs"].delete()


def test_loops_of_pink_and_crocoddyl_run_unchanged(
    vis: Any, browser: Browser, robot: pl.Mechanism
) -> None:
    crocoddyl = pytest.importorskip("crocoddyl")
    pink = pytest.importorskip("pink")
    q = pl.assemble(robot)
    # Pink's: the visualizer and its viewer beside a configuration that is integrated.
    viz = pl.MeshcatRobot(vis, robot)
    viewer = viz.viewer
    viewer["target"].set_object(meshcat.geometry.triad(0.1))
    configuration = pink.Configuration(robot.model, viz.data, q)
    viz.display(configuration.q)
    for _ in range(3):
        configuration.integrate_inplace(np.ones(robot.nv), 0.01)
        placement = configuration.get_transform_frame_to_world("rocker")
        viewer["target"].set_transform(placement.np)
        viz.display(configuration.q)
    assert_allclose(matrix(browser, "meshcat/target"), placement.np, atol=1e-12)
    # Crocoddyl's: a display made of a robot, and a solver whose trajectory it shows.
    state = crocoddyl.StateMultibody(robot.model)
    actuation = crocoddyl.ActuationModelFull(state)
    dynamics = crocoddyl.DifferentialActionModelFreeFwdDynamics(
        state, actuation, crocoddyl.CostModelSum(state)
    )
    action = crocoddyl.IntegratedActionModelEuler(dynamics, 0.01)
    problem = crocoddyl.ShootingProblem(
        np.concatenate([q, np.ones(robot.nv)]), [action] * 5, action
    )
    solver = crocoddyl.SolverFDDP(problem)
    solver.solve([], [], 1)
    display = crocoddyl.MeshcatDisplay(pl.MeshcatRobot(vis, robot), visibility=False)
    display.rate, display.freq = -1, 1
    display.displayFromSolver(solver)
    end = robot.placement(np.array(solver.xs[-1])[: robot.nq], "rocker").homogeneous
    assert_allclose(matrix(browser, "meshcat/robot/visuals/skeleton/rocker"), end, atol=1e-9)


@pytest.fixture(scope="module")
def played(vis: Any, browser: Browser, run: pl.Trajectory) -> pl.MeshcatRobot:
    display: pl.MeshcatRobot = run.view(viewer=vis, forces=True, ghosts=[0.1], traces=["coupler"])
    return display


def seek(browser: Browser, time: float) -> None:
    browser.value("viewer.animator.pause()")
    browser.value(f"viewer.animator.seek({time})")


@pytest.mark.parametrize("time", [0.0, 0.1, 0.3, 0.6])
def test_a_run_moves_bodies_locks_loops_and_forces(
    played: pl.MeshcatRobot, browser: Browser, run: pl.Trajectory, time: float
) -> None:
    seek(browser, time)
    q, group = run([time]).q[0], f"{ROOT}/visuals"
    for body in ("crank", "coupler", "rocker"):
        expected = run.robot.placement(q, body).homogeneous
        assert_allclose(matrix(browser, f"{group}/skeleton/{body}"), expected, atol=2e-4)
    assert visible(browser, f"{group}/joints/base/drive A") is (time >= 0.2)
    assert visible(browser, f"{group}/loops/closer/A/symbol") is (time < 0.4)
    assert visible(browser, f"{group}/forces/closer") is (time < 0.4)
    if time < 0.4:
        k = int(np.argmin(np.abs(run.t - time)))
        reaction = run.reactions("closer")
        assert isinstance(reaction, pl.simulation.Reaction)
        force = run.robot.placement(run.q[k], "closer/B").rotation @ reaction.force[k]
        arrow = matrix(browser, f"{group}/forces/closer")
        place = run.robot.placement(q, "closer/B").translation
        assert_allclose(arrow[:3, 3], place, atol=2e-4)
        along = arrow[:3, 2] / np.linalg.norm(arrow[:3, 2])
        assert_allclose(along, force / np.linalg.norm(force), atol=0.1)


def test_the_lengths_of_arrows_are_forces(
    played: pl.MeshcatRobot, browser: Browser, run: pl.Trajectory
) -> None:
    """Lengths over forces are one scale at all times."""
    reaction = run.reactions("closer")
    assert isinstance(reaction, pl.simulation.Reaction)
    scales = []
    for k in (0, int(np.argmin(np.abs(run.t - 0.1))), int(np.flatnonzero(run.t == 0.2)[-1])):
        # Between frames arrows are interpolated: here, times are those of frames.
        time = round(30 * run.t[k]) / 30
        seek(browser, time)
        force = np.linalg.norm(reaction.force[k])
        length = np.linalg.norm(matrix(browser, f"{ROOT}/visuals/forces/closer")[:3, 2])
        scales.append(force / length)
    assert_allclose(scales, scales[0], rtol=0.05)


def test_ghosts_and_traces_stay_where_they_are(
    played: pl.MeshcatRobot, browser: Browser, run: pl.Trajectory
) -> None:
    seek(browser, 0.5)
    q = run([0.1]).q[0]
    ghost = matrix(browser, f"{ROOT}/visuals/ghosts/0/skeleton/coupler")
    assert_allclose(ghost, run.robot.placement(q, "coupler").homogeneous, atol=1e-9)
    trace = browser.value(
        f"viewer.scene_tree.find({[*ROOT.split('/'), 'visuals', 'traces', 'coupler', '<object>']})"
        ".object.geometry.attributes.position.array"
    )
    points = np.reshape(list(trace.values()), (-1, 3))
    for time in (0.0, 0.3, 0.6):
        place = run.robot.placement(run([time]).q[0], "coupler").translation
        assert np.linalg.norm(points - place, axis=1).min() < 0.01
    played.displayGhosts([])
    left = browser.value(
        f"Object.keys(viewer.scene_tree.find({[*ROOT.split('/'), 'visuals']!r}).children)"
    )
    assert "ghosts" not in left


def test_an_animation_is_one_of_meshcats(vis: Any, browser: Browser, run: pl.Trajectory) -> None:
    animation = run.animation()
    assert isinstance(animation, meshcat.animation.Animation)
    below = run.animation(vis["left"])
    assert {path.entries[:2] for path in below.clips} == {("meshcat", "left")}
    # Others animate their objects with it: a frame is 1/30 s.
    moved = meshcat.transformations.translation_matrix([0.0, 0.0, 1.0])
    animation.at_frame(vis["ball"], 0).set_transform(np.eye(4))
    animation.at_frame(vis["ball"], 15).set_transform(moved)
    vis.set_animation(animation)
    seek(browser, 0.25)
    assert_allclose(matrix(browser, "meshcat/ball")[:3, 3], (0, 0, 0.5), atol=1e-6)
    q = run([0.25]).q[0]
    crank = matrix(browser, f"{ROOT}/visuals/skeleton/crank")
    assert_allclose(crank, run.robot.placement(q, "crank").homogeneous, atol=1e-3)
    vis["ball"].set_transform(meshcat.transformations.translation_matrix(BALL))


def test_the_static_page_has_everything(
    vis: Any, played: pl.MeshcatRobot, run: pl.Trajectory, tmp_path: Path
) -> None:
    path = tmp_path / "static.html"
    path.write_text(vis.static_html(), encoding="utf-8")
    with Browser(path, tmp_path / "profile", (700, 500)) as page:
        solids = [f"{ROOT}/visuals/loops/closer/A/symbol/<object>", "meshcat/ball/<object>"]
        wanted = " && ".join(
            f"viewer.scene_tree.find({s.split('/')!r}).object.isMesh" for s in solids
        )
        until(lambda: page.value(wanted) is True)
        until(lambda: page.value("viewer.animator.actions.length") > 0)
        for time in (0.1, 0.5):
            seek(page, time)
            expected = played.robot.placement(run([time]).q[0], "rocker").homogeneous
            # The second is between two frames.
            rocker = matrix(page, f"{ROOT}/visuals/skeleton/rocker")
            assert_allclose(rocker, expected, atol=5e-3)
        assert page.complaints == []


def test_a_robot_drawn_again_is_the_same_bytes(
    vis: Any, robot: pl.Mechanism, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: list[list[bytes]] = [[], []]
    for commands in sent:
        with monkeypatch.context() as patch:
            patch.setattr(
                meshcat.visualizer.ViewerWindow,
                "send",
                lambda window, command, into=commands: into.append(umsgpack.packb(command.lower())),
            )
            pl.MeshcatRobot(vis, robot).loadViewerModel("again")
    assert sent[0] == sent[1]
    assert len(sent[0]) > 10


def test_what_is_no_viewer_is_refused(
    robot: pl.Mechanism, run: pl.Trajectory, vis: Any, tmp_path: Path
) -> None:
    with pytest.raises(pl.BadValue, match=r"give a meshcat\.Visualizer"):
        pl.view(robot, viewer="http://127.0.0.1:7000")
    with pytest.raises(pl.BadValue, match=r"give a meshcat\.Visualizer"):
        run.animation("http://127.0.0.1:7000")
    with pytest.raises(pl.BadValue, match="leave out html or viewer"):
        pl.view(robot, viewer=vis, html=tmp_path / "a.html")  # type: ignore[call-overload]


def test_nothing_was_wrong_in_the_browser(browser: Browser) -> None:
    assert [text for text in browser.complaints if "favicon" not in text] == []

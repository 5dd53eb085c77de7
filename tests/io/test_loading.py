"""`load` and `from_screws`: which reader takes a source, and what lies beside it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pinocchio as pin
import pytest
import yaml

import pinloop as pl
from pinloop.boundary.yaml import read_yaml
from pinloop.cli import main as cli

from .every_format import (
    GEPETTO,
    JOINTS,
    LOOPS,
    MJCF,
    ROBOTS,
    SCREWS,
    SDF,
    SRDF,
    URDF,
    URDF_DIALECTS,
    URDF_TREE,
    closed,
    is_closed,
)
from .urdf_by_hand import INERTIAL, Array, joint, link, pose, robot, two_joints

Write = Callable[[str, str | bytes], Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Write a file in a folder of its own, and return its path."""

    def create(name: str, text: str | bytes) -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    return create


def mass_matrix(loaded: pl.Mechanism, angle: float) -> Array:
    """Mass matrix in the order j1, j2, j3."""
    M = pin.crba(loaded.model, loaded.model.createData(), closed(loaded, angle))
    M = np.triu(M) + np.triu(M, 1).T
    order = [loaded.coordinates(name).v.start for name in JOINTS]
    return np.asarray(M[np.ix_(order, order)])


def expected_mass_matrix(angle: float) -> Array:
    """From the velocities of the three centres of mass in the plane."""
    # Per joint rate, with the bars turned by the angle and the coupler still along x: centres of
    # crank and rocker half a metre from their joints, that of the coupler a metre from the crank.
    tip, up, still = np.array([-np.cos(angle), -np.sin(angle)]), np.array([0, 1]), np.zeros(2)
    crank = np.column_stack([0.5 * tip, still, still])
    rocker = np.column_stack([still, still, 0.5 * tip])
    coupler = np.column_stack([tip + up, up, still])
    rates = np.array([[1, 0, 0], [1, 1, 0], [0, 0, 1]], dtype=float)
    return np.asarray(sum(1.5 * c.T @ c for c in (crank, coupler, rocker)) + 0.25 * rates.T @ rates)


def assert_parallelogram(loaded: pl.Mechanism, loops: int = 1) -> None:
    assert set(loaded.joints) == set(JOINTS) and len(loaded.loops) == loops
    assert loaded.name == "bars"
    for angle in (0.0, 0.6, -0.9):
        assert is_closed(loaded, angle)
        M = mass_matrix(loaded, angle) - np.diag(loaded.model.armature)
        np.testing.assert_allclose(M, expected_mass_matrix(angle), atol=1e-12)


@pytest.mark.parametrize("kind", ROBOTS)
def test_every_format_gives_the_same_machine(kind: str, write: Write) -> None:
    text = ROBOTS[kind]
    path = write("robot.xml" if text.lstrip().startswith("<") else "robot.yaml", text)
    for source in (text, text.encode(), path, str(path)):
        assert_parallelogram(pl.load(source))


@pytest.mark.parametrize("suffix", ["urdf", "sdf", "xml", "mjcf", "yaml", "txt", "xacro", ""])
@pytest.mark.parametrize("kind", ["URDF", "SDF", "MJCF"])
def test_the_content_counts_not_the_suffix(kind: str, suffix: str, write: Write) -> None:
    assert_parallelogram(pl.load(write(f"robot.{suffix}".rstrip("."), ROBOTS[kind])))


@pytest.mark.parametrize("suffix", ["yaml", "yml", "txt", "json"])
def test_a_screw_table_is_known_by_its_keys(suffix: str, write: Write) -> None:
    path = write(f"robot.{suffix}", SCREWS)
    assert_parallelogram(pl.load(path))
    assert_parallelogram(pl.from_screws(path))
    assert_parallelogram(pl.from_screws(str(path)))
    assert_parallelogram(pl.from_screws(yaml.safe_load(SCREWS)))
    assert_parallelogram(pl.load(yaml.safe_load(SCREWS)))


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "latin-1"])
def test_encodings_of_xml(encoding: str, write: Write) -> None:
    declared = "utf-8" if encoding == "utf-8-sig" else encoding.removesuffix("-le")
    text = URDF.replace('version="1.0"', f'version="1.0" encoding="{declared}"')
    text = text.replace('"bars"', '"Gestänge"')
    if encoding == "utf-16-le":
        text = "\ufeff" + text
    for source in (text.encode(encoding), write("robot.urdf", text.encode(encoding))):
        assert pl.load(source).name == "Gestänge"
    assert pl.load("\ufeff" + text.removeprefix("\ufeff")).name == "Gestänge"


def test_white_space_before_the_document() -> None:
    text = URDF.partition("?>")[2]
    assert_parallelogram(pl.load("\n \t" + text))
    assert_parallelogram(pl.load(b"\n \t" + text.encode()))


def test_all_dialects_may_be_in_one_file() -> None:
    loaded = pl.load(URDF_DIALECTS)
    # The closing frames are joined by the others already.
    assert len(loaded.loops) == 4 and len(loaded.couplings) == 2
    assert is_closed(loaded, 0.6)


# -- what says more ----------------------------------------------------------------------------


def both(pl_loops: Any, name: str, text: str, write: Write) -> list[pl.Mechanism]:
    """Load with a file beside the robot and with the same given as ``loops=``."""
    path = write("robot.urdf", URDF_TREE)
    extra = write(name, text)
    beside = pl.load(path)
    extra.rename(extra.with_name("elsewhere" + extra.suffix))
    assert pl.load(path).loops == ()
    moved = extra.with_name("elsewhere" + extra.suffix)
    given = [moved, str(moved), [moved], text, text.encode(), pl_loops]
    return [beside, *(pl.load(path, loops=loops) for loops in given if loops is not None)]


@pytest.mark.parametrize("suffix", [".loops.yaml", ".loops.yml"])
def test_a_loops_file_beside_the_robot_or_given(suffix: str, write: Write) -> None:
    for loaded in both(yaml.safe_load(LOOPS), f"robot{suffix}", LOOPS, write):
        assert_parallelogram(loaded)
        assert [c.name for c in loaded.couplings] == ["gear", "cam"]
        assert loaded.actuated == ("j1",) and loaded.drives["j1"].reduction == 50


@pytest.mark.parametrize("suffix", [".yaml", ".yml"])
def test_a_gepetto_file_beside_the_robot_or_given(suffix: str, write: Write) -> None:
    text = "\n".join(GEPETTO.splitlines()[:3]) + "\n"
    for loaded in both(yaml.safe_load(text), f"robot{suffix}", text, write):
        assert_parallelogram(loaded)
        (loop,) = loaded.loops
        assert (loop.name, loop.pair.name) == ("tip_a-tip_b", "spherical")
        assert loaded.actuated == ("j1",)


@pytest.mark.parametrize("suffix", [".yaml", ".yml"])
def test_a_gepetto_file_as_the_robot_takes_the_urdf_beside_it(suffix: str, write: Write) -> None:
    write("robot.urdf", URDF_TREE)
    path = write(f"robot{suffix}", GEPETTO)
    for source in (path, str(path)):
        loaded = pl.load(source)
        assert [loop.name for loop in loaded.loops] == ["tip_a-tip_b"]
        assert (loaded.nq, loaded.nv) == (6, 5)
    # What is given comes on top of the file itself.
    more = pl.load(path, loops={"passive": ["j1"]})
    assert [loop.name for loop in more.loops] == ["tip_a-tip_b"] and more.actuated == ()


@pytest.mark.parametrize("name", ["urdf/robot.srdf", "srdf/robot.srdf"])
def test_an_srdf_beside_the_robot_or_given(name: str, write: Write) -> None:
    path = write("urdf/robot.urdf", URDF_TREE)
    assert pl.load(path).actuated == JOINTS
    srdf = write(name, SRDF)
    assert pl.load(path).actuated == ("j1",)
    for loops in (srdf, str(srdf), SRDF, SRDF.encode(), b"\xef\xbb\xbf" + SRDF.encode()):
        assert pl.load(URDF_TREE, loops=loops).actuated == ("j1",)
    # What is given replaces what lies there.
    assert pl.load(path, loops=[]).actuated == JOINTS


def test_several_files_add_up(write: Write) -> None:
    extras = [yaml.safe_load(LOOPS), write("x.srdf", SRDF.replace("j2", "j1"))]
    loaded = pl.load(URDF_TREE, loops=extras)
    assert [loop.name for loop in loaded.loops] == ["close"] and loaded.actuated == ()
    for name, text in (("robot.loops.yaml", LOOPS), ("robot.srdf", SRDF.replace("j2", "j1"))):
        write(name, text)
    assert pl.load(write("robot.urdf", URDF_TREE)).actuated == ()


@pytest.mark.parametrize("text", ["controller: {mode: closed_loop}", "gains:\n  closed_loop: 5\n"])
def test_a_file_of_the_same_name_that_says_something_else_is_left_alone(
    text: str, write: Write
) -> None:
    path = write("robot.urdf", URDF)
    write("robot.yaml", text)
    assert_parallelogram(pl.load(path))


# -- closing frames ----------------------------------------------------------------------------

FRAMES = (
    '<frame name="closing_x_1" link="coupler" xyz="2 0 0"/>'
    '<frame name="closing_x_2" link="rocker" xyz="0 1 0"/></robot>'
)
WITH_FRAMES = URDF_TREE.replace("</robot>", FRAMES)


def test_closing_frames_are_joined_at_a_point_with_a_warning() -> None:
    loaded = pl.load(WITH_FRAMES)
    assert_parallelogram(loaded)
    (loop,) = loaded.loops
    assert (loop.name, loop.pair.name) == ("closing_x", "spherical")
    (warning,) = loaded.warnings
    assert "'closing_x_1' and 'closing_x_2'" in warning and "spherical" in warning
    links = WITH_FRAMES.replace("tip_a", "closing_y_1").replace("tip_b", "closing_y_2")
    assert {loop.name for loop in pl.load(links).loops} == {"closing_x", "closing_y"}


@pytest.mark.parametrize("name", ["x", "closing_x", "other"])
def test_a_loop_between_closing_frames_that_is_declared_wins(name: str) -> None:
    entry: dict[str, Any] = {"name": name, "pair": "revolute", "axis": [0, 0, 1]}
    entry |= {"a": {"frame": "closing_x_1"}, "b": {"frame": "closing_x_2"}}
    loaded = pl.load(WITH_FRAMES, loops={"loops": [entry]})
    assert [(loop.name, loop.pair.name) for loop in loaded.loops] == [(name, "revolute")]
    assert loaded.warnings == ()
    assert_parallelogram(loaded)
    entry["a"], entry["b"] = entry["b"], entry["a"]
    assert len(pl.load(WITH_FRAMES, loops={"loops": [entry]}).loops) == 1


@pytest.mark.parametrize("name", ["x", "closing_x"])
def test_a_loop_of_the_same_name_wins_wherever_it_is(name: str) -> None:
    entry = {"name": name, "pair": "revolute", "a": {"body": "coupler", "xyz": [2, 0, 0.5]}}
    entry["b"] = {"body": "rocker", "xyz": [0, 1, 0.5]}
    assert_parallelogram(pl.load(WITH_FRAMES, loops={"loops": [entry]}))


def test_mujoco_connects_closing_sites_once() -> None:
    text = MJCF.replace("tip_a", "closing_x_1").replace("tip_b", "closing_x_2")
    connect = '<connect site1="closing_x_1" site2="closing_x_2"/>'
    old = '<connect name="close" body1="coupler" body2="rocker" anchor="2 0 0"/>'
    declared = text.replace(old, connect)
    assert connect in declared
    assert_parallelogram(pl.load(declared))
    assert_parallelogram(pl.load(declared.replace(connect, "")))


def test_a_closing_frame_without_partner_is_warned_of() -> None:
    loaded = pl.load(WITH_FRAMES.replace("closing_x_2", "closing_y_2"))
    assert loaded.loops == ()
    for name in ("closing_x_1", "closing_y_2"):
        assert any(f"'{name}'" in warning for warning in loaded.warnings)


# -- arguments ---------------------------------------------------------------------------------


def test_gravity_may_be_replaced() -> None:
    np.testing.assert_array_equal(pl.load(URDF).gravity, [0, 0, -9.81])
    loaded = pl.load(URDF, gravity=[0, 1, -2])
    np.testing.assert_array_equal(loaded.gravity, [0, 1, -2])
    np.testing.assert_array_equal(loaded.model.gravity.vector, [0, 1, -2, 0, 0, 0])
    np.testing.assert_array_equal(pl.load(URDF, loops={"gravity": [3, 0, 0]}).gravity, [3, 0, 0])
    for bad in ("down", [1, 2], [1, 2, np.nan], [[1, 2, 3]], 9.81, {"z": 1}):
        with pytest.raises(pl.BadValue, match=r"gravity (is|has)"):
            pl.load(URDF, gravity=bad)  # type: ignore[arg-type]


def test_closing_frames_that_are_joined_by_the_tree_are_joined() -> None:
    """A loop that the user leaves to choice may come into the tree, and is still the loop."""
    entry: dict[str, Any] = {"name": "mine", "pair": "revolute", "axis": [0, 0, 1], "cut": None}
    entry |= {"a": {"frame": "closing_x_1"}, "b": {"frame": "closing_x_2"}}
    loaded = pl.load(WITH_FRAMES, loops={"loops": [entry], "free": ["j1", "j2", "j3"]})
    assert len(loaded.loops) == 1 and len(loaded.joints) == 3


def test_a_floating_base_is_carried_by_six_coordinates() -> None:
    text = URDF.replace('<link name="base"/>', link("base"))
    fixed, floating = pl.load(text), pl.load(text, floating_base=True)
    assert (floating.nq, floating.nv) == (fixed.nq + 7, fixed.nv + 6)
    assert floating.joints[0] == "root_joint" and floating.actuated == ("j1",)
    theirs = pin.buildModelFromXML(text, pin.JointModelFreeFlyer())
    assert list(theirs.names)[1:] == list(floating.joints)
    base = pose((1, 2, 3), (0.1, 0.2, 0.3))
    q = np.concatenate([pin.SE3ToXYZQUAT(base), closed(fixed, 0.4)])
    expected = base * fixed.placement(closed(fixed, 0.4), "coupler")
    np.testing.assert_allclose(
        floating.placement(q, "coupler").homogeneous, expected.homogeneous, atol=1e-14
    )
    rng = np.random.default_rng(1)
    v, a = rng.normal(size=9), rng.normal(size=9)
    np.testing.assert_allclose(
        pin.rnea(floating.model, floating.model.createData(), q, v, a)[6:],
        pin.rnea(theirs, theirs.createData(), q, v, a)[6:],
        atol=1e-10,
    )
    np.testing.assert_allclose(pl.Constraints(floating).residual(q), 0, atol=1e-12)
    taken = pl.load(text.replace('"j1"', '"root_joint"'), floating_base=True)
    assert taken.nv == 9 and "root_joint" in taken.joints


def test_what_is_the_ground_itself_cannot_float() -> None:
    with pytest.raises(pl.BadValue, match="no base"):
        pl.load(SCREWS, floating_base=True)


def test_a_robot_without_masses_loads_and_says_so_when_it_is_simulated() -> None:
    text = two_joints().replace(INERTIAL, "")
    loaded = pl.load(text)
    assert loaded.warnings == ("<text>:3: link 'p' moves but has no mass; likewise 'q'",)
    assert pl.load(text, kinematics_only=True).warnings == ()
    assert pl.diagnose(loaded).mobility == 2
    with pytest.raises(pl.SimulationFailed, match=r"t = 0 s: .*links 'p', 'q' lack mass"):
        pl.simulate(loaded, loaded.neutral, until=0.1)
    with pytest.raises(pl.SimulationFailed, match="'p', 'q' lack mass"):
        pl.simulate(loaded, loaded.neutral, [1.0, 0.0], until=0.1)
    with pytest.raises(pl.PinloopError, match="links 'p', 'q' lack mass"):
        pl.stop(loaded, loaded.neutral, [1.0, 0.0], brakes=pl.Brakes.template(loaded))
    # A point mass far out gives both joints inertia: only the mass matrix counts.
    point = '<inertial><origin xyz="1 1 1"/><mass value="2"/></inertial>'
    heavy = pl.load(text.replace('<link name="q">', f'<link name="q">{point}'))
    assert pl.simulate(heavy, heavy.neutral, until=0.01).t[-1] == 0.01


def drake_ball(first: str, second: str) -> str:
    return (
        "<drake:ball_constraint>"
        f"<drake:ball_constraint_body_A>{first}</drake:ball_constraint_body_A>"
        "<drake:ball_constraint_p_AP>2 0 0</drake:ball_constraint_p_AP>"
        f"<drake:ball_constraint_body_B>{second}</drake:ball_constraint_body_B>"
        "<drake:ball_constraint_p_BQ>0 1 0</drake:ball_constraint_p_BQ></drake:ball_constraint>"
    )


@pytest.mark.parametrize("names", [("coupler", "rocker"), ("bars::coupler", "bars::rocker")])
def test_a_ball_of_drake_closes_a_loop_of_an_sdf(names: tuple[str, str]) -> None:
    start = SDF.index('    <joint name="close"')
    open_chain = SDF[:start] + "  </model>\n</sdf>\n"
    assert pl.load(open_chain).loops == ()
    text = open_chain.replace("  </model>", drake_ball(*names) + "</model>")
    assert_parallelogram(pl.load(text))


def test_a_ball_of_drake_finds_the_links_of_nested_models() -> None:
    inner = (
        '<model name="inner"><link name="rocker"/></model><joint name="weld" type="fixed">'
        "<parent>rocker</parent><child>inner::rocker</child></joint>"
    )
    for name in ("inner::rocker", "bars::inner::rocker"):
        loop = inner + drake_ball("coupler", name)
        loaded = pl.load(SDF.replace("  </model>", loop + "</model>"))
        assert [loop.body_b for loop in loaded.loops] == ["rocker", "inner::rocker"]


# -- other sources -----------------------------------------------------------------------------


def test_a_pin_model_may_be_closed() -> None:
    model = pin.buildModelFromXML(URDF_TREE)
    model.name = "bars"
    assert_parallelogram(pl.load(model, loops=yaml.safe_load(LOOPS)))


def test_joints_of_a_robot_keep_their_order_under_load() -> None:
    """Children of a link come by name, as Pinocchio reads them, not as the file has them."""
    text = robot(
        *(link(name) for name in "abcd"),
        joint("z", "a", "b"),
        joint("y", "a", "c"),
        joint("x", "b", "d"),
    )
    assert pl.load(text).joints == ("y", "z", "x")


WORLD = """<sdf version="1.9"><world name="w">
<model name="arm"><link name="a"/><joint name="j" type="revolute"><parent>world</parent>
<child>a</child><axis><xyz>0 0 1</xyz></axis></joint></model>
<model name="cube"><link name="c"/></model></world></sdf>"""


def test_a_model_of_several_is_loaded_by_its_name(tmp_path: Path) -> None:
    path = tmp_path / "world.sdf"
    path.write_text(WORLD)
    assert pl.load(path, model="arm").joints == ("j",)
    assert pl.load(path, model="cube").nv == 6
    with pytest.raises(pl.LoadError, match=r"2 models \('arm', 'cube'\); name the one .* --model"):
        pl.load(path)
    with pytest.raises(pl.LoadError, match="no model 'arm'; known: robot"):
        pl.load(two_joints(), model="arm")
    assert cli.run(["check", str(path), "--model", "arm"]) == 0
    assert cli.run(["check", str(path), "--model", "arn"]) == 2


def test_models_and_meshes_are_looked_for_in_the_folders_given(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "store" / "arm"
    folder.mkdir(parents=True)
    (folder / "model.sdf").write_text(WORLD.replace('<world name="w">', "").replace(
        "</world>", "").replace('<model name="cube"><link name="c"/></model>', ""))  # fmt: skip
    path = tmp_path / "world.sdf"
    path.write_text(
        '<sdf version="1.9"><world name="w"><include><uri>model://arm</uri></include></world></sdf>'
    )
    with pytest.raises(pl.LoadError, match="'model://arm', which is not found; name the folder"):
        pl.load(path)
    assert pl.load(path, package_dirs=tmp_path / "store").joints == ("j",)
    monkeypatch.setenv("GZ_SIM_RESOURCE_PATH", str(tmp_path / "store"))
    assert pl.load(path).joints == ("j",)


def test_a_robot_without_moving_joints_can_be_simulated() -> None:
    still = pl.load(robot(link("base"), link("tip"), joint("j", "base", "tip", "fixed")))
    assert still.nv == 0
    run = pl.simulate(still, still.neutral, until=0.1)
    assert run.t[-1] == 0.1 and run.v.shape == (len(run.t), 0)


def test_a_rotor_with_inertia_and_no_mass_is_simulated() -> None:
    rotor = '<inertial><mass value="0"/><inertia ixx="1" iyy="1" izz="0.5"/></inertial>'
    text = robot(link("base", ""), link("p", rotor), joint("j", "base", "p", axis=(0, 0, 1)))
    loaded = pl.load(text)
    assert loaded.warnings == ()
    run = pl.simulate(loaded, loaded.neutral, until=1.0, tau=lambda t, q, v: np.array([0.25]))
    # 0.25 N m on 0.5 kg m^2 about the joint's z axis: a quarter radian in the first second.
    assert run.q[-1][0] == pytest.approx(0.25, rel=1e-9)


def test_xml_is_no_yaml() -> None:
    with pytest.raises(pl.LoadError, match="is XML where a study file in YAML is expected"):
        read_yaml(two_joints(), "study.yaml", "study file")


def test_a_robot_with_damping_and_without_masses_says_which_links_lack_them() -> None:
    text = two_joints('<dynamics damping="1"/>').replace(INERTIAL, "")
    robot = pl.load(text)
    with pytest.raises(pl.SimulationFailed, match="'p', 'q' lack mass or inertia"):
        pl.simulate(robot, robot.neutral, until=0.01)

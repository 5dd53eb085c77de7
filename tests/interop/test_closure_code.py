"""Programs that close loops, against the robots that they are written for."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path
from runpy import run_path
from typing import Any

import numpy as np
import pinocchio as pin
import pytest

import pinloop as pl
from pinloop.assembly.continuation import moved_away
from pinloop.interop.straight_line import Recorder
from pinloop.model.description import GROUND, Coupling
from pinloop.model.mechanism import build

from .. import screw_tables as tables

LOOPED = (
    *("fourbar", "fivebar", "sevenbar", "palletizer", "delta", "stewart", "bricard", "prrr3"),
    "spherical_fourbar",
)
PAIRS: dict[str, dict[str, Any]] = {
    "revolute": {},
    "cylindrical": {},
    "helical": {"pitch": 0.05},
    "universal": {"axis2": [0.0, -0.3, 1.0]},
    "spherical": {},
    "fixed": {},
    "rod": {"point2": [0.3, 0.2, 0.6]},
    "point_on_line": {},
    "point_on_plane": {},
}


def written(robot: pl.Mechanism, folder: Path, **options: Any) -> dict[str, Any]:
    """The program in Python."""
    return run_path(str(pl.export_closure(robot, folder / "program.py", **options)))


def nearby(robot: pl.Mechanism, q: Any, count: int) -> list[Any]:
    """Assemblies in reach."""
    rng = np.random.default_rng(1)
    poses = [moved_away(robot, q, rng) for _ in range(count)]
    return [pose for pose in poses if pose is not None]


def led(robot: pl.Mechanism, program: dict[str, Any], q: Any, there: Any) -> Any:
    """A configuration whose driven joints are where they are in another one."""
    q = np.array(q)
    for joint in set(program["DRIVEN"]):
        q[robot.coordinates(joint).q] = there[robot.coordinates(joint).q]
    return q


def columns(robot: pl.Mechanism, joints: list[str]) -> Any:
    """Velocity coordinates of joints that all have one entry per velocity."""
    return np.concatenate(
        [np.arange(robot.nv)[robot.coordinates(j).v] for j in dict.fromkeys(joints)]
    )


@pytest.mark.parametrize("name", LOOPED)
def test_driven_joints_lead_all_rows_closed(name: str, tmp_path: Path) -> None:
    robot = pl.example(name)
    program = written(robot, tmp_path)
    whole = pl.Constraints(robot, full=True)
    assert np.abs(whole.residual(program["REFERENCE"])).max() < 1e-10
    poses = nearby(robot, np.array(program["REFERENCE"]), 4)
    assert len(poses) > 1
    for there in poses:
        begin = led(robot, program, program["REFERENCE"], there)
        q = np.array(program["close"](begin))
        assert np.abs(whole.residual(q)).max() < 1e-10
        np.testing.assert_array_equal(led(robot, program, q, begin), q)  # the driven ones stay
        v = np.zeros(robot.nv)
        v[columns(robot, program["DRIVEN"])] = np.linspace(-1.0, 1.0, len(program["DRIVEN"]))
        v[columns(robot, program["FOLLOWING"])] = (
            np.array(program["jacobian"](q)) @ v[columns(robot, program["DRIVEN"])]
        )
        assert np.abs(whole.jacobian(q) @ v).max() < 1e-8
        # Against differences of `close`, which knows nothing of `jacobian`.
        ends = [
            np.array(program["close"](pin.integrate(robot.model, q, s * 1e-5 * v))) for s in (1, -1)
        ]
        rate = pin.difference(robot.model, ends[1], ends[0]) / 2e-5
        np.testing.assert_allclose(rate, v, atol=1e-6 * max(1.0, np.abs(v).max()))


@pytest.mark.parametrize("name", ["prrr3", "delta", "bricard"])
def test_both_languages_say_the_same(name: str, tmp_path: Path) -> None:
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("there is no C compiler")
    robot = pl.example(name)
    program = written(robot, tmp_path)
    source = pl.export_closure(robot, tmp_path / "robot.c")
    strict = ["-std=c99", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-O1", "-shared", "-fPIC"]
    command = [compiler, *strict, str(source), "-o", str(tmp_path / "robot.so"), "-lm"]
    subprocess.run(command, check=True, timeout=120)
    library = ctypes.CDLL(str(tmp_path / "robot.so"))
    numbers = ctypes.c_double * robot.nq
    reference = np.array(numbers.in_dll(library, "robot_reference"))
    np.testing.assert_array_equal(reference, program["REFERENCE"])
    shape = len(program["FOLLOWING"]), len(program["DRIVEN"])
    for there in nearby(robot, reference, 3):
        begin = led(robot, program, reference, there)
        q, G = numbers(*begin), np.empty(shape)
        assert 0 < library.robot_close(q) < 30
        assert library.robot_jacobian(q, G.ctypes.data_as(ctypes.c_void_p)) == 0
        expected = program["close"](begin)
        np.testing.assert_allclose(np.array(q), expected, atol=1e-9)
        slopes = np.array(program["jacobian"](expected))
        np.testing.assert_allclose(G, slopes, atol=1e-6 * np.abs(slopes).max())
    if name == "prrr3":
        begin[robot.coordinates("slide_x").q] += 50.0
        q = numbers(*begin)
        assert library.robot_close(q) == -1
        np.testing.assert_array_equal(np.array(q), begin)


def test_where_loops_cannot_close_the_program_says_so(tmp_path: Path) -> None:
    robot = pl.example("prrr3")
    program = written(robot, tmp_path)
    q = np.array(program["REFERENCE"])
    q[robot.coordinates("slide_x").q] += 50.0
    with pytest.raises(program["NotClosed"], match=r"no closed configuration|singular"):
        program["close"](q)
    flat = pl.example("spherical_fourbar")
    singular = written(flat, tmp_path)
    with pytest.raises(singular["NotClosed"], match="singular"):
        singular["jacobian"](flat.neutral)


@pytest.mark.parametrize("kind", PAIRS)
def test_pairs_of_all_kinds_close(kind: str, tmp_path: Path) -> None:
    """The end of a chain with a ball, a planar joint and slides in it hangs on such a joint."""
    robot = chain_on(kind)
    program = written(robot, tmp_path, driven=independent(robot))
    q0, rows, residuals = np.array(program["REFERENCE"]), pl.Constraints(robot), list[float]()
    for there in nearby(robot, q0, 3):
        step = pin.difference(robot.model, q0, there)
        begin = led(robot, program, q0, pin.integrate(robot.model, q0, 0.1 * step))
        residuals.append(np.abs(rows.residual(begin)).max())
        q = np.array(program["close"](begin))
        assert np.abs(rows.residual(q)).max() < 1e-10
        led_by, follow = columns(robot, program["DRIVEN"]), columns(robot, program["FOLLOWING"])
        v = np.zeros(robot.nv)
        v[led_by] = np.linspace(-1.0, 1.0, len(led_by))
        v[follow] = np.array(program["jacobian"](q)) @ v[led_by]
        assert np.abs(rows.jacobian(q) @ v).max() < 1e-9 * np.abs(v).max()
        # Steps are right to first order.
        v[led_by], moved = 0.0, q.tolist()
        program["_move"](moved, 1e-6 * v[follow])
        step = pin.difference(robot.model, q, np.array(moved))
        np.testing.assert_allclose(1e6 * step, v, atol=1e-4 * np.abs(v).max())
    assert max(residuals) > 1e-3


def independent(robot: pl.Mechanism) -> list[str]:
    """Joints that can be driven at once, as many as there are."""
    J, held = pl.Constraints(robot).jacobian(pl.assemble(robot)), np.zeros(robot.nv, dtype=bool)
    driven = list[str]()
    for joint in robot.joints:
        more = held.copy()
        more[robot.coordinates(joint).v] = True
        if not more.all() and np.linalg.matrix_rank(J[:, ~more]) == len(J):
            held = more
            driven.append(joint)
    return driven


def chain_on(kind: str) -> pl.Mechanism:
    """Hinges that carry joints of several coordinates, and a closing joint of some kind."""
    rng, more = np.random.default_rng(3), PAIRS[kind]
    rows = 6 - {"universal": 2, "rod": 5, "point_on_line": 4, "point_on_plane": 5}.get(kind, 1)
    inner = ["spherical", "revolute", "planar", "revolute", "spatial_translation"]
    kinds = ["revolute"] * 6 + inner[: 1 + rows % 5]
    joints = [
        tables.joint(
            f"j{k}", pair, f"b{k}" if k else GROUND, f"b{k + 1}",
            rng.normal(size=3), rng.normal(size=3),
        )
        for k, pair in enumerate(kinds)
    ]  # fmt: skip
    place = [rng.normal(size=3), np.array([1.0, 0.0, 0.0])]
    if kind == "rod":
        del place[1]  # between two points
    closing = tables.joint("closer", kind, GROUND, f"b{len(kinds)}", *place, cut=True, **more)
    return tables.build(tables.table("chain", *joints, closing))


def test_circles_have_cosines_and_sines(tmp_path: Path) -> None:
    """Joints of Pinocchio without end: a parallelogram, whose joints turn as its crank."""
    model = pin.Model()
    for name, parent, place in (("a", 0, [0, 0, 0]), ("b", 1, [1, 0, 0]), ("c", 0, [0, 2, 0])):
        at = pin.SE3(np.eye(3), np.array(place, dtype=float))
        index = model.addJoint(parent, pin.JointModelRUBZ(), at, name)
        model.appendBodyToJoint(index, pin.Inertia.FromSphere(1.0, 0.1), at)
    ends = (
        pin.SE3(np.eye(3), np.array([0.0, 2.0, 0.0])),
        pin.SE3(np.eye(3), np.array([1.0, 0.0, 0.0])),
    )
    loop = pin.RigidConstraintModel(pin.ContactType.CONTACT_3D, model, 2, ends[0], 3, ends[1])
    robot = pl.load(model, loops=[loop])
    program = written(robot, tmp_path, driven=["a"])
    np.testing.assert_allclose(program["jacobian"](robot.neutral), [[-1.0], [1.0]], atol=1e-14)
    q = robot.integrate(robot.neutral, [0.3, 0.0, 0.0])
    close = [np.cos(0.3), -np.sin(0.3), np.cos(0.3), np.sin(0.3)]
    np.testing.assert_allclose(program["close"](q)[2:], close, atol=1e-12)
    moved = robot.neutral.tolist()
    program["_move"](moved, [-1e-7, 1e-7])
    np.testing.assert_allclose(moved[2:], [1.0, -1e-7, 1.0, 1e-7], atol=1e-13)


def test_couplings_are_followed(tmp_path: Path) -> None:
    arm = pl.example("planar_3r")
    first, second, _ = arm.joints
    cam = Coupling("cam", (first, second), ((0.1, 1.0, 0.3), (0.0, -2.0, 0.0, 0.4)))
    robot = build(replace(arm.description, couplings=(cam,)))
    program = written(robot, tmp_path, driven=[first])
    q = np.array(program["close"](0.3 + np.array(program["REFERENCE"])))
    x, y = q[:2]
    assert abs(0.1 + x + 0.3 * x**2 - 2.0 * y + 0.4 * y**3) < 1e-11
    slope = (1.0 + 0.6 * x) / (2.0 - 1.2 * y**2)
    assert program["jacobian"](q)[0][0] == pytest.approx(slope, rel=1e-10)


@pytest.mark.parametrize(
    ("driven", "message"),
    [
        (["elbow"], "degrees of freedom of the loops are left; drive more joints"),
        (["elbow", "shoulder", "forearm_hinge"], "depend on each other"),
        (["base_yaw", "wrist"], "left|follows"),
        (["knee"], "knee"),
        ("elbow", "the joints are 'elbow'; give a list"),
        (["drive_loop"], "closes a loop and has no coordinate"),
    ],
)
def test_drives_must_fit_the_loops(driven: list[str], message: str, tmp_path: Path) -> None:
    with pytest.raises(pl.PinloopError, match=message):
        pl.export_closure(pl.example("palletizer"), tmp_path / "x.py", driven=driven)
    assert not list(tmp_path.iterdir())


def test_targets_are_programs_of_ours(tmp_path: Path) -> None:
    robot = pl.example("fourbar")
    mine = tmp_path / "x.h"
    mine.write_text("int answer;")
    with pytest.raises(pl.PinloopError, match=r"x\.h was not written by pinloop"):
        pl.export_closure(robot, tmp_path / "x.c")
    assert not (tmp_path / "x.c").exists() and mine.read_text() == "int answer;"
    for name in ("x.cpp", "4bar.c", "class.py"):
        with pytest.raises(pl.PinloopError, match=r"language|name"):
            pl.export_closure(robot, tmp_path / name)
    for _ in range(2):
        pl.export_closure(robot, tmp_path / "y.c")
    with pytest.raises(pl.PinloopError, match="follows"):
        pl.export_closure(pl.example("six_axis_arm"), tmp_path / "z.c")


def test_programs_of_symbols_leave_out_what_is_known() -> None:
    recorder = Recorder()
    x, y = recorder.note("x"), recorder.note("y")
    R = np.array([[x, 0.0], [0.0, 1.0]]) @ np.array([[y, 1.0], [2.0, 0.0]])
    dropped = recorder.call("sin", y)
    program = recorder.program({"a": R[0, 0], "b": R[0, 1], "c": R[1, 0], "d": y * x - (-x)})
    assert dropped.name not in " ".join(program)
    values = {"x": 3.0, "y": 5.0}
    exec("\n".join(program), values)
    assert [values[name] for name in "abcd"] == [15.0, 3.0, 2.0, 18.0]
    assert sum("*" in line for line in program) == 1  # x y is computed once

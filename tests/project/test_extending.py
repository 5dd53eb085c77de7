"""One file adds a thing of each kind: what `docs/extending.md` shows goes all the way.

The programs of the page are run by `test_docs`; here the same files are taken through what the page
does not show: load, save, load, simulate, lock, stop, pickle, replay, and a program that has not
imported them.
"""

from __future__ import annotations

import csv
import importlib
import json
import pickle
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pinocchio as pin
import pytest
from numpy.typing import NDArray

import pinloop as pl
from pinloop.cli import main as cli
from pinloop.errors import BadValue, LoadError
from pinloop.model.description import GROUND, Body, Description, Joint, constant
from pinloop.model.mechanism import build
from pinloop.model.pairs import Pair, make_pair, product_joint
from pinloop.safety.brakes.joint_brake import JointBrake
from pinloop.safety.stopping.categories import Category, as_category
from pinloop.tables.report import Notes

from ..pages import blocks
from ..pairs_by_hand import rate_along, slope

Array = NDArray[np.float64]

ROOT = Path(__file__).parents[2]
PAGE = {
    block.note.removeprefix("file: "): block.body
    for block in blocks((ROOT / "docs" / "extending.md").read_text(encoding="utf-8"))
    if block.note.startswith("file: ")
}

SLOTS = '''
"""A pin in a slot: it slides along x of A and turns about z of B, which is no group."""

from dataclasses import dataclass, field

import numpy as np

from pinloop.model.pairs import DIRECTION, POINT, Pair, Symbol, SymbolSolid, product_joint


@dataclass(frozen=True)
class PinInSlot(Pair):
    """Slides along x, then turns about z; a slot that is bent moves B along y by a polynomial of x.

    Args:
        bend: coefficients of y of the slot, lowest power first.
        margin: not used by the equations.
    """

    bend: tuple[float, ...] = field(default=(), metadata={"unit": "m"})
    margin: float = field(default=0.25, metadata={"unit": "m"})
    name = "pin_in_slot"
    aliases = ("slotted_pin",)
    labels = ("p_y", "p_z", "w_x", "w_y")
    features = (DIRECTION, POINT)
    tree_joints = {"": product_joint("Px", "Rz")}
    symbol = Symbol((SymbolSolid("box", (3.0, 0.5, 0.5)),), color="slide")

    def side(self, x, derivative=0):
        return np.polynomial.Polynomial(self.bend or (0.0,)).deriv(derivative)(x)

    def residual(self, T):
        x, y, z = T.translation
        return np.array([y - self.side(x), z, -T.rotation[1, 2], T.rotation[0, 2]])

    def selector(self, T):
        R, x = T.rotation, T.translation[0]
        rows = np.zeros((4, 6))
        rows[0, :3] = R[1] - self.side(x, 1) * R[0]
        rows[1, :3] = R[2]
        # z of B turns by R (w x e_z).
        rows[2, 3:] = np.cross([0, 0, -1.0], R[1])
        rows[3, 3:] = np.cross([0, 0, 1.0], R[0])
        return rows

    def bias(self, T, V):
        R, v, w = T.rotation, V[:3], V[3:]
        turning, x = R @ np.cross(w, v), T.translation[0]
        twice = R @ np.cross(w, np.cross(w, [0, 0, 1.0]))
        bent = self.side(x, 2) * (R[0] @ v) ** 2 + self.side(x, 1) * turning[0]
        return np.array([turning[1] - bent, turning[2], -twice[1], twice[0]])
'''

MODULES = {name.removesuffix(".py"): body for name, body in PAGE.items() if name.endswith(".py")}
MODULES |= {"slots": SLOTS}


@pytest.fixture
def module(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[[str], ModuleType]]:
    """Imports a module that a user has written."""
    monkeypatch.syspath_prepend(tmp_path)

    def load(name: str) -> ModuleType:
        (tmp_path / f"{name}.py").write_text(MODULES[name], encoding="utf-8")
        sys.modules.pop(name, None)
        return importlib.import_module(name)

    yield load
    for name in MODULES:
        sys.modules.pop(name, None)


def in_another_process(program: str, folder: Path) -> str:
    """What a program prints, run where the user's modules can be imported."""
    run = subprocess.run(
        [sys.executable, "-c", program], cwd=folder, capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stderr
    return run.stdout


# -- a pair -----------------------------------------------------------------------------------


def bar(name: str) -> Body:
    return Body(name, 1.3, constant((0.5, 0.1, 0.0)), constant(np.diag([0.02, 0.11, 0.12])))


def frame(*xyz: float, rpy: tuple[float, float, float] = (0.0, 0.0, 0.0)) -> pin.SE3:
    return pin.SE3(pin.rpy.rpyToMatrix(*rpy), np.array(xyz))


def hinge(name: str, parent: str, child: str, x: float) -> Joint:
    along_y = (-np.pi / 2, 0.0, 0.0)
    return Joint(name, make_pair("revolute"), parent, child, frame(x, 0, 0, rpy=along_y),
                 frame(0, 0, 0, rpy=along_y), cut=False)  # fmt: skip


def chain(*joints: Joint) -> pl.Mechanism:
    """Two hinged bars with further joints."""
    bodies = {end: None for joint in joints for end in (joint.parent, joint.child)}
    bars = dict.fromkeys(["upper", "lower", *bodies])
    hinges = hinge("shoulder", GROUND, "upper", 0.0), hinge("elbow", "upper", "lower", 1.0)
    moving = tuple(bar(name) for name in bars if name != GROUND)
    return build(Description("own pair", moving, (*hinges, *joints), actuated=("shoulder",)))


def grooved(pairs: ModuleType) -> pl.Mechanism:
    """The end of the lower bar in a groove, by a tilted frame."""
    groove = frame(1.2, 0.0, -0.3, rpy=(np.pi / 2, 0.0, 0.0))
    return chain(Joint("own", pairs.PointOnCylinder(0.8), GROUND, "lower", groove,
                       frame(1.0, 0.0, 0.0, rpy=(0.3, -0.2, 0.1)), cut=True))  # fmt: skip


def slotted_loop(pairs: ModuleType) -> pl.Mechanism:
    """The end of the lower bar in a bent slot: rows of angles that the hinges keep already."""
    slot = frame(1.4, 0.0, -0.2, rpy=(np.pi / 2, 0.2, 0.0))
    # x of A in the plane of motion, z of A and of B along the hinges.
    level = pin.SE3(np.array([[1.0, 0, 0], [0, 0, -1.0], [0, 1.0, 0]]), slot.translation)
    pin_frame = pin.SE3(level.rotation, np.array([1.0, 0.0, 0.0]))
    pair = pairs.PinInSlot((0.0, 0.1, 0.3), 0.5)
    return chain(Joint("own", pair, GROUND, "lower", level, pin_frame, cut=True))


def slotted_tree(pairs: ModuleType) -> pl.Mechanism:
    """A bar that slides and turns on the lower one."""
    seats = frame(0.7, 0.1, 0.0, rpy=(-1.4, 0.1, 0.0)), frame(0.1, 0.0, 0.2, rpy=(0.2, 0.0, 1.0))
    return chain(Joint("own", pairs.PinInSlot(), "lower", "rider", *seats, damping=(0.2, 0.3)))


def slotted_backwards(pairs: ModuleType) -> pl.Mechanism:
    """The same, told from the rider."""
    robot = slotted_tree(pairs)
    *others, own = robot.description.joints
    own = replace(own, parent=own.child, child=own.parent)
    return build(replace(robot.description, joints=(*others, own)))


ROBOTS = [
    pytest.param("grooves", grooved, id="point on cylinder"),
    pytest.param("slots", slotted_loop, id="pin in bent slot"),
    pytest.param("slots", slotted_tree, id="pin in slot, in the tree"),
    pytest.param("slots", slotted_backwards, id="pin in slot, backwards in the tree"),
]
every_robot = pytest.mark.parametrize(("source", "make"), ROBOTS)
Maker = Callable[[ModuleType], pl.Mechanism]
Loader = Callable[[str], ModuleType]


def own_pair(robot: pl.Mechanism) -> Pair:
    return next(joint for joint in robot.description.joints if joint.name == "own").pair


def assert_same_robot(robot: pl.Mechanism, other: pl.Mechanism) -> None:
    """The same pair, and the same numbers of the equations of motion."""
    assert own_pair(robot) == own_pair(other)
    assert type(own_pair(robot)) is type(own_pair(other))
    q, v = states(robot)
    for one in (robot, other):
        assert list(one.model.names) == list(robot.model.names)
    a, b = (pl.EquationsOfMotion(one).motion(0.0, q, v) for one in (robot, other))
    np.testing.assert_allclose(a.a, b.a, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(a.constraint_force, b.constraint_force, rtol=1e-9, atol=1e-11)


def states(robot: pl.Mechanism) -> tuple[Array, Array]:
    q = pl.assemble(robot)
    return q, pl.consistent_velocity(robot, q, {"shoulder": 0.7})


def goes_all_the_way(
    robot: pl.Mechanism,
    folder: Path,
    *,
    lock: str,
    category: int | Category = 0,
    same: Callable[[pl.Mechanism], object] = repr,
    method: pl.MuntheKaas | None = None,
    **options: Any,
) -> pl.simulation.Trajectory:
    """Take a robot through load, save, load, simulate, lock, stop, pickle and replay.

    Args:
        robot: the robot.
        folder: where files are written.
        lock: joint that is locked after half of the run.
        category: category of the stop.
        same: checks a robot that came back.
        method: integrator of the run and of the stop.
        options: what else `simulate` takes.
    """
    loaded = pl.load(robot.save(folder / "own.urdf"))
    assert loaded.warnings == robot.warnings
    for other in (loaded, pl.load(loaded.save(folder / "twice.urdf")), again(robot)):
        same(other)
    q = pl.assemble(loaded)
    v = pl.consistent_velocity(loaded, q, {loaded.actuated[0]: 0.7})
    method = method or pl.MuntheKaas()
    locking = [pl.lock(lock, at=0.2)]
    run = pl.simulate(loaded, q, v, until=0.4, events=locking, method=method, **options)
    assert run.transitions[0].energy_loss >= -1e-12
    assert np.abs(run.closure()).max(initial=0.0) < 1e-9
    energy, before = run.energy(), run.t < 0.2
    turned_over = max(np.ptp(values) for values in (energy.kinetic, energy.potential))
    assert np.abs(energy.error[before]).max() < 1e-5 * turned_over
    read = pl.simulation.load_trajectory(run.save(folder / "run.npz"))
    for other in (read, again(run)):
        assert np.array_equal(other.q, run.q)
        same(other.robot)
    assert lock in read.save_html(folder / "run.html").read_text(encoding="utf-8")
    brake = JointBrake(side="joint", dynamic_torque=2000.0, deceleration=5.0)
    brakes = pl.Brakes(dict.fromkeys(loaded.actuated, brake))
    stop = pl.stop(loaded, q, v, brakes=brakes, category=category, method=method)
    assert stop.ledger.relative_error < 1e-4
    twin = again(stop)
    assert twin.category == stop.category == as_category(category)
    assert twin.joints == stop.joints
    written = json.loads(stop.save_json(folder / "stop.json").read_text(encoding="utf-8"))
    assert written["category"]["number"] == stop.category.number
    assert stop.save_html(folder / "stop.html").stat().st_size > 100_000
    return run


def again(thing: Any) -> Any:
    """What comes out of a pickle."""
    return pickle.loads(pickle.dumps(thing))


@every_robot
def test_a_pair_of_ones_own_goes_all_the_way(
    source: str, make: Maker, module: Loader, tmp_path: Path
) -> None:
    robot = make(module(source))
    run = goes_all_the_way(
        robot, tmp_path, lock="elbow", same=lambda other: assert_same_robot(robot, other)
    )
    q, v = run.q[0], run.v[0]
    augmented = pl.EquationsOfMotion(robot).motion(0.0, q, v)
    for formulation in (pl.Projected(), pl.Voronets(), pl.ODCA()):
        motion = pl.EquationsOfMotion(robot, formulation=formulation).motion(0.0, q, v)
        np.testing.assert_allclose(motion.a, augmented.a, rtol=1e-8, atol=1e-8)
    assert pl.diagnose(pl.regularize(robot)).assembled


@every_robot
def test_rows_of_a_pair_of_ones_own_are_derivatives(
    source: str, make: Maker, module: Loader
) -> None:
    pair, rng = own_pair(make(module(source))), np.random.default_rng(3)
    for _ in range(5):
        T = pin.SE3.Random()
        V0, V1 = rng.normal(size=(2, 6))
        if source == "slots":  # whose angle rows are those of the residual on the manifold only
            T.rotation = pin.rpy.rpyToMatrix(0.0, 0.0, rng.normal())
        np.testing.assert_allclose(
            rate_along(pair.residual, T, V0), pair.selector(T) @ V0, rtol=1e-6, atol=1e-6
        )

        def row_rates(t: float, T: pin.SE3 = T, V0: Array = V0, V1: Array = V1) -> Array:
            moved = T * pin.exp6(t * V0 + t * t / 2 * V1)
            return np.asarray(pair.selector(moved) @ (V0 + t * V1))

        expected = pair.selector(T) @ V1 + pair.bias(T, V0)
        np.testing.assert_allclose(slope(row_rates), expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("make", [slotted_tree, slotted_backwards])
def test_a_pair_of_ones_own_moves_in_the_tree_as_its_rows_say(make: Maker, module: Loader) -> None:
    robot, rng = make(module("slots")), np.random.default_rng(4)
    joint = robot.description.joints[-1]
    for q in rng.uniform(-1, 1, (5, robot.nq)):
        a, b = (robot.placement(q, end) for end in (joint.parent, joint.child))
        T = (a * joint.frame_parent).actInv(b * joint.frame_child)
        assert np.abs(joint.pair.residual(T)).max() < 1e-14
        at = robot.coordinates("own").q.start
        x, angle = q[at : at + 2] if make is slotted_tree else q[at : at + 2][::-1]
        assert T.translation[0] == pytest.approx(x, abs=1e-14)
        assert np.arctan2(T.rotation[1, 0], T.rotation[0, 0]) == pytest.approx(angle, abs=1e-14)


def test_files_name_the_class_and_import_nothing(module: Loader, tmp_path: Path) -> None:
    """A program that has not imported the module is told which class is missing."""
    loop, tree = grooved(module("grooves")), slotted_tree(module("slots"))
    loop.save(tmp_path / "loop.urdf")
    tree.save(tmp_path / "tree.urdf")
    pl.simulate(loop, pl.assemble(loop), until=0.01).save(tmp_path / "run.npz")
    program = """
import sys
import pinloop as pl
for load, file in ((pl.load, "loop.urdf"), (pl.load, "tree.urdf"),
                   (pl.simulation.load_trajectory, "run.npz")):
    try:
        load(file)
    except pl.LoadError as error:
        print(error)
assert not {"grooves", "slots"} & set(sys.modules)
import grooves, slots
print(pl.load("loop.urdf").loops[0].pair, pl.load("tree.urdf").nv)
"""
    missing = "which is not imported here; import {0} before you load"
    lines = in_another_process(program, tmp_path).splitlines()
    assert lines[0].startswith("loop.urdf:")
    for line, name in zip(lines[:3], ("grooves", "slots", "grooves"), strict=True):
        assert line.endswith(missing.format(name)), line
    assert "<joint name='own'>" in lines[1] and "class PinInSlot of module 'slots'" in lines[1]
    assert lines[2].startswith("run.npz: holds a robot that cannot be read: ")
    assert lines[3:] == ["PointOnCylinder(radius=0.8) 4"]


def defined(text: str) -> type[Pair]:
    """A pair that is defined in a program of its own, with the rows of a fixed one."""
    names: dict[str, object] = {"__name__": "__main__"}
    exec("from dataclasses import dataclass\nfrom typing import Any\n"
         "from pinloop.model.pairs import Pair, make_pair\nFIXED = make_pair('fixed')\n"
         f"{text}\n"
         "    labels = FIXED.labels\n"
         "    def residual(self, T): return FIXED.residual(T)\n"
         "    def selector(self, T): return FIXED.selector(T)\n"
         "    def bias(self, T, V): return FIXED.bias(T, V)\n", names)  # fmt: skip
    found = names["Mine"]
    assert isinstance(found, type) and issubclass(found, Pair)
    return found


FROZEN = "@dataclass(frozen=True)\nclass Mine(Pair):\n    name = 'mine'\n"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("class Mine(Pair):\n    name = 'revolute'", "that is the pair Revolute"),
        ("class Mine(Pair):\n    name = 'mine'\n    aliases = ('ball',)", "the pair Spherical"),
        ("class Mine(Pair):\n    name = 'My pair'", "small letters, digits and underscores"),
    ],
)
def test_a_name_that_is_taken_is_refused_when_the_class_is_defined(text: str, words: str) -> None:
    with pytest.raises(BadValue, match=words):
        defined(text)


@pytest.mark.parametrize(
    ("text", "arguments", "words"),
    [
        ("class Mine(Pair):\n    name = 'mine'", (), "is no frozen dataclass"),
        ("@dataclass\nclass Mine(Pair):\n    name = 'mine'", (), "is no frozen dataclass"),
        (f"{FROZEN}    shape: Any", (np.sin,), "shape of pair 'mine' is <ufunc 'sin'>"),
        (f"{FROZEN}    shape: Any", (float("nan"),), "must be a finite number"),
    ],
)
def test_what_files_cannot_hold_is_said_before_one_is_written(
    text: str, arguments: tuple[object, ...], words: str, tmp_path: Path
) -> None:
    pair = defined(text)(*arguments)
    robot = chain(Joint("own", pair, GROUND, "lower", frame(2, 0, 0), frame(1, 0, 0), cut=True))
    with pytest.raises(BadValue, match=words):
        robot.save(tmp_path / "robot.urdf")
    with pytest.raises(BadValue, match=words):
        pl.simulate(robot, np.zeros(2), until=0.001).save(tmp_path / "run.npz")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("    def bias(self, T, V): return 0.0", r"bias has shape \(\); with 6 labels it must be"),
        ("    def residual(self, T): return [T.rotations]", "fails: AttributeError: .*rotations"),
        ("    labels = ('d',)", r"residual has shape \(6,\); with 1 labels"),
    ],
)
def test_a_pair_that_is_written_wrongly_is_named(text: str, words: str) -> None:
    mine = defined(FROZEN)
    wrong: dict[str, Any] = {"__name__": "__main__", "Mine": mine, "dataclass": dataclass}
    exec(f"@dataclass(frozen=True)\nclass Wrong(Mine):\n    name = 'wrong'\n{text}\n", wrong)
    with pytest.raises(LoadError, match=rf"joint 'own' has the pair Wrong, .*{words}"):
        chain(Joint("own", wrong["Wrong"](), GROUND, "lower", frame(2, 0, 0), frame(1, 0, 0)))
    with pytest.raises(
        LoadError, match="joint 'own' has 'revolute' as its pair; it must be a Pair"
    ):
        chain(Joint("own", "revolute", GROUND, "lower", frame(2, 0, 0), frame(1, 0, 0)))  # type: ignore[arg-type]


def test_a_motion_in_the_tree_that_leaves_the_rows_is_refused(module: Loader) -> None:
    """A slot that is bent, which is straight as a joint of the tree, would be another robot."""
    pair = module("slots").PinInSlot((0.0, 0.0, 0.2))
    own = Joint("own", pair, "lower", "rider", frame(1, 0, 0), frame(0, 0, 0))
    with pytest.raises(LoadError, match="the pair PinInSlot, whose tree_joints leave its rows"):
        chain(own)
    named: dict[str, Any] = {"Mine": defined(FROZEN), "dataclass": dataclass, "__name__": "x",
                             "product_joint": product_joint}  # fmt: skip
    exec("@dataclass(frozen=True)\nclass Turning(Mine):\n    name = 'turning'\n"
         "    tree_joints = {'': product_joint('Rz')}\n", named)  # fmt: skip
    with pytest.raises(LoadError, match="Turning with 0 degrees of freedom and 1 coordinates"):
        chain(replace(own, pair=named["Turning"]()))


def test_a_class_that_is_defined_again_replaces_itself() -> None:
    """As a cell of a notebook does that is run twice."""
    first, second = defined(FROZEN), defined(FROZEN)
    assert first is not second
    assert type(make_pair("mine")) is second


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"bend": "much"}, "parameters"),
        ({"bent": 1.0}, "a pin_in_slot pair has no bent; leave it out"),
        ({"bend": [0.1, float("inf")]}, "bend"),
    ],
)
def test_wrong_parameters_in_a_file_are_refused(
    parameters: dict[str, object], words: str, module: Loader
) -> None:
    module("slots")
    entry = {"name": "own", "pair": "slotted pin", "a": {"body": "base"}, "b": {"body": "bar_3"}}
    with pytest.raises(LoadError, match=words):
        pl.load(
            ROOT / "urdf" / "planar_3r.urdf", loops={"loops": [{**entry, "parameters": parameters}]}
        )


def test_a_screw_table_takes_a_pair_of_ones_own(module: Loader) -> None:
    pairs = module("slots")
    body = {"name": "rider", "mass": 1.0, "com": [0.1, 0, 0]}
    joint = {"name": "own", "pair": "pin-in-slot", "parent": "ground", "child": "rider",
             "point": [0, 0.5, 0], "axis": [0, 0, 1], "parameters": {"margin": 0.1}}  # fmt: skip
    robot = pl.from_screws({"bodies": [body], "joints": [joint]})
    assert own_pair(robot) == pairs.PinInSlot(margin=0.1)


# -- forces, formulations, integrators, formats -----------------------------------------------


def palletizer(folder: Path) -> pl.Mechanism:
    return pl.load(ROOT / "urdf" / "palletizer.urdf")


def denavit_hartenberg(folder: Path) -> pl.Mechanism:
    table = folder / "arm.csv"
    table.write_text(PAGE["arm.csv"], encoding="utf-8")
    return pl.load(table)


KINDS: dict[str, tuple[str, Callable[[Path], pl.Mechanism], str, Callable[[Any], Any]]] = {
    "force": ("magnets", palletizer, "shoulder", lambda own: {
        "forces": [own.Magnet("tool0", (1.0, 0.5, 2.0), 900.0)]}),
    "formulation": ("nullspace", palletizer, "shoulder", lambda own: {
        "formulation": own.NullSpace()}),
    "integrator": ("ralston", palletizer, "shoulder", lambda own: {
        "method": pl.MuntheKaas(own.ralston, step=1e-3)}),
    "stop category": ("timed", palletizer, "shoulder", lambda own: {
        "category": own.TimedStop(0.1)}),
    "format": ("denavit", denavit_hartenberg, "elbow", lambda own: {}),
}  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_a_thing_of_ones_own_goes_all_the_way(kind: str, module: Loader, tmp_path: Path) -> None:
    """The same motion as without it where it should not matter, and another one where it should."""
    source, make, lock, options = KINDS[kind]
    own = module(source)
    robot = make(tmp_path)
    run = goes_all_the_way(robot, tmp_path, lock=lock, **options(own))
    plain = goes_all_the_way(robot, tmp_path, lock=lock)
    difference = np.abs(run.q[-1] - plain.q[-1]).max()
    assert difference > 1e-3 if kind == "force" else difference < 1e-5


def test_a_mistake_in_a_file_of_ones_own_format_has_its_place(
    module: Loader, tmp_path: Path
) -> None:
    own = module("denavit")
    table = tmp_path / "arm.csv"
    table.write_text(PAGE["arm.csv"].replace("0.5,0,0.0,6.0", "half,0,0.0,6.0"))
    with pytest.raises(LoadError, match=r"arm\.csv:3: joint 'shoulder': .*'half'"):
        pl.load(table)
    own.DenavitHartenberg.read = lambda self, content, source: [][1]
    with pytest.raises(LoadError, match="the robot format denavit_hartenberg failed on it: IndexE"):
        pl.load(PAGE["arm.csv"])


def test_a_stop_category_of_ones_own_is_named_in_what_is_written(module: Loader) -> None:
    own, robot = module("timed"), palletizer(Path())
    q = pl.assemble(robot, {"shoulder": 0.4})
    v = pl.consistent_velocity(robot, q, {"shoulder": 0.5})
    brakes = ROOT / "urdf" / "palletizer.brakes.yaml"
    stop = pl.stop(robot, q, v, brakes=brakes, category=own.TimedStop(0.05))
    assert stop.as_dict()["category"] == {
        "number": 1, "on_path": False, "time_limit_s": 0.05, "defined_in": "timed:TimedStop",
    }  # fmt: skip
    text = " ".join(str(stop.table()).split())
    assert "brakes after a fixed time; brakes after 50 ms in any case" in text
    # Brakes come at the limit although the ramps take longer, and not a moment before.
    times = {name: t for t, name in stop.events}
    assert times["time limit"] == pytest.approx(times["command"] + 0.05)
    assert "drives stand" not in times


# -- sections of reports ----------------------------------------------------------------------


def arm_stop() -> pl.StopResult:
    robot = palletizer(Path())
    q = pl.assemble(robot, {"shoulder": 0.4})
    v = pl.consistent_velocity(robot, q, {"shoulder": 0.5, "elbow": -0.3})
    return pl.stop(robot, q, v, brakes=ROOT / "urdf" / "palletizer.brakes.yaml")


def test_a_section_of_ones_own_is_in_every_form_of_a_report(module: Loader, tmp_path: Path) -> None:
    section, stop = module("power").brake_power, arm_stop()
    (title, joint), powers = ("Mean power of the brakes", "shoulder"), {}
    for name, value in stop.joints.items():
        if value.braking_time > 0:
            powers[name] = f"{value.dissipated / value.braking_time:.0f}"
    for report in (stop.table(sections=[section]), again(stop.table(sections=[section]))):
        for text in (str(report), report.to_html(), report.to_markdown(), report.text(width=60)):
            assert title in text and powers[joint] in text.split(title)[-1]
    rows = list(csv.reader(report.to_csv(tmp_path / "report.csv").read_text().splitlines()))
    assert [row[-1] for row in rows if row[:2] == [title, joint]] == [powers[joint]]
    assert title not in str(stop.table())
    page = stop.save_html(tmp_path / "stop.html", sections=[section]).read_text(encoding="utf-8")
    assert page.count(f"<h2>{title}</h2>") == 1
    assert title not in stop.save_html(tmp_path / "stop.html").read_text(encoding="utf-8")


def test_a_section_of_a_study_is_on_its_page(tmp_path: Path) -> None:
    def slowest(study: pl.Study) -> Notes:
        return Notes("Slowest <of all>", (f"{study.column('stopping_time_s').max():.4f} s",))

    robot = pl.load(ROOT / "urdf" / "planar_3r.urdf")
    brakes = pl.Brakes(dict.fromkeys(robot.joints, JointBrake(side="joint", dynamic_torque=900.0)))
    sampling = pl.safety.Sobol(4)
    study = pl.study(
        robot, brakes, sampling=sampling, results=tmp_path / "study.csv", jobs=1, search=False
    )
    page = study.save_html(tmp_path / "study.html", sections=[slowest]).read_text(encoding="utf-8")
    assert "Slowest &lt;of all&gt;" in page
    assert f"{study.column('stopping_time_s').max():.4f} s" in page


@pytest.mark.parametrize(
    ("section", "words"),
    [
        (lambda stop: stop.nothing, "report section '<lambda>' raised AttributeError"),
        (lambda stop: {"power": 3.0}, "report section '<lambda>' returned dict; it must return a"),
    ],
)
def test_a_section_that_fails_is_named(section: Any, words: str) -> None:
    with pytest.raises(BadValue, match=words):
        arm_stop().table(sections=[section])


# -- the command line -------------------------------------------------------------------------


def test_a_command_imports_what_it_is_told_to(
    module: Loader, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    grooved(module("grooves")).save(tmp_path / "own.urdf")
    (tmp_path / "broken.py").write_text("1 / 0\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [entry for entry in sys.path if entry != str(tmp_path)])
    sys.modules.pop("grooves")
    assert cli.run(["--import", "grooves", "check", "own.urdf"]) == 0
    assert "point_on_cylinder" in capsys.readouterr().out
    for name, words in (("nothing", "there is no module 'nothing'"), ("broken", "ZeroDivision")):
        assert cli.run(["--import", name, "check", "own.urdf"]) == 2
        assert f"--import {name}: {words}" in capsys.readouterr().err

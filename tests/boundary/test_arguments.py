"""Public functions given something strange: only errors of pinloop leave them."""

from __future__ import annotations

import errno
import inspect
import os
import pickle
import re
import webbrowser
from collections.abc import Callable, Iterator
from enum import Enum
from fractions import Fraction
from functools import cache
from itertools import product
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pinocchio as pin
import pytest

import pinloop as pl
import pinloop.show.scene
from pinloop.boundary.arguments import public

from ..fourbar_files import fourbar
from ..states import URDF


class Odd:
    """Something of no kind, with nothing that anybody asks for."""

    def __repr__(self) -> str:
        return "<odd>"


STRANGE: dict[str, Any] = {
    "None": None,
    "truth": True,
    "zero": 0,
    "negative": -3,
    "digits": 10**400,
    "nan": float("nan"),
    "inf": float("inf"),
    "complex": 1j,
    "text": "nonsense",
    "empty text": "",
    "long text": "x" * 5000,
    "escape": "\x1b[2J\n\0",
    "bytes": b"bytes",
    "memory": memoryview(b"bytes"),
    "odd": Odd(),
    "type": int,
    "list": [1, "a", None],
    "empty list": [],
    "tuple": (1, 2),
    "table": {"a": 1},
    "odd table": {3: Odd()},
    "set": {1, 2},
    "array": np.ones((2, 3)),
    "array of nan": np.full(3, np.nan),
    "array of objects": np.array([Odd(), None], dtype=object),
    "ragged": [[1], [1, 2]],
    "placement": pin.SE3.Identity(),
    "folder": Path("/"),
    "function": lambda: None,
    "half a character": "\ud800",
    "fraction": Fraction(1, 3),
}


@cache
def four_bar(folder: Path) -> pl.Mechanism:
    return pl.load(fourbar(folder))


def public_names(room: ModuleType) -> list[str]:
    """What a room lists, or else what it defines without an underscore."""
    own = [k for k, v in vars(room).items() if getattr(v, "__module__", "") == room.__name__]
    return list(getattr(room, "__all__", [name for name in own if not name.startswith("_")]))


def things() -> Iterator[tuple[str, Any]]:
    """Public functions and classes, except errors, of the package and its rooms, each once."""
    rooms = [name for name in pl.__all__ if inspect.ismodule(getattr(pl, name))]
    seen: set[int] = set()
    for prefix, room in (("", pl), *((f"{name}.", getattr(pl, name)) for name in rooms)):
        for name in public_names(room):
            thing = getattr(room, name)
            plain = inspect.isfunction(thing) or (
                inspect.isclass(thing)
                and not issubclass(thing, (BaseException, Enum))  # Python looks members up
                and not getattr(thing, "_is_protocol", False)
            )
            if plain and id(thing) not in seen:
                seen.add(id(thing))
                yield f"{prefix}{name}", thing


def makers() -> Iterator[tuple[str, Any]]:
    """Class and static methods of public classes, which make their objects."""
    for name, thing in things():
        for part, member in inspect.getmembers_static(thing) if inspect.isclass(thing) else ():
            if isinstance(member, (classmethod, staticmethod)) and not part.startswith("_"):
                yield f"{name}.{part}", getattr(thing, part)


def sensible(parameter: str, robot: pl.Mechanism, brakes: pl.Brakes, run: Any, stop: Any) -> Any:
    """A value that a parameter of this name may have."""
    q = run.q[0]
    known: dict[str, Any] = {
        "robot": robot, "mechanism": robot, "q": q, "v": 0 * run.v[0], "a": 0 * run.v[0],
        "brakes": brakes, "joint": "joint_1", "name": "joint_1", "at": 0.01, "until": 0.01,
        "run": run, "trajectory": run, "source": robot.model, "path": "/nowhere/at/all",
        "result": stop, "open_browser": False, "announce": False, "frame": robot.bodies[-1],
        "results": None, "jobs": 1, "sampling": pl.safety.Corners(), "guard": lambda t, q, v: 1.0,
        "loop": robot.loops[0].name, "mode": pl.Mode(),
    }  # fmt: skip
    return known.get(parameter)


@pytest.fixture(scope="module")
def values(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Any]:
    robot = four_bar(tmp_path_factory.mktemp("robot"))
    run = pl.simulate(robot, pl.assemble(robot), until=0.002)
    brakes = pl.Brakes.template(robot)
    stop = pl.stop(robot, run.q[0], 0 * run.v[0], brakes=brakes)
    return lambda parameter: sensible(parameter, robot, brakes, run, stop)


CASE: dict[str, Any] = {
    "space": pl.safety.Space(pose={"joint_1": 0.0}), "sampling": pl.safety.Random(1),
    "jobs": 1, "until": 0.01,
}  # fmt: skip
GIVEN: dict[str, dict[str, Any]] = {
    "study": CASE | {"search": False},
    "cell_map": CASE | {"shares": [1.0], "spacing": 1.0},
    "Scenario": {"format": "pinloop-scenario-1"},
}
"""Arguments that have defaults, but which cost much or are not those of a file."""


class Closed:
    """A viewer without a server."""

    def __init__(self, exhibit: object) -> None:
        pass

    def open(self) -> None:
        pass


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", [name for room in (things, makers) for name, _ in room()])
def test_only_errors_of_pinloop_leave(
    name: str, values: Callable[[str], Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(pinloop.show.scene, "Viewer", Closed)
    monkeypatch.setattr(webbrowser, "open", lambda *_, **__: True)
    thing, short = dict([*things(), *makers()])[name], name.rpartition(".")[2]
    parameters = inspect.signature(thing).parameters
    needed = {
        key: values(key)
        for key, parameter in parameters.items()
        if parameter.default is parameter.empty
        and parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
    } | GIVEN.get(short, {})
    failures = []
    for key, parameter in parameters.items():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            continue
        # In the rooms every third value, another one for each parameter.
        third = slice(None) if short == name else slice(len(key) % 3, None, 3)
        for what, value in list(STRANGE.items())[third]:
            try:
                thing(**{**needed, key: value})
            except pl.PinloopError as error:
                assert len(str(error)) < 4100 and str(error).isprintable()
            except Exception as error:
                failures.append(f"{name}({key}={what}): {type(error).__name__}: {error}")
    assert not failures, "\n".join(failures)


MADE: list[tuple[str, str]] = [
    ("run", "plot"), ("run", "save"), ("run", "placement"), ("robot", "frame_id"),
    ("robot", "save"), ("robot", "placement"), ("brakes", "late"), ("brakes", "weak"),
    ("stop", "point"), ("swept", "contains"), ("swept", "mesh"), ("swept", "export"),
    ("constraints", "by_name"), ("report", "text"), ("stop", "plot"), ("separation", "report"),
]  # fmt: skip
"""Methods of values that are not made by their classes, or whose arguments libraries read."""


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("owner", "method"), MADE)
def test_only_errors_of_pinloop_leave_methods(
    owner: str, method: str, values: Callable[[str], Any], tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    made: dict[str, Callable[[], Any]] = {
        "swept": lambda: values("result").swept_volume(),
        "constraints": lambda: pl.Constraints(values("robot")),
        "stop": lambda: values("result"),
        "report": lambda: values("result").table(),
        "separation": lambda: pl.separation(values("result"), human_speed=1.6),
    }
    function = getattr(made.get(owner, lambda: values(owner))(), method)
    parameters = inspect.signature(function).parameters
    needed = {"by": 0.1, "factor": 0.5, "body": values("frame"), "facts": [], "notes": []}
    others = {
        key: needed.get(key, values(key))
        for key, parameter in parameters.items()
        if parameter.default is parameter.empty
    }
    failures = []
    strange_values = STRANGE | {"array of one": np.array(1.0), "texts": np.array(["a"])}
    for key, (what, strange) in product(parameters, strange_values.items()):
        try:
            function(**{**others, key: strange})
        except pl.PinloopError as error:
            assert len(str(error)) < 4100 and str(error).isprintable()
        except Exception as error:
            failures.append(f"{key}={what}: {type(error).__name__}: {error}")
    assert not failures, "\n".join(failures)


def test_a_volume_that_cannot_be_written_leaves_what_was_there(
    values: Callable[[str], Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "swept.stl"
    target.write_text("old")

    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    volume = values("result").swept_volume()
    with pytest.raises(pl.BadValue, match=r"swept\.stl cannot be written: no space left"):
        volume.export(target)
    assert target.read_text() == "old" and list(tmp_path.iterdir()) == [target]


NUMBER = float("nan")
WRONG_FIELDS: list[tuple[Callable[[], object], str]] = [
    (lambda: pl.PD("j", NUMBER, 1), "stiffness is nan (float); PD needs a finite number"),
    (lambda: pl.PD("j", 1, 1, "deg"), "target is 'deg' (str); PD needs a number or a function"),  # type: ignore[arg-type]
    (lambda: pl.Torque("j", float("inf")), "value is inf (float); Torque needs a finite number"),
    (lambda: pl.forces.JointDamping({"j": "x"}), "coefficients['j'] is 'x' (str); "),  # type: ignore[dict-item]
    (lambda: pl.forces.JointDamping({"j": [1, 2]}), "coefficients['j'] is [1, 2] (list); "),  # type: ignore[dict-item]
    (lambda: pl.forces.JointFriction({"j": 1.0}), "speed is {'j': 1.0} (dict); JointFriction "),  # type: ignore[arg-type]
    (lambda: pl.forces.Spring("a", ("b", (0, NUMBER, 0)), 1), "frame_b[1] is (0, nan, 0) "),
    (lambda: pl.forces.PointForce("a", "up"), "force is 'up' (str); PointForce needs numbers or "),
    (lambda: pl.constraints.Rolling("a", NUMBER), "radius is nan (float); Rolling needs a finite"),
    (lambda: pl.constraints.NoSlip("a", (0, NUMBER, 1)), "axis[1] is nan (float); NoSlip needs a"),
    (lambda: pl.lock("j", NUMBER), "at is nan; lock needs a number"),
    (lambda: pl.lock("j", float("inf")), "at is inf (float); Event needs a finite number"),
    (lambda: pl.simulation.EndStops(1.5), "a finite number at least 0 and at most 1"),
    (lambda: pl.simulation.EndStops(True), "restitution is True (bool); EndStops needs a number"),
    (lambda: pl.Projection(0), "tol is 0 (int); Projection needs a finite number above 0"),
    (lambda: pl.Category1(time_limit=-1), "time_limit is -1 (int); Category1 needs a finite "),
    (lambda: pl.Category1("path"), "on_path is 'path' (str); Category1 needs True or False"),  # type: ignore[arg-type]
    (lambda: pl.Payload(-1), "mass is -1 (int); Payload needs a finite number at least 0"),
    (lambda: pl.Payload(1, (0, NUMBER, 0)), "com is (0, nan, 0) (tuple); Payload needs finite "),
    (lambda: pl.safety.Trigger(at=NUMBER), "at is nan (float); Trigger needs a finite number"),
    (lambda: pl.safety.Trigger(sensor=-0.1), "sensor is -0.1 (float); Trigger needs a finite "),
    (lambda: pl.safety.Standstill(NUMBER), "speed is nan (float); Standstill needs a finite "),
    (lambda: pl.regularize(pl.load(URDF / "fourbar.urdf"), samples=NUMBER), "samples is nan; "),  # type: ignore[arg-type]
]  # fmt: skip


@pytest.mark.parametrize(("make", "part"), WRONG_FIELDS, ids=[part for _, part in WRONG_FIELDS])
def test_a_value_is_refused_where_it_is_made(make: Callable[[], object], part: str) -> None:
    with pytest.raises(pl.BadValue, match=re.escape(part)):
        make()


def test_values_of_other_kinds_of_numbers_are_as_good() -> None:
    assert pl.PD("j", np.float64(1), float(np.float32(2)), lambda t: t).stiffness == 1.0
    for number in (np.float32(2), np.int64(2), np.array(2.0), Fraction(2), True + 1):
        assert pl.PD("j", number, 1).stiffness == 2  # type: ignore[arg-type]
    assert pl.forces.Spring("a", ("b", [0, 0, 1]), 1).frame_b == ("b", [0, 0, 1])
    assert pl.Payload(1, np.zeros(3), np.eye(3)).mass == 1
    assert pl.simulation.EndStops(0, ["j"])  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="missing 1 required"):
        pl.PD("j", 1)  # type: ignore[call-arg]


def test_a_wrong_call_stays_pythons(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="unexpected keyword"):
        pl.assemble(four_bar(tmp_path), nonsense=3)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="missing 1 required"):
        pl.assemble()  # type: ignore[call-arg]


def test_methods_ask_too(tmp_path: Path) -> None:
    robot = four_bar(tmp_path)
    strange_names: tuple[Any, ...] = (None, 3, ["a"], Odd(), b"x")
    for strange in strange_names:
        for ask in (robot.frame_id, robot.coordinates, lambda x: robot.placement(robot.neutral, x)):
            with pytest.raises(pl.PinloopError):
                ask(strange)


@pytest.mark.parametrize("shapes", [((3,), (2, 3)), ((3, 3), (3,)), ((3, 3), (2, 4)), ((), ())])
def test_matrices_fit_each_other(shapes: tuple[tuple[int, ...], tuple[int, ...]]) -> None:
    M, J = (np.ones(shape) for shape in shapes)
    for function in (pl.dynamics.relative_projections, pl.dynamics.dependent_coordinates):
        with pytest.raises(pl.BadValue, match=re.escape(f"M has shape {M.shape} and J {J.shape};")):
            function(M, J)


def test_names_of_loops_and_intervals_are_looked_at(values: Callable[[str], Any]) -> None:
    robot, stop, brakes = values("robot"), values("result"), values("brakes")
    equations = pl.EquationsOfMotion(robot)
    reduced = pl.regularize(robot).regularization
    assert reduced is not None and robot.loop(robot.loops[0].name) is robot.loops[0]
    strange_names: tuple[Any, ...] = ("joint", 3, float("nan"), None, ["a"])
    for strange in strange_names:
        for ask in (
            robot.loop,
            reduced.selection,
            lambda name: equations.loop_wrench(robot.neutral, name, np.zeros(5)),
            next(iter(brakes.joints.values())).uses,
        ):
            with pytest.raises(pl.PinloopError):
                ask(strange)
    for every in (float("nan"), float("inf"), 0.0, -1.0, 1e-12, "often"):
        for sample in (stop.point, lambda every: stop.to_csv("/nowhere/x.csv", every=every)):
            with pytest.raises(pl.BadValue, match=r"every is .*; it is an interval in s"):
                sample(every=every)


@pytest.mark.parametrize("number", [np.nan, np.inf, -np.inf])
def test_states_that_are_no_numbers(number: float, tmp_path: Path) -> None:
    robot = four_bar(tmp_path)
    equations = pl.EquationsOfMotion(robot)
    q, v = pl.assemble(robot), np.zeros(robot.nv)
    bad = v.copy()
    bad[1] = number
    for state in ((0.0, q, bad), (0.0, bad, v), (number, q, v)):
        with pytest.raises(pl.NotFinite, match="became infinite at t"):
            equations.acceleration(*state)


def test_errors_have_the_parents_that_programs_expect() -> None:
    for error, parent in (
        (pl.BadValue, ValueError), (pl.LoadError, ValueError), (pl.UnknownName, LookupError),
    ):  # fmt: skip
        assert issubclass(error, parent) and issubclass(error, pl.PinloopError)
    name = pl.UnknownName("joint", "elbwo", ["elbow"], "arm")
    again = pickle.loads(pickle.dumps(name))
    assert str(again) == str(name) and again.name == "elbwo" and type(again) is pl.UnknownName
    load = pickle.loads(pickle.dumps(pl.LoadError("is odd", source="a.urdf", line=3)))
    assert (str(load), load.line) == ("a.urdf:3: is odd", 3)


def test_messages_are_one_line_of_bearable_length() -> None:
    long = pl.BadValue(f"name '{'x' * 10_000}' has {'y' * 10_000} and\n\x1b[31m red")
    assert len(str(long)) < 500 and str(long).isprintable()
    assert "x" * 100 in str(long) and "x" * 201 not in str(long)
    assert len(str(pl.BadValue("a b " * 100_000))) <= 4000
    assert len(str(pl.UnknownName("joint", 10**400, []))) < 300
    clause = "is open, " + "and what is said of it is long, " * 10
    between = f"loop 'a' {clause}says 'b'; joint's"
    assert str(pl.BadValue(between)) == between


def test_functions_can_be_pickled_and_say_what_they_take() -> None:
    assert pickle.loads(pickle.dumps(pl.simulate)) is pl.simulate
    assert "until" in inspect.signature(pl.simulate).parameters
    assert "joint" in inspect.signature(pl.simulation.Locked).parameters


def test_a_nan_is_named_wherever_it_stands() -> None:
    robot = pl.load(URDF / "fourbar.urdf")
    brakes, q, v = pl.Brakes.template(robot), robot.neutral, np.zeros(robot.nv)
    with pytest.raises(pl.BadValue, match="until is nan; single_faults needs a number"):
        pl.safety.single_faults(robot, q, v, brakes=brakes, until=NUMBER)
    with pytest.raises(pl.BadValue, match="an argument is nan; single_faults needs a number"):
        pl.safety.single_faults(robot, q, NUMBER, brakes=brakes)


def test_a_defect_is_not_hidden() -> None:
    @public
    def broken(number: float) -> float:
        return number + None  # type: ignore[operator]

    with pytest.raises(TypeError, match="NoneType"):
        broken(1.0)
    with pytest.raises(pl.BadValue, match=r"number is 'a' \(str\); broken needs a number"):
        broken("a")  # type: ignore[arg-type]


def test_shipped_names_are_all_guarded() -> None:
    assert (URDF / "fourbar.urdf").is_file()
    for name, thing in things():
        if inspect.isfunction(thing):
            assert hasattr(thing, "__wrapped__"), name
        elif inspect.isclass(thing) and not inspect.isabstract(thing):
            for part, member in inspect.getmembers(thing, inspect.isfunction):
                if not part.startswith("_") and member.__module__.startswith("pinloop"):
                    assert hasattr(member, "__wrapped__"), f"{name}.{part}"

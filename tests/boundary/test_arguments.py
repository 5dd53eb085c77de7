"""Public functions given something strange: only errors of pinloop leave them."""

from __future__ import annotations

import inspect
import pickle
import webbrowser
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
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
}


@cache
def four_bar(folder: Path) -> pl.Mechanism:
    return pl.load(fourbar(folder))


def things() -> Iterator[tuple[str, Any]]:
    """Public functions and classes, except errors, of the package and its rooms, each once."""
    rooms = [name for name in pl.__all__ if inspect.ismodule(getattr(pl, name))]
    seen: set[int] = set()
    for prefix, room in (("", pl), *((f"{name}.", getattr(pl, name)) for name in rooms)):
        for name in room.__all__:
            thing = getattr(room, name)
            plain = inspect.isfunction(thing) or (
                inspect.isclass(thing)
                and not issubclass(thing, BaseException)
                and not getattr(thing, "_is_protocol", False)
            )
            if plain and id(thing) not in seen:
                seen.add(id(thing))
                yield f"{prefix}{name}", thing


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


GIVEN: dict[str, dict[str, Any]] = {
    "study": {"sampling": pl.safety.Random(1), "jobs": 1, "until": 0.01},
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
@pytest.mark.parametrize("name", [name for name, _ in things()])
def test_only_errors_of_pinloop_leave(
    name: str, values: Callable[[str], Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(pinloop.show.scene, "Viewer", Closed)
    monkeypatch.setattr(webbrowser, "open", lambda *_, **__: True)
    thing, short = dict(things())[name], name.rpartition(".")[2]
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


def test_fields_of_values_are_arguments_too(tmp_path: Path) -> None:
    robot = four_bar(tmp_path)
    q = pl.assemble(robot)
    friction = pl.forces.JointFriction({"joint_1": 1.0})  # type: ignore[arg-type]
    with pytest.raises(pl.BadValue, match=r"speed is .* \(dict\); JointFriction needs a number"):
        pl.simulate(robot, q, until=0.01, forces=[friction])
    with pytest.raises(pl.BadValue, match="the action of an event is 'e'"):
        pl.simulation.Event("e", at=0.1)  # type: ignore[arg-type]
    for speed in (np.nan, np.inf, -1.0):
        with pytest.raises(pl.BadValue, match="speed of a standstill is"):
            pl.safety.Standstill(speed)


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

"""Random stops of all shipped robots and of public arms, with the brakes of the template.

Each must end within two seconds of computing, close its energy balance, and stand if it says so:
at the end nothing moves, and a linear program finds torques within the bounds of brakes and
friction that hold the robot. Seconds are those of the processor in the thread of the stop, so that
neither other programs nor idle threads of BLAS count; two programs on one core slow each other
down even so. Some others, of random arms and of robots with loops, are computed by
second programs, too, which decide by trying all combinations and integrate with SciPy.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib.metadata import PackageNotFoundError, files
from pathlib import Path
from typing import Any

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray
from scipy.optimize import linprog
from tests.safety.stopping.arms_by_hand import StopByHand
from tests.safety.stopping.looped_stops import ROBOTS, drawn, lossless
from tests.safety.stopping.loops_by_hand import columns
from tests.safety.stopping.robots_to_stop import drawn_stop
from tests.safety.stopping.stops_by_hand import Stop

import pinloop as pl

from ..pages import ROOT
from .campaign import Campaign, Case, Data, Finding

Array = NDArray[np.float64]

AGAIN = 0.15
"""Share of cases that are computed by a second program."""
SAME = 1e-6
"""Distance of both ends [rad, m] and of their times [s]."""
CLOSE = pl.MuntheKaas("dopri5", rtol=1e-10, atol=1e-10)
"""How pinloop integrates what is computed again."""
SECONDS = 2.0
"""Time of the processor that a stop may take in its thread [s]."""
BALANCE = 1e-6
"""Part of the energy turned over that may be missing."""
SLOW = 1e-3
"""Speed that counts as none [rad/s, m/s]."""
AT_END = 1e-9
"""Distance from an end stop that is none [rad, m]."""
HOLDING = 1e-6
"""What of the largest torque a static check may miss."""
WAY, FOR = 2e-2, 5.0
"""What nothing holds may swing so far [rad, m] in so long [s] to count as standing, as it hangs."""

LOOPED = [name for name in ROBOTS if name != "stewart"]
"""Robots with loops whose stops are computed again: combinations of few joints."""

PUBLIC = (
    "ur_description/urdf/ur3_robot",
    "ur_description/urdf/ur5_robot",
    "ur_description/urdf/ur10_robot",
    "panda_description/urdf/panda",
    "kinova_description/robots/kinova",
    "xarm_description/urdf/xarm7",
    "z1_description/urdf/z1",
    "so_arm_description/urdf/so101",
    "talos_data/robots/talos_left_arm",
    "baxter_description/urdf/baxter",
    "allegro_hand_description/urdf/allegro_right_hand",
)
"""Arms, and a hand, of the package example-robot-data."""


@cache
def robot_files() -> tuple[Path, ...]:
    """Shipped robots that can have brakes, and public ones if example-robot-data is installed."""
    shipped = sorted((ROOT / "urdf").glob("*.urdf"))
    try:
        package = [Path(str(file.locate())) for file in files("example-robot-data") or ()]
    except PackageNotFoundError:
        package = []
    public = [
        path.resolve()
        for path in package
        if path.suffix == ".urdf" and path.with_suffix("").as_posix().endswith(PUBLIC)
    ]
    return *(path for path in shipped if path.stem != "spherical_threebar"), *public


@cache
def _robot(path: Path) -> tuple[pl.Mechanism, pl.Brakes]:
    robot = pl.load(path)
    return robot, pl.Brakes.template(robot)


def draw_stop(rng: np.random.Generator) -> Data:
    """A robot, a state, a category and a load; or a seed of what a second program can stop."""
    path = robot_files()[rng.integers(len(robot_files()))]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", pl.PinloopWarning)
        robot, brakes = _robot(path)
        q = _pose(robot, rng)
        v = _velocity(robot, q, rng)
        more = _circumstances(robot, brakes, rng)
    if rng.random() < AGAIN:
        second = ("arm", *LOOPED)
        name = second[rng.integers(len(second))]
        return {"again": name, "seed": int(rng.integers(2**31))}
    return {"robot": path.stem, "q": q.tolist(), "v": v.tolist(), **more}


def try_stop(data: Data) -> Case:
    """Stop, and judge the stop."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # of NumPy, for example
        warnings.simplefilter("ignore", pl.PinloopWarning)
        if "again" in data:
            return _stop_again(data["again"], data["seed"])
        path = next(path for path in robot_files() if path.stem == data["robot"])
        robot, brakes = _robot(path)
        more = _arguments(data, brakes)
        begin = time.thread_time()
        try:
            result = pl.stop(robot, data["q"], data["v"], **more)
            _ = result.ledger  # measured when first asked for
        except pl.StopFailed as failure:
            return Case(path.stem, (Finding("failed", f"{more['category']}: {failure}"),))
        except pl.PinloopError as error:
            return Case(path.stem, (Finding("refused", f"{more['category']}: {error}"),))
        seconds = time.thread_time() - begin
        return Case(path.stem, tuple(_judge(result, seconds)))


def _stop_again(name: str, seed: int) -> Case:
    """A stop of a random arm, or of a robot with loops, and the same by a second program."""
    if name == "arm":
        robot, q, v, by, _ = drawn_stop(seed)
        stop = pl.stop(robot, q, v, brakes=by, until=0.4, method=CLOSE)
        try:
            end = StopByHand(robot.model, by).go(q, v, 0.4)
        except AssertionError:
            return Case(f"{name}, not by the second program")
        apart, late = stop.run.q[-1] - end.q, abs(float(stop.run.t[-1]) - end.t)
    else:
        case = lossless(drawn(name, seed, weakest=0.3))
        stop, robot = case.stop(until=3.0, method=CLOSE), case.robot
        if stop.outcome != "stopped":
            return Case(f"{name}, {stop.outcome}")
        try:
            _, q = Stop(case.machine, case.friction, robot.actuated).run(case.q, case.v, 3.0)
        except AssertionError:  # it has no answer to what happens at one instant again and again
            return Case(f"{name}, not by the second program")
        apart, late = robot.difference(stop.run.q[-1], q)[columns(robot, set(robot.actuated))], 0.0
    findings = []
    if not (error := float(np.abs(apart).max())) <= SAME:
        findings.append(Finding("another end", f"{error:.1e} rad or m"))
    if not late <= SAME:
        findings.append(Finding("another time", f"{late:.1e} s"))
    return Case(f"{name} again", tuple(findings))


def _arguments(data: Data, brakes: pl.Brakes) -> dict[str, Any]:
    """Arguments of `pl.stop` from what JSON has of them."""
    kinds: dict[int, Any] = {1: pl.Category1, 2: pl.Category2}
    number, options = data["category"]
    more: dict[str, Any] = {"category": kinds[number](**options) if options else number}
    if "band" in data:
        brakes = brakes.at_band(data["band"])
    if "missing" in data:
        brakes = brakes.missing(data["missing"])
    more |= {key: data[key] for key in ("payload", "gravity", "limits") if key in data}
    return more | {"brakes": brakes}


def simplify_stop(data: Data) -> Iterator[Data]:
    """Without circumstances, and with fewer joints that move."""
    for key in ("band", "missing", "payload", "gravity", "limits"):
        if key in data:
            yield {name: value for name, value in data.items() if name != key}
    if data.get("category", (0, {})) != (0, {}):
        yield data | {"category": (0, {})}
    for key, digits in (("q", 2), ("v", 2), ("q", 4), ("v", 4)):
        if key in data and (rounded := np.round(data[key], digits).tolist()) != data[key]:
            yield data | {key: rounded}
    for k, speed in enumerate(data.get("v", ())):
        if speed:
            yield data | {"v": [0.0 if j == k else x for j, x in enumerate(data["v"])]}


def _pose(robot: pl.Mechanism, rng: np.random.Generator) -> Array:
    """A closed configuration within the limits, as far from neutral as it may be."""
    model = robot.model
    low, high = (np.where(np.isfinite(x), x, y) for x, y in (
        (model.lowerPositionLimit, -np.pi), (model.upperPositionLimit, np.pi)))  # fmt: skip
    drawn = rng.uniform(np.maximum(low, -np.pi), np.minimum(np.maximum(high, low), np.pi))
    single = {name for name in robot.joints if robot.coordinates(name).nv == 1}
    q = np.array(robot.neutral)
    for name in single:
        at = robot.coordinates(name).q
        q[at] = drawn[at] if at.stop - at.start == 1 else robot.neutral[at]
    if not robot.loops and not robot.couplings:
        return q
    for _ in range(20):
        try:
            return pl.assemble(robot, q)
        except pl.LoopNotClosed:
            q = robot.integrate(robot.neutral, rng.normal(size=robot.nv) * _lengths(robot) * 0.3)
    return pl.assemble(robot)


def _lengths(robot: pl.Mechanism) -> Array:
    return np.where(robot.is_translation, robot.length, 1.0)


def _velocity(robot: pl.Mechanism, q: Array, rng: np.random.Generator) -> Array:
    """A velocity that the loops allow, with no joint faster than its limit."""
    limit = robot.model.velocityLimit
    limit = np.where((limit > 0) & (limit < 1e3), limit, 2.0 * _lengths(robot))
    v = limit * rng.uniform(-1, 1, robot.nv) * (rng.random(robot.nv) < 0.8)
    J = pl.EquationsOfMotion(robot).terms(0.0, q, v)[0]
    v -= limit * np.linalg.lstsq(J * limit, J @ v)[0]
    most = float(np.max(np.abs(v) / limit, initial=0.0))
    part = float(rng.choice([1.0, rng.random(), 0.0], p=[0.6, 0.35, 0.05]))
    return np.asarray(part * v / max(most, 1.0))


def _circumstances(
    robot: pl.Mechanism, brakes: pl.Brakes, rng: np.random.Generator
) -> dict[str, Any]:
    """Category, load, brakes in their band, and what limits are."""
    on_path: dict[str, Any] = {"on_path": True}
    categories: list[tuple[int, dict[str, Any]]] = [
        (0, {}), (0, {}), (1, {}), (2, {}), (1, on_path), (2, on_path),
        (1, {"time_limit": rng.uniform(0.05, 0.4)}),
    ]  # fmt: skip
    more: dict[str, Any] = {"category": categories[rng.integers(len(categories))]}
    if rng.random() < 0.5:
        more["band"] = float(rng.uniform(-1, 1))
    if rng.random() < 0.2:
        more["missing"] = str(rng.choice(list(brakes.joints)))
    if rng.random() < 0.3:
        mass = 0.2 * float(pin.computeTotalMass(robot.model))
        more["payload"] = mass * rng.random()
    if rng.random() < 0.2:
        down = rng.normal(size=3)
        more["gravity"] = (9.81 * down / np.linalg.norm(down)).tolist()
    if rng.random() < 0.2:
        more["limits"] = "end stop"
    return more


def _judge(result: pl.StopResult, seconds: float) -> list[Finding]:
    """All that must not be about a stop."""
    findings = []
    about = f"category {result.category}, {result.outcome}, {len(result.run.t)} states"
    if seconds > SECONDS:
        findings.append(Finding("slow", f"{seconds:.1f} s of the processor; {about}"))
    if result.ledger.relative_error > BALANCE:
        ledger = result.ledger
        findings.append(
            Finding("energy", f"{ledger.error:.2g} of {ledger.turned_over:.2g} J; {about}")
        )
    if result.outcome == "stopped":
        speed = _fastest(result)
        if speed > SLOW:
            findings.append(Finding("moves", f"{speed:.2g} rad/s or m/s; {about}"))
        excess = static_excess(result)
        if excess > HOLDING and _swing(result) > WAY:
            findings.append(Finding("falls", f"{excess:.2g} of the largest torque; {about}"))
    return findings


def _fastest(result: pl.StopResult) -> float:
    """Largest speed at the end of joints with one axis."""
    robot = result.robot
    single = [robot.coordinates(name).v for name in robot.joints if robot.coordinates(name).nv == 1]
    return max((abs(float(result.run.v[-1][at][0])) for at in single), default=0.0)


def _swing(result: pl.StopResult) -> float:
    """How far what nothing holds goes from the end on, while all that is gripped is locked."""
    run, grips = result.run, _bounds(result).high > 0.0
    if not result.holding.balanced.any():
        return np.inf
    robot, q = run.robot, run.q[-1]
    locked = [name for name in robot.joints if grips[robot.coordinates(name).v].all()]
    mode = pl.Mode([pl.simulation.Locked(name) for name in locked])
    later = pl.simulate(robot, q, run.v[-1], until=FOR, mode=mode)
    return max(float(np.abs(robot.difference(q, there)).max()) for there in later.q)


@dataclass(frozen=True)
class _Bounds:
    """Torques at rest, shape (nv,)."""

    low: Array
    high: Array


def _bounds(result: pl.StopResult) -> _Bounds:
    """What brakes, friction, drives that keep their power, and end stops hold."""
    robot, model = result.robot, result.robot.model
    hold = np.array(model.upperDryFrictionLimit)
    for name, brake in result.brakes.joints.items():
        at = robot.coordinates(name).v.start
        motor = brake.factor * brake.static if brake.kind == "friction" else 0.0
        joint = brake.coulomb if brake.breakaway is None else brake.breakaway
        if brake.side == "joint":
            joint, motor = joint + motor, 0.0
        if result.category.number == 2:
            motor += np.inf if brake.drive_torque is None else brake.drive_torque
        hold[at] = joint + brake.gear_ratio * motor / brake.efficiency
        if brake.kind == "tooth":
            hold[at] = np.inf
    low, high = -hold, hold.copy()
    for end in result.history.ends:
        if abs(float(result.run.q[-1][end.cell]) - end.level) < AT_END:
            (low if end.sign > 0 else high)[end.column] = -end.sign * np.inf
    return _Bounds(low, high)


def static_excess(result: pl.StopResult) -> float:
    """Least torque beyond their bounds with which the robot stays, in the largest load.

    ``g = tau + J' lam``, ``low - s <= tau <= high + s``: the least ``s``.
    """
    robot, q = result.robot, result.run.q[-1]
    J = pl.EquationsOfMotion(robot).terms(0.0, q, np.zeros(robot.nv))[0]
    load = pin.computeGeneralizedGravity(robot.model, robot.model.createData(), q)
    size = float(np.abs(load).max(initial=0.0))
    if size == 0.0:
        return 0.0
    bounds = _bounds(result)
    if not len(J):
        beyond = np.maximum(bounds.low - load, load - bounds.high)
        return float(max(0.0, beyond.max(initial=0.0))) / size
    ones = -np.ones((robot.nv, 1))
    A = np.vstack([np.hstack([J.T, ones]), np.hstack([-J.T, ones])])
    b = np.concatenate([load - bounds.low, bounds.high - load]) / size
    finite = np.isfinite(b)
    cost = np.append(np.zeros(len(J)), 1.0)
    ranges: list[tuple[float | None, float | None]] = [(None, None)] * len(J) + [(0.0, None)]
    program = linprog(cost, A_ub=A[finite], b_ub=b[finite], bounds=ranges)
    return np.inf if program.fun is None else float(program.fun)


STOPS = Campaign(draw_stop, try_stop, simplify_stop)

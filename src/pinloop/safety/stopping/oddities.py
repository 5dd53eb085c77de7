"""What is odd about a stop or its numbers: warnings of its result, one sentence each."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ...model.mechanism import Mechanism
from ...simulation.limits import LimitPassed
from ...tables.number_format import decimals, listed, milliseconds, number, units_of
from ...tolerances import SAME
from ..brakes.laws import DriveTorque
from ..space.interval_tree import joint_limits
from .loads import explained_error
from .result import StopResult


def warnings_of(result: StopResult) -> tuple[str, ...]:
    """What is odd about a stop or its numbers, one sentence each, the gravest first."""
    sentences = [
        *_energy_missed(result),
        *_not_held(result),
        *_still_spinning(result),
        *_limits_passed(result),
        *_saturated_drives(result),
        *_overloaded_gears(result),
        *_hot_brakes(result),
        *_uncovered(result),
    ]
    brakes, robot = result.brakes, result.robot
    if brakes.robot and brakes.robot != robot.name:
        sentences.append(f"the brakes were made for robot '{brakes.robot}', not for '{robot.name}'")
    if not result.run.v[0].any():
        sentences.append("nothing moved when the signal came")
    return tuple(dict.fromkeys((*sentences, *brakes.warnings, *robot.warnings)))


def _energy_missed(result: StopResult) -> Iterator[str]:
    """An energy balance that misses more than the tolerances explain."""
    ledger = result.ledger
    missed, explained = abs(ledger.error), explained_error(result.history, ledger)
    if not missed <= explained:
        yield (
            f"the energy balance is off by {missed:.3g} J, {missed / ledger.turned_over:.2g} of "
            f"the energy turned over and {missed / explained:.2g} times what the tolerances explain"
            ": the result is doubtful; look for a nearly singular pose of the loops, and compare "
            "with tighter rtol and atol"
        )


def _not_held(result: StopResult) -> Iterator[str]:
    """Joints that nothing holds, or that did not come to rest."""
    if result.outcome == "time-out":
        yield (
            f"the robot did not stop within {milliseconds(float(result.run.t[-1]))}; times "
            "and paths are those until then"
        )
    for name, joint in result.joints.items():
        torque = units_of(result.robot, name).torque
        if result.holding.falling[result.robot.coordinates(name).v].any():
            yield f"nothing holds joint '{name}': it is balanced, and the least push lets it fall"
        elif abs(joint.load) > joint.hold:
            yield (
                f"joint '{name}' is not held: holding takes {_digits(abs(joint.load))} {torque}, "
                f"its brake, friction and drive hold {_digits(joint.hold)} {torque}"
            )
    robot, stays = result.robot, result.holding.held | result.holding.balanced
    loose = [name for name in robot.joints if not stays[robot.coordinates(name).v].all()]
    if loose and result.joints.keys().isdisjoint(loose):
        yield f"nothing holds {listed(loose)}: there is no brake"


def _still_spinning(result: StopResult) -> Iterator[str]:
    """Joints in space that turn at the end of a stop, though no point moves noticeably."""
    if result.outcome != "stopped":
        return
    robot, v = result.robot, result.run.v[-1]
    speeds = {name: float(np.linalg.norm(v[robot.coordinates(name).v])) for name in robot.joints}
    limit = result.history.slow
    spins = [n for n, x in speeds.items() if x > limit and robot.coordinates(n).nv > 1]
    if spins:
        fastest = max(speeds[name] for name in spins)
        yield (
            f"the bodies at {listed(spins)} still spin about their own axes, at up to "
            f"{fastest:.2g} rad/s: nothing brakes that, and no frame of the robot moves noticeably"
        )


def _limits_passed(result: StopResult) -> Iterator[str]:
    # An end stop that is hit comes before a speed that is passed.
    for passed in sorted(joint_limits(result.run), key=lambda limit: limit.kind == "velocity"):
        yield _limit_sentence(result.robot, passed) + _coasting(result, passed)


def _coasting(result: StopResult, passed: LimitPassed) -> str:
    """The way out for a joint that is fastest between the end of its drive and its brake."""
    history, name = result.history, passed.joint
    if passed.kind != "velocity" or name not in result.brakes.joints:
        return ""
    column, times = result.robot.coordinates(name).v.start, history.brake_times
    full = float(times.engagement(history.train)[1][column])
    slow = abs(result.run.v[0, column]) <= (1.0 + SAME) * abs(passed.limit)
    if not (slow and passed.t <= full and times.off < passed.worst_t):
        return ""
    wanted = "check its delay and rotor_inertia"
    if history.train.reflected[column] == 0.0:
        wanted = "its rotor_inertia is missing: 'pinloop brakes init' estimates it; check its delay"
    return f"; gravity and the other joints speed it up before its brake acts in full: {wanted}"


def _limit_sentence(robot: Mechanism, passed: LimitPassed) -> str:
    units = units_of(robot, passed.joint)
    unit = units.shown + ("/s" if passed.kind == "velocity" else "")
    values = [units.factor * value for value in (passed.limit, passed.by)]
    if robot.coordinates(passed.joint).nv > 1:  # several coordinates: no common unit
        unit, values = "in SI units", [passed.limit, passed.by]
    limit, by = (number(value, decimals([value], 3, most=4)) for value in values)
    if passed.kind == "velocity":
        limit = limit.removeprefix("-")  # that of the other direction
        since = "at the signal" if passed.t == 0 else f"from {milliseconds(passed.t)} on"
        return (
            f"joint '{passed.joint}' is faster than its velocity limit of {limit} {unit} {since}, "
            f"by {by} {unit} at most"
        )
    when = "at the signal" if passed.t == 0 else f"after {milliseconds(passed.t)}"
    return (
        f"joint '{passed.joint}' passes its {passed.side} limit of {limit} {unit} {when}, by {by} "
        f"{unit} at most; with limits='end stop' joints hit them"
    )


def _saturated_drives(result: StopResult) -> Iterator[str]:
    """Drives that lack torque for their ramps, and when."""
    history, t = result.history, result.run.t
    signs = np.array([phase.sliding.saturated_drive_sign for phase in history.phases])
    saturated = signs[result.run.mode[:-1]] != 0.0
    saturated &= (np.diff(t) > 0.0)[:, None] & (t[:-1] >= result.chain.command)[:, None]
    for name, column in history.train.columns.items():
        steps = saturated[:, column].nonzero()[0]
        if steps.size and result.brakes.joints[name].law != DriveTorque.name:
            begin, end = milliseconds(float(t[steps[0]])), milliseconds(float(t[steps[-1] + 1]))
            yield (
                f"the drive of joint '{name}' lacks torque between {begin} and {end}: with its "
                "drive_torque it lags behind its ramp"
            )


def _overloaded_gears(result: StopResult) -> Iterator[str]:
    unknown = []
    for name, joint in result.joints.items():
        torque = units_of(result.robot, name).torque
        if joint.gear_limit is None:
            unknown.append(name)
        elif joint.peak_gear_torque > joint.gear_limit:
            yield (
                f"the gear of joint '{name}' carries {_digits(joint.peak_gear_torque)} {torque}, "
                f"more than the {_digits(joint.gear_limit)} {torque} that it may"
            )
    if unknown:
        who = "any joint" if len(unknown) == len(result.joints) > 1 else listed(unknown)
        yield f"peak_gear_torque of {who} is not known: whether the gears bear the stop is open"


def _hot_brakes(result: StopResult) -> Iterator[str]:
    """Brakes that take more in this stop than they may in one."""
    for name, brake in result.brakes.joints.items():
        limit, energy = brake.energy_per_stop, result.brake_energy[name]
        if limit is not None and energy > limit:
            yield (
                f"the brake of joint '{name}' takes {_digits(energy)} J, more than the "
                f"{_digits(limit)} J that it may in one stop (energy_per_stop)"
            )


def _digits(value: float) -> str:
    """A torque with four digits; a larger one in full, as in the tables, without an exponent."""
    return f"{value:.4g}" if abs(value) < 1e4 else f"{value:.0f}"


def _uncovered(result: StopResult) -> Iterator[str]:
    robot = result.robot
    bare = result.brakes.uncovered(robot)
    if not bare:
        return
    if robot.description.actuated is not None:
        yield (
            f"no brake, gear or drive is given for the actuated joints {listed(bare)}: nothing but "
            "the friction of the robot's file stops them"
        )
    elif not robot.loops:  # where the file does not say which joints of a loop have motors, few do
        yield (
            f"no brake, gear or drive is given for {listed(bare)}: taken as passive, from the "
            "signal on nothing but the friction of the robot's file acts on them"
        )

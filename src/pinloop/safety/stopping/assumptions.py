"""What a stop rests on, and what is odd about it, in sentences: assumptions and warnings."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

import numpy as np

from ...errors import printable
from ...model.mechanism import Mechanism
from ...simulation.limits import LimitPassed
from ...tables.number_format import decimals, listed, milliseconds, number, units_of
from ..brakes.brakes import Assumption, Brakes
from ..brakes.joint_brake import CHAIN_PARAMETERS, JOINT_PARAMETERS, Chain, quantity
from ..space.interval_tree import joint_limits
from .loads import explained_error
from .result import StopResult

PLANNING_AID = (
    "This is a planning aid, not a safety certificate: nothing in it replaces a measurement on "
    "the machine or the risk assessment."
)

_CONTROLLED = ("drive_torque", "deceleration")
"""Parameters without any effect in a stop of category 0."""
_JOINED = "\N{NO-BREAK SPACE}"
_MOST_VALUES = 6
"""So many different values of a parameter are listed; of more, the range is said."""


# -- assumptions --------------------------------------------------------------------------------


def assumptions_of(result: StopResult) -> tuple[Assumption, ...]:
    """Every number of chain and brakes that a stop rests on, with its provenance."""
    # The robot that stopped has rotors behind gears with losses beside its mass matrix.
    return assumptions_with(result.brakes, result.history.train.robot, result.chain)


def assumptions_with(brakes: Brakes, robot: Mechanism, chain: Chain) -> tuple[Assumption, ...]:
    """The same for stops that are still to be made."""
    rows = brakes.assumptions(robot)
    return tuple(row if row.joint else _as_computed(row, chain) for row in rows)


def _as_computed(row: Assumption, chain: Chain) -> Assumption:
    """A time of the chain as it was computed with: a trigger may have another than the brakes."""
    value = getattr(chain, row.parameter)
    return row if value == row.value else replace(row, value=value, source="assumed", given=True)


def assumption_lines(rows: Iterable[Assumption], category: int) -> tuple[str, ...]:
    """Assumptions in few lines: by provenance, equal numbers together.

    ``category``: number of the category; what has no effect in it is left out.
    """
    shown = [
        row
        for row in rows
        if row.parameter != "band" and not (category == 0 and row.parameter in _CONTROLLED)
    ]
    joints = list(dict.fromkeys(row.joint for row in shown if row.joint))
    lines = []
    for heading, chosen in (
        ("assumed", [row for row in shown if row.source == "assumed" and row.given]),
        ("not given, default taken", [r for r in shown if r.source == "assumed" and not r.given]),
        ("from the robot's file", [row for row in shown if row.source == "robot"]),
        ("from a data sheet", [row for row in shown if row.source == "datasheet"]),
        ("measured", [row for row in shown if row.source == "measured"]),
    ):
        lines += [f"{heading}, {line}" for line in _grouped(chosen, joints)]
    return tuple(lines)


def _grouped(rows: Sequence[Assumption], joints: Sequence[str]) -> Iterator[str]:
    """Rows of one provenance: the chain, what all joints share, what differs."""
    chain = [_said(row) for row in rows if not row.joint]
    if chain:
        yield f"chain: {', '.join(chain)}"
    tables: dict[tuple[str, str], dict[str, list[Assumption]]] = {}
    for row in rows:
        if row.joint:
            value, unit = _value(row)
            tables.setdefault((row.parameter, unit), {}).setdefault(value, []).append(row)
    common = [
        _said(next(iter(values.values()))[0])
        for values in tables.values()
        if len(values) == 1 and len(next(iter(values.values()))) == len(joints)
    ]
    if common:
        yield f"{'all joints' if len(joints) > 1 else printable(joints[0])}: {', '.join(common)}"
    for (parameter, unit), values in tables.items():
        if len(values) > 1 or len(next(iter(values.values()))) < len(joints):
            in_unit = f"{_JOINED}[{unit.replace(' ', _JOINED)}]" if unit else ""
            yield f"{parameter}{in_unit}: {_spread(values)}"


def _value(row: Assumption) -> tuple[str, str]:
    parameters = JOINT_PARAMETERS if row.joint else CHAIN_PARAMETERS
    return quantity(row.value, row.unit, parameters[row.parameter])


def _said(row: Assumption) -> str:
    """Parameter, value and unit, not to be torn apart at the end of a line."""
    return _JOINED.join((row.parameter, *" ".join(_value(row)).split()))


def _spread(values: dict[str, list[Assumption]]) -> str:
    """Different values of a parameter with their joints, or their range if there are many."""
    first = {value: alike[0].value for value, alike in values.items()}
    numbers = {value: number for value, number in first.items() if isinstance(number, float)}
    if len(values) > _MOST_VALUES and len(numbers) == len(values):
        low, high = min(numbers, key=numbers.__getitem__), max(numbers, key=numbers.__getitem__)
        return f"{low} to {high} ({sum(map(len, values.values()))} joints)"
    return ", ".join(
        f"{value}{_JOINED}({listed(printable(row.joint) for row in alike)})"
        for value, alike in values.items()
    )


# -- warnings -----------------------------------------------------------------------------------


def warnings_of(result: StopResult) -> tuple[str, ...]:
    """What is odd about a stop or its numbers, one sentence each, the gravest first."""
    sentences = [
        *_energy_missed(result),
        *_not_held(result),
        *_still_spinning(result),
        *_limits_passed(result),
        *_overloaded_gears(result),
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
            f"the robot did not stop within {milliseconds(float(result.run.t[-1]))}; its times and "
            "ways are those up to then"
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
        yield _limit_sentence(result, passed)


def _limit_sentence(result: StopResult, passed: LimitPassed) -> str:
    robot = result.robot
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

"""Brakes guessed from what a robot's file says, as a start for editing.

Limits, losses and drives are the robot's; the rest follows from figures of other machines, see
`estimates`. The rules are in docs/brakes.md, and every number carries a note that says how it was
found.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pinocchio as pin

from ...assembly.assemble import assemble
from ...assembly.search import Problem, null_space
from ...boundary.marks import Array
from ...errors import BadValue, LoopNotClosed, PinloopWarning
from ...linalg.saddle import from_upper
from ...model.description import Drive
from ...model.mechanism import Mechanism
from ...model.workspace import create_data
from ...tolerances import ARMATURE, NO_LOAD, RANK
from .estimates import (
    BRAKE_SHARE,
    DELAY,
    RISE,
    ROTOR,
    STATIC_TO_DYNAMIC,
    STOP_TIME,
    TOLERANCE,
    Gear,
    gear_of,
)
from .joint_brake import Chain, JointBrake, Source, Value

_FILE = "from the robot file"
_GRAVITY_MARGIN = 2.0
_SPEED = {False: 2.0, True: 1.0}
"""Full speed of a turning [rad/s] and of a sliding joint [m/s] whose file gives none."""
_TREE_POSES, _LOOP_POSES = 200, 40
_SINGULAR = 0.3
"""Poses in which the drives move the robot so much worse than in the best one are left out: near a
singular pose torques grow without bound and say nothing of the brake that was chosen."""


def guess(robot: Mechanism) -> tuple[dict[str, JointBrake], Chain]:
    """Guess brakes of all actuated joints with one degree of freedom, and the chain."""
    names = _with_drive(robot)
    gravity, inertia = worst_loads(robot, names)
    joints = {
        name: _guess_brake(robot, name, float(gravity[k]), float(inertia[k]))
        for k, name in enumerate(names)
    }
    return joints, Chain(sensor=0.005, controller=0.01, drive_off=0.005)


def driven_joints(robot: Mechanism) -> list[str]:
    """Actuated joints of the tree with one degree of freedom: those that can have a brake."""
    tree = set(robot.joints)
    return [name for name in robot.actuated if name in tree and robot.coordinates(name).nv == 1]


def position_range(robot: Mechanism, joint: str) -> tuple[float, float]:
    """Position limits of a joint with one axis [rad, m]; infinite where it has none."""
    at, model = robot.coordinates(joint).q, robot.model
    if at.stop - at.start > 1:  # an angle stored as cosine and sine
        return -np.inf, np.inf
    return float(model.lowerPositionLimit[at.start]), float(model.upperPositionLimit[at.start])


def worst_loads(robot: Mechanism, names: list[str]) -> tuple[Array, Array]:
    """Largest gravity torques and inertias at joints over random poses.

    In a pose, ``w`` is the motion with unit speed at one of the joints and none at the others; by
    virtual power its joint carries ``w' g`` and sees ``w' M w``. Where the joints do not determine
    the motion, the smallest motion is taken.

    Returns:
        Per joint the largest torque [N m, N] and the largest inertia [kg m^2, kg].
    """
    problem, data = Problem.closure(robot), create_data(robot.model)
    rows = [robot.coordinates(name).v.start for name in names]
    tree = not robot.loops and not robot.couplings
    motions, ease = np.eye(robot.nv)[:, rows], 1.0
    gravity, inertia, eases = [], [], []
    for q in _poses(robot, names, tree, np.random.default_rng(0)):
        if not tree:
            motions, ease = _motions(problem, q, rows)
        load = pin.computeGeneralizedGravity(robot.model, data, q)
        mass = from_upper(pin.crba(robot.model, data, q))
        gravity.append(np.abs(motions.T @ load))
        inertia.append(np.einsum("ij,ik,kj->j", motions, mass, motions))
        eases.append(ease)
    regular = np.array(eases) >= _SINGULAR * max(eases)
    largest = np.max(np.array(gravity)[regular], axis=0)
    weight = pin.computeTotalMass(robot.model) * np.linalg.norm(robot.gravity)
    largest[largest < NO_LOAD * weight * max(1.0, robot.length)] = 0.0
    return largest, np.max(np.array(inertia)[regular], axis=0)


def _motions(problem: Problem, q: Array, rows: list[int]) -> tuple[Array, float]:
    """Motions with unit speed of one joint each, and how well the joints move the robot.

    The latter is their smallest singular value: 0 in a singular pose.
    """
    free, scale = null_space(problem.jacobian(q)), problem.column_scale
    reach = free[rows]
    motions = scale[:, None] * (free @ np.linalg.pinv(reach, rcond=RANK)) / scale[rows]
    return motions, float(np.linalg.svd(reach, compute_uv=False).min(initial=1.0))


def _with_drive(robot: Mechanism) -> list[str]:
    """Driven joints; the others that are actuated are named in a warning."""
    closing = {loop.name for loop in robot.loops}
    names = driven_joints(robot)
    others = [n for n in robot.actuated if n not in names and (n in robot.joints or n in closing)]
    if not names:
        raise BadValue(
            f"robot '{robot.name}' has no actuated joint with one degree of freedom; there is "
            "nothing to put brakes on"
        )
    if others:
        warnings.warn(
            f"robot '{robot.name}': no brakes for {', '.join(repr(name) for name in others)}; a "
            "brake needs a tree joint with one degree of freedom",
            PinloopWarning,
            stacklevel=5,
        )
    return names


def _poses(robot: Mechanism, names: list[str], tree: bool, rng: np.random.Generator) -> list[Array]:
    """Random configurations within the joint limits, assembled if the robot is no tree."""
    if tree:
        joints = [name for name in robot.joints if robot.coordinates(name).nv == 1]
        return [_scattered(robot, joints, robot.neutral, rng) for _ in range(_TREE_POSES)]
    poses = [assemble(robot)]
    for _ in range(_LOOP_POSES - 1):
        try:
            poses.append(assemble(robot, _scattered(robot, names, poses[-1], rng)))
        except LoopNotClosed:
            # Out of reach: another pose will do.
            continue
    return poses


def _scattered(robot: Mechanism, names: list[str], start: Array, rng: np.random.Generator) -> Array:
    """``start`` with the named joints anywhere within their limits."""
    values = {}
    for name in names:
        sliding = robot.is_translation[robot.coordinates(name).v.start]
        span = robot.length if sliding else np.pi
        low, high = position_range(robot, name)
        if np.isinf(low):
            low = -span if np.isinf(high) else min(-span, high - span)
        if np.isinf(high):
            high = max(span, low + span)
        values[name] = rng.uniform(low, high)
    return robot.configuration(values, start)


Entry = tuple[Value, Source, str]
Guessed = dict[str, Entry]
"""Numbers of a joint, where they come from, and remarks."""


def _guess_brake(robot: Mechanism, name: str, gravity: float, inertia: float) -> JointBrake:
    """The brake of a joint, number by number.

    ``gravity``: largest torque of gravity [N m, N]; ``inertia``: largest inertia at the joint [kg
    m^2, kg].
    """
    row, model = robot.coordinates(name).v.start, robot.model
    sliding = bool(robot.is_translation[row])
    ratio, guessed = _gear(robot.drives.get(name), float(model.armature[row]))
    limit = float(model.upperVelocityLimit[row])
    known = bool(np.isfinite(limit) and limit > 0)
    speed = limit if known else _SPEED[sliding]
    of, unit = "speed limit" if known else "assumed speed", "m/s" if sliding else "rad/s"
    top = f"{of} {speed:.4g} {unit}"
    rate, effort = speed / STOP_TIME.value, float(model.upperEffortLimit[row])
    guessed["deceleration"] = rate, "guess", f"{top} / {STOP_TIME.value:.2g} s; {STOP_TIME}"
    torques, peak = _torques(effort, gravity, inertia, rate, ratio, sliding)
    guessed |= torques
    if model.armature[row] == 0.0:
        gear = gear_of(pin.computeTotalMass(model), sliding=sliding)
        guessed["rotor_inertia"] = _rotor(gear, peak, speed, ratio, top)
    guessed["tolerance"] = TOLERANCE, "guess", "as of new brakes of one type"
    for key, estimate in (("delay", DELAY), ("rise", RISE)):
        guessed[key] = float(f"{estimate.value:.2g}"), "guess", str(estimate)
    for key, losses in (("coulomb", model.upperDryFrictionLimit), ("viscous", model.damping)):
        origin: tuple[Source, str] = ("guess", "the robot's file gives none")
        guessed[key] = float(losses[row]), *(("published", _FILE) if losses[row] > 0 else origin)
    values: dict[str, Any] = {key: _rounded(*entry[:2]) for key, entry in guessed.items()}
    sources = {key: source for key, (_, source, _) in guessed.items()}
    notes = {key: note for key, (*_, note) in guessed.items() if note}
    return JointBrake(**values, sources=sources, notes=notes)


def _rotor(gear: Gear, peak: float, speed: float, ratio: float, top: str) -> Entry:
    """Rotor on the side of the motor, from peak torque and full speed of the joint."""
    estimate = ROTOR[gear]
    geared = "; divide by gear_ratio^2 when you add one" if ratio == 1 else f" / {ratio:g}^2"
    how = f"{estimate.value:.2g} s x peak torque {peak:.4g} / {top}{geared}"
    note = f"{how}; {gear} drives: {estimate}"
    return estimate.value * peak / speed / ratio**2, "guess", note


def _rounded(value: Value, source: Source = "guess") -> Value:
    """What is guessed with four digits: more would pretend to be known."""
    return float(f"{value:.4g}") if isinstance(value, float) and source == "guess" else value


def _gear(drive: Drive | None, armature: float) -> tuple[float, Guessed]:
    """Gear ratio; gear and rotor."""
    if drive is None:
        return 1.0, {
            "kind": ("friction", "guess", ""),
            "side": ("joint", "guess", "no gear is known; torques are the joint's"),
            "gear_ratio": (1.0, "guess", "the robot's file names no transmission"),
        }
    ratio, rotor = abs(drive.reduction), drive.rotor_inertia
    guessed: Guessed = {
        "kind": ("friction", "guess", ""),
        "side": ("motor", "guess", ""),
        "gear_ratio": (ratio, "published", _FILE),
    }
    # A joint may also name its armature, which then is what Pinocchio uses.
    if rotor is not None and np.isclose(ratio**2 * rotor, armature, rtol=ARMATURE):
        guessed["rotor_inertia"] = rotor, "published", _FILE
    return ratio, guessed


def _torques(
    effort: float, gravity: float, inertia: float, rate: float, ratio: float, sliding: bool
) -> tuple[Guessed, float]:
    """Brake and drive, and the peak torque at the joint: by the effort limit if it carries gravity.

    Brakes hold the robot, whatever the limit is.
    """
    unit = "N" if sliding else "N m"
    geared = "" if ratio == 1 else f" / gear ratio {ratio:g}"
    worst = f"largest gravity load {gravity:.4g} {unit}"
    limit = f"effort limit {effort:g} {unit}{geared}"
    share, guessed = BRAKE_SHARE.value * STATIC_TO_DYNAMIC, Guessed()
    if 0 < effort < np.inf:
        guessed["drive_torque"] = _rounded(effort / ratio), "published", f"{_FILE}: {limit}"
    static = _GRAVITY_MARGIN * gravity
    note = f"{_GRAVITY_MARGIN:g} x {worst}{geared}"
    believed = gravity < effort < np.inf
    if believed and share * effort >= static:
        static, note = share * effort, f"{share:.2g} x {limit}; {BRAKE_SHARE}; {worst}"
    elif believed:
        note += f", more than {share:.2g} x {limit}"
    elif guessed:
        note += f"; the effort limit {effort:g} {unit} would not hold it"
    else:
        static += inertia * rate
        mass = f"{inertia:.4g} {'kg' if sliding else 'kg m^2'}"
        note = (
            f"({_GRAVITY_MARGIN:g} x {worst} + largest inertia {mass} x deceleration){geared}; "
            "the robot's file gives no effort limit"
        )
    guessed["static_torque"] = static / ratio, "guess", note
    dynamic = f"static_torque / {STATIC_TO_DYNAMIC:g}"
    guessed["dynamic_torque"] = static / ratio / STATIC_TO_DYNAMIC, "guess", dynamic
    return guessed, effort if believed else static / share

"""What of a robot is open, by how much, and what has to be released for its loops to close."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pinocchio as pin

from ..boundary.marks import Array, Mask
from ..errors import LoopNotClosed
from ..model.mechanism import Mechanism
from ..tolerances import CLOSED, COINCIDENT
from ..units import length_scale
from .rounding.exact import describe_remedy
from .search import OutsideLimits, Problem, is_at_limit, outside_limits, search, velocity_mask

_RESTARTS = 10
_LISTED = 4
"""How many open loops or joints a message names."""
_SHOWN = 0.2
"""Part of a gap from which on its share along an axis is named."""
_ALONE = 12
"""Up to so many loops each is tried by itself, to find out which one is wrong."""


def describe_gaps(problem: Problem, q: Array) -> str:
    """Which loops, couplings and targets are open, by how much and in which direction."""
    residual, constraints = problem.constraints.residual(q), problem.constraints
    gaps: list[tuple[float, str]] = []
    for loop in problem.robot.loops:
        rows = constraints.rows_of[loop.name]
        size, text = _gap(
            residual[rows],
            np.array(constraints.angular[rows], dtype=bool),
            [label.rpartition("_")[2] for label in constraints.labels[rows]],
            problem.robot.length,
        )
        where = f"the {loop.pair.name} pair between '{loop.body_a}' and '{loop.body_b}'"
        gaps.append((size, f"loop '{loop.name}': {where} is open by {text}"))
    for coupling in problem.robot.couplings:
        miss = float(residual[constraints.rows_of[coupling.name]][0])
        gaps.append((abs(miss), f"coupling '{coupling.name}' is off by {miss:.3g}"))
    for name, pose in problem.targets.items():
        error = pin.log6(pose.actInv(problem.robot.placement(q, name))).vector
        angular = np.arange(6) >= 3
        size, text = _gap(error, angular, [*"xyzxyz"], problem.robot.length)
        gaps.append((size, f"'{name}' misses its target by {text}"))
    # What is a hundred times nearer to closed than the worst is no news.
    gaps.sort(key=lambda gap: -gap[0])
    texts = [text for size, text in gaps if size >= 0.01 * gaps[0][0]]
    if len(texts) > _LISTED:
        texts[_LISTED:] = [f"{len(texts) - _LISTED} more are open by less"]
    return f"robot '{problem.robot.name}': " + "; ".join(texts)


def _gap(residual: Array, angular: Mask, labels: Sequence[str], length: float) -> tuple[float, str]:
    """Size of a gap without unit, and what it is in mm and degrees, along and about which axes."""
    residual = np.where(np.abs(residual) < COINCIDENT, 0.0, residual)
    shift, turn = (float(np.linalg.norm(residual[part])) for part in (~angular, angular))
    scale, unit = length_scale(shift)
    texts = []
    for size, part, factor, name, preposition in (
        (shift, ~angular, scale, unit, "along"),
        (turn, angular, float(np.degrees(1.0)), "deg", "about"),
    ):
        parts = [
            f"{factor * value:.3g} {preposition} its {label}"
            for value, label in zip(residual[part], np.array(labels)[part], strict=True)
            if abs(value) > _SHOWN * size
        ]
        if part.any():
            direction = f" ({', '.join(parts)})" if part.sum() > 1 and parts else ""
            texts.append(f"{factor * size:.3g} {name}{direction}")
    return max(shift / length, turn), " and ".join(texts)


def not_closed(problem: Problem, start: Array, seed: int) -> LoopNotClosed:
    """The error with what was reached from the start, and what had to be released to close."""
    q, _ = search(problem, start, seed, restarts=0)
    reason, blocked_by = _blockers(problem, start, seed)
    residuals = problem.constraints.by_name(problem.constraints.residual(q))
    for name, pose in problem.targets.items():
        error = pin.log6(pose.actInv(problem.robot.placement(q, name))).vector
        residuals[f"target {name}"] = float(np.linalg.norm(error))
    return LoopNotClosed(
        f"{describe_gaps(problem, q)}; {reason}", q=q, residuals=residuals, blocked_by=blocked_by
    )


def _blockers(problem: Problem, start: Array, seed: int) -> tuple[str, tuple[str, ...]]:
    """Release one thing after another until the loops close; say which one it was."""

    def closed(released: Problem) -> Array | None:
        q, error = search(released, start, seed, restarts=_RESTARTS)
        return q if error < CLOSED else None

    alone = not problem.held and not problem.targets
    itself = None if alone else closed(replace(problem, held=(), targets={}))
    if itself is None and (remedy := describe_remedy(problem.robot)) is not None:
        return _misfit(problem, remedy), ()
    if problem.limits and (q := closed(replace(problem, limits=False))) is not None:
        past = outside_limits(problem.robot, q, problem.robot.joints)
        names = tuple(dict.fromkeys(name for name, *_ in past))
        if np.allclose(q, start, rtol=0.0, atol=CLOSED):
            return _drawn_beyond_limits(problem.robot, q, past), names
        return f"joint limits block it ({', '.join(map(repr, names))})", names
    for name in problem.held:
        others = tuple(other for other in problem.held if other != name)
        if closed(replace(problem, held=others)) is not None:
            return f"too much is fixed: it closes if joint '{name}' is released", (name,)
    if problem.held and closed(replace(problem, held=())) is not None:
        listed = ", ".join(map(repr, problem.held))
        return f"too much is fixed: it closes if the joints {listed} are released", problem.held
    if problem.targets and closed(replace(problem, targets={})) is not None:
        names = tuple(problem.targets)
        return f"the loops close, but {', '.join(map(repr, names))} is out of reach", names
    return "out of reach: no configuration was found in which it closes", ()


def _drawn_beyond_limits(robot: Mechanism, q: Array, past: Sequence[OutsideLimits]) -> str:
    """Say that the loops close where the search begins, but outside limits that it respects."""
    joints = [
        f"'{name}' ({value:.4g}, limits {low:.4g} to {high:.4g})"
        for name, value, low, high, _hint in past
    ]
    more = f" and {len(joints) - _LISTED} more" if len(joints) > _LISTED else ""
    plural = "s" if len(joints) > 1 else ""
    drawn = "as the robot is drawn" if np.array_equal(q, robot.neutral) else "at the start"
    return (
        f"{drawn} the loops close, but past the limits of joint{plural} "
        f"{', '.join(joints[:_LISTED])}{more}"
    )


def joints_at_limits(problem: Problem, q: Array) -> tuple[str, ...]:
    """Joints that rest on a position limit which the search respected."""
    i, j, low, high = problem.ends
    at = j[is_at_limit(q[i], low, high) & ~problem.still[j]]
    return tuple(
        name for name in problem.robot.joints if velocity_mask(problem.robot, (name,))[at].any()
    )


def _misfit(problem: Problem, remedy: str) -> str:
    """Why a robot does not close whose joint frames miss each other, and what to do."""
    names = [loop.name for loop in problem.robot.loops]
    bad = []
    if 1 < len(names) <= _ALONE:
        for name in names:
            single = problem.robot.without_loops([other for other in names if other != name])
            alone = Problem.closure(single, limits=problem.limits)
            if search(alone, single.neutral, seed=0, restarts=2)[1] >= CLOSED:
                bad.append(name)
    which = ""
    if bad and len(bad) < len(names):
        which = f"; by itself, too, {' and '.join(map(repr, bad))} cannot be closed"
    elif 1 < len(names) <= _ALONE and not bad:
        which = "; each loop closes by itself, but not all together"
    limits = ", and joint limits are not to blame" if problem.limits else ""
    return f"the joint frames miss each other{limits}{which}; {remedy}"

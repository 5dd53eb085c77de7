r"""`export_closure`: passive joints as functions of driven ones, in programs without pinloop.

The program solves the rows of the loops that regularization leaves by Newton's method. With ``J``
their derivatives by the velocities that follow and ``r`` what is open, ``J = L Q`` with orthonormal
rows ``Q`` (Gram and Schmidt), a step is ``-Q' L^-1 r``: the shortest one, so that what the loops
leave free, as rods that spin between balls, moves as little as can be. Rows of twists are closed
by Rodrigues parameters ``2 tan(angle/2)``, which have the derivative of ``log6`` where the loop is
closed and do not vanish where a joint is flipped. Rows and derivatives are recorded as straight
lines for this robot (`straight_line`); what is the same for all robots is in ``templates``.
"""

from __future__ import annotations

import itertools
import keyword
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy

from ..assembly.assemble import assemble
from ..assembly.continuation import moved_away
from ..assembly.search import Problem, jacobian_rank, singular_values, velocity_mask
from ..boundary.arguments import public
from ..boundary.files import as_target, may_replace, write_text
from ..boundary.marks import Array, Indices
from ..constraints.closure import Constraints
from ..dynamics.joint_axes import JointAxes
from ..dynamics.kernel_tables import frame_numbers, links_of
from ..errors import BadValue, listed, printable
from ..model.mechanism import Mechanism
from ..model.pairs import Component
from ..model.tree import LoopJoint
from ..regularization.regularize import regularize
from ..tables.report import Markup, render
from ..tolerances import NO_PITCH, PROGRAM_CLOSED, ROTATION_DUST
from ..version import __version__
from .straight_line import Recorder, Symbol, Value

_MARK = b"Written by pinloop"
_SAMPLES = 4
"""Poses at which it is looked which rows are independent."""
_SCREW = 0
_PARTS = {1: (0, 2), 2: (3, 0), 3: (0, 4), 4: (3, 4), 5: (2, 2)}
"""Of the other motions of links, by number, how many coordinates are translations, and of the turn
that comes after them: cosine and sine, or a quaternion."""
_RATES = {0: 0, 2: 1, 4: 3}
"""Velocities of turns with so many coordinates."""


@public
def export_closure(
    robot: Mechanism, path: str | Path, *, driven: Sequence[str] | None = None
) -> Path:
    """Write a program that closes the loops of a robot, in plain C or Python by the file's suffix.

    It has ``close``, which moves the joints that follow to where the driven ones ask for, beginning
    where they are, and ``jacobian``, the derivatives of their velocities by those of the driven
    ones. Both take a configuration as `Mechanism` has it, and need nothing but math. Joints outside
    of loops are not touched. ``close`` says so where it does not succeed: no assembly near where it
    begins, or a singular pose. Limits of joints are not its business.

    Args:
        robot: the mechanism.
        path: file to write, ``.c`` or ``.py``; beside ``name.c`` there will be ``name.h``. Files
            that pinloop did not write are not overwritten.
        driven: names of the driven joints; those of the robot by default.

    Returns:
        The path.

    Raises:
        BadValue: the joints do not determine the loops, or are not independent; the robot has a
            pair whose rows cannot be written; or the file cannot be.
    """
    target = as_target(path)
    if target.suffix not in (".c", ".py"):
        raise BadValue(f"'{target.name}' is neither .c nor .py, so its language is not known")
    name = re.sub(r"\W", "_", target.stem, flags=re.ASCII)
    if not name.isidentifier() or keyword.iskeyword(name):
        raise BadValue(f"'{target.stem}' is no name for a program; begin it with a letter")
    reduced = robot if robot.regularization is not None else regularize(robot)
    choice = _choose(reduced, robot.actuated if driven is None else driven)
    values = _values(reduced, choice, name)
    files = {target: f"closure{target.suffix}.jinja"}
    if target.suffix == ".c":
        files[target.with_suffix(".h")] = "closure.h.jinja"
    for file in files:
        if not may_replace(file, _MARK):
            raise BadValue(f"{file} was not written by pinloop; remove it or name another")
    for file, template in files.items():
        write_text(file, render(f"interop/templates/{template}", **values))
    return target


class _Choice(NamedTuple):
    """What follows what.

    Args:
        driven: velocities of driven joints on which loops depend.
        following: all others on which they depend.
        order: the rows, as many independent ones as there are first.
        rank: how many these are.
        reference: an assembly, shape (nq,).
    """

    driven: Indices
    following: Indices
    order: Indices
    rank: int
    reference: Array


def _choose(robot: Mechanism, driven: Sequence[str]) -> _Choice:
    """Look at some assemblies, of which singular ones do not count."""
    axes = JointAxes(robot, driven)
    closing = [name for name, column in zip(axes.names, axes.columns, strict=True) if column < 0]
    if closing:
        raise BadValue(
            f"driven joint '{closing[0]}' closes a loop and has no coordinate; "
            "let another joint be the cut: regularize(robot, cut=...)"
        )
    problem, rng = Problem.closure(robot, full=False), np.random.default_rng(0)
    motors = tuple(name for name in robot.actuated if name in robot.joints)
    held = velocity_mask(robot, axes.joints)
    looks = problem.constraints.coordinates.any(axis=0)
    following, leading = np.flatnonzero(looks & ~held), np.flatnonzero(looks & held)
    reference = assemble(robot)
    poses = [reference, *(moved_away(robot, reference, rng) for _ in range(_SAMPLES))]
    jacobians = [problem.jacobian(q) for q in poses if q is not None]
    J = max(jacobians, key=lambda J: _regularity(J[:, following]))
    rank = jacobian_rank(J[:, following])
    if rank == 0:
        raise BadValue(f"no joint of robot '{robot.name}' follows the driven ones through a loop")
    if rank < jacobian_rank(J):
        raise BadValue(f"the driven joints {listed(driven)} depend on each other; drive fewer")
    # What the motors of the robot leave free moves nothing that a user asks for: spinning rods.
    idle = looks & ~velocity_mask(robot, motors)
    left = len(following) - rank
    if left > np.count_nonzero(idle) - jacobian_rank(J[:, idle]):
        raise BadValue(
            f"with {listed(driven)} driven, {left} degrees of freedom of the loops are left; "
            "drive more joints"
        )
    *_, order = scipy.linalg.qr(J[:, following].T, mode="economic", pivoting=True)
    return _Choice(leading, following, np.asarray(order), rank, reference)


def _regularity(J: Array) -> tuple[int, float]:
    """Rank, and the smallest singular value that counts."""
    values, rank = singular_values(J), jacobian_rank(J)
    return rank, float(values[rank - 1]) if rank else 0.0


# -- rows, recorded ------------------------------------------------------------------------------


class _Frame(NamedTuple):
    """A placement whose entries are numbers or symbols."""

    R: Array
    p: Array

    def __mul__(self, other: _Frame) -> _Frame:  # type: ignore[override]
        return _Frame(self.R @ other.R, self.p + self.R @ other.p)

    def seen_from(self, other: _Frame) -> _Frame:
        """This frame in the axes of another."""
        return _Frame(other.R.T @ self.R, other.R.T @ (self.p - other.p))


def _frame(numbers: Array) -> _Frame:
    """A frame from its axes and origin, without rounding that costs operations."""
    clean = np.where(np.abs(numbers) < ROTATION_DUST, 0.0, numbers).astype(object)
    return _Frame(clean[:9].reshape(3, 3).T, clean[9:])


_ORIGIN = _frame(np.append(np.eye(3).ravel(), np.zeros(3)))


def _rows(robot: Mechanism, choice: _Choice) -> tuple[Recorder, dict[str, Value]]:
    """Rows ``r``, their derivatives ``J`` by velocities that follow, then by driven ones."""
    recorder, constraints = Recorder(), Constraints(robot)
    tree = _Tree(robot, recorder)
    values: list[Any] = [0.0] * len(constraints)
    slopes = np.zeros((len(constraints), robot.nv), dtype=object)
    for loop in robot.loops:
        components = constraints.components(loop)
        if components is None:
            raise BadValue(f"the {loop.pair.name} pair of loop '{loop.name}' has no rows to write")
        rows = constraints.rows_of[loop.name]
        a, b, moving = tree.ends(loop)
        for row, (kind, along) in zip(range(rows.start, rows.stop), components, strict=True):
            values[row], (v, w) = _open(recorder, loop, kind, along.astype(object), b.seen_from(a))
            # What takes twists of B relative to A from B to the axes of the common link.
            force, moment = b.R @ v, b.R @ w
            moment = moment + _cross(b.p, force)
            for k, sign in moving.items():
                linear, angular = tree.twist(k)
                slopes[row, k] = sign * (force @ linear + moment @ angular)
    for coupling in constraints.couplings:
        row = constraints.rows_of[coupling.name].start
        for joint, polynomial in zip(coupling.joints, coupling.polynomials, strict=True):
            at, terms = robot.coordinates(joint), [float(c) for c in polynomial]
            x, rates = tree.q(at.q.start), [k * c for k, c in enumerate(terms)][1:]
            values[row] = values[row] + _horner(terms, x)
            slopes[row, at.v.start] = slopes[row, at.v.start] + _horner(rates, x)
    entries = dict[str, Value]()
    for i, row in enumerate(choice.order):
        entries[f"r[{i}]"] = values[row]
        for j, k in enumerate([*choice.following, *choice.driven]):
            entries[f"J[{i}][{j}]"] = slopes[row, k]
    return recorder, entries


def _horner(terms: list[float], x: Symbol) -> Any:
    total: Any = 0.0
    for term in reversed(terms):
        total = total * x + term
    return total


def _open(
    recorder: Recorder, loop: LoopJoint, kind: Component, along: Array, T: _Frame
) -> tuple[Any, tuple[Any, Any]]:
    """How far a row is open, and its rate as a row on the twist of B relative to A, in B."""
    zero = np.zeros(3).astype(object)
    if kind == "offset":
        return along[:3] @ T.p, (T.R.T @ along[:3], zero)
    if kind == "rod":
        distance = recorder.call("sqrt", T.p @ T.p)
        return along[0] * distance - along[1], (along[0] * (T.R.T @ T.p) / distance, zero)
    if kind == "angle":
        n = T.R[2]
        return along[3] * n[0], (zero, along[3] * np.array([0.0, -n[2], n[1]], dtype=object))
    E = T.seen_from(_closest(recorder, loop, T))
    turn = np.array([E.R[2, 1] - E.R[1, 2], E.R[0, 2] - E.R[2, 0], E.R[1, 0] - E.R[0, 1]])
    rodrigues = 2.0 * turn / (1.0 + E.R.trace())
    return along[:3] @ E.p + along[3:] @ rodrigues, (along[:3], along[3:])


def _closest(recorder: Recorder, loop: LoopJoint, T: _Frame) -> _Frame:
    """The motion of the pair that is closest to a placement; see `MotionGroup.closest`."""
    pair, R, p = loop.pair, _ORIGIN.R, _ORIGIN.p.copy()
    for axis in pair.slides:
        p["xyz".index(axis)] = T.p["xyz".index(axis)]
    if pair.turns == "xyz":
        R = T.R
    elif pair.turns == "z":
        x, y = T.R[0, 0] + T.R[1, 1], T.R[1, 0] - T.R[0, 1]
        size = recorder.call("sqrt", x * x + y * y)
        cosine, sine = x / size, y / size
        if abs(pair.advance) > NO_PITCH:
            # A screw may have made whole turns: those that fit the advance are meant.
            angle = recorder.call("atan2", sine, cosine)
            turns = (T.p[2] / pair.advance - angle) / (2.0 * np.pi)
            angle = angle + 2.0 * np.pi * recorder.call("floor", turns + 0.5)
            p[2] = pair.advance * angle
        R = _turn(np.array([0.0, 0.0, 1.0]), cosine, sine)
    return _Frame(R, p)


def _turn(axis: Array, cosine: Value, sine: Value) -> Array:
    """Rotation about a unit axis (Rodrigues)."""
    x, y, z = axis.tolist()
    skew = np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]]).astype(object)
    along = np.outer(axis, axis)
    return along.astype(object) + (np.eye(3) - along).astype(object) * cosine + skew * sine


def _cross(a: Array, b: Array) -> Array:
    return np.array([a[i - 2] * b[i - 1] - a[i - 1] * b[i - 2] for i in range(3)], dtype=object)


class _Tree:
    """Links where a symbolic configuration puts them, as seen from links that they hang on."""

    def __init__(self, robot: Mechanism, recorder: Recorder) -> None:
        tables = links_of(robot)
        if tables is None:
            raise BadValue(f"robot '{robot.name}' has joints that cannot be written as a program")
        self._robot, self._recorder = robot, recorder
        links, twists, self._carried = tables
        self._parents = links[:, 0].astype(int).tolist()
        self._motions, self._starts = links[:, 1].astype(int).tolist(), links[:, 2].astype(int)
        self._joints = [_frame(line[3:15]) for line in links]
        self._twists = np.where(np.abs(twists) < ROTATION_DUST, 0.0, twists)
        parts = [_PARTS.get(motion, (1, 0)) for motion in self._motions]
        counts = [slides + _RATES[turns] for slides, turns in parts]
        self._first = np.cumsum([0, *counts]).tolist()
        self._link_of = np.repeat(np.arange(len(counts)), counts).tolist()
        self._placed = dict[int, _Frame]()

    def q(self, index: int) -> Symbol:
        """A coordinate."""
        return self._recorder.note(f"q[{index}]")

    def ends(self, loop: LoopJoint) -> tuple[_Frame, _Frame, dict[int, float]]:
        """Frames A and B in the last link that carries both; what moves B (1) and A (-1) there."""
        frames = [self._robot.model.frames[number] for number in (loop.frame_a, loop.frame_b)]
        paths = [self._path(self._carried[frame.parentJoint]) for frame in frames]
        common = set(paths[0]).intersection(paths[1])
        self._placed, moving, places = {}, dict[int, float](), list[_Frame]()
        for frame, path, sign in zip(frames, paths, (-1.0, 1.0), strict=True):
            place = _ORIGIN
            for link in path:
                if link not in common:
                    place = self._placed[link] = place * self._joints[link] * self._moved(link)
                    moving |= {k: sign for k in range(self._first[link], self._first[link + 1])}
            places.append(place * _frame(np.array(frame_numbers(frame.placement))))
        return places[0], places[1], moving

    def twist(self, k: int) -> tuple[Array, Array]:
        """Unit twist of a velocity, in the axes of the common link of the last loop."""
        own, place = self._twists[k].astype(object), self._placed[self._link_of[k]]
        angular = place.R @ own[3:]
        return place.R @ own[:3] + _cross(place.p, angular), angular

    def _path(self, link: int) -> list[int]:
        """Links from the root to one."""
        path = list[int]()
        while link >= 0:
            path.append(link)
            link = self._parents[link]
        return path[::-1]

    def _moved(self, link: int) -> _Frame:
        """Where a joint carries its link."""
        motion, at = self._motions[link], int(self._starts[link])
        if motion == _SCREW:
            x, R, axis = self.q(at), _ORIGIN.R, self._twists[self._first[link]]
            if axis[3:].any():
                R = _turn(axis[3:], self._recorder.call("cos", x), self._recorder.call("sin", x))
            return _Frame(R, axis[:3].astype(object) * x)
        slides, turns = _PARTS[motion]
        p, turn = _ORIGIN.p.copy(), [self.q(at + slides + i) for i in range(turns)]
        p[:slides] = np.array([self.q(at + i) for i in range(slides)], dtype=object)
        if turns == 4:
            return _Frame(_rotation(np.array(turn)), p)
        axis = self._twists[self._first[link + 1] - 1, 3:]
        return _Frame(_turn(axis, turn[0], turn[1]) if turns else _ORIGIN.R, p)

    def step(self, link: int, s: list[Symbol | None]) -> dict[str, Value]:
        """Coordinates of a joint after a short step of its velocities; None for those that stay.

        To first order, of unit length: that suffices for Newton's method.
        """
        motion, at = self._motions[link], int(self._starts[link])
        d = np.array([0.0 if x is None else x for x in s], dtype=object)
        if motion == _SCREW:
            return {f"q[{at}]": self.q(at) + d[0]}
        slides, turns = _PARTS[motion]
        place, shift = self._moved(link), np.zeros(3).astype(object)
        shift[:slides] = d[:slides]
        new = [*(place.p + place.R @ shift)[:slides]]
        q: list[Any] = [self.q(at + slides + i) for i in range(turns)]
        if turns == 4:
            new += self._unit(_quaternion_step(q, [*d[slides:]]))
        elif turns:
            new += self._unit([q[0] - d[-1] * q[1], q[1] + d[-1] * q[0]])
        return {f"q[{at + i}]": x for i, x in enumerate(new)}

    def steps(self, following: Indices) -> dict[str, Value]:
        """The configuration after a step ``s`` of the velocities that follow."""
        place = {int(k): self._recorder.note(f"s[{i}]") for i, k in enumerate(following)}
        moved = dict[str, Value]()
        for link, (begin, end) in enumerate(itertools.pairwise(self._first)):
            if any(k in place for k in range(begin, end)):
                moved |= self.step(link, [place.get(k) for k in range(begin, end)])
        return moved

    def _unit(self, x: list[Any]) -> list[Any]:
        size = self._recorder.call("sqrt", sum((y * y for y in x), 0.0))
        return [y / size for y in x]


def _rotation(q: Array) -> Array:
    """Rotation matrix of a unit quaternion, the scalar last."""
    x, y, z, w = q
    return np.array(
        [
            [1.0 - 2.0 * (y * y + z * z), 2.0 * (x * y - z * w), 2.0 * (x * z + y * w)],
            [2.0 * (x * y + z * w), 1.0 - 2.0 * (x * x + z * z), 2.0 * (y * z - x * w)],
            [2.0 * (x * z - y * w), 2.0 * (y * z + x * w), 1.0 - 2.0 * (x * x + y * y)],
        ],
        dtype=object,
    )


def _quaternion_step(q: list[Any], turn: list[Any]) -> list[Any]:
    """``q (1, turn / 2)``: a turn in the frame of the link."""
    x, y, z, w = q
    a, b, c = (0.5 * angle for angle in turn)
    return [
        x + w * a + y * c - z * b,
        y + w * b + z * a - x * c,
        z + w * c + x * b - y * a,
        w - x * a - y * b - z * c,
    ]


# -- the program -----------------------------------------------------------------------------------


def _values(robot: Mechanism, choice: _Choice, name: str) -> dict[str, Any]:
    """What the templates are filled in with."""
    rows, entries = _rows(robot, choice)
    mover = Recorder()
    moved = _Tree(robot, mover).steps(choice.following)
    lines = {
        f"{part}{language}": Markup(
            "\n".join(f"    {line}{end}" for line in recorder.program(x, declare))
        )
        for language, declare, end in (("_c", "const double ", ";"), ("_py", "", ""))
        for part, recorder, x in (("rows", rows, entries), ("moves", mover, moved))
    }
    places = {joint: robot.coordinates(joint).v for joint in robot.joints}
    owners = {k: joint for joint, at in places.items() for k in range(at.start, at.stop)}
    names = {
        "driven": [_comment(owners[int(k)]) for k in choice.driven],
        "following": [_comment(owners[int(k)]) for k in choice.following],
    }
    return {
        "name": name,
        "version": __version__,
        "robot": _comment(robot.name),
        "coordinates": [
            (robot.coordinates(joint).q.start, _comment(joint)) for joint in robot.joints
        ],
        "nq": robot.nq,
        "closed": PROGRAM_CLOSED * max(1.0, robot.length),
        "rank": choice.rank,
        "reference": [repr(float(x)) for x in choice.reference],
        "rows": len(choice.order),
        **names,
        **lines,
    }


def _comment(name: str) -> str:
    """A name that ends no comment and no text."""
    return printable(name).replace("*/", "* /").replace("\\", "/").replace('"', "'")

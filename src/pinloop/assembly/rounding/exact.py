"""Which change of a robot's joint frames is the one that its rounding calls for, if any."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product

import numpy as np

from ...boundary.marks import Array
from ...errors import BadValue, LoopNotClosed, listed
from ...model.description import Joint, Rounding
from ...model.mechanism import Mechanism, build
from ...model.workspace import remembered
from ...tolerances import CLOSED, FITTED, FITTED_ZERO
from ..continuation import moved_away
from ..search import Problem, jacobian_rank, search, singular_values
from .fitting import Fit, LoopCluster, Place, fit_frames, loop_groups, rigid_loops, walk
from .rules import Rule, alignments_of, equalities_of

_MARGIN = 10.0
"""How much more than its frames a loop may be off: errors of several frames add up."""
_STIFF = 0.1
"""Singular values above this part of the largest one resist, however much is tolerated."""
_CHOICE = 3.0
_WIDE, _FAR = 0.1, 3.0
"""Changes above this part of the limit are doubted; so much less without rules refutes them."""
_FEW = 8
"""Configurations that show whether loops move."""
_RESTARTS = 8
_LISTED = 4
"""How many rigid loops a message names."""
_MARGINS = (2.0, 6.0)
"""By how much a tolerance that is proposed is wider than what frames were moved by."""


def with_exact_geometry(robot: Mechanism, tolerance: float) -> Mechanism:
    """Return the robot with the special geometry that its loops have but for rounding.

    It is the robot itself if its loops are closed and free to move, or if they are off by more than
    the tolerance: the largest turn [rad] or shift [lengths of the robot] of a joint frame, 0 to
    leave everything as it is. If some loops can be closed, but not move, it has a warning.
    """
    if tolerance <= 0 or not robot.loops:
        return robot
    problem, q = _nearly_closed(robot)
    fits = _fits(problem, q, tolerance, _WIDE * tolerance)
    mended = {name for fit in fits for name in fit.cluster.problem.constraints.rows_of}
    rigid = [name for name in rigid_loops(problem, q) if name not in mended]
    if fits:
        robot = _rebuilt(robot, fits, tolerance, "closes; its numbers are rounded")
    if rigid:
        warnings = (*robot.warnings, describe_rigid(robot, rigid))
        robot = replace(robot, description=replace(robot.description, warnings=warnings))
    return robot


def describe_rigid(robot: Mechanism, loops: Sequence[str]) -> str:
    """A sentence on loops that leave their joints no motion."""
    names = listed(loops, f"loop{'s' * (len(loops) > 1)} ", most=_LISTED)
    return f"robot '{robot.name}': {names} can be closed, but cannot move (mobility 0)"


def fitted(robot: Mechanism, tolerance: float) -> Mechanism:
    """Return the robot with its joint frames moved by the least that closes its loops.

    If no change within the tolerance does, it is a `LoopNotClosed`; see `Mechanism.fitted`.
    """
    if not 0 < tolerance < 1:
        raise BadValue(f"tolerance is {tolerance!r}; it must be a number between 0 and 1")
    fits = _fits(*_nearly_closed(robot), tolerance, DEFAULT_TOLERANCE)
    changed = _rebuilt(robot, fits, tolerance, "was fitted") if fits else robot
    left = Problem.closure(changed)
    q, error = search(left, robot.neutral, seed=0, restarts=_RESTARTS)
    if error > CLOSED:
        raise LoopNotClosed(
            f"robot '{robot.name}': no change of its joint frames by up to {tolerance:g} rad and "
            f"lengths of the robot closes its loops; {error:.2g} is left",
            q=q,
            residuals=left.constraints.by_name(left.constraints.residual(q)),
        )
    return changed


@remembered
def describe_remedy(robot: Mechanism) -> str | None:
    """What change of joint frames would let loops close and move that do not, as a clause.

    None if no change up to the default tolerance of `Mechanism.fitted` does.
    """
    try:
        fit: Mechanism = robot.fitted()
    except LoopNotClosed:
        return None
    rounding = fit.description.rounding
    if fit is robot or rounding is None:
        return None
    text = (
        f"robot.fitted() moves them {rounding.extent}, and it closes with mobility {_mobility(fit)}"
    )
    size = max(rounding.shift / robot.length, rounding.turn)
    for margin in _MARGINS:
        tolerance = float(f"{margin * size:.0e}")
        loaded = with_exact_geometry(robot, tolerance) if tolerance < 1 else robot
        if loaded.description.rounding is not None and _mobility(loaded) == _mobility(fit):
            hint = f"tolerance={tolerance:g} (--tolerance {tolerance:g})"
            return f"{text}; so does loading with {hint}"
    return text


def _mobility(robot: Mechanism) -> int:
    """Degrees of freedom next to the neutral configuration, which may be singular."""
    problem, q = _nearly_closed(robot)
    beside = moved_away(robot, q, np.random.default_rng(0))
    places = [q] if beside is None else [q, beside]
    return robot.nv - max(jacobian_rank(problem.jacobian(place)) for place in places)


def _nearly_closed(robot: Mechanism) -> tuple[Problem, Array]:
    """Closure of all rows, and the configuration next to neutral at which they are least open."""
    problem = Problem.closure(robot, limits=True)
    q, _ = search(problem, robot.neutral, seed=0, restarts=0)
    return problem, q


def _fits(problem: Problem, q: Array, tolerance: float, floor: float) -> list[Fit]:
    """Fits of all clusters of loops that need one."""
    residual, jacobian = problem.residual(q), problem.jacobian(q)
    near, fits = min(_MARGIN * tolerance, 0.3), []
    for group in loop_groups(problem.robot):
        rows, columns = group.part(problem)
        if not _ranks(residual[rows], jacobian[np.ix_(rows, columns)], tolerance):
            continue
        cluster = group.cluster()
        for start in _starts(cluster, group.configuration(cluster, q), near):
            if fit := _meant(cluster, start, tolerance, floor):
                fits += [fit] if fit.size > FITTED else []
                break
    return fits


def _starts(cluster: LoopCluster, q: Array, near: float) -> list[Array]:
    """Configurations at which loops are nearly closed, the likeliest to be meant first.

    Loops that cannot be closed drift far while the search tries: to where they are flat. Some are
    drawn closed in a pose that is singular, or beyond their limits, and are nowhere else.
    """
    starts = [cluster.robot.neutral]
    if np.abs(cluster.robot.difference(cluster.robot.neutral, q)).max(initial=0.0) > near:
        starts.append(q)
    starts = [start for start in starts if np.linalg.norm(cluster.residual(start)) <= near]
    if starts:
        return starts
    within = replace(cluster.problem, limits=True)
    return [search(within, q, seed=0, restarts=_RESTARTS, enough=near)[0]]


def _ranks(residual: Array, jacobian: Array, tolerance: float) -> range:
    """Ranks that rows may be meant to have, but for rounding, less than the one that they have.

    What nearly moves is not meant to be rigid.
    """
    values = singular_values(jacobian)
    unit = max(1.0, float(values.max(initial=0.0)))
    stiff = int(np.sum(values > min(_MARGIN * tolerance, _STIFF) * unit))
    rank = int(np.sum(values > FITTED_ZERO * unit))
    if np.linalg.norm(residual) > FITTED:
        # Loops that are open may also be rigid.
        rank = min(rank, len(residual) - 1) + 1
    columns = jacobian.shape[1]
    return range(stiff, min(rank, columns) if stiff < columns else rank)


def _meant(cluster: LoopCluster, q: Array, tolerance: float, floor: float) -> Fit | None:
    """The change, if any, after which a cluster moves as it was meant to; None if none is known.

    Changes up to ``floor`` are taken for rounding whatever the others are; those beyond only if
    they are of the size of what it takes to close the loops at all.
    """
    # The lower the rank, the more special the geometry: the most special in reach is the one meant.
    fits: list[Fit] = []
    for rank in _ranks(cluster.residual(q), cluster.jacobian(q), tolerance):
        if fit := _Hypothesis(cluster, q, rank, tolerance).fit():
            fits.append(fit)
            if fit.size <= floor:
                break
    least = min((fit.size for fit in fits), default=0.0)
    return next((fit for fit in fits if fit.size <= max(floor, _CHOICE * least)), None)


@dataclass(frozen=True, eq=False)
class _Hypothesis:
    """Loops that are meant to move with rows of a rank that is less than the one they have.

    ``q``: a configuration at which they are nearly closed. ``limit``: largest change of a frame.
    """

    cluster: LoopCluster
    q: Array
    rank: int
    limit: float

    @property
    def allowed(self) -> float:
        """What the loops may be open by where they go."""
        return min(_MARGIN * self.limit, 0.5 * _STIFF)

    @cached_property
    def few(self) -> list[Place] | None:
        """Configurations that show whether the loops move."""
        return walk(self.cluster, self.q, self.rank, self.allowed, _FEW)

    @cached_property
    def many(self) -> list[Place] | None:
        """So many that there are some more equations than unknowns."""
        unknown = 6 * len(self.cluster.frames)
        redundant = len(self.cluster.problem.constraints) - self.rank
        count = max(_FEW, -(-unknown // redundant) + 3)
        return walk(self.cluster, self.q, self.rank, self.allowed, count)

    def fit(self) -> Fit | None:
        """The least change with which the loops move so."""
        cluster, limit = self.cluster, self.limit
        if self.few is None:
            return None
        if self._is_exact(cluster, self.few):
            return Fit(cluster, np.zeros((len(cluster.frames), 6)))
        # Where conditions are met to second order, loops open by far less than frames are off.
        is_open = max(place.opening for place in self.few) > limit
        reach = limit if is_open else self.allowed
        for choices in _rules(cluster, limit, reach):
            if fit := self._closing(choices, reach, reach):
                return fit
        return None

    def _closing(self, choices: Iterable[list[Rule]], reach: float, most: float) -> Fit | None:
        """The first change that obeys rules, with which the loops close wherever they go.

        ``choices``: what the axes on the links may be meant to obey, the likeliest first.
        ``reach``: by how much the loops are open at most. ``most``: largest change worth a look.
        """
        for rules, fit in self._changes(choices, reach, most):
            there = walk(fit.cluster, self.q, self.rank, CLOSED, _FEW)
            if there is not None and self._is_exact(fit.cluster, there):
                if rules and fit.size > _WIDE * self.limit:
                    # Within a wide tolerance axes are aligned by chance: then far less is enough.
                    return self._closing([[]], reach, fit.size / _FAR) or fit
                return fit
        return None

    def _changes(
        self, choices: Iterable[list[Rule]], reach: float, most: float
    ) -> Iterator[tuple[list[Rule], Fit]]:
        """Changes that obey rules and close the loops at one place, then at several.

        What closes everywhere although it was asked for less is the least change of all, and what
        is too large at one place is so everywhere.
        """
        cluster = self.cluster
        assert self.few is not None
        # A neutral configuration that nearly closes is meant to close: it stays the robot's home.
        neutral = cluster.robot.neutral
        is_home = float(np.linalg.norm(cluster.residual(neutral))) <= reach
        homes = (neutral, None) if is_home else (None,)
        start, possible = [] if is_home else self.few[:1], list[list[Rule]]()
        for rules in choices:
            if fit := fit_frames(cluster, start, most, rules, homes[0]):
                possible.append(rules)
                yield rules, fit
        if not possible or self.rank == cluster.robot.nv or self.many is None:
            return
        for rules, home in product(possible, homes):
            if fit := fit_frames(cluster, self.many, most, rules, home):
                yield rules, fit

    def _is_exact(self, cluster: LoopCluster, places: Sequence[Place]) -> bool:
        """Whether loops are closed at all places, with rows of the rank and no more."""
        for place in places:
            values = singular_values(cluster.jacobian(place.q))
            zero = FITTED_ZERO * max(1.0, float(values.max(initial=0.0)))
            if place.opening > CLOSED or np.any(values[self.rank :] > zero):
                return False
        return True


def _rules(cluster: LoopCluster, limit: float, reach: float) -> list[list[list[Rule]]]:
    """What axes may be meant to obey, without and with equal lengths, the likeliest first.

    Axes that nearly meet may do so by chance, and lengths are seldom equal by themselves.
    """
    aligned = alignments_of(cluster.robot, cluster.ends, limit)
    parallel = [rule for rule in aligned if rule.kind == "parallel"]
    alike = equalities_of(cluster.robot, cluster.ends, reach)
    kinds = [aligned, parallel] if len(parallel) < len(aligned) else [aligned]
    choices = [[[*rules], *([[*rules, *alike]] if alike else [])] for rules in kinds]
    # In a wide reach lengths are equal by chance, and come last.
    if limit <= DEFAULT_TOLERANCE:
        return choices
    return [[rules] for column in zip(*choices, strict=True) for rules in column]


def _rebuilt(robot: Mechanism, fits: list[Fit], tolerance: float, word: str) -> Mechanism:
    """The robot with the frames of all fits, and a warning that starts with ``word``."""
    joints = {joint.name: joint for joint in robot.description.joints}
    moves: list[tuple[float, float, str]] = []
    for fit in fits:
        moved: dict[str, Joint] = {j.name: j for j in fit.cluster.robot.description.joints}
        for (name, _), part in zip(fit.cluster.frames, fit.shift, strict=True):
            frames = moved[name].frame_parent, moved[name].frame_child
            joints[name] = replace(joints[name], frame_parent=frames[0], frame_child=frames[1])
            shift, turn = np.linalg.norm(part.reshape(2, 3), axis=1).tolist()
            moves.append((shift * robot.length, turn, name))
    rounding = Rounding(
        tolerance=tolerance,
        shift=max(shift for shift, _, _ in moves),
        turn=max(turn for _, turn, _ in moves),
        joint=max(moves, key=lambda move: max(move[0] / robot.length, move[1]))[2],
    )
    description = replace(robot.description, joints=tuple(joints.values()), rounding=rounding)
    changed = replace(build(description, kinematics_only=True), given_length=robot.length)
    text = f"robot '{robot.name}' {word}: {rounding}; mobility {_mobility(changed)}"
    description = replace(description, warnings=(*robot.warnings, text))
    return replace(changed, description=description)


DEFAULT_TOLERANCE = 1e-4
"""Radians, and parts of the robot's length, by which a frame may be off and count as rounded."""

_NUMBER = re.compile(r"(?<![\w.])[-+]?(\d*\.\d+|\d+\.?)(?:[eE][-+]?\d+)?(?![\w.])")
_EVIDENCE, _SHARE = 20, 0.7
"""How many numbers must tell, and how many of them have all digits: nine of ten have if rounded."""


def written_tolerance(texts: Iterable[str]) -> float:
    """Tolerance for a robot whose numbers are all written with few digits.

    A file in which every number has at most ``n`` significant digits, and most have all of them,
    was rounded to ``n`` digits: its frames are off by some ``10^(1 - n)``. Short numbers alone say
    nothing: 0.3 is what somebody meant.
    """
    counts: Counter[int] = Counter()
    for text in texts:
        for match in _NUMBER.finditer(text):
            digits = len(match[1].replace(".", "").strip("0"))
            if _rounding(digits) < DEFAULT_TOLERANCE:
                return DEFAULT_TOLERANCE  # whatever the other numbers are
            counts[digits] += 1
    most = max(counts, default=0)
    long = sum(counts[n] for n in counts if n > 1)
    if most < 3 or long < _EVIDENCE or counts[most] < _SHARE * long:
        return DEFAULT_TOLERANCE
    return max(DEFAULT_TOLERANCE, _rounding(most))


def _rounding(digits: int) -> float:
    """By how much frames are off in a file of so many significant digits."""
    return 3 * 10.0 ** (1 - digits)

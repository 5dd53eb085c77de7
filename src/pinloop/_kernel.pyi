"""What the native kernel offers to Python; how it does it is in `src/native`."""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

SOURCES_DIGEST: str
"""SHA-256 of the digests of all its sources, in the order of their names."""

class Tables:
    """A robot as tables, which do not change."""

    def __init__(
        self,
        sizes: tuple[int, int],
        gravity: Array,
        arrays: tuple[Array, Array, Array, Array],
        terms: Sequence[tuple[int, int, int, Sequence[float]]],
    ) -> None:
        """Make tables from what `kernel_tables` takes from a robot.

        Numbers of coordinates and velocities; gravity; and arrays with a line per link, velocity,
        loop and row.

        Of a link: the link that carries it, motion, first coordinate in q, place of the joint (axes
        of the frame, origin), twist of the joint, mass, centre of mass and moments of inertia; of a
        velocity: its twist in its link; of a loop: link and place of frame A, the same of B, what
        its pair leaves free (number of rotations, slides along x, y and z, pitch); of a row: its
        loop (-1 for a coupling), what it takes of the motion of B relative to A, as a kind and a
        component. Per term of a coupling its row, its coordinate in q and in v, and its polynomial,
        the constant first.
        """

class Dynamics:
    """Accelerations of a robot, for one thread at a time."""

    def __init__(self, tables: Tables) -> None: ...
    def hold(
        self, rows: Sequence[int], stale: Sequence[float], bad: Sequence[float], armature: Array
    ) -> None:
        """Choose rows, the first to eliminate first, with limits of their pivots, and rotors."""

    def acceleration(self, q: Array, v: Array, tau: Array, a: Array) -> int:
        """Write an acceleration to ``a``; 0 if it is good, 1 if rows are stale, 2 if it is bad."""

    @property
    def multipliers(self) -> list[float]:
        """Reactions of the rows in the last solution."""

class Derivatives:
    """Derivatives of accelerations and reactions, for one thread at a time."""

    def __init__(
        self, tables: Tables, rows: Sequence[int], held: int, units: Array, armature: Array
    ) -> None:
        """The first so many rows hold the robot, the others depend on them; units of all."""

    @property
    def size(self) -> int:
        """How many numbers `at` writes."""

    def at(self, q: Array, v: Array, tau: Array, room: Array) -> bool:
        """Write what `derivatives.hpp` lists; False if the rows do not agree, or are bad."""

class StopDynamics:
    """Accelerations and torques of a robot that stops, for one thread at a time."""

    def __init__(self, tables: Tables) -> None: ...
    def enter(
        self,
        rows: Sequence[int],
        part: float,
        spare: int,
        pinned: Sequence[int],
        armature: Array,
        torques: Array,
        start: float,
        bounds: Array,
    ) -> None:
        """Let a phase begin in which the same joints stick, follow or slide.

        Rows that hold the loops, the part of the largest one that others must not contain of any,
        and how many they contain whole; what is pinned; rotors in the mass matrix; torques, shape
        (13, nv), and bounds, shape (k, 4), see `stop_dynamics.hpp`.
        """

    def solve_all(self, t: Array, q: Array, v: Array, given: Array, solutions: Array) -> int:
        """Write accelerations and torques to ``solutions``, shape (k, 4, nv), state after state.

        In ``given`` are the accelerations of what is pinned. Returns how many came before one at
        which the rows are bad.
        """

    @property
    def multipliers(self) -> list[float]:
        """Reactions of the rows in the last solution."""

def rows_at(tables: Tables, q: Array, v: Array, room: Array) -> None:
    """Write ``J``, ``gamma`` and the residual of each row at states, shape (k, rows, nv + 2)."""

class Steps:
    """Many steps of a run at once, for one thread at a time."""

    def __init__(
        self,
        tables: Tables,
        tableau: tuple[Array, Array, Array],
        settings: Mapping[str, float],
        unit: Array,
        locked: Sequence[int],
    ) -> None:
        """``locked``: a number per velocity, not zero if it is locked."""

    @property
    def dynamics(self) -> Dynamics:
        """The accelerations, whose rows and rotors are to be chosen."""

    def load(self, terms: Array, lines: Array, pushes: Array, axes: Array) -> None:
        """Let forces act: ``constant - stiffness q - damping v`` per velocity, shape (3, nv).

        And straight springs and dampers, shape (k, 11): link and point, the same of the other end,
        stiffness, length, damping; forces, shape (k, 8): link and point, force, whether in axes of
        the link; axes of loops, shape (k, 37): link and place of frame A, the same of B, twist
        that is the rate, whether it turns, angle near which a spring measures, constant, stiffness,
        damping.
        """

    def project(
        self,
        tables: Tables,
        settings: Mapping[str, float],
        unit: Array,
        rotors: Array,
    ) -> None:
        """Project states on the rows of other tables of the robot, in units that compare.

        Per velocity its unit and the inertia of its rotor, infinite where it is locked.
        """

    def block(self) -> tuple[list[int], list[int], float, float]:
        """The block that projects now, see `Projector.known`; no rows or columns if none does."""

    def recall(
        self, known: tuple[Sequence[int], Sequence[int], float, float, int, float, float]
    ) -> None:
        """Go on from what is known of projections, see `Projector.known`."""

    def close(self, q: Array, v: Array) -> tuple[bool, bool, float, float]:
        """Put a state on the manifold: whether that could be done, and whether it was moved.

        And the regularity there with the least pivot at best.
        """

    def take(
        self,
        start: tuple[float, float, float, float, float],
        state: tuple[Array, Array, Array],
        times: Sequence[float],
        asked: Sequence[int],
        notes: tuple[Array, NDArray[np.int64]],
        states: tuple[Array, Array, Array, Array, Array],
        bends: Array,
    ) -> int:
        """Take steps from time, with size and error of the last one, to an end.

        Writes time, next size, error, regularity and its best; evaluations, rejected steps and
        whether rows are stale; ``q``, ``v``, ``a``, ``psi``, and the velocity before projections;
        of stops `Step.bends`. Returns how many steps were taken.
        """

class StopSteps(Steps):
    """Steps of a stop in one phase, to the first thing that happens."""

    def __init__(
        self,
        dynamics: StopDynamics,
        tableau: tuple[Array, Array, Array],
        settings: Mapping[str, float],
        unit: Array,
        dense: tuple[Array, Array, Array],
    ) -> None:
        """Steps on coordinates that are a vector space; dense output as in `stop_steps.hpp`."""

    def watch(self, table: Array, pinned: Sequence[int], tiny: float, slow: float) -> None:
        """What to look for in the phase that has been entered.

        Per line column, whether its speed counts, sign, level and its rate; what is pinned; speed
        that is none; speed below which steps end.
        """

    @property
    def hits(self) -> list[int]:
        """What has happened where the last step ends: lines of the table."""

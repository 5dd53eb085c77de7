"""What happened: states over time with dense evaluation, analysis, saving and export."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypedDict, Unpack, overload

import numpy as np
import pinocchio as pin
from numpy.typing import ArrayLike, NDArray

from ..boundary.arguments import public
from ..boundary.files import data_frame
from ..boundary.marks import Array
from ..boundary.values import forward, stored_fields
from ..dynamics import EquationsOfMotion
from ..dynamics.forces import Force
from ..errors import BadValue, PinloopError
from ..integrate import Step
from ..model.mechanism import Mechanism
from ..tolerances import LAST_BITS
from .accuracy import Accuracy, Course, balance_warning
from .analysis import (
    EnergyBalance,
    LockReaction,
    Momenta,
    Reaction,
    closure_residuals,
    energy_balance,
    lock_reactions,
    momenta,
    reactions,
)
from .columns import JointMotion, columns, joint_motion, write_csv, write_parquet
from .events import Happenings
from .limits import LimitPassed, LimitWatch, described, joint_ends
from .modes import ModalSystem, Mode, RobotManifold
from .transitions import Transition


class State(NamedTuple):
    """A state, or several with a leading axis."""

    t: Any
    q: Array
    v: Array


class Replay(TypedDict, total=False):
    """How a run is played.

    Args:
        rate: frames per second of motion, 30 by default; fewer are kept if a file would get too
            large.
        ghosts: times of poses that are shown translucent [s].
        traces: frames or bodies whose way is drawn; by default the tool's, if there is one.
        forces: loop joints, and locks as ``"lock:<joint>"``, whose reactions are drawn as arrows;
            True for all there are.
        moments: draw the moments of loop joints too.
        title: title of the page; the robot's name by default.
    """

    rate: float
    ghosts: Sequence[float]
    traces: Sequence[str] | None
    forces: Sequence[str] | bool
    moments: bool
    title: str | None


@public
@dataclass(frozen=True, eq=False)
class Trajectory:
    """A simulated motion.

    Args:
        robot: the mechanism.
        t: times of the states [s], shape (k,).
        q: configurations, shape (k, nq).
        v: velocities, shape (k, nv).
        a: accelerations, shape (k, nv).
        psi: steps in the algebra that lead from each state to the next, shape (k - 1, nv).
        mode: number in ``modes`` of the mode that each state is in, shape (k,). Where the mode
            changes or velocities jump, one time has two states, before and after.
        modes: the modes that occurred.
        message: how the run ended.
        system: equations of motion by mode; without forces and rows if the run was loaded.
        forces: what acts in each mode besides the forces of the system; empty if nothing does.
        transitions: changes of the mode, with jumps and impulses.
        events: time and name of everything that happened.
        evaluations: number of evaluations of the accelerations.
        rejected: number of rejected steps.
        accuracy: how accurately it was computed; None if that is not known.
        limits: position limits that joints pass, if that is known; see ``limits_passed``.
        inner: second derivatives inside each step, shape (k - 1, 3, nv), see `Step.bends`: NaN
            where they are computed on demand, infinite where quintics are accurate enough; None
            if quintics are enough everywhere.
        engine: what computed accelerations, see `EquationsOfMotion.engine`; empty if not known.
        happenings: what derivatives of the run need besides; None if it was loaded or unpickled.
    """

    robot: Mechanism
    t: Array
    q: Array
    v: Array
    a: Array
    psi: Array
    mode: NDArray[np.int64]
    modes: tuple[Mode, ...]
    message: str
    system: ModalSystem = field(repr=False)
    forces: tuple[tuple[Force, ...], ...] = field(default=(), repr=False)
    transitions: tuple[Transition, ...] = ()
    events: tuple[tuple[float, str], ...] = ()
    evaluations: int = 0
    rejected: int = 0
    accuracy: Accuracy | None = field(default=None, repr=False)
    limits: tuple[LimitPassed, ...] | None = field(default=None, repr=False)
    inner: Array | None = field(default=None, repr=False)
    engine: str = ""
    happenings: Happenings | None = field(default=None, repr=False)

    def __getstate__(self) -> dict[str, Any]:
        """What is pickled: guards are functions, most of which cannot be."""
        return stored_fields(self) | {"happenings": None}

    def __repr__(self) -> str:
        return (
            f"<Trajectory of '{self.robot.name}': {len(self.t)} states, "
            f"t = {self.t[0]:.6g} ... {self.t[-1]:.6g} s, {self.message}"
            f"{self.engine and f', engine {self.engine}'}>"
        )

    def __str__(self) -> str:
        switched = self.accuracy.switched if self.accuracy else ""
        notes = [f"note: {switched}"] if switched else []
        return "\n".join([repr(self), *notes, *(f"warning: {text}" for text in self.warnings)])

    def _repr_html_(self) -> str:
        html: str = forward("show.overview", "run_overview", self)._repr_html_()
        return html

    def __getitem__(self, joint: str) -> JointMotion:
        """The motion of one joint: ``run["shoulder"].position``."""
        return joint_motion(self.robot, joint, self.t, (self.q, self.v, self.a))

    @cached_property
    def limits_passed(self) -> tuple[LimitPassed, ...]:
        """Position limits that joints pass, also between the stored states."""
        if self.limits is not None:
            return self.limits
        watch = LimitWatch(joint_ends(self.robot), float(self.t[0]), self.q[0])
        for k in np.flatnonzero(np.diff(self.t) > 0.0).tolist():
            watch.look(self._step(k))
        return watch.passed

    @cached_property
    def warnings(self) -> tuple[str, ...]:
        """What a reader of the run should know, a sentence each.

        Limits that joints pass, motions too fast for fixed steps, and an energy balance error above
        what the accuracy of the run explains. Computed when first asked for; the balance of a
        run whose accuracy is not known, such as a saved one, is not judged.
        """
        start = float(self.t[0])
        passed = tuple(described(self.robot, limit, start) for limit in self.limits_passed)
        unresolved = self.accuracy.unresolved if self.accuracy else ""
        return (*passed, *filter(None, [unresolved]), *self._balance_warnings())

    def _balance_warnings(self) -> tuple[str, ...]:
        """What the energy balance is off by beyond the accuracy of the run, if anything."""
        if self.accuracy is None or len(self.t) < 2:
            return ()
        course = Course(
            self.robot, self.equations, self.t, self.q, self.v, self.a, self._at, self.accuracy
        )
        try:
            warning = balance_warning(course, self.energy())
        except PinloopError as error:
            return (f"the energy balance cannot be computed: {error}",)
        return (warning,) if warning else ()

    def __call__(self, t: ArrayLike) -> State:
        """State at one time or several, between the stored ones by interpolation in the algebra.

        With "dop853" it is of eighth order and takes four more evaluations of the accelerations
        per step; with other methods it is of fifth order. States that `save_every` has kept are as
        accurate as steps; between them it has these orders in their distance.

        Raises:
            BadValue: a time outside the run.
        """
        try:
            times = np.atleast_1d(np.asarray(t, dtype=float))
        except (TypeError, ValueError):
            raise BadValue(f"time {t!r} is not made of numbers") from None
        slack = LAST_BITS * max(abs(self.t[0]), abs(self.t[-1]))  # sums of times are rounded
        outside = ~((times >= self.t[0] - slack) & (times <= self.t[-1] + slack))
        if times.ndim != 1 or times.size == 0 or outside.any():
            what = f"time {times[outside][0]:.9g} s" if outside.any() else "no time"
            raise BadValue(
                f"{what} is outside the run, which goes from {self.t[0]:.6g} to {self.t[-1]:.6g} s"
            )
        times = np.clip(times, self.t[0], self.t[-1])
        states = [self._at(time) for time in times]
        if np.ndim(t) == 0:
            return State(float(times[0]), *states[0])
        return State(times, np.array([q for q, _ in states]), np.array([v for _, v in states]))

    def _at(self, time: float) -> tuple[Array, Array]:
        k = int(np.searchsorted(self.t, time, side="right")) - 1
        if self.t[k] == time or k == len(self.t) - 1:
            return self.q[k].copy(), self.v[k].copy()
        step = self._step(k)
        q, v = step(time)
        return self._manifolds[self.mode[k]].normalize(q), v

    @cached_property
    def _step(self) -> Callable[[int], Step]:
        """The step from a stored state to the next; that which was asked for last is kept."""
        return lru_cache(1)(lambda k: self.step(k, self._manifolds[self.mode[k]]))

    @cached_property
    def _manifolds(self) -> tuple[RobotManifold, ...]:
        """The configuration group in each mode: what is locked as a whole stays to the last bit."""
        return tuple(map(RobotManifold(self.robot).in_mode, self.modes))

    def step(self, k: int, manifold: RobotManifold) -> Step:
        """The step from stored state ``k`` to the next; one manifold for many saves time."""
        follows, inner = None, None if self.inner is None else self.inner[k]
        if inner is not None and np.isnan(inner).any():
            follows, inner = self._equations_of(int(self.mode[k])).acceleration, None
        t0, t1 = self.t[k : k + 2].tolist()
        (q0, q1), (v0, v1), (a0, a1) = ((x[k], x[k + 1]) for x in (self.q, self.v, self.a))
        return Step(manifold, t0, t1, q0, v0, a0, self.psi[k], q1, v1, a1, follows, inner)

    def inner_bends(self) -> Array | None:
        """``inner`` with all that is computed when asked for, as it is saved."""
        if self.inner is None:
            return None
        bends = np.zeros(self.inner.shape)
        for k in np.flatnonzero(np.diff(self.t) > 0.0).tolist():
            bends[k] = self._step(k).bends
        return bends

    @property
    def equations(self) -> tuple[EquationsOfMotion, ...]:
        """Equations of motion that hold at each state."""
        of_mode = [self._equations_of(number) for number in range(len(self.modes))]
        return tuple(of_mode[number] for number in self.mode)

    def _equations_of(self, mode: int) -> EquationsOfMotion:
        return self.system.equations(self.modes[mode], self.forces[mode] if self.forces else ())

    def energy(self) -> EnergyBalance:
        """Energies and work over time [J]; impulses are a line of their own."""
        state = self.t, self.q, self.v
        return energy_balance(self.equations, *state, self._at, self._jumps())

    def _jumps(self) -> dict[int, tuple[float, float]]:
        """Energy lost in jumps and work of drives in them, by the state that a jump leads to."""
        jumps: dict[int, tuple[float, float]] = {}
        changes = np.flatnonzero(np.diff(self.t) == 0.0) + 1
        for transition in self.transitions:
            # Several changes may share an instant, and only some of them have a jump; an impact
            # may leave the mode as it is.
            here = [k for k in changes if self.t[k] == transition.t and k not in jumps]
            if here:  # a run that failed may end before the jump
                jump = transition.v_plus - transition.v_minus
                near = min(
                    here, key=lambda k: float(np.linalg.norm(self.v[k] - self.v[k - 1] - jump))
                )
                jumps[int(near)] = transition.energy_loss, transition.drive_work
        return jumps

    @property
    def slips(self) -> tuple[tuple[float, str], ...]:
        """When axes with dry friction began to stick or to slide [s]."""
        found = []
        for k in np.flatnonzero(np.diff(self.mode)) + 1:
            before, after = (self.modes[number] for number in self.mode[k - 1 : k + 1])
            was = {axis.name: bool(axis.slides) for axis in before.friction}
            for axis in after.friction:
                if was.get(axis.name, bool(axis.slides)) != bool(axis.slides):
                    what = "slides" if axis.slides else "sticks"
                    found.append((float(self.t[k]), f"{axis.name} {what}"))
        return tuple(found)

    @property
    def sequence(self) -> tuple[str, ...]:
        """What happened, in order, whenever it did; runs with the same are close to each other."""
        happened = {*self.events, *self.slips}
        return tuple(name for _, name in sorted(happened))

    def sensitivity(
        self,
        of: Sequence[Any],
        to: Sequence[Any],
        *,
        order: Literal["forward", "adjoint"] | None = None,
    ) -> Any:
        """Derivatives of what came out of this run by what went in, through all its events.

        Those of the discrete motion, with the same steps: exact of fixed steps, else as accurate as
        the run. Where velocities jump, joints stick or come loose, the instant at which they do
        changes with the rest (saltation). Derivatives hold as long as the same happens in the
        same order; `Sensitivity.warnings` names events that are about not to.

        Args:
            of: `StateAt`, `PointAt`, `EnergyAt`, `EventTime` of `pinloop.simulation`.
            to: `InitialState`, `EventTime` of events at given times, and `pinloop.parameters`.
            order: "forward", a column for each input, or "adjoint", a row for each outcome, which
                gives the same; by default whatever is less.

        Returns:
            A `pinloop.simulation.Sensitivity`.
        """
        return forward("simulation.sensitivity", "run_sensitivity", self, of, to, order)

    def closure(self) -> Array:
        """Norm of the closure residual of the closed loops over time, shape (k,), m and rad."""
        residuals = np.zeros(len(self.t))
        for number, mode in enumerate(self.modes):
            here = self.mode == number
            residuals[here] = closure_residuals(self.system.mechanism(mode.opened), self.q[here])
        return residuals

    def momentum(self) -> Momenta:
        """Generalized momenta, and momenta about the centre of mass, over time."""
        return momenta(self.equations[0], self.t, self.q, self.v)

    @overload
    def reactions(self, name: str, frame: str) -> Reaction: ...
    @overload
    def reactions(self, name: str, frame: None = None) -> Reaction | LockReaction: ...
    def reactions(self, name: str, frame: str | None = None) -> Reaction | LockReaction:
        """Wrench in a loop joint over time, or torque of a lock.

        Args:
            name: name of the loop joint: what its body B feels from its body A. Or
                ``"lock:<joint>"``: what the lock exerts on the joint; ``"friction:<joint>"``: what
                dry friction does while it holds it.
            frame: frame in which the wrench is given; frame B of the loop joint by default.
        """
        state = self.t, self.q, self.v
        if name.startswith(("lock:", "friction:")):
            return lock_reactions(self.equations, name, *state)
        return reactions(self.equations, self.robot, name, frame, *state)

    def placement(self, name: str) -> tuple[pin.SE3, ...]:
        """Placement in the world of a body or frame at every stored time."""
        frame = self.robot.frame_id(name)
        placements = []
        with self.robot.workspace() as data:
            for q in self.q:
                pin.forwardKinematics(self.robot.model, data, q)
                placements.append(pin.updateFramePlacement(self.robot.model, data, frame).copy())
        return tuple(placements)

    @property
    def plot(self) -> Any:
        """Plots of the run: call it for an overview, ``run.plot.energy()`` for one of them."""
        return forward("show.plots.runs", "RunPlots", self)

    def save(self, path: str | Path) -> Path:
        """Write the run with its robot to an ``.npz`` file; `load_trajectory` reads it back.

        Forces and rows beyond loops and couplings are code and are not saved, nor are the impulses
        of transitions.
        """
        return forward("simulation.run_file", "save_trajectory", self, path)

    def columns(self) -> dict[str, Array]:
        """Time, coordinates and velocities as named columns with units."""
        return columns(self.robot, self.t, self.q, self.v, self.mode)

    def to_dataframe(self) -> Any:
        """Times, coordinates and velocities as a `pandas.DataFrame`, see `columns`."""
        return data_frame(self.columns())

    def to_csv(self, path: str | Path) -> Path:
        """Write times, coordinates and velocities as CSV, units in the column names."""
        return write_csv(self.columns(), path)

    def to_parquet(self, path: str | Path) -> Path:
        """Write times, coordinates and velocities as Parquet (needs the extra ``parquet``)."""
        return write_parquet(self.columns(), path)

    def to_mcap(self, path: str | Path, *, rate: float = 100.0) -> Path:
        """Write the run as ROS 2 messages for PlotJuggler, Foxglove and ``ros2 bag``.

        Topics are ``/joint_states`` (joints with one coordinate), ``/tf`` (all bodies in the
        world), ``/mode`` (what is locked), ``/robot_description`` (URDF). Needs the extra ``mcap``.

        Args:
            path: file to write, usually ``.mcap``.
            rate: instants per second of the run [1/s]; changes of mode come on top.
        """
        return forward("show.mcap", "write_mcap", self, path, rate)

    def to_gltf(self, path: str | Path, *, rate: float = 30.0) -> Path:
        """Write the run as an animation of binary glTF 2.0, for Blender, slides and web pages.

        Args:
            path: file to write, usually ``.glb``.
            rate: key frames per second of the run [1/s]; changes of mode come on top.
        """
        return forward("show.gltf", "write_gltf", self, path, rate)

    def to_rerun(self, path: str | Path, *, rate: float = 100.0) -> Path:
        """Write the run as a recording of rerun: the robot in motion, joints as curves, modes.

        Needs the extra ``rerun``.

        Args:
            path: file to write, usually ``.rrd``.
            rate: instants per second of the run [1/s]; changes of mode come on top.
        """
        return forward("show.rerun", "write_rerun", self, path, rate)

    def save_html(self, path: str | Path, **options: Unpack[Replay]) -> Path:
        """Write the run as one HTML file that plays it in any browser, without a network.

        Args:
            path: file to write.
            options: what is shown; the fields of `Replay`.
        """
        return forward("show.scene.run_page", "write_run", self, path, **options)

    def view(
        self,
        *,
        viewer: Any = None,
        open_browser: bool = False,
        announce: bool = True,
        **options: Unpack[Replay],
    ) -> Any:
        """Play the run in the browser.

        Args:
            viewer: a ``meshcat.Visualizer`` to draw into, instead of opening another viewer.
            open_browser: whether a browser is opened.
            announce: whether the address is printed.
            options: what is shown; the fields of `Replay`.

        Returns:
            The viewer: ``show(t)`` goes to a time [s], ``wait`` waits for Ctrl-C, ``close`` ends
            it; a notebook shows it below the cell. With ``viewer``, the robot in it, a
            `pinloop.MeshcatRobot`.
        """
        if viewer is not None:
            return forward("show.scene.meshcat_robot", "show_run", self, viewer, **options)
        show = open_browser, announce
        return forward("show.scene.run_page", "play_run", self, *show, **options)

    def animation(self, viewer: Any = None, **options: Unpack[Replay]) -> Any:
        """The run as a ``meshcat.animation.Animation``, for ``viewer.set_animation``.

        It moves what `view` has drawn in a viewer, or `pinloop.MeshcatRobot`: bodies, symbols of
        loop joints and locks, and arrows of forces. Its frame 0 is the start of the run.

        Args:
            viewer: the ``meshcat.Visualizer``; by default one at its root.
            options: what is shown; the fields of `Replay`.
        """
        return forward("show.scene.meshcat_robot", "animate", self, viewer, **options)

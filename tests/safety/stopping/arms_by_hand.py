"""A second program for stops of category 0 of arms without loops; no test lives here.

Everything is done another way than in the package: Pinocchio gives mass matrix and forces, SciPy
integrates and finds the events, and who sticks, who slides, and which way power flows through
gears with losses is found by trying all combinations. Before the power is off, the joints go on
at constant speed. Every joint has an entry in the brakes; teeth have no play.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise, product
from typing import Any

import numpy as np
import pinocchio as pin
from numpy.typing import ArrayLike, NDArray
from scipy.integrate import solve_ivp

import pinloop as pl

from ...screw_tables import Array

_REST = 1e-9
"""Speed that is rounding [rad/s]."""


@dataclass
class Ended:
    """Where a stop ended.

    Args:
        q: configuration.
        v: velocity.
        t: time at the end, or at the limit.
        rest: when each joint came to rest last; nan if it did not.
        log: time, joint and what happened to it.
    """

    q: Array
    v: Array
    t: float
    rest: Array
    log: list[tuple[float, int, str]] = field(default_factory=list)


class StopByHand:
    """The equations of a stopping arm.

    Args:
        model: tree of joints with one coordinate each; its armature is not looked at.
        brakes: an entry for every joint.
    """

    def __init__(self, model: pin.Model, brakes: pl.Brakes) -> None:
        self.model, self.data = model, model.createData()
        self.n = model.nv
        assert model.nq == model.nv == len(brakes.joints)
        self.chain = brakes.chain
        joints = [brakes.joints[name] for name in list(model.names)[1:]]
        self.joints = joints
        self.ratio = np.array([b.gear_ratio for b in joints])
        self.eta = np.array([b.efficiency for b in joints])
        rotor = [
            b.gear_ratio**2 * b.rotor_inertia if b.rotor_inertia is not None else arm
            for b, arm in zip(joints, model.armature, strict=True)
        ]
        self.rotor = np.array(rotor)
        on = np.array([b.kind == "friction" for b in joints])
        motor = np.array([b.side == "motor" for b in joints])
        factor = np.array([b.factor for b in joints]) * on
        torque = factor * np.array([[b.dynamic_torque for b in joints], [b.static for b in joints]])
        self.motor = torque * motor * self.ratio
        self.joint = torque * ~motor
        self.coulomb = np.array([b.coulomb for b in joints])
        rough = [b.coulomb if b.breakaway is None else b.breakaway for b in joints]
        self.breakaway = np.array(rough)
        self.vs = np.array([b.stribeck_speed or 1.0 for b in joints])
        self.viscous = np.array([b.viscous for b in joints])
        self.short = np.array([b.short_circuit for b in joints]) * self.ratio**2
        self.teeth = np.array([b.kind == "tooth" for b in joints])
        self.off = self.chain.command + self.chain.drive_off
        acts = np.array([b.kind != "none" for b in joints])
        self.begin = np.where(acts, self.chain.command + np.array([b.delay for b in joints]), 0.0)
        self.rise = np.array([b.rise for b in joints]) * (acts & ~self.teeth)
        self.mass = np.eye(self.n)
        self.drift = np.zeros(self.n)
        self.flow = np.zeros(self.n, dtype=bool)
        self.caught = np.zeros(self.n, dtype=bool)

    # -- torques ------------------------------------------------------------------------------

    def part(self, t: float, segment: float) -> Array:
        """Part of each brake's torque at ``t``, in the stretch of time around ``segment``."""
        grown = np.divide(
            t - self.begin, self.rise, out=np.ones(self.n), where=self.rise > 0
        )  # fmt: skip
        return np.where(segment < self.begin, 0.0, np.clip(grown, 0.0, 1.0))

    def friction(self, v: Array) -> Array:
        return np.asarray(
            self.coulomb + (self.breakaway - self.coulomb) * np.exp(-((v / self.vs) ** 2))
        )

    def look(self, q: Array, v: Array) -> None:
        """Mass matrix without rotors, and the forces of gravity and motion."""
        model, data = self.model, self.data
        mass = np.triu(pin.crba(model, data, q, pin.Convention.WORLD))
        mass = mass + np.triu(mass, 1).T
        self.mass = mass - np.diag(model.armature)
        self.drift = pin.nonLinearEffects(model, data, q, v)

    def solved(
        self, way: NDArray[np.int64], forces: Array, before: Array, gain: Array
    ) -> tuple[Array, Array]:
        """Accelerations of what moves, and the torque that keeps the rest where it is."""
        moves = way != 0
        a = np.zeros(self.n)
        full = self.mass + np.diag(gain * self.rotor)
        right = forces + gain * before - self.drift
        if moves.any():
            a[moves] = np.linalg.solve(full[np.ix_(moves, moves)], right[moves])
        return a, self.mass @ a + self.drift

    def accelerated(
        self, way: NDArray[np.int64], joint: Array, before: Array, known: NDArray[np.bool_]
    ) -> tuple[Array, Array]:
        """The same where the power through gears may flow either way.

        Args:
            way: direction of each joint, 0 if it is stuck.
            joint: torques at the joints themselves.
            before: torques of brakes and shorted motors before the gears.
            known: joints that just start: there the power can only flow to the motor.
        """
        either = np.flatnonzero((self.eta < 1) & (way != 0) & ~known)
        flows = product([False, True], repeat=len(either))
        for flow in (self.flow[either], *flows):  # most often as it was before
            forward = np.zeros(self.n, dtype=bool)
            forward[either] = flow
            a, reaction = self.solved(way, joint, before, np.where(forward, self.eta, 1 / self.eta))
            power = (before - self.rotor * a) * way
            if np.all(np.where(forward[either], power[either] >= 0, power[either] <= 0)):
                self.flow[either] = flow
                return a, reaction
        raise AssertionError("power flows neither way")

    def moving(self, t: float, segment: float, v: Array, way: NDArray[np.int64]) -> Any:
        """Accelerations and reactions while nobody changes."""
        part = self.part(t, segment)
        joint = -way * (part * self.joint[0] + self.friction(v)) - self.viscous * v
        before = -way * part * self.motor[0] - self.short * v
        return self.accelerated(way, joint, before, np.zeros(self.n, dtype=bool))

    def bound(self, part: Array, kind: int) -> Array:
        """What a joint at rest is held with."""
        return np.asarray(part * (self.joint[kind] + self.motor[kind] / self.eta) + self.breakaway)

    # -- who sticks ---------------------------------------------------------------------------

    def decided(
        self, t: float, segment: float, v: Array, way: NDArray[np.int64], loose: set[int]
    ) -> NDArray[np.int64]:
        """Directions from now on: all joints at rest, every combination.

        Those that come loose have only their dynamic torque; then the others are tried again.
        """
        part = self.part(t, segment)
        rest = np.flatnonzero((v == 0) & ~self.caught)
        broken = set(loose)
        while True:
            kind = np.array([0 if i in broken else 1 for i in range(self.n)])
            columns = np.arange(self.n)
            # A load exactly at the bound has to win.
            less = np.array([1 - 1e-9 if i in loose else 1.0 for i in range(self.n)])
            joint_torque = less * part * self.joint[kind, columns]
            motor_torque = less * part * self.motor[kind, columns]
            dry_at_rest = joint_torque + less * self.breakaway
            held = dry_at_rest + motor_torque / self.eta
            fits = []
            for sides in product([0, -1, 1], repeat=len(rest)):
                one = way.copy()
                one[rest] = sides
                starts = np.zeros(self.n, dtype=bool)
                starts[rest] = True
                dry = np.where(starts, dry_at_rest, part * self.joint[0] + self.friction(v))
                joint = -one * dry - self.viscous * v
                before = -one * np.where(starts, motor_torque, part * self.motor[0])
                a, reaction = self.accelerated(one, joint, before - self.short * v, starts)
                stuck = rest[one[rest] == 0]
                slides = rest[one[rest] != 0]
                if np.all(np.abs(reaction[stuck]) <= held[stuck] * (1 + 1e-12) + 1e-12) and np.all(
                    a[slides] * one[slides] > 0
                ):
                    fits.append(one)
            assert fits, "no combination fits"
            chosen = fits[0]
            new = {int(i) for i in rest if chosen[i] != 0} - broken
            if not new:
                return chosen
            broken |= new

    # -- over time ----------------------------------------------------------------------------

    def go(self, q0: ArrayLike, v0: ArrayLike, until: float = 10.0, rtol: float = 1e-11) -> Ended:
        v = np.array(v0, dtype=float)
        q = np.array(q0, dtype=float) + min(self.off, until) * v
        end = Ended(q, v, self.off, np.where(v == 0, 0.0, np.nan))
        changes = {self.off, *self.begin, *(self.begin + self.rise), until}
        times = sorted(t for t in changes if self.off <= t <= until)
        way = np.sign(v).astype(np.int64)
        t = self.off
        for start, stop in pairwise(times):
            segment = (start + stop) / 2
            t = start
            self._catch(end, t)
            way = self._redecided(end, t, segment, way, set())
            while t < stop and np.any(way != 0):
                t, way = self._stretch(end, t, stop, segment, way, rtol)
            end.t = t
            if stop == times[-1] and np.all(way == 0):
                break
        return end

    def _catch(self, end: Ended, t: float) -> None:
        """Teeth whose time has come: the momenta of all other joints stay."""
        now = self.teeth & ~self.caught & (self.begin <= t)
        if not now.any():
            return
        self.caught |= now
        assert np.all(self.eta == 1) or not end.v.any(), "impacts behind gears with losses"
        self.look(end.q, end.v)
        mass, free = self.mass + np.diag(self.rotor), ~self.caught
        after = np.zeros(self.n)
        momentum = mass @ end.v
        after[free] = np.linalg.solve(mass[np.ix_(free, free)], momentum[free])
        end.v = after
        for i in np.flatnonzero(~np.isnan(end.rest) & (after != 0)):
            end.rest[i] = np.nan
            end.log.append((t, int(i), "thrown"))
        for i in np.flatnonzero(now):
            end.rest[i] = t
            end.log.append((t, int(i), "caught"))

    def _redecided(
        self, end: Ended, t: float, segment: float, way: NDArray[np.int64], loose: set[int]
    ) -> NDArray[np.int64]:
        way = np.where(np.abs(end.v) > _REST, np.sign(end.v), 0).astype(np.int64)
        end.v = np.where(way == 0, 0.0, end.v)
        self.look(end.q, end.v)
        new = self.decided(t, segment, end.v, way, loose)
        for i in np.flatnonzero((way == 0) & (new != 0)):
            end.log.append((t, int(i), "slips"))
            end.rest[i] = np.nan
        for i in np.flatnonzero((new == 0) & np.isnan(end.rest)):
            end.log.append((t, int(i), "rests"))
            end.rest[i] = t
        return new

    def _stretch(
        self, end: Ended, t: float, stop: float, segment: float, way: NDArray[np.int64], rtol: float
    ) -> tuple[float, NDArray[np.int64]]:
        """Integrate until somebody changes."""
        n, events = self.n, []

        def solved(time: float, y: Array) -> Any:
            self.look(y[:n], y[n:])
            return self.moving(time, segment, y[n:], way)

        def rate(time: float, y: Array) -> Array:
            return np.concatenate([y[n:], solved(time, y)[0]])

        def watch(function: Any) -> None:
            function.terminal, function.direction = True, -1
            events.append(function)

        stuck = np.flatnonzero((way == 0) & ~self.caught)
        moving = np.flatnonzero(way != 0)
        for i in moving:
            watch(lambda _, y, i=i: way[i] * y[n + i])
        for i in stuck:
            for sign in (1, -1):
                watch(
                    lambda time, y, i=i, sign=sign: (
                        self.bound(self.part(time, segment), 1)[i] - sign * solved(time, y)[1][i]
                    )
                )
        run = solve_ivp(
            rate, (t, stop), np.concatenate([end.q, end.v]), "DOP853", events=events,
            rtol=rtol, atol=rtol * 1e-1, max_step=5e-3,
        )  # fmt: skip
        assert run.success
        end.q, end.v = run.y[:n, -1], run.y[n:, -1].copy()
        t = float(run.t[-1])
        hit = [k for k, found in enumerate(run.t_events or []) if len(found)]
        loose = {int(stuck[(k - len(moving)) // 2]) for k in hit if k >= len(moving)}
        for k in hit:
            if k < len(moving):
                end.v[moving[k]] = 0.0
        if not hit:
            return t, way
        return t, self._redecided(end, t, segment, way, loose)

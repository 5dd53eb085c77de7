"""Steps on a Lie group times a vector space: Munthe-Kaas (paper 2, eqs. 35-36).

State ``(q, v)`` with ``q`` on a group whose velocities are left trivialised. A stage lives in the
algebra, ``q_j = q (+) Psi_j``, and moves there with ``dexpinv(-Psi_j) v_j``; velocities are a
vector space. All a step needs of the group is a `Manifold`; a robot is not known here.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Literal, Protocol

import numpy as np

from ..boundary.arguments import public
from ..boundary.marks import Array, As, Duration, NotNegative, Positive
from ..errors import BadValue, PinloopError
from ..tolerances import INTEGRATION, LEAST_ERROR, LEAST_STEP, SLOPE_STEP
from .polynomials import INNER, bend_powers, hermite, refined, slope_powers, value_powers
from .tableaux import METHODS, Tableau, get_tableau

RightHandSide = Callable[[float, Array, Array], Array]


class Manifold(Protocol):
    """What a step needs to know of the configuration group.

    Attributes:
        flat: whether it is a vector space, where ``dexpinv`` is the identity.
    """

    flat: bool

    def integrate(self, q: Array, step: Array) -> Array:
        """Return ``q (+) step``."""
        ...

    def dexp(self, q: Array, psi: Array, rate: Array) -> Array:
        """Velocity of ``q (+) psi`` when ``psi`` changes at a rate: ``dexp(-psi) rate``."""
        ...

    def dexp_inv(self, q: Array, psi: Array, v: Array) -> Array:
        """Rate of ``psi`` when ``q (+) psi`` moves with velocity ``v``: ``dexpinv(-psi) v``."""
        ...


class ConfigurationGroup(Manifold, Protocol):
    """A manifold on which steps are corrected and sampled."""

    def difference(self, q0: Array, q1: Array) -> Array:
        """The step that leads from one configuration to another."""
        ...

    def normalize(self, q: Array) -> Array:
        """The configuration that ``q`` is but for rounding."""
        ...


class NoBranch(PinloopError):  # noqa: N818 - says what happened
    """The branch of a motion cannot be told from the others that meet there."""


@dataclass(frozen=True, eq=False)
class Step:
    """A step taken, with all that dense output needs.

    Inside, the algebra coordinates are a quintic that has both derivatives at both ends: velocities
    are of fifth order. For a method of higher order the accelerations at three more parts of the
    step make of it a polynomial of the eighth degree, whose velocities are of eighth order. They
    are taken along the polynomial of one degree less, so that nothing but the ends is needed, where
    a projection has put them; and only when something inside is asked for.

    Args:
        manifold: the group.
        t0: start [s].
        t1: end [s].
        q0: configuration at the start, shape (nq,).
        v0: velocity at the start, shape (nv,).
        a0: acceleration at the start, shape (nv,).
        psi: step in the algebra, shape (nv,): ``q1 = q0 (+) psi``.
        q1: configuration at the end.
        v1: velocity at the end.
        a1: acceleration at the end.
        follows: right-hand side, where a quintic is less accurate than the method.
        inner: what `bends` is, if it is known already: infinite of a quintic among steps of higher
            degree.
    """

    manifold: Manifold
    t0: float
    t1: float
    q0: Array
    v0: Array
    a0: Array
    psi: Array
    q1: Array
    v1: Array
    a1: Array
    follows: RightHandSide | None = None
    inner: Array | None = None

    def __call__(self, t: float) -> tuple[Array, Array]:
        """State inside the step, by interpolation in the algebra."""
        return self._at((t - self.t0) / (self.t1 - self.t0), self.polynomial)

    def inside(self, parts: Array) -> tuple[Array, Array]:
        """States at parts of the step, from 0 to 1: shapes (k, nq) and (k, nv)."""
        p = self.polynomial
        if self.manifold.flat and len(self.q0) == len(self.v0):
            psi, slope = value_powers(parts, len(p)) @ p, slope_powers(parts, len(p)) @ p
            return self.q0 + psi, slope / (self.t1 - self.t0)
        states = [self._at(part, p) for part in parts.tolist()]
        return np.array([q for q, _ in states]), np.array([v for _, v in states])

    def along(self, t: float) -> Array:
        """Algebra coordinates inside the step, shape (nv,): ``q(t) = q0 (+) psi(t)``."""
        p = self.polynomial
        return np.asarray(value_powers((t - self.t0) / (self.t1 - self.t0), len(p)) @ p)

    @cached_property
    def polynomial(self) -> Array:
        """Coefficients of the algebra coordinates in powers of the part of the step, (5|8, nv)."""
        if (bends := self.bends) is None:
            return self.quintic
        return refined(self.quintic, INNER, (self.t1 - self.t0) ** 2 * bends)

    @cached_property
    def quintic(self) -> Array:
        """The same as far as the ends tell, shape (5, nv)."""
        h = self.t1 - self.t0
        if self.manifold.flat:
            return hermite(self.psi, h * self.v0, h * self.v1, h * h * self.a0, h * h * self.a1)
        return hermite(
            self.psi,
            h * self.v0,
            h * self._rate(self.psi, self.v1),
            h * h * self._bend(np.zeros_like(self.psi), self.v0, self.a0),
            h * h * self._bend(self.psi, self.v1, self.a1),
        )

    @cached_property
    def bends(self) -> Array | None:
        """Second derivatives of the algebra coordinates at the parts `INNER`, shape (3, nv).

        None where a quintic is as accurate as the method, or nothing is known inside.
        """
        h, inner = self.t1 - self.t0, self.inner
        if inner is not None and np.isinf(inner).any():
            return bend_powers(INNER) @ self.quintic / h**2
        if inner is not None or self.follows is None:
            return inner
        try:
            return self._followed_bends(h, self.quintic)
        except NoBranch:
            return None

    def _followed_bends(self, h: float, quintic: Array) -> Array:
        """`bends` by the right-hand side."""
        before, middle, behind = INNER.tolist()
        bend = self._bend_at(middle, quintic)
        p = refined(quintic, INNER[1:2], h * h * bend[None])
        bends = np.array([self._bend_at(before, p), bend, self._bend_at(behind, p)])
        # The middle one has been taken where the error is larger than at the others.
        bends[1] = self._bend_at(middle, refined(quintic, INNER, h * h * bends))
        return bends

    def _at(self, part: float, p: Array) -> tuple[Array, Array]:
        """State at a part of the step, of one polynomial or another."""
        psi = value_powers(part, len(p)) @ p
        rate = slope_powers(part, len(p)) @ p / (self.t1 - self.t0)
        q = self.manifold.integrate(self.q0, psi)
        return q, rate if self.manifold.flat else self.manifold.dexp(self.q0, psi, rate)

    def _bend_at(self, part: float, p: Array) -> Array:
        """Second derivative that the motion has where a polynomial is at a part of the step."""
        assert self.follows is not None
        q, v = self._at(part, p)
        a = self.follows(self.t0 + part * (self.t1 - self.t0), q, v)
        return a if self.manifold.flat else self._bend(value_powers(part, len(p)) @ p, v, a)

    def _rate(self, psi: Array, v: Array) -> Array:
        return self.manifold.dexp_inv(self.q0, psi, v)

    def _bend(self, psi: Array, v: Array, a: Array) -> Array:
        """Second derivative of the algebra coordinates: ``d/dt (dexpinv(-psi) v)``."""
        rate = self._rate(psi, v)
        size = float(np.abs(rate).max(initial=0.0))
        if size == 0.0:
            return self._rate(psi, a)
        turned = slope_along(lambda s: self._rate(psi + s * rate, v), SLOPE_STEP / size)
        return self._rate(psi, a) + turned


def slope_along(function: Callable[[float], Array], step: float) -> Array:
    """Derivative at 0 of a function of one number, by central differences of fourth order."""
    farthest, before, behind, far = (function(k * step) for k in (-2, -1, 1, 2))
    return np.asarray((8 * (behind - before) - (far - farthest)) / (12 * step))


@dataclass(frozen=True, eq=False)
class Attempt:
    """What trying a step gives.

    Args:
        psi: step in the algebra, shape (nv,).
        q: configuration at the end.
        v: velocity at the end.
        a: acceleration at the end if the error estimate needed it, else None.
        errors: per error estimate of the tableau the errors of ``psi`` and of ``v``, (k, 2, nv).
        start: of an implicit step the slope at its start of what the stages lie on; ``a`` is that
            at its end. Accelerations are the rounding of the ends times the rates of what dies away
            inside, which a polynomial with these slopes would go on with.
        inner: second derivatives of the algebra coordinates at parts of the step, see `Step`.
    """

    psi: Array
    q: Array
    v: Array
    a: Array | None
    errors: Array
    start: Array | None = None
    inner: Array | None = None


def _or_infinite(duration: float | None) -> float:
    return math.inf if duration is None else duration


@public
@dataclass(frozen=True)
class MuntheKaas:
    """A Runge-Kutta-Munthe-Kaas method.

    Args:
        name: "euler", "heun", "rk4", "bs32", "dopri5", "dop853", or for stiff motions "radau5",
            "radau9"; in Python also a `Tableau`.
        step: fixed step [s]; without it, steps are controlled by the error (not of euler, heun,
            rk4).
        rtol: tolerated error relative to the size of the state.
        atol: tolerated absolute error: rad and rad/s, lengths in characteristic lengths.
        smallest: smallest step [s]; below it a run fails.
        largest: largest step [s].
        when_stiff: what to do where springs, dampers or friction are so stiff that explicit steps
            would crawl or diverge: "switch" to "radau9", or only "warn".
    """

    name: Annotated[
        str | Tableau,
        As(Literal["euler", "heun", "rk4", "bs32", "dopri5", "dop853", "radau5", "radau9"]),
    ] = "dop853"
    step: Duration | None = None
    rtol: NotNegative = INTEGRATION
    atol: Positive = INTEGRATION
    smallest: Duration = LEAST_STEP
    largest: Annotated[float, As(Duration | None, _or_infinite)] = np.inf
    when_stiff: Literal["switch", "warn"] = "switch"

    def __post_init__(self) -> None:
        if not isinstance(self.name, Tableau) and self.name not in METHODS:
            raise BadValue(f"no method '{self.name}'; known: {', '.join(METHODS)}")
        if self.step is not None and not 0 < self.step < np.inf:
            raise BadValue(f"step is {self.step} s; it must be positive")
        if self.step is None and not self.tableau.errors:
            raise BadValue(f"method '{self.tableau.name}' has no error estimate; give it a step")
        if not 0 < self.smallest <= self.largest:
            raise BadValue(
                f"smallest is {self.smallest} s and largest is {self.largest} s; they must be "
                "positive and in order"
            )
        if not (self.rtol >= 0 and self.atol > 0):
            raise BadValue(f"rtol is {self.rtol} and atol is {self.atol}; they must be positive")
        if self.when_stiff not in ("switch", "warn"):
            raise BadValue(f"when_stiff is {self.when_stiff!r}; it must be 'switch' or 'warn'")

    @property
    def tableau(self) -> Tableau:
        """The coefficients."""
        return self.name if isinstance(self.name, Tableau) else get_tableau(self.name)

    def attempt(
        self,
        manifold: Manifold,
        f: RightHandSide,
        t: float,
        h: float,
        state: tuple[Array, Array, Array],
    ) -> Attempt:
        """Try one step from configuration, velocity and acceleration at its start."""
        (q, v, a), tableau, n, end = state, self.tableau, len(state[1]), self.tableau.stages
        # Rates of the algebra coordinates beside accelerations: one product for both.
        slopes, weights = np.zeros((end + 1, 2 * n)), h * tableau.a
        slopes[0, :n], slopes[0, n:] = v, a
        for j in range(1, end):
            step = weights[j, :j].dot(slopes[:j])
            psi, v_j = step[:n], v + step[n:]
            q_j = manifold.integrate(q, psi)
            slopes[j, :n] = v_j if manifold.flat else manifold.dexp_inv(q, psi, v_j)
            slopes[j, n:] = f(float(t + h * tableau.c[j]), q_j, v_j)
        step = h * tableau.b.dot(slopes[:end])
        psi, v1 = step[:n], v + step[n:]
        q1 = manifold.integrate(q, psi)
        if self.step is not None:
            return Attempt(psi, q1, v1, None, np.zeros((0, 2, n)))
        a1 = None
        if tableau.looks_ahead:
            slopes[end, :n] = v1 if manifold.flat else manifold.dexp_inv(q, psi, v1)
            slopes[end, n:] = a1 = f(t + h, q1, v1)
        errors = h * tableau.error_weights.dot(slopes)
        return Attempt(psi, q1, v1, a1, errors.reshape(len(errors), 2, n))


class StepControl:
    """PI control of the step by the error in the algebra and in the velocity.

    Args:
        method: method and tolerances.
        scale: size of one unit of each velocity coordinate, shape (nv,): the characteristic length
            for linear ones.

    Attributes:
        finest: least error that any velocity may have.
    """

    FIRST_ERROR = 1e-4

    def __init__(self, method: MuntheKaas, scale: Array) -> None:
        self._method, self._scale = method, scale
        self._floor = method.atol * scale
        self.finest = float(self._floor.min(initial=np.inf))
        self._step_tolerance = self._floor + method.rtol * scale
        self._alpha, self._beta = self.exponents(method.tableau)

    @staticmethod
    def exponents(tableau: Tableau) -> tuple[float, float]:
        """Those of the error of a step and of the step before."""
        order = tableau.error_order + 1
        return 0.7 / order, 0.4 / order

    def first_step(self, v: Array, a: Array, span: float) -> float:
        """A cautious first step: the state changes by the root of the tolerance."""
        speed, bend = (float((np.abs(x) / self._scale).max(initial=0.0)) for x in (v, a))
        order = self._method.tableau.error_order + 1
        part = (self._method.rtol + self._method.atol) ** (1 / order)
        guess = part / max(speed, math.sqrt(bend), 1e-3 / span)
        return float(min(guess, 0.1 * span, self._method.largest))

    def error(self, errors: Array, v0: Array, v1: Array) -> float:
        """Errors of ``psi`` and ``v`` over tolerance, of a good step at most 1; (k, 2, nv)."""
        norms = self._norms(errors, v0, v1)
        if len(norms) < 2:
            return max(norms, default=0.0)
        fifth, third = norms  # dop853: Hairer, Norsett, Wanner II.10
        if fifth == 0.0 and third == 0.0:
            return 0.0
        return fifth**2 / math.sqrt(fifth**2 + 0.01 * third**2)

    def norm(self, changes: Array, v0: Array, v1: Array) -> float:
        """Size of changes of the stages over the tolerance, arguments as of `error`."""
        return math.sqrt(sum(size**2 for size in self._norms(changes, v0, v1)) / len(changes))

    def _norms(self, errors: Array, v0: Array, v1: Array) -> list[float]:
        """Root mean squares over the tolerance, the larger of those of ``psi`` and ``v``."""
        n = len(v0)
        if n == 0:
            return []
        tolerance = np.empty((2, n))
        tolerance[0] = self._step_tolerance
        tolerance[1] = self.tolerance(v0, v1)
        parts = errors / tolerance
        squares = np.einsum("kij,kij->ki", parts, parts)
        return [math.sqrt(max(both) / n) for both in squares.tolist()]

    def tolerance(self, v0: Array, v1: Array) -> Array:
        """Error of the velocity that a step may have per coordinate, shape (nv,)."""
        return np.asarray(self._method.rtol * np.maximum(np.abs(v0), np.abs(v1)) + self._floor)

    def shrink(self, error: float) -> float:
        """By how much to change a step that was rejected; its error may be NaN."""
        if not np.isfinite(error):
            return 0.2
        return float(max(0.2, 0.9 * error ** (-self._alpha - self._beta)))

    def grow(self, error: float, before: float) -> tuple[float, float]:
        """By how much to change a step that was accepted, and its error for the next one.

        ``before`` is the error of the step before; `FIRST_ERROR` if there is none.
        """
        factor = 0.9 * max(error, LEAST_ERROR) ** -self._alpha * before**self._beta
        return float(min(5.0, max(0.2, factor))), max(error, self.FIRST_ERROR)

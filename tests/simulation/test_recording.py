"""Tests of what is kept of a run: tables that grow, samples between steps, memory over time."""

from __future__ import annotations

import gc
import pickle
import tracemalloc
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pinocchio as pin
import pytest

import pinloop as pl
from pinloop.integrate import EveryStep, Recorded, Recording, Samples, States
from pinloop.simulation.modes import RobotManifold
from pinloop.simulation.run_file import sampled

from .. import screw_tables as tables
from ..linkages import windows
from ..screw_tables import Array
from ..states import close, moving, regularized, robot

ARM = robot("planar-3R")


# -- tables -----------------------------------------------------------------------------------


@pytest.mark.parametrize("fine", [False, True])
@pytest.mark.parametrize("count", [1, 2, 16, 17, 1000])
def test_every_step_is_kept_to_the_last_bit_in_plain_arrays(count: int, fine: bool) -> None:
    machine = regularized("delta")
    rng = np.random.default_rng(count)
    t, mode = rng.random(count), rng.integers(0, 9, count)
    q = rng.random((count, machine.nq))
    v, a, psi = (rng.random((count, machine.nv)) for _ in range(3))
    no_step = [0, *range(3, count, 5)]
    inner = np.full((count, 3, machine.nv), np.inf)
    inner[1::2] = rng.random(inner[1::2].shape)
    kept = EveryStep(machine.nq, machine.nv)
    assert kept.last is None
    for k in range(count):
        step = None if k in no_step else psi[k]
        more = inner[k] if fine and k % 2 else None
        kept.add(Recorded(t[k], q[k], v[k], a[k], int(mode[k]), step, None, more))
        assert kept.last == t[k]
    psi[no_step] = 0.0
    found = kept.states()
    assert (found.inner is not None) == (fine and count > 1)
    given = States(t, q, v, a, psi[1:], mode, inner[1:])
    for one, wanted in zip(found, given, strict=True):
        if one is None or wanted is None:
            continue
        assert one.dtype == wanted.dtype and one.shape == wanted.shape
        assert one.tobytes() == wanted.tobytes()
        # No view of something larger, and nothing that surprises whoever works with it.
        assert one.base is None and one.flags.c_contiguous and one.flags.writeable
        assert pickle.loads(pickle.dumps(one)).tobytes() == wanted.tobytes()


def test_what_is_given_may_change_later() -> None:
    kept = EveryStep(ARM.nq, ARM.nv)
    q, v, a, psi = np.arange(12.0).reshape(4, 3)
    kept.add(Recorded(0.0, q, v, a, 0))
    kept.add(Recorded(1.0, q, v, a, 0, psi))
    for one in (q, v, a, psi):
        one[:] = np.nan
    assert all(np.isfinite(one).all() for one in kept.states() if one is not None)


def test_half_of_a_state_is_none() -> None:
    kept = EveryStep(ARM.nq, ARM.nv)
    good, wrong = np.ones(3), np.ones(5)
    kept.add(Recorded(0.0, good, good, good, 0))
    with pytest.raises(ValueError):
        kept.add(Recorded(1.0, good, good, wrong, 0, good))
    assert kept.last == 0.0
    found = kept.states()
    assert [len(one) for one in found if one is not None] == [1, 1, 1, 1, 0, 1]


# -- samples ----------------------------------------------------------------------------------


def cubic(t: float) -> tuple[Array, Array, Array]:
    """A motion that is known."""
    return np.array([t**3, t, 1.0]), np.array([3 * t**2, 1.0, 0.0]), np.array([6 * t, 0.0, 0.0])


def recorded(times: list[float], changes: list[int], every: float) -> States:
    """Samples of the known motion in steps from time to time, some followed by a change."""
    kept: Recording = Samples(ARM.nq, ARM.nv, RobotManifold(ARM), (times[0], np.inf), every)
    mode = 0
    kept.add(Recorded(times[0], *cubic(times[0]), mode))
    for k, time in enumerate(times[1:], 1):

        def inside(t: float, begin: float = times[k - 1], end: float = time) -> Any:
            assert begin < t < end  # the ends are states of the run themselves
            return cubic(t)

        kept.add(Recorded(time, *cubic(time), mode, np.full(3, np.nan), inside))
        for _ in range(changes.count(k)):
            mode += 1
            kept.add(Recorded(time, *cubic(time), mode))
        assert kept.last == time
    return kept.states()


@pytest.mark.parametrize("seed", range(12))
def test_samples_wherever_steps_end(seed: int) -> None:
    rng = np.random.default_rng(seed)
    start, every = float(rng.normal()), float(rng.choice([0.04, 0.3, 7.0]))
    times = [start, *(start + np.cumsum(rng.exponential(0.1, 40))).tolist()]
    changes = sorted(rng.integers(1, 41, 6).tolist())  # some at one instant
    found = recorded(times, changes, every)
    grid = start + every * np.arange(1, int((times[-1] - start) / every) + 1)
    at = [times[k] for k in changes]
    # Each change adds the state after it to the one before it.
    wanted = sorted([*{start, *grid, *at, times[-1]}, *at])
    close(found.t, np.array(wanted), 1e-13 * max(1.0, times[-1]))
    for t, q, v, a in zip(found.t, found.q, found.v, found.a, strict=True):
        assert all((x == y).all() for x, y in zip((q, v, a), cubic(t), strict=True))
    assert found.psi.tobytes() == np.diff(found.q, axis=0).tobytes()
    assert found.mode.tolist() == sorted(found.mode.tolist())
    inner = [sum(t > time for time in at) for t in found.t if t not in at]
    assert [m for m, t in zip(found.mode, found.t, strict=True) if t not in at] == inner


def test_no_sample_beside_a_change_or_an_end() -> None:
    near = 0.5e-10  # less than 1e-9 of the interval
    times = [0.0, 0.1, 0.1 + near, 0.2 - near, 0.25, 0.3, 0.4, 0.4 + near]
    found = recorded(times, [2, 3], 0.1)
    changes = [0.1 + near] * 2 + [0.2 - near] * 2
    assert found.t.tolist() == [0.0, *changes, 3 * 0.1, 0.4 + near]
    far = 2e-10
    found = recorded([0.0, 0.1, 0.1 + far, 0.2 - far, 0.25, 0.2 + 0.05 + far], [2, 3], 0.1)
    changes = [0.1, *[0.1 + far] * 2, *[0.2 - far] * 2, 0.2]
    assert found.t.tolist() == [0.0, *changes, 0.25 + far]


def errors(fine: pl.Trajectory, run: pl.Trajectory, times: Array) -> tuple[float, float]:
    """Largest errors of configurations and velocities at some times."""
    gaps = [
        (fine.robot.difference(fine(t).q, run(t).q), fine(t).v - run(t).v) for t in times.tolist()
    ]
    q, v = (np.abs(part).max() for part in zip(*gaps, strict=True))
    return float(q), float(v)


@pytest.mark.parametrize("name", ["four-bar", "rssr"])
def test_samples_are_as_accurate_as_steps_and_of_the_order_of_the_method_between(
    name: str, tmp_path: Path
) -> None:
    """Samples farther apart than steps are refined, too: half as far apart, at most a thirtieth."""
    start = robot(name), *moving(robot(name), 1)
    fine = pl.simulate(*start, until=1.0, method=pl.MuntheKaas(rtol=1e-12, atol=1e-12))
    between = np.random.default_rng(0).uniform(0.0, 1.0, 200)
    found = []
    for every in (0.05, 0.025, 0.0125):
        run = pl.simulate(*start, until=1.0, save_every=every)
        q, v = errors(fine, run, run.t)
        assert q < 1e-9 and v < 2e-8
        found.append(errors(fine, run, between)[1])
        quintic = errors(fine, replace(run, inner=None), between)[1]
        assert found[-1] < max(0.1 * quintic, 1e-8)
        again = pl.load_trajectory(run.save(tmp_path / "run.npz"))
        assert errors(run, again, between) < (1e-12, 1e-9)
    for far, near in pairwise(found):
        assert near < max(far / 30.0, 2e-8)


def test_samples_on_a_branch_are_not_computed_from_rows_that_lose_rank() -> None:
    """The window swings through its flat pose at the sample at 0.72 s, half of the times."""
    window = tables.build(windows(1))
    v = np.array([-1.0 if joint.startswith("low") else 1.0 for joint in window.joints])
    run = pl.simulate(window, window.neutral, v, until=1.5, save_every=0.08)
    fine = pl.simulate(window, window.neutral, v, until=1.5)
    assert run.inner is not None and np.isinf(run.inner).any() and np.isnan(run.inner).any()
    q, speed = errors(fine, run, np.linspace(0.0, 1.5, 301))
    assert q < 1e-5 and speed < 1e-3


@pytest.mark.parametrize(("method", "inside"), [("dopri5", 0), ("dop853", 4)])
@pytest.mark.parametrize("name", ["delta", "planar-3R"])
def test_sampling_later_is_sampling_at_once(name: str, method: str, inside: int) -> None:
    """``inside``: evaluations that dense output takes in a step with a sample."""
    machine = regularized(name)
    q, v = moving(machine, 3)
    joint = machine.actuated[0] if machine.actuated else machine.joints[0]
    events = [pl.lock(joint, at=0.031), pl.unlock(joint, at=0.05)]

    def run(every: float | None) -> pl.Trajectory:
        return pl.simulate(machine, q, v, until=0.07, events=events, save_every=every,
                           method=pl.MuntheKaas(method))  # fmt: skip

    whole, at_once = run(None), run(0.004)
    later = sampled(whole, 0.004)
    changes = int(np.sum(np.diff(whole.t) == 0.0))
    assert len(at_once.t) == 2 + 17 + 2 * changes
    fresh = at_once.t[~np.isin(at_once.t, whole.t)]
    steps = len(set(np.searchsorted(whole.t, fresh).tolist()))
    more = at_once.evaluations - whole.evaluations  # some steps are looked into anyway
    assert more % 4 == 0 and min(inside, 1) <= more <= inside * steps
    for kind in ("t", "q", "v", "a", "psi", "mode"):
        close(getattr(at_once, kind), getattr(later, kind), 1e-12)
    for k, step in enumerate(at_once.psi):
        end = pin.integrate(machine.model, at_once.q[k], step)
        close(end, at_once.q[k + 1], 1e-12)
    for k, equations in enumerate(at_once.equations):
        wanted = equations.acceleration(at_once.t[k], at_once.q[k], at_once.v[k])
        close(at_once.a[k], wanted, 1e-12 * max(1.0, float(np.abs(wanted).max())))


# -- runs that end early ----------------------------------------------------------------------


def tau_with(happens: Callable[[], Any], wrong: Callable[[float], bool]) -> Any:
    return lambda t, q, v: np.full(3, happens() if wrong(t) else 0.0)


def interrupt() -> float:
    raise KeyboardInterrupt


@pytest.mark.parametrize(
    ("wrong", "times"),
    [
        # In a stage of the third step; then beside all stages, where a sample is taken: the step
        # has been made.
        (lambda t: t > 0.22, [0.0, 0.03, 0.06, 0.09, 0.12, 0.15, 0.18, 0.2]),
        (lambda t: abs(t - 0.12) < 1e-9, [0.0, 0.03, 0.06, 0.09, 0.2]),
    ],
)
@pytest.mark.parametrize("happens", [lambda: np.nan, interrupt])
def test_samples_and_the_last_state_are_left(
    happens: Callable[[], Any], wrong: Callable[[float], bool], times: list[float]
) -> None:
    settings: dict[str, Any] = {
        "until": 0.6, "losses": False, "method": pl.MuntheKaas("rk4", step=0.1)
    }  # fmt: skip
    start = ARM, ARM.neutral, [1.0, 2.0, 0.3]
    tau = tau_with(happens, wrong)
    if happens is interrupt:
        with pytest.warns(pl.PinloopWarning, match=r"interrupted at t = 0\.2 s"):
            run = pl.simulate(*start, tau=tau, save_every=0.03, **settings)
    else:
        with pytest.raises(pl.SimulationFailed, match=r"at t = 0\.2 s: .*not finite") as caught:
            pl.simulate(*start, tau=tau, save_every=0.03, **settings)
        assert caught.value.trajectory is not None
        run = caught.value.trajectory
    close(run.t, np.array(times), 1e-15)
    wanted = pl.simulate(*start, **settings)
    close(run.q, wanted(run.t).q, 1e-13)
    close(run.v, wanted(run.t).v, 1e-12)


# -- memory -----------------------------------------------------------------------------------


@pytest.mark.parametrize("every", [None, 0.01])
def test_memory_grows_by_what_is_saved_alone(every: float | None) -> None:
    method = pl.MuntheKaas("euler", step=1e-3)

    def peak_and_saved(until: float) -> tuple[float, float]:
        gc.collect()
        before = tracemalloc.get_traced_memory()[0]
        tracemalloc.reset_peak()
        run = pl.simulate(
            ARM, ARM.neutral, until=until, losses=False, method=method, save_every=every
        )
        peak = tracemalloc.get_traced_memory()[1] - before
        return peak, sum(x.nbytes for x in (run.t, run.q, run.v, run.a, run.psi, run.mode))

    tracemalloc.start()
    try:
        peak_and_saved(0.1)
        (short, little), (long, much) = peak_and_saved(3.0), peak_and_saved(12.0)
    finally:
        tracemalloc.stop()
    assert much > 3.9 * little
    assert long - short < 1.25 * (much - little)

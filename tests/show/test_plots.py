"""Plots of runs: the numbers in the lines, units on the axes, labels, and figures nobody holds.

Numbers are computed anew from states, by Pinocchio or by hand; none is read off another plot.
"""

from __future__ import annotations

import re
import sys
from dataclasses import replace
from functools import cache
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pinocchio as pin
import pytest

import pinloop as pl
from pinloop.show.plots import Chart, Instant, Line, draw_charts, merge_instants
from pinloop.show.plots.figure import draw_map
from pinloop.show.plots.runs import Fine, thin_states
from pinloop.units import split_column

from .. import screw_tables as tables
from ..safety.stopping.robots_to_stop import pendulum
from ..screw_tables import Array
from ..states import one_body, robot

pytest.importorskip("matplotlib")

LOCK = 0.1
"""When the crank of the four-bar is locked [s]."""


@cache
def locked_run() -> pl.Trajectory:
    """A four-bar whose crank is locked while it moves."""
    machine = robot("four-bar")
    q = pl.assemble(machine)
    v = pl.consistent_velocity(machine, q, {machine.joints[0]: 2.0})
    return pl.simulate(machine, q, v, until=0.25, events=[pl.lock(machine.joints[0], at=LOCK)])


@cache
def overview() -> Any:
    return locked_run().plot()


def axes_of(figure: Any, label: str) -> Any:
    (found,) = (axes for axes in figure.axes if axes.get_ylabel().replace("\n", " ") == label)
    return found


def data(axes: Any, name: str) -> Array:
    """Times and values of a line, shape (k, 2)."""
    (line,) = (line for line in axes.get_lines() if line.get_label() == name)
    return np.column_stack([line.get_xdata(), line.get_ydata()])


def names(axes: Any) -> list[str]:
    """What the legend says, or the one line."""
    legend = axes.get_legend()
    found = legend.get_texts() if legend else []
    return [text.get_text() for text in found]


def marks(axes: Any) -> list[float]:
    """Where vertical lines stand."""
    ends = [(line.get_xdata(), line.get_ydata()) for line in axes.get_lines()]
    return [float(x[0]) for x, y in ends if list(y) == [0, 1] and x[0] == x[1]]


def pixels(figure: Any) -> Array:
    from PIL import Image

    stream = BytesIO()
    figure.savefig(stream, format="png", dpi=60)
    return np.asarray(Image.open(stream).convert("L"))


# -- the numbers ----------------------------------------------------------------------------


def test_energies_are_those_of_the_states() -> None:
    run, axes = locked_run(), axes_of(overview(), "energy [J]")
    model, data_ = run.robot.model, run.robot.model.createData()
    kinetic, potential, total = (
        data(axes, name) for name in ("kinetic", "potential, from start", "total")
    )
    base = pin.computePotentialEnergy(model, data_, run.q[0])
    inside = kinetic[:, 0] != LOCK  # of one time twice `run` knows one state
    states = run(kinetic[inside, 0])
    halves = [
        pin.computeKineticEnergy(model, data_, q, v) for q, v in zip(*states[1:], strict=True)
    ]
    heights = [pin.computePotentialEnergy(model, data_, q) - base for q in states.q]
    np.testing.assert_allclose(kinetic[inside, 1], halves, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(potential[inside, 1], heights, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(total[:, 1], kinetic[:, 1] + potential[:, 1], rtol=0, atol=1e-12)


def test_a_jump_has_two_points_at_one_time_and_lines_are_smooth() -> None:
    run = locked_run()
    (change,) = run.transitions
    for k, name in enumerate(run.robot.joints):
        line = data(axes_of(overview(), "velocity [rad/s]"), name)
        before, after = line[line[:, 0] == LOCK]
        assert (before[1], after[1]) == (change.v_minus[k], change.v_plus[k])
        steps = np.diff(line[:, 0])
        assert np.all(steps >= 0) and np.sum(steps == 0) == 1
        assert steps.max() <= 0.25 / 900 * 1.001
        inside = line[:, 0] != LOCK
        expected = run(line[inside, 0]).v[:, k]
        np.testing.assert_array_equal(line[inside, 1], expected)
    crank = data(axes_of(overview(), "velocity [rad/s]"), run.robot.joints[0])
    assert np.all(crank[crank[:, 0] > LOCK, 1] == 0.0)


def test_the_work_of_impulses_is_what_the_lock_lost() -> None:
    (change,) = locked_run().transitions
    line = data(axes_of(locked_run().plot.energy(), "work on the robot [J]"), "impulses")
    expected = np.where(line[:, 0] > LOCK, -change.energy_loss, 0.0)
    apart = line[:, 0] != LOCK
    np.testing.assert_allclose(line[apart, 1], expected[apart], rtol=1e-12, atol=1e-15)
    np.testing.assert_allclose(line[~apart, 1], [0.0, -change.energy_loss], rtol=1e-12)


def test_closure_on_a_logarithmic_axis_with_the_tolerance() -> None:
    run = locked_run()
    axes = axes_of(run.plot.closure(tolerance=3e-9), "closure residual [m, rad]")
    assert axes.get_yscale() == "log"
    (loop,) = (joint.name for joint in run.robot.loops)
    line = data(axes, loop)
    rows = pl.Constraints(run.robot, full=True)
    norms = [np.linalg.norm(rows.residual(q)) for q in run.q]
    np.testing.assert_allclose(line[:, 1], np.maximum(norms, 1e-17), rtol=1e-12)
    assert list(data(axes, "tolerance")[:, 1]) == [3e-9, 3e-9]
    assert "default tolerance" in names(axes_of(overview(), "closure residual [m, rad]"))


def test_momenta() -> None:
    machine = one_body(com=(0.1, 0.2, 0.3), inertia=(0.2, 0.3, 0.4), mass=2.0)
    run = pl.simulate(machine, machine.neutral, [1.0, 2.0, 3.0, 0.5, 1.0, -0.5], until=0.3)
    figure = run.plot.momentum()
    line = data(axes_of(figure, "linear momentum [N s]"), "z")
    vertical = line[0, 1] - 2.0 * 9.81 * line[:, 0]  # m v = m v0 - m g t
    np.testing.assert_allclose(line[:, 1], vertical, rtol=0, atol=1e-7)
    angular = axes_of(figure, "angular momentum about centre of mass [N m s]")
    for name in "xyz":
        kept = data(angular, name)[:, 1]  # nothing turns the body about its centre of mass
        np.testing.assert_allclose(kept, kept[0], rtol=0, atol=1e-7)
    units = [axes.get_ylabel() for axes in figure.axes]
    assert units[:2] == ["generalized momentum\n[N s]", "generalized momentum\n[N m s]"]


def test_a_lock_holds_the_weight() -> None:
    machine = pendulum(mass=2.0, length=0.5)
    (name,) = machine.joints
    run = pl.simulate(machine, machine.neutral, until=0.2, events=[pl.lock(name, at=0.0)])
    axes = axes_of(run.plot.reactions(f"lock:{name}"), "torque of the lock [N m]")
    (line,) = (line for line in axes.get_lines() if len(line.get_xdata()) > 2)
    weight = -pin.computeGeneralizedGravity(machine.model, machine.model.createData(), run.q[0])
    t, torque = np.asarray(line.get_xdata()), np.asarray(line.get_ydata())
    np.testing.assert_allclose(np.abs(torque[t > 0]), abs(weight[0]), rtol=1e-9)
    slide = one_body("prismatic", mass=3.0)
    run = pl.simulate(slide, slide.neutral, until=0.1, events=[pl.lock("joint", at=0.05)])
    line = axes_of(run.plot.reactions("lock:joint"), "force of the lock [N]").get_lines()[0]
    assert float(np.asarray(line.get_ydata())[-1]) == pytest.approx(3.0 * 9.81, rel=1e-9)


def test_reactions_that_are_not_unique_are_dotted() -> None:
    run = locked_run()
    (loop,) = (joint.name for joint in run.robot.loops)
    figure = run.plot.reactions(loop)
    force = axes_of(figure, "force [N]")
    found = run.reactions(loop)
    assert isinstance(found, pl.simulation.Reaction) and not found.determined.any()
    for k, name in enumerate("xyz"):
        line = data(force, name)
        at = np.isin(line[:, 0], run.t) & (line[:, 0] != LOCK)
        expected = found.force[run.t != LOCK, k]
        np.testing.assert_allclose(line[at, 1], expected, rtol=1e-9, atol=1e-9)
    assert {line.get_linestyle() for line in force.get_lines()[:3]} == {":"}
    assert any("not unique" in text for text in names(force))
    assert loop in figure.get_suptitle()
    free = robot("rssr")  # without redundant rows
    run = pl.simulate(free, pl.assemble(free), until=0.02)
    force = axes_of(run.plot.reactions(free.loops[0].name), "force [N]")
    assert {line.get_linestyle() for line in force.get_lines()} == {"-"}
    assert names(force) == ["x", "y", "z"]


def test_turns_beyond_half_a_turn_go_on() -> None:
    machine = one_body("revolute", coordinates="circle", gravity=(0, 0, 0))
    assert machine.nq == 2
    run = pl.simulate(machine, machine.neutral, [10.0], until=1.0)
    axes = axes_of(run.plot.states(), "angle [rad]")
    t, angle = data(axes, "joint").T
    np.testing.assert_allclose(angle, 10.0 * t, rtol=0, atol=1e-9)


# -- units and names ------------------------------------------------------------------------


def test_angles_and_lengths_never_share_an_axis() -> None:
    machine = robot("every-pair")
    run = pl.simulate(machine, machine.neutral, 0.1 * np.ones(machine.nv), until=0.01)
    every = list(machine.joints)
    figure = run.plot.states(every)
    units = {"rad": "angle [rad]", "m": "position [m]", "": "quaternion [-]"}
    columns = list(run.columns())[1:-1]
    # The angle of the planar joint is stored as cosine and sine.
    assert len(columns) == machine.nq + machine.nv - 1
    shown = {axes.get_ylabel(): names(axes) for axes in figure.axes}
    assert set(shown) == {*units.values(), "velocity [m/s]", "velocity [rad/s]"}
    for column in columns:
        stem, unit = split_column(column)
        joint, quantity, number = re.fullmatch(r"(.+)_(position|velocity)_?(\d?)", stem).groups()  # type: ignore[union-attr]
        name = f"{joint}.{number}" if number else joint
        assert name in shown[units[unit] if quantity == "position" else f"velocity [{unit}]"]
    # A quaternion has four components, also behind the places of a free body.
    quaternions = [f"spherical.{k}" for k in range(4)] + [f"free.{k}" for k in range(3, 7)]
    assert shown["quaternion [-]"] == quaternions
    np.testing.assert_array_equal(
        data(axes_of(figure, "quaternion [-]"), "free.6")[-1, 1], run.q[-1, -1]
    )


@pytest.mark.parametrize("name", ["slider-crank", "double-pendulum"])
def test_every_axis_has_its_unit(name: str) -> None:
    machine = robot(name)
    run = pl.simulate(machine, pl.assemble(machine), until=0.02)
    figure = run.plot()
    for axes in figure.axes:
        assert axes.get_ylabel().endswith("]"), axes.get_ylabel()
        assert axes.get_xlim() == (0.0, 0.02)
    assert {axes.get_xlabel() for axes in figure.axes} == {"", "time [s]"}
    drawn_ = any("closure" in axes.get_ylabel() for axes in figure.axes)
    assert drawn_ == bool(machine.loops)


def chain(count: int) -> pl.Mechanism:
    """A chain of hinges about the vertical."""
    ends = ["ground", *(f"b{k}" for k in range(count))]
    joints = [
        tables.joint(f"j{k}", "revolute", ends[k], ends[k + 1], [0.1 * k, 0, 0], [0, 0, 1])
        for k in range(count)
    ]
    return tables.build(tables.table("chain", *joints))


def test_of_thirty_joints_the_fastest_are_shown() -> None:
    machine = chain(30)
    speeds = np.random.default_rng(3).permutation(30) / 100.0
    run = pl.simulate(machine, machine.neutral, speeds, until=1e-4)
    figure = run.plot()
    expected = [f"j{k}" for k in range(30) if speeds[k] > 0.215]
    assert len(expected) == 8
    for label in ("angle [rad]", "velocity [rad/s]"):
        assert names(axes_of(figure, label)) == [*expected, "and 22 more"]
    several = [f"j{k}" for k in range(12)]
    axes = axes_of(run.plot.states(several), "angle [rad]")
    assert names(axes) == several
    looks = {(str(line.get_color()), str(line._dash_pattern)) for line in axes.get_lines()}
    assert len(looks) == 12


def test_joints_by_name() -> None:
    run = locked_run()
    name = run.robot.joints[1]
    (angle, rate) = run.plot.states(name).axes
    assert [len(axes.get_lines()) for axes in (angle, rate)] == [2, 2]  # one of each is the mark
    with pytest.raises(pl.UnknownName, match="nothing"):
        run.plot(["nothing"])
    with pytest.raises(pl.UnknownName, match="nothing"):
        run.plot.reactions("nothing")
    with pytest.raises(pl.BadValue, match="name at least one joint"):
        run.plot.states([])


# -- events ---------------------------------------------------------------------------------


def test_events_are_lines_with_labels() -> None:
    for axes in overview().axes:
        assert marks(axes) == [LOCK]
    texts = [text.get_text() for text in overview().axes[0].texts if text.get_text()]
    assert texts == [name for _, name in locked_run().events]


def test_events_at_one_instant_have_one_label() -> None:
    events = [(0.5, "b"), (0.1, "a"), (0.5, "c"), (0.5, "b"), (0.5005, "d"), (0.9, "e" * 60)]
    given = (Instant(*event) for event in events)
    found = [(one.x, one.label) for one in merge_instants(given, 3e-3, between=", ", most=44)]
    assert found[:3] == [(0.1, "a"), (0.5, "b, c, d"), (0.5005, "")]
    assert found[3][0] == 0.9 and len(found[3][1]) == 44


def test_labels_cover_no_other() -> None:
    line = Line("a", np.linspace(0, 1, 5), np.zeros(5))
    events = [(t, f"a label at {t:.2f} s") for t in (0.1, 0.12, 0.14, 0.5, 0.52, 0.97, 0.99)]
    figure: Any = draw_charts("title", [[Chart("y [m]", [line])]], (0.0, 1.0), events)
    figure.draw_without_rendering()
    (axes,) = figure.axes
    boxes = [text.get_window_extent() for text in axes.texts if text.get_text()]
    assert len(boxes) == len(events)
    for k, one in enumerate(boxes):
        assert not any(one.overlaps(other) for other in boxes[:k])
        assert one.y0 > axes.get_window_extent().y1


# -- figures --------------------------------------------------------------------------------


def test_nothing_is_held_and_something_is_drawn(tmp_path: Path) -> None:
    figure = locked_run().plot()
    import matplotlib.pyplot as plt

    assert plt.get_fignums() == []
    shades = pixels(figure)
    assert shades.min() < 60 and 0.005 < np.mean(shades < 200) < 0.5
    assert figure._repr_png_().startswith(b"\x89PNG")
    for name in ("run.png", "run.svg"):
        figure.savefig(tmp_path / name)
        assert (tmp_path / name).stat().st_size > 5_000


def test_a_run_of_one_state() -> None:
    run = locked_run()
    one = replace(
        run, t=run.t[:1], q=run.q[:1], v=run.v[:1], a=run.a[:1], psi=run.psi[:0], mode=run.mode[:1],
        transitions=(), events=(),
    )  # fmt: skip
    figure = one.plot()
    line = data(axes_of(figure, "velocity [rad/s]"), run.robot.joints[0])
    np.testing.assert_array_equal(line, [[0.0, run.v[0, 0]]])
    low, high = figure.axes[0].get_xlim()
    assert low < 0.0 < high
    for other in (one.plot.energy(), one.plot.closure(), one.plot.momentum()):
        assert np.mean(pixels(other) < 200) > 0.002


def test_a_run_that_rests_is_not_magnified() -> None:
    machine = one_body(gravity=(0, 0, 0))
    run = pl.simulate(machine, machine.neutral, [1.0, 0, 0, 0, 0, 0], until=0.1)
    low, high = axes_of(run.plot(), "energy [J]").get_ylim()
    assert low <= 0.0 and high > 0.5 and "total" not in names(axes_of(run.plot(), "energy [J]"))


def test_long_runs_keep_their_peaks() -> None:
    t, y = np.linspace(0, 1, 200_000), np.zeros(200_000)
    y[123_456], y[150_000] = 7.0, -3.0
    figure: Any = draw_charts("title", [[Chart("y [m]", [Line("a", t, y)])]], (0.0, 1.0))
    line = figure.axes[0].get_lines()[0]
    x, values = np.asarray(line.get_xdata()), np.asarray(line.get_ydata())
    assert len(x) <= 4_000 and (values.max(), values.min()) == (7.0, -3.0)
    assert x[values.argmax()] == t[123_456] and (x[0], x[-1]) == (0.0, 1.0)


def test_of_very_many_states_jumps_stay() -> None:
    t = np.linspace(0, 1, 9_000)
    t[5_001] = t[5_000]
    numbers = np.arange(9_000)
    q = numbers.astype(float)[:, None]
    v: Array = np.multiply(2.0, q)
    shown = thin_states(Fine(t, q, v, numbers))
    assert 3_000 <= len(shown.t) <= 3_604
    assert {0, 5_000, 5_001, 8_999} <= set(shown.after)
    np.testing.assert_array_equal(shown.t, t[shown.after])
    np.testing.assert_array_equal(shown.v[:, 0], 2.0 * shown.after)
    assert len(thin_states(Fine(t[:50], t[:50, None], t[:50, None], numbers[:50])).t) == 50


def test_no_loops_no_closure() -> None:
    machine = pendulum()
    run = pl.simulate(machine, machine.neutral, until=0.01)
    with pytest.raises(pl.BadValue, match="has no loops"):
        run.plot.closure()


def test_without_matplotlib_a_sentence_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(pl.BadValue, match=r"pip install matplotlib"):
        locked_run().plot.energy()


def test_titles_are_no_wider_than_their_figure() -> None:
    spot = np.zeros((1, 2))
    title = "a robot with a name of some length: its stops by where its tool is; " * 3
    figure = draw_map(title, ("x", "y"), spot, np.ones(1), "share")
    (text,) = (x for x in figure.texts if x.get_text().startswith("a robot"))
    box = text.get_window_extent()
    assert box.x0 >= 0.0 and box.x1 <= figure.bbox.width

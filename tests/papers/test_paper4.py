"""Paper 4 (variable topology, locking): its two examples and the palm it names, in short runs.

Each program checks what the paper claims. Here momenta and energies of the plane pendulum are told
by hand from where the bars are and how they move, jumps of the arm by blocks of its mass matrix,
and those of the palm from angular velocities about its centre.
"""

from __future__ import annotations

import re
from itertools import pairwise, permutations
from pathlib import Path

import numpy as np
import pinocchio as pin
import pytest
from benchmarks import locking_comparison as comparison
from numpy.typing import NDArray

import pinloop as pl

from .programs import picture, program

Array = NDArray[np.float64]

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "locking.md").read_text(encoding="utf-8")


def drawn(path: str | None) -> bool:
    return path is None or Path(path).stat().st_size > 10_000


def locked(*names: str) -> pl.Mode:
    return pl.Mode(locks=tuple(map(pl.simulation.Locked, names)))


# -- planar pendulum (section 6) --------------------------------------------------------------

BAR, INERTIA, G = 13.5, 1.13625, 9.81


def bars(q: Array, v: Array) -> tuple[Array, Array, Array, Array]:
    """Hinges and centres of the three bars, velocities of the centres, angular velocities.

    In the plane of x and z; angles turn x down to -z.
    """
    angles, rates = np.cumsum(q), np.cumsum(v)
    along = np.column_stack([np.cos(angles), -np.sin(angles)])
    across = rates[:, None] * np.column_stack([-np.sin(angles), -np.cos(angles)])
    hinges = np.vstack([np.zeros(2), np.cumsum(along, axis=0)[:2]])
    moving = np.vstack([np.zeros(2), np.cumsum(across, axis=0)[:2]])
    return hinges, hinges + along / 2, moving + across / 2, rates


def momenta_by_hand(q: Array, v: Array) -> Array:
    """Angular momentum of all bars from joint i on about the hinge of joint i."""
    hinges, centres, speeds, rates = bars(q, v)
    arms = centres[None] - hinges[:, None]
    # Positive from x down to -z.
    spins = BAR * (arms[..., 1] * speeds[:, 0] - arms[..., 0] * speeds[:, 1]) + INERTIA * rates
    return np.asarray(np.triu(spins).sum(axis=1))


def energy_by_hand(q: Array, v: Array) -> float:
    _, centres, speeds, rates = bars(q, v)
    kinetic = 0.5 * BAR * np.sum(speeds**2) + 0.5 * INERTIA * np.sum(rates**2)
    return float(kinetic + BAR * G * np.sum(centres[:, 1]))


def test_planar_pendulum(tmp_path: Path) -> None:
    path = picture(tmp_path)
    stories = program("lock_planar_3r").main(until=1.4, step=4e-3, plot=path)
    assert drawn(path)
    for story in stories.values():
        assert story.t[-1] == 1.4
        for k in range(0, len(story.t), 7):
            q, v = story.q[k], story.v[k]
            free = ~np.isnan(story.momentum[k])
            np.testing.assert_allclose(
                story.momentum[k][free], momenta_by_hand(q, v)[free], rtol=1e-11, atol=1e-10
            )
            assert story.energy[k] == pytest.approx(energy_by_hand(q, v), abs=1e-9)
    # What unlocked joints have before a lock, they have after; naively they do not.
    for time, lock, free in ((0.6, 1, [0, 2]), (1.2, 2, [0])):
        for kind, story in stories.items():
            sides = np.flatnonzero(story.t == time)
            before, after = (momenta_by_hand(story.q[k], story.v[k])[free] for k in sides)
            assert not story.v[sides[1] :, lock].any()
            kept = np.abs(after - before).max() < 1e-11 * np.abs(before).max()
            assert kept == (kind == "consistent")


def test_locks_keep_the_order_of_the_method() -> None:
    robot = pl.load(ROOT / "urdf" / "planar_3r.urdf")
    events = [pl.lock("joint_2", at=0.6), pl.lock("joint_3", at=1.2)]

    def end(step: float) -> Array:
        method = pl.MuntheKaas("rk4", step=step)
        run = pl.simulate(robot, np.zeros(3), until=1.6, method=method, events=events)
        return np.concatenate([run.q[-1], run.v[-1]])

    exact = end(1e-3)
    coarse, fine = (float(np.abs(end(step) - exact).max()) for step in (1.6e-2, 8e-3))
    assert 3.6 < np.log2(coarse / fine) < 4.6


# -- six-axis arm (section 7) -----------------------------------------------------------------

JOINTS = [f"joint_{k + 1}" for k in range(6)]


def arm(rotor: float) -> pl.Mechanism:
    drives = {name: {"reduction": 100, "rotor_inertia": rotor} for name in JOINTS}
    return pl.load(ROOT / "urdf" / "six_axis_arm.urdf", loops={"drives": drives})


def arm_mass(robot: pl.Mechanism, q: Array, rotor: float) -> Array:
    """Mass matrix by the energies of unit motions; rotors turn 100 times as fast as joints."""
    model = robot.model.copy()
    model.armature = np.zeros(6)
    data = model.createData()
    rates = np.eye(6)[:, None] + np.eye(6)
    twice = [[2 * pin.computeKineticEnergy(model, data, q, v) for v in row] for row in rates]
    single = np.diag(twice) / 4
    links = (np.array(twice) - single[:, None] - single) / 2
    np.fill_diagonal(links, single)
    return np.asarray(links + 100**2 * rotor * np.eye(6))


def test_six_axis_arm(tmp_path: Path) -> None:
    path = picture(tmp_path)
    apart = program("lock_six_axis_arm").main(both=False, plot=path)
    assert drawn(path)
    assert list(apart) == ["with rotors"] and 0.05 < apart["with rotors"] < 0.5


@pytest.mark.parametrize("rotor", [0.0, 3e-4])
def test_free_joints_of_the_arm_jump_by_what_the_others_lose(rotor: float) -> None:
    robot, rng = arm(rotor), np.random.default_rng(4)
    for seed in range(5):
        q, v = rng.uniform(-1, 1, 6), rng.uniform(-2, 2, 6)
        M = arm_mass(robot, q, rotor)
        held = np.arange(6) < 1 + seed
        change = pl.transition(robot, q, v, pl.Mode(), locked(*JOINTS[: 1 + seed]))
        # Rows of M of the free joints: their momenta stay, the locked columns drop out.
        expected = np.zeros(6)
        expected[~held] = np.linalg.solve(M[~held][:, ~held], (M @ v)[~held])
        np.testing.assert_allclose(change.v_plus, expected, rtol=1e-9, atol=1e-9)
        lost = 0.5 * v @ M @ v - 0.5 * expected @ M @ expected
        assert change.energy_loss == pytest.approx(lost, rel=1e-8) and lost > 0
        np.testing.assert_allclose(change.impulse, (M @ (expected - v))[held], rtol=1e-8, atol=1e-8)


def test_rotors_soften_the_jump() -> None:
    # The more of its momentum a joint keeps for itself, the less the others get.
    q, v = np.radians([0, 20, 10, 0, -30, 0]), np.array([0, 1.0, 0, 0, 0, 0])
    jumps = [
        abs(pl.transition(arm(rotor), q, v, pl.Mode(), locked("joint_2")).v_plus[2])
        for rotor in (0.0, 2e-4, 1e-3, 1.0)
    ]
    assert all(a > b for a, b in pairwise(jumps))
    assert jumps[-1] < 5e-3


def test_simultaneous_locks_in_any_order_are_one_change() -> None:
    robot = arm(3e-4)
    q, v = np.array([0.2, -0.3, 0.4, 0, -0.7, 0]), np.array([1.0, 1.2, -0.8, 0.5, 1, -1])
    runs = [
        pl.simulate(robot, q, v, until=0.06, events=[pl.lock(name, at=0.05) for name in order])
        for order in permutations(("joint_1", "joint_2", "joint_3"))
    ]
    for run in runs:
        assert len(run.transitions) == 1
        assert np.array_equal(run.q, runs[0].q) and np.array_equal(run.v, runs[0].v)
    once = runs[0].transitions[0]
    for order in permutations(("joint_1", "joint_2", "joint_3")):
        state, before, lost = once.v_minus, pl.Mode(), 0.0
        for k in range(3):
            step = pl.transition(robot, once.q, state, before, locked(*order[: k + 1]))
            state, before, lost = step.v_plus, step.after, lost + step.energy_loss
        np.testing.assert_allclose(state, once.v_plus, rtol=0, atol=1e-12)
        assert lost == pytest.approx(once.energy_loss, rel=1e-11)


# -- palm of a metamorphic hand (section 8) ---------------------------------------------------


def palm_axes(robot: pl.Mechanism, q: Array) -> dict[str, Array]:
    """Axes of the hinges now: a and e stand still, the others move with a body."""
    axes = program("lock_spherical_fivebar").AXES
    carrier = {"b": "ab", "c": "bc", "d": "de"}
    return {
        name: robot.placement(q, carrier[name]).rotation @ axis if name in carrier else axis
        for name, axis in axes.items()
    }


def palm_motions(robot: pl.Mechanism, q: Array) -> Array:
    """Rates of a, b, e, d for unit rates of a and of e: the hinges turn around the loop in vain."""
    axes = palm_axes(robot, q)
    loop = np.column_stack([axes["b"], axes["c"], -axes["d"]])
    b_a, _, d_a = np.linalg.solve(loop, -axes["a"])
    b_e, _, d_e = np.linalg.solve(loop, axes["e"])
    return np.array([[1, 0], [b_a, b_e], [0, 1], [d_a, d_e]])


def palm_mass(robot: pl.Mechanism, q: Array) -> Array:
    """Kinetic energy of a and e: bodies turn about the centre of the sphere."""
    link, axes = program("lock_spherical_fivebar").link, palm_axes(robot, q)
    (a_b, b_b, e_d, d_d) = palm_motions(robot, q)
    spins = {
        "ab": np.outer(axes["a"], a_b),
        "bc": np.outer(axes["a"], a_b) + np.outer(axes["b"], b_b),
        "de": np.outer(axes["e"], e_d),
        "cd": np.outer(axes["e"], e_d) + np.outer(axes["d"], d_d),
    }
    total = np.zeros((2, 2))
    for name, spin in spins.items():
        entry = link(name)
        com, turn = entry["com"], robot.placement(q, name).rotation
        about = entry["inertia"] + entry["mass"] * (com @ com * np.eye(3) - np.outer(com, com))
        total += spin.T @ turn @ about @ turn.T @ spin
    return total


def test_spherical_fivebar(tmp_path: Path) -> None:
    path = picture(tmp_path)
    fivebar = program("lock_spherical_fivebar")
    run = fivebar.main(plot=path)
    assert drawn(path)
    robot = run.robot
    assert robot.joints == ("a", "b", "e", "d")
    first, second = run.transitions
    for change in (first, second):
        np.testing.assert_allclose(
            change.v_minus, palm_motions(robot, change.q) @ change.v_minus[[0, 2]], atol=1e-9
        )
    # Freedoms: five-bar, four-bar, rigid body.
    ranks = first.rank_before, first.rank_after, second.rank_after
    assert [robot.nv - here for here, _ in ranks] == [2, 1, 0]
    assert all(here == around for here, around in ranks)
    # Lock of a: the momentum of e stays.
    m = palm_mass(robot, first.q)
    a, e = first.v_minus[[0, 2]]
    e_plus = e + m[1, 0] / m[1, 1] * a
    expected = palm_motions(robot, first.q) @ [0, e_plus]
    np.testing.assert_allclose(first.v_plus, expected, rtol=1e-8, atol=1e-9)
    impulse = m[0] @ [-a, e_plus - e]
    np.testing.assert_allclose(first.impulse_of("lock:a"), impulse, rtol=1e-7)
    # Lock of e: all energy is lost, and both locks feel it.
    m, e = palm_mass(robot, second.q), second.v_minus[2]
    assert second.energy_loss == pytest.approx(0.5 * m[1, 1] * e * e, rel=1e-8)
    np.testing.assert_allclose(second.impulse_of("lock"), -m[:, 1] * e, rtol=1e-7)
    assert np.abs(second.v_plus).max() < 1e-9


# -- comparison with peers, and its page ------------------------------------------------------


def test_the_exact_case_of_the_comparison() -> None:
    rows, naive = comparison.pinloop_lock(), comparison.pinloop_zeroing()
    assert len(rows) == len(naive) == comparison.STEPS + 1
    np.testing.assert_allclose(rows[:, 0], 6 / 5, rtol=1e-12)
    np.testing.assert_allclose(naive[:, 0], 1.0, rtol=1e-12)
    assert not rows[:, 1:].any() and not naive[:, 1:].any()
    change = pl.transition(comparison.arm(), [0, 0], [1, 1], pl.Mode(), locked("joint_2"))
    assert change.energy_loss == pytest.approx(2 / 15, rel=1e-12)
    assert change.impulse[0] == pytest.approx(-4 / 15, rel=1e-12)


def test_the_page_says_what_the_program_measures() -> None:
    between = PAGE.partition(comparison.BEGIN)[2].partition(comparison.END)[0].strip()
    lines = between.splitlines()
    cases = comparison.cases()
    assert len(lines) == 2 + len(cases)
    assert all(f" {how} |" in line for line, (_, how, _) in zip(lines[2:], cases, strict=True))
    ours = [case for case in cases if case[0] == "pinloop"]
    found, missing = comparison.measure(ours)
    assert not missing and lines[: 2 + len(ours)] == comparison.table(found).splitlines()


def test_a_package_that_is_missing_is_skipped_and_named() -> None:
    def absent() -> Array:
        raise ModuleNotFoundError("no module named 'absent'")

    cases = [("absent", "a", absent), ("absent", "b", absent), comparison.cases()[1]]
    found, missing = comparison.measure(cases)
    assert [one.package for one in found] == ["pinloop"] and missing == ["absent"]


def test_the_time_to_rest_is_read_from_the_rows() -> None:
    rows = np.zeros((comparison.STEPS + 1, 3))
    assert comparison.Found("p", "h", rows).rest == 0
    rows[7, 1] = -0.02
    assert comparison.Found("p", "h", rows).rest == pytest.approx(8 * comparison.STEP)
    rows[-1, 1] = 0.02
    assert comparison.Found("p", "h", rows).rest == np.inf


def test_writing_leaves_the_text_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(comparison, "PAGE", tmp_path / "page.md")
    comparison.PAGE.write_text(PAGE, encoding="utf-8")
    comparison.put("| new |")
    written = comparison.PAGE.read_text(encoding="utf-8")
    start, end = (PAGE.index(mark) for mark in (comparison.BEGIN, comparison.END))
    assert written == f"{PAGE[:start]}{comparison.BEGIN}\n| new |\n{PAGE[end:]}"


def test_the_program_of_the_page_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    code = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)[0]
    monkeypatch.chdir(ROOT)
    names: dict[str, object] = {}
    exec(code, names)
    change = names["change"]
    assert isinstance(change, pl.simulation.Transition) and change.energy_loss > 0

"""Derivatives of accelerations and reactions, against differences of the equations of motion.

The oracle extrapolates central differences (Richardson) of what `EquationsOfMotion` gives.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pinocchio as pin
import pytest

import pinloop as pl
from pinloop import constraints, forces, parameters
from pinloop.constraints.rows import Locked
from pinloop.dynamics.derivatives import derivatives_at, jump_derivatives_at
from pinloop.model.description import Body, Coupling, Description
from pinloop.model.mechanism import build

from .. import states
from ..mechanisms import every_pair
from ..screw_tables import build as build_table

Array = Any
RELATIVE = 1e-8


def difference(function: Callable[[Array], Array], size: int, first: float = 2e-2) -> Array:
    """Derivatives at 0 along the unit vectors, one row each, by Richardson's extrapolation.

    Of all entries of its table the one is taken that differs least from its neighbours.
    """

    def along(unit: Array) -> Array:
        table: list[list[Array]] = []
        best, least = np.zeros(0), np.inf
        for level in range(6):
            h = first / 2**level
            row = [(function(h * unit) - function(-h * unit)) / (2.0 * h)]
            for order in range(level):
                row.append(row[-1] + (row[-1] - table[-1][order]) / (4.0 ** (order + 1) - 1.0))
            table.append(row)
            if level:
                change = np.abs(row[-1] - row[-2]).max(initial=0.0)
                if change < least:
                    best, least = row[-1], change
        return best

    return np.array([along(unit) for unit in np.eye(size)])


class State:
    """Equations of motion at a state, whose accelerations and reactions can be displaced."""

    def __init__(
        self, robot: pl.Mechanism, seed: int = 3, off: float = 0.0, **options: Any
    ) -> None:
        rng = np.random.default_rng(seed)
        self.q, self.v = states.moving(robot, seed)
        self.equations = pl.EquationsOfMotion(robot, formulation=pl.Augmented(), **options).around(
            0.0, self.q
        )
        self.robot, self.model = robot, robot.model
        self.q = pin.integrate(self.model, self.q, off * rng.normal(size=robot.nv))
        self.tau = rng.normal(size=robot.nv)

    def values(self, q: Array, v: Array, tau: Array) -> Array:
        push = forces.TorqueFunction(lambda t, q, v: tau)
        equations = self.equations.with_force(push)
        if equations.max_rank is not None and not len(equations.rows.locked):
            # Which rows are kept is that of the accelerations, also where none depends on others.
            M, f, J, gamma, rank = equations.system(0.0, q, v)
            return np.concatenate(pl.Augmented().solve(M, J, f, gamma, equations.rows.scale, rank))
        motion = equations.motion(0.0, q, v)
        return np.append(motion.a, motion.multipliers)

    def compare(self, relative: float = RELATIVE) -> None:
        q, v, tau, n = self.q, self.v, self.tau, self.robot.nv
        found = derivatives_at(self.equations, 0.0, q, v, tau)
        np.testing.assert_allclose(
            np.append(found.ddq, found.reactions)[:n], self.values(q, v, tau)[:n], atol=1e-9
        )
        for name, moved in (
            ("dq", lambda s: self.values(pin.integrate(self.model, q, s), v, tau)),
            ("dv", lambda s: self.values(q, v + s, tau)),
            ("dtau", lambda s: self.values(q, v, tau + s)),
        ):
            wanted = difference(moved, n).T
            ddq, reactions = getattr(found, f"ddq_{name}"), getattr(found, f"reactions_{name}")
            close(ddq, wanted[:n], relative, name)
            sure = ~np.isnan(reactions).any(axis=1)
            close(reactions[sure], wanted[n:][sure], relative, f"reactions by {name}")


def close(found: Array, wanted: Array, relative: float, what: str) -> None:
    size = max(1e-3, np.abs(wanted).max(initial=0.0))
    np.testing.assert_allclose(found, wanted, atol=relative * size, rtol=0.0, err_msg=what)


@pytest.mark.parametrize("name", [*states.SHIPPED, *states.SMALL])
def test_accelerations_and_reactions_have_the_slopes_of_the_equations(name: str) -> None:
    looped = name in states.LOOPED
    robot = states.regularized(name) if looped else states.robot(name)
    # On the delta two joints of a rod nearly line up: differences are no better than that.
    relative = 1e-6 if name == "delta" else RELATIVE
    State(robot).compare(relative)
    State(robot, off=1e-3).compare(relative)


@pytest.mark.parametrize("name", ["bennett", "bricard", "goldberg", "fourbar", "palletizer"])
def test_rows_that_depend_on_each_other_only_on_the_manifold_turn_off_it(name: str) -> None:
    """Or contradict each other: velocities do not fit, and which rows are kept is no constant."""
    State(states.robot(name), off=3e-2).compare()
    if name in ("fourbar", "palletizer"):  # which stand still with a lock, or do not
        State(states.robot(name), off=3e-2, locks=states.robot(name).joints[:1]).compare()


def test_reactions_that_are_not_unique_have_no_derivative() -> None:
    state = State(states.regularized("double-cardan"))
    found = derivatives_at(state.equations, 0.0, state.q, state.v)
    unique = state.equations.motion(0.0, state.q, state.v).determined
    assert unique.any() and not unique.all()
    for part in (found.reactions_dq, found.reactions_dv, found.reactions_dtau):
        np.testing.assert_array_equal(~np.isnan(part), np.repeat(unique[:, None], part.shape[1], 1))


@pytest.mark.parametrize("locks", [("crank",), ("crank", "rocker"), ("crank", "elbow", "rocker")])
def test_locks_that_share_a_load_have_no_derivatives_of_their_reactions(locks: Any) -> None:
    """A four-bar is held by one lock; a second one may share its load with it, and its loop."""
    state = State(states.robot("four-bar"), locks=locks)
    unique = state.equations.motion(0.0, state.q, state.v * 0.0).determined
    found = derivatives_at(state.equations, 0.0, state.q, state.v * 0.0)
    np.testing.assert_array_equal(np.isfinite(found.reactions_dq).all(axis=1), unique)


@pytest.mark.parametrize("space", ["SE3", "SO3xR3"])
def test_robots_in_absolute_coordinates_have_them_too(space: Any) -> None:
    robot = states.robot("fourbar").absolute(space)
    State(pl.regularize(robot)).compare()


@pytest.mark.parametrize("name", ["fourbar", "stewart", "rssr", "gear-pair", "tip-on-plane"])
def test_violations_have_the_slopes_of_rates(name: str) -> None:
    state = State(states.robot(name), off=1e-2)
    equations, q, v = state.equations, state.q, state.v

    def rates(q: Array) -> Array:
        J, b, _ = equations.terms(0.0, q, v)
        return J @ v - b

    found = derivatives_at(equations, 0.0, q, v)
    wanted = difference(lambda s: rates(pin.integrate(state.model, q, s)), len(v)).T
    close(found.violation_dq, wanted, RELATIVE, "rates")
    np.testing.assert_allclose(found.J, equations.terms(0.0, q, v)[0], atol=1e-12)


# -- forces and rows --------------------------------------------------------------------------

LOOP, OTHER = "drive_loop", "rear_level_loop"
FORCES: dict[str, forces.Force] = {
    "spring of a joint": forces.JointSpring("elbow", 30.0, 0.2),
    "spring of a loop joint": forces.JointSpring(LOOP, 20.0, 0.1),
    "PD of a joint": forces.PD("elbow", 5.0, 1.0, target=0.3, rate=0.1),
    "PD of a loop joint": forces.PD(OTHER, 5.0, 1.0, target=0.3, rate=0.1),
    "torque on a loop joint": forces.Torque(LOOP, 3.0),
    "spring": forces.Spring(("upper_arm", (0.1, 0.2, 0.0)), ("flange", (0.0, 0.1, 0.3)), 90.0, 0.2),
    "damper": forces.Damper(("column", (0.1, 0.2, 0.0)), ("flange", (0.0, 0.1, 0.3)), 10.0),
    "force": forces.PointForce(("forearm", (0.1, 0.0, 0.0)), (1.0, 2.0, 3.0)),
    "force of a frame": forces.PointForce(("forearm", (0.1, 0.0, 0.2)), (1, 2, 3), local=True),
    "damping": forces.JointDamping({"elbow": 1.0, LOOP: 2.0}),
    "damping of the file": forces.JointDamping(),
    "smoothed friction": forces.JointFriction(0.1, {"elbow": 1.0, LOOP: 2.0}),
    "a function": forces.TorqueFunction(lambda t, q, v: np.sin(q) * v),
}


@pytest.mark.parametrize("name", FORCES)
def test_forces_have_the_slopes_of_what_they_do(name: str) -> None:
    State(states.regularized("palletizer"), forces=[FORCES[name]]).compare()


@pytest.mark.parametrize("robot", ["palletizer", "spherical_fourbar"])
def test_coordinates_of_open_loops_change_otherwise_than_they_move(robot: str) -> None:
    """Beside the manifold the angle of a hinge is that of the nearest turn about its axis."""
    loop = states.robot(robot).loops[0].name
    for force in (forces.JointSpring(loop, 20.0, 0.1), forces.PD(loop, 5.0, 1.0, target=0.3)):
        State(states.regularized(robot), off=3e-2, forces=[force]).compare()


@pytest.mark.parametrize("name", ["spherical_fourbar", "rssr"])
def test_axes_of_loop_joints_turn_in_space(name: str) -> None:
    """In a plane the rate of a loop joint is a sum of others, whatever the pose."""
    robot = states.regularized(name)
    loop = robot.loops[0].name
    State(robot, forces=[forces.JointDamping({loop: 2.0})]).compare()
    State(robot, forces=[forces.JointFriction(0.5, {loop: 2.0})]).compare()


def test_couplings_by_polynomials_bend() -> None:
    """Wheels without loops whose angles are tied by cubics."""
    robot = states.robot("planar-3R")
    cubics = ((0.0, 1.0, 0.3, 0.2), (0.0, -0.7, 0.4, -0.3))
    cam = Coupling("cam", ("j1", "j3"), cubics)
    bent = build(replace(robot.description, couplings=(cam,)))
    state = State(bent)
    state.q, state.v = np.array([0.4, 0.3, -0.5]), np.array([0.7, -0.2, 0.9])
    state.compare()


ROWS: dict[str, dict[str, Any]] = {
    "lock": {"locks": ["elbow"]},
    "lock of a loop joint": {"locks": [Locked(LOOP)]},
    "no slip": {"rows": [constraints.NoSlip("forearm", (0.0, 1.0, 0.0))]},
    "prescribed": {"rows": [constraints.Prescribed("elbow", lambda t: (0.4, 0.3, 2.0))]},
    "prescribed loop joint": {"rows": [constraints.Prescribed(LOOP, lambda t: (0.3, 0.2, 1.0))]},
    "a user's": {"rows": [constraints.Pfaffian("bound", lambda q: (2.0 + np.cos(q))[None])]},
}


@pytest.mark.parametrize("name", ROWS)
def test_rows_have_the_slopes_of_what_they_say(name: str) -> None:
    State(states.regularized("palletizer"), **ROWS[name]).compare(1e-7)


def test_a_ball_that_rolls_has_slopes() -> None:
    robot = states.robot("double-pendulum")
    rolling = constraints.Rolling(robot.description.bodies[-1].name, 0.1)
    State(robot, rows=[rolling]).compare()


# -- parameters -------------------------------------------------------------------------------

ACTING = (FORCES["spring"], FORCES["damping"], FORCES["PD of a loop joint"])


def changed(robot: pl.Mechanism, edit: Callable[[Description], Description]) -> pl.Mechanism:
    """A robot with another description and the same rows."""
    return replace(build(edit(robot.description)), regularization=robot.regularization)


def with_body(description: Description, name: str, change: Array) -> Description:
    """Another mass, centre of mass and other moments of a body."""

    def edited(body: Body) -> Body:
        xx, xy, yy, xz, yz, zz = change[4:]
        moments = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
        com, inertia = np.array(body.com) + change[1:4], np.array(body.inertia) + moments
        return replace(body, mass=body.mass + change[0], com=com, inertia=inertia)

    bodies = (edited(b) if b.name == name else b for b in description.bodies)
    return replace(description, bodies=tuple(bodies))


def with_mass(description: Description, name: str, mass: float, point: Array) -> Description:
    """A point mass more on a body."""

    def edited(body: Body) -> Body:
        inertia = pin.Inertia(body.mass, np.array(body.com), np.array(body.inertia))
        more = inertia + pin.Inertia(mass, point, np.zeros((3, 3)))
        return replace(body, mass=more.mass, com=more.lever, inertia=more.inertia)

    bodies = (edited(b) if b.name == name else b for b in description.bodies)
    return replace(description, bodies=tuple(bodies))


def with_joint(description: Description, name: str, change: Array) -> Description:
    """A joint moved on its parent, in the axes of its frame."""
    joints = (
        replace(j, frame_parent=j.frame_parent * pin.exp6(change)) if j.name == name else j
        for j in description.joints
    )
    return replace(description, joints=tuple(joints))


def with_frame_b(description: Description, name: str, change: Array) -> Description:
    """The frame of a joint moved on its child."""
    joints = (
        replace(j, frame_child=j.frame_child * pin.exp6(change)) if j.name == name else j
        for j in description.joints
    )
    return replace(description, joints=tuple(joints))


def with_armature(description: Description, name: str, change: Array) -> Description:
    joints = (
        replace(j, armature=(0.1 + float(change[0]),)) if j.name == name else j
        for j in description.joints
    )
    return replace(description, joints=tuple(joints))


EDITS: dict[str, tuple[Any, int, Callable[[Description, Array], Description]]] = {
    "body": (parameters.BodyInertia("forearm"), 10, lambda d, x: with_body(d, "forearm", x)),
    "point mass": (
        parameters.PointMass("flange", (0.1, 0.2, 0.3)),
        1,
        lambda d, x: with_mass(d, "flange", float(x[0]), np.array([0.1, 0.2, 0.3])),
    ),
    "armature": (parameters.Armature("wrist"), 1, lambda d, x: with_armature(d, "wrist", x)),
    "frame of a loop": (
        parameters.Placement(f"{LOOP}/B"), 6, lambda d, x: with_frame_b(d, LOOP, x)
    ),
}  # fmt: skip


MOMENTUM = constraints.AngularMomentum((0.3, 0.1, 1.0), 0.4)


@pytest.mark.parametrize("rows", [(), (MOMENTUM,)], ids=["loops", "momentum"])
@pytest.mark.parametrize("name", EDITS)
def test_parameters_of_the_robot_have_the_slopes_of_another_robot(name: str, rows: Any) -> None:
    """Of accelerations, of rates of rows, and of jumps; a row may depend on masses itself."""
    parameter, size, edit = EDITS[name]
    robot = states.regularized("palletizer")
    robot = changed(robot, lambda description: edit(description, np.zeros(size)))
    state = State(robot, forces=ACTING, rows=rows)

    def values(change: Array) -> Array:
        other = changed(robot, lambda description: edit(description, change))
        equations = pl.EquationsOfMotion(
            other, forces=ACTING, rows=rows, formulation=pl.Augmented()
        )
        motion, jump = (what(0.0, state.q, state.v) for what in (equations.motion, equations.jump))
        J, b, _ = equations.terms(0.0, state.q, state.v)
        return np.concatenate([
            motion.a, motion.multipliers, J @ state.v - b, state.v + jump.a, jump.multipliers
        ])  # fmt: skip

    found = derivatives_at(state.equations, 0.0, state.q, state.v, None, [parameter])
    jump = jump_derivatives_at(state.equations, 0.0, state.q, state.v, [parameter])
    parts = {
        "a": found.ddq_dp, "reactions": found.reactions_dp, "rates": found.violation_dp,
        "v+": jump.v_plus_dp, "impulses": jump.impulse_dp,
    }  # fmt: skip
    assert len(found.parameters) == size == found.ddq_dp.shape[1]
    wanted = difference(values, size, first=1e-3).T
    for what, part in parts.items():
        close(part, wanted[: len(part)], 1e-7, f"{name}: {what}")
        wanted = wanted[len(part) :]


@pytest.mark.parametrize("row", [
    constraints.Rolling("forearm", 0.3, (0.2, 0.1, 1.0)),
    constraints.Rolling("forearm", 0.3, (0.2, 0.1, 1.0), (0.3, 1.0, 0.2)),
    constraints.AngularMomentum((0.3, 0.1, 1.0), 0.0),
    ROWS["a user's"]["rows"][0],
], ids=lambda row: type(row).__name__)  # fmt: skip
@pytest.mark.parametrize("place", ["elbow", f"{LOOP}/B"])
def test_rows_without_slopes_change_with_the_places_of_joints(row: Any, place: str) -> None:
    state = State(states.regularized("palletizer"), rows=[row])
    plain, parameter = replace(state.robot, regularization=None), parameters.Placement(place)

    def values(change: Array) -> Array:
        moved = parameters.with_parameters(plain, [(parameter, change)])[0]
        other = replace(moved, regularization=state.robot.regularization)
        equations = pl.EquationsOfMotion(other, rows=[row], formulation=pl.Augmented())
        motion, (J, b, _) = (
            equations.motion(0.0, state.q, state.v), equations.terms(0.0, state.q, state.v)
        )  # fmt: skip
        return np.concatenate([motion.a, motion.multipliers, J @ state.v - b])

    found = derivatives_at(state.equations, 0.0, state.q, state.v, None, [parameter])
    n, m = state.robot.nv, len(state.equations.rows)
    wanted = difference(values, 6, first=1e-2).T
    assert np.abs(wanted).max() > 0.1
    close(found.ddq_dp, wanted[:n], 1e-7, "acceleration")
    close(found.reactions_dp, wanted[n : n + m], 1e-7, "reactions")
    close(found.violation_dp, wanted[n + m :], 1e-7, "rates")


@pytest.mark.parametrize("end", ["A", "B"])
def test_frames_that_move_open_their_loop(end: str) -> None:
    state = State(states.regularized("palletizer"))
    name = f"{LOOP}/{end}"
    edit = with_joint if end == "A" else with_frame_b

    def residual(change: Array) -> Array:
        other = changed(state.robot, lambda d: edit(d, LOOP, change))
        return pl.EquationsOfMotion(other).residual(0.0, state.q)

    found = derivatives_at(
        state.equations, 0.0, state.q, state.v, None, [parameters.Placement(name)]
    )
    wanted = difference(residual, 6, first=1e-3).T
    assert np.abs(wanted).max() > 0.5
    close(found.closure_dp, wanted, RELATIVE, name)


def test_a_joint_of_the_tree_moves_with_all_that_it_carries() -> None:
    """Its axes stand along those of its frame: the placement of the joint is that of the frame."""
    state = State(states.regularized("palletizer"))
    model, name = state.model, "elbow"
    found = derivatives_at(
        state.equations, 0.0, state.q, state.v, None, [parameters.Placement(name)]
    )
    index = model.getJointId(name)
    joint = next(j for j in state.robot.description.joints if j.name == name)
    turn = model.jointPlacements[index].actInv(
        model.frames[state.robot.frame_id(joint.parent)].placement * joint.frame_parent
    )

    def values(change: Array) -> Array:
        moved = turn.inverse().toActionMatrix() @ change
        other = changed(state.robot, lambda d: with_joint(d, name, moved))
        motion = pl.EquationsOfMotion(other, formulation=pl.Augmented()).motion(
            0.0, state.q, state.v
        )
        return np.append(motion.a, motion.multipliers)

    wanted = difference(values, 6, first=1e-3).T
    close(found.ddq_dp, wanted[: model.nv], 1e-7, name)
    close(found.reactions_dp, wanted[model.nv :], 1e-7, name)


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("name", ["universal", "helical", "schoenflies"])
def test_joints_that_the_tree_walks_backwards_move_and_weigh_as_others(
    name: str, reverse: bool
) -> None:
    """By placements and rotors, of which a joint with several axes has different ones."""
    plain = build_table(every_pair(reverse))
    armature, place = parameters.Armature(name), parameters.Placement(name)
    rotors = 0.1 + 0.2 * np.arange(plain.coordinates(name).nv)
    robot = parameters.with_parameters(plain, [(armature, rotors)])[0]
    np.testing.assert_array_equal(robot.model.armature[robot.coordinates(name).v], rotors)
    state = State(robot)
    found = derivatives_at(state.equations, 0.0, state.q, state.v, None, [armature, place])
    at = 0
    for parameter, start in ((armature, rotors), (place, np.zeros(6))):

        def acceleration(change: Array, parameter: Any = parameter, start: Any = start) -> Array:
            other = parameters.with_parameters(robot, [(parameter, start + change)])[0]
            return pl.EquationsOfMotion(other).acceleration(0.0, state.q, state.v)

        wanted = difference(acceleration, len(start), first=1e-2).T
        close(found.ddq_dp[:, at : at + len(start)], wanted, 1e-7, repr(parameter))
        at += len(start)


NUMBERS = (
    (0, parameters.ForceParameter(ACTING[0], "stiffness"), lambda f, x: {"stiffness": x}),
    (0, parameters.ForceParameter(ACTING[0], "length"), lambda f, x: {"length": x}),
    (1, parameters.ForceParameter(ACTING[1], "coefficients", LOOP),
     lambda f, x: {"coefficients": f.coefficients | {LOOP: x}}),
    (2, parameters.ForceParameter(ACTING[2], "damping"), lambda f, x: {"damping": x}),
)  # fmt: skip


@pytest.mark.parametrize("case", NUMBERS, ids=lambda case: case[1].name)
def test_numbers_of_forces_have_the_slopes_of_other_forces(case: Any) -> None:
    place, parameter, edit = case
    state = State(states.regularized("palletizer"), forces=ACTING)
    given = getattr(ACTING[place], parameter.name)
    start = given[LOOP] if isinstance(given, dict) else given

    def values(change: Array) -> Array:
        acting = list(ACTING)
        acting[place] = replace(acting[place], **edit(acting[place], start + float(change[0])))
        equations = pl.EquationsOfMotion(state.robot, forces=acting, formulation=pl.Augmented())
        return equations.motion(0.0, state.q, state.v).a

    found = derivatives_at(state.equations, 0.0, state.q, state.v, None, [parameter])
    # Forces are linear in these numbers: wide differences round least.
    close(found.ddq_dp, difference(values, 1, first=0.5).T, 1e-7, parameter.name)


def test_what_has_no_slope_says_so() -> None:
    state = State(states.regularized("palletizer"), **ROWS["a user's"])

    def at(parameter: parameters.Parameter) -> None:
        derivatives_at(state.equations, 0.0, state.q, state.v, None, [parameter])

    with pytest.raises(pl.UnknownName, match=r"no joint or frame 'elbo'.*'elbow'"):
        at(parameters.Placement("elbo"))
    with pytest.raises(pl.BadValue, match="has no body 'arm'"):
        at(parameters.BodyInertia("arm"))
    with pytest.raises(pl.BadValue, match=r"coefficients of .* is no number"):
        at(parameters.ForceParameter(FORCES["damping of the file"], "coefficients"))
    spring = forces.Spring("flange", "flange", 1.0)
    here = pl.EquationsOfMotion(state.robot, forces=[spring])
    with pytest.raises(pl.BadValue, match="distance flange-flange is zero"):
        derivatives_at(here, 0.0, state.q, state.v)


# -- jumps ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name", ["palletizer", "sevenbar", "stewart", "every-pair", "six_axis_arm"]
)
def test_jumps_have_the_slopes_of_the_velocity_after(name: str) -> None:
    looped = name in states.LOOPED
    robot = states.regularized(name) if looped else states.robot(name)
    lock = "elbow" if name == "palletizer" else robot.joints[1]
    state = State(robot, locks=[lock])
    equations, q, n = state.equations, state.q, robot.nv
    v = np.random.default_rng(5).normal(size=n)

    def values(q: Array, v: Array) -> Array:
        jump = equations.jump(0.0, q, v)
        return np.concatenate([v + jump.a, jump.multipliers])

    found = jump_derivatives_at(equations, 0.0, q, v)
    by_q = difference(lambda s: values(pin.integrate(state.model, q, s), v), n).T
    by_v = difference(lambda s: values(q, v + s), n).T
    np.testing.assert_allclose(np.append(found.v_plus, found.impulse), values(q, v), atol=1e-10)
    for what, one, two, wanted in (
        ("q", found.v_plus_dq, found.impulse_dq, by_q),
        ("v", found.v_plus_dv, found.impulse_dv, by_v),
    ):
        sure = ~np.isnan(two).any(axis=1)
        assert sure.any()
        close(one, wanted[:n], RELATIVE, what)
        close(two[sure], wanted[n:][sure], RELATIVE, f"impulse by {what}")


def test_jumps_depend_on_masses_but_not_on_weight() -> None:
    robot = states.regularized("palletizer")
    state = State(robot, locks=["elbow"])
    v = np.random.default_rng(5).normal(size=robot.nv)

    def values(change: Array) -> Array:
        other = changed(robot, lambda d: with_body(d, "forearm", change))
        jump = pl.EquationsOfMotion(other, locks=["elbow"]).jump(0.0, state.q, v)
        return np.append(v + jump.a, jump.multipliers)

    body = parameters.BodyInertia("forearm")
    found = jump_derivatives_at(state.equations, 0.0, state.q, v, [body])
    wanted = difference(values, 10, first=1e-3).T
    close(found.v_plus_dp, wanted[: robot.nv], 1e-7, "velocity")
    close(found.impulse_dp, wanted[robot.nv :], 1e-7, "impulse")

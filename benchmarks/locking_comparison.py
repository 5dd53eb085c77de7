"""Locking a moving joint in pinloop and in its peers, against the exact velocity after the lock.

Run with ``python -m benchmarks.locking_comparison`` from the root of the repository; packages that
are not installed are skipped. ``--write`` puts the table into ``docs/locking.md``, which derives
the exact value and says what each package does; it needs all of them.

Planar 2R of two uniform rods (1 kg, 1 m), elbow at 90 degrees, both joints at 1 rad/s, no gravity;
joint 2 locks. Every simulator takes steps of 1 ms for half a second.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import partial
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import pinloop as pl

Array = NDArray[np.float64]

MASS, LENGTH, ELBOW = 1.0, 1.0, np.pi / 2
INERTIA = MASS * LENGTH**2 / 12
STEP, STEPS = 1e-3, 500
EXACT = 1.2
PAGE = Path(__file__).parents[1] / "docs" / "locking.md"
BEGIN, END = "<!-- table: begin -->", "<!-- table: end -->"


class Found(NamedTuple):
    """What one of them did."""

    package: str
    how: str
    rows: Array
    """Velocities [rad/s] and turn of joint 2 [rad], right after the switch and after each step."""

    @property
    def rest(self) -> float:
        """Time from which joint 2 stays below 0.01 rad/s [s]; infinite if it never does."""
        moving = np.flatnonzero(np.abs(self.rows[:, 1]) > 0.01)
        if len(moving) == 0:
            return 0.0
        return STEP * (moving[-1] + 1) if moving[-1] < STEPS else np.inf


Case = tuple[str, str, Callable[[], Array]]


def main() -> None:
    """Print the table; write it into the page if asked to."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="put the table into docs/locking.md")
    write = parser.parse_args().write
    found, missing = measure(cases())
    print(table(found))
    for package in missing:
        print(f"{package} is not installed: skipped (pip install {package})")
    if write and missing:
        raise SystemExit(f"{PAGE.name} is left as it is: not everything could be measured")
    if write:
        put(table(found))


def cases() -> list[Case]:
    """Package, way to lock, and function that does it; in the order of the table."""
    stiff = f'solref="{2 * STEP} 1" solimp="0.9999 0.9999 0.001"'
    return [
        ("pinloop", "`pl.lock`", pinloop_lock),
        ("pinloop", "velocity set to zero by hand", pinloop_zeroing),
        ("drake", "`Joint.Lock`", partial(drake, weld=False)),
        ("drake", "weld constraint switched on", partial(drake, weld=True)),
        ("mujoco", "`eq_active`, default softness", partial(mujoco, "")),
        ("mujoco", "`eq_active`, as hard as it goes", partial(mujoco, stiff)),
        ("exudyn", "`activeConnector`, `GeneralizedAlpha`", partial(exudyn, "GeneralizedAlpha")),
        ("exudyn", "`activeConnector`, `TrapezoidalIndex2`", partial(exudyn, "TrapezoidalIndex2")),
    ]


def measure(all_cases: list[Case]) -> tuple[list[Found], list[str]]:
    """Run what can be run; also returns the packages that are missing."""
    found: list[Found] = []
    missing: dict[str, None] = {}
    for package, how, run in all_cases:
        try:
            found.append(Found(package, how, run()))
        except ModuleNotFoundError:
            missing[package] = None
    return found, list(missing)


# -- pinloop --------------------------------------------------------------------------------


def arm() -> pl.Mechanism:
    """The planar 2R as a screw table, drawn with the elbow at its angle."""
    tip = [LENGTH, 0.0, 0.0]
    middle = [0.5 * LENGTH * np.cos(ELBOW), 0.5 * LENGTH * np.sin(ELBOW), 0.0]
    thin = np.diag([1e-3 * INERTIA, INERTIA, INERTIA])
    turned = np.array([[np.cos(ELBOW), -np.sin(ELBOW), 0], [np.sin(ELBOW), np.cos(ELBOW), 0]])
    turned = np.vstack([turned, [0, 0, 1]])
    bodies = [
        {"name": "upper", "mass": MASS, "com": [0.5 * LENGTH, 0, 0], "inertia": thin},
        {"name": "lower", "mass": MASS, "com": np.add(tip, middle)}
        | {"inertia": turned @ thin @ turned.T},
    ]
    hinge = {"pair": "revolute", "axis": [0, 0, 1]}
    joints = [
        hinge | {"name": "joint_1", "parent": "ground", "child": "upper", "point": [0, 0, 0]},
        hinge | {"name": "joint_2", "parent": "upper", "child": "lower", "point": tip},
    ]
    return pl.from_screws({"name": "2R", "gravity": [0, 0, 0], "bodies": bodies, "joints": joints})


def pinloop_lock() -> Array:
    """An event at the start of the run."""
    robot, method = arm(), pl.MuntheKaas("rk4", step=STEP)
    events = [pl.lock("joint_2", at=0.0)]
    run = pl.simulate(robot, [0, 0], [1, 1], until=STEP * STEPS, method=method, events=events)
    # The first state is the one before the lock.
    return np.column_stack([run.v, run.q[:, 1]])[1:]


def pinloop_zeroing() -> Array:
    """Start with the joint locked and its velocity zero."""
    robot, method = arm(), pl.MuntheKaas("rk4", step=STEP)
    mode = pl.Mode(locks=(pl.simulation.Locked("joint_2"),))
    run = pl.simulate(robot, [0, 0], [1, 0], until=STEP * STEPS, method=method, mode=mode)
    return np.column_stack([run.v, run.q[:, 1]])


# -- peers: imported when they are measured -------------------------------------------------


def drake(weld: bool) -> Array:
    """Discrete `MultibodyPlant` with its default contact solver."""
    tree = import_module("pydrake.multibody.tree")
    plant = import_module("pydrake.multibody.plant").MultibodyPlant(STEP)
    math = import_module("pydrake.math")
    plant.mutable_gravity_field().set_gravity_vector([0, 0, 0])
    thin = tree.RotationalInertia(1e-3 * INERTIA, INERTIA, INERTIA)
    rod = tree.SpatialInertia.MakeFromCentralInertia(MASS, [0.5 * LENGTH, 0, 0], thin)
    upper, lower = plant.AddRigidBody("upper", rod), plant.AddRigidBody("lower", rod)
    tip = math.RigidTransform([LENGTH, 0, 0])
    end = plant.AddFrame(tree.FixedOffsetFrame("end", upper.body_frame(), tip))
    ends = ((plant.world_frame(), upper.body_frame()), (end, lower.body_frame()))
    joints = [
        plant.AddJoint(tree.RevoluteJoint(f"joint_{k + 1}", *frames, [0, 0, 1]))
        for k, frames in enumerate(ends)
    ]
    if weld:
        bent = math.RigidTransform(math.RollPitchYaw(0, 0, ELBOW), [LENGTH, 0, 0])
        constraint = plant.AddWeldConstraint(upper, bent, lower, math.RigidTransform())
    plant.Finalize()
    simulator = import_module("pydrake.systems.analysis").Simulator(plant)
    context = simulator.get_mutable_context()
    plant.SetPositions(context, [0, ELBOW])
    plant.SetVelocities(context, [1, 1])
    if weld:
        plant.SetConstraintActiveStatus(context, constraint, True)
    else:
        joints[1].Lock(context)
    simulator.Initialize()

    def state() -> Array:
        return np.append(plant.GetVelocities(context), plant.GetPositions(context)[1] - ELBOW)

    rows = [state()]
    for k in range(STEPS):
        simulator.AdvanceTo((k + 1) * STEP)
        rows.append(state())
    return np.array(rows)


def mujoco(softness: str) -> Array:
    """A joint equality that is inactive in the model and switched on in the data."""
    module = import_module("mujoco")
    rod = f'<inertial pos="{LENGTH / 2} 0 0" mass="{MASS}" diaginertia="1e-4 {INERTIA} {INERTIA}"/>'
    model = module.MjModel.from_xml_string(
        f"""<mujoco>
          <option timestep="{STEP}" gravity="0 0 0"/>
          <worldbody>
            <body> <joint name="joint_1" axis="0 0 1"/> {rod}
              <body pos="{LENGTH} 0 0"> <joint name="joint_2" axis="0 0 1"/> {rod} </body>
            </body>
          </worldbody>
          <equality>
            <joint joint1="joint_2" polycoef="{ELBOW} 0 0 0 0" active="false" {softness}/>
          </equality>
        </mujoco>"""
    )
    data = module.MjData(model)
    data.qpos[1], data.qvel[:] = ELBOW, 1.0
    data.eq_active[0] = 1
    rows = [[*data.qvel, 0.0]]
    for _ in range(STEPS):
        module.mj_step(model, data)
        rows.append([*data.qvel, data.qpos[1] - ELBOW])
    return np.array(rows)


def exudyn(solver: str) -> Array:
    """Two bodies in the plane; a coordinate constraint ties their angles when it is active."""
    module, item = import_module("exudyn"), import_module("exudyn.itemInterface")
    system = module.SystemContainer().AddSystem()
    tip, middle = np.array([LENGTH, 0.0]), 0.5 * LENGTH * np.array([np.cos(ELBOW), np.sin(ELBOW)])
    speed = np.array([0.0, LENGTH]) + 2.0 * np.array([-middle[1], middle[0]])
    half = 0.5 * LENGTH
    states = (([half, 0.0, 0.0], [0.0, half, 1.0]), ([*(tip + middle), ELBOW], [*speed, 2.0]))
    nodes = [
        system.AddNode(item.NodeRigidBody2D(referenceCoordinates=place, initialVelocities=rate))
        for place, rate in states
    ]
    # By position: these two arguments have changed their names.
    bodies = [
        system.AddObject(item.ObjectRigidBody2D("", MASS, INERTIA, nodeNumber=node))
        for node in nodes
    ]
    ground = system.AddObject(item.ObjectGround())

    def end(body: int, x: float) -> Any:
        return system.AddMarker(item.MarkerBodyPosition(bodyNumber=body, localPosition=[x, 0, 0]))

    hinges = ((ground, 0.0, bodies[0], -half), (bodies[0], half, bodies[1], -half))
    for body, x, other, y in hinges:
        system.AddObject(item.RevoluteJoint2D(markerNumbers=[end(body, x), end(other, y)]))
    angles = [
        system.AddMarker(item.MarkerNodeCoordinate(nodeNumber=n, coordinate=2)) for n in nodes
    ]
    lock = system.AddObject(item.CoordinateConstraint(markerNumbers=angles, activeConnector=False))
    system.Assemble()
    system.SetObjectParameter(lock, "activeConnector", True)
    rows: list[list[float]] = []

    kinds = module.OutputVariableType.Coordinates_t, module.OutputVariableType.Coordinates

    def keep(system: Any, _: float) -> bool:
        rates, turns = ([system.GetNodeOutput(n, kind)[2] for n in nodes] for kind in kinds)
        rows.append([rates[0], rates[1] - rates[0], turns[1] - turns[0]])
        return True

    system.SetPreStepUserFunction(keep)
    settings = module.SimulationSettings()
    settings.timeIntegration.numberOfSteps = STEPS
    settings.timeIntegration.endTime = STEP * STEPS
    settings.timeIntegration.verboseMode = 0
    settings.solution.file.write = False
    system.SolveDynamic(settings, solverType=getattr(module.DynamicSolverType, solver))
    keep(system, 0.0)
    return np.array(rows)


# -- table ----------------------------------------------------------------------------------


def table(found: list[Found]) -> str:
    """Markdown table with the versions that were measured."""
    head = (
        "| simulator | how joint 2 is locked | joint 1 after 1 ms | joint 2 after 1 ms "
        "| joint 1 after 0.5 s | error | joint 2 at rest after | it turned by |"
    )
    lines = [head, "|" + "---|" * 2 + "---:|" * 6]
    for one in found:
        (v1, v2, _), end = one.rows[1], one.rows[-1, 0]
        rest = "at once" if one.rest == 0 else f"{1e3 * one.rest:.0f} ms"
        turn = 1e3 * np.abs(one.rows[:, 2]).max()
        release = pl.__version__ if one.package == "pinloop" else version(one.package)
        lines.append(
            f"| {one.package} {release} | {one.how} | {v1:.5f} | {v2:.5f} | {end:.5f} "
            f"| {100 * (end / EXACT - 1):+.3f} % | {rest} | {turn:.3g} mrad |"
        )
    return "\n".join(lines)


def put(text: str) -> None:
    """Replace what stands between the markers of the page."""
    page = PAGE.read_text(encoding="utf-8")
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    PAGE.write_text(f"{before}{BEGIN}\n{text}\n{END}{after}", encoding="utf-8")


if __name__ == "__main__":
    main()

"""How the time of one acceleration grows with the number of bodies: O-DCA and others.

Run with ``python -m benchmarks.odca_scaling`` from the root of the repository; ``--plot PATH``
writes the figure of the documentation. Two families: a chain of bars that hangs in an arc between
two supports, closed at its end, and a ladder whose every cell is a loop that shares its rungs with
the next. All start in motion, and all methods solve for the same accelerations:

* O-DCA (`pinloop.ODCA`);
* the dense formulation of pinloop (`pinloop.Augmented`);
* ``constraintDynamics`` of Pinocchio, and its ``lcaba``: C++, where their result is right to 1e-6.

Times are the least CPU time of many evaluations with one thread, so that other work on the machine
does not show. Every size runs in a process of its own: memory is what its peak grew by. Whatever
needs a `pin.Data` ends at a few hundred bodies, because in Pinocchio 4.1 that grows with the cube
of the coordinates (4 GB at 512).
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from importlib import import_module

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

import pinloop as pl
from pinloop.model.description import GROUND, Body, Description, Joint, constant
from pinloop.model.graph import spanning_tree
from pinloop.model.mechanism import Mechanism
from pinloop.model.pairs import make_pair
from pinloop.model.reduction import LoopReduction
from pinloop.model.tree import LoopJoint, build_model

Array = NDArray[np.float64]

SIZES = (16, 32, 64, 96, 128, 192, 256, 384, 512, 1024, 2048, 4096)
FAMILIES = ("chain", "ladder")
METHODS = ("O-DCA", "Augmented", "constraintDynamics", "lcaba")
LARGEST = {"O-DCA": 4096, "Augmented": 384, "constraintDynamics": 512, "lcaba": 256}
BUDGET = 1.0
"""Time spent on one measurement [s]."""
BAR = 0.5
UPRIGHT = np.array([[1.0, 0.0, 0.0], [0.0, 0.0, -1.0], [0.0, 1.0, 0.0]])
"""Joint frames: z is normal to the plane of motion."""


@dataclass(frozen=True)
class Measured:
    """One cell of the table; time in seconds, memory in MB, error against O-DCA."""

    family: str
    method: str
    bodies: int
    seconds: float
    memory: float
    error: float


# -- robots ---------------------------------------------------------------------------------


def robot(family: str, bodies: int) -> pl.Mechanism:
    """A robot of about that many bodies, its planar loops regularized to two rows each."""
    description = chain(bodies) if family == "chain" else ladder(max(1, bodies // 3))
    # As `mechanism.build` does it, without its checks of masses: they need a `pin.Data`.
    tree = spanning_tree([b.name for b in description.bodies], description.joints, None)
    model = build_model(description, tree)
    loops = tuple(
        LoopJoint(
            cut.name, cut.pair, cut.parent, cut.child, int(model.getFrameId(f"{cut.name}/A")),
            int(model.getFrameId(f"{cut.name}/B")), loop,
        )
        for cut, loop in zip(tree.cuts, tree.loops, strict=True)
    )  # fmt: skip
    made = Mechanism(description, model, loops, tree, given_length=1.0)
    # What pl.regularize finds for loops of parallel hinges; it takes long for a thousand of them.
    planar = tuple(
        LoopReduction(loop.name, "revolute", "", "", "", "", "", 5, np.eye(5)[:2])
        for loop in made.loops
    )
    rows = 2 * len(planar)
    report = pl.Regularization(planar, (), 5 * len(planar), rows, made.nv - rows)
    return replace(made, regularization=report)


def chain(bodies: int) -> Description:
    """Bars from one support to the other, along half a regular polygon below them."""
    heading = -np.pi / 2 + np.pi / bodies * (np.arange(bodies) + 0.5)
    ends = BAR * np.cumsum(np.stack([np.cos(heading), np.sin(heading)], axis=1), axis=0)
    turns = np.diff(heading, prepend=0.0)
    names = [GROUND] + [f"bar_{k}" for k in range(bodies)]
    joints = [
        _hinge(f"hinge_{k}", names[k], names[k + 1], [BAR if k else 0.0, 0.0], [0, 0], turns[k])
        for k in range(bodies)
    ]
    joints.append(_hinge("support", GROUND, names[-1], ends[-1], [BAR, 0.0], heading[-1], cut=True))
    return Description("chain", tuple(_bar(name) for name in names[1:]), tuple(joints))


def ladder(cells: int) -> Description:
    """Cells of two rails and a rung, hanging from the ground at a slant: coupled loops."""
    names, joints = [], []
    for k in range(cells):
        above = GROUND if k == 0 else f"rung_{k - 1}"
        left, right, rung = f"left_{k}", f"right_{k}", f"rung_{k}"
        names += [left, rung, right]
        down = -np.pi / 2 + 0.3
        joints += [
            _hinge(f"a_{k}", above, left, [0.0, 0.0], [0.0, 0.0], down),
            _hinge(f"b_{k}", left, rung, [BAR, 0.0], [0.0, 0.0], -down),
            _hinge(f"c_{k}", above, right, [BAR, 0.0], [0.0, 0.0], down),
            _hinge(f"d_{k}", right, rung, [BAR, 0.0], [BAR, 0.0], -down, cut=True),
        ]
    return Description("ladder", tuple(_bar(name) for name in names), tuple(joints))


def _bar(name: str) -> Body:
    moment = BAR**2 / 12
    return Body(
        name, 1.0, constant([BAR / 2, 0, 0]), constant(np.diag([1e-2 * moment, moment, moment]))
    )


def _hinge(
    name: str, parent: str, child: str, there: object, here: object, turn: float, cut: bool = False
) -> Joint:
    """A hinge at a point of the parent and a point of the child, turned at the reference."""
    (x, y), (u, w) = np.asarray(there, float), np.asarray(here, float)
    about = pin.utils.rotate("z", float(turn))
    first = parent == GROUND
    seat = UPRIGHT if first else np.eye(3)
    place = pin.SE3(seat @ about, seat @ np.array([x, y, 0.0]))
    on_child = pin.SE3(np.eye(3), np.array([u, w, 0.0]))
    return Joint(name, make_pair("revolute"), parent, child, place, on_child, cut=cut)


# -- methods --------------------------------------------------------------------------------


class State:
    """A robot in motion, and its acceleration by O-DCA."""

    def __init__(self, family: str, bodies: int) -> None:
        self.robot = robot(family, bodies)
        self.memory = _memory()
        self.q, self.rest = self.robot.neutral, np.zeros(self.robot.nv)
        self.equations = pl.EquationsOfMotion(self.robot, formulation=pl.ODCA())
        wanted = np.random.default_rng(0).normal(size=self.robot.nv) / bodies
        self.q, self.v = self.equations.closed(0.0, self.q, wanted)

    def odca(self) -> Callable[[], Array]:
        """O-DCA."""
        return lambda: self.equations.acceleration(0.0, self.q, self.v)

    def augmented(self) -> Callable[[], Array]:
        """The dense formulation."""
        equations = pl.EquationsOfMotion(self.robot)
        return lambda: equations.acceleration(0.0, self.q, self.v)

    def pinocchio(self, solve: Callable[..., Array], low: float) -> Callable[[], Array]:
        """`constraintDynamics` or `lcaba`; points are closed, which leaves one row too many."""
        model = self.robot.model
        models, datas = pin.StdVec_RigidConstraintModel(), pin.StdVec_RigidConstraintData()
        for loop in self.robot.loops:
            a, b = model.frames[loop.frame_a], model.frames[loop.frame_b]
            models.append(
                pin.RigidConstraintModel(
                    pin.ContactType.CONTACT_3D, model, a.parentJoint, a.placement, b.parentJoint,
                    b.placement, pin.ReferenceFrame.LOCAL,
                )
            )  # fmt: skip
        for one in models:
            datas.append(one.createData())
        data = pin.Data(model)
        if low:
            pin.computeJointMinimalOrdering(model, data, models)
        else:
            pin.initConstraintDynamics(model, data, models, datas)
        settings = pin.ProximalSettings(1e-12, low or 1e-8, 50)
        return lambda: np.asarray(
            solve(model, data, self.q, self.v, self.rest, models, datas, settings)
        )

    def method(self, name: str) -> Callable[[], Array]:
        """One evaluation of a method."""
        if name == "O-DCA":
            return self.odca()
        if name == "Augmented":
            return self.augmented()
        if name == "lcaba":
            return self.pinocchio(pin.lcaba, 1e-6)
        return self.pinocchio(pin.constraintDynamics, 0.0)


def _memory() -> float:
    """Largest memory of this process so far [MB]."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def measure(family: str, method: str, bodies: int) -> Measured:
    """Time, memory and error of one method, in this process."""
    state = State(family, bodies)
    before = state.memory if method == "O-DCA" else _memory()
    run = state.method(method)
    a = run().copy()
    grown = _memory() - before
    times: list[float] = []
    begin = time.perf_counter()
    while len(times) < 5 or (time.perf_counter() - begin < BUDGET and len(times) < 500):
        start = time.process_time()
        run()
        times.append(time.process_time() - start)
    exact = a if method == "O-DCA" else state.odca()()
    error = float(np.abs(a - exact).max() / np.abs(exact).max())
    return Measured(family, method, state.robot.nv, min(times), grown, error)


# -- the table ------------------------------------------------------------------------------


def all_measured() -> list[Measured]:
    """Every cell in its own process."""
    found = []
    for family in FAMILIES:
        for method in METHODS:
            for bodies in SIZES:
                if bodies > LARGEST[method]:
                    continue
                command = [
                    sys.executable,
                    "-m",
                    __spec__.name,
                    "--one",
                    family,
                    method,
                    str(bodies),
                ]
                environment = os.environ | {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
                done = subprocess.run(command, capture_output=True, text=True, env=environment)
                if done.returncode != 0:
                    why = (done.stderr.splitlines() or [f"signal {-done.returncode}"])[-1]
                    print(f"{family:8s}{method:20s}{bodies:6d} bodies   failed: {why}", flush=True)
                    break
                found.append(Measured(**json.loads(done.stdout.splitlines()[-1])))
                print(_line(found[-1]), flush=True)
    return found


def _line(one: Measured) -> str:
    wrong = "" if one.error < 1e-6 else "  wrong"
    return (
        f"{one.family:8s}{one.method:20s}{one.bodies:6d} bodies {1e3 * one.seconds:10.3f} ms"
        f"{one.memory:10.1f} MB   error {one.error:.0e}{wrong}"
    )


def exponent(found: list[Measured], family: str, method: str, least: int) -> float:
    """Slope of time over bodies, both logarithmic, from ``least`` bodies on."""
    used = [m for m in found if (m.family, m.method) == (family, method) and m.bodies >= least]
    if len(used) < 2:
        return float("nan")
    sizes, times = np.log([m.bodies for m in used]), np.log([m.seconds for m in used])
    return float(np.polyfit(sizes, times, 1)[0])


def crossover(found: list[Measured], family: str, method: str) -> float:
    """Number of bodies from which O-DCA is faster, between measured sizes by interpolation."""
    ours = {m.bodies: m.seconds for m in found if (m.family, m.method) == (family, "O-DCA")}
    theirs = [m for m in found if (m.family, m.method) == (family, method)]
    before: tuple[float, float] | None = None
    for one in theirs:
        lead = float(np.log(one.seconds / ours[one.bodies]))
        if lead > 0:
            if before is None:
                return float(one.bodies)
            size, behind = before
            part = -behind / (lead - behind)
            return float(size * (one.bodies / size) ** part)
        before = float(one.bodies), lead
    return float("inf")


def summary(found: list[Measured]) -> None:
    """Fitted exponents and crossovers."""
    for family in FAMILIES:
        print(f"\n{family}: exponent of O-DCA from 256 bodies on "
              f"{exponent(found, family, 'O-DCA', 256):.2f}")  # fmt: skip
        for method in METHODS[1:]:
            slope = exponent(found, family, method, 96)
            size = crossover(found, family, method)
            says = f"O-DCA is faster from {size:.0f} bodies on" if np.isfinite(size) else (
                "O-DCA is not faster up to the largest size"
            )  # fmt: skip
            print(f"  {method}: exponent from 96 bodies on {slope:.2f}; {says}")


def draw(found: list[Measured], path: str) -> None:
    """Time over bodies, a panel per family."""
    figure = import_module("matplotlib.figure").Figure(figsize=(10, 4.2), layout="constrained")
    panels = figure.subplots(1, len(FAMILIES), sharey=True)
    for panel, family in zip(panels, FAMILIES, strict=True):
        for method, marker in zip(METHODS, "os^x", strict=True):
            cells = [m for m in found if (m.family, m.method) == (family, method)]
            cells = [m for m in cells if m.error < 1e-6]
            if cells:
                sizes = [m.bodies for m in cells]
                panel.loglog(sizes, [1e3 * m.seconds for m in cells], marker + "-", label=method)
        panel.set_title({"chain": "closed chain", "ladder": "ladder of coupled loops"}[family])
        panel.set_xlabel("bodies")
        panel.grid(True, which="both", alpha=0.25)
    panels[0].set_ylabel("one acceleration, CPU time [ms]")
    panels[-1].legend()
    figure.savefig(path, metadata={"Date": None} if path.endswith(".svg") else None)


def main() -> None:
    """Print all cells, exponents and crossovers; draw if asked to."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--plot", help="file for the figure")
    parser.add_argument("--one", nargs=3, metavar=("FAMILY", "METHOD", "BODIES"))
    given = parser.parse_args()
    if given.one:
        family, method, bodies = given.one
        print(json.dumps(asdict(measure(family, method, int(bodies)))))
        return
    found = all_measured()
    summary(found)
    if given.plot:
        draw(found, given.plot)


if __name__ == "__main__":
    main()

"""What brakes are like, and published stops against computed ones: tables of the pages.

Run with ``python -m tools.published_stops --write`` from the root of the repository; it needs
example-robot-data, and minutes. Tables of makers are in ``examples/published``.

Held out: of each table some numbers are fitted, and the others are predicted.

- UR5, UR3, KR 20 R3100, category 0: the torque of the brake of each axis is fitted to its time, and
  its angle is predicted. A part of the torque falls with the speed, as of a shorted motor; how
  large that part is comes from the other two robots, where time and angle tell it.
- TM5-700, category 1: an exponential ramp to rest in a fixed time, whose two numbers are fitted
  per axis to times and angles at 33 and 100 % of the speed, predicts those at 66 %.
- YS100A, HH050, category 0: distances are given in mm, at a radius that is not told. It is fitted
  to distances of the YS080, whose arm is the same; others follow from their times and speeds.
"""

from __future__ import annotations

import argparse
import math
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib.metadata import files
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy.optimize import brentq
from scipy.stats import binom

import pinloop as pl
from pinloop.model.description import GROUND
from pinloop.model.mechanism import build
from pinloop.safety.brakes.estimates import BRAKE_SHARE, DELAY, RISE, ROTOR, STOP_TIME, Estimate

from .pages import DOCS, ROOT, number, put, table

__all__ = [
    "Held",
    "axes",
    "estimates_table",
    "held_table",
    "hyundai",
    "median_with_ends",
    "ramps",
    "sentence",
    "shapes",
]

TABLES = ROOT / "examples" / "published"
CATEGORY_0 = {
    "UR5": "ur5_robot.urdf", "UR3": "ur3_robot.urdf", "KR 20 R3100": "kr20_r3100.urdf",
}  # fmt: skip
UR3_EFFORT = (56.0, 56.0, 28.0, 12.0, 12.0, 12.0)
"""Largest torques of a UR3 by its maker [N m]; its file has those of a UR10."""
_STRONG = 1e5
"""Torque of the brakes of axes at rest [N m]."""


class Held(NamedTuple):
    """A number that was predicted: of which robot and axis, what it is, and both values."""

    robot: str
    axis: str
    what: str
    published: float
    predicted: float

    @property
    def error(self) -> float:
        """How far it is off, as a part of what is published."""
        return abs(self.predicted / self.published - 1.0)


def median_with_ends(errors: Sequence[float]) -> tuple[float, float, float]:
    """The median, and the order statistics between which that of all such numbers is, at 95 %."""
    ranked = np.sort(errors)
    n = len(ranked)
    k = int(binom.ppf(0.025, n, 0.5))
    while k > 1 and binom.cdf(k - 1, n, 0.5) > 0.025:
        k -= 1
    return float(np.median(ranked)), float(ranked[max(k - 1, 0)]), float(ranked[min(n - k, n - 1)])


# -- category 0: torque from the time, shape from other robots ------------------------------------


@cache
def robot_of(name: str) -> pl.Mechanism:
    """A robot of category 0, with the effort limits of its maker."""
    file = CATEGORY_0[name]
    path = TABLES / file
    if not path.is_file():
        (path,) = (
            Path(str(x.locate())) for x in files("example-robot-data") or () if x.name == file
        )
    robot = pl.load(path, kinematics_only=True)
    return _limited(robot, UR3_EFFORT) if name == "UR3" else robot


def _limited(robot: pl.Mechanism, efforts: Sequence[float]) -> pl.Mechanism:
    by = dict(zip(robot.joints, efforts, strict=True))
    joints = tuple(
        replace(joint, effort=(by[joint.name],)) if joint.name in by else joint
        for joint in robot.description.joints
    )
    return build(replace(robot.description, joints=joints))


def rows_of(name: str) -> tuple[pl.safety.Measured, ...]:
    """The published rows of a robot of category 0."""
    tables = {"UR5": "../ur5_stops.csv", "UR3": "ur3.csv", "KR 20 R3100": "kr20_r3100.csv"}
    return pl.safety.StoppingTable.from_csv(TABLES / tables[name]).rows


@dataclass(frozen=True, eq=False)
class Axis:
    """An axis of a robot of category 0, and its row."""

    robot: str
    row: pl.safety.Measured

    @property
    def published(self) -> tuple[float, float]:
        """Time [s] and angle [rad]."""
        assert self.row.time is not None and self.row.angle is not None
        return self.row.time, self.row.angle

    def stop(self, torque: float, share: float) -> tuple[float, float]:
        """Time and angle with a torque at rest; a share of that at full speed is viscous."""
        robot, speed = robot_of(self.robot), abs(self.row.speed)
        strong = pl.safety.JointBrake(side="joint", dynamic_torque=_STRONG)
        viscous = share / (1.0 - share) * torque / speed
        own = pl.safety.JointBrake(side="joint", dynamic_torque=torque, short_circuit=viscous)
        brakes = pl.Brakes(dict.fromkeys(robot.joints, strong) | {self.row.joint: own})
        result = self.row.stop(robot, brakes, until=10 * self.published[0])
        joint = result.joints[self.row.joint]
        return (joint.time, abs(joint.angle)) if result.holds else (math.inf, math.inf)

    def angle_for_time(self, share: float) -> float:
        """The angle with the torque that takes the published time."""
        time, _ = self.published
        loaded = robot_of(self.robot).with_payload("tool0", self.row.payload)
        q = loaded.configuration(dict(self.row.pose))
        own = loaded.coordinates(self.row.joint).v.start
        inertia = float(pl.EquationsOfMotion(loaded).mass(q)[own, own])
        least = inertia * abs(self.row.speed) / time

        def miss(x: float) -> float:
            return 1.0 / time - 1.0 / self.stop(math.exp(x), share)[0]

        ends = math.log(0.1 * least * (1.0 - share)), math.log(8.0 * least)
        return self.stop(math.exp(brentq(miss, *ends, xtol=2e-4)), share)[1]

    @property
    def share(self) -> float:
        """The share with which both published numbers come out; 0 if none makes it long enough."""

        def miss(share: float) -> float:
            return self.angle_for_time(share) - self.published[1]

        return 0.0 if miss(0.0) <= 0.0 else float(brentq(miss, 0.0, 0.9, xtol=3e-3))


@cache
def axes() -> tuple[Axis, ...]:
    """All axes of category 0 with time and angle."""
    return tuple(Axis(name, row) for name in CATEGORY_0 for row in rows_of(name))


def shapes() -> tuple[list[Held], dict[str, float]]:
    """Angles from times and the shape of other robots, and the share that each robot was given."""
    own = {axis: axis.share for axis in axes()}
    given = {
        robot: float(np.median([own[axis] for axis in axes() if axis.robot != robot]))
        for robot in CATEGORY_0
    }
    held = [
        Held(x.robot, x.row.joint, "angle", x.published[1], x.angle_for_time(given[x.robot]))
        for x in axes()
    ]
    return held, given


# -- category 1: an exponential ramp --------------------------------------------------------------


def ramps() -> list[Held]:
    """Times and angles of the TM5-700 at 66 % of the speed."""
    rows = pl.safety.StoppingTable.from_csv(TABLES / "tm5_700.csv").rows
    wheel = _wheel()
    held = []
    for joint in dict.fromkeys(row.joint for row in rows):
        own = [row for row in rows if row.joint == joint]
        middle = sorted({row.speed for row in own})[1]
        known = [row for row in own if row.speed != middle]
        time = float(np.median([row.time or 0.0 for row in known]))
        share = float(np.median([(row.angle or 0.0) / row.speed for row in known])) / time
        law = pl.safety.FirstOrder(_constant(share) * time, time)
        brakes = pl.Brakes({"axis": pl.safety.JointBrake(side="joint", dynamic_torque=1e3)})
        stop = pl.stop(
            wheel, [0.0], [middle], brakes=brakes, category=pl.safety.Category1(law=law)
        ).joints["axis"]
        for row in (row for row in own if row.speed == middle):
            assert row.time is not None and row.angle is not None
            held.append(Held("TM5-700", joint, "time", row.time, stop.time))
            held.append(Held("TM5-700", joint, "angle", row.angle, stop.angle))
    return held


def _wheel() -> pl.Mechanism:
    joint = {"name": "axis", "pair": "revolute", "parent": GROUND, "child": "wheel"}
    where = {"point": [0, 0, 0], "axis": [0, 0, 1]}
    body = {"name": "wheel", "mass": 1.0, "com": [0, 0, 0], "inertia": np.eye(3)}
    return pl.from_screws({"bodies": [body], "joints": [joint | where]})


def _constant(share: float) -> float:
    """Time constant over time of the ramp whose angle is a share of speed times time."""

    def angle(constant: float) -> float:
        rest = math.exp(-1.0 / constant)
        return (constant * (1.0 - rest) - rest) / (1.0 - rest)

    return float(brentq(lambda constant: angle(constant) - share, 0.02, 50.0))


# -- category 0, in mm ----------------------------------------------------------------------------

HYUNDAI: Mapping[str, Sequence[tuple[float, float, float]]] = {
    "YS080": ((170, 0.48, 1096), (140, 0.72, 1444), (160, 0.59, 1036)),
    "YS100A": ((150, 0.53, 1114), (120, 0.57, 975), (140, 0.62, 970)),
    "HH050": ((175, 0.45, 1107), (175, 0.66, 1634), (175, 0.47, 931)),
}
"""Speed [deg/s], time [s], distance [mm] of axes S, H, V: Hyundai Robotics, maintenance manual of
HH050, HH030L, YS080 and YS100A, 2.3 and 3.5.6. Standard load; all three weigh 645 kg."""


def hyundai() -> list[Held]:
    """Distances of YS100A and HH050, with the radius and the shape of the YS080."""
    held = []
    for k, axis in enumerate("SHV"):
        speed, time, distance = HYUNDAI["YS080"][k]
        scale = distance / (speed * time)
        for robot in ("YS100A", "HH050"):
            speed, time, distance = HYUNDAI[robot][k]
            held.append(Held(robot, axis, "distance", distance, scale * speed * time))
    return held


# -- brakes that are guessed ----------------------------------------------------------------------


class Guess(NamedTuple):
    """An axis stopped with brakes guessed from its robot's file; the band of its time."""

    axis: Axis
    time: float
    angle: float
    band: tuple[float, float]

    @property
    def inside(self) -> bool:
        """Whether the published time is within the band."""
        return self.band[0] <= self.axis.published[0] <= self.band[1]


def guesses() -> list[Guess]:
    """All axes of category 0 with brakes that are guessed."""
    found = []
    for axis in axes():
        robot = robot_of(axis.robot)
        result = axis.row.stop(robot, pl.Brakes.template(robot))
        joint, band = result.joints[axis.row.joint], result.intervals["stopping_time"]
        found.append(Guess(axis, joint.time, abs(joint.angle), (band.low, band.high)))
    return found


# -- what is written ------------------------------------------------------------------------------

_ROTOR = "time in which the peak torque brings the rotor to full speed"
_ROWS = (
    ("brake torque while sliding, as a share of the peak torque of the drive", BRAKE_SHARE, 1, ""),
    *((f"{_ROTOR}, {gear} drives", own, 1e3, " ms") for gear, own in ROTOR.items()),
    ("delay of the brake", DELAY, 1e3, " ms"),
    ("rise of its torque", RISE, 1e3, " ms"),
    ("controlled stop from full speed", STOP_TIME, 1e3, " ms"),
)


def estimates_table() -> str:
    """What is guessed of a machine of which nothing is known, and where the figures come from."""
    head = ("what", "guess", "nine of ten", "figures", "sources")
    return table(head, [_row(*row) for row in _ROWS], " r r")


def _row(what: str, estimate: Estimate, factor: float, unit: str) -> list[str]:
    numbers = (estimate.value, estimate.low, estimate.high)
    value, low, high = (number(float(f"{factor * x:.2g}"), 3) for x in numbers)
    count, sources = str(estimate.count), "; ".join(estimate.sources)
    return [what, f"{value}{unit}", f"{low} to {high}{unit}", count, sources]


def held_table(held: Sequence[Held]) -> str:
    """Errors by robot and kind of number, and all together."""
    groups: dict[tuple[str, str], list[float]] = {}
    for x in held:
        groups.setdefault((x.robot, x.what), []).append(x.error)
    groups["all", "all"] = [x.error for x in held]
    rows = [
        [robot, what, str(len(errors)), *(f"{100 * x:.1f}" for x in _summary(errors))]
        for (robot, what), errors in groups.items()
    ]
    head = (
        "robot",
        "predicted",
        "numbers",
        "median error [%]",
        "from [%]",
        "to [%]",
        "largest [%]",
    )
    return table(head, rows, "  rrrrr")


def _summary(errors: Sequence[float]) -> tuple[float, float, float, float]:
    return (*median_with_ends(errors), max(errors))


def guess_table(found: Sequence[Guess]) -> str:
    """Published and computed times and angles with guessed brakes."""
    head = (
        "robot", "axis", "time [ms]", "guessed", "95 %", "angle [deg]", "guessed",
        "published time within",
    )  # fmt: skip
    rows = []
    for x in found:
        time, angle = x.axis.published
        low, high = (number(float(f"{1e3 * end:.2g}")) for end in x.band)
        rows.append([
            x.axis.robot, x.axis.row.joint, f"{1e3 * time:.0f}", f"{1e3 * x.time:.0f}",
            f"{low} to {high}", f"{math.degrees(angle):.1f}", f"{math.degrees(x.angle):.1f}",
            "yes" if x.inside else "no",
        ])  # fmt: skip
    return table(head, rows, "  rr rr")


def sentence(held: Sequence[Held], found: Sequence[Guess]) -> str:
    """The paragraph of the README."""
    names = {x.robot for x in held}
    every, angles = (
        "{:.1f} % (95 % interval: {:.1f} to {:.1f} %)".format(*(100 * x for x in ends))
        for ends in (
            median_with_ends([x.error for x in held]),
            median_with_ends([x.error for x in held if x.robot in CATEGORY_0]),
        )
    )
    ratio = np.median([x.time / x.axis.published[0] for x in found])
    inside = sum(x.inside for x in found)
    text = (
        "Against stopping tables that makers publish: fitted to some of their numbers, stops of "
        f"{len(names)} robots predict the other {len(held)} with a median error of {every}, and "
        f"angles of category 0 from nothing but their times with one of {angles}; "
        "[how](docs/stopping.md#fit-and-prediction). With brakes that are only guessed from a "
        f"robot file, stops take {ratio:.1f} times the published time in the median; {inside} of "
        f"{len(found)} published times are within the band that is said with them."
    )
    return textwrap.fill(text, 110) + "\n"


def main() -> None:
    """Compute everything, print it, and write it if asked."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="write into the pages")
    write = parser.parse_args().write
    (angles, given), found = shapes(), guesses()
    held = [*angles, *ramps(), *hyundai()]
    shares = ", ".join(f"{100 * share:.0f} % for {name}" for name, share in given.items())
    made = (
        (DOCS / "brakes.md", "estimates", estimates_table()),
        (DOCS / "stopping.md", "held out", held_table(held)),
        (DOCS / "stopping.md", "shares", f"Shares from the other robots: {shares}.\n"),
        (DOCS / "stopping.md", "guessed brakes", guess_table(found)),
        (ROOT / "README.md", "published stops", sentence(held, found)),
    )
    for page, name, text in made:
        print(f"{name}\n{text}")
        if write:
            put(page, name, text)


if __name__ == "__main__":
    main()

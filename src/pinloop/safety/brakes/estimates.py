"""What brakes and rotors of robots are like, from catalogues and published stops: the whole table.

Each figure has its source. An estimate is their geometric mean, every source counting alike, with
the ends between which nine of ten such machines lie if logarithms of figures are normal. Knows no
robot: what a template makes of the estimates is in `template`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import groupby
from typing import Literal, NamedTuple

NINE_OF_TEN = 1.645
"""Standard deviations from the mean to either end of the middle nine tenths."""
_PEAK_TO_RATED = 3.0
"""Peak torque of servo motors over the rated one: SGMSH and HG-KN in the table below."""


@dataclass(frozen=True)
class Estimate:
    """A number that is guessed.

    Args:
        value: the guess.
        low: nine of ten are between this.
        high: and this.
        sources: where the figures come from.
        count: how many figures there are.
    """

    value: float
    low: float
    high: float
    sources: tuple[str, ...]
    count: int

    def __str__(self) -> str:
        """How the guess came about."""
        ends = f"nine of ten between {self.low:.2g} and {self.high:.2g}"
        return f"{self.count} figures of {len(self.sources)} sources, {ends}"

    def factors(self) -> tuple[float, float]:
        """The ends as parts of the guess."""
        return self.low / self.value, self.high / self.value


class Motor(NamedTuple):
    """A motor, or an actuator at its output: inertia of its rotor, peak torque, top speed."""

    source: str
    inertia: float
    torque: float
    speed: float

    @property
    def figure(self) -> float:
        """Time in which its peak torque brings its own rotor to its top speed [s].

        A gear does not change it, so it tells the inertia at a joint from effort and speed there.
        """
        return self.inertia * self.speed / self.torque


class Figure(NamedTuple):
    """A share or a time, and who says so."""

    source: str
    figure: float


def _estimate(figures: Iterable[Motor | Figure]) -> Estimate:
    rows = sorted(figures, key=lambda row: row.source)
    groups = [list(some) for _, some in groupby(rows, key=lambda row: row.source)]
    logs = [[math.log(row.figure) for row in some] for some in groups]
    mean = sum(sum(some) / len(some) for some in logs) / len(groups)
    spread = sum(sum((x - mean) ** 2 for x in some) / len(some) for some in logs) / len(groups)
    width = NINE_OF_TEN * math.sqrt(spread * len(rows) / (len(rows) - 1))
    low, value, high = (math.exp(mean + x) for x in (-width, 0.0, width))
    return Estimate(value, low, high, tuple(some[0].source for some in groups), len(rows))


def _motors(source: str, *rows: tuple[float, float, float], unit: float = 1.0) -> list[Motor]:
    """Motors of one source: inertia, peak torque [N m], top speed [1/min]."""
    return [Motor(source, unit * J, T, n * math.pi / 30) for J, T, n in rows]


_FHA = "Harmonic Drive LLC, FHA-C series manual, chapter 1.4.2: actuators at the output"
_FR3 = "Franka Robotics: reflected inertias of FR3 as in the README of Drake, limits of the Panda"
_SGMSH = "Yaskawa, Sigma II user's manual, table of SGMSH 10A to 50A"
_SGMP = "Yaskawa, SGDB user's manual, table of SGMP 04A to 15A"
_HG_KN = "Mitsubishi Electric, MELSERVO-JE specifications, HG-KN 13B to 73B"
_SGMGV = "Yaskawa, Sigma V user's manual, holding brakes of SGMGV-05 to -75"
_HG_KR = "Mitsubishi Electric, servo motor manual vol. 3, brakes of HG-KR 053B to 73B"
_SIGMA_2 = "Yaskawa, Sigma II user's manual, 8.3.4: at least 1.2 times rated torque"
_UR5 = "Universal Robots, user manual UR5/CB3 3.4.5, A.1: torques that its stops imply, with rotors"
_UR3 = "Universal Robots, user manual UR3/CB3 3.10, A.1: torques that its stops imply, with rotors"
_KR20 = "KUKA, MA KR IONTEC V4, 4.11.2.1: torques that stops of KR 20 R3100 imply, with rotors"
_MAYR = "mayr, ROBA-servostop manual B.8982.EN, switched on the direct-current side"
_INTORQ = "INTORQ, BFK458 manual BA 14.0217, switched on the direct-current side"
_HG_JR = "Mitsubishi Electric, servo motor manual vol. 3, brakes of HG-JR 53B to 503B"
_TM5 = "Techman Robot, TM safety manual 3.3, table 16: TM5-700 with full payload at full speed"
_PRBT = "Pilz, PRBT 6 system description 1004870, 4.12: brakes engaged, controlled stop"

_STRAIN_WAVE = [
    *_motors(
        _FHA,
        (0.2, 39, 96), (0.7, 57, 48), (1.9, 64, 27), (0.8, 150, 90), (3.4, 230, 45), (8.6, 260, 28),
        (1.8, 281, 80), (7.3, 398, 40), (18.1, 453, 25), (5.0, 500, 70), (19.8, 690, 35),
        (50.7, 820, 22),
    ),
    *(Motor(_FR3, J, 87, 2.175) for J in (0.605721456, 0.605721456, 0.462474144, 0.462474144)),
    *(Motor(_FR3, 0.205544064, 12, 2.61) for _ in range(3)),
]  # fmt: skip
_SERVO = [
    *_motors(
        _SGMSH,
        (1.74, 9.54, 5000), (2.47, 14.7, 5000), (3.19, 19.1, 5000), (7.00, 29.4, 5000),
        (9.60, 37.8, 5000), (12.3, 47.6, 5000),
        unit=1e-4,
    ),
    *_motors(_SGMP, (0.347, 3.82, 4500), (2.11, 7.1, 4500), (4.03, 14.3, 4500), unit=1e-4),
    *_motors(
        _HG_KN,
        (0.0843, 0.95, 5000), (0.247, 1.9, 5000), (0.397, 3.8, 5000), (1.39, 7.2, 5000),
        unit=1e-4,
    ),
]  # fmt: skip


Gear = Literal["strain wave", "servo"]
"""What joints are driven by: flat motors behind strain-wave gears, as of collaborative robots;
slim servo motors behind cycloidal or planetary gears, as of industrial robots, or screws."""


def _brake_shares(source: str, speed: float, *rows: tuple[float, float]) -> list[Figure]:
    """Sliding torque over peak torque: rated power [W], speed [1/min], torque at rest [N m]."""
    rated = [power / (speed * math.pi / 30) for power, _ in rows]
    return [
        Figure(source, torque / STATIC_TO_DYNAMIC / (_PEAK_TO_RATED * nominal))
        for nominal, (_, torque) in zip(rated, rows, strict=True)
    ]


def _stop_shares(source: str, gear: Gear, *rows: tuple[float, float, float]) -> list[Figure]:
    """The same, from stops: peak torque, constant torque that explains the time [N m], time [s].

    The torque is that without a rotor; what stops the rotor from its top speed comes on top.
    """
    rotor = ROTOR[gear].value
    return [Figure(source, torque / peak + rotor / time) for peak, torque, time in rows]


ROTOR: dict[Gear, Estimate] = {"strain wave": _estimate(_STRAIN_WAVE), "servo": _estimate(_SERVO)}
"""Time in which the peak torque of a drive brings its own rotor to its top speed [s]."""
STATIC_TO_DYNAMIC, TOLERANCE = 1.15, 0.2
"""Torque at rest over that while sliding, and half the width of the band in which new brakes of one
type are: in data sheets of spring-applied brakes 1.0 to 1.3, and 0.2 to 0.3."""
LEAST_HOLD = 1.5
"""Brakes are chosen to hold at least so many times the load of gravity: that of the shoulder of a
UR5 slides with 1.4 times the load of the stretched arm with payload, and holds a little more."""
BRAKE_SHARE = _estimate([
    *_brake_shares(
        _SGMGV, 1500, (450, 4.5), (850, 12.7), (1300, 19.6), (1800, 19.6), (2900, 43.1),
        (4400, 43.1), (5500, 72.6), (7500, 72.6),
    ),
    *_brake_shares(_HG_KR, 3000, (50, 0.32), (100, 0.32), (200, 1.3), (400, 1.3), (750, 2.4)),
    Figure(_SIGMA_2, 1.2 / STATIC_TO_DYNAMIC / _PEAK_TO_RATED),
    *_stop_shares(_UR5, "strain wave", (150, 103.4, 0.244), (150, 135.7, 0.53), (150, 66.6, 0.164)),
    *_stop_shares(_UR3, "strain wave", (56, 29.3, 0.159), (56, 57.2, 0.154), (28, 21.2, 0.092)),
    *_stop_shares(_KR20, "servo", (5640, 6654, 0.38), (4494, 7820, 0.42), (1350, 2718, 0.20)),
])  # fmt: skip
"""Sliding torque of a brake over the peak torque of its drive; where stops tell it, that of all
that stops the axis: drives may brake with shorted motors."""
DELAY = _estimate([
    *(Figure(_MAYR, time) for time in (0.010, 0.020)),
    *(Figure(_INTORQ, time) for time in (0.015, 0.033)),
    *(Figure(_HG_KR, time) for time in (0.010, 0.020, 0.020)),
    Figure(_HG_JR, 0.030),
    *(Figure(_SGMGV, time) for time in (0.080, 0.100)),
    Figure(_PRBT, 0.080),
])  # fmt: skip
"""From the command until the brake acts [s]; of the last two sources until it acts in full."""
RISE = _estimate([
    *(Figure(_MAYR, time) for time in (0.005, 0.010)),
    *(Figure(_INTORQ, time) for time in (0.013, 0.045)),
])  # fmt: skip
"""From the first to the full torque [s]."""
STOP_TIME = _estimate([
    *(Figure(_TM5, t) for t in (0.579, 0.570, 0.596, 0.356, 0.343, 0.544, 0.666, 0.550, 0.528)),
    Figure(_PRBT, 0.235),
])  # fmt: skip
"""Time of a controlled stop from full speed [s]."""
RAMPS = ("deceleration", "ramp_time", "time_constant")
"""Parameters of the brakes file that set this time."""
_LIGHT = 100.0
"""Robots up to this mass [kg] have strain-wave gears: collaborative robots weigh less, industrial
ones for 20 kg twice as much (HH020: 225 kg)."""


def gear_of(mass: float, *, sliding: bool) -> Gear:
    """The likely gear of a joint of a robot of some mass [kg]."""
    return "strain wave" if mass <= _LIGHT and not sliding else "servo"


def spreads(gear: Gear) -> dict[str, tuple[float, float]]:
    """Ends of guesses, as parts of them, per parameter of the brakes file."""
    estimates = {
        "dynamic_torque": BRAKE_SHARE,
        "delay": DELAY,
        "rise": RISE,
        "rotor_inertia": ROTOR[gear],
        **dict.fromkeys(RAMPS, STOP_TIME),
    }
    return {name: estimate.factors() for name, estimate in estimates.items()}

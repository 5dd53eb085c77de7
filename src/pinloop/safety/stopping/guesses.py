"""What guessed brake data leave open of a stop, as a value; `guess_band` finds it."""

from __future__ import annotations

import math
from dataclasses import dataclass

from ...boundary.arguments import public
from ...tables.number_format import listed

Band = tuple[float, float]
"""The ends of a band."""
_FEW = 3
"""So many joints are named; of more, the number is said."""


@public
@dataclass(frozen=True)
class Guesses:
    """Guesses among the brake data of a stop, and between what nine of ten such stops are.

    Args:
        parameters: parameters of the brakes file that are guessed for some joint.
        missing: joints without rotor inertia in either file; none is taken, which is too little.
        stopping_time: shortest and longest time [s]; the latter is infinite where the robot is not
            held; None where there is no band.
        path: shortest and longest path of the tool [m], likewise.
    """

    parameters: tuple[str, ...]
    missing: tuple[str, ...] = ()
    stopping_time: Band | None = None
    path: Band | None = None

    def __bool__(self) -> bool:
        """Whether anything is guessed."""
        return bool(self.parameters or self.missing)

    @property
    def headline(self) -> str:
        """What is to be said of them ahead of all else; empty if nothing is guessed."""
        if not self:
            return ""
        partly = "" if "dynamic_torque" in self.parameters else "partly "
        likely = "" if self.stopping_time is None else f": {_ends(self.stopping_time, 'ms')}"
        return f"brake data are {partly}guesses{likely}"

    @property
    def details(self) -> str:
        """Which they are, and all bands; empty if nothing is guessed."""
        sentences = [", ".join(self.parameters)] if self.parameters else []
        if self.stopping_time is not None and self.path is not None:
            time, path = _ends(self.stopping_time, "ms"), _ends(self.path, "mm")
            sentences[0] += f": by their spread it takes {time}, with a tool path of {path}"
            if math.isinf(self.stopping_time[1]):
                sentences.append("with brakes as weak as some are the robot does not hold")
        if self.missing:
            many = f"{len(self.missing)} joints"
            who = many if len(self.missing) > _FEW else listed(self.missing)
            sentences.append(
                f"rotor_inertia of {who} is missing, which makes stops too short ('pinloop brakes "
                "init' estimates it)"
            )
        return "; ".join(sentences)


def _ends(band: Band, unit: str) -> str:
    """A band in thousandths, with two digits: more would pretend to be known."""
    low, high = (f"{float(f'{1e3 * end:.2g}'):g}" for end in band)
    return f"{low} {unit} or more" if math.isinf(band[1]) else f"{low} to {high} {unit}"

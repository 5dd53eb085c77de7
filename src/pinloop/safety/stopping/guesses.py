"""Guesses among the brake data of a stop, as a value; `uncertain_brakes` finds them."""

from __future__ import annotations

from dataclasses import dataclass

from ...boundary.arguments import public
from ...tables.number_format import listed

_FEW = 3
"""So many joints are named; of more, the number is said."""


@public
@dataclass(frozen=True)
class Guesses:
    """Guesses among the brake data of a stop; what they leave open is in `StopResult.bands`.

    Args:
        parameters: parameters of the brakes file that are guessed for some joint.
        missing: joints without rotor inertia in either file; none is taken, which is too little.
    """

    parameters: tuple[str, ...]
    missing: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        """Whether anything is guessed."""
        return bool(self.parameters or self.missing)

    @property
    def headline(self) -> str:
        """What is to be said of them ahead of all else; empty if nothing is guessed."""
        if not self:
            return ""
        partly = "" if "dynamic_torque" in self.parameters else "partly "
        return f"brake data are {partly}guesses"

    @property
    def details(self) -> str:
        """Which they are; empty if nothing is guessed."""
        sentences = [", ".join(self.parameters)] if self.parameters else []
        if self.missing:
            many = f"{len(self.missing)} joints"
            who = many if len(self.missing) > _FEW else listed(self.missing)
            sentences.append(
                f"rotor_inertia of {who} is missing, which makes stops too short ('pinloop brakes "
                "init' estimates it)"
            )
        return "; ".join(sentences)

"""A robot's file and how it is read: one value for the command line, scenarios and studies."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated, Any

from numpy.typing import ArrayLike

from ..boundary.marks import Name, Range, Short, existing
from ..model.mechanism import Mechanism
from .loading import load

Names = Annotated[tuple[Name, ...], Short(Name, lambda name: (name,))]
"""Several names, or one."""
Paths = Annotated[tuple[Path, ...], Short(Name, lambda name: (name,))]
_ExistingPaths = Annotated[tuple[Annotated[Path, existing], ...], Short(Name, lambda name: (name,))]


@dataclass(frozen=True, kw_only=True)
class RobotFile:
    """The file of a robot with the options of `load` that are about files."""

    file: Annotated[Path, existing, "URDF, SDF, MJCF, Gepetto YAML or screw table"]
    loops: Annotated[
        _ExistingPaths,
        "file that defines the loops if the robot's does not: a loops file, a Gepetto YAML or an "
        "SRDF; files of the same name beside the robot's are found without it",
    ] = ()
    package_dirs: Annotated[
        Paths, "folder with the packages and models that package:// and model:// names refer to"
    ] = ()
    model: Annotated[Name | None, "model to load from an SDF file with several"] = None
    floating_base: Annotated[bool, "let the root link float instead of fixing it to the world"] = (
        False
    )
    tolerance: Annotated[
        Annotated[float, Range(least=0, below=1)] | None,
        "largest gap between the frames of a loop joint, in rad and in lengths of the robot, "
        "that counts as rounding in the file and is closed; 0: none; by default 1e-4, or what "
        "the digits of the file allow",
    ] = None

    @classmethod
    def of(cls, file: str | Path, options: Mapping[str, Any]) -> RobotFile:
        """Return the file with options of the command line, as far as these are given."""
        return cls(
            file=Path(file),
            loops=tuple(options.get("loops") or ()),
            package_dirs=tuple(options.get("package_dirs") or ()),
            model=options.get("model"),
            floating_base=bool(options.get("floating_base")),
            tolerance=options.get("tolerance"),
        )

    @property
    def inputs(self) -> tuple[Path, ...]:
        """All files that it names."""
        return (self.file, *self.loops)

    def load(self, *, gravity: ArrayLike | None = None, kinematics_only: bool = False) -> Mechanism:
        """Load the robot; see `pinloop.load`."""
        # A scenario's robot has more fields, which are not about its file.
        options = {field.name: getattr(self, field.name) for field in fields(RobotFile)}
        options["loops"] = options["loops"] or None
        file = options.pop("file")
        return load(file, **options, gravity=gravity, kinematics_only=kinematics_only)

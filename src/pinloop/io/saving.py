"""`save`: a robot as a file, by the writer of the format that the end of its name asks for."""

from __future__ import annotations

import warnings
from pathlib import Path

from ..boundary.files import as_target, write_text
from ..errors import BadValue, PinloopWarning
from ..model.mechanism import Mechanism
from .writers.mjcf import write_mjcf
from .writers.outline import Outline
from .writers.urdf import save_urdf

SUFFIXES = (".urdf", ".xml")
"""Ends of the names of robot files that can be written."""


def written_files(path: Path) -> tuple[Path, ...]:
    """The files that `save` writes."""
    if path.suffix.lower() not in SUFFIXES:
        kinds = ", ".join(SUFFIXES)
        raise BadValue(f"'{path}' has none of the ends {kinds}, so its format is not known")
    return (path, path.with_suffix(".loops.yaml")) if path.suffix.lower() == ".urdf" else (path,)


def save(robot: Mechanism, path: str | Path) -> Path:
    """Write a robot; see `Mechanism.save`."""
    target = as_target(path)
    if target.suffix.lower() != ".xml":
        return save_urdf(robot.description, target)
    outline = Outline(robot, "MJCF")
    write_text(target, write_mjcf(outline, target.parent))
    if outline.unsaid:
        text = f"{target} does not say all of robot '{robot.name}': left out are {outline.unsaid}"
        warnings.warn(text, PinloopWarning, stacklevel=5)
    return target

"""`save`: a robot as a file, by the writer of the format that the end of its name asks for."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path

from ..boundary.files import as_target, write_text
from ..errors import BadValue, PinloopWarning
from ..model.mechanism import Mechanism
from .writers.mjcf import write_mjcf
from .writers.outline import Outline
from .writers.sdf import write_sdf
from .writers.urdf import save_urdf
from .writers.usd import save_usd

_FORMATS: dict[str, tuple[str, Callable[[Outline, Path], object]]] = {
    ".xml": ("MJCF", lambda outline, path: write_text(path, write_mjcf(outline, path.parent))),
    ".sdf": ("SDF", lambda outline, path: write_text(path, write_sdf(outline, path.parent))),
    **dict.fromkeys((".usda", ".usdc", ".usd"), ("USD", save_usd)),
}
SUFFIXES = (".urdf", *_FORMATS)
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
    if target.suffix.lower() not in _FORMATS:
        return save_urdf(robot.description, target)
    name, write = _FORMATS[target.suffix.lower()]
    outline = Outline(robot, name)
    write(outline, target)
    if outline.unsaid:
        text = f"{target} does not say all of robot '{robot.name}': left out are {outline.unsaid}"
        warnings.warn(text, PinloopWarning, stacklevel=5)
    return target

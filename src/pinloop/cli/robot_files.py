"""Files that the command line names: the robot to read, and what may be written where."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path

from ..errors import BadValue
from ..io.loading import load
from ..model.mechanism import Mechanism
from ..show.terminal import complain

__all__ = ["check_target", "kinematics_of"]


def kinematics_of(
    robot: Path,
    loops: Sequence[Path] | None,
    package_dir: Sequence[Path] | None,
    floating_base: bool,
    tolerance: float | None,
    model: str | None = None,
) -> Mechanism:
    """The robot for commands that move no masses; says what loading left out.

    Args:
        robot: its file.
        loops: files with its loops, if any.
        package_dir: folders of packages, if any.
        floating_base: whether the root link floats.
        tolerance: what counts as rounded, as `load` has it.
        model: name of the model, if the file holds several.
    """
    machine = load(
        robot,
        loops=loops or None,
        package_dirs=package_dir or (),
        floating_base=floating_base,
        model=model,
        kinematics_only=True,
        tolerance=tolerance,
    )
    for warning in machine.warnings:
        complain(warning, "warning", "yellow")
    return machine


def check_target(path: Path, option: str, inputs: Iterable[Path], *, force: bool) -> None:
    """Refuse before anything is computed what could not be written, or would destroy something.

    Args:
        path: file to write.
        option: what was given for it, as it was typed.
        inputs: files that are read.
        force: whether a file may be overwritten.

    Raises:
        BadValue: says what is wrong with it.
    """
    if not path.parent.is_dir():
        raise BadValue(f"{path} cannot be written: there is no folder '{path.parent}'")
    if os.path.realpath(path) in {os.path.realpath(one) for one in inputs}:
        raise BadValue(f"'{option}' is a file that is used already; name another")
    if path.exists() and not force:
        raise BadValue(f"{path} exists; add --force to overwrite it, or name another with -o")

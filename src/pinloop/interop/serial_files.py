"""A serial twin as files: URDF or MJCF of the robot without loops, JSON of its maps."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.polynomial import Chebyshev, Polynomial

from ..boundary.files import as_target, write_text
from ..dynamics.motor_fit import fit_serial
from ..dynamics.serial_twin import SerialTwin
from ..errors import BadValue
from ..io.writers.mjcf import write_mjcf
from ..io.writers.outline import Outline
from ..io.writers.urdf import save_urdf, write_urdf
from ..model.description import Coupling, Description, is_mimic


def save_serial(twin: SerialTwin, path: str | Path, tolerance: float) -> Path:
    """Write ``<path>`` and ``<name>.serial.json``; return the path of the former.

    Raises:
        BadValue: the suffix is neither .urdf nor .xml, or the maps cannot be fitted.
    """
    target = as_target(path)
    if target.suffix not in (".urdf", ".xml"):
        raise BadValue(f"'{target.name}' is neither .urdf nor .xml, so its format is not known")
    fitted, robot, lost = fit_serial(twin, tolerance), twin.robot, list[str]()
    if target.suffix == ".xml":
        outline = Outline(robot, "MJCF")
        text = write_mjcf(outline, target.parent)
    else:
        description, lost = _with_mimics(twin)
        text = write_urdf(description, target.parent)
        if robot.loops or not all(map(is_mimic, description.couplings)):
            save_urdf(description, target)  # what other linkages are left is in a loops file
    head, _, rest = text.partition("\n")
    if not head.startswith("<?xml"):
        head, rest = '<?xml version="1.0"?>', text
    fitted.save(target.with_name(f"{target.stem}.serial.json"))
    return write_text(target, f"{head}\n<!--\n{_remarks(twin, lost)}-->\n{rest}")


def _with_mimics(twin: SerialTwin) -> tuple[Description, list[str]]:
    """The description with a mimic for each joint that follows, and by how much these are off."""
    couplings, lost = list[Coupling](), list[str]()
    low, high = twin.ranges[0]
    for coupling in twin.robot.couplings:
        joint, *leaders = coupling.joints
        if joint in twin.followers and not is_mimic(coupling):
            x = np.linspace(low, high, 101)
            values = Polynomial([-c for c in coupling.polynomials[1]])(x)
            line = Chebyshev.fit(x, values, 1).convert(kind=Polynomial)
            lost.append(f"{joint} {np.abs(line(x) - values).max():.2g}")
            offset, ratio = line.coef.tolist()
            coupling = Coupling.linear(f"{joint}:mimic", joint, leaders[0], ratio, offset)
        couplings.append(coupling)
    return replace(twin.robot.description, couplings=tuple(couplings)), lost


def _remarks(twin: SerialTwin, lost: list[str]) -> str:
    """What the file cannot hold, with numbers."""
    names = zip(twin.joints, twin.home_pose.inertia.diagonal(), strict=True)
    least, most = (f([pose.inertia for pose in twin.grid], axis=0) for f in (np.min, np.max))
    spans = [
        f"{twin.joints[i]} and {twin.joints[j]}: {least[i, j]:.4g} to {most[i, j]:.4g}"
        for i, j in zip(*np.triu_indices(len(least)), strict=True)
    ]
    weight = max(float(np.abs(pose.weight).max()) for pose in twin.grid)
    armature = ", ".join(f"{name} {own:.4g}" for name, own in names)
    lines = [
        f"Serial twin of '{twin.looped.name}', without the linkage of {', '.join(twin.motors)}.",
        f"Armature is the inertia that linkage and rotors add at home: {armature}.",
        "URDF has no word for it: Pinocchio and MuJoCo do not read it from there.",
        f"Over the ranges it goes, in SI units, {'; '.join(spans)}.",
        "What is off its diagonal, and its change, are in the JSON beside this file. Left out: the",
        f"weight of the linkage at the joints, up to {weight:.3g} N m or N, and its friction.",
        "Torques and speeds are boxes of which all corners can be had over the whole ranges.",
    ]
    lines += [f"Joints that follow are off by up to [rad, m]: {', '.join(lost)}."] if lost else []
    return "".join(f"  {line}\n" for line in lines).replace("--", "- -")

"""Robots whose loads are known by hand, for tests of brakes; no test lives here."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pinocchio as pin

import pinloop as pl

BODY = '<inertial><mass value="{m}"/><origin xyz="{x} 0 0"/><inertia ixx="{i}" iyy="{i}" izz="{i}" ixy="0" ixz="0" iyz="0"/></inertial>'  # noqa: E501


def rail(folder: Path, reduction: str = "", inertia: float | None = None, extra: str = "") -> Path:
    """A carriage of 3 kg that slides upwards and carries a pendulum of 2 kg, 0.5 m long."""
    rotor = "" if inertia is None else f'<drake:rotor_inertia value="{inertia}"/>'
    drive = f"""
      <transmission name="t"><joint name="slide"/>
        <actuator name="m">{reduction}{rotor}</actuator></transmission>
      <transmission name="u"><joint name="turn"/><actuator name="n"/></transmission>"""
    path = folder / "rail.urdf"
    path.write_text(f"""<robot name="rail" xmlns:drake="http://drake.mit.edu">
      <link name="base"/>
      <link name="carriage">{BODY.format(m=3, x=0, i=0.1)}</link>
      <link name="bob">{BODY.format(m=2, x=0.5, i=0.25)}</link>
      <joint name="slide" type="prismatic"><parent link="base"/><child link="carriage"/>
        <axis xyz="0 0 1"/><limit lower="0" upper="1" velocity="0.8" effort="0"/></joint>
      <joint name="turn" type="continuous"><parent link="carriage"/><child link="bob"/>
        <axis xyz="0 1 0"/>{extra}</joint>
      {drive if reduction else ""}
    </robot>""")
    return path


def palletizer_angles(lean: float, pitch: float) -> dict[str, float]:
    """Angles of its three parallelograms by hand: opposite sides stay parallel."""
    return {
        "shoulder": lean,
        "elbow": pitch,
        "forearm_hinge": pitch - lean,
        "bracket_hinge": -pitch,
        "drive_rod_hinge": lean - pitch,
        "rear_rod_hinge": lean,
        "plate_hinge": -lean,
        "front_rod_hinge": pitch,
    }


def palletizer_gravity(robot: pl.Mechanism) -> tuple[float, float]:
    """Largest slopes of the potential energy over shoulder and elbow, within their limits."""
    data = robot.model.createData()

    def energy(lean: float, pitch: float) -> float:
        q = robot.configuration(palletizer_angles(lean, pitch))
        return float(pin.computePotentialEnergy(robot.model, data, q))

    slopes = []
    for lean in np.linspace(-0.69813, 1.3963, 15):
        for pitch in np.linspace(-0.34907, 1.3963, 15):
            if abs(pitch - lean) > 1.309:
                continue
            slopes.append(
                (
                    energy(lean + 1e-5, pitch) - energy(lean - 1e-5, pitch),
                    energy(lean, pitch + 1e-5) - energy(lean, pitch - 1e-5),
                )
            )
    shoulder, elbow = np.max(np.abs(slopes), axis=0) / 2e-5
    return float(shoulder), float(elbow)

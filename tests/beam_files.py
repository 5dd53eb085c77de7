"""A beam with a slide on it and its brakes as files, for the command line; no test lives here."""

from __future__ import annotations

from pathlib import Path

ARM = """<robot name="beam"><link name="base"/>
<link name="beam"><inertial><origin xyz="0.5 0 0"/><mass value="2"/>
<inertia ixx="0.1" ixy="0" ixz="0" iyy="0.1" iyz="0" izz="0.1"/></inertial></link>
<joint name="axis" type="revolute"><parent link="base"/><child link="beam"/><axis xyz="0 0 1"/>
<limit lower="-2" upper="3" velocity="4" effort="50"/></joint>
<joint name="rail" type="prismatic"><parent link="beam"/><child link="tip"/><axis xyz="1 0 0"/>
<limit lower="-1" upper="1" velocity="2" effort="50"/></joint>
<link name="tip"><inertial><mass value="1"/>
<inertia ixx="0.1" ixy="0" ixz="0" iyy="0.1" iyz="0" izz="0.1"/></inertial></link></robot>"""
"""A beam on a vertical axis, and a slide on it: gravity does nothing."""

BRAKES = """format: pinloop-brakes-1
robot: beam
chain: {sensor: 0.02, controller: 0.03}
joints:
  axis: {side: joint, dynamic_torque: 6, tolerance: 0.25, delay: 0.05, deceleration: 8}
  rail: {side: joint, dynamic_torque: 40, deceleration: 8, delay: 0.05}
"""


def beam(folder: Path) -> Path:
    """Write the robot and, beside it, its brakes; returns the path of the robot."""
    path = folder / "beam.urdf"
    path.write_text(ARM)
    (folder / "beam.brakes.yaml").write_text(BRAKES)
    return path

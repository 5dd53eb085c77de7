"""A planar four-bar as a file, for the tests of the command line; no test lives here."""

from __future__ import annotations

from pathlib import Path

import numpy as np

LINK = """<link name="{0}"><inertial><mass value="1"/>
  <inertia ixx="0.01" ixy="0" ixz="0" iyy="0.01" iyz="0" izz="0.01"/></inertial></link>"""

HINGE = """<joint name="{name}" type="revolute"><origin xyz="{x} 0 0"/>
  <parent link="{parent}"/><child link="{child}"/><axis xyz="0 1 0"/>
  <limit lower="-3" upper="3" velocity="1" effort="1"/></joint>"""

LOOP = """<loop_joint name="closer" type="revolute"><axis xyz="0 1 0"/>
  <link1 link="coupler" xyz="{reach} 0 0"/><link2 link="rocker" xyz="0 0 0.4"/></loop_joint>"""


def fourbar(folder: Path, *, reach: float = 0.6, loop: bool = True, name: str = "bars") -> Path:
    """A four-bar in the xz plane that is open at neutral: rocker upright at x = 0.6.

    Crank 0.3 and coupler ``reach`` along x; the loop closes unless the bars are too short.
    """
    parts = [
        f'<robot name="{name}"><link name="base"/>',
        *(LINK.format(link) for link in ("crank", "coupler", "rocker")),
        HINGE.format(name="drive", x=0, parent="base", child="crank"),
        HINGE.format(name="knee", x=0.3, parent="crank", child="coupler"),
        HINGE.format(name="swing", x=0.6, parent="base", child="rocker"),
        LOOP.format(reach=reach) if loop else "",
        "</robot>",
    ]
    path = folder / f"{name.replace('/', '')}.urdf"
    path.write_text("\n".join(parts), encoding="utf-8")
    return path


def apart(folder: Path) -> Path:
    """The coupler ends 1.2 to 1.8 from the crank's axis, the rocker 0.2 to 1.0: 0.2 too far."""
    return fourbar(folder, reach=1.5, name="apart")


def rocker_angle(drive: float, side: int) -> float:
    """The two places of the rocker, by intersecting two circles.

    Turning about y by a takes (x, z) = (1, 0) to (cos a, -sin a); the rocker's end is (0, 0.4).
    """
    knee = np.array([0.3 * np.cos(drive), -0.3 * np.sin(drive)])
    away = np.array([0.6, 0.0]) - knee
    length = np.linalg.norm(away)
    along = (length**2 + 0.6**2 - 0.4**2) / (2 * length)
    normal = np.array([-away[1], away[0]]) / length
    joint = knee + along * away / length + side * np.sqrt(0.6**2 - along**2) * normal
    x, z = joint - (0.6, 0.0)
    return float(np.arctan2(x, z))

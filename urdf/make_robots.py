"""Write the robots that ship with the project, each as one URDF file: ``python make_robots.py``.

The same files come out every time; edit the robots in the modules beside this one, never the
files. An argument names another folder to write to.
"""

from __future__ import annotations

import sys
from pathlib import Path

from robot_parts import Robot
from robot_text import urdf_text
from robots_palletizer import palletizer
from robots_parallel import delta, prrr3, stewart
from robots_planar import fivebar, fourbar, sevenbar
from robots_serial import planar_3r, six_axis_arm
from robots_spatial import bricard, spherical_fourbar, spherical_threebar


def all_robots() -> list[Robot]:
    """Every robot that is shipped."""
    return [
        planar_3r(),
        six_axis_arm(),
        fourbar(),
        spherical_fourbar(),
        sevenbar(),
        palletizer(),
        delta(),
        prrr3(),
        stewart(),
        bricard(),
        spherical_threebar(),
        fivebar(),
    ]


def write_robots(folder: Path) -> list[Path]:
    """Write all robots into ``folder`` and return the files."""
    folder.mkdir(parents=True, exist_ok=True)
    files = []
    for robot in all_robots():
        file = folder / f"{robot.name}.urdf"
        file.write_text(urdf_text(robot), encoding="utf-8", newline="\n")
        files.append(file)
    return files


if __name__ == "__main__":
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent
    for written in write_robots(target):
        print(written)

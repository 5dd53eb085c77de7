"""MJCF that tests write, and what is read of it."""

from __future__ import annotations

from pathlib import Path

from pinloop.boundary.xml import parse_xml
from pinloop.io.formats import make_resolver
from pinloop.io.mjcf.reader import read_mjcf
from pinloop.model.description import Description

MASS = '<inertial pos="0 0 0" mass="1" diaginertia="1 1 1"/>'


def read(text: str, directory: Path | None = None) -> Description:
    """A document."""
    root = parse_xml(text, "robot.xml")
    return read_mjcf(root, resolve=make_resolver(directory))


def model(bodies: str, before: str = '<compiler angle="radian"/>') -> Description:
    """Bodies of the world, after what else a document has."""
    return read(f"<mujoco>{before}<worldbody>{bodies}</worldbody></mujoco>")

"""The reader of MJCF, the XML of MuJoCo: from `<mujoco>` to a `Description`.

Puts together what the other `mjcf_` modules read.
"""

from __future__ import annotations

from collections.abc import Callable
from os.path import isfile
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ...boundary.xml import Element
from ...model.description import Description, constant
from ..vocabulary import MJCF, report_unread
from .attach import attach_models
from .constraints import read_actuators, read_equalities
from .copies import expand_copies
from .document import Document, merge
from .tree import Tree

__all__ = ["read_mjcf"]

_MECHANICAL_FLAGS = (
    "constraint", "equality", "frictionloss", "limit", "passive", "spring", "damper", "actuation",
)  # fmt: skip


def read_mjcf(
    root: Element, *, resolve: Callable[[str], Path | None], directory: Path | None
) -> Description:
    """Read a MuJoCo model.

    Hinges and slides have the coordinate of MuJoCo's `qpos`, which is `ref` in the pose of the
    file; ball and free joints count from that pose. Gravity is (0, 0, -9.81) by default.

    Args:
        root: the parsed `<mujoco>` element.
        resolve: gives the path of a mesh or included file, or None if it does not exist.
        directory: folder of the file, to which relative names refer; None if there is none.

    Returns:
        The robot; equality constraints are its loops (cut joints) and couplings.

    Raises:
        LoadError: says what is wrong, with file and line.
    """

    def find(name: str) -> Path | None:
        path = resolve(name)
        if path is None and directory is not None and "://" not in name:
            candidate = directory / name
            path = candidate if isfile(candidate) else None
        return path

    document = Document(root, find)
    expand_copies(document)
    tree = Tree(document)
    documents = [document, *attach_models(document, tree)]
    if not tree.bodies:
        raise root.error("has no <body> in its <worldbody>")
    tree.scale_masses()
    loops, couplings = read_equalities(documents, tree)
    actuated, drives, joints = read_actuators(documents, tree)
    gravity = _gravity(document)
    for model in documents:
        report_unread(model.root, MJCF, model.remarks)
        for element in model.root.all("deformable"):
            model.warn(element, "holds soft bodies, which are left out")
    return Description(
        name=root.get("model") or Path(root.source).stem or "MuJoCo Model",
        bodies=tuple(tree.bodies),
        joints=(*joints, *loops),
        couplings=tuple(couplings),
        actuated=actuated,
        drives=drives,
        frames=tuple(tree.frames),
        geometry=tuple(tree.geometry),
        gravity=constant(gravity),
        warnings=tuple(text for model in documents for text in model.remarks.texts()),
        source=root.source,
    )


def _gravity(document: Document) -> NDArray[np.float64]:
    """Gravity [m/s^2]; warns of the options that change forces and are not read."""
    option = merge("option", document.root, document.root.all("option"))
    for attribute in ("wind", "density", "viscosity"):
        text = option.get(attribute)
        if text is not None and np.any(option.numbers(text, None, attribute) != 0):
            document.warn(option, f"has {attribute} '{text}': forces of the air are not read")
    flags = merge("flag", option, option.all("flag"))
    for flag in _MECHANICAL_FLAGS:
        if flags.get(flag) == "disable":
            document.warn(flags, f"disables {flag}, which is not read")
    if flags.get("gravity") == "disable":
        return np.zeros(3)
    return option.vector("gravity", (0.0, 0.0, -9.81))

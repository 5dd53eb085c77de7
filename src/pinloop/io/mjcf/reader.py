"""The reader of MJCF, the XML of MuJoCo: from `<mujoco>` to a `Description`.

Puts together what the other modules of this folder read, and models that are attached under a
prefix; each keeps the settings and default classes of its own file.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ...boundary.xml import Element
from ...model.description import Description
from ..sources import Resolver
from ..vocabulary import MJCF, report_unread
from .body_tree import Tree
from .constraints import read_actuators, read_equalities, read_tendons
from .copies import attach_models, expand_copies
from .document import Document, merge

_MECHANICAL_FLAGS = (
    "constraint",
    "equality",
    "frictionloss",
    "limit",
    "passive",
    "spring",
    "damper",
    "actuation",
)


def read_mjcf(root: Element, *, resolve: Resolver) -> Description:
    """Read a MuJoCo model; equality constraints are loops (cut joints) and couplings.

    Hinges and slides have the coordinate of MuJoCo's `qpos`, which is `ref` in the pose of the
    file; ball and free joints count from that pose. Gravity is (0, 0, -9.81) by default.

    Args:
        root: the parsed `<mujoco>` element.
        resolve: gives the path of a mesh or included file, or None if it does not exist.
    """
    document = Document(root, resolve)
    expand_copies(document)
    tree = Tree(document)
    documents = [document, *attach_models(document, tree)]
    if not tree.bodies:
        raise root.error("has no <body> in its <worldbody>")
    tree.scale_masses()
    tendons = read_tendons(documents, tree)
    loops, couplings = read_equalities(documents, tree, tendons)
    actuated, drives, joints = read_actuators(documents, tree, tendons)
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
        gravity=gravity,
        warnings=tuple(text for model in documents for text in model.remarks.texts()),
        source=root.source,
    )


def _gravity(document: Document) -> NDArray[np.float64]:
    """Gravity [m/s^2]; warns of the options that change forces and are not read."""
    option = merge("option", document.root, document.root.all("option"))
    for attribute in ("wind", "density", "viscosity"):
        if document.is_set(option, attribute):
            text = option.get(attribute)
            document.warn(option, f"has {attribute} '{text}': forces of the air are not read")
    flags = merge("flag", option, option.all("flag"))
    for name in _MECHANICAL_FLAGS:
        if flags.get(name) == "disable":
            document.warn(flags, f"disables {name}, which is not read")
    if flags.get("gravity") == "disable":
        return np.zeros(3)
    return option.vector("gravity", (0.0, 0.0, -9.81))

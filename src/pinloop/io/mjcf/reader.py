"""The reader of MJCF, the XML of MuJoCo: from `<mujoco>` to a `Description`.

Puts together what the other modules of this folder read, and models that are attached under a
prefix; each keeps the settings and default classes of its own file.
"""

from __future__ import annotations

from collections.abc import Container
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ...boundary.xml import Element
from ...model.description import Description
from ..packages import Resolver, beside
from ..vocabulary import MJCF, report_unread
from .body_tree import Tree
from .constraints import read_actuators, read_equalities, read_tendons
from .copies import SECTIONS, Renaming, expand_copies, find_target, prefix_of, references
from .document import Document, merge, open_file

__all__ = ["attach_models", "read_mjcf"]

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
    """Read a MuJoCo model.

    Hinges and slides have the coordinate of MuJoCo's `qpos`, which is `ref` in the pose of the
    file; ball and free joints count from that pose. Gravity is (0, 0, -9.81) by default.

    Args:
        root: the parsed `<mujoco>` element.
        resolve: gives the path of a mesh or included file, or None if it does not exist.

    Returns:
        The robot; equality constraints are its loops (cut joints) and couplings.

    Raises:
        LoadError: says what is wrong, with file and line.
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


def attach_models(
    document: Document, tree: Tree, outer: Renaming | None = None, chain: tuple[Path, ...] = ()
) -> list[Document]:
    """Graft the models that a model attaches, and those that they attach, on its tree.

    Args:
        document: the model.
        tree: its tree, to which those of the attached models are added.
        outer: how names in the model are changed already.
        chain: files that attach each other down to the model.

    Returns:
        The attached models; their tendons, equalities and actuators use the names of the tree.
    """
    documents = []
    for element, body, frame in tree.attachments:
        root, path = _open(document, element)
        if path in chain:
            raise element.error(f"attaches '{path.name}' inside itself")
        child = Document(root, beside(path, document.find))
        expand_copies(child)
        _select(child, element)
        before = outer.prefix if outer else ""
        new = Renaming(prefix=before + prefix_of(element).prefix)
        new.apply(top for world in child.root.all("worldbody") for top in world.children)
        part = Tree(child, tree)
        nested = attach_models(child, part, new, (*chain, path))
        tree.graft(part, body, frame)
        _rename_sections(child, tree, new)
        documents += [child, *nested]
    return documents


def _open(document: Document, attach: Element) -> tuple[Element, Path]:
    """Root element and path of the model that an `<attach>` names."""
    wanted = attach.require("model")
    for asset in document.section("asset"):
        if asset.tag != "model" or asset.get("name") not in (None, wanted):
            continue
        file = asset.require("file")
        root, path = open_file(asset, file, document.find(file))
        if wanted in (asset.get("name"), root.get("model")):
            return root, path.resolve()
    raise attach.error(f"names the model '{wanted}', which is not among the assets")


def _select(child: Document, attach: Element) -> None:
    """Leave of a model what is attached: one body, one frame, or all."""
    if attach.get("body") is None and attach.get("frame") is None:
        return
    worlds = child.root.all("worldbody")
    target, style = find_target(worlds, attach)
    target.attributes.setdefault("childclass", style)
    for world in worlds:
        world.children = []
    worlds[0].children = [target]


def _rename_sections(child: Document, tree: Tree, new: Renaming) -> None:
    """Rename tendons, equalities and actuators; leave out those of what is not attached."""
    known: dict[str, Container[str]] = {
        "body": tree.placements,
        "joint": tree.joint_names,
        "site": tree.sites,
    }
    for tag in SECTIONS:
        tendons: set[str] = set()
        for section in child.root.all(tag):
            before, section.children = section.children, []
            for element in before:
                used = references(element)
                new.apply([element], used)
                there = (new.prefix + name in known[kind] for kind, name in used if kind in known)
                if all(there):
                    section.children.append(element)
                    tendons.add(element.get("name") or "")
        if tag == "tendon":
            known["tendon"] = tendons

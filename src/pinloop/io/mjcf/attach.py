"""`<attach>` of other models: bodies of one MJCF file on a body of another, under a prefix.

Every model keeps the settings and default classes of its own file.
"""

from __future__ import annotations

from collections.abc import Callable, Container
from pathlib import Path

from ...boundary.xml import Element
from .copies import (
    SECTIONS,
    Renaming,
    expand_copies,
    find_target,
    prefix_of,
    references,
    rename,
)
from .document import Document, open_file
from .tree import Tree

__all__ = ["attach_models"]

Find = Callable[[str], Path | None]
"""Gives the path of a file that a model names, or None."""


def attach_models(document: Document, tree: Tree) -> list[Document]:
    """Graft the models that a model attaches, and those that they attach, on its tree.

    Args:
        document: the model.
        tree: its tree, to which those of the attached models are added.

    Returns:
        The attached models; their tendons, equalities and actuators use the names of the tree.
    """
    return _attach(document, tree, "", ())


def _attach(document: Document, tree: Tree, outer: str, chain: tuple[Path, ...]) -> list[Document]:
    """Attach to a model whose names have the prefix ``outer``; ``chain`` leads to it."""
    documents = []
    for element, body, frame in tree.attachments:
        root, path = _open(document, element)
        if path in chain:
            raise element.error(f"attaches '{path.name}' inside itself")
        child = Document(root, _beside(path, document.find))
        expand_copies(child)
        _select(child, element)
        prefix = outer + prefix_of(element)
        worlds = child.root.all("worldbody")
        rename([top for world in worlds for top in world.children], set(), Renaming(prefix))
        part = Tree(child, tree)
        nested = _attach(child, part, prefix, (*chain, path))
        tree.graft(part, body, frame)
        _rename_sections(child, tree, prefix)
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


def _beside(path: Path, find: Find) -> Find:
    """How files are found that a model names: beside it, or as in the model that attaches it."""

    def look(name: str) -> Path | None:
        candidate = path.parent / name
        return candidate if "://" not in name and candidate.is_file() else find(name)

    return look


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


def _rename_sections(child: Document, tree: Tree, prefix: str) -> None:
    """Rename tendons, equalities and actuators; leave out those of what is not attached."""
    known: dict[str, Container[str]] = {
        "body": tree.placements,
        "joint": tree.joint_names,
        "site": tree.sites,
    }
    tendons: set[str] = set()
    for tag in SECTIONS:
        for section in child.root.all(tag):
            before, section.children = section.children, []
            for element in before:
                used = references(element)
                rename([element], set(used), Renaming(prefix))
                there = (prefix + name in known[kind] for kind, name in used if kind in known)
                if all(there):
                    section.children.append(element)
                    if tag == "tendon":
                        tendons.add(element.get("name") or "")
        known["tendon"] = tendons

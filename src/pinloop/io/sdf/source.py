"""Files and values of SDF: versions, truths, poses, and the models that `<include>` names.

Knows no frames and no links.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import count
from os.path import isfile
from pathlib import Path

import numpy as np
import pinocchio as pin

from ...boundary.files import read_bytes
from ...boundary.xml import LARGEST, Element, parse_xml, pose_rpy

__all__ = ["Source", "fetch", "read_pose", "truth", "version_of"]

_MOST_INCLUDED = 1000
"""Models that a file includes, and those include: a few such files could mean millions."""

Resolve = Callable[[str], Path | None]


@dataclass(frozen=True)
class Source:
    """What a part of a robot needs to know of the file it stands in.

    Args:
        version: version of SDF, (1, 7) for 1.7.
        resolve: gives the path of a file that it names, or None.
        files: the files that were included to get here.
        number: counts the models that the whole robot includes.
    """

    version: tuple[int, int]
    resolve: Resolve
    files: tuple[Path, ...] = ()
    number: Iterator[int] = field(default_factory=count, compare=False)


def read_pose(pose: Element | None) -> pin.SE3:
    """Placement that a `<pose>` gives, identity if there is none."""
    if pose is None:
        return pin.SE3.Identity()
    form = pose.get("rotation_format") or "euler_rpy"
    if form not in ("euler_rpy", "quat_xyzw"):
        raise pose.error(f"has rotation_format '{form}'; it is euler_rpy or quat_xyzw")
    if not pose.text.strip():
        return pin.SE3.Identity()
    if form == "quat_xyzw":
        values = pose.numbers(pose.text, 7, "the value")
        x, y, z, w = pose.unit_vector(values[3:], "quaternion")
        return pin.SE3(pin.Quaternion(w, x, y, z).toRotationMatrix(), values[:3])
    values = pose.numbers(pose.text, 6, "the value")
    unit = np.pi / 180 if truth(pose, pose.get("degrees")) else 1.0
    return pose_rpy(values[:3], values[3:] * unit)


def truth(element: Element, text: str | None, default: bool = False) -> bool:
    """Truth of a text: true, false, 1 or 0."""
    word = (text or "").strip().lower()
    if word not in ("", "true", "false", "1", "0"):
        raise element.error(f"has the value '{word}'; it must be true or false")
    return word in ("true", "1") if word else default


def version_of(root: Element) -> tuple[int, int]:
    """Version of an `<sdf>` element; the newest if it gives none."""
    text = root.get("version")
    if root.tag != "sdf" or not text:
        return (1, 99)
    major, _, minor = text.strip().partition(".")
    if not (major.isdigit() and minor.split(".")[0].isdigit()):
        raise root.error(f"has the version '{text}'; it must be like 1.7")
    return int(major), int(minor.split(".")[0])


def fetch(include: Element, source: Source) -> tuple[Element, Source] | None:
    """Read the model that an `<include>` names, with the include's own name, pose and static.

    Returns:
        The model and its source, or None if the file holds no model (but a light, say).
    """
    if truth(include, include.get("merge")):
        raise include.error("merges its model into this one, which is not read; drop merge='true'")
    path = _model_file(include, source.resolve)
    if next(source.number) >= _MOST_INCLUDED:
        raise include.error(f"is one of more than {_MOST_INCLUDED} models that are included")
    if path in source.files:
        raise include.error(f"includes '{path}', which includes this file")
    root = parse_xml(read_bytes(path, "model", LARGEST), str(path))
    models = root.all("model") if root.tag == "sdf" else [root]
    if len(models) > 1:
        raise root.error("holds several models; a file that is included may hold one")
    if not models or models[0].tag != "model":
        return None
    old = models[0]
    model = Element("model", dict(old.attributes), old.source, old.line)
    for tag, text in (
        (tag, child.text.strip())
        for tag in ("name", "placement_frame")
        if (child := include.first(tag)) is not None
    ):
        model.attributes[tag] = text
    replaced = [child for child in include.children if child.tag in ("pose", "static")]
    tags = {child.tag for child in replaced}
    model.children = replaced + [child for child in old.children if child.tag not in tags]

    def resolve(name: str) -> Path | None:
        beside = path.parent / name
        return beside if "://" not in name and isfile(beside) else source.resolve(name)

    return model, Source(version_of(root), resolve, (*source.files, path), source.number)


def _model_file(include: Element, resolve: Resolve) -> Path:
    """File of a model that is named by its file or by its folder."""
    uri = include.need("uri").text.strip()
    if uri.endswith((".sdf", ".world", ".xml")):
        path = resolve(uri)
        if path is not None:
            return path
    folder = uri.rstrip("/")
    config = resolve(f"{folder}/model.config")
    if config is not None:
        # The last <sdf> of a model.config has the newest version.
        files = parse_xml(read_bytes(config), str(config)).all("sdf")
        path = resolve(f"{folder}/{files[-1].text.strip()}") if files else None
        if path is not None:
            return path
    path = resolve(f"{folder}/model.sdf")
    if path is None:
        raise include.error(
            f"names the model '{uri}', which is not found; name the folder that holds it with "
            "package_dirs, on the command line with --package-dir"
        )
    return path

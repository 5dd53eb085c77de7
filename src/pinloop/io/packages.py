"""Where meshes and included files lie: package://, model://, file:// and relative names."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from pathlib import Path, PurePath
from urllib.parse import unquote

from ..boundary.xml import Element, Remarks

Resolver = Callable[[str], Path | None]
"""Gives the path of a file that a robot file names, or None if it is not there."""


_PATHS = ("ROS_PACKAGE_PATH", "GZ_SIM_RESOURCE_PATH", "GAZEBO_MODEL_PATH")
"""Variables of the environment that list folders of packages or models."""


def make_resolver(directory: Path | None, package_dirs: Iterable[str | Path] = ()) -> Resolver:
    """Return the function that finds the files that a robot file in ``directory`` names.

    Packages and models are looked for in ``package_dirs`` (the folder of a package, or one that
    contains it), on the paths of ROS and Gazebo in the environment, and among the ancestors of the
    robot's own folder.
    """
    roots = [str(Path(folder)) for folder in package_dirs]
    for variable in _PATHS:
        roots += [
            str(Path(path)) for path in os.environ.get(variable, "").split(os.pathsep) if path
        ]
    for prefix in os.environ.get("AMENT_PREFIX_PATH", "").split(os.pathsep):
        if prefix:
            roots.append(os.path.join(prefix, "share"))
    if directory is not None:
        here = directory.resolve()
        roots += map(str, (here, *here.parents))
    real_folder = cache(os.path.realpath)

    @cache  # what is seen and what is collided with are often the same file
    def resolve(uri: str) -> Path | None:
        for candidate in _candidates(uri.strip(), roots, directory):
            if os.path.isfile(candidate):
                folder, name = os.path.split(candidate)
                path = os.path.join(real_folder(folder), name)
                return Path(os.path.realpath(path) if os.path.islink(path) else path)
        return None

    return resolve


def beside(path: Path, resolve: Resolver) -> Resolver:
    """Return how files are found that the file ``path`` names: beside it, or by ``resolve``."""

    def look(name: str) -> Path | None:
        candidate = path.parent / name
        return candidate if "://" not in name and os.path.isfile(candidate) else resolve(name)

    return look


def _candidates(uri: str, roots: list[str], directory: Path | None) -> Iterator[str]:
    """Possible places of a file, most likely first."""
    if "\0" in uri or not uri:
        return
    scheme, separator, rest = uri.partition("://")
    if not separator:
        if os.path.isabs(uri):
            yield uri
            return
        if directory is not None:
            yield os.path.join(directory, uri)
        for root in roots:
            yield os.path.join(root, uri)
        return
    if scheme == "file":
        yield unquote("/" + rest.partition("/")[2])
        return
    package, _, inside = rest.partition("/")
    for root in roots:
        if os.path.basename(root) == package:
            yield os.path.join(root, inside)
        yield os.path.join(root, package, inside)


def report_missing(missing: list[Element], remarks: Remarks) -> None:
    """Report meshes whose file was not found, once for all: they tend to lack together."""
    for kind in missing:
        name = kind.require("filename")
        scheme, separator, rest = name.partition("://")
        advice = ""
        if scheme in ("package", "model"):
            advice = (
                f"; name the folder that holds the package '{rest.partition('/')[0]}' with "
                "package_dirs, on the command line with --package-dir"
            )
        elif not separator and not PurePath(name).is_absolute():
            advice = "; looked in the folder of the robot file, those above it, and package_dirs"
        remarks.about(
            ("mesh", scheme), name, f"{kind.where}: mesh '{name}' not found; left out", advice
        )

"""Where meshes and included files lie: package://, model://, file:// and relative names."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from urllib.parse import unquote

__all__ = ["Resolver", "make_resolver"]

Resolver = Callable[[str], Path | None]
"""Gives the path of a file that a robot file names, or None if it is not there."""


_PATHS = ("ROS_PACKAGE_PATH", "GZ_SIM_RESOURCE_PATH", "GAZEBO_MODEL_PATH")
"""Variables of the environment that list folders of packages or models."""


def make_resolver(directory: Path | None, package_dirs: Iterable[str | Path] = ()) -> Resolver:
    """Return the function that finds the files a robot file names.

    Packages and models are looked for in ``package_dirs`` (the folder of a package, or one that
    contains it), on the paths of ROS and Gazebo in the environment, and among the ancestors of the
    robot's own folder.

    Args:
        directory: folder of the robot file, or None if it is not a file.
        package_dirs: folders given by the user, searched first.
    """
    roots = [Path(folder) for folder in package_dirs]
    for variable in _PATHS:
        roots += [Path(path) for path in os.environ.get(variable, "").split(os.pathsep) if path]
    for prefix in os.environ.get("AMENT_PREFIX_PATH", "").split(os.pathsep):
        if prefix:
            roots.append(Path(prefix) / "share")
    if directory is not None:
        here = directory.resolve()
        roots += [here, *here.parents]

    def resolve(uri: str) -> Path | None:
        for candidate in _candidates(uri.strip(), roots, directory):
            try:
                if candidate.is_file():
                    return candidate.resolve()
            except OSError:
                continue  # a name too long or a folder that may not be read: not there
        return None

    return resolve


def _candidates(uri: str, roots: list[Path], directory: Path | None) -> Iterator[Path]:
    """Possible places of a file, most likely first."""
    if "\0" in uri or not uri:
        return
    scheme, separator, rest = uri.partition("://")
    if not separator:
        path = Path(uri)
        if path.is_absolute():
            yield path
            return
        if directory is not None:
            yield directory / path
        for root in roots:
            yield root / path
        return
    if scheme == "file":
        yield Path(unquote("/" + rest.partition("/")[2]))
        return
    package, _, inside = rest.partition("/")
    for root in roots:
        if root.name == package:
            yield root / inside
        yield root / package / inside

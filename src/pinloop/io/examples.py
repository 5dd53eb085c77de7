"""Robots that come with pinloop: what there is, where their files are, loading one by name.

The files are made in `urdf/` of a checkout and installed with the package as they are.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from ..boundary.arguments import public
from ..boundary.files import check_target, not_written, read_bytes, write_text
from ..errors import UnknownName
from ..model.mechanism import Mechanism
from .loading import load

_PACKAGE = Path(__file__).parents[1]
_COMMENT = re.compile(r"<!--(.*?)-->", re.DOTALL)
_SENTENCE_END = re.compile(r"[.:;](?=\s|$)")


@dataclass(frozen=True)
class Example:
    """A robot that comes with pinloop.

    Args:
        name: name of the robot and of its URDF file.
        description: what the robot is and where its numbers come from, in paragraphs.
        files: its URDF, then what belongs to it: brakes, a scenario, a study.
    """

    name: str
    description: str
    files: tuple[Path, ...]

    @property
    def summary(self) -> str:
        """What the robot is, without the sentence's full stop."""
        return _SENTENCE_END.split(" ".join(self.description.split()), maxsplit=1)[0]


def examples_folder() -> Path:
    """The folder with the files of all examples: in the package, or in its checkout."""
    installed = _PACKAGE / "urdf"
    return installed if installed.is_dir() else _PACKAGE.parents[1] / "urdf"


@cache
def known_examples() -> dict[str, Example]:
    """All robots that come with pinloop, by name."""
    return {robot.stem: _described(robot) for robot in sorted(examples_folder().glob("*.urdf"))}


def _described(robot: Path) -> Example:
    comment = _COMMENT.search(read_bytes(robot).decode())
    lines = comment[1].strip("\n").splitlines() if comment else []
    others = sorted(robot.parent.glob(f"{robot.stem}.*.yaml"))
    text = "\n".join(line.removeprefix("  ").rstrip() for line in lines)
    return Example(robot.stem, text.strip(), (robot, *others))


@public
def example(name: str) -> Mechanism:
    """Load a robot that comes with pinloop: ``pl.example("palletizer")``.

    Args:
        name: its name; ``pinloop examples`` lists all of them.
    """
    return load(example_file(f"{name}.urdf"))


@public
def example_file(name: str) -> Path:
    """The path of a file of a robot that comes with pinloop: ``"palletizer.brakes.yaml"``."""
    known = {path.name: path for robot in known_examples().values() for path in robot.files}
    if name not in known:
        raise UnknownName("example", name.removesuffix(".urdf"), [*known_examples(), *known])
    return known[name]


def robot_path(word: Path) -> Path:
    """The robot file that a user names: a path, or the name of a robot that comes with pinloop."""
    is_path = word.suffix or len(word.parts) != 1 or os.path.lexists(word)
    if is_path:
        return word
    if word.name not in known_examples():
        raise UnknownName("file or example robot", word.name, known_examples())
    return example_file(f"{word.name}.urdf")


def copy_examples(names: Iterable[str], folder: Path, *, force: bool) -> list[Path]:
    """Copy the files of some robots into a folder, which is made if need be."""
    sources = [path for name in names for path in known_examples()[name].files]
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise not_written(folder, error) from None
    targets = [folder / source.name for source in sources]
    for target in targets:
        check_target(target, sources, force=force)
    for target, source in zip(targets, sources, strict=True):
        write_text(target, read_bytes(source).decode())
    return targets

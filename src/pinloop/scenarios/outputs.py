"""The files of a run: which there can be, whether they can be written, and writing them.

A scenario may come from somebody else: the files that it names lie in its folder, and replace only
what pinloop wrote, unless the user says otherwise.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from ..boundary.files import check_target, may_replace, write_file
from ..boundary.json import write_json
from ..errors import BadValue, PinloopError
from ..simulation.trajectory import Trajectory, sampled
from ..version import __version__
from .run_summary import as_document

KINDS = {
    ".npz": "npz",
    ".csv": "csv",
    ".parquet": "parquet",
    ".html": "html",
    ".png": "plot",
    ".svg": "plot",
    ".pdf": "plot",
    ".json": "summary",
}
"""What a file holds, by the end of its name."""

_NEEDS = {"parquet": "pyarrow", "plot": "matplotlib"}
"""Module that a kind needs, called like its package."""


_MARKS: Mapping[str, bytes | re.Pattern[bytes]] = {
    "npz": b"robot.npy",
    "csv": re.compile(rb"\A(t_s|t \[s\]),"),  # the latter in earlier versions
    "parquet": re.compile(rb"\x03t_s|\x05t \[s\]"),  # with the length of the name
    "html": b"pinloop",
    "plot": b"pinloop",
    "summary": b'"format": "pinloop-run-',
}
"""What the head or the end of a file says that pinloop wrote, by what it holds."""


@dataclass(frozen=True)
class Output:
    """A file to write.

    Args:
        kind: what it holds, a value of `KINDS`.
        path: where it is.
    """

    kind: str
    path: Path


def output_of(path: Path) -> Output:
    """A file, by the end of its name.

    Raises:
        BadValue: no file of a run is called so.
    """
    kind = KINDS.get(path.suffix.lower())
    if kind is None:
        raise BadValue(f"'{path}' ends in none of {', '.join(KINDS)}, which say what it holds")
    return Output(kind, path)


def check_output(output: Output, taken: Iterable[Path]) -> None:
    """Refuse what could not be written, or would destroy something.

    Args:
        output: the file.
        taken: files that are read, or written otherwise.

    Raises:
        BadValue: says what is wrong with it.
    """
    path, kind = output.path, output.kind
    if kind in ("npz", "plot") and KINDS.get(path.suffix.lower()) != kind:
        ends = " or ".join(end for end, name in KINDS.items() if name == kind)
        raise BadValue(f"'{path}' must end in {ends}")
    check_target(path, taken)
    module = _NEEDS.get(kind, "")
    if module and find_spec(module) is None:
        raise BadValue(f"'{path}' needs {module}: pip install {module}")


def check_named(output: Output, folder: Path) -> None:
    """Refuse a file that a scenario names, but which it has no business to write.

    Args:
        output: the file.
        folder: folder of the scenario.

    Raises:
        BadValue: it lies outside the folder, or pinloop did not write what is there.
    """
    path = Path(os.path.realpath(output.path))
    way_out = "add --force (force=True in Python), or name another file"
    if not path.is_relative_to(os.path.realpath(folder)):
        raise BadValue(f"'{output.path}' is outside the folder of the scenario; {way_out}")
    if not may_replace(path, _MARKS[output.kind]):
        raise BadValue(f"'{output.path}' exists, and pinloop did not write it; {way_out}")


def tried_outputs(
    run: Trajectory, outputs: Sequence[Output], every: float | None, failure: str = ""
) -> tuple[list[Path], list[str]]:
    """Write as many files of a run as can be, the summary last; say what is wrong with the others.

    Args:
        run: the run, with all its steps, or a part of it.
        outputs: files to write.
        every: interval of the states in files of states [s]; every step if None.
        failure: why the run could not go on; empty if it could.
    """
    states = run if every is None else sampled(run, every)
    written: list[Path] = []
    problems: list[str] = []
    for output in sorted(outputs, key=lambda output: output.kind == "summary"):
        try:
            if output.kind == "summary":
                document = as_document(run, [*written, output.path], failure)
                write_json(output.path, document)
            else:
                _write(output.kind, output.path, run, states)
        except PinloopError as error:
            problems.append(str(error))
        else:
            written.append(output.path)
    return written, problems


def _write(kind: str, path: Path, run: Trajectory, states: Trajectory) -> None:
    """Write one file of states or pictures."""
    if kind == "npz":
        states.save(path)
    elif kind == "csv":
        states.to_csv(path)
    elif kind == "parquet":
        states.to_parquet(path)
    elif kind == "html":
        run.save_html(path)
    else:
        kind = path.suffix[1:].lower()
        by = "Software" if kind == "png" else "Creator"
        figure = run.plot()
        write_file(
            path,
            lambda file: figure.savefig(file, format=kind, metadata={by: f"pinloop {__version__}"}),
        )

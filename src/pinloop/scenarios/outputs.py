"""The files of a run: which there can be, whether they can be written, and writing them.

What is there before stays until the new file is complete.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from secrets import token_hex

from ..checks import not_written
from ..errors import BadValue, PinloopError
from ..recording import sampled
from ..trajectory import Trajectory
from .summary import as_document

__all__ = ["KINDS", "Output", "check_output", "output_of", "tried_outputs", "write_outputs"]

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
    if path.is_dir():
        raise BadValue(f"'{path}' is a folder; name a file in it")
    if not path.parent.is_dir():
        raise BadValue(
            f"'{path}' cannot be written: there is no folder '{path.parent}'; make it first"
        )
    if not os.access(path.parent, os.W_OK) or (path.exists() and not os.access(path, os.W_OK)):
        raise BadValue(f"'{path}' cannot be written: permission denied")
    if os.path.realpath(path) in {os.path.realpath(one) for one in taken}:
        raise BadValue(f"'{path}' is a file that is used already; name another")
    module = _NEEDS.get(kind, "")
    if module and find_spec(module) is None:
        raise BadValue(f"'{path}' needs {module}: pip install {module}")


def write_outputs(
    run: Trajectory, outputs: Sequence[Output], every: float | None
) -> tuple[Path, ...]:
    """Write files of a run, the summary last.

    Args:
        run: the run, with all its steps, or a part of it.
        outputs: files to write.
        every: interval of the states in files of states [s]; every step if None.

    Returns:
        The files that were written, as asked for.

    Raises:
        BadValue: some cannot be written; the others are.
    """
    written, problems = tried_outputs(run, outputs, every)
    if problems:
        raise BadValue("; ".join(problems))
    return tuple(written)


def tried_outputs(
    run: Trajectory, outputs: Sequence[Output], every: float | None, failure: str = ""
) -> tuple[list[Path], list[str]]:
    """Write as many files of a run as can be written, and say what is wrong with the others.

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
            with _replaced(output.path) as path:
                if output.kind == "summary":
                    document = as_document(run, [*written, output.path], failure)
                    text = json.dumps(document, indent=2, allow_nan=False)
                    path.write_text(f"{text}\n", encoding="utf-8")
                else:
                    _write(output.kind, path, run, states)
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
        run.plot().savefig(path)


@contextmanager
def _replaced(path: Path) -> Iterator[Path]:
    """A file beside another one, whose place it takes when it is complete."""
    target = Path(os.path.realpath(path))
    partial = target.with_name(f".pinloop-{token_hex(8)}{target.suffix.lower()}")
    try:
        yield partial
        os.replace(partial, target)
    except OSError as error:
        raise not_written(path, error) from None
    except BadValue as error:
        if isinstance(error.__cause__, OSError):  # it names the file beside, which nobody knows
            raise not_written(path, error.__cause__) from None
        raise
    finally:
        partial.unlink(missing_ok=True)

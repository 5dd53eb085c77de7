"""Runs in ``.npz`` files: what is written, and what is believed of a file that is read.

The robot is in the file as URDF and loops file, what happened as arrays, and a digest of both.
Nothing of a file becomes part of a run before all of it has been checked. And runs with fewer
states, as they are written.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from functools import partial
from io import BytesIO
from pathlib import Path
from typing import Annotated, Any, Literal
from zipfile import ZipFile

import numpy as np
import pinocchio as pin
import yaml
from numpy.typing import NDArray

from ..boundary.arguments import public
from ..boundary.files import as_target, json_text, read_bytes, write_file
from ..boundary.marks import Array, Name, Range
from ..boundary.schema import read_data
from ..boundary.yaml import read_yaml
from ..constraints.rows import Locked
from ..errors import BadValue, LoadError, PinloopError
from ..integrate import INNER, Recorded, Samples
from ..io.loading import load
from ..io.writers.urdf import loops_document, write_urdf
from ..model.mechanism import Mechanism
from ..tolerances import ROTATION
from .limits import LimitPassed
from .modes import AxisFriction, ModalSystem, Mode, RobotManifold
from .trajectory import Trajectory

_FORMAT: Literal["pinloop-trajectory-3"] = "pinloop-trajectory-3"
_ARRAYS = ("t", "q", "v", "a", "psi", "mode")
_UNSIGNED = "pinloop-trajectory-1"
"""Format without a digest."""
_INNER = "inner"
"""Array of runs whose steps are no quintics."""
_LARGEST = 2**30
"""Bytes of a file, and of all that is in it when it is unpacked."""
_BEYOND = 1e100
"""A number whose square is one, too."""
_LONGEST_HEADER = 10_000
_Count = Annotated[int, Range(least=0)]


@dataclass(frozen=True, kw_only=True)
class _ModeEntry:
    """A mode; locks are a joint, its locked axes, and the end stop that it lies on.

    Friction is a joint, its axis if it has several, and which way that slides; see `AxisFriction`.
    """

    locks: tuple[tuple[Name, tuple[Name, ...], Literal["", "lower", "upper"] | bool], ...]
    opened: tuple[Name, ...]
    rows: tuple[_Count, ...] = ()
    friction: tuple[tuple[Name, str, Literal[-1, 0, 1]], ...] = ()


@dataclass(frozen=True, kw_only=True)
class _Header:
    """All of a run that is no array."""

    format: Literal["pinloop-trajectory-1", "pinloop-trajectory-2", "pinloop-trajectory-3"]
    urdf: str
    loops: str
    message: str
    evaluations: _Count
    rejected: _Count
    modes: tuple[_ModeEntry, ...]
    events: tuple[tuple[float, str], ...]
    limits_passed: tuple[LimitPassed, ...] = ()


def save_trajectory(run: Trajectory, path: str | Path) -> Path:
    """Write a run with its robot, see `Trajectory.save`."""
    target = as_target(path)
    if target.suffix != ".npz" and (os.path.isfile(target) or not os.path.exists(target)):
        target = target.with_name(f"{target.name}.npz")
    description = run.robot.description
    header = {
        "format": _FORMAT,
        "urdf": write_urdf(description),
        "loops": yaml.safe_dump(loops_document(description)),
        "message": run.message,
        "evaluations": run.evaluations,
        "rejected": run.rejected,
        "modes": [
            {
                "locks": [[lock.joint, list(lock.axes), lock.at_limit] for lock in mode.locks],
                "opened": sorted(mode.opened),
                "rows": list(mode.rows),
                "friction": [list(axis) for axis in mode.friction],
            }
            for mode in run.modes
        ],
        "events": [list(event) for event in run.events],
        "limits_passed": [asdict(passed) for passed in run.limits_passed],
    }
    text = json_text(header, indent=None, finite=False)
    arrays = {name: np.ascontiguousarray(getattr(run, name)) for name in _ARRAYS}
    if (inner := run.inner_bends()) is not None:
        arrays[_INNER] = inner
    if 4 * len(text) + sum(array.nbytes for array in arrays.values()) > _LARGEST:
        raise BadValue(f"a run of {len(run.t)} states is too large for a file; save fewer (every=)")
    digest = _digest(text, arrays)
    members: dict[str, Any] = {"robot": np.array(text), "sha256": np.array(digest), **arrays}
    return write_file(target, lambda file: np.savez_compressed(file, **members))


@public
def load_trajectory(path: str | Path) -> Trajectory:
    """Read a run that `Trajectory.save` wrote.

    Args:
        path: the ``.npz`` file.

    Raises:
        LoadError: the file is not there or holds no run, or what it holds has been changed.
    """
    source = str(path)
    raw = read_bytes(path, "saved run", _LARGEST)
    try:
        members = _members(raw)
        text = str(members["robot"][()])
        data = json.loads(text)
    except Exception:
        # Archives that are damaged make zipfile and its decompressors fail in many ways.
        raise LoadError(
            "is not a saved run, or is damaged; run.save and pinloop simulate -o RUN.npz write "
            "such files",
            source=source,
        ) from None
    with _refusing(source):
        header = read_data(_Header, data, "")
        arrays = {name: members[name] for name in _ARRAYS}
        if _INNER in members:
            arrays[_INNER] = members[_INNER]
        digest = "" if header.format == _UNSIGNED else _digest(text, arrays)
        if digest and str(members["sha256"][()]) != digest:
            raise BadValue("its content does not agree with its digest")
        loops = _loops(header.loops)
    try:
        robot = load(header.urdf.encode(), loops=loops, kinematics_only=True)
    except LoadError as error:
        problem = f"holds a robot that cannot be read: {error.problem}"
        raise LoadError(problem, source=source) from None
    with _refusing(source):
        return _run(robot, header, arrays)


@contextmanager
def _refusing(source: str) -> Iterator[None]:
    """Say of what is wrong in a file that it is no saved run."""
    try:
        yield
    except KeyError as error:
        raise LoadError(f"is not a saved run: it has no {error}", source=source) from None
    except LoadError as error:
        raise LoadError(f"is not a saved run: {error.problem}", source=source) from None
    except PinloopError as error:
        raise LoadError(f"is not a saved run: {error}", source=source) from None


def _digest(text: str, arrays: Mapping[str, NDArray[Any]]) -> str:
    digest = hashlib.sha256(text.encode())
    for name in (*_ARRAYS, *([_INNER] if _INNER in arrays else [])):
        digest.update(f"{name} {arrays[name].dtype.str} {arrays[name].shape}".encode())
        digest.update(arrays[name].tobytes())
    return digest.hexdigest()


def _members(raw: bytes) -> dict[str, NDArray[Any]]:
    """The arrays of an archive; raises anything if it is none."""
    with ZipFile(BytesIO(raw)) as archive:
        names = [entry.filename for entry in archive.infolist()]
        known = {f"{name}.npy" for name in ("robot", "sha256", *_ARRAYS, _INNER)}
        if len(set(names)) < len(names) or not known.issuperset(names):
            raise ValueError
        if sum(entry.file_size for entry in archive.infolist()) > _LARGEST:
            raise ValueError
        return {name.removesuffix(".npy"): _array(archive.read(name)) for name in names}


def _array(raw: bytes) -> NDArray[Any]:
    """The array of a ``.npy`` file, whose header must fit what follows it."""
    stream = BytesIO(raw)
    version = np.lib.format.read_magic(stream)
    read = {
        (1, 0): np.lib.format.read_array_header_1_0,
        (2, 0): np.lib.format.read_array_header_2_0,
    }[version]
    shape, fortran, dtype = read(stream, max_header_size=_LONGEST_HEADER)
    rest = len(raw) - stream.tell()
    if dtype.kind not in "fiU" or min(shape, default=0) < 0:
        raise ValueError
    if math.prod(shape) * dtype.itemsize != rest:
        raise ValueError
    flat = np.frombuffer(raw, dtype, offset=stream.tell())
    return flat.reshape(shape, order="F" if fortran else "C").copy()


def _run(robot: Mechanism, header: _Header, arrays: Mapping[str, NDArray[Any]]) -> Trajectory:
    """The run that a file holds, checked as a whole."""
    system = ModalSystem(robot)
    modes = tuple(_modes(header.modes, system))
    _check_arrays(robot, arrays, len(modes))
    for passed in header.limits_passed:
        if passed.coordinate not in range(robot.coordinates(passed.joint).nv):
            raise BadValue(f"joint '{passed.joint}' has no coordinate {passed.coordinate}")
    return Trajectory(
        robot=robot,
        modes=modes,
        message=header.message,
        system=system,
        events=header.events,
        evaluations=header.evaluations,
        rejected=header.rejected,
        limits=header.limits_passed,
        t=arrays["t"],
        q=arrays["q"],
        v=arrays["v"],
        a=arrays["a"],
        psi=arrays["psi"],
        mode=arrays["mode"],
        inner=arrays.get(_INNER),
    )


def _loops(text: str) -> dict[str, Any]:
    """The loops file in a run."""
    data = read_yaml(text, "its loops")
    if not isinstance(data, dict):
        raise BadValue("its loops are no table")
    return data


def _modes(entries: Iterable[_ModeEntry], system: ModalSystem) -> Iterable[Mode]:
    for entry in entries:
        mode = Mode(
            [Locked(name, axes, _side(limit)) for name, axes, limit in entry.locks],
            entry.opened,
            entry.rows,
            [AxisFriction(*axis) for axis in entry.friction],
        )
        system.check(mode)
        yield mode


def _side(at_limit: str | bool) -> Literal["", "lower", "upper"]:
    """The end stop that a joint lies on; early files say only that it lies on one."""
    return "lower" if at_limit is True or at_limit == "lower" else "upper" if at_limit else ""


def _check_arrays(robot: Mechanism, arrays: Mapping[str, NDArray[Any]], modes: int) -> None:
    """Refuse arrays that are no states of this robot over time."""
    count, nq, nv = arrays["t"].size, robot.nq, robot.nv
    if count == 0:
        raise BadValue("it has no states")
    shapes: dict[str, tuple[int, ...]] = {
        "t": (count,),
        "q": (count, nq),
        "v": (count, nv),
        "a": (count, nv),
        "psi": (count - 1, nv),
        "mode": (count,),
    }
    if _INNER in arrays:
        shapes[_INNER] = count - 1, len(INNER), nv
    for name, shape in shapes.items():
        array, kind = arrays[name], "<i8" if name == "mode" else "<f8"
        if array.shape != shape or array.dtype.str != kind:
            raise BadValue(
                f"'{name}' is of kind {array.dtype} and shape {array.shape}; {count} states of "
                f"this robot need {np.dtype(kind)} and {shape}"
            )
        if not np.all(np.abs(array) < _BEYOND):
            raise BadValue(f"'{name}' has numbers that are not finite, or beyond {_BEYOND:g}")
    if np.any(np.diff(arrays["t"]) < 0):
        raise BadValue("its times go back")
    if arrays["mode"].min() < 0 or arrays["mode"].max() >= modes:
        raise BadValue(f"'mode' names modes beyond the {modes} that there are")
    if not all(pin.isNormalized(robot.model, q, ROTATION) for q in arrays["q"]):
        raise BadValue("'q' has quaternions, or cosines and sines, that are not of unit length")


def sampled(run: Trajectory, every: float) -> Trajectory:
    """What `Samples` would have kept of a run."""
    robot, span = run.robot, (float(run.t[0]), float(run.t[-1]))
    samples = Samples(robot.nq, robot.nv, RobotManifold(robot), span, every)
    for k, mode in enumerate(run.mode):
        state = Recorded(float(run.t[k]), run.q[k], run.v[k], run.a[k], int(mode))
        if k > 0 and run.t[k] > run.t[k - 1]:
            inner = None if run.inner is None else run.inner[k - 1]
            state = state._replace(inside=partial(_inside, run, int(mode)), inner=inner)
        samples.add(state)
    return replace(run, **samples.states()._asdict(), limits=run.limits_passed)


def _inside(run: Trajectory, mode: int, t: float) -> tuple[Array, Array, Array]:
    """State and acceleration inside a step of a run."""
    _, q, v = run(t)
    return q, v, run.system.equations(run.modes[mode]).acceleration(t, q, v)

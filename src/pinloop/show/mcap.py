"""Runs as MCAP files of ROS 2 messages, which PlotJuggler, Foxglove and ros2 bag read.

What the messages hold is decided here; encoding is done by ``mcap-ros2-support``.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pinocchio as pin

from ..boundary.files import write_file
from ..boundary.marks import Array
from ..errors import BadValue
from ..io.writers.urdf import write_urdf
from ..simulation.columns import joint_positions
from ..simulation.trajectory import Trajectory
from ..tables.report import asset
from .scene.motion import mode_spans, recorded_times

_FIELDS = {
    kind: fields.rstrip()
    for kind, _, fields in (
        part.partition("\n") for part in asset("show/templates/ros2.msg").split("MSG: ")[1:]
    )
}
"""Fields of the messages, as ROS 2 defines them."""
_TOPICS = {
    "/robot_description": "std_msgs/String",
    "/mode": "std_msgs/String",
    "/joint_states": "sensor_msgs/JointState",
    "/tf": "tf2_msgs/TFMessage",
}

Messages = Iterator[tuple[str, int, dict[str, Any]]]
"""Topic, time [ns] and content."""


def write_mcap(run: Trajectory, path: str | Path, rate: float) -> Path:
    """Write a run as an MCAP file; see `Trajectory.to_mcap`."""
    try:
        writer = import_module("mcap_ros2.writer").Writer
    except ImportError:
        raise BadValue("MCAP needs mcap-ros2-support: pip install 'pinloop[mcap]'") from None
    times = recorded_times(run, rate)

    content = BytesIO()  # its writer asks where it is, which pipes do not know
    bag = writer(content)
    kinds = {
        kind: bag.register_msgdef(kind.replace("/", "/msg/"), _definition(kind))
        for kind in _TOPICS.values()
    }
    for topic, time, message in _messages(run, times):
        bag.write_message(topic, kinds[_TOPICS[topic]], message, log_time=time)
    bag.finish()
    return write_file(path, lambda file: file.write(content.getvalue()))


def _definition(kind: str) -> str:
    """Fields of a message, and after it those of all messages in it."""
    used, parts = [kind], list[str]()
    for name in used:
        parts.append(f"MSG: {name}\n{_FIELDS[name]}" if parts else _FIELDS[name])
        kinds = (line.split()[0].removesuffix("[]") for line in _FIELDS[name].splitlines())
        used += [inner for inner in kinds if inner in _FIELDS and inner not in used]
    return f"\n{'=' * 80}\n".join(parts)


def _messages(run: Trajectory, times: Array) -> Messages:
    """All messages in the order of time; that of a run, from zero."""
    robot = run.robot
    yield "/robot_description", _nanoseconds(times[0]), {"data": write_urdf(robot.description)}
    spans = mode_spans(run)
    states = [run(t) for t in times]
    joints = [joint for joint in robot.joints if robot.coordinates(joint).nv == 1]
    q, v = np.array([state.q for state in states]), np.array([state.v for state in states])
    # Angles go on over full turns, whatever their coordinates are.
    position = [joint_positions(robot, joint, q)[1][:, 0] for joint in joints]
    velocity = v[:, [robot.coordinates(joint).v.start for joint in joints]]
    for k, t in enumerate(times):
        time = _nanoseconds(t)
        while spans and spans[0][0] <= t:
            yield "/mode", time, {"data": spans.pop(0)[1]}
        header = {"stamp": _stamp(time), "frame_id": ""}
        values = [float(x[k]) for x in position], velocity[k].tolist()
        content = dict(zip(("name", "position", "velocity"), (joints, *values), strict=True))
        yield "/joint_states", time, {"header": header, "effort": [], **content}
        yield "/tf", time, {"transforms": list(_transforms(run, q[k], time))}


def _transforms(run: Trajectory, q: Array, time: int) -> Iterator[dict[str, Any]]:
    robot = run.robot
    with robot.workspace() as data:
        pin.framesForwardKinematics(robot.model, data, q)
        for body in robot.bodies:
            numbers = pin.SE3ToXYZQUAT(data.oMf[robot.frame_id(body)]).tolist()
            yield {
                "header": {"stamp": _stamp(time), "frame_id": "world"},
                "child_frame_id": body,
                "transform": {
                    "translation": dict(zip("xyz", numbers[:3], strict=True)),
                    "rotation": dict(zip("xyzw", numbers[3:], strict=True)),
                },
            }


def _nanoseconds(t: float) -> int:
    return round(1e9 * t)


def _stamp(time: int) -> dict[str, int]:
    return {"sec": time // 10**9, "nanosec": time % 10**9}

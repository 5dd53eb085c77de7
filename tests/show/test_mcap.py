"""Runs as ROS 2 messages, as readers of others see them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from mcap.reader import make_reader
from mcap_ros2.decoder import DecoderFactory

import pinloop as pl

from .test_recordings import locked_run


@pytest.fixture(scope="module")
def run() -> pl.Trajectory:
    return locked_run()


def test_messages_are_the_run(run: pl.Trajectory, tmp_path: Path) -> None:
    path, robot = run.to_mcap(tmp_path / "run.mcap", rate=50), run.robot
    topics = dict[str, list[tuple[int, Any]]]()
    with path.open("rb") as file:
        reader = make_reader(file, decoder_factories=[DecoderFactory()])
        for _, channel, message, content in reader.iter_decoded_messages():
            topics.setdefault(channel.topic, []).append((message.log_time, content))
    ((_, description),) = topics["/robot_description"]
    assert set(pl.load(description.data).joints) == set(robot.joints)
    modes = [(time, message.data) for time, message in topics["/mode"]]
    assert modes == [(0, "nothing locked"), (123_000_000, "locked: shoulder")]
    states = topics["/joint_states"]
    assert len(states) >= 16 and len(topics["/tf"]) == len(states)
    for (time, state), (_, tf) in zip(states, topics["/tf"], strict=True):
        at, t = state.header.stamp, 1e-9 * time
        assert at.sec + 1e-9 * at.nanosec == pytest.approx(t, abs=1e-12)
        _, q, v = run(min(t, run.t[-1]))
        names = state.name
        expected = [q[robot.coordinates(name).q][0] for name in names]
        np.testing.assert_allclose(state.position, expected, atol=1e-8)
        if abs(t - 0.123) > 1e-6:  # there velocities jump
            rates = [v[robot.coordinates(name).v][0] for name in names]
            np.testing.assert_allclose(state.velocity, rates, atol=1e-6)
        for part in tf.transforms:
            place = robot.placement(q, part.child_frame_id)
            shift, turn = part.transform.translation, part.transform.rotation
            np.testing.assert_allclose([shift.x, shift.y, shift.z], place.translation, atol=1e-8)
            point = place.rotation @ [1.0, 2.0, 3.0]
            np.testing.assert_allclose(
                turned([turn.x, turn.y, turn.z, turn.w], [1.0, 2.0, 3.0]), point, atol=1e-8
            )
            assert part.header.frame_id == "world"
        assert {part.child_frame_id for part in tf.transforms} == set(robot.bodies)


def turned(quaternion: list[float], a: list[float]) -> Any:
    """``a + 2 w x (w x a + s a)``."""
    vector, scalar = np.array(quaternion[:3]), quaternion[3]
    return a + 2 * np.cross(vector, np.cross(vector, a) + scalar * np.array(a))


def test_ros_reads_it_without_us(run: pl.Trajectory, tmp_path: Path) -> None:
    """Another reader, with ROS' own definitions of the messages."""
    from rosbags.highlevel import AnyReader
    from rosbags.typesys import Stores, get_typestore

    path = run.to_mcap(tmp_path / "run.mcap")
    with AnyReader([path], default_typestore=get_typestore(Stores.ROS2_HUMBLE)) as reader:
        kinds = {x.topic: x.msgtype for x in reader.connections}
        assert kinds["/joint_states"] == "sensor_msgs/msg/JointState"
        count = 0
        for connection, _, raw in reader.messages():
            message = reader.deserialize(raw, connection.msgtype)
            count += connection.topic == "/joint_states"
            if connection.topic == "/tf":
                assert len(message.transforms) == len(run.robot.bodies)
    assert count > 30

"""Runs as recordings of rerun: the robot in motion, and its joints as curves below each other."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

from ..boundary.files import write_file
from ..errors import BadValue
from ..simulation.columns import columns
from ..simulation.trajectory import Trajectory
from .scene.motion import mode_spans, modes_at, recorded_times
from .scene.replay import quaternions_of
from .scene.scene import make_scene


def write_rerun(run: Trajectory, path: str | Path, rate: float) -> Path:
    """Write a run as a recording of rerun; see `Trajectory.to_rerun`."""
    try:
        rerun = import_module("rerun")
    except ImportError:
        raise BadValue("recordings of rerun need rerun-sdk: pip install 'pinloop[rerun]'") from None
    t = recorded_times(run, rate)
    recording = rerun.RecordingStream("pinloop", send_properties=False)
    stream = recording.binary_stream()
    timeline = [rerun.TimeColumn("time", duration=t)]

    def entity(path: str) -> str:
        """The path of an entity; steps of a path may hold any letter."""
        return str(rerun.new_entity_path(path.split("/")))

    recording.log("robot", rerun.ViewCoordinates.RIGHT_HAND_Z_UP, static=True)
    scene, states = make_scene(run.robot, marked=()), run(t)
    for part in scene.parts:
        points, corners, normals = part.triangles()
        mesh = rerun.Mesh3D(
            vertex_positions=points,
            triangle_indices=corners,
            vertex_normals=normals,
            albedo_factor=part.color,
        )
        recording.log(entity(f"robot/{part.path}"), mesh, static=True)
    matrices = scene.placements_over(states.q)
    turns = quaternions_of(matrices[:, :, :3, :3])
    for k, node in enumerate(scene.nodes):
        moves = rerun.Transform3D.columns(translation=matrices[:, k, :3, 3], quaternion=turns[:, k])
        recording.send_columns(entity(f"robot/{node.path}"), timeline, moves)
    table = columns(run.robot, t, states.q, states.v, modes_at(run, t))
    for name in list(table)[1:-1]:  # neither the time nor the mode
        curve = rerun.Scalars.columns(scalars=table[name])
        recording.send_columns(entity(f"joints/{name}"), timeline, curve)
    starts, words = zip(*mode_spans(run), strict=True)
    begins = [rerun.TimeColumn("time", duration=starts)]
    recording.send_columns("mode", begins, rerun.TextLog.columns(text=words))
    recording.flush()
    return write_file(path, lambda file: file.write(stream.read()))

"""What `<gazebo>` adds to a URDF, in the words of SDF: links, joints, and links that are welded.

The robot is the model that SDF makes of the URDF: its frame is that of the root link, and all joint
coordinates are zero in the pose of the file.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pinocchio as pin

from ...boundary.xml import Element, Remarks
from ...model.description import GROUND, Body, Description, Joint
from ...model.pairs import make_pair
from ..sdf.joints import axes_of, axis_values, is_detachable, sdf_pair
from ..sdf.links import read_body
from ..sdf.source import read_pose
from ..tree_placements import reference_placements
from ..vocabulary import SDF, report_unread
from .loops import closing_joint

__all__ = ["read_gazebo"]


def read_gazebo(root: Element, description: Description, remarks: Remarks) -> Description:
    """Add the links and joints that stand in the `<gazebo>` elements of a URDF."""
    blocks = root.all("gazebo")
    parts = [part for block in blocks for part in block.all("link", "joint")]
    for part in parts:
        report_unread(part, SDF, remarks)
    for block in blocks:
        for child in block.children:
            if child.tag.startswith(("joint:", "body:")):
                remarks.add(child, "in <gazebo> is of a Gazebo before SDF and is not read")
    links = [part for part in parts if part.tag == "link"]
    placements = reference_placements(description)
    bodies: list[Body] = []
    for link in links:
        bodies.append(read_body(link.require("name"), link, remarks))
        placements[link.require("name")] = read_pose(link.first("pose"))
    added = {body.name for body in bodies}
    joints = [_joint(part, placements, added, remarks) for part in parts if part.tag == "joint"]
    for plugin in (plugin for block in blocks for plugin in block.all("plugin")):
        if is_detachable(plugin):
            joints += _weld(plugin, description.name, placements, remarks)
    return replace(
        description,
        bodies=(*description.bodies, *bodies),
        joints=(*description.joints, *joints),
    )


def _link(owner: Element, tag: str, placements: dict[str, pin.SE3]) -> str:
    element = owner.need(tag)
    name = element.text.strip() or element.require("link")
    if name == "world" and name not in placements:
        return GROUND
    if name not in placements:
        raise owner.unknown("link", name, placements)
    return name


def _joint(
    element: Element, placements: dict[str, pin.SE3], added: set[str], remarks: Remarks
) -> Joint:
    """A joint: its frame sits on the child and coincides with the parent's at zero coordinates."""
    parent, child = (_link(element, tag, placements) for tag in ("parent", "child"))
    on_child = read_pose(element.first("pose"))
    on_parent = placements[parent].actInv(placements[child] * on_child)
    pair = sdf_pair(element, remarks)
    axes = axes_of(element, pair)
    directions = [
        np.array([0.0, 0.0, 1.0]) if axis is None else axis.text_vector("xyz", (0.0, 0.0, 1.0))
        for axis in axes or [None]
    ]
    joint = closing_joint(
        element, pair, (parent, child), (on_parent, on_child), (directions[0], directions[-1])
    )
    values = axis_values(element, axes, remarks)
    # A link that only Gazebo knows hangs on what Gazebo's joints give it.
    return replace(joint, cut=None if {parent, child} & added else True, **values)


def _weld(
    plugin: Element, robot: str, placements: dict[str, pin.SE3], remarks: Remarks
) -> list[Joint]:
    """The fixed pair of Gazebo's DetachableJoint."""
    model = plugin.need("child_model").text.strip()
    if model not in (robot, "__model__"):
        remarks.add(plugin, f"attaches the model '{model}', which is not this robot; left out")
        return []
    parent, child = (_link(plugin, f"{end}_link", placements) for end in ("parent", "child"))
    frame = placements[parent].actInv(placements[child])
    name = f"{parent}-{child}"
    return [Joint(name, make_pair("fixed"), parent, child, frame, pin.SE3.Identity(), cut=True)]

"""What `<gazebo>` adds to a URDF, in the words of SDF: links, joints, and links that are welded.

The robot is the model that SDF makes of the URDF: its frame is that of the root link, and all joint
coordinates are zero in the pose of the file.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pinocchio as pin

from ...boundary.xml import Element, Remarks
from ...model.description import Body, Description, Joint
from ..quantities import find_body, weld
from ..sdf.joints import axes_of, axis_values, is_detachable, sdf_pair
from ..sdf.reader import read_body
from ..sdf.scope import read_pose, text_of
from ..vocabulary import SDF, report_unread
from .loops import closing_joint, reference_placements


def read_gazebo(root: Element, description: Description, remarks: Remarks) -> Description:
    """Add the links and joints that stand in the `<gazebo>` elements of a URDF."""
    blocks = root.all("gazebo")
    parts = [part for block in blocks for part in block.all("link", "joint")]
    for part in parts:
        report_unread(part, SDF, remarks)
    for old in (child for block in blocks for child in block.children):
        if old.tag.startswith(("joint:", "body:")):
            remarks.add(old, "in <gazebo> is of a Gazebo before SDF and is not read")
    placements = reference_placements(description)
    bodies: list[Body] = []
    for link in (part for part in parts if part.tag == "link"):
        bodies.append(read_body(link.require("name"), link, remarks))
        placements[bodies[-1].name] = read_pose(link.first("pose"))
    added = {body.name for body in bodies}
    joints = [_joint(part, placements, added, remarks) for part in parts if part.tag == "joint"]
    for plugin in (plugin for block in blocks for plugin in block.all("plugin")):
        if not is_detachable(plugin):
            continue
        model = text_of(plugin, "child_model")
        if model not in (description.name, "__model__"):
            remarks.add(plugin, f"attaches the model '{model}', which is not this robot; left out")
            continue
        parent, child = (_link(plugin, f"{end}_link", placements) for end in ("parent", "child"))
        joints.append(weld(parent, child, placements[parent].actInv(placements[child]), True))
    return replace(
        description,
        bodies=(*description.bodies, *bodies),
        joints=(*description.joints, *joints),
    )


def _link(owner: Element, tag: str, placements: dict[str, pin.SE3]) -> str:
    element = owner.need(tag)
    return find_body(element.text.strip() or element.require("link"), placements, owner)


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

"""What turns the joints of a URDF: transmissions of ROS, ros2_control and Drake."""

from __future__ import annotations

from ...boundary.xml import Element, Remarks
from ...errors import LoadError
from ...model.description import Drive

__all__ = ["read_drives"]


def read_drives(
    root: Element, joints: set[str], remarks: Remarks
) -> tuple[tuple[str, ...], list[Drive]]:
    """Actuated joints and gears from <transmission> and <ros2_control>."""
    actuated: dict[str, None] = {}
    drives: dict[str, Drive] = {}
    blocks = [*root.all("transmission")]
    for control in root.all("ros2_control"):
        blocks += control.all("transmission")
        for joint in control.all("joint"):
            if joint.first("command_interface") is None:
                continue
            name = joint.require("name")
            if name in joints:
                actuated[name] = None
            else:
                remarks.add(joint, "of <ros2_control> is no joint of the robot; left out")
    for block in blocks:
        for joint in block.all("joint"):
            name = joint.require("name")
            if name not in joints:
                remarks.add(joint, "of a transmission is no joint of the robot; left out")
                continue
            actuated[name] = None
            drives[name] = Drive(name, *_gear(block, joint, remarks))
    return tuple(actuated), list(drives.values())


def _gear(block: Element, joint: Element, remarks: Remarks) -> tuple[float, float | None]:
    """Reduction and rotor inertia of a transmission, wherever the dialect keeps them."""
    places = [joint, *block.all("actuator"), block]
    reduction = 1.0
    for place in places:
        child = place.first("mechanicalReduction", "mechanical_reduction")
        if child is not None:
            try:
                reduction = float(child.numbers(child.text, 1, "the value")[0])
            except LoadError:
                shown = repr(child.text.strip()[:40])
                remarks.add(block, f"has the reduction {shown}, which is no number; 1 is taken")
            break
    inertia: float | None = None
    for place in places:
        gear = place.first("drake:gear_ratio")
        if gear is not None:
            reduction = gear.number("value")
        rotor = place.first("drake:rotor_inertia")
        if rotor is not None:
            inertia = rotor.number("value")
    return reduction, inertia

"""Robots as URDF text: deterministic, indented, with as many digits as each number needs.

Loops are `<loop_joint>` elements, motors are `<transmission>` blocks. Knows no particular robot.
"""

from __future__ import annotations

from collections.abc import Iterable
from xml.sax.saxutils import quoteattr

from robot_parts import COLORS, Joint, Link, LoopJoint, Robot, Solid


def urdf_text(robot: Robot) -> str:
    """The whole file."""
    colors = {solid.color for link in robot.links for solid in link.solids}
    lines = ['<?xml version="1.0" encoding="utf-8"?>', "<!--"]
    lines += [f"  {line}".rstrip() for line in robot.about.strip().splitlines()]
    lines += ["-->", f'<robot name="{robot.name}">']
    for name, rgb in COLORS.items():
        if name in colors:
            rgba = _numbers((*rgb, 1.0))
            lines.append(f'  <material name="{name}"><color rgba="{rgba}"/></material>')
    arriving = {joint.child: joint for joint in robot.joints}
    for link in robot.links:
        lines.append("")
        if link.name in arriving:
            lines += _joint(arriving[link.name])
        lines += _link(link)
    for loop in robot.loops:
        lines += ["", *_loop_joint(loop)]
    for joint in robot.joints:
        if joint.reduction is not None:
            lines += ["", *_transmission(joint.name, joint.reduction)]
    lines.append("</robot>")
    return "\n".join(lines) + "\n"


def _number(value: float, digits: int) -> str:
    """Shortest text with so many significant digits; what is only rounding error becomes 0."""
    return "0" if abs(value) < 1e-14 else format(value, f".{digits}g")


def _numbers(values: Iterable[float], digits: int = 6) -> str:
    return " ".join(_number(float(value), digits) for value in values)


def _pose(xyz: Iterable[float], rpy: Iterable[float], digits: int = 15) -> str:
    """Attributes of a placement; fifteen digits, so that loops close to rounding error."""
    position, angles = _numbers(xyz, digits), _numbers(rpy, digits)
    turned = f' rpy="{angles}"' if angles != "0 0 0" else ""
    return f'xyz="{position}"{turned}'


def _link(link: Link) -> list[str]:
    properties = link.mass_properties()
    if properties is None and not link.solids:
        return [f"  <link name={quoteattr(link.name)}/>"]
    lines = [f"  <link name={quoteattr(link.name)}>"]
    if properties is not None:
        mass, com, inertia = properties
        # Products of inertia far below the moments are rounding errors of the summation.
        inertia = inertia * (abs(inertia) > 1e-13 * abs(inertia).max())
        (xx, xy, xz), (_, yy, yz), (_, _, zz) = inertia.tolist()
        names = ("ixx", "ixy", "ixz", "iyy", "iyz", "izz")
        moments = " ".join(
            f'{name}="{_number(value, 6)}"'
            for name, value in zip(names, (xx, xy, xz, yy, yz, zz), strict=True)
        )
        lines += [
            "    <inertial>",
            f"      <origin {_pose(com, (0, 0, 0), 6)}/>",
            f'      <mass value="{_number(mass, 6)}"/>',
            f"      <inertia {moments}/>",
            "    </inertial>",
        ]
    for solid in link.solids:
        lines += _visual(solid)
    return [*lines, "  </link>"]


def _visual(solid: Solid) -> list[str]:
    if solid.kind == "box":
        shape = f'<box size="{_numbers(solid.size)}"/>'
    elif solid.kind == "cylinder":
        radius, length = solid.size
        shape = f'<cylinder radius="{_number(radius, 6)}" length="{_number(length, 6)}"/>'
    else:
        shape = f'<sphere radius="{_number(solid.size[0], 6)}"/>'
    return [
        "    <visual>",
        f"      <origin {_pose(solid.xyz, solid.rpy, 6)}/>",
        f"      <geometry>{shape}</geometry>",
        f'      <material name="{solid.color}"/>',
        "    </visual>",
    ]


def _joint(joint: Joint) -> list[str]:
    lines = [
        f'  <joint name={quoteattr(joint.name)} type="{joint.kind}">',
        f"    <origin {_pose(joint.xyz, joint.rpy)}/>",
        f'    <parent link="{joint.parent}"/>',
        f'    <child link="{joint.child}"/>',
    ]
    if joint.axis is not None:
        lines.append(f'    <axis xyz="{_numbers(joint.axis, 15)}"/>')
    if joint.axis2 is not None:
        lines.append(f'    <axis2 xyz="{_numbers(joint.axis2, 15)}"/>')
    if joint.limit is not None:
        limit = joint.limit
        lines.append(
            f'    <limit lower="{_number(limit.lower, 5)}" upper="{_number(limit.upper, 5)}"'
            f' velocity="{_number(limit.velocity, 4)}" effort="{_number(limit.effort, 5)}"/>'
        )
    if joint.damping or joint.friction:
        damping, friction = _number(joint.damping, 4), _number(joint.friction, 4)
        lines.append(f'    <dynamics damping="{damping}" friction="{friction}"/>')
    return [*lines, "  </joint>"]


def _loop_joint(loop: LoopJoint) -> list[str]:
    lines = [f'  <loop_joint name={quoteattr(loop.name)} type="{loop.kind}">']
    if loop.axis is not None:
        lines.append(f'    <axis xyz="{_numbers(loop.axis, 15)}"/>')
    lines += [
        f'    <link1 link="{loop.link1}" {_pose(loop.xyz1, loop.rpy1)}/>',
        f'    <link2 link="{loop.link2}" {_pose(loop.xyz2, loop.rpy2)}/>',
    ]
    return [*lines, "  </loop_joint>"]


def _transmission(joint: str, reduction: float) -> list[str]:
    interface = "<hardwareInterface>hardware_interface/EffortJointInterface</hardwareInterface>"
    return [
        f'  <transmission name="{joint}_transmission">',
        "    <type>transmission_interface/SimpleTransmission</type>",
        f'    <joint name="{joint}">{interface}</joint>',
        f'    <actuator name="{joint}_motor">',
        f"      <mechanicalReduction>{_number(reduction, 6)}</mechanicalReduction>",
        "    </actuator>",
        "  </transmission>",
    ]

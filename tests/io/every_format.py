"""One parallelogram in every format, for the tests that pick readers and feed them broken files.

Base, crank and rocker of 1 m along y, 2 m apart, and a coupler of 2 m along x on top; all joints
turn about z. Joints j1 (base to crank), j2 (crank to coupler), j3 (base to rocker); the loop
``close`` joins the tips of coupler and rocker. It is closed where ``(j1, j2, j3) = (t, -t, t)``.
"""

from __future__ import annotations

import numpy as np

import pinloop as pl

from .urdf_by_hand import Array

_MASSES = '<mass value="1.5"/><inertia ixx="0.1" iyy="0.2" izz="0.25" ixy="0.01" ixz="0" iyz="0"/>'


def _link(name: str, com: str) -> str:
    return f'  <link name="{name}"><inertial><origin xyz="{com}"/>{_MASSES}</inertial></link>\n'


def _joint(name: str, parent: str, child: str, xyz: str) -> str:
    return (
        f'  <joint name="{name}" type="revolute">\n    <origin xyz="{xyz}" rpy="0 0 0"/>\n'
        f'    <parent link="{parent}"/><child link="{child}"/><axis xyz="0 0 1"/>\n'
        '    <limit lower="-2" upper="2" velocity="3" effort="40"/>\n'
        '    <dynamics damping="0.1" friction="0.2"/>\n  </joint>\n'
    )


_TIPS = "".join(
    f'  <link name="{tip}"/><joint name="{tip}_mount" type="fixed"><origin xyz="{xyz}"/>'
    f'<parent link="{link}"/><child link="{tip}"/></joint>\n'
    for tip, link, xyz in (("tip_a", "coupler", "2 0 0"), ("tip_b", "rocker", "0 1 0"))
)

URDF_TREE = (
    '<?xml version="1.0"?>\n<robot name="bars">\n  <link name="base"/>\n'
    + _link("crank", "0 0.5 0")
    + _link("coupler", "1 0 0")
    + _link("rocker", "0 0.5 0")
    + _joint("j1", "base", "crank", "0 0 0")
    + _joint("j2", "crank", "coupler", "0 1 0")
    + _joint("j3", "base", "rocker", "2 0 0")
    + _TIPS
    + "</robot>\n"
)

URDF = URDF_TREE.replace(
    "</robot>",
    """  <loop_joint name="close" type="revolute"><axis xyz="0 0 1"/>
    <link1 link="coupler" xyz="2 0 0"/><link2 link="rocker" xyz="0 1 0" rpy="0 0 0"/></loop_joint>
  <transmission name="t"><joint name="j1"/><actuator name="m">
    <mechanicalReduction>50</mechanicalReduction></actuator></transmission>
</robot>""",
)

_DIALECTS = """
  <loop name="close" type="revolute"><predecessor link="coupler"><origin xyz="2 0 0"/>
    </predecessor>
    <successor link="rocker"><origin xyz="0 1 0" rpy="0 0 0"/></successor><axis xyz="0 0 1"/></loop>
  <constraint name="ros" type="cylindrical"><parent link="coupler"/><parent_origin xyz="2 0 0"/>
    <parent_axis xyz="0 0 1"/><child link="rocker"/><child_origin xyz="0 1 0" rpy="0 0 0"/>
    <child_axis xyz="0 0 1"/></constraint>
  <gazebo><joint name="gazebo" type="revolute"><parent>coupler</parent><child>rocker</child>
    <pose>0 1 0 0 0 0</pose><axis><xyz>0 0 1</xyz></axis></joint></gazebo>
  <drake:ball_constraint><drake:ball_constraint_body_A name="coupler"/>
    <drake:ball_constraint_p_AP value="2 0 0"/><drake:ball_constraint_body_B name="rocker"/>
    <drake:ball_constraint_p_BQ value="0 1 0"/></drake:ball_constraint>
  <coupling name="gear"><predecessor link="crank"/><successor link="rocker"/>
    <ratio value="1"/></coupling>
  <frame name="tool" link="coupler" xyz="1 0 0" rpy="0 0 0"/>
  <frame name="closing_x_1" link="coupler" xyz="2 0 0"/>
  <frame name="closing_x_2" link="rocker" xyz="0 1 0"/>
  <transmission name="t"><joint name="j1"/><actuator name="m"><drake:gear_ratio value="20"/>
    <drake:rotor_inertia value="0.0001"/></actuator></transmission>
  <ros2_control name="c" type="system"><joint name="j1"><command_interface name="effort"/></joint>
  </ros2_control>
  <material name="red"><color rgba="1 0 0 1"/></material>
</robot>"""

URDF_DIALECTS = (
    URDF_TREE.replace("</robot>", _DIALECTS)
    .replace('<link name="base"/>', '<link name="base"><visual><geometry><box size="1 1 1"/>'
             '</geometry><material name="red"/></visual><collision><geometry>'
             '<mesh filename="package://bars/base.stl" scale="1 1 1"/></geometry></collision>'
             "</link>")
    .replace('<dynamics damping="0.1" friction="0.2"/>\n  </joint>',
             '<dynamics damping="0.1" friction="0.2"/>\n  '
             '<mimic joint="j1" multiplier="-1" offset="0"/></joint>', 2)
    .replace('<mimic joint="j1" multiplier="-1" offset="0"/>', "", 1)
)  # fmt: skip
"""Every dialect of loops at once: all closed at the same configurations."""


def _sdf_link(name: str, pose: str, com: str) -> str:
    return f"""    <link name="{name}"><pose>{pose} 0 0 0</pose><inertial><pose>{com} 0 0 0</pose>
      <mass>1.5</mass><inertia><ixx>0.1</ixx><iyy>0.2</iyy><izz>0.25</izz><ixy>0.01</ixy>
      <ixz>0</ixz><iyz>0</iyz></inertia></inertial></link>
"""


def _sdf_joint(name: str, parent: str, child: str, pose: str = "0 0 0") -> str:
    return f"""    <joint name="{name}" type="revolute"><pose>{pose} 0 0 0</pose>
      <parent>{parent}</parent><child>{child}</child><axis><xyz>0 0 1</xyz><limit><lower>-2</lower>
      <upper>2</upper><effort>40</effort><velocity>3</velocity></limit></axis></joint>
"""


SDF = (
    '<?xml version="1.0"?>\n<sdf version="1.9">\n  <model name="bars">\n'
    '    <link name="base"><pose>0 0 0 0 0 0</pose></link>\n'
    '    <joint name="floor" type="fixed"><parent>world</parent><child>base</child></joint>\n'
    + _sdf_link("crank", "0 0 0", "0 0.5 0")
    + _sdf_link("coupler", "0 1 0", "1 0 0")
    + _sdf_link("rocker", "2 0 0", "0 0.5 0")
    + _sdf_joint("j1", "base", "crank")
    + _sdf_joint("j2", "crank", "coupler")
    + _sdf_joint("j3", "base", "rocker")
    + _sdf_joint("close", "coupler", "rocker", "0 1 0")
    + "  </model>\n</sdf>\n"
)


def _mjcf_body(name: str, joint: str, pos: str, com: str, inside: str = "") -> str:
    return f"""<body name="{name}" pos="{pos}"><joint name="{joint}" class="bar" range="-2 2"/>
      <inertial pos="{com}" mass="1.5" fullinertia="0.1 0.2 0.25 0.01 0 0"/>{inside}</body>
"""


MJCF = (
    """<mujoco model="bars">
  <compiler angle="radian" autolimits="true"/>
  <option gravity="0 0 -9.81"/>
  <default><default class="bar"><joint type="hinge" axis="0 0 1" damping="0.1"/></default></default>
  <asset><mesh name="m" vertex="0 0 0 1 0 0 0 1 0 0 0 1"/></asset>
  <worldbody><body name="base"><geom type="box" size="1 1 0.1" mass="0"/>
"""
    + _mjcf_body(
        "crank", "j1", "0 0 0", "0 0.5 0",
        _mjcf_body("coupler", "j2", "0 1 0", "1 0 0", '<site name="tip_a" pos="2 0 0"/>'),
    )
    + _mjcf_body("rocker", "j3", "2 0 0", "0 0.5 0", '<site name="tip_b" pos="0 1 0"/>')
    + """</body></worldbody>
  <equality><connect name="close" body1="coupler" body2="rocker" anchor="2 0 0"/></equality>
  <actuator><motor name="m" joint="j1" gear="50"/></actuator>
</mujoco>
"""
)  # fmt: skip

LOOPS = """\
format: pinloop-loops-1
loops:
  - name: close
    pair: revolute
    axis: [0, 0, 1]
    a: {body: coupler, xyz: [2, 0, 0]}
    b: {body: rocker, xyz: [0, 1, 0], rpy: [0, 0, 0]}
couplings:
  - {name: gear, joint: j3, source: j1, ratio: 1.0, offset: 0.0}
  - name: cam
    polynomials: {j1: [0.0, 1.0], j2: [0.0, 1.0]}
actuated: [j1]
drives: {j1: {reduction: 50, rotor_inertia: 0.0001}}
gravity: [0, 0, -9.81]
"""

GEPETTO = """\
closed_loop: [['tip_a', 'tip_b']]
type: ['3d']
name_mot: ['j1']
joint_name: ['j2']
joint_type: ['SPHERICAL']
"""

SCREWS = (
    """\
name: bars
gravity: [0, 0, -9.81]
bodies:
"""
    + "".join(
        f"""\
  - name: {name}
    mass: 1.5
    com: {com}
    inertia: [[0.1, 0.01, 0], [0.01, 0.2, 0], [0, 0, 0.25]]
"""
        for name, com in (("crank", [0, 0.5, 0]), ("coupler", [1, 1, 0]), ("rocker", [2, 0.5, 0]))
    )
    + """\
joints:
  - {name: j1, pair: revolute, parent: ground, child: crank, axis: [0, 0, 1], point: [0, 0, 0]}
  - {name: j2, pair: revolute, parent: crank, child: coupler, axis: [0, 0, 1], point: [0, 1, 0]}
  - {name: j3, pair: revolute, parent: ground, child: rocker, axis: [0, 0, 1], point: [2, 0, 0],
     limits: {lower: -2, upper: 2, velocity: 3, effort: 40}}
  - {name: close, pair: revolute, parent: coupler, child: rocker, axis: [0, 0, 1],
     point: [2, 1, 0], cut: true}
actuated: [j1]
"""
)

SRDF = """<?xml version="1.0"?>
<robot name="bars">
  <group name="g"><joint name="j1"/></group>
  <virtual_joint name="v" type="fixed" parent_frame="world" child_link="base"/>
  <passive_joint name="j2"/>
  <passive_joint name="j3"/>
</robot>
"""

ROBOTS = {"URDF": URDF, "SDF": SDF, "MJCF": MJCF, "screws": SCREWS}
"""Robots that are complete in one file."""

JOINTS = ("j1", "j2", "j3")


def closed(robot: pl.Mechanism, angle: float) -> Array:
    """The configuration of the parallelogram with its crank at ``angle``."""
    return robot.configuration(dict(zip(JOINTS, (angle, -angle, angle), strict=True)))


def is_closed(robot: pl.Mechanism, angle: float) -> bool:
    """Whether the loops are closed there; they are not if the coupler stays behind."""
    constraints = pl.Constraints(robot)
    q = closed(robot, angle)
    off = robot.configuration({"j2": -angle + 0.1}, q)
    assert np.abs(constraints.residual(off)).max() > 1e-3
    return bool(np.abs(constraints.residual(q)).max() < 1e-12)

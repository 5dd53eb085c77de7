"""Valid robots that use as much of each format as possible, for the fuzz tests of the readers."""

from __future__ import annotations

from .io.every_format import GEPETTO, LOOPS, MJCF, SCREWS, SDF, SRDF, URDF, URDF_DIALECTS

__all__ = ["BESIDE", "PIECES", "TABLES", "XACRO", "XML"]

URDF_JOINTS = """<robot name="all">
  <link name="base"/>
""" + "".join(
    f"""  <link name="l{number}"><inertial><origin xyz="0.1 0 0" rpy="0 0.1 0"/><mass value="1"/>
    <inertia ixx="0.1" iyy="0.2" izz="0.25"/></inertial></link>
  <joint name="j{number}" type="{kind}" {more}><origin xyz="0 0 {number}" rpy="0 0 0.1"/>
    <parent link="{parent}"/><child link="l{number}" xyz="0 0.1 0" rpy="0.1 0 0"/>
    <axis xyz="0 0.6 0.8"/><axis2 xyz="1 0 0"/><dynamics damping="0.1" armature="0.01"/></joint>
"""
    for number, (kind, more, parent) in enumerate(
        (
            ("helical", 'pitch="0.1"', "base"), ("universal", "", "l0"), ("spherical", "", "l1"),
            ("planar", "", "base"), ("floating", "", "base"), ("cylindrical", "", "l3"),
            ("continuous", 'coordinates="circle"', "base"), ("schoenflies", "", "l6"),
            ("spherical", 'coordinates="zyx"', "l6"), ("free", 'coordinates="SO3xR3"', "base"),
        )
    )
) + """  <loop_joint name="rod" type="rod" length="3"><link1 link="l2"/><link2 link="l5"/>
  </loop_joint>
  <loop_joint name="cross" type="universal"><axis xyz="1 0 0"/><axis2 xyz="0 1 0"/>
    <link1 link="l4"/><link2 link="l5"/></loop_joint>
  <loop_joint name="screw" type="screw" pitch="0.2"><link1 link="l4"/><link2 link="l7"/>
  </loop_joint>
  <loop_joint name="line" type="point_on_line"><link1 link="l8"/><link2 link="l9"/></loop_joint>
</robot>
"""  # fmt: skip

SDF_ALL = """<?xml version="1.0"?>
<sdf version="1.11"><world name="w"><gravity>0 0 -9.8</gravity>
  <model name="m" canonical_link="a"><pose>0 0 1 0 0 0.1</pose><static>false</static>
    <frame name="f" attached_to="a"><pose relative_to="__model__">0 0 1 0 0 0</pose></frame>
    <link name="a"><inertial><mass>2</mass><inertia><ixx>1</ixx><iyy>1</iyy><izz>1</izz></inertia>
      </inertial><visual name="v"><geometry><box><size>1 1 1</size></box></geometry></visual></link>
    <link name="b"><pose relative_to="f">0 0 1 0 0 0</pose><inertial><mass>1</mass></inertial>
      <collision name="c"><geometry><mesh><uri>model://x/y.dae</uri><scale>1 1 1</scale></mesh>
      </geometry></collision></link>
    <link name="c"><pose relative_to="b" rotation_format="quat_xyzw">1 0 0  0 0 0 1</pose></link>
    <link name="d"><pose relative_to="u">1 0 0 0 0 0</pose></link>
    <link name="e"/><link name="k"/>
    <joint name="rk" type="continuous"><parent>a</parent><child>k</child>
      <axis><xyz>0 0 1</xyz></axis></joint>
    <joint name="r" type="revolute"><parent>a</parent><child>b</child><axis>
      <xyz expressed_in="__model__">0 0 1</xyz><limit><lower>-1</lower><upper>1e16</upper></limit>
      <dynamics><damping>0.1</damping><friction>0.1</friction></dynamics></axis></joint>
    <joint name="u" type="universal"><parent>b</parent><child>c</child><axis><xyz>1 0 0</xyz></axis>
      <axis2><xyz>0 1 0</xyz></axis2></joint>
    <joint name="s" type="screw"><parent>c</parent><child>d</child>
      <screw_thread_pitch>0.1</screw_thread_pitch><axis><xyz>0 0 1</xyz></axis></joint>
    <joint name="p" type="prismatic"><parent>a</parent><child>e</child><axis><xyz>0 0 1</xyz>
      <mimic joint="r"><multiplier>2</multiplier><offset>0.1</offset><reference>0</reference>
      </mimic></axis></joint>
    <joint name="ball" type="ball"><pose relative_to="d">0 0 0 0 0 0</pose>
      <parent>e</parent><child>d</child></joint>
    <joint name="g" type="gearbox"><parent>b</parent><child>k</child>
      <gearbox_reference_body>a</gearbox_reference_body><gearbox_ratio>3</gearbox_ratio>
      <axis><xyz>0 0 1</xyz></axis><axis2><xyz>0 0 1</xyz></axis2></joint>
    <model name="inner"><link name="i"/><link name="o"/><joint name="fix" type="fixed">
      <parent>__model__</parent><child>o</child></joint></model>
    <joint name="weld" type="fixed"><parent>a</parent><child>inner::i</child></joint>
    <drake:ball_constraint><drake:ball_constraint_body_A>m::a</drake:ball_constraint_body_A>
      <drake:ball_constraint_p_AP>0 0 1</drake:ball_constraint_p_AP>
      <drake:ball_constraint_body_B>e</drake:ball_constraint_body_B>
      <drake:ball_constraint_p_BQ>0 0 0</drake:ball_constraint_p_BQ></drake:ball_constraint>
  </model></world></sdf>
"""

MJCF_ALL = """<mujoco model="all">
  <compiler angle="degree" eulerseq="xyz" inertiafromgeom="auto" boundmass="0" balanceinertia="true"
    meshdir="none" settotalmass="-1"/>
  <option gravity="0 0 -9.81" timestep="0.01"/>
  <default><geom density="1000" rgba="1 0 0 1"/><joint damping="1"/>
    <default class="slim"><geom type="capsule" size="0.05"/><site size="0.01"/></default></default>
  <asset><mesh name="tetra" vertex="0 0 0  1 0 0  0 1 0  0 0 1" scale="1 1 2"/>
    <mesh name="file" file="none.stl"/><material name="red" rgba="1 0 0 1"/>
    <texture name="t" builtin="flat" width="8" height="8" type="2d"/></asset>
  <worldbody><light pos="0 0 1"/><geom name="floor" type="plane" size="1 1 0.1"/>
    <site name="s0" pos="0 0 1"/>
    <body name="a" pos="0 0 1" euler="0 10 0" childclass="slim"><freejoint name="free"/>
      <geom fromto="0 0 0 0 0 1"/><geom type="mesh" mesh="tetra" mass="1"/>
      <body name="b" pos="0 0 1" axisangle="0 0 1 30"><joint name="hinge" axis="0 1 0"
        range="-90 90" armature="0.1" frictionloss="0.1" ref="5" stiffness="1" springref="1"/>
        <geom type="box" size="0.1 0.2 0.3" pos="0.1 0 0" quat="1 0 0 0"/><site name="s1"/>
        <body name="c" pos="1 0 0" xyaxes="1 0 0 0 1 0"><joint name="x" type="slide" axis="1 0 0"/>
          <joint name="y" type="hinge" axis="0 0 1" pos="0 0.1 0"/>
          <geom type="ellipsoid" size="0.1 0.2 0.3"/><site name="s2" zaxis="0 1 0"/></body></body>
      <body name="d"><joint name="ball" type="ball" range="0 60"/><geom type="sphere" size="0.1"/>
        <body name="e" pos="0 1 0"><joint name="slide" type="slide"/>
          <inertial pos="0 0 0" mass="1" diaginertia="1 1 1" quat="1 0 0 0"/></body></body></body>
    <frame pos="1 0 0"><body name="f"><joint name="k"/><geom type="cylinder" size="0.1 0.2"/>
    </body></frame></worldbody>
  <equality><connect name="c1" body1="b" body2="d" anchor="0 0 0"/><connect site1="s1" site2="s2"/>
    <weld name="w" body1="c" body2="e" relpose="0 0 0 1 0 0 0" anchor="0 0 0" torquescale="1"/>
    <weld body1="f" relpose="0 0 0 0 0 0 0" active="false"/>
    <joint name="gear" joint1="hinge" joint2="k" polycoef="0 1 0.5 0 0"/><joint joint1="x"/>
  </equality>
  <tendon><fixed name="t"><joint joint="hinge" coef="1"/></fixed></tendon>
  <actuator><motor joint="hinge" gear="10" ctrlrange="-1 1" forcerange="-5 5"/>
    <position joint="k" kp="10"/><general jointinparent="ball" gear="0 0 1 0 0 0"/></actuator>
  <contact><exclude body1="a" body2="b"/></contact>
  <keyframe><key name="home" qpos="0"/></keyframe>
</mujoco>
"""

XML = {
    "urdf": URDF,
    "urdf_dialects": URDF_DIALECTS,
    "urdf_joints": URDF_JOINTS,
    "sdf": SDF,
    "sdf_all": SDF_ALL,
    "mjcf": MJCF,
    "mjcf_all": MJCF_ALL,
}
"""Robots in XML."""

PIECES = """<pieces>
  <include file="robot.xml"/><include file="none.xml"/><frame pos="1 0 0"/>
  <include><uri>robot.sdf</uri><name>again</name></include>
  <include merge="true"><uri>model://none</uri></include>
  <replicate count="100000"><body/></replicate><attach model="m" body="b" prefix="p"/>
  <composite type="grid" count="9 9 9"/><flexcomp name="f"/><extension/><custom/>
  <mesh filename="package://none/none.stl"/><mesh name="m" file="robot.xml"/>
  <loop/><coupling/><constraint/><loop_joint/><gazebo><joint/></gazebo><transmission/><mimic/>
  <passive_joint/><drake:ball_constraint/><equality><connect/><weld/><joint/></equality>
</pieces>"""
"""Elements to transplant: incomplete, dangerous or of other dialects."""

TABLES = {"screws": SCREWS}
"""Robots in YAML."""

XACRO = {
    "xacro": """<robot name="legs" xmlns:xacro="http://www.ros.org/wiki/xacro">
  <xacro:property name="length" value="0.5"/><xacro:arg name="mass" default="2"/>
  <xacro:macro name="leg" params="name parent *origin mass:=1"><link name="${name}"><inertial>
    <mass value="${mass}"/><inertia ixx="${length**2}" iyy="0.3" izz="0.3" ixy="0" ixz="0" iyz="0"/>
    </inertial></link><joint name="${name}_hip" type="revolute"><xacro:insert_block name="origin"/>
    <parent link="${parent}"/><child link="${name}"/><axis xyz="0 1 0"/>
    <limit lower="-${pi/2}" upper="${pi/2}" effort="1" velocity="1"/></joint></xacro:macro>
  <link name="base"/>
  <xacro:leg name="left" parent="base" mass="$(arg mass)"><origin xyz="0 ${length} 0"/></xacro:leg>
  <xacro:if value="${length > 0}"><xacro:leg name="right" parent="left"><origin xyz="1 0 0"/>
  </xacro:leg></xacro:if>
</robot>
"""
}
"""Robots with macros."""

BESIDE = {"loops": LOOPS, "gepetto": GEPETTO, "srdf": SRDF}
"""Files that say more about `URDF_TREE`."""

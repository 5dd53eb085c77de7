"""Which elements and attributes a format has: whatever else a file says is reported, never lost.

One mechanism for all XML formats. A vocabulary is a table with one line per element::

    "link1": "link xyz rpy | origin"

its attributes and, after the bar, its children. ``parent/child`` describes a child there only,
``drake:*`` stands for all names that begin so, and ``*`` for all. An element without a line of its
own is not looked into: it says nothing about mechanics. Tables of YAML declare their keys as
fields of `Entry` instead.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache

from ..boundary.xml import Element, Remarks
from ..errors import listed, suggestion

Vocabulary = Mapping[str, str]

_FEW = 6
"""So many attributes can be listed in a message."""
_MOST = 200
"""So many kinds of remarks are made about one file."""
_ALIKE = 0.75
"""How much alike a slip of the pen is to what was meant, as `difflib` counts it."""


def report_unread(root: Element, vocabulary: Vocabulary, remarks: Remarks) -> None:
    """Report every element and attribute below ``root`` that is not in the vocabulary."""
    hints: dict[tuple[str, ...], str] = {}

    def report(element: Element, problem: str, names: Sequence[str], known: Sequence[str]) -> None:
        # Looking for what may have been meant takes time: once per kind is enough.
        kind = (element.tag, problem)
        if kind not in hints and len(hints) < _MOST:
            # What is there as well was not meant by another name.
            meant = [word for word in known if word not in element.attributes]
            hints[kind] = "".join(suggestion(name, meant, _ALIKE) for name in names[:_FEW])
            # What an element may have is worth listing for its attributes, not for its parent.
            if not hints[kind] and element.tag not in names and 0 < len(known) <= _FEW:
                hints[kind] = f"; <{element.tag}> has {', '.join(known)}"
        if kind in hints:
            remarks.add(element, problem, hints[kind])
        else:
            remarks.say("further elements or attributes are not read")

    waiting = [(root, vocabulary[root.tag])]
    while waiting:
        element, line = waiting.pop()
        attributes, children = _words(line)
        # Namespaces and what belongs to them is the business of XML.
        unread = [
            name
            for name in element.attributes
            if not _is_known(name, attributes) and ":" not in name and name != "xmlns"
        ]
        if unread:
            what = ("an attribute", "is") if len(unread) == 1 else ("attributes", "are")
            problem = f"has {what[0]}{listed(unread, ' ')} that {what[1]} not read"
            report(element, problem, unread, attributes)
        inside: list[tuple[Element, str]] = []
        for child in element.children:
            if not _is_known(child.tag, children):
                report(child, f"in <{element.tag}> is not read", [child.tag], children)
                continue
            entry = vocabulary.get(f"{element.tag}/{child.tag}") or vocabulary.get(child.tag)
            inside += [(child, entry)] if entry else []
        waiting += inside[::-1]


@cache
def _words(line: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Attributes and children of an element."""
    attributes, _, children = line.partition("|")
    return tuple(attributes.split()), tuple(children.split())


def _is_known(name: str, words: tuple[str, ...]) -> bool:
    prefix = name.partition(":")[0] + ":*"
    return name in words or "*" in words or (":" in name and prefix in words)


_POSE = "xyz rpy quat_xyzw"
_PAIR = "name type pitch length defined_in"
_SHAPES = "box sphere cylinder capsule ellipsoid mesh plane cdf"
_URDF_PASSED = "material sensor camera version verbose self_filter laser_retro"

URDF: Vocabulary = {
    "robot": (
        "name version | link joint frame fixed_frame loop_joint loop coupling constraint "
        "loop_constraint joint_constraint constraints gazebo transmission ros2_control group "
        "kinematics static spec drake:collision_filter_group drake:ball_constraint "
        f"drake:weld_constraint self_collision_checking mujoco {_URDF_PASSED}"
    ),
    "link": (
        "name type drake_ignore | origin inertial visual collision contact self_collide drake:* "
        f"collision_checking self_collision_checking {_URDF_PASSED}"
    ),
    "inertial": "| mass inertia origin",
    "mass": "value",
    "inertia": "ixx ixy ixz iyx iyy iyz izx izy izz",
    "visual": f"name | geometry origin material drake:* {_URDF_PASSED}",
    "collision": (
        "name group concave "
        f"| geometry origin material surface drake:* drake_compliance {_URDF_PASSED}"
    ),
    "geometry": f"name | {_SHAPES} drake:*",
    "box": "size",
    "sphere": "radius",
    "cylinder": "radius length",
    "capsule": "radius length",
    "ellipsoid": "radii",
    "mesh": "filename scale | drake:*",
    "joint": (
        f"{_PAIR} independent coordinates dont_collapse "
        "| parameter parent child origin axis axis2 limit dynamics "
        f"joint_properties mimic safety_controller calibration drake:* {_URDF_PASSED}"
    ),
    "joint/parent": "link",
    "joint/child": f"link {_POSE}",
    "parameter": "name value",
    "axis": "xyz",
    "axis2": "xyz",
    "limit": "lower upper velocity effort acceleration jerk deceleration drake:*",
    "dynamics": "damping friction armature",
    "joint_properties": "damping friction",
    "mimic": "joint multiplier offset",
    "origin": _POSE,
    "frame": f"name link {_POSE}",
    "fixed_frame": "name | parent origin",
    "fixed_frame/parent": "link",
    "loop_joint": (
        f"{_PAIR} | parameter link1 link2 parent child parent_origin child_origin axis axis2"
    ),
    "loop_joint/axis": "xyz frame",
    "loop_joint/parent": "link",
    "loop_joint/child": "link",
    "link1": f"link {_POSE} | origin",
    "link2": f"link {_POSE} | origin",
    "loop": f"{_PAIR} | parameter predecessor successor axis axis2",
    "coupling": "name type | predecessor successor ratio",
    "predecessor": "link | origin",
    "successor": "link | origin",
    "ratio": "value",
    "constraint": (
        f"{_PAIR} | parameter predecessor successor axis axis2 parent child parent_origin "
        "child_origin parent_axis child_axis origin ratio"
    ),
    "loop_constraint": f"{_PAIR} | parameter parent child parent_origin child_origin axis axis2",
    "loop_constraint/parent": "link",
    "loop_constraint/child": "link",
    "joint_constraint": "name | parent child gear_ratio",
    "joint_constraint/parent": "link",
    "joint_constraint/child": "link",
    "gear_ratio": "value",
    "constraint/parent": f"link {_POSE} | origin",
    "constraint/child": f"link {_POSE} | origin",
    "parent_origin": _POSE,
    "child_origin": _POSE,
    "parent_axis": "xyz",
    "child_axis": "xyz",
    "constraints": "nominal_config | pin equality",
    "pin": "name body1 body2 anchor",
    "equality": "name body1 body2 anchor | axis",
}

_SDF_LIMITS = "| xyz limit dynamics mimic use_parent_model_frame initial_position"

SDF: Vocabulary = {
    "sdf": "version | model world include light actor drake:*",
    "world": (
        "name | model include joint frame gravity physics scene light sensor gui plugin actor "
        "atmosphere magnetic_field audio spherical_coordinates wind road population state "
        "drake:ball_constraint drake:weld_constraint"
    ),
    "model": (
        "name canonical_link placement_frame | link joint frame model include pose static "
        "self_collide plugin allow_auto_disable enable_wind gripper drake:collision_filter_group "
        "drake:ball_constraint drake:weld_constraint"
    ),
    "include": "placement_frame merge | uri name pose static placement_frame plugin",
    "frame": "name attached_to | pose",
    "pose": "relative_to frame rotation_format degrees",
    "link": (
        "name | pose inertial visual collision gravity kinematic velocity_decay self_collide "
        "enable_wind must_be_base_link sensor projector audio_sink audio_source battery light "
        "particle_emitter plugin contact drake:*"
    ),
    "inertial": "auto | pose mass inertia density frame auto_inertia_params",
    "inertia": "| ixx iyy izz ixy ixz iyz",
    "visual": (
        "name | pose geometry material transparency cast_shadows laser_retro meta "
        "visibility_flags plugin drake:*"
    ),
    "collision": (
        "name concave "
        "| pose geometry surface material max_contacts laser_retro density auto_inertia_params "
        "drake:*"
    ),
    "joint": (
        "name type | parent child pose axis axis2 physics sensor gearbox_ratio plugin "
        "gearbox_reference_body thread_pitch screw_thread_pitch drake:*"
    ),
    "axis": _SDF_LIMITS,
    "axis2": _SDF_LIMITS,
    "xyz": "expressed_in",
    "limit": "| lower upper effort velocity stiffness dissipation drake:*",
    "dynamics": "| damping friction spring_reference spring_stiffness",
    "mimic": "joint axis | multiplier offset reference",
}

_MJCF_POSE = "pos quat axisangle euler xyaxes zaxis"
_MJCF_MEMBERS = (
    "geom joint freejoint inertial camera light site body frame attach replicate composite flexcomp"
)
_MJCF_SOLVER = "name class active solref solimp"

MJCF: Vocabulary = {
    "mujoco": (
        "model | compiler option size visual statistic default custom asset worldbody contact "
        "equality tendon actuator sensor keyframe deformable include"
    ),
    "default": "class | *",
    "worldbody": f"name | {_MJCF_MEMBERS}",
    "body": (
        f"name childclass mocap gravcomp sleep simple fuse user {_MJCF_POSE} | {_MJCF_MEMBERS}"
    ),
    "frame": (f"name childclass scale scaling massscale {_MJCF_POSE} | {_MJCF_MEMBERS}"),
    "inertial": f"mass diaginertia fullinertia {_MJCF_POSE}",
    "joint": (
        "name class type group pos axis range limited ref armature damping frictionloss "
        "stiffness springref springdamper springyield margin user actuatorfrcrange "
        "actuatorfrclimited actuatorgravcomp solreflimit solimplimit solreffriction solimpfriction"
    ),
    "freejoint": "name group align",
    "asset": "| mesh material texture hfield skin model",
    "geom": (
        "name class type group size fromto mesh hfield material rgba mass density shellinertia "
        "contype conaffinity condim priority friction solmix solref solimp margin gap user "
        f"fitscale fluidshape fluidcoef surfacevel adhesion castshadow {_MJCF_POSE} | plugin"
    ),
    "site": f"name class type group size fromto mesh material rgba user {_MJCF_POSE}",
    "default/equality": _MJCF_SOLVER,
    "equality": "| connect weld joint tendon flex flexvert flexstrain distance",
    "connect": f"{_MJCF_SOLVER} body1 body2 anchor site1 site2",
    "weld": f"{_MJCF_SOLVER} body1 body2 anchor relpose torquescale site1 site2",
    "equality/joint": f"{_MJCF_SOLVER} joint1 joint2 polycoef",
    "compiler": (
        "angle eulerseq autolimits meshdir texturedir assetdir strippath coordinate settotalmass "
        "inertiafromgeom inertiagrouprange boundmass boundinertia balanceinertia discardvisual "
        "usethread fusestatic exactmeshinertia alignfree saveinertial fitaabb convexhull "
        "| lengthrange"
    ),
}

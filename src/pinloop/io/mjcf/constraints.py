"""Equality constraints and actuators of MJCF: loop joints, couplings, drives.

Works on the joints that `body_tree` has read; what it cannot read it warns of.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np
import pinocchio as pin
from numpy.polynomial import Polynomial

from ...boundary.marks import Array
from ...boundary.xml import Element
from ...model.description import GROUND, Coupling, Drive, Joint
from ...model.pairs import make_pair
from ...tolerances import SAME_PLACE
from .body_tree import Tree
from .document import ACTUATORS, EQUALITIES, Document, flag, quaternion

Length = dict[str, float]
"""A tendon's length: factors of joint coordinates."""

Tendons = Mapping[str, Length | None]
"""Lengths of fixed tendons by name, None for those that run over sites."""

Motor = tuple[Document, Element]
"""An actuator and the model that it is in."""

_SITES = ("site1", "site2")
_TENDON_FORCES = ("stiffness", "damping", "frictionloss", "armature")


def read_equalities(
    documents: Sequence[Document], tree: Tree, tendons: Tendons
) -> tuple[list[Joint], list[Coupling]]:
    """Read the `<equality>` sections: loop joints (connect, weld), couplings (joint, tendon)."""
    loops: list[Joint] = []
    couplings: list[Coupling] = []
    for document in documents:
        for raw in document.section("equality"):
            if raw.tag not in EQUALITIES:
                continue
            element = document.filled(raw, "equality", "")
            if not flag(element, "active", True):
                document.warn(element, "is not active and is left out")
            elif tree.is_soft(element, "body1", "body2"):
                document.warn(element, "joins what is soft; it is left out")
            elif element.tag in ("connect", "weld"):
                loops.append(_loop(document, tree, element))
            elif element.tag == "joint":
                couplings.append(_couple_joints(document, tree, element))
            elif element.tag == "tendon":
                couplings += _couple_tendons(document, tree, element, tendons)
            else:
                document.warn(element, "is an equality constraint that is not read")
    return _with_hinges(loops), couplings


def _with_hinges(loops: list[Joint]) -> list[Joint]:
    """The loops with a hinge for two balls ``<name>`` and ``<name>/2`` on the z axes of its frames.

    So pinloop writes it, as MuJoCo has no hinges that close loops.
    """
    joints = {joint.name: joint for joint in loops}
    for first in loops:
        second = joints.get(f"{first.name}/2")
        if second is None or (first.parent, first.child) != (second.parent, second.child):
            continue
        ends = [
            getattr(first, side).actInv(getattr(second, side)).translation
            for side in ("frame_parent", "frame_child")
        ]
        off_axis = [*ends[0][:2], *ends[1][:2], ends[0][2] - ends[1][2]]
        if np.abs(off_axis).max() < SAME_PLACE < abs(ends[0][2]):
            joints[first.name] = replace(first, pair=make_pair("revolute"))
            del joints[second.name]
    return [*joints.values()]


def read_actuators(
    documents: Sequence[Document], tree: Tree, tendons: Tendons
) -> tuple[tuple[str, ...] | None, tuple[Drive, ...], list[Joint]]:
    """Read the `<actuator>` sections: actuated joints (None without motors), drives, tree joints.

    A motor on a fixed tendon ``L = sum_i c_i q_i`` pulls each of its joints with ``c_i`` times its
    own force, and drives all of them. The joints get effort limits and rotor inertias of their
    motors.
    """
    motors: dict[str, list[Motor]] = {}
    pulling: dict[str, list[Motor]] = {}
    known = {joint.name: joint for joint in tree.joints}
    sections = [(document, document.section("actuator")) for document in documents]
    for document, raw in ((document, raw) for document, section in sections for raw in section):
        if raw.tag not in ACTUATORS:
            continue
        shares = _shares(document, document.filled(raw, "actuator", ""), known, tendons)
        for joint, share in shares.items():
            acting = motors if len(shares) == 1 else pulling
            acting.setdefault(joint, []).append((document, share))
    drives = [_drive(name, motors[name]) for name in motors if known[name].pair.dof == 1]
    joints = [
        _driven(joint, [*motors.get(joint.name, ()), *pulling.get(joint.name, ())])
        for joint in tree.joints
    ]
    given = any(section for _, section in sections)
    actuated = tuple(dict.fromkeys([*motors, *pulling])) if given else None
    return actuated, tuple(drives), joints


def _shares(
    document: Document, motor: Element, known: Mapping[str, Joint], tendons: Tendons
) -> dict[str, Element]:
    """A motor as it acts on each of its joints; none if it is not read.

    Inertia and damping that it has for several joints of a tendon together belong to none of them.
    """
    name = motor.get("joint") or motor.get("jointinparent")
    pulled = tendons.get(motor.get("tendon") or "")
    if name is None and pulled and motor.tag != "damper":
        lost = [key for key in ("armature", "damping") if motor.get(key) and len(pulled) > 1]
        if len(pulled) > 1:
            without = f", without its {' and '.join(lost)}" if lost else ""
            document.warn(motor, f"pulls several joints; each counts as actuated{without}")
        gear, own = _gear(motor), {k: v for k, v in motor.attributes.items() if k not in lost}
        return {
            joint: motor.copy(attributes={**own, "gear": repr(gear * factor)})
            for joint, factor in pulled.items()
        }
    if name is None:
        document.warn(motor, "does not act on a joint; it is not read")
    elif name not in known:
        raise motor.error(f"drives the joint '{name}', which does not exist")
    elif motor.tag == "damper":
        document.warn(motor, "can only brake; it is not read")
    elif known[name].pair.dof > 1 and motor.tag != "orientation":
        document.warn(motor, "drives one direction of '{}' only; it is not read", value=name)
    else:
        return {name: motor}
    return {}


def _loop(document: Document, tree: Tree, element: Element) -> Joint:
    """A connect or weld, between sites or between bodies.

    A connect is a ball: frame A is at the anchor, B where A is in the initial pose. Of a weld B is
    the anchor in body 2, and A is where ``relpose`` or the initial pose has it.
    """
    # Without weight on the rotation a weld is a connect.
    rigid = element.tag == "weld" and element.number("torquescale", 1.0) != 0
    pair = make_pair("fixed" if rigid else "spherical")
    name = _name(document, tree, element)
    if "site1" in element.attributes:
        (body1, frame_a), (body2, frame_b) = (_site(tree, element, key) for key in _SITES)
    else:
        body1 = tree.body(element, "body1")
        body2 = tree.body(element, "body2") if element.get("body2") else GROUND
        frame_a, frame_b = _frames(element, tree.placements[body1], tree.placements[body2])
    if body1 == body2:
        raise element.error(f"joins the body '{body1}' to itself")
    return Joint(name, pair, body1, body2, frame_a, frame_b, cut=True)


def _frames(element: Element, first: pin.SE3, second: pin.SE3) -> tuple[pin.SE3, pin.SE3]:
    """Frames A and B of a connect or weld between bodies with these initial placements."""
    if element.tag == "connect":
        frame_a = pin.SE3(np.eye(3), element.vector("anchor"))
        return frame_a, second.actInv(first * frame_a)
    frame_b = pin.SE3(np.eye(3), element.vector("anchor", (0.0, 0.0, 0.0)))
    relpose = element.numbers(element.get("relpose") or "0 1 0 0 0 0 0", 7, "relpose")
    if np.any(relpose[3:] != 0):
        return pin.SE3(quaternion(element, relpose[3:]), relpose[:3]), frame_b
    return first.actInv(second * frame_b), frame_b


def _site(tree: Tree, element: Element, attribute: str) -> tuple[str, pin.SE3]:
    site = element.require(attribute)
    if site not in tree.sites:
        raise element.error(f"names the site '{site}', which does not exist")
    return tree.sites[site]


def _pair_of(element: Element, kind: str) -> list[str]:
    """The one or two joints or tendons that an equality names."""
    second = [element.require(f"{kind}2")] if element.get(f"{kind}2") else []
    return [element.require(f"{kind}1"), *second]


def _couple_joints(document: Document, tree: Tree, element: Element) -> Coupling:
    names = _pair_of(element, "joint")
    for joint in names:
        _check_scalar(tree, element, joint)
    if len(set(names)) < len(names):
        raise element.error(f"couples the joint '{names[0]}' to itself")
    name = _name(document, tree, element, "_".join(names))
    return _coupling(tree, element, name, [{joint: 1.0} for joint in names])


def _couple_tendons(
    document: Document, tree: Tree, element: Element, tendons: Tendons
) -> list[Coupling]:
    """Coupling between the lengths of fixed tendons; none if one is not fixed."""
    names = _pair_of(element, "tendon")
    lengths: list[Length] = []
    for tendon in names:
        if tendon not in tendons:
            raise element.error(f"names the tendon '{tendon}', which does not exist")
        length = tendons[tendon]
        if length is None:
            document.warn(element, "is on a tendon that runs over sites, and is not read")
            return []
        lengths.append(length)
    degree = int(np.max(np.flatnonzero(_polycoef(element)), initial=0))
    if degree > 1 and len(lengths) == 2 and len(lengths[1]) > 1:
        document.warn(
            element, f"is a polynomial of degree {degree} in several joints, and is not read"
        )
        return []
    if not lengths[0]:
        document.warn(element, "is on a tendon whose length is constant, and is not read")
        return []
    name = _name(document, tree, element, "_".join(names))
    return [_coupling(tree, element, name, lengths)]


def _coupling(tree: Tree, element: Element, name: str, lengths: list[Length]) -> Coupling:
    """``L1 - L1_0 = sum_k a_k (L2 - L2_0)^k``, multiplied out; ``L_0`` in the initial pose.

    Of several joints in ``L2`` the polynomial must be linear.
    """
    first, second = lengths[0], lengths[1] if len(lengths) > 1 else {}
    coefficients = _polycoef(element)
    constant = -float(coefficients[0])
    sums = {}
    for joint, factor in first.items():
        sums[joint] = np.array([0.0, factor, 0.0, 0.0, 0.0])
        constant -= factor * tree.references[joint]
    powers = Polynomial([0.0, *coefficients[1:]])
    for joint, factor in second.items():
        turned = powers(Polynomial([-factor * tree.references[joint], factor])).coef
        sums.setdefault(joint, np.zeros(5))[: len(turned)] -= turned
        constant -= float(turned[0])
    polynomials = []
    for row in sums.values():
        highest = max(1, int(np.max(np.flatnonzero(row), initial=0)))
        row[0], constant = constant, 0.0
        polynomials.append(tuple(float(power) for power in row[: highest + 1]))
    return Coupling(name, tuple(sums), tuple(polynomials))


def _polycoef(element: Element) -> Array:
    given = element.numbers(element.get("polycoef") or "", None, "polycoef")
    if len(given) > 5:
        raise element.error(f"has polycoef with {len(given)} numbers; it takes at most 5")
    coefficients = np.array([0.0, 1.0, 0.0, 0.0, 0.0])
    coefficients[: len(given)] = given
    return coefficients


def _check_scalar(tree: Tree, element: Element, joint: str) -> None:
    """Refuse what is no joint with one coordinate."""
    if joint not in tree.joint_names:
        raise element.error(f"names the joint '{joint}', which does not exist")
    if joint not in tree.references:
        raise element.error(f"names the joint '{joint}', which is no hinge or slide")


def read_tendons(documents: Sequence[Document], tree: Tree) -> dict[str, Length | None]:
    """Lengths of the fixed tendons, None for others; warns of the forces in tendons."""
    lengths: dict[str, Length | None] = {}
    for document in documents:
        for raw in document.section("tendon"):
            element = document.filled(raw, "tendon", "")
            forces = [key for key in _TENDON_FORCES if document.is_set(element, key)]
            if element.get("range") and element.get("limited") != "false":
                forces.append("range")
            if forces:
                document.warn(element, f"has {' and '.join(forces)}, which is not read")
            name = element.get("name")
            if not name:
                continue
            if name in lengths:
                raise element.error("has a name that is already taken; rename one of the two")
            if element.tag != "fixed":
                lengths[name] = None
                continue
            length: Length = {}
            for part in element.all("joint"):
                joint = part.require("joint")
                _check_scalar(tree, part, joint)
                length[joint] = length.get(joint, 0.0) + part.number("coef")
            lengths[name] = {joint: factor for joint, factor in length.items() if factor != 0}
    return lengths


def _name(document: Document, tree: Tree, element: Element, otherwise: str = "") -> str:
    """Name among the joints; MuJoCo allows an equality the name of a joint, we do not."""
    ends = [element.get(key) for key in ("body1", "body2", *_SITES)]
    wanted = element.get("name") or "_".join([element.tag, *filter(None, [otherwise, *ends])])
    name = tree.joint_names.new(wanted)
    if element.get("name") and name != wanted:
        document.warn(element, f"has the name of a joint; it is called '{name}'")
    return name


def _gear(element: Element) -> float:
    text = element.get("gear")
    values = element.numbers(text, None, "gear") if text is not None else np.ones(1)
    if not len(values) or not 0 < abs(values[0]) < 1e9:
        raise element.error(f"has gear '{text}'; its first number must not be 0 or huge")
    return float(values[0])


def _drive(name: str, motors: list[Motor]) -> Drive:
    gears = [_gear(motor) for _, motor in motors]
    if len(set(gears)) > 1:
        document, second = motors[1]
        document.warn(second, "drives '{}' with another gear than the first motor", value=name)
    rotor = motors[0][1].number("armature", 0.0)
    return Drive(name, gears[0], rotor if rotor and len(motors) == 1 else None)


def _driven(joint: Joint, motors: list[Motor]) -> Joint:
    """The joint with what its motors add: effort limit, reflected inertia and damping."""
    if joint.pair.dof > 1 or not motors:
        return joint
    limits = [_force(document, motor) for document, motor in motors]
    effort = joint.effort
    if not effort and None not in limits:
        effort = (sum(limit for limit in limits if limit is not None),)
    elements = [motor for _, motor in motors]
    return replace(
        joint,
        effort=effort,
        armature=_reflected(joint.armature, elements, lambda m: m.number("armature", 0.0)),
        damping=_reflected(joint.damping, elements, _damping),
    )


def _force(document: Document, motor: Element) -> float | None:
    """Largest force of a motor at the joint, or None if nothing limits it."""
    ranges = [document.limits(motor, "forcerange", "forcelimited")]
    if motor.tag == "motor":
        # The force of a plain motor is its control signal.
        ranges.append(document.limits(motor, "ctrlrange", "ctrllimited"))
    largest = [max(abs(lower), abs(upper)) for lower, upper in filter(None, ranges)]
    return min(largest) * abs(_gear(motor)) if largest else None


def _reflected(
    own: tuple[float, ...], motors: list[Element], value: Callable[[Element], float]
) -> tuple[float, ...]:
    """What a joint has plus what its motors have times gear squared."""
    added = sum(_gear(motor) ** 2 * value(motor) for motor in motors)
    return (own[0] + added if own else added,) if added else own


def _damping(motor: Element) -> float:
    text = motor.get("damping")
    return 0.0 if text is None else float(motor.numbers(text, None, "damping")[0])

"""Equality constraints and actuators of MJCF: loop joints, couplings, drives.

Works on the joints that `mjcf_tree` has read; what it cannot read it warns of.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pinocchio as pin
from numpy.polynomial import Polynomial

from ..description import GROUND, Coupling, Drive, Joint
from ..pairs import make_pair
from .mjcf_document import ACTUATORS, EQUALITIES, Document, quaternion
from .mjcf_tree import Tree
from .xmltools import Element

__all__ = ["read_actuators", "read_equalities"]


def read_equalities(document: Document, tree: Tree) -> tuple[list[Joint], list[Coupling]]:
    """Read the `<equality>` sections.

    Returns:
        The loop joints (connect: spherical, weld: fixed) and the couplings (joint).
    """
    loops: list[Joint] = []
    couplings: list[Coupling] = []
    for raw in document.section("equality"):
        if raw.tag not in EQUALITIES:
            continue
        element = document.filled(raw, "equality", "")
        if not document.flag(element, "active", True):
            document.warn(element, "is not active and is left out")
        elif element.tag == "connect":
            loops.append(_connect(document, tree, element))
        elif element.tag == "weld":
            loops.append(_weld(document, tree, element))
        elif element.tag == "joint":
            couplings.append(_coupling(document, tree, element))
        else:
            document.warn(element, "is an equality constraint that is not read")
    return loops, couplings


def read_actuators(
    document: Document, tree: Tree
) -> tuple[tuple[str, ...] | None, tuple[Drive, ...], list[Joint]]:
    """Read the `<actuator>` sections.

    Returns:
        Names of the actuated joints (None if the model has no actuators), their drives, and the
        tree joints with the effort limits and rotor inertias of their actuators.
    """
    motors: dict[str, list[Element]] = {}
    known = {joint.name: joint for joint in tree.joints}
    elements = document.section("actuator")
    for raw in elements:
        if raw.tag not in ACTUATORS:
            document.warn(raw, "is not a known actuator and is not read")
            continue
        element = document.filled(raw, "actuator", "")
        name = element.get("joint") or element.get("jointinparent")
        if name is None:
            document.warn(element, "does not act on a joint; it is not read")
        elif name not in known:
            raise element.error(f"drives the joint '{name}', which does not exist")
        elif element.tag == "damper":
            document.warn(element, "can only brake; it is not read")
        elif known[name].pair.dof > 1 and element.tag != "orientation":
            document.warn(element, f"drives one direction of '{name}' only; it is not read")
        else:
            motors.setdefault(name, []).append(element)
    drives = [_drive(document, name, motors[name]) for name in motors if known[name].pair.dof == 1]
    joints = [
        _driven(document, joint, motors[joint.name]) if joint.name in motors else joint
        for joint in tree.joints
    ]
    return (tuple(motors) if elements else None), tuple(drives), joints


def _connect(document: Document, tree: Tree, element: Element) -> Joint:
    """A ball: frame A at the anchor, B where A is in the initial pose (body form)."""
    name = _name(document, tree, element)
    if "site1" in element.attributes:
        return _between_sites(tree, element, name, "spherical")
    body1, body2 = _bodies(tree, element)
    frame_a = pin.SE3(np.eye(3), element.vector("anchor"))
    frame_b = tree.placements[body2].actInv(tree.placements[body1] * frame_a)
    return _loop(name, "spherical", body1, body2, frame_a, frame_b)


def _weld(document: Document, tree: Tree, element: Element) -> Joint:
    """Two bodies as one: B is the anchor in body 2, A is where `relpose` or the model has it."""
    name = _name(document, tree, element)
    # Without weight on the rotation a weld is a connect.
    pair = "spherical" if element.number("torquescale", 1.0) == 0 else "fixed"
    if "site1" in element.attributes:
        return _between_sites(tree, element, name, pair)
    body1, body2 = _bodies(tree, element)
    frame_b = pin.SE3(np.eye(3), element.vector("anchor", (0.0, 0.0, 0.0)))
    relpose = element.numbers(element.get("relpose") or "0 1 0 0 0 0 0", 7, "relpose")
    if np.any(relpose[3:] != 0):
        frame_a = pin.SE3(quaternion(element, relpose[3:]), relpose[:3])
    else:
        frame_a = tree.placements[body1].actInv(tree.placements[body2] * frame_b)
    return _loop(name, pair, body1, body2, frame_a, frame_b)


def _coupling(document: Document, tree: Tree, element: Element) -> Coupling:
    """``q1 - y0 = sum_k a_k (q2 - x0)^k``, multiplied out."""
    names = [element.require("joint1")]
    if element.get("joint2"):
        names.append(element.require("joint2"))
    for joint in names:
        if joint not in tree.joint_names:
            raise element.error(f"names the joint '{joint}', which does not exist")
        if joint not in tree.references:
            raise element.error(f"names the joint '{joint}', which is no hinge or slide")
    if len(set(names)) < len(names):
        raise element.error(f"couples the joint '{names[0]}' to itself")
    given = element.numbers(element.get("polycoef") or "", None, "polycoef")
    if len(given) > 5:
        raise element.error(f"has polycoef with {len(given)} numbers; it takes at most 5")
    coefficients = np.array([0.0, 1.0, 0.0, 0.0, 0.0])
    coefficients[: len(given)] = given
    offset = tree.references[names[0]] + coefficients[0]
    name = _name(document, tree, element, "_".join(names))
    if len(names) == 1:
        return Coupling(name, (names[0],), ((-float(offset), 1.0),))
    shifted = Polynomial(coefficients)(Polynomial([-tree.references[names[1]], 1.0]))
    powers = -np.asarray(shifted.coef)[1:]
    constant = -float(shifted.coef[0] + tree.references[names[0]])
    keep = max(1, int(np.max(np.flatnonzero(powers), initial=0)) + 1)
    other = (0.0, *(float(power) for power in powers[:keep]))
    return Coupling(name, (names[0], names[1]), ((constant, 1.0), other))


def _between_sites(tree: Tree, element: Element, name: str, pair: str) -> Joint:
    ends = []
    for attribute in ("site1", "site2"):
        site = element.require(attribute)
        if site not in tree.sites:
            raise element.error(f"names the site '{site}', which does not exist")
        ends.append(tree.sites[site])
    (body1, frame_a), (body2, frame_b) = ends
    if body1 == body2:
        raise element.error(f"joins the body '{body1}' to itself")
    return _loop(name, pair, body1, body2, frame_a, frame_b)


def _bodies(tree: Tree, element: Element) -> tuple[str, str]:
    body1 = tree.body(element, "body1")
    body2 = tree.body(element, "body2") if element.get("body2") else GROUND
    if body1 == body2:
        raise element.error(f"joins the body '{body1}' to itself")
    return body1, body2


def _loop(
    name: str, pair: str, body1: str, body2: str, frame_a: pin.SE3, frame_b: pin.SE3
) -> Joint:
    return Joint(name, make_pair(pair), body1, body2, frame_a, frame_b, cut=True)


def _name(document: Document, tree: Tree, element: Element, otherwise: str = "") -> str:
    """Name among the joints; MuJoCo allows an equality the name of a joint, we do not."""
    ends = [element.get(key) for key in ("body1", "body2", "site1", "site2")]
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


def _drive(document: Document, name: str, motors: list[Element]) -> Drive:
    """Drive of a joint from its first motor."""
    gears = [_gear(motor) for motor in motors]
    if len(set(gears)) > 1:
        document.warn(motors[1], f"drives '{name}' with another gear than the first motor")
    rotor = motors[0].number("armature", 0.0)
    return Drive(name, gears[0], rotor if rotor and len(motors) == 1 else None)


def _driven(document: Document, joint: Joint, motors: list[Element]) -> Joint:
    """The joint with what its motors add: effort limit, reflected inertia and damping."""
    if joint.pair.dof > 1:
        return joint
    limits = [_force(document, motor) for motor in motors]
    effort = joint.effort
    if not effort and None not in limits:
        effort = (sum(limit for limit in limits if limit is not None),)
    return replace(
        joint,
        effort=effort,
        armature=_reflected(joint.armature, motors, lambda m: m.number("armature", 0.0)),
        damping=_reflected(joint.damping, motors, _damping),
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

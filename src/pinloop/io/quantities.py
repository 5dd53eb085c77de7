"""One function per quantity that robot files give: axes, limits, losses, masses, shapes, names.

A reader translates the words of its format; what the numbers mean, and which of them stand for
nothing, is decided here for all formats.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Container, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import count
from typing import Any, cast

import numpy as np
import pinocchio as pin
from numpy.typing import ArrayLike

from ..boundary.marks import Array
from ..boundary.xml import Element, Remarks
from ..errors import BadValue, UnknownName
from ..model.description import GROUND, GROUND_NAMES, LIMITS, LOSSES, Description, Joint, Shape
from ..model.pairs import align_z, make_pair
from ..tolerances import NO_DIRECTION

Color = tuple[float, float, float, float]

_UNLIMITED = 1e16
"""What stands for infinity in older versions of SDF; others write the largest double."""

SQUARE = 2e-3
"""How far the axes of a universal joint may be from perpendicular [rad]: three digits' rounding."""

MOMENTS = {"ixx": (0, 0), "ixy": (0, 1), "ixz": (0, 2), "iyy": (1, 1), "iyz": (1, 2), "izz": (2, 2)}
"""Names of the entries of an inertia tensor."""

SIZES = {
    "box": ("size",),
    "sphere": ("radius",),
    "cylinder": ("radius", "length"),
    "capsule": ("radius", "length"),
    "ellipsoid": ("radii",),
}
"""What the sizes of a primitive are called, in the order of `Shape.size`."""


# -- axes and frames ------------------------------------------------------------------------------


def turn(rotation: Array) -> pin.SE3:
    """Return the placement that only turns."""
    return pin.SE3(np.array(rotation), np.zeros(3))


def universal_axes(first: Array, second: Array) -> Array:
    """Rotation with z along ``first`` and x towards ``second``, or any x if they are parallel."""
    z = first / np.linalg.norm(first)
    second = second / np.linalg.norm(second)
    x = second - (second @ z) * z
    if np.linalg.norm(x) < NO_DIRECTION:
        return align_z(z)
    x /= np.linalg.norm(x)
    return np.column_stack([x, np.cross(z, x), z])


def square_axes(first: Array, second: Array) -> Array:
    """Rotation with z along ``first`` and x along ``second``, which is made perpendicular.

    BadValue if they are farther from that than rounding explains.
    """
    cosine = float(first @ second) / float(np.linalg.norm(first) * np.linalg.norm(second))
    if abs(cosine) > SQUARE:
        angle = np.degrees(np.arccos(np.clip(cosine, -1, 1)))
        raise BadValue(
            f"axis and axis2 are {angle:.4g} deg apart; they must be perpendicular (otherwise "
            "write two revolute joints and a light link between them)"
        )
    return universal_axes(first, second)


def axes_rotation(axis: ArrayLike | None, axis2: ArrayLike | None = None) -> Array:
    """Rotation with z along an axis, if there is one, and x towards a second one."""
    if axis is None:
        return np.eye(3)
    z = np.asarray(axis, dtype=float)
    return align_z(z) if axis2 is None else universal_axes(z, np.asarray(axis2, dtype=float))


def axes_turn(element: Element, axes: Sequence[Array]) -> pin.SE3:
    """Turn from the frame of a joint to that of its pair: z along its axis, x along a second."""
    if not axes:
        return pin.SE3.Identity()
    z = element.unit_vector(axes[0])
    if len(axes) == 1:
        return turn(align_z(z))
    try:
        return turn(square_axes(z, element.unit_vector(axes[1], "axis2")))
    except BadValue as error:
        raise element.error(f"is universal, but its {error}") from None


def free_root(name: str, body: str, placement: pin.SE3 | None = None) -> Joint:
    """Return the free joint of a body that floats; ``placement`` is its initial one."""
    start = pin.SE3.Identity() if placement is None else placement
    return Joint(name, make_pair("free"), GROUND, body, start, pin.SE3.Identity(), False)


def weld(parent: str, child: str, placement: pin.SE3, cut: bool | None) -> Joint:
    """Return the fixed pair, called after its bodies, that holds ``child`` at a placement."""
    ends = (parent, child, placement, pin.SE3.Identity())
    return Joint(f"{parent}-{child}", make_pair("fixed"), *ends, cut)


def reversed_joint(joint: Joint) -> Joint:
    r"""Return the joint with parent and child exchanged; twice gives the joint back.

    With the same rotation of both frames, the motion ``T`` becomes ``F^-1 T^-1 F``. Along or about
    one axis, half a turn about x gives the motion back, so that the coordinate keeps its sign. For
    two axes, :math:`T = R_z(a) R_x(b)`, the symmetric ``F`` that takes z to -x and x to -z gives
    :math:`F R_x(-b) R_z(-a) F = R_z(b) R_x(a)`: the coordinates change places. Other pairs
    are told by their inverse motion.
    """
    order = -1 if joint.pair.reverses_coordinates else 1
    values: dict[str, Any] = {key: getattr(joint, key)[::order] for key in (*LIMITS, *LOSSES)}
    frame = turn(joint.pair.reversal)
    return replace(
        joint,
        parent=joint.child,
        child=joint.parent,
        frame_parent=joint.frame_child * frame,
        frame_child=joint.frame_parent * frame,
        **values,
    )


# -- limits and losses ----------------------------------------------------------------------------


def unlimited(value: float) -> float:
    """Return ``value``, or infinity if it is so large that it stands for no limit."""
    return math.copysign(math.inf, value) if abs(value) >= _UNLIMITED else value


def limit_numbers(
    element: Element, text: str, what: str, count: int | None = None
) -> tuple[float, ...]:
    """Numbers of a limit, ``count`` of them unless None; infinite ones are welcome here."""
    try:
        numbers = tuple(unlimited(float(word)) for word in text.split())
    except ValueError:
        numbers = (math.nan,)
    if len(numbers) != (count or len(numbers)) or any(map(math.isnan, numbers)):
        raise element.error(f"has {what} '{text}', which is not a number")
    return numbers


def spread(values: Sequence[float], dof: int) -> tuple[float, ...]:
    """Values per degree of freedom; a single one is for all."""
    return tuple(values) * dof if len(values) == 1 else tuple(values)


def joint_limits(
    given: Mapping[str, Sequence[float]],
    dof: int,
    remark: Callable[[str], None],
    missing: float = math.inf,
) -> dict[str, Any]:
    """Limits as a joint keeps them: in order, per degree of freedom, empty where there are none.

    Args:
        given: "lower", "upper", "velocity" and "effort" as far as the file gives them; infinite
            ones are none.
        dof: degrees of freedom of the joint.
        remark: takes what had to be mended.
        missing: size of a position limit of which only the other side is given.
    """
    values = {key: spread(given.get(key, ()), dof) for key in ("velocity", "effort")}
    for key, numbers in values.items():
        if any(number < 0 for number in numbers):
            remark(f"has a negative {key} limit, which is taken as none")
            values[key] = tuple(n if n >= 0 else math.inf for n in numbers)
    lower, upper = (tuple(given.get(key, ())) for key in ("lower", "upper"))
    lower, upper = lower or (-missing,) * len(upper), upper or (missing,) * len(lower)
    if len(lower) == len(upper):
        ends = [sorted(pair) for pair in zip(lower, upper, strict=True)]
        if lower != (ordered := tuple(low for low, _ in ends)):
            remark("has its lower limit above the upper one; they are swapped")
        lower, upper = ordered, tuple(high for _, high in ends)
    values = {key: numbers for key, numbers in values.items() if any(map(math.isfinite, numbers))}
    ranged = any(map(math.isfinite, (*lower, *upper)))
    return values | ({"lower": lower, "upper": upper} if ranged else {})


# -- masses and shapes ----------------------------------------------------------------------------


def read_mass(element: Element, mass: float) -> float:
    """Return a mass [kg] that an element gives; it must not be negative."""
    if mass < 0:
        raise element.error(f"has mass {mass} kg; it must not be negative")
    return mass


def tensor(read: Callable[[str], float]) -> Array:
    """Inertia tensor from its entries by the names in `MOMENTS`, shape (3, 3)."""
    matrix = np.zeros((3, 3))
    for key, (i, j) in MOMENTS.items():
        matrix[i, j] = matrix[j, i] = read(key)
    return matrix


def primitive(element: Element, read: Callable[[str, int], Iterable[float]]) -> Shape:
    """Shape of an element that is called like a primitive.

    ``read`` returns the numbers of a size, given its name in `SIZES` and how many it has.
    """
    counts = {key: 1 if key in ("radius", "length") else 3 for key in SIZES[element.tag]}
    size = tuple(float(number) for key, count in counts.items() for number in read(key, count))
    if any(number < 0 for number in size):
        raise element.error(f"has size {size}; no number may be negative")
    return Shape(cast(Any, element.tag), size)


def rgba(element: Element, text: str, what: str = "rgba", least: int = 4) -> Color:
    """Colour of red, green, blue and alpha, which is 1 if ``least`` is 3 and it is not given."""
    values = element.numbers(text, None, what)
    if not least <= len(values) <= 4:
        counts = "4 numbers" if least == 4 else "3 or 4 numbers"
        raise element.error(f"has {what} '{text}'; a colour has {counts}")
    red, green, blue, alpha = (float(value) for value in (*values, 1.0)[:4])
    return red, green, blue, alpha


# -- names ----------------------------------------------------------------------------------------


def new_name(wanted: str, taken: Container[str]) -> str:
    """Return ``wanted``, numbered if it is taken."""
    names = (wanted if number == 1 else f"{wanted}_{number}" for number in count(1))
    return next(name for name in names if name not in taken)


class Names:
    """Unique names of one kind: those of the file first, readable ones for the rest.

    None of them may be ``reserved``: these mean the world.
    """

    def __init__(self, reserved: Collection[str] = ()) -> None:
        self._reserved = reserved
        self._taken = set(reserved)

    def take(self, elements: Iterable[Element]) -> None:
        """Take the names of all elements of the kind."""
        for element in elements:
            name = element.get("name")
            if not name:
                continue
            if name in self._reserved:
                raise element.error("has a name that means the world; give it another one")
            if name in self._taken:
                raise element.error("has a name that is already taken; rename one of the two")
            self._taken.add(name)

    def of(self, element: Element, otherwise: str) -> str:
        """Name of the element, or a new one like ``otherwise``."""
        return element.get("name") or self.new(otherwise)

    def new(self, wanted: str) -> str:
        """Return ``wanted``, numbered if it is taken, and take it."""
        name = new_name(wanted, self._taken)
        self._taken.add(name)
        return name

    def __contains__(self, name: object) -> bool:
        """Whether a name is taken."""
        return name in self._taken


def rename_ground(
    root: Element, tag: str, references: Callable[[Element], Iterable[str]], remarks: Remarks
) -> None:
    """Give a body called like the ground, that is not the ground, another name.

    Bodies are elements ``tag`` below ``root``; ``references`` gives the attributes that name them.
    """
    taken = {element.get("name") or "" for element in root.walk(tag)}
    if GROUND not in taken:
        return
    name = new_name(f"{GROUND}_{tag}", taken)
    remarks.say(f"{tag} '{GROUND}' is called '{name}' here, as that is the world")
    for element in root.walk():
        for key in references(element):
            if element.get(key) == GROUND:
                element.attributes[key] = name
        if element.tag in ("parent", "child") and element.text.strip() == GROUND:
            element.text = name


def find_body(name: str, known: Container[str], owner: Element) -> str:
    """Return the body that an element names; "world" is the ground if no body is called so."""
    if name in known or name == GROUND:
        return name
    if name == "world":
        return GROUND
    raise owner.unknown("link", name, cast(Iterable[str], known))


def locate(description: Description, name: str) -> tuple[str, pin.SE3]:
    """Body and placement on it of what is called ``name``, or UnknownName with the closest.

    Bodies come first, then the ground (also as world or universe), named frames, and joints: a
    joint's name means the frame of its child body.
    """
    frames = {frame.name: (frame.body, frame.placement) for frame in description.frames}
    bodies = {body.name: body.name for body in description.bodies}
    joints = {joint.name: joint.child for joint in description.joints}
    if name not in bodies and name in frames and name not in GROUND_NAMES:
        return frames[name]
    carriers = joints | dict.fromkeys(GROUND_NAMES, GROUND) | bodies
    if name not in carriers:
        raise UnknownName("body, frame or joint", name, [*bodies, *frames, *joints])
    return carriers[name], pin.SE3.Identity()

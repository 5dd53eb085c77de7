r"""What every pair says of itself; its class is the only place that knows.

With ``T = oMA^-1 oMB`` and ``V`` the twist of B relative to A expressed in B (linear first), every
pair gives

* ``residual(T)``: zero exactly where the pair is assembled (paper 1, eq. 12, table 1),
* ``selector(T)``: the rows ``S`` with ``d residual/dt = S V`` on the manifold (table 2),
* ``bias(T, V)``: ``dS/dt V``, which vanishes for pairs whose motions form a group.

The rest of the contract are class attributes with defaults: names and parameters in files, what of
the frames the pair is about, how it moves as a joint of the tree, its symbol. This room knows
relative placements only, no robot.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import MISSING, Field, dataclass, fields, is_dataclass
from typing import Any, ClassVar, Literal, TypeAlias

import numpy as np
import pinocchio as pin

from ...boundary.marks import Array
from ...boundary.values import Registry, origin
from ...errors import BadValue, PinloopError
from ...linalg.dense import slopes
from ...tolerances import ROW_NOISE
from .tree_joints import TreeJoint

Number: TypeAlias = float | tuple[float, ...]
"""A parameter of a pair, as files hold it."""


Component: TypeAlias = Literal["twist", "offset", "rod", "angle"]
"""Of the twist, in the axes of B; of B's origin in the axes of A, the first three numbers; of the
distance of both origins, a weight and that times the length; of the cosine between z of A and x of
B, a weight as fourth number."""


@dataclass(frozen=True)
class Feature:
    """What a pair is about on one of its frames: a line, a point, a direction, or nothing.

    Args:
        axis: axis of the frame along the line or direction; "" if there is none.
        is_placed: whether it matters where the origin of the frame is.
    """

    axis: Literal["", "x", "z"]
    is_placed: bool


LINE = Feature("z", True)
DIRECTION = Feature("z", False)
POINT = Feature("", True)
NOTHING = Feature("", False)


@dataclass(frozen=True)
class SymbolSolid:
    """A part of a symbol, its axis along z of the frame unless it is ``along`` x.

    Args:
        kind: box (x, y, z), cylinder (radius, length), ring (radius, radius of its section) or
            sphere (radius).
        size: its measures, in units of the size in which symbols are drawn.
        along: axis of the frame along which its own z lies.
    """

    kind: Literal["box", "cylinder", "ring", "sphere"]
    size: tuple[float, ...]
    along: Literal["x", "z"] = "z"


@dataclass(frozen=True)
class Symbol:
    """How a pair is drawn where a robot has no shapes.

    Args:
        at_a: what is drawn at frame A.
        at_b: what is drawn at frame B.
        color: colour by the kind of motion.
        stick: parameter that is the length [m] of a stick from A towards B, "" if there is none.
    """

    at_a: tuple[SymbolSolid, ...]
    at_b: tuple[SymbolSolid, ...] = ()
    color: Literal["turn", "slide", "ball", "other"] = "other"
    stick: str = ""


class Pair(ABC):
    """What two frames A and B may do relative to each other.

    A pair is a frozen dataclass; its fields are its parameters, numbers or tuples of numbers, with
    their unit in the metadata: ``length: float = field(metadata={"unit": "m"})``. A class with a
    name can be written to robot files, and read back wherever it has been imported.
    """

    name: ClassVar[str]
    """Name in robot files."""
    aliases: ClassVar[tuple[str, ...]] = ()
    """Further names by which robot files ask for the pair."""
    features: ClassVar[tuple[Feature, Feature]] = (LINE, LINE)
    """What the pair is about on A and on B."""
    origins_apart: ClassVar[bool] = False
    """Whether the origins of A and B have different places where the pair is assembled."""
    tree_joints: ClassVar[Mapping[str, TreeJoint]] = {}
    """The pair as a joint of the spanning tree, per variant of its coordinates ("" the usual one).

    A pair without any cannot carry a body and always closes a loop.
    """
    reversal: ClassVar[Array] = np.eye(3)
    """Rotation ``F`` of both frames with which ``F^-1 T^-1 F`` is a motion of the pair again."""
    reverses_coordinates: ClassVar[bool] = False
    """Whether the coordinates change places when the pair is told from B."""
    turns: ClassVar[str] = ""
    """Axes of free rotation, "", "z" or "xyz", where rows are of twists."""
    slides: ClassVar[str] = ""
    """Axes of free translation, a subset of "xyz", likewise."""
    is_group: ClassVar[bool] = False
    """Whether the motions form a subgroup of SE(3), so that the selector is constant."""
    symbol: ClassVar[Symbol] = Symbol((SymbolSolid("box", (0.9, 0.9, 0.9)),))
    """How the pair is drawn."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """Enter a class that has a name; the classes between it and `Pair` have none."""
        super().__init_subclass__(**kwargs)
        if "name" in vars(cls):
            for name in (cls.name, *cls.aliases):
                _PAIRS.enter(name, cls)

    # -- rows -------------------------------------------------------------------------------

    @property
    @abstractmethod
    def labels(self) -> tuple[str, ...]:
        """One label per constraint row; that of a row that is an angle begins with ``w_``."""

    @property
    def rows(self) -> int:
        """Number of constraint rows."""
        return len(self.labels)

    @property
    def dof(self) -> int:
        """Number of degrees of freedom that the pair leaves."""
        return 6 - self.rows

    @property
    def row_is_angle(self) -> tuple[bool, ...]:
        """Per row whether it measures an angle rather than a length."""
        return tuple(label.startswith("w_") for label in self.labels)

    def rates(self, T: pin.SE3) -> Array | None:
        """What takes the twist of B relative to A, in B, to the rates of the coordinates.

        Shape (dof, 6); None where a joint that closes a loop has no coordinates to act on.
        """
        return None

    def rates_bias(self, T: pin.SE3, V: Array) -> Array:
        """``dR/dt V`` of these rows, shape (dof,); zero where they turn about ``V`` itself."""
        return np.zeros(self.dof)

    def coordinates(self, T: pin.SE3) -> Array:
        """Coordinates of which these are the rates, shape (dof,); NaN where a rate has none."""
        return np.full(self.dof, np.nan)

    @abstractmethod
    def residual(self, T: pin.SE3) -> Array:
        """Closure residual of the placement ``T`` of B in A, shape (rows,), m and rad."""

    @abstractmethod
    def selector(self, T: pin.SE3) -> Array:
        """Rows ``S`` that take the relative twist (of B, in B) to the residual rate: (rows, 6)."""

    @abstractmethod
    def bias(self, T: pin.SE3, V: Array) -> Array:
        """``dS/dt V`` for the relative twist ``V`` (of B, in B), shape (rows,)."""

    @property
    def components(self) -> tuple[tuple[Component, Array], ...]:
        """What each row takes of the motion of B relative to A, if it is one of the kinds below.

        Per row its kind and six numbers. Nothing if the native kernel cannot evaluate the rows.
        """
        return ()

    def selector_slopes(self, T: pin.SE3) -> Array:
        """Derivatives of the selector along each unit twist of B, in B, shape (6, rows, 6).

        By differences unless a pair knows better; groups are not asked.
        """
        return slopes(lambda twist: self.selector(T * pin.exp6(twist)), 6)

    def bias_slopes(self, T: pin.SE3, V: Array) -> Array:
        """The same of the bias at a given ``V``, shape (6, rows)."""
        return slopes(lambda twist: self.bias(T * pin.exp6(twist), V), 6)

    # -- motions ----------------------------------------------------------------------------

    @property
    def algebra(self) -> Array:
        """Twists in B whose Lie algebra holds every motion of the pair, shape (6, n), columns.

        All of se(3) unless a pair knows better: regularization then removes no row because of it.
        """
        return np.eye(6)

    @property
    def sample_selectors(self) -> tuple[Array, ...]:
        """Selectors that span those of all assembled placements; none: every row is kept."""
        return ()

    @property
    def held_points(self) -> Array | None:
        """Directions from B's origin in which points lie that A and B share, shape (3, n).

        None if not even the origins are held together. No twist of the algebra moves these points.
        """
        v, w = np.split(self.algebra, 2)
        if v.any():
            return None
        turns = np.vstack([np.zeros((1, 3)), *(pin.skew(axis) for axis in w.T)])
        _, values, directions = np.linalg.svd(turns)
        held = directions[np.append(values, np.zeros(3 - len(values))) < ROW_NOISE].T
        return np.asarray(held * np.where(held.sum(axis=0) < 0, -1.0, 1.0))

    @property
    def advance(self) -> float:
        """Shift along z per radian about z [m/rad]: the pitch of a screw."""
        return 0.0

    @property
    def carries_bodies(self) -> bool:
        """Whether the pair may be in the tree."""
        return bool(self.tree_joints)

    # -- files ------------------------------------------------------------------------------

    @property
    def parameters(self) -> dict[str, Number]:
        """Numbers besides the name that define the pair, e.g. ``{"pitch": 0.01}``.

        Raises:
            BadValue: the class is no frozen dataclass, or a field holds something else.
        """
        parameters = {key: getattr(self, key) for key in _parameter_fields(type(self))}
        for key, value in parameters.items():
            _check_number(key, value, self.name)
        return parameters

    @classmethod
    def unit(cls, parameter: str) -> str:
        """Unit of a parameter after a blank; "" if the class does not say."""
        unit = _parameter_fields(cls)[parameter].metadata.get("unit", "")
        return f" {unit}" if unit else ""

    @classmethod
    def measured(cls, T: pin.SE3) -> dict[str, float]:
        """Parameters that follow from an assembled placement ``T``, for files that give points."""
        return {}

    @classmethod
    def axis_count(cls) -> int:
        """How many axes a file has to give: 0, 1, or 2 if those of A and of B differ."""
        return len({feature.axis for feature in cls.features} - {""})


# -- pairs by name ----------------------------------------------------------------------------

_PAIRS: Registry[Pair] = Registry("pair")
"""Every pair that has been defined, under its name and its aliases."""


def own_names() -> tuple[str, ...]:
    """Names of pinloop's own pairs, without their aliases."""
    return tuple(sorted(cls.name for cls in _PAIRS if not origin(cls)))


def pair_class(name: str, defined_in: str | None = None) -> type[Pair]:
    """Return the class of the pair that ``name`` or an alias means.

    Args:
        name: the name; case, and ``-`` or blanks for ``_``, do not matter.
        defined_in: ``module:class`` of the pair, as a file says it, for the message.

    Raises:
        BadValue: there is no such pair; lists those that there are, or says what to import.
    """
    cls = _PAIRS.find(name, defined_in)
    if cls is None:
        known = ", ".join(sorted(cls.name for cls in _PAIRS))
        raise BadValue(f"unknown pair '{name}'; known pairs: {known}")
    return cls


def make_pair(name: str, **parameters: float | Iterable[float] | None) -> Pair:
    """Return the pair called ``name`` (case and ``-`` or blanks for ``_`` do not matter).

    Args:
        name: one of `PAIR_NAMES`, an alias such as ``continuous``, ``ball``, ``screw``, or the name
            of a pair of your own.
        **parameters: its parameters, such as the ``pitch`` of a helical pair [m/rad] and the
            ``length`` of a rod [m]; None stands for one that is not given.

    Raises:
        BadValue: unknown name, or a parameter that is missing, unknown or not finite.
    """
    cls = pair_class(name)
    known = _parameter_fields(cls)
    given: dict[str, Number] = {}
    for key, value in parameters.items():
        if value is None:
            continue
        given[key] = _check_number(key, value, name)
        if key not in known:
            raise BadValue(f"a {cls.name} pair has no {key}; leave it out")
    for key, item in known.items():
        if key not in given and item.default is MISSING and item.default_factory is MISSING:
            unit = f" [{cls.unit(key).strip()}]" if cls.unit(key) else ""
            raise BadValue(f"a {cls.name} pair needs its {key}{unit}")
    try:
        return cls(**given)
    except PinloopError:
        raise
    except (TypeError, ValueError, ArithmeticError) as error:
        raise BadValue(f"a {cls.name} pair cannot have the parameters {given}: {error}") from None


def _parameter_fields(cls: type[Pair]) -> dict[str, Field[Any]]:
    """The fields of a pair that are its parameters, by name."""
    frozen = getattr(vars(cls).get("__dataclass_params__"), "frozen", False)
    if not (is_dataclass(cls) and frozen):
        raise BadValue(
            f"the pair {cls.__qualname__} is no frozen dataclass, so that its parameters are not "
            "known; write @dataclass(frozen=True) above the class"
        )
    return {item.name: item for item in fields(cls) if item.init and item.name != "name"}


def _check_number(key: str, value: Any, pair: str) -> Number:
    """The value of a parameter as files hold it."""
    items = value if isinstance(value, (tuple, list, np.ndarray)) else (value,)
    for item in items:
        if isinstance(item, bool) or not isinstance(item, (int, float, np.number)):
            break
        if not np.isfinite(item):
            break
    else:
        return float(value) if items == (value,) else tuple(float(item) for item in items)
    expected = "a finite number" if isinstance(value, (int, float)) else "a number or several"
    raise BadValue(f"{key} of pair '{pair}' is {value!r}; it must be {expected}")


def align_z(axis: Array) -> Array:
    """Rotation matrix whose third column is the unit vector along ``axis``, shape (3, 3).

    Axis-aligned inputs give exact (0, 1, -1) entries, z itself the identity.
    """
    length = float(np.linalg.norm(axis))
    if not 0 < length < np.inf:
        raise BadValue(f"axis {axis} has no direction")
    z = np.asarray(axis, dtype=float) / length
    helper = np.eye(3)[(int(np.argmax(np.abs(z))) + 1) % 3]
    y = pin.skew(z) @ helper  # a tenth of the time of `np.cross`
    y /= np.linalg.norm(y)
    return np.column_stack([pin.skew(y) @ z, y, z])

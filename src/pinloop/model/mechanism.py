"""A robot with loops, frozen: tree (`pin.Model`), loop joints, couplings, drives, geometry.

What a robot *is*, and where its frames are at a configuration. What its constraints ask is in
`constraints`; how they are met is in `assembly`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

import numpy as np
import pinocchio as pin
from numpy.typing import ArrayLike

from ..boundary.arguments import flat_numbers, public, require_kind
from ..boundary.marks import Array, Mask
from ..boundary.values import forward, stored_fields
from ..errors import BadValue, SingularMass, UnknownName, listed
from ..tolerances import ROTATION
from .description import GROUND, GROUND_NAMES, Coupling, Description, Drive, Geometry
from .graph import Cluster, SpanningTree, clusters
from .reduction import Regularization
from .transformations import (
    Space,
    carried_state,
    in_absolute_coordinates,
    with_counted_turns,
    with_payload,
    with_robot,
    without_joints,
)
from .tree import (
    JointCoordinates,
    LoopJoint,
    grow_tree,
    joint_coordinates,
    linear_coordinates,
    loop_joints,
    spread_of_joints,
)
from .validate import check_cuts, check_description, lacking_mass, warn_of_masses
from .workspace import Memory, WorkSpaces


@public
@dataclass(frozen=True, eq=False)
class Mechanism:
    """A robot: tree, loop joints, couplings, actuation.

    Made by `pinloop.load`, `pinloop.from_screws` or `build`; nothing in it may be changed.

    Args:
        description: what the robot's file says.
        model: the tree as a `pin.Model`; every body is a frame under its own name.
        loops: the loop joints.
        tree: spanning tree and fundamental loops.
        regularization: which loop rows are left, if redundant ones have been removed.
        given_length: characteristic length of the robot that this one was made from.
        spaces: work spaces of Pinocchio that nobody is using.

    Attributes:
        memory: what has been computed from the robot alone, see `workspace.remembered`.
    """

    description: Description
    model: pin.Model
    loops: tuple[LoopJoint, ...]
    tree: SpanningTree
    regularization: Regularization | None = None
    given_length: float | None = None
    spaces: WorkSpaces = field(default_factory=WorkSpaces, repr=False)
    memory: Memory = field(default_factory=Memory, repr=False, init=False)

    __getstate__ = stored_fields

    def __repr__(self) -> str:
        return (
            f"<Mechanism '{self.name}': {len(self.bodies)} bodies, nq={self.nq}, nv={self.nv}, "
            f"{len(self.loops)} loops, {len(self.couplings)} couplings>"
        )

    def _repr_html_(self) -> str:
        html: str = forward("show.overview", "robot_overview", self)._repr_html_()
        return html

    @property
    def name(self) -> str:
        """Name of the robot."""
        return self.description.name

    @property
    def nq(self) -> int:
        """Length of a configuration."""
        return int(self.model.nq)

    @property
    def nv(self) -> int:
        """Length of a velocity."""
        return int(self.model.nv)

    @property
    def bodies(self) -> tuple[str, ...]:
        """Names of the bodies, without the ground."""
        return tuple(body.name for body in self.description.bodies)

    @cached_property
    def joints(self) -> tuple[str, ...]:
        """Names of the tree joints that move, in the order of the model."""
        return tuple(self.model.names)[1:]

    @property
    def frames(self) -> tuple[str, ...]:
        """Names of all frames of the model."""
        return tuple(frame.name for frame in self.model.frames)

    @property
    def couplings(self) -> tuple[Coupling, ...]:
        """Rows between joint coordinates: gears, racks, mimic joints."""
        return self.description.couplings

    @property
    def actuated(self) -> tuple[str, ...]:
        """Names of the actuated joints; all one-axis tree joints if the file does not say.

        A joint that follows others through a coupling is not taken for actuated by itself.
        """
        if self.description.actuated is not None:
            return self.description.actuated
        followers = {coupling.joints[0] for coupling in self.couplings}
        return tuple(
            name for name in self.joints if self.coordinates(name).nv == 1 and name not in followers
        )

    @property
    def drives(self) -> dict[str, Drive]:
        """Transmissions by joint."""
        return {drive.joint: drive for drive in self.description.drives}

    @property
    def geometry(self) -> tuple[Geometry, ...]:
        """Visuals and collision shapes."""
        return self.description.geometry

    @property
    def gravity(self) -> Array:
        """Gravity vector [m/s^2], shape (3,)."""
        return self.description.gravity

    @property
    def warnings(self) -> tuple[str, ...]:
        """What loading had to leave out or assume."""
        return self.description.warnings

    @property
    def neutral(self) -> Array:
        """Neutral configuration, shape (nq,): zero coordinates, identity rotations."""
        return np.asarray(pin.neutral(self.model))

    @cached_property
    def length(self) -> float:
        """Characteristic length [m], to weigh translations against rotations: `spread_of_joints`.

        A robot keeps it when loops are taken out.
        """
        return self.given_length or spread_of_joints(self.model)

    @cached_property
    def clusters(self) -> tuple[Cluster, ...]:
        """Loops and couplings by the joints that they share; clusters share none."""
        joints = {loop.name: self.tree_joints([loop.name]) for loop in self.loops}
        return clusters(joints | {x.name: self.tree_joints(x.joints) for x in self.couplings})

    def tree_joints(self, joints: Iterable[str]) -> tuple[str, ...]:
        """The joints of the tree that move some joints: themselves, or the loops that they close.

        A joint of the tree is moved by itself.
        """
        chains = {x.name: (*x.loop.chain_a, *x.loop.chain_b) for x in self.loops}
        moving = frozenset(self.joints)
        every = (name for joint in joints for name in chains.get(joint, (joint,)))
        return tuple(name for name in dict.fromkeys(every) if name in moving)

    @cached_property
    def is_translation(self) -> Mask:
        """Per velocity coordinate, whether it is a linear one [m/s], shape (nv,)."""
        mask = linear_coordinates(self.model)
        mask.setflags(write=False)
        return mask

    def workspace(self) -> AbstractContextManager[pin.Data]:
        """Work space of Pinocchio for a ``with`` block, to which nobody else writes meanwhile."""
        return self.spaces.lend(self.model)

    # -- coordinates ------------------------------------------------------------------------

    def coordinates(self, joint: str) -> JointCoordinates:
        """Where tree joint ``joint`` stands in q and v."""
        try:
            return self._coordinates[joint]
        except KeyError:
            raise self._unknown_joint(joint) from None

    @cached_property
    def _coordinates(self) -> dict[str, JointCoordinates]:
        """Where each tree joint stands in q and v, by name."""
        linear = self.is_translation
        return {name: joint_coordinates(self.model, name, linear) for name in self.joints}

    def _unknown_joint(self, joint: str) -> BadValue | UnknownName:
        if joint in {loop.name for loop in self.loops}:
            where = f"joint '{joint}' closes a loop of robot '{self.name}'"
            others = listed(self.joints, "; those that have one are ")
            return BadValue(f"{where}: it has no coordinate of its own{others}")
        if joint in {edge.joint.name for edge in self.tree.edges}:
            where = f"joint '{joint}' of robot '{self.name}' is fixed"
            return BadValue(f"{where}: it has no coordinate")
        return UnknownName("joint", joint, self.joints, self.name)

    def loop(self, name: str) -> LoopJoint:
        """Return the loop joint called ``name``."""
        known = {loop.name: loop for loop in self.loops}
        if not isinstance(name, str) or name not in known:
            raise UnknownName("loop joint", name, known, self.name)
        return known[name]

    def configuration(
        self, values: Mapping[str, ArrayLike], start: ArrayLike | None = None
    ) -> Array:
        """Configuration with the named joints at ``values`` and the others as in ``start``.

        Args:
            values: per joint its coordinate [rad, m], or a text such as "25deg" or "30 mm", or an
                array of its ``nq`` coordinates; an angle also for a joint stored as cosine and
                sine.
            start: configuration of the other joints, shape (nq,); neutral by default.
        """
        require_kind(values, Mapping, "values", "give them by joint, such as {'elbow': 0.3}")
        q = self.neutral if start is None else self.checked_configuration(start).copy()
        for joint, value in values.items():
            at = self.coordinates(joint)
            q[at.q] = at.part(value)
        return self.checked_configuration(q)

    def velocity(self, rates: Mapping[str, ArrayLike]) -> Array:
        """Velocity with the named joints at ``rates`` [rad/s, m/s] and the others at rest.

        A rate may be a text with its unit: "30 deg/s".
        """
        require_kind(rates, Mapping, "rates", "give them by joint, such as {'elbow': 0.3}")
        v = np.zeros(self.nv)
        for joint, rate in rates.items():
            at = self.coordinates(joint)
            units = at.units(rate=True)
            v[at.v] = flat_numbers(rate, f"the rate of joint '{joint}'", at.nv, units)
        return v

    def named(self, q: ArrayLike) -> dict[str, float | Array]:
        """Coordinates by joint, the inverse of `configuration`.

        A joint with one axis has a number [rad, m], also if it is stored as cosine and sine;
        others have an array of their ``nq`` coordinates.
        """
        q = self.checked_configuration(q)
        return {name: self.coordinates(name).value(q) for name in self.joints}

    def named_rates(self, v: ArrayLike) -> dict[str, float | Array]:
        """Rates by joint [rad/s, m/s], the inverse of `velocity`; arrays where it has several."""
        v = self.checked_velocity(v)
        parts = {name: v[self.coordinates(name).v] for name in self.joints}
        return {name: float(v[0]) if len(v) == 1 else v.copy() for name, v in parts.items()}

    def checked_configuration(self, q: ArrayLike) -> Array:
        """Return ``q`` as an array after checking its length, its numbers and its quaternions."""
        self._no_table(q, "a configuration", "robot.configuration(...), or pl.assemble for loops")
        array = flat_numbers(q, f"a configuration of robot '{self.name}'", self.nq)
        if not pin.isNormalized(self.model, array, ROTATION):
            raise BadValue(
                f"the configuration of robot '{self.name}' has a quaternion or a cosine and sine "
                "that is not of unit length; use robot.configuration or pin.normalize"
            )
        return array

    def checked_velocity(self, v: ArrayLike) -> Array:
        """Return ``v`` as an array after checking its length and its numbers."""
        self._no_table(v, "a velocity", "robot.velocity(...), or pl.consistent_velocity for loops")
        return flat_numbers(v, f"a velocity of robot '{self.name}'", self.nv)

    def _no_table(self, values: object, what: str, way_out: str) -> None:
        """Refuse values by joint where an array is asked for."""
        if type(values) is not np.ndarray and isinstance(values, Mapping):
            raise BadValue(
                f"{what} of robot '{self.name}' is an array, not a table of joints; make it with "
                f"{way_out}"
            )

    def integrate(self, q: ArrayLike, v: ArrayLike) -> Array:
        """Configuration reached from ``q`` along the constant velocity ``v`` in unit time."""
        q, v = self.checked_configuration(q), self.checked_velocity(v)
        return np.asarray(pin.integrate(self.model, q, v))

    def difference(self, q0: ArrayLike, q1: ArrayLike) -> Array:
        """Velocity that leads from ``q0`` to ``q1`` in unit time, shape (nv,)."""
        q0, q1 = self.checked_configuration(q0), self.checked_configuration(q1)
        return np.asarray(pin.difference(self.model, q0, q1))

    # -- frames -----------------------------------------------------------------------------

    def frame_id(self, name: str) -> int:
        """Index of a body, named frame, loop frame (``loop/A``) or joint among the frames."""
        for kind in (
            pin.FrameType.BODY,
            pin.FrameType.OP_FRAME,
            pin.FrameType.JOINT,
            pin.FrameType.FIXED_JOINT,
        ):
            if self.model.existFrame(name, kind):
                return int(self.model.getFrameId(name, kind))
        if name in GROUND_NAMES:
            return 0
        raise UnknownName("body or frame", name, self.frames, self.name)

    def placement(self, q: ArrayLike, name: str) -> pin.SE3:
        """Placement in the world of a body or frame at configuration ``q``."""
        frame, q = self.frame_id(name), self.checked_configuration(q)
        with self.workspace() as data:
            pin.forwardKinematics(self.model, data, q)
            return pin.updateFramePlacement(self.model, data, frame).copy()

    # -- other mechanisms -------------------------------------------------------------------

    def with_payload(
        self, frame: str, mass: float, com: ArrayLike = (0, 0, 0), inertia: ArrayLike | None = None
    ) -> Mechanism:
        """Return the robot with a body welded to ``frame``.

        Args:
            frame: body or frame that carries the payload.
            mass: mass [kg].
            com: centre of mass in ``frame`` [m].
            inertia: rotational inertia about the centre of mass in the axes of ``frame``
                [kg m^2], shape (3, 3); a point mass by default.
        """
        index = self.frame_id(frame)
        changed = with_payload(self.description, self.model, index, mass, com, inertia)
        return build(changed, kinematics_only=True)

    def with_robot(
        self, other: Mechanism, prefix: str, frame: str = GROUND, placement: pin.SE3 | None = None
    ) -> Mechanism:
        """Return one robot that consists of this one and another one mounted on it, or beside it.

        An arm on a linear axis or a mobile base, two arms in one place, a load that hangs. Names
        of this robot stay, and so does its gravity; `Brakes.with_brakes` joins the brakes.

        Args:
            other: the robot that is mounted; what it calls the ground is welded to ``frame``.
            prefix: comes before all names of ``other``.
            frame: body or frame of this robot that carries it; the ground by default.
            placement: of the world of ``other`` in ``frame``; the identity by default.

        Raises:
            LoadError: a name is there twice.
        """
        require_kind(other, Mechanism, "other", "load it first: other = pl.load(...)")
        both = (replace(x.description, actuated=x.actuated) for x in (self, other))
        at = pin.SE3.Identity() if placement is None else placement
        own, added = both
        changed = with_robot(own, self.model, self.frame_id(frame), added, prefix, at)
        return build(changed, kinematics_only=True)

    def without_loops(self, names: Iterable[str]) -> Mechanism:
        """Return the robot without the named loop joints and their couplings; coordinates stay."""
        changed = without_joints(self.description, {self.loop(name).name for name in names})
        return replace(build(changed, kinematics_only=True), given_length=self.length)

    def absolute(self, space: Space = "auto") -> Mechanism:
        """Return the same robot in absolute coordinates: one free joint per body.

        Every tree joint becomes a loop joint; at neutral the bodies are where they are now.

        Args:
            space: "SE3", "SO3xR3", or "auto": SE3 for bodies that a lower pair with a motion group
                joins to the ground, SO3xR3 for the others (paper 2).
        """
        changed = in_absolute_coordinates(self.description, self.model, space)
        return build(changed, kinematics_only=True)

    def to_absolute(self, q: ArrayLike, v: ArrayLike, space: Space = "auto") -> tuple[Array, Array]:
        """The state in the coordinates of ``robot.absolute(space)``.

        Args:
            q: configuration, shape (nq,).
            v: velocity, shape (nv,).
            space: see `absolute`.
        """
        q, v = self.checked_configuration(q), self.checked_velocity(v)
        return carried_state(self.model, q, v, self.absolute(space).model)

    def from_absolute(
        self, q: ArrayLike, v: ArrayLike, space: Space = "auto"
    ) -> tuple[Array, Array]:
        """The state of this robot from one in the coordinates of ``robot.absolute(space)``.

        Angles are within half a turn, and as near to that as couplings allow: how often a joint
        has turned, bodies do not tell.

        Args:
            q: configuration of ``robot.absolute(space)``.
            v: velocity of it.
            space: see `absolute`.
        """
        there = self.absolute(space)
        q, v = there.checked_configuration(q), there.checked_velocity(v)
        q, v = carried_state(there.model, q, v, self.model)
        return with_counted_turns(self.description, self.model, q), v

    def fitted(self, tolerance: float = 0.1) -> Mechanism:
        """Return the robot with its joint frames moved by the least that closes its loops.

        For loops that were drawn, not measured: if a CAD file misses by millimetres, this is the
        nearest robot that closes and moves; a warning says by how much it differs.

        Args:
            tolerance: largest turn [rad] or shift [characteristic lengths] of a joint frame.

        Raises:
            LoopNotClosed: that does not close them.
        """
        return forward("assembly.rounding.exact", "fitted", self, tolerance)

    def save(self, path: str | Path) -> Path:
        """Write the robot as a file that `pinloop.load` reads back.

        Joints, loops and couplings that a format cannot say are refused; other things, such as
        limits of speed, are left out with a warning that names them.

        Args:
            path: ``.xml`` (MJCF), ``.sdf``, ``.usda``, ``.usdc`` or ``.usd``, or else ``.urdf``,
                which may be left out, with what URDF cannot say in a loops file beside it.

        Returns:
            Path of the file.
        """
        return forward("io.saving", "save", self, path)


def require_robot(value: object) -> None:
    """Refuse what is no robot, such as the name of its file."""
    require_kind(value, Mechanism, "robot", "load it first: robot = pl.load(...)")


def blamed_links(error: Exception, robot: Mechanism) -> str:
    """Return what an error that says the mass matrix is singular owes: the links without mass."""
    return lacking_mass(robot.description, robot.model) if isinstance(error, SingularMass) else ""


@contextmanager
def blaming_links(robot: Mechanism) -> Iterator[None]:
    """Let errors of a singular mass matrix name the links without mass."""
    try:
        yield
    except SingularMass as error:
        text = f"robot '{robot.name}': {error}{blamed_links(error, robot)}"
        raise SingularMass(text) from None


def build(description: Description, *, kinematics_only: bool = False) -> Mechanism:
    """Build the mechanism that a description describes.

    Args:
        description: the robot.
        kinematics_only: do not warn of bodies without mass.

    Raises:
        LoadError: the description is not a possible machine.
    """
    check_description(description)
    description, tree, model = grow_tree(description)
    if not kinematics_only:
        description = warn_of_masses(description, model)
    description = check_cuts(description, tree)
    # A variant of a robot brings the warnings of its original along.
    description = replace(description, warnings=tuple(dict.fromkeys(description.warnings)))
    return Mechanism(description, model, loop_joints(tree, model), tree)

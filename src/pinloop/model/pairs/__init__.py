"""What two frames may do relative to each other: all that is to be known of a pair is on its class.

The pair axis is z of both frames (tables 1 and 2 of paper 1); a universal joint turns about z of A
and x of B. What lives here knows relative placements only, no robot and no file format.
"""

from .motion_groups import MotionGroup, Revolute, Spherical
from .other_pairs import PointOnLine, PointOnPlane, Rod, Universal
from .pair import (
    DIRECTION,
    LINE,
    NOTHING,
    POINT,
    Component,
    Feature,
    Pair,
    Symbol,
    SymbolSolid,
    align_z,
    make_pair,
    own_names,
    pair_class,
)
from .tree_joints import TreeJoint, product_joint

__all__ = [
    "DIRECTION",
    "LINE",
    "NOTHING",
    "PAIR_NAMES",
    "POINT",
    "Component",
    "Feature",
    "MotionGroup",
    "Pair",
    "PointOnLine",
    "PointOnPlane",
    "Revolute",
    "Rod",
    "Spherical",
    "Symbol",
    "SymbolSolid",
    "TreeJoint",
    "Universal",
    "align_z",
    "make_pair",
    "pair_class",
    "product_joint",
]

PAIR_NAMES = own_names()
"""Names of pinloop's own pairs."""

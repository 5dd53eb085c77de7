// Forces beside gravity that are the same functions of the state all along: springs, dampers,
// constant torques and forces.
#pragma once

#include <vector>

#include "tree.hpp"

namespace pinloop {

// A straight spring and damper between points of two links.
struct Line {
    int link_a, link_b;
    Vec a, b;  // in the links
    double stiffness, length, damping;
};

// A force at a point of a link, in the axes of the world or of the link.
struct Push {
    int link;
    Vec point, force;
    bool is_local;
};

// Drive, spring and damper at an axis of a joint that closes a loop.
struct Axis {
    End a, b;       // frames of the pair
    Spatial along;  // rate of the axis, of the twist of B relative to A in the axes of B
    bool turns;     // whether a spring measures the angle about z nearest to `near`; else a shift
    double near, constant, stiffness, damping;
};

struct Loads {
    // Per velocity: constant - stiffness q - damping v, with a stiffness for joints with one
    // coordinate only.
    std::vector<double> constant, stiffness, damping;
    std::vector<Line> lines;
    std::vector<Push> pushes;
    std::vector<Axis> axes;

    // Add generalised forces at a state that a tree has been brought to.
    void add(const Tables &tables, const Tree &tree, const double *q, const double *v,
             double *torque) const;
};

}  // namespace pinloop

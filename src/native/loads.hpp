// Forces beside gravity that are the same functions of the state all along: springs, dampers,
// constant torques.
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

struct Loads {
    // Per velocity: constant - stiffness q - damping v, with a stiffness for joints with one
    // coordinate only.
    std::vector<double> constant, stiffness, damping;
    std::vector<Line> lines;

    // Add generalised forces at a state that a tree has been brought to.
    void add(const Tables &tables, const Tree &tree, const double *q, const double *v,
             double *torque) const;
};

}  // namespace pinloop

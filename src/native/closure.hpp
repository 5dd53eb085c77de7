// How far a loop is open.
#pragma once

#include "tree.hpp"

namespace pinloop {

// What a pair whose motions form a group leaves free.
struct ClosedPair {
    int turns;  // free rotations: 0, 1 about z, 3
    bool slides_x, slides_y, slides_z;
    double pitch;  // advance along z per radian
};

// Where B is in A, and the step to there from the closest motion of the pair: log6.
struct Opening {
    Placement placement;
    Spatial offset;
};

// Of a loop of a tree that has been placed.
Opening opening_of(const ClosedPair &pair, const Loop &loop, const Tree &tree);

// How far a row of the loop is open.
double open_by(const Row &row, const Opening &opening);

}  // namespace pinloop

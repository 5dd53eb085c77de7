// How far loops and couplings are open, and the rows of stabilization there.
#pragma once

#include <vector>

#include "held_rows.hpp"

namespace pinloop {

// What a pair whose motions form a group leaves free.
struct ClosedPair {
    int turns;  // free rotations: 0, 1 about z, 3
    bool slides_x, slides_y, slides_z;
    double pitch;  // advance along z per radian
};

// All rows of a robot, `J` per unit of each velocity.
class Closure {
  public:
    // The pairs are those of the loops.
    Closure(const Tables &tables, std::vector<ClosedPair> pairs, std::vector<double> unit);

    // Evaluate at a configuration that a tree has been brought to.
    void update(const Tree &tree, const double *q);

    int size() const { return rows_.size(); }

    std::vector<double> J;         // (rows, nv)
    std::vector<double> residual;  // per row

  private:
    const Tables &tables_;
    HeldRows rows_;
    std::vector<ClosedPair> pairs_;
    std::vector<double> unit_, still_;
};

}  // namespace pinloop

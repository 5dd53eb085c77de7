// How far loops are open, and their rows as stabilization has them: those that regularization
// leaves, which may mix rows of a pair.
#pragma once

#include <vector>

#include "tree.hpp"

namespace pinloop {

// What a pair whose motions form a group leaves free, and which combinations of twists it takes.
struct ClosedPair {
    int loop;                      // among those of the tables
    int turns;                     // free rotations: 0, 1 about z, 3
    bool slides_x, slides_y, slides_z;
    double pitch;                  // advance along z per radian
    std::vector<Spatial> rows;     // along what, in the axes of B
};

class Closure {
  public:
    // Rows in units: `J` becomes `scale J unit`, the residual `scale r`.
    Closure(const Tables &tables, std::vector<ClosedPair> pairs, std::vector<double> scale,
            const std::vector<double> &unit);

    // Evaluate at a configuration that a tree has been brought to.
    void update(const Tree &tree);

    int size() const { return static_cast<int>(scale_.size()); }

    std::vector<double> J;         // (rows, nv)
    std::vector<double> residual;  // per row

  private:
    struct Sides {
        std::vector<int> columns;    // velocities that move A or B alone
        std::vector<double> factor;  // sign and unit
    };
    const Tables &tables_;
    std::vector<ClosedPair> pairs_;
    std::vector<Sides> sides_;
    std::vector<double> scale_;
};

}  // namespace pinloop

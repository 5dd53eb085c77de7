// The rows that hold a robot: `J` and `gamma` at the state that a tree has been brought to, and how
// far they are open there.
#pragma once

#include <vector>

#include "tree.hpp"

namespace pinloop {

// Some rows of a robot, in a certain order, with work space.
class HeldRows {
  public:
    HeldRows(const Tables &tables, const std::vector<int> &rows);

    // Evaluate all rows, residuals if they are asked for; after `Tree::move`. Where a row has no
    // support, its `J` stays zero.
    void update(const Tree &tree, const double *q, const double *v, bool measures = false);

    int size() const { return static_cast<int>(rows_.size()); }
    // Velocities that a row or what is before them can move, last one first.
    const std::vector<int> &support(int row) const { return rows_[row].support; }

    std::vector<double> J;                // (rows, nv)
    std::vector<double> gamma, residual;  // per row

  private:
    struct Held {
        int row;
        std::vector<int> support, moved;  // which ends each velocity moves
    };
    enum : int { moves_a = 1, moves_b = 2 };
    void update_coupling(const Row &row, const double *q, const double *v, std::size_t i);
    void update_row(const Held &held, const Tree &tree, double *line, double &gamma) const;
    void reach(const Loop &loop, const Tree &tree);
    double open_by(const Row &row) const;

    const Tables &tables_;
    std::vector<Held> rows_;
    // Both ends of the loop whose rows are evaluated.
    struct Moving {
        Placement place;
        Spatial V, A;
        Vec rate, bend;  // velocity and acceleration of the origin
    } a_, b_;
    Placement between_;  // place of B in A
    Spatial opening_;    // step to there from the closest motion of the pair: log6
};

}  // namespace pinloop

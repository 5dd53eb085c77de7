// Back to the constraint manifold after a step, as `stabilization` does it in Python. What to do
// near a bifurcation is decided there.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "charts.hpp"
#include "dynamics.hpp"

namespace pinloop {

// Rows and as many coordinates that meet them. All rows if there are none.
struct Block {
    std::vector<int> rows, columns;
    double share = 0.0, left = 1.0;
};

class Projector {
  public:
    Projector(std::shared_ptr<const Tables> tables, const Settings &settings,
              std::vector<double> unit, std::vector<double> rotors);

    // The coordinates that move, and what is known of regular poses.
    void begin(Block block, int independent, double regular, double known) {
        block_ = std::move(block), independent_ = independent, regularity = regular, best = known;
    }
    // Choose the coordinates at a configuration if there is no choice yet.
    void prepare(const double *q);
    // Leave velocities alone from now on, beside those with infinite rotors.
    void lock(const std::vector<int> &columns);
    const Block &block() const { return block_; }
    int size() const { return static_cast<int>(tables_.rows.size()); }

    // Project a state; false if it cannot be done here. Afterwards `moved`, `regularity`, `best`.
    bool apply(const Charts &charts, double *q, double *v);
    // The way on which it has moved the configuration, to first order.
    const std::vector<double> &shift() const { return way_; }
    bool moved = false;
    double regularity = 1.0, best = 0.0;

  private:
    bool holds_all() const { return block_.rows.size() == tables_.rows.size(); }
    double left() const { return regularity * best > 0.0 ? regularity * best : 1.0; }
    void look();
    bool close(const Charts &charts, double *q);
    bool allow(double *v);
    void place(const double *q);
    bool correct(const std::vector<double> &right, double error);
    bool meet(const std::vector<double> &right, double slack, bool by_squares = false);
    bool choose();
    double factor(bool by_squares = false);

    Dynamics dynamics_;  // at rest, held by all rows
    const Tables &tables_;
    Tree &tree_;
    std::vector<double> unit_, rotors_;
    std::vector<int> free_;
    Block block_;
    int independent_ = 0, rank_;
    double tol_, near_, worse_, worst_, curved_, contradiction_, noise_;
    std::vector<double> J_, residual_, right_, shift_, way_, trial_, still_;
    std::vector<double> lines_, pivots_, lu_, work_;
    std::vector<int> order_;
};

}  // namespace pinloop

// Back to the constraint manifold after a step, as `stabilization` does it in Python. What that
// would decide anew (other dependent coordinates, what to do near a bifurcation) is refused here.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "charts.hpp"
#include "closure.hpp"
#include "held_rows.hpp"

namespace pinloop {

using Settings = std::map<std::string, double>;

// Rows and as many coordinates that meet them. All rows if there are none.
struct Block {
    std::vector<int> rows, columns;
    double share = 0.0;
    bool holds_all = true;  // whether the rows are all that there are
};

class Projector {
  public:
    Projector(std::shared_ptr<const Tables> tables, const std::vector<ClosedPair> &pairs,
              const Settings &settings, std::vector<double> unit, const std::vector<char> &locked);

    // The coordinates that move, and what is known of regular poses.
    void begin(Block block, int independent, double regularity, double best);
    // Leave velocities alone from now on.
    void lock(const std::vector<char> &locked);
    int size() const { return rows_.size(); }

    // Project a state; false if it cannot be done here. Afterwards `moved`, `regularity`, `best`.
    bool apply(const Charts &charts, double *q, double *v);
    // The way on which it has moved the configuration, to first order.
    const std::vector<double> &shift() const { return way_; }
    bool moved = false;
    double regularity = 1.0, best = 0.0;

  private:
    void look();
    bool close(const Charts &charts, double *q);
    bool allow(double *v);
    void place(const double *q);
    bool correct(const std::vector<double> &right, double error);
    double factor();

    std::shared_ptr<const Tables> owned_;
    const Tables &tables_;
    Tree tree_;
    HeldRows rows_;
    std::vector<ClosedPair> pairs_;
    std::vector<double> unit_;
    std::vector<int> free_;
    Block block_;
    int independent_ = 0, rank_;
    double tol_, near_, worse_, worst_, curved_, contradiction_, noise_;
    std::vector<double> J_, residual_, lines_, pivots_, lu_, right_, shift_, trial_, work_, still_, way_;
    std::vector<int> order_;
};

}  // namespace pinloop

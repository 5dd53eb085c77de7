// Back to the constraint manifold after a step, as `stabilization` does it in Python. What that
// would decide anew (other dependent coordinates, what to do near a bifurcation) is refused here.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "charts.hpp"
#include "closure.hpp"

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
              const Settings &settings, std::vector<double> unit, const std::vector<char> &locked,
              std::vector<double> rotors);

    // The coordinates that move, and what is known of regular poses.
    void begin(Block block, int independent, double best);
    // Choose the coordinates at a configuration if there is no choice yet.
    void prepare(const double *q);
    const Block &block() const { return block_; }
    int size() const { return closure_.size(); }

    // Project a state; false if it cannot be done here. Afterwards `moved`, `regularity`, `best`.
    bool apply(const Charts &charts, double *q, double *v);
    // Whether the projection of a velocity takes no more than a step may err: by these tolerances,
    // or if there are none, as much as a fixed step changes the velocity that it starts with.
    bool is_small(const double *q, const double *start, const double *before, const double *after,
                  const double *tolerance);

    bool moved = false;
    double regularity = 1.0, best = 0.0;

  private:
    void look();
    bool close(const Charts &charts, double *q);
    bool allow(double *v);
    void place(const double *q);
    bool correct(const std::vector<double> &right, double error);
    double factor();
    bool choose();
    double kinetic(const double *from, const double *to);

    std::shared_ptr<const Tables> owned_;
    const Tables &tables_;
    Tree tree_;
    Closure closure_;
    std::vector<double> unit_, rotors_;
    std::vector<int> free_;
    Block block_;
    int independent_ = 0, rank_;
    double tol_, near_, worse_, worst_, curved_, contradiction_, noise_, rounding_, most_,
        coarse_;
    std::vector<double> lines_, pivots_, lu_, inverse_, right_, shift_, trial_, work_, still_;
    std::vector<int> order_;
};

}  // namespace pinloop

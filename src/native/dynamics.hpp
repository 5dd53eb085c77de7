// Accelerations of a robot that rows hold: `M a = f + J' lam`, `J a + gamma = 0`.
#pragma once

#include <memory>
#include <vector>

#include "held_rows.hpp"
#include "tree.hpp"

namespace pinloop {

// What the pivots of the rows say of a solution.
enum class Verdict : int {
    good,   // the rows are a good choice
    stale,  // the solution is right, but other rows had better be held from here on
    bad,    // no solution: rows that nearly depend on each other, or a singular mass matrix
};

// Work space for one thread at a time. Nothing is allocated after the rows have been chosen.
class Dynamics {
  public:
    explicit Dynamics(std::shared_ptr<const Tables> tables);

    // Choose the rows to hold, per row the pivots below which a solution is stale or bad, and per
    // velocity the inertia of its rotor: an infinite one locks a joint.
    void hold(const std::vector<int> &rows, std::vector<double> stale, std::vector<double> bad,
              std::vector<double> armature);

    // Acceleration at a state.
    Verdict acceleration(const double *q, const double *v, const double *tau, double *a);

    const Tables &tables() const { return *tables_; }
    // Reactions of the held rows in the last solution.
    const std::vector<double> &multipliers() const { return lam_; }

  private:
    bool factor_mass();
    void solve_upper(double *x, const std::vector<int> &support) const;
    void solve_lower(double *x) const;
    Verdict factor_gram();

    std::shared_ptr<const Tables> tables_;
    Tree tree_;
    std::unique_ptr<HeldRows> rows_;
    std::vector<int> all_;  // all velocities, last one first
    std::vector<double> stale_, bad_, armature_, Y_, G_, lam_, inverse_;
};

}  // namespace pinloop

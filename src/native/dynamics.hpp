// Accelerations of a robot that rows hold: `M a = f + J' lam`, `J a + gamma = 0`.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "held_rows.hpp"
#include "loads.hpp"
#include "tree.hpp"

namespace pinloop {

// Rotor of a velocity whose acceleration is given.
constexpr double immovable = 1e60;

// Part of a row that the rows before do not contain, below which the solution is refined.
constexpr double poor = 0.03, rounding = 1e-8;

// What the pivots of the rows say of a solution.
enum class Verdict : int {
    good,   // the rows are a good choice
    stale,  // the solution is right, but other rows had better be held from here on
    bad,    // no solution: rows that nearly depend on each other, or a singular mass matrix
};

// What steps are taken of.
class System {
  public:
    virtual ~System() = default;
    virtual Verdict accelerate(double t, const double *q, const double *v, double *a) = 0;
    // Give what is driven its velocity at a time.
    virtual void pin(double, double *) const {}
};

// Work space for one thread at a time. Nothing is allocated after the rows have been chosen.
class Dynamics : public System {
  public:
    explicit Dynamics(std::shared_ptr<const Tables> tables);

    // Choose the rows to hold, per row the pivots below which a solution is stale or bad, and per
    // velocity the inertia of its rotor: with an infinite one its acceleration is given. A row is
    // bad, too, if what the rows before do not contain of it is but a part of the largest row.
    // So many rows are nothing else than what others hold: these are left out.
    void hold(const std::vector<int> &rows, std::vector<double> stale, std::vector<double> bad,
              std::vector<double> armature, double part = 0.0, int spare = 0);

    // What acts beside gravity wherever `acceleration` is asked for.
    void load(Loads loads) { loads_ = std::make_unique<Loads>(std::move(loads)); }

    // Acceleration at a state, where what has an infinite rotor is at rest.
    Verdict acceleration(const double *q, const double *v, const double *tau, double *a);
    Verdict accelerate(double, const double *q, const double *v, double *a) override {
        return acceleration(q, v, none_.data(), a);
    }

    // The same in parts: tree and rows at a state; accelerations by torques, where `a` has those
    // that are given; and the torque that a velocity then lacks of `M a + nle - J' lam`,
    // without rotors.
    void reach(const double *q, const double *v);
    Verdict solve(const double *tau, double *a);
    double missing(int k, const double *a) const;

    const Tables &tables() const { return *tables_; }
    std::shared_ptr<const Tables> shared_tables() const { return tables_; }
    // Reactions of the held rows in the last solution.
    const std::vector<double> &multipliers() const { return lam_; }

  private:
    friend class Derivatives;  // which take the factors that are at hand
    friend class Projector;
    bool factor_mass();
    void factor_rows();
    void solve_upper(double *x, const std::vector<int> &support) const;
    void solve_lower(double *x) const;
    Verdict factor_gram();
    void push_to_rates();

    std::shared_ptr<const Tables> tables_;
    Tree tree_;
    std::unique_ptr<HeldRows> rows_;
    std::unique_ptr<Loads> loads_;
    std::vector<int> all_;  // all velocities, last one first
    std::vector<int> given_;  // velocities whose acceleration is given
    std::vector<double> stale_, bad_, armature_, torque_, none_;
    std::vector<double> L_, inverse_, Y_, G_, lam_, more_, rates_, force_;
    double part_ = 0.0;
    int spare_ = 0;
    bool refines_ = false;
};

}  // namespace pinloop

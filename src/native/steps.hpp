// Many steps at once: what `stepping` does in Python as long as nothing has to be decided.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "method.hpp"
#include "projector.hpp"

namespace pinloop {

// Where the steps of a call start, and where they may lead.
struct Course {
    double t, h, error;         // time, size of the next step, error of the last one
    double end;                 // no step passes it
    double crawls;              // so many steps to come are too many where it is asked
    std::vector<double> times;  // ends of fixed steps; none if steps are controlled
    std::vector<char> asked;    // before which steps it is asked whether the motion is stiff
};

// Configuration, velocity, acceleration.
struct State {
    const double *q, *v, *a;
};

// Room for the steps of a call; row k is where step k ends.
struct Taken {
    int most;
    double *numbers;          // t, size of the next step, error, regularity, best: (most, 5)
    std::int64_t *counts;     // evaluations, rejected steps, whether rows are stale: (most, 3)
    double *q, *v, *a, *psi;  // (most, nq), thrice (most, nv)
    double *before;           // velocities before they were projected: (most, nv)
    double *bends;            // of dense output, inside a step: (most, as it has, nv)
};

// How steps go on after one: with the next, not before Python has looked, or by Python from before.
enum class Next : int { on, halt, back };

// Work space for one thread at a time; nothing is allocated while steps are taken.
class Steps {
  public:
    virtual ~Steps() = default;
    Steps(std::shared_ptr<const Tables> tables, Tableau tableau, const Settings &settings,
          std::vector<double> unit, const std::vector<int> &locked);

    // Step another system than the robot's own dynamics.
    void follow(System &system) { system_ = &system; }
    void project(std::unique_ptr<Projector> projector) { projector_ = std::move(projector); }
    Projector *projector() { return projector_.get(); }
    // Put a state on the manifold; false if it is for Python.
    bool close(double *q, double *v) { return projector_->apply(charts_, q, v); }
    Dynamics &dynamics() { return dynamics_; }
    const Tables &tables() const { return dynamics_.tables(); }
    // Number of second derivatives inside a step that it writes.
    virtual std::size_t inside() const { return 0; }

    // Take steps from a state until the end, until the rows are stale, or until one is for Python;
    // how many.
    int take(Course course, State state, const Taken &taken);
    // One accepted step, of whatever size its error allows; false if it is for Python.
    bool controlled(Course &course, const State &state, const Taken &taken, int k);
    // A step that goes on to an instant that is near, in a vector space; false if it is for Python.
    bool prolong(double t, Course &course, const Taken &taken, int k);

  private:
    // See what has happened in a step.
    virtual Next look(double, Course &, const State &, const Taken &, int) { return Next::on; }
    bool fixed(Course &course, const State &state, const Taken &taken, int k);
    bool finish(double t, Course &course, const Taken &taken, int k);

    Dynamics dynamics_;
    System *system_ = &dynamics_;
    Charts charts_;
    Control control_;
    Attempt attempt_;
    std::unique_ptr<Projector> projector_;
    Verdict last_ = Verdict::good;
    double infinite_;
    std::vector<double> rate_;
    int rejected_ = 0;
};

}  // namespace pinloop

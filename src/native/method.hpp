// A Runge-Kutta-Munthe-Kaas method with its control of steps, as `munthe_kaas` has it in Python.
#pragma once

#include <vector>

#include "charts.hpp"
#include "dynamics.hpp"

namespace pinloop {

// An explicit tableau: weights of stages (s, s), of the step (s,), of error estimates (k, s + 1).
struct Tableau {
    std::vector<double> a, b, errors;
    int stages() const { return static_cast<int>(b.size()); }
    double node(int stage) const;  // as part of the step
    int estimates() const { return static_cast<int>(errors.size()) / (stages() + 1); }
    // Whether an error estimate needs the acceleration at the end of the step.
    bool looks_ahead() const;
};

// What control makes of the sizes of steps.
class Control {
  public:
    Control(const Settings &settings, std::vector<double> unit);

    // Errors of psi and v over their tolerances, (k, 2 nv), of a good step at most 1; or NaN.
    double error(const std::vector<double> &errors, const double *v0, const double *v1);
    double shrink(double error) const;
    double grow(double error, double before) const;

    const double smallest, largest, time_sum, first_error;

  private:
    double rtol_, atol_, alpha_, beta_, least_error_;
    std::vector<double> unit_, tolerance_;
};

// One step tried, from a state with its acceleration; nothing is allocated.
class Attempt {
  public:
    Attempt(Tableau tableau, int nq, int nv);

    Verdict take(System &system, const Charts &charts, double t, double h, const double *q,
                 const double *v, const double *a, bool with_errors);

    std::vector<double> psi, q1, v1, a1, errors;
    int evaluations = 0;   // of accelerations so far
    bool has_end = false;  // whether `a1` is the acceleration at the end

  private:
    void sum(const double *weights, int count, double h);
    Tableau tableau_;
    std::vector<double> slopes_, step_;
};

}  // namespace pinloop

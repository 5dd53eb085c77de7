// Accelerations and torques of a robot that stops, while the same joints stick, follow or slide.
#pragma once

#include <memory>
#include <vector>

#include "dynamics.hpp"

namespace pinloop {

// What acts in a phase: arrays one after another, each with one number per velocity.
enum Torques : int {
    rest_of_joint, rest_of_motor,        // torques at the start of the phase, without motion
    rate_of_joint, rate_of_motor,        // what they change with time
    viscous_of_joint, viscous_of_motor,  // and with speed
    breakaway, width,                    // Stribeck: extra torque at rest, one over its speed
    gain_up, gain_down,                  // of the gear, for torques of both signs
    rotor,                               // inertia that the gear moves, a torque behind it
    torque_arrays
};

class StopDynamics {
  public:
    explicit StopDynamics(std::shared_ptr<const Tables> tables);

    // Let a phase begin: rows that hold the loops, the part of the largest one that the others must
    // not contain of any, what is pinned, rotors in the mass matrix, and what acts from a time on.
    void enter(const std::vector<int> &rows, double part, std::vector<int> pinned,
               std::vector<double> armature, std::vector<double> torques, double start);

    // Acceleration, torque at the joints, behind the gears, and of what pins, one after another;
    // where `given` has accelerations of what is pinned. False if the rows do not hold it.
    bool solve(double t, const double *q, const double *v, const double *given, double *solution);

    // The same at states along a step of size h, on which vectors are sums of m others, `basis`:
    // rows of `sums` have the part of the step, the row of `basis` that gets h^2 a, weights of the
    // path from q, and of h v. False if one of them could not be solved.
    bool follow(double t, double h, const double *q, int count, int m, const double *sums,
                double *basis, const double *given, double *solutions);

    const Tables &tables() const { return dynamics_.tables(); }

  private:
    Dynamics dynamics_;
    std::vector<int> pinned_;
    std::vector<double> armature_, torques_, tau_, q_, v_;
    double start_ = 0.0;
};

}  // namespace pinloop

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
    drive_speed, drive_rate,             // speed of what is pinned, and its rate
    torque_arrays
};

// What ends a phase: as long as it is negative, `factor x + now + rate (t - start)` of a number `x`
// of the solution. With the largest of it since `is_bound_near`, and what `factor x` was then.
struct Bound {
    int place;
    double factor, now, rate, most, high, low;
};

class StopDynamics : public System {
  public:
    explicit StopDynamics(std::shared_ptr<const Tables> tables);

    // Let a phase begin: rows that hold the loops, the part of the largest one that the others must
    // not contain of any, how many they contain, what is pinned, rotors in the mass matrix, what
    // acts from a time on, and what ends it.
    void enter(const std::vector<int> &rows, double part, int spare, std::vector<int> pinned,
               std::vector<double> armature, std::vector<double> torques, double start,
               std::vector<Bound> bounds);

    // Acceleration, torque at the joints, behind the gears, and of what pins, one after another;
    // where `given` has accelerations of what is pinned. False if the rows do not hold it.
    bool solve(double t, const double *q, const double *v, const double *given, double *solution);

    Verdict accelerate(double t, const double *q, const double *v, double *a) override;
    void pin(double t, double *v) const override;

    // Whether one may have been passed since this was asked last, beside what was seen, too.
    bool is_bound_near();
    bool is_free() const { return bounds_.empty(); }

    double start() const { return start_; }
    const Tables &tables() const { return dynamics_.tables(); }
    const std::vector<double> &multipliers() const { return dynamics_.multipliers(); }
    std::shared_ptr<const Tables> shared_tables() const { return dynamics_.shared_tables(); }

  private:
    const double *of(Torques which) const { return &torques_[which * tables().nv]; }
    Dynamics dynamics_;
    std::vector<int> pinned_;
    std::vector<Bound> bounds_;
    std::vector<double> armature_, torques_, tau_, solution_;
    double start_ = 0.0;
};

}  // namespace pinloop

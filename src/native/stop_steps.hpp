// Steps of a robot that stops, from the start of a phase up to what ends it.
#pragma once

#include <memory>
#include <vector>

#include "steps.hpp"
#include "stop_dynamics.hpp"

namespace pinloop {

// Dense output of a step, by vectors: its path, h v and h^2 a at both ends, and h^2 a inside.
struct Dense {
    int size;                       // number of these vectors
    std::vector<double> inside;     // per acceleration inside, in order: part of the step, vector
                                    // that it becomes, and weights of the path there and of h v
    std::vector<double> powers;     // coefficients of the path in powers of the part, (size, size)
    std::vector<double> bernstein;  // control points of a polynomial by coefficients, the constant
                                    // first, (size + 1, size + 1)
};

// What a coordinate or its speed is compared with: `sign (x - level - rate (t - start))` is
// positive until something happens.
struct Watched {
    int column;
    bool is_speed;
    double sign, level, rate;
};

class StopSteps : public Steps {
  public:
    // On coordinates that are a vector space.
    StopSteps(std::shared_ptr<StopDynamics> dynamics, Tableau tableau, const Settings &settings,
              std::vector<double> unit, Dense dense);

    // What to look for in the phase that has been entered; speeds that are none, and below which
    // Python looks at each state.
    void watch(std::vector<Watched> watched, double tiny, double slow) {
        watched_ = std::move(watched), tiny_ = tiny, slow_ = slow;
    }

    const std::vector<int> &hits() const { return hits_; }  // what has happened at the end

    std::size_t inside() const override { return dense_.size - 5; }

  private:
    Next look(double t0, Course &course, const State &state, const Taken &taken, int k) override;
    bool bend(double t0, double h, const State &state, const Taken &taken, int k);
    double locate(double t0, double h, const State &state);
    void shape(const Watched &watched, double t0, double h, const State &state);
    double value(double part) const;
    bool end_at(double t0, double first, Course &course, const State &state, const Taken &taken,
                int k);

    std::shared_ptr<StopDynamics> stop_;
    Dense dense_;
    std::vector<Watched> watched_;
    std::vector<int> hits_;
    double tiny_ = 0.0, slow_ = 0.0, tie_, turn_, instant_;
    std::vector<double> basis_, path_, powers_, hull_, roots_, q_, v_;
};

}  // namespace pinloop

// Configurations as a group, joint by joint: steps in its algebra and what becomes of velocities.
#pragma once

#include <vector>

#include "tables.hpp"

namespace pinloop {

// Nothing is allocated after construction; any number of threads may use it.
class Charts {
  public:
    // The configuration of a joint none of whose velocities is free stays to the last bit.
    Charts(const Tables &tables, const std::vector<char> &locked);

    // Whether there are only vector spaces and single angles, on which `rate` does nothing.
    bool is_flat() const { return flat_; }

    // moved = q (+) psi, with quaternions of unit length.
    void integrate(const double *q, const double *psi, double *moved) const;
    // Rate of psi while q (+) psi moves with velocity v: dexpinv(-psi) v.
    void rate(const double *psi, const double *v, double *rate) const;

  private:
    struct Chart {
        Motion motion;
        int q, v;
        bool held;
    };
    std::vector<Chart> charts_;
    int nv_;
    bool flat_ = true;
};

// Step from the identity to a placement, by rotation vector: log6. Of more than some 150 degrees
// it is not a number.
Spatial logarithm(const Placement &placement);

}  // namespace pinloop

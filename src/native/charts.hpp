// Configurations as a group, joint by joint: steps in its algebra and what becomes of velocities.
#pragma once

#include <vector>

#include "tables.hpp"

namespace pinloop {

// Nothing is allocated after construction; any number of threads may use it.
class Charts {
  public:
    // The configuration of a joint all of whose velocities are locked stays to the last bit.
    Charts(const Tables &tables, const std::vector<int> &locked);

    // moved = q (+) psi, with quaternions of unit length.
    void integrate(const double *q, const double *psi, double *moved) const;
    // Rate of psi while q (+) psi moves with velocity v: dexpinv(-psi) v.
    void rate(const double *psi, const double *v, double *rate) const;

  private:
    const Tables &tables_;
    std::vector<char> held_;  // per link
    bool flat_ = true;         // only vector spaces and single angles, on which `rate` does nothing
};

// Step from the identity to a placement, by rotation vector: log6. Of more than some 150 degrees
// it is not a number.
Spatial logarithm(const Placement &placement);

}  // namespace pinloop

// One pass over the tree: placements, velocities, accelerations without joint acceleration, the
// mass matrix and the forces that gravity and velocities ask for.
#pragma once

#include <algorithm>
#include <vector>

#include "tables.hpp"

namespace pinloop {

// Where a joint with some coordinates carries its link, in the frame of the joint.
Placement joint_placement(const Link &link, const double *q);

// Work space of a tree, and what the last pass has left in it.
class Tree {
  public:
    explicit Tree(const Tables &tables);

    // Placements of links and twists of joints at a configuration.
    void place(const double *q);
    // Twists of links, and their rates if no joint accelerates; after `place`.
    void move(const double *v);
    // Mass matrix and forces; after `move`.
    void weigh();

    Spatial velocity(int link) const { return link < 0 ? Spatial{} : velocities_[link]; }
    // With minus gravity in it, so that gravity need not be asked for.
    Spatial drift(int link) const { return link < 0 ? resting_ : drifts_[link]; }
    Placement placement(int link) const { return link < 0 ? Placement{} : placements_[link]; }
    Placement placement(const End &end) const { return placement(end.link) * end.at; }

    // Of a link and all that it carries; after `weigh`, which asks for no joint acceleration.
    const Inertia &composite(int link) const { return inertias_[link]; }
    const Spatial &wrench(int link) const { return wrenches_[link]; }

    // Entry of the mass matrix, without rotors.
    double inertia(int i, int j) const {
        return mass[static_cast<std::size_t>(std::max(i, j)) * tables_.nv + std::min(i, j)];
    }

    std::vector<Spatial> columns;  // per velocity its twist in the world
    std::vector<double> mass;      // (nv, nv) without rotors, row i up to the diagonal and only
                                   // where a velocity is before i
    std::vector<double> forces;    // nle: what the motion asks for without joint acceleration

  private:
    const Tables &tables_;
    Spatial resting_;
    std::vector<Placement> placements_;
    std::vector<Spatial> velocities_, drifts_, wrenches_;
    std::vector<Inertia> inertias_;
};

}  // namespace pinloop

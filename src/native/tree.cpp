#include "tree.hpp"

namespace pinloop {

Placement joint_placement(const Link &link, const double *q) {
    switch (link.motion) {
    case Motion::screw:
        if (dot(link.axis.w, link.axis.w) == 0.0) return {Rotation{}, q[0] * link.axis.v};
        return {turned(link.axis.w, std::cos(q[0]), std::sin(q[0])), q[0] * link.axis.v};
    case Motion::circle:
        return {turned(link.axis.w, q[0], q[1]), Vec{}};
    case Motion::translation:
        return {Rotation{}, {q[0], q[1], q[2]}};
    case Motion::spherical:
        return {rotation(q), Vec{}};
    case Motion::free:
        return {rotation(q + 3), {q[0], q[1], q[2]}};
    case Motion::planar:
        return {turned({0.0, 0.0, 1.0}, q[2], q[3]), {q[0], q[1], 0.0}};
    }
    return {};
}

Tree::Tree(const Tables &tables)
    : columns(tables.nv), mass(static_cast<std::size_t>(tables.nv) * tables.nv), forces(tables.nv),
      tables_(tables), resting_{-tables.gravity, Vec{}}, placements_(tables.links.size()),
      velocities_(tables.links.size()), drifts_(tables.links.size()),
      wrenches_(tables.links.size()), inertias_(tables.links.size()) {}

void Tree::place(const double *q) {
    for (std::size_t i = 0; i < tables_.links.size(); ++i) {
        const Link &link = tables_.links[i];
        const Placement joint = link.joint * joint_placement(link, q + link.q);
        placements_[i] = link.parent < 0 ? joint : placements_[link.parent] * joint;
    }
    for (int k = 0; k < tables_.nv; ++k) {
        columns[k] = carried(placements_[tables_.link_of[k]], tables_.twists[k]);
    }
}

// Velocities and accelerations of recursive Newton-Euler (Featherstone, eqs. 5.7 and 5.8); the
// twists of a joint are carried along by its link.
void Tree::move(const double *v) {
    std::size_t k = 0;
    for (std::size_t i = 0; i < tables_.links.size(); ++i) {
        const int parent = tables_.links[i].parent;
        Spatial own;
        for (; k < columns.size() && tables_.link_of[k] == static_cast<int>(i); ++k) {
            own += v[k] * columns[k];
        }
        const Spatial V = velocity(parent);
        velocities_[i] = V + own;
        drifts_[i] = drift(parent) + cross(V, own);
    }
}

// Forces by recursive Newton-Euler (Featherstone, eqs. 5.9 and 5.20), the mass matrix by composite
// rigid bodies (table 6.2): in the axes of the world nothing is carried from link to link.
void Tree::weigh() {
    for (std::size_t i = 0; i < tables_.links.size(); ++i) {
        const Link &link = tables_.links[i];
        const Inertia &Y = inertias_[i] =
            carried(placements_[i], link.mass, link.com, link.inertia.data());
        wrenches_[i] = Y * drifts_[i] + cross_dual(velocities_[i], Y * velocities_[i]);
    }
    int k = tables_.nv - 1;
    for (int i = static_cast<int>(tables_.links.size()) - 1; i >= 0; --i) {
        for (; k >= 0 && tables_.link_of[k] == i; --k) {
            forces[k] = dot(columns[k], wrenches_[i]);
            const Spatial momentum = inertias_[i] * columns[k];
            double *row = &mass[static_cast<std::size_t>(k) * tables_.nv];
            for (int j = k; j >= 0; j = tables_.before[j]) row[j] = dot(columns[j], momentum);
        }
        const int parent = tables_.links[i].parent;
        if (parent >= 0) {
            inertias_[parent] += inertias_[i];
            wrenches_[parent] += wrenches_[i];
        }
    }
}

}  // namespace pinloop

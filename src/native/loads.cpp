#include "loads.hpp"

#include <cmath>

namespace pinloop {

namespace {

Vec velocity_of(const Spatial &twist, const Vec &point) { return twist.v + cross(twist.w, point); }

// Add what a force at a point of a link does to the velocities that move it.
void push(const Tables &tables, const Tree &tree, int link, const Vec &point, const Vec &force,
          double *torque) {
    for (int k = tables.last_velocity(link); k >= 0; k = tables.before[k]) {
        torque[k] += dot(force, velocity_of(tree.columns[k], point));
    }
}

}  // namespace

void Loads::add(const Tables &tables, const Tree &tree, const double *q, const double *v,
                double *torque) const {
    for (int k = 0; k < tables.nv; ++k) {
        torque[k] += constant[k] - damping[k] * v[k];
        if (stiffness[k] != 0.0) torque[k] -= stiffness[k] * q[tables.links[tables.link_of[k]].q];
    }
    for (const Line &line : lines) {
        const Placement place_a = tree.placement(line.link_a), place_b = tree.placement(line.link_b);
        const Vec a = place_a.p + place_a.R * line.a, b = place_b.p + place_b.R * line.b;
        const Vec between = b - a;
        const double distance = std::sqrt(dot(between, between));
        const Vec along = (1.0 / distance) * between;  // not a number of points that coincide
        const double rate = dot(along, velocity_of(tree.velocity(line.link_b), b) -
                                           velocity_of(tree.velocity(line.link_a), a));
        const double pull = line.stiffness * (distance - line.length) + line.damping * rate;
        push(tables, tree, line.link_a, a, pull * along, torque);
        push(tables, tree, line.link_b, b, -pull * along, torque);
    }
}

}  // namespace pinloop

#include "loads.hpp"

#include <cmath>

namespace pinloop {

// Add what a wrench on a link, at the world's origin, does to the velocities that move it.
static void push(const Tables &tables, const Tree &tree, int link, const Spatial &wrench,
                 double *torque) {
    for (int k = tables.last_velocity(link); k >= 0; k = tables.before[k]) {
        torque[k] += dot(wrench, tree.columns[k]);
    }
}

static double coordinate(const Axis &axis, const Placement &a, const Placement &b) {
    if (!axis.turns) return dot(a.R * axis.along.v, b.p - a.p);
    const double angle = std::atan2(dot(b.R.x, a.R.y) - dot(b.R.y, a.R.x),
                                    dot(b.R.x, a.R.x) + dot(b.R.y, a.R.y));
    return axis.near + std::remainder(angle - axis.near, full_turn);
}

void Loads::add(const Tables &tables, const Tree &tree, const double *q, const double *v,
                double *torque) const {
    for (int k = 0; k < tables.nv; ++k) {
        torque[k] += constant[k] - damping[k] * v[k];
        if (stiffness[k] != 0.0) torque[k] -= stiffness[k] * q[tables.links[tables.link_of[k]].q];
    }
    for (const Line &line : lines) {
        const Vec a = tree.placement(line.link_a) * line.a;
        const Vec b = tree.placement(line.link_b) * line.b;
        const Vec between = b - a;
        const double distance = std::sqrt(dot(between, between));
        const Vec along = (1.0 / distance) * between;  // not a number of points that coincide
        const double rate = dot(along, velocity_at(b, tree.velocity(line.link_b)) -
                                           velocity_at(a, tree.velocity(line.link_a)));
        const double pull = line.stiffness * (distance - line.length) + line.damping * rate;
        push(tables, tree, line.link_a, wrench_at(a, pull * along), torque);
        push(tables, tree, line.link_b, wrench_at(b, -pull * along), torque);
    }
    for (const Push &given : pushes) {
        const Placement place = tree.placement(given.link);
        const Vec force = given.is_local ? place.R * given.force : given.force;
        push(tables, tree, given.link, wrench_at(place * given.point, force), torque);
    }
    for (const Axis &axis : axes) {
        const Placement a = tree.placement(axis.a), b = tree.placement(axis.b);
        const Spatial along = carried_wrench(b, axis.along);
        const double rate = dot(along, tree.velocity(axis.b.link) - tree.velocity(axis.a.link));
        double drive = axis.constant - axis.damping * rate;
        if (axis.stiffness != 0.0) drive -= axis.stiffness * coordinate(axis, a, b);
        push(tables, tree, axis.b.link, drive * along, torque);
        push(tables, tree, axis.a.link, -drive * along, torque);
    }
}

}  // namespace pinloop

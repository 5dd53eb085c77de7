#include "loads.hpp"

#include <cmath>

namespace pinloop {

static Vec velocity_of(const Spatial &twist, const Vec &point) { return twist.v + cross(twist.w, point); }

// Add what a wrench on a link, at the world's origin, does to the velocities that move it.
static void push(const Tables &tables, const Tree &tree, int link, const Spatial &wrench, double *torque) {
    for (int k = tables.last_velocity(link); k >= 0; k = tables.before[k]) {
        torque[k] += dot(wrench, tree.columns[k]);
    }
}

static Spatial wrench_of(const Vec &force, const Vec &point) { return {force, cross(point, force)}; }

static double coordinate(const Axis &axis, const Placement &a, const Placement &b) {
    if (!axis.turns) return dot(a.R * axis.along.v, b.p - a.p);
    const double angle = std::atan2(dot(b.R.x, a.R.y) - dot(b.R.y, a.R.x),
                                    dot(b.R.x, a.R.x) + dot(b.R.y, a.R.y));
    return axis.near + std::remainder(angle - axis.near, 2.0 * std::acos(-1.0));
}

void Loads::add(const Tables &tables, const Tree &tree, const double *q, const double *v, double *torque) const {
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
        push(tables, tree, line.link_a, wrench_of(pull * along, a), torque);
        push(tables, tree, line.link_b, wrench_of(-pull * along, b), torque);
    }
    for (const Push &given : pushes) {
        const Placement place = tree.placement(given.link);
        const Vec force = given.is_local ? place.R * given.force : given.force;
        push(tables, tree, given.link, wrench_of(force, place.p + place.R * given.point), torque);
    }
    for (const Axis &axis : axes) {
        const auto &[link_a, link_b, at_a, at_b, free] = axis.loop;
        const Placement a = tree.placement(link_a) * at_a, b = tree.placement(link_b) * at_b;
        const Spatial along = wrench_of(b.R * axis.along.v, b.p) + Spatial{Vec{}, b.R * axis.along.w};
        const double rate = dot(along, tree.velocity(link_b) - tree.velocity(link_a));
        double drive = axis.constant - axis.damping * rate;
        if (axis.stiffness != 0.0) drive -= axis.stiffness * coordinate(axis, a, b);
        push(tables, tree, link_b, drive * along, torque);
        push(tables, tree, link_a, -drive * along, torque);
    }
}

}  // namespace pinloop

#include "closure.hpp"

#include <cmath>

#include "charts.hpp"

namespace pinloop {

namespace {

constexpr double pi = 3.14159265358979323846;

Vec into(const Rotation &R, const Vec &a) { return {dot(R.x, a), dot(R.y, a), dot(R.z, a)}; }

// B seen from A.
Placement relative(const Placement &a, const Placement &b) {
    return {{into(a.R, b.R.x), into(a.R, b.R.y), into(a.R, b.R.z)}, into(a.R, b.p - a.p)};
}

// The motion of the pair that is closest to a placement; see `MotionGroup.closest` in Python.
Placement closest(const ClosedPair &pair, const Placement &T) {
    double angle = 0.0;
    Placement member;
    if (pair.turns == 1) {
        angle = std::atan2(T.R.x.y - T.R.y.x, T.R.x.x + T.R.y.y);
        if (pair.pitch != 0.0) {
            angle += 2.0 * pi * std::round((T.p.z / pair.pitch - angle) / (2.0 * pi));
        }
        member.R = turned({0.0, 0.0, 1.0}, std::cos(angle), std::sin(angle));
    } else if (pair.turns == 3) {
        member.R = T.R;
    }
    if (pair.slides_x) member.p.x = T.p.x;
    if (pair.slides_y) member.p.y = T.p.y;
    if (pair.slides_z) member.p.z = T.p.z;
    if (pair.pitch != 0.0) member.p.z = pair.pitch * angle;
    return member;
}

}  // namespace

Opening opening_of(const ClosedPair &pair, const Loop &loop, const Tree &tree) {
    const Placement T = relative(tree.placement(loop.link_a) * loop.a,
                                 tree.placement(loop.link_b) * loop.b);
    return {T, logarithm(relative(closest(pair, T), T))};
}

double open_by(const Row &row, const Opening &opening) {
    const Placement &T = opening.placement;
    switch (row.tie) {
    case Tie::offset:
        return dot(row.along.v, T.p);
    case Tie::rod:
        return row.along.v.x * std::sqrt(dot(T.p, T.p)) - row.along.v.y;
    case Tie::angle:
        return row.along.w.x * T.R.x.z;
    default:
        return dot(row.along, opening.offset);
    }
}

}  // namespace pinloop

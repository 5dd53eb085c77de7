#include "closure.hpp"

#include <cmath>
#include <utility>

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

Closure::Closure(const Tables &tables, std::vector<ClosedPair> pairs, std::vector<double> scale,
                 const std::vector<double> &unit)
    : J(scale.size() * tables.nv), residual(scale.size()), tables_(tables),
      pairs_(std::move(pairs)), scale_(std::move(scale)) {
    for (const ClosedPair &pair : pairs_) {
        std::vector<double> side(tables.nv);
        const auto mark = [&](int k, double sign) {
            for (; k >= 0; k = tables.before[k]) side[k] += sign;
        };
        mark(tables.last_velocity(tables.loops[pair.loop].link_a), -1.0);
        mark(tables.last_velocity(tables.loops[pair.loop].link_b), 1.0);
        Sides sides;
        for (int k = 0; k < tables.nv; ++k) {
            if (side[k] == 0.0) continue;
            sides.columns.push_back(k);
            sides.factor.push_back(side[k] * unit[k]);
        }
        sides_.push_back(std::move(sides));
    }
}

// `s Ad(B^-1) (J_B - J_A)` and `s log6(N^-1 T)` with the closest motion N of the pair.
void Closure::update(const Tree &tree) {
    std::size_t row = 0;
    for (std::size_t i = 0; i < pairs_.size(); ++i) {
        const ClosedPair &pair = pairs_[i];
        const Loop &loop = tables_.loops[pair.loop];
        const Placement b = tree.placement(loop.link_b) * loop.b;
        const Placement T = relative(tree.placement(loop.link_a) * loop.a, b);
        const Spatial offset = logarithm(relative(closest(pair, T), T));
        for (const Spatial &along : pair.rows) {
            const Vec force = b.R * along.v;
            const Spatial world{force, cross(b.p, force) + b.R * along.w};
            double *line = &J[row * tables_.nv];
            for (std::size_t k = 0; k < sides_[i].columns.size(); ++k) {
                const int column = sides_[i].columns[k];
                line[column] = scale_[row] * sides_[i].factor[k] * dot(world, tree.columns[column]);
            }
            residual[row] = scale_[row] * dot(along, offset);
            ++row;
        }
    }
}

}  // namespace pinloop

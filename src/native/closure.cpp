#include "closure.hpp"

#include <cmath>
#include <numeric>
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

// log6(N^-1 T) with the closest motion N of the pair.
Spatial offset_of(const ClosedPair &pair, const Loop &loop, const Tree &tree) {
    const Placement T = relative(tree.placement(loop.link_a) * loop.a,
                                 tree.placement(loop.link_b) * loop.b);
    return logarithm(relative(closest(pair, T), T));
}

double sum_of(const std::vector<Term> &terms, const double *q) {
    double sum = 0.0;
    for (const Term &term : terms) {
        double value = 0.0;
        for (std::size_t k = term.polynomial.size(); k-- > 0;) {
            value = value * q[term.q] + term.polynomial[k];
        }
        sum += value;
    }
    return sum;
}

std::vector<int> all_rows(const Tables &tables) {
    std::vector<int> rows(tables.rows.size());
    std::iota(rows.begin(), rows.end(), 0);
    return rows;
}

}  // namespace

Closure::Closure(const Tables &tables, std::vector<ClosedPair> pairs, std::vector<double> unit)
    : J(tables.rows.size() * tables.nv), residual(tables.rows.size()), tables_(tables),
      rows_(tables, all_rows(tables)), pairs_(std::move(pairs)), unit_(std::move(unit)),
      still_(tables.nv) {}

void Closure::update(const Tree &tree, const double *q) {
    rows_.update(tree, q, still_.data());
    for (std::size_t i = 0; i < J.size(); ++i) J[i] = rows_.J[i] * unit_[i % unit_.size()];
    int loop = -1;
    Spatial offset;
    for (std::size_t i = 0; i < residual.size(); ++i) {
        const Row &row = tables_.rows[i];
        if (row.loop >= 0 && row.loop != loop) {
            loop = row.loop;
            offset = offset_of(pairs_[loop], tables_.loops[loop], tree);
        }
        residual[i] = row.loop >= 0 ? dot(row.along, offset) : sum_of(row.terms, q);
    }
}

}  // namespace pinloop

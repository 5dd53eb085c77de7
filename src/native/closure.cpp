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

// How far a row is open at the placement T of B in A: of twists by log6(N^-1 T) with the closest
// motion N of the pair.
double open_by(const Row &row, const Placement &T, const Spatial &offset) {
    switch (row.tie) {
    case Tie::offset:
        return dot(row.along.v, T.p);
    case Tie::rod:
        return row.along.v.x * std::sqrt(dot(T.p, T.p)) - row.along.v.y;
    case Tie::angle:
        return row.along.w.x * T.R.x.z;
    default:
        return dot(row.along, offset);
    }
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
    Placement T;
    Spatial offset;
    for (std::size_t i = 0; i < residual.size(); ++i) {
        const Row &row = tables_.rows[i];
        if (row.loop >= 0 && row.loop != loop) {
            const Loop &ends = tables_.loops[loop = row.loop];
            T = relative(tree.placement(ends.link_a) * ends.a, tree.placement(ends.link_b) * ends.b);
            offset = logarithm(relative(closest(pairs_[loop], T), T));
        }
        residual[i] = row.loop >= 0 ? open_by(row, T, offset) : sum_of(row.terms, q);
    }
}

}  // namespace pinloop

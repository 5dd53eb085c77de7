#include "held_rows.hpp"

#include <cmath>
#include <utility>

#include "charts.hpp"

namespace pinloop {

namespace {

// B seen from A.
Placement relative(const Placement &a, const Placement &b) {
    const Rotation back = transposed(a.R);
    return {back * b.R, back * (b.p - a.p)};
}

// The motion of the pair that is closest to a placement; see `MotionGroup.closest` in Python.
Placement closest(const FreeMotion &free, const Placement &T) {
    const auto &[x, y, z] = free.slides;
    Placement member{Rotation{}, {x * T.p.x, y * T.p.y, z * T.p.z}};
    if (free.turns == 3) member.R = T.R;
    if (free.turns != 1) return member;
    double angle = std::atan2(T.R.x.y - T.R.y.x, T.R.x.x + T.R.y.y);
    member.R = turned({0.0, 0.0, 1.0}, std::cos(angle), std::sin(angle));
    if (free.pitch != 0.0) {
        angle += full_turn * std::round((T.p.z / free.pitch - angle) / full_turn);
        member.p.z = free.pitch * angle;
    }
    return member;
}

}  // namespace

HeldRows::HeldRows(const Tables &tables, const std::vector<int> &rows)
    : J(rows.size() * tables.nv), gamma(rows.size()), residual(rows.size()), tables_(tables) {
    for (int number : rows) {
        const Row &row = tables.rows[number];
        std::vector<int> moved(tables.nv);
        const auto mark = [&](int k, int end) {
            for (; k >= 0; k = tables.before[k]) moved[k] |= end;
        };
        if (row.loop >= 0) {
            mark(tables.last_velocity(tables.loops[row.loop].a.link), moves_a);
            mark(tables.last_velocity(tables.loops[row.loop].b.link), moves_b);
        }
        for (const Term &term : row.terms) mark(term.v, moves_a);
        Held held{number, {}, {}};
        for (int k = tables.nv - 1; k >= 0; --k) {
            if (moved[k] != 0) held.support.push_back(k), held.moved.push_back(moved[k]);
        }
        rows_.push_back(std::move(held));
    }
}

void HeldRows::update(const Tree &tree, const double *q, const double *v, bool measures) {
    int loop = -1;
    for (std::size_t i = 0; i < rows_.size(); ++i) {
        const Row &row = tables_.rows[rows_[i].row];
        if (row.loop < 0) {
            update_coupling(row, q, v, i);
            continue;
        }
        if (row.loop != loop) {
            reach(tables_.loops[loop = row.loop], tree);
            if (measures) {
                const FreeMotion &free = tables_.loops[loop].free;
                between_ = relative(a_.place, b_.place);
                opening_ = logarithm(relative(closest(free, between_), between_));
            }
        }
        update_row(rows_[i], tree, &J[i * tables_.nv], gamma[i]);
        if (measures) residual[i] = open_by(row);
    }
}

// Of a sum of polynomials, sum p(q): J = p'(q), gamma = sum p''(q) v^2, by Horner's rule.
void HeldRows::update_coupling(const Row &row, const double *q, const double *v, std::size_t i) {
    gamma[i] = residual[i] = 0.0;
    for (const Term &term : row.terms) {
        double sum = 0.0, slope = 0.0, bend = 0.0;
        for (std::size_t k = term.polynomial.size(); k-- > 0;) {
            bend = bend * q[term.q] + 2.0 * slope;
            slope = slope * q[term.q] + sum;
            sum = sum * q[term.q] + term.polynomial[k];
        }
        J[i * tables_.nv + term.v] = slope;
        gamma[i] += bend * v[term.v] * v[term.v];
        residual[i] += sum;
    }
}

void HeldRows::reach(const Loop &loop, const Tree &tree) {
    const auto moving = [&tree](const End &end) {
        const Placement place = tree.placement(end);
        const Spatial V = tree.velocity(end.link), A = tree.drift(end.link);
        const Vec rate = velocity_at(place.p, V);
        return Moving{place, V, A, rate, velocity_at(place.p, A) + cross(V.w, rate)};
    };
    a_ = moving(loop.a), b_ = moving(loop.b);
}

double HeldRows::open_by(const Row &row) const {
    switch (row.tie) {
    case Tie::offset:
        return dot(row.along.v, between_.p);
    case Tie::rod:
        return row.along.v.x * std::sqrt(dot(between_.p, between_.p)) - row.along.v.y;
    case Tie::angle:
        return row.along.w.x * between_.R.x.z;
    default:
        return dot(row.along, opening_);
    }
}

// A row is a force at B's origin and a couple on B, and the same on A the other way. As a covector
// at the world's origin it is s, with the rate s':
//     J v = s (V_B - V_A),   gamma = s (A_B - A_A) + s' (V_B - V_A).
// Of points the force on A is at A's origin, wherever it is: what is zero then is the second
// derivative of their distance, so that errors of a step do not turn with the bodies.
void HeldRows::update_row(const Held &held, const Tree &tree, double *line, double &gamma) const {
    const Row &row = tables_.rows[held.row];
    const Vec between = b_.place.p - a_.place.p, moving = b_.rate - a_.rate;
    Vec force, couple, force_rate, couple_rate;
    switch (row.tie) {
    case Tie::twist:
    case Tie::point:
        force = b_.place.R * row.along.v, couple = b_.place.R * row.along.w;
        force_rate = cross(b_.V.w, force), couple_rate = cross(b_.V.w, couple);
        break;
    case Tie::offset:
        force = a_.place.R * row.along.v, force_rate = cross(a_.V.w, force);
        break;
    case Tie::rod: {
        const double weight = row.along.v.x / std::sqrt(dot(between, between));
        force = weight * between;  // not a number where the origins coincide
        force_rate = weight * moving - dot(between, moving) / dot(between, between) * force;
        break;
    }
    case Tie::angle: {
        const Vec x = row.along.w.x * b_.place.R.x, z = a_.place.R.z;
        couple = cross(x, z);
        couple_rate = cross(cross(b_.V.w, x), z) + cross(x, cross(a_.V.w, z));
    }
    }
    const bool is_point = row.tie == Tie::point;
    const Spatial at_b{force, cross(b_.place.p, force) + couple};
    const Spatial at_a = is_point ? wrench_at(a_.place.p, force) : at_b;
    const Vec turning = cross(b_.rate, force) + cross(b_.place.p, force_rate) + couple_rate;
    const Spatial rate{force_rate, turning};
    gamma = is_point ? dot(force, b_.bend - a_.bend)
                     : dot(at_b, b_.A - a_.A) + dot(rate, b_.V - a_.V);
    for (std::size_t i = 0; i < held.support.size(); ++i) {
        double entry = 0.0;  // what moves A and B alike moves their points only
        if (is_point || held.moved[i] != (moves_a | moves_b)) {
            const Spatial &column = tree.columns[held.support[i]];
            if (held.moved[i] & moves_b) entry += dot(at_b, column);
            if (held.moved[i] & moves_a) entry -= dot(at_a, column);
        }
        line[held.support[i]] = entry;
    }
}

}  // namespace pinloop

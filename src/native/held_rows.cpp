#include "held_rows.hpp"

#include <cmath>
#include <utility>

namespace pinloop {

// Acceleration of a point of a body, which the body carries along.
static Vec point_acceleration(const Spatial &V, const Spatial &A, const Vec &p) {
    return A.v + cross(A.w, p) + cross(V.w, V.v + cross(V.w, p));
}

HeldRows::HeldRows(const Tables &tables, const std::vector<int> &rows)
    : J(rows.size() * tables.nv), gamma(rows.size()), value(rows.size()), tables_(tables) {
    for (int number : rows) {
        const Row &row = tables.rows[number];
        std::vector<char> of_a(tables.nv), of_b(tables.nv);
        const auto mark = [&tables](std::vector<char> &marks, int k) {
            for (; k >= 0; k = tables.before[k]) marks[k] = 1;
        };
        if (row.loop >= 0) {
            mark(of_a, tables.last_velocity(tables.loops[row.loop].link_a));
            mark(of_b, tables.last_velocity(tables.loops[row.loop].link_b));
        }
        for (const Term &term : row.terms) mark(of_a, term.v);
        Held held{number, {}, {}, {}};
        for (int k = tables.nv - 1; k >= 0; --k) {
            if (!of_a[k] && !of_b[k]) continue;
            held.support.push_back(k);
            held.moves_a.push_back(of_a[k]);
            held.moves_b.push_back(of_b[k]);
        }
        rows_.push_back(std::move(held));
    }
}

void HeldRows::update(const Tree &tree, const double *q, const double *v) {
    int loop = -1;
    for (std::size_t i = 0; i < rows_.size(); ++i) {
        const Row &row = tables_.rows[rows_[i].row];
        double *line = &J[i * tables_.nv];
        if (row.loop >= 0) {
            if (row.loop != loop) reach(loop = row.loop, tree);
            update_row(rows_[i], tree, line, gamma[i]);
        } else {
            update_coupling(row, q, v, static_cast<int>(i));
        }
    }
}

// Of a sum of polynomials, sum p(q): J = p'(q), gamma = sum p''(q) v^2, by Horner's rule.
void HeldRows::update_coupling(const Row &row, const double *q, const double *v, int i) {
    gamma[i] = value[i] = 0.0;
    for (const Term &term : row.terms) {
        double sum = 0.0, slope = 0.0, bend = 0.0;
        for (std::size_t k = term.polynomial.size(); k-- > 0;) {
            bend = bend * q[term.q] + 2.0 * slope;
            slope = slope * q[term.q] + sum;
            sum = sum * q[term.q] + term.polynomial[k];
        }
        J[static_cast<std::size_t>(i) * tables_.nv + term.v] = slope;
        gamma[i] += bend * v[term.v] * v[term.v];
        value[i] += sum;
    }
}

void HeldRows::reach(int loop, const Tree &tree) {
    const Loop &ends = tables_.loops[loop];
    const auto end = [&tree](int link, const Placement &at) {
        const Placement place = tree.placement(link) * at;
        const Spatial V = tree.velocity(link);
        return End{place, V, tree.drift(link), V.v + cross(V.w, place.p)};
    };
    a_ = end(ends.link_a, ends.a), b_ = end(ends.link_b, ends.b);
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
    const Spatial at_a = is_point ? Spatial{force, cross(a_.place.p, force)} : at_b;
    if (is_point) {
        gamma = dot(force, point_acceleration(b_.V, b_.A, b_.place.p) -
                               point_acceleration(a_.V, a_.A, a_.place.p));
    } else {
        const Spatial rate{force_rate,
                           cross(b_.rate, force) + cross(b_.place.p, force_rate) + couple_rate};
        gamma = dot(at_b, b_.A - a_.A) + dot(rate, b_.V - a_.V);
    }
    for (std::size_t i = 0; i < held.support.size(); ++i) {
        double entry = 0.0;  // what moves A and B alike moves their points only
        if (is_point || held.moves_a[i] != held.moves_b[i]) {
            const Spatial &column = tree.columns[held.support[i]];
            if (held.moves_b[i]) entry += dot(at_b, column);
            if (held.moves_a[i]) entry -= dot(at_a, column);
        }
        line[held.support[i]] = entry;
    }
}

}  // namespace pinloop

#include "held_rows.hpp"

#include <utility>

namespace pinloop {

namespace {

// Acceleration of a point of a body, which the body carries along.
Vec point_acceleration(const Spatial &V, const Spatial &A, const Vec &p) {
    return A.v + cross(A.w, p) + cross(V.w, V.v + cross(V.w, p));
}

}  // namespace

HeldRows::HeldRows(const Tables &tables, const std::vector<int> &rows)
    : J(rows.size() * tables.nv), gamma(rows.size()), tables_(tables) {
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
    for (std::size_t i = 0; i < rows_.size(); ++i) {
        const Row &row = tables_.rows[rows_[i].row];
        double *line = &J[i * tables_.nv];
        if (row.loop >= 0) {
            update_row(rows_[i], tree, line, gamma[i]);
        } else {
            update_coupling(row, q, v, line, gamma[i]);
        }
    }
}

// Of a sum of polynomials, sum p(q): J = p'(q), gamma = sum p''(q) v^2, by Horner's rule.
void HeldRows::update_coupling(const Row &row, const double *q, const double *v, double *line,
                               double &gamma) const {
    gamma = 0.0;
    for (const Term &term : row.terms) {
        double value = 0.0, slope = 0.0, bend = 0.0;
        for (std::size_t k = term.polynomial.size(); k-- > 0;) {
            bend = bend * q[term.q] + 2.0 * slope;
            slope = slope * q[term.q] + value;
            value = value * q[term.q] + term.polynomial[k];
        }
        line[term.v] = slope;
        gamma += bend * v[term.v] * v[term.v];
    }
}

// A row takes a component of the motion of B relative to A along an axis that B carries. Of twists
// it is that of the two frames as parts of two bodies,
//     J v = s (V_B - V_A),   gamma = s (A_B - A_A + V_B x V_A),
// the drift being the derivative in the axes of B. Of points it is that of B's origin relative to
// A's origin, wherever these are: what is zero then is the second derivative of their distance, so
// that errors of a step do not turn with the bodies.
void HeldRows::update_row(const Held &held, const Tree &tree, double *line, double &gamma) const {
    const Row &row = tables_.rows[held.row];
    const Loop &loop = tables_.loops[row.loop];
    const Placement b = tree.placement(loop.link_b) * loop.b;
    const Spatial V_a = tree.velocity(loop.link_a), V_b = tree.velocity(loop.link_b);
    const Spatial A_a = tree.drift(loop.link_a), A_b = tree.drift(loop.link_b);
    // As a covector at the world's origin: a force at a point has a moment there.
    const Vec force = b.R * row.along.v;
    const Spatial at_b{force, cross(b.p, force) + b.R * row.along.w};
    Spatial at_a = at_b;
    if (row.is_point) {
        const Vec p = (tree.placement(loop.link_a) * loop.a).p;
        at_a = {force, cross(p, force)};
        gamma = dot(force, point_acceleration(V_b, A_b, b.p) - point_acceleration(V_a, A_a, p));
    } else {
        gamma = dot(at_b, A_b - A_a + cross(V_b, V_a));
    }
    for (std::size_t i = 0; i < held.support.size(); ++i) {
        double entry = 0.0;  // what moves A and B alike moves their points only
        if (row.is_point || held.moves_a[i] != held.moves_b[i]) {
            const Spatial &column = tree.columns[held.support[i]];
            if (held.moves_b[i]) entry += dot(at_b, column);
            if (held.moves_a[i]) entry -= dot(at_a, column);
        }
        line[held.support[i]] = entry;
    }
}

}  // namespace pinloop

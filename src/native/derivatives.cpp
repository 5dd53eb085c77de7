#include "derivatives.hpp"

#include <algorithm>
#include <utility>

namespace pinloop {

namespace {

// Of some columns; what is missing by positions alone comes last.
template <class Columns>
[[gnu::always_inline]] inline void combine_columns(const Part *part, const Part *both,
                                                   const Part *end, std::size_t k, double *to,
                                                   std::size_t next) {
    Columns by_q, by_v;
    for (; part != both; ++part) {
        by_q.take(part->q, part->response + k), by_v.take(part->v, part->response + k);
    }
    for (; part != end; ++part) by_q.take(part->q, part->response + k);
    by_q.put(to + k), by_v.put(to + next + k);
}

// Of a sum of masses m at r: 2 m v, and for a unit vector w 2 m r x (w x v) with v = V.v + V.w x r.
Coriolis coriolis(const Inertia &Y, const Spatial &V) {
    const double half = 0.5 * (Y.xx + Y.yy + Y.zz), along = dot(Y.h, V.v);
    const Vec w = 2.0 * V.w, v = 2.0 * V.v;
    return {Y.m * v + cross(w, Y.h),
            {cross({half - Y.xx, -Y.xy, -Y.xz}, w) + Vec{2.0 * along, 0.0, 0.0} - Y.h.x * v,
             cross({-Y.xy, half - Y.yy, -Y.yz}, w) + Vec{0.0, 2.0 * along, 0.0} - Y.h.y * v,
             cross({-Y.xz, -Y.yz, half - Y.zz}, w) + Vec{0.0, 0.0, 2.0 * along} - Y.h.z * v}};
}

void put(const Spatial &x, double *to, std::size_t step) {
    for (double part : {x.v.x, x.v.y, x.v.z, x.w.x, x.w.y, x.w.z}) *to = part, to += step;
}

Coriolis &operator+=(Coriolis &to, const Coriolis &more) {
    to.p += more.p, to.N.x += more.N.x, to.N.y += more.N.y, to.N.z += more.N.z;
    return to;
}

}  // namespace

Derivatives::Derivatives(std::shared_ptr<const Tables> tables, const std::vector<int> &rows,
                         int held, std::vector<double> units, const std::vector<double> &armature)
    : dynamics_(std::move(tables)), tree_(dynamics_.tree_), numbers_(rows),
      others_(this->tables(), {rows.begin() + held, rows.end()}), units_(std::move(units)),
      n_(this->tables().nv), m_(rows.size()), held_(held) {
    const std::vector<double> none(held);
    dynamics_.hold({rows.begin(), rows.begin() + held}, none, none, armature);
    width_ = fours(n_ + held_ + locked()), columns_ = fours(n_ + held_);
    for (auto *list : {&chains_, &related_, &touching_}) list->resize(n_);
    tied_.resize(this->tables().loops.size());
    for (std::size_t k = 0; k < n_; ++k) {
        for (int j = static_cast<int>(k); j >= 0; j = this->tables().before[j]) {
            chains_[k].push_back(j);
            related_[k].push_back(j);
            related_[j].push_back(static_cast<int>(k));
        }
    }
    for (std::size_t i = 0; i < m_; ++i) tie(static_cast<int>(i));
    for (std::vector<int> &list : related_) {
        std::sort(list.begin(), list.end());
        list.erase(std::unique(list.begin(), list.end()), list.end());
    }
    gained_.resize(this->tables().links.size()), behind_.resize(gained_.size());
    turn_.resize(n_), bend_.resize(n_), rate_.resize(n_);
    load_q_.resize(n_ * n_), load_v_.resize(n_ * n_);
    rows_.resize(3 * n_ * m_), motions_.resize(18 * n_), sizes_.resize(m_);
    covectors_.resize(6 * m_), roots_.resize(n_ * columns_), moved_.resize(3 * n_);
    shared_.resize(3 * n_ * held_), spread_.resize(held_ * m_);
    parts_.resize(n_ + m_), gram_.resize(held_ * held_), rests_.resize((m_ - held_) * n_);
    basis_.resize(held_ * columns_), dependence_.resize((m_ - held_) * held_);
    for (std::size_t r = 0; r < held_; ++r) spread_[r * (m_ + 1)] = -1.0;
}

// Which velocities a row knows of, and what its reaction turns.
void Derivatives::tie(int row) {
    const Row &given = tables().rows[numbers_[row]];
    for (const Term &term : given.terms) touching_[term.v].push_back(row);
    if (given.loop < 0) return;
    const Loop &loop = tables().loops[given.loop];
    Tied &tied = tied_[given.loop];
    const int last = tables().last_velocity(loop.a.link);
    std::vector<double> sides(n_);
    for (int k = last; k >= 0; k = tables().before[k]) ++sides[k];
    for (int k = tables().last_velocity(loop.b.link); k >= 0; k = tables().before[k]) {
        --sides[k];
        for (int j = last; j >= 0; j = tables().before[j]) related_[k].push_back(j);
    }
    for (std::size_t k = 0; k < n_; ++k) {
        if (sides[k] == 0.0) continue;
        touching_[k].push_back(row);
        if (tied.rows.empty()) tied.sides.push_back({static_cast<int>(k), sides[k]});
    }
    tied.loop = given.loop, tied.rows.push_back(row);
}

bool Derivatives::at(const double *q, const double *v, const double *tau, double *room) {
    const auto next = [&room](std::size_t count) { return std::exchange(room, room + count); };
    const std::size_t all = m_ + locked(), lines = 3 * n_ + held_;
    const Derived to{next(lines * width_), next(n_), next(all), next(all), next(n_ * m_), room};
    responses_ = to.slopes + 2 * n_ * width_;
    for (int h : dynamics_.given_) to.a[h] = 0.0;
    dynamics_.reach(q, v);
    others_.update(tree_, q, v);
    if (dynamics_.solve(tau, to.a) == Verdict::bad || !invert() || !spread(to.a)) return false;
    write_reactions(tau, to);
    accelerate(to.a);
    for (Behind &behind : behind_) behind = {};
    for (Tied &tied : tied_) weigh(tied, to.reactions);
    differentiate_loads();
    for (const Tied &tied : tied_) differentiate_loop(tied);
    differentiate_couplings(q, v, to);
    for (std::size_t i = 0; i < m_; ++i) {
        std::copy(line(i), line(i) + n_, to.J + i * n_);
        std::copy(&rows_[(3 * i + 2) * n_], &rows_[(3 * i + 3) * n_], to.rates + i * n_);
    }
    combine(to.slopes);
    return true;
}

// Of links and of the twists of joints: with V_0, A_0 where a joint is mounted and V_1 behind it,
//     turn = V_0 x S,   bend = A_0 x S + V_0 x turn,   rate = turn + V_1 x S.
// Coordinate k moves all that it carries about S, whose velocities and accelerations change with it
// and by `turn` and `bend - V x turn`; its velocity changes them by S and `rate - V x S`.
PINLOOP_WIDE void Derivatives::accelerate(const double *a) {
    for (std::size_t i = 0, k = 0; i < gained_.size(); ++i) {
        const int parent = tables().links[i].parent;
        const Spatial V = tree_.velocity(parent), A = tree_.drift(parent) + gained(parent);
        gained_[i] = gained(parent);
        for (; k < n_ && tables().link_of[k] == static_cast<int>(i); ++k) {
            const Spatial &S = tree_.columns[k];
            gained_[i] += a[k] * S;
            turn_[k] = cross(V, S);
            bend_[k] = cross(A, S) + cross(V, turn_[k]);
            rate_[k] = turn_[k] + cross(tree_.velocity(static_cast<int>(i)), S);
        }
    }
}

// The wrench of a loop, at the world's origin.
void Derivatives::weigh(Tied &tied, const double *lam) {
    const Loop &loop = tables().loops[tied.loop];
    const Placement b = tree_.placement(loop.b);
    tied.wrench = {};
    for (int i : tied.rows) {
        const Spatial covector = carried_wrench(b, tables().rows[numbers_[i]].along);
        tied.wrench += lam[i] * covector;
        put(covector, &covectors_[6 * i], 1);
    }
    if (loop.a.link >= 0) behind_[loop.a.link].still += tied.wrench;
    if (loop.b.link >= 0) behind_[loop.b.link].wrench += -1.0 * tied.wrench;
}

// Inverse dynamics with the reactions as wrenches. Turning about S does nothing to a force behind
// it; what is left is `Y bend + C turn` for positions and `Y rate + C S` for velocities, where
// C x = V x* Y x - Y (V x x) + x x* Y V: the force of Coriolis, and only turning has one.
PINLOOP_WIDE void Derivatives::differentiate_loads() {
    std::fill(load_q_.begin(), load_q_.end(), 0.0);
    int k = static_cast<int>(n_) - 1;
    for (int i = static_cast<int>(gained_.size()) - 1; i >= 0; --i) {
        const int parent = tables().links[i].parent;
        const Inertia &Y = tree_.composite(i);
        Coriolis C = coriolis(Y, tree_.velocity(i));
        C += behind_[i].coriolis;
        const Spatial F = tree_.wrench(i) + Y * gained_[i] + behind_[i].wrench;
        if (parent >= 0) {
            behind_[parent].coriolis += behind_[i].coriolis;
            behind_[parent].coriolis += coriolis(Y, tree_.velocity(i) - tree_.velocity(parent));
            behind_[parent].wrench += behind_[i].wrench + Y * (gained_[i] - gained(parent));
            behind_[parent].still += behind_[i].still;
        }
        const auto force = [&C](const Vec &w) { return Spatial{cross(w, C.p), C.N * w}; };
        for (; k >= 0 && tables().link_of[k] == i; --k) {
            const Spatial &S = tree_.columns[k], momentum = Y * S;
            const Vec back =
                cross(C.p, S.v) + Vec{dot(C.N.x, S.w), dot(C.N.y, S.w), dot(C.N.z, S.w)};
            const Spatial by_q = force(turn_[k].w) + Y * bend_[k], by_v = force(S.w) + Y * rate_[k];
            const Spatial outside = by_q + cross_dual(S, F);
            const Spatial still = cross_dual(S, behind_[i].still);
            for (int j : chains_[k]) {
                load_q_[j * n_ + k] = dot(momentum, bend_[j]) + dot(back, turn_[j].w) +
                                      dot(tree_.columns[j], still);
                load_v_[j * n_ + k] = dot(momentum, rate_[j]) + dot(back, tree_.columns[j].w);
                if (j == k) continue;
                const bool inside = tables().link_of[j] == i;  // another twist of the joint
                load_q_[k * n_ + j] = dot(tree_.columns[j], inside ? by_q - still : outside);
                load_v_[k * n_ + j] = dot(tree_.columns[j], by_v);
            }
        }
    }
}

// Rows of the motion of B relative to A; they turn with B, and so do their reactions on A.
PINLOOP_WIDE void Derivatives::differentiate_loop(const Tied &tied) {
    const Loop &loop = tables().loops[tied.loop];
    const Spatial V_a = tree_.velocity(loop.a.link), V_b = tree_.velocity(loop.b.link);
    const Spatial A_a = tree_.drift(loop.a.link) + gained(loop.a.link);
    for (int k = tables().last_velocity(loop.b.link); k >= 0; k = tables().before[k]) {
        const Spatial turned = cross_dual(tree_.columns[k], tied.wrench);
        for (int j = tables().last_velocity(loop.a.link); j >= 0; j = tables().before[j]) {
            load_q_[k * n_ + j] += dot(tree_.columns[j], turned);
        }
    }
    const std::size_t many = tied.sides.size();
    for (std::size_t s = 0; s < many; ++s) {
        const auto [k, side] = tied.sides[s];
        const Spatial &S = tree_.columns[k];
        const Spatial rate = turn_[k] - cross(V_a, S);
        const Spatial by_q = bend_[k] + cross(S, A_a) - cross(V_a, turn_[k]) - cross(V_b, rate);
        const Spatial by_v = rate_[k] - cross(V_a + V_b, S);
        put(side * by_q, &motions_[s], 3 * many);
        put(side * by_v, &motions_[s + many], 3 * many);
        put(side * rate, &motions_[s + 2 * many], 3 * many);
    }
    for (int i : tied.rows) {
        std::fill(moved_.begin(), moved_.end(), 0.0);
        subtract(moved_.data(), 3 * many, &covectors_[6 * i], 1, motions_.data(), 3 * many, 6);
        for (std::size_t s = 0; s < many; ++s) {
            double *to = &rows_[3 * i * n_ + tied.sides[s].first];
            to[0] = moved_[s], to[n_] = moved_[s + many], to[2 * n_] = moved_[s + 2 * many];
        }
    }
}

// Of a coupling's polynomials: `p' v` and `p' a + p'' v^2`.
void Derivatives::differentiate_couplings(const double *q, const double *v, const Derived &to) {
    for (std::size_t i = 0; i < m_; ++i) {
        for (const Term &term : tables().rows[numbers_[i]].terms) {
            double value = 0.0, slope = 0.0, bend = 0.0, third = 0.0;
            for (std::size_t k = term.polynomial.size(); k-- > 0;) {
                third = third * q[term.q] + 3.0 * bend, bend = bend * q[term.q] + 2.0 * slope;
                slope = slope * q[term.q] + value, value = value * q[term.q] + term.polynomial[k];
            }
            double *row = &rows_[3 * i * n_ + term.v];
            row[2 * n_] = bend * v[term.v], row[n_] = 2.0 * row[2 * n_];
            row[0] = bend * to.a[term.v] + third * v[term.v] * v[term.v];
            load_q_[term.v * (n_ + 1)] -= bend * to.reactions[i];
        }
    }
}

// What loads and rows miss, times the responses to it.
PINLOOP_WIDE void Derivatives::combine(double *slopes) {
    const bool spreads = m_ > held_;
    const double *lines = spreads ? shared_.data() : rows_.data();
    std::fill(shared_.begin(), shared_.end(), 0.0);
    for (std::size_t r = 0; spreads && r < held_; ++r) {
        subtract(&shared_[3 * r * n_], 2 * n_, &spread_[r * m_], 1, rows_.data(), 3 * n_, m_);
    }
    for (std::size_t j = 0; j < n_; ++j) {
        Part *both = parts_.data();
        const double *loads_q = &load_q_[j * n_], *loads_v = &load_v_[j * n_];
        for (int i : related_[j]) {
            if (loads_v[i] != 0.0) *both++ = {&responses_[i * width_], loads_q[i], loads_v[i]};
        }
        for (std::size_t t = 0; t < (spreads ? held_ : touching_[j].size()); ++t) {
            const std::size_t r = spreads ? t : touching_[j][t];
            const double *line = lines + 3 * r * n_ + j;
            *both++ = {&responses_[(n_ + r) * width_], line[0], line[n_]};
        }
        Part *end = both;
        for (int i : related_[j]) {
            if (loads_v[i] == 0.0) *end++ = {&responses_[i * width_], loads_q[i], 0.0};
        }
        const Part *first = parts_.data();
        double *to = slopes + j * width_;
        std::size_t k = 0, next = n_ * width_;
        for (; k + 12 <= width_; k += 12) combine_columns<Twelve>(first, both, end, k, to, next);
        for (; k < width_; k += 4) combine_columns<Four>(first, both, end, k, to, next);
    }
}

}  // namespace pinloop

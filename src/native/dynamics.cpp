#include "dynamics.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

namespace pinloop {

Dynamics::Dynamics(std::shared_ptr<const Tables> tables)
    : tables_(std::move(tables)), tree_(*tables_), all_(tables_->nv), torque_(tables_->nv),
      none_(tables_->nv), L_(tree_.mass.size()), inverse_(tables_->nv), force_(tables_->nv) {
    std::iota(all_.rbegin(), all_.rend(), 0);
    hold({}, {}, {}, std::vector<double>(tables_->nv));
}

void Dynamics::hold(const std::vector<int> &rows, std::vector<double> stale,
                    std::vector<double> bad, std::vector<double> armature, double part, int spare) {
    rows_ = std::make_unique<HeldRows>(*tables_, rows);
    stale_ = std::move(stale), bad_ = std::move(bad), armature_ = std::move(armature), part_ = part;
    spare_ = spare, given_.clear();
    for (int k = 0; k < tables_->nv; ++k) {
        if (armature_[k] < immovable) continue;
        armature_[k] = immovable;
        given_.push_back(k);
    }
    Y_.assign(rows.size() * tables_->nv, 0.0);
    G_.assign(rows.size() * rows.size(), 0.0);
    for (auto *part : {&lam_, &more_, &rates_}) part->assign(rows.size(), 0.0);
}

Verdict Dynamics::acceleration(const double *q, const double *v, const double *tau, double *a) {
    for (int k : given_) a[k] = 0.0;
    reach(q, v);
    if (!loads_) return solve(tau, a);
    std::copy(tau, tau + tables_->nv, torque_.begin());
    loads_->add(*tables_, tree_, q, v, torque_.data());
    return solve(torque_.data(), a);
}

void Dynamics::reach(const double *q, const double *v) {
    tree_.place(q);
    tree_.move(v);
    tree_.weigh();
    rows_->update(tree_, q, v);
}

// With M = L' L and x = L a, Y = J L^-1: the rows hold in the metric of M,
//     (Y Y') lam = -gamma - Y L'^-1 f,   a = L^-1 (L'^-1 f + Y' lam).
// An acceleration that is given goes to the right-hand sides, and is left out of all the rest.
Verdict Dynamics::solve(const double *tau, double *a) {
    const int n = tables_->nv, m = rows_->size();
    if (!factor_mass()) return Verdict::bad;
    for (int k = 0; k < n; ++k) force_[k] = tau[k] - tree_.forces[k];
    for (int h : given_) {
        if (a[h] == 0.0) continue;
        for (int k = 0; k < n; ++k) force_[k] -= tree_.inertia(k, h) * a[h];
    }
    solve_upper(force_.data(), all_);
    factor_rows();
    for (int i = 0; i < m; ++i) {
        const double *row = &rows_->J[static_cast<std::size_t>(i) * n];
        rates_[i] = -rows_->gamma[i];
        for (int h : given_) rates_[i] -= row[h] * a[h];
        lam_[i] = 0.0;
    }
    const Verdict verdict = factor_gram();
    if (verdict == Verdict::bad) return verdict;
    push_to_rates();
    if (refines_) push_to_rates();  // of what rounding has left of the first time
    solve_lower(force_.data());
    for (int h : given_) force_[h] = a[h];
    std::copy(force_.begin(), force_.end(), a);
    return verdict;
}

double Dynamics::missing(int k, const double *a) const {
    double torque = tree_.forces[k];
    for (int j = 0; j < tables_->nv; ++j) torque += tree_.inertia(k, j) * a[j];
    for (int i = 0; i < rows_->size(); ++i) {
        torque -= rows_->J[static_cast<std::size_t>(i) * tables_->nv + k] * lam_[i];
    }
    return torque;
}

// M = L' L over the tree (Featherstone, table 8.1): without fill-in, thus along branches only. What
// is taken off a diagonal entry before its turn does not know its rotor yet, which is added then.
bool Dynamics::factor_mass() {
    const int n = tables_->nv;
    const std::vector<int> &before = tables_->before;
    double *L = L_.data();
    std::copy(tree_.mass.begin(), tree_.mass.end(), L);
    for (int k = n - 1; k >= 0; --k) {
        double *row = L + static_cast<std::size_t>(k) * n;
        row[k] += armature_[k];
        if (!(row[k] > 0.0)) return false;  // NaN, too
        if (armature_[k] == immovable) {  // the limit: zeros, which nothing has to be done for
            inverse_[k] = 0.0;
            for (int i = before[k]; i >= 0; i = before[i]) row[i] = 0.0;
            continue;
        }
        row[k] = std::sqrt(row[k]);
        inverse_[k] = 1.0 / row[k];
        for (int i = before[k]; i >= 0; i = before[i]) row[i] *= inverse_[k];
        for (int i = before[k]; i >= 0; i = before[i]) {
            double *other = L + static_cast<std::size_t>(i) * n;
            for (int j = i; j >= 0; j = before[j]) other[j] -= row[i] * row[j];
        }
    }
    return true;
}

// Y = J L^-1.
void Dynamics::factor_rows() {
    const std::size_t n = tables_->nv;
    for (int i = 0; i < rows_->size(); ++i) {
        const std::vector<int> &support = rows_->support(i);
        for (int k : support) Y_[i * n + k] = rows_->J[i * n + k];
        solve_upper(&Y_[i * n], support);
    }
}

// L'^-1 x for an x that is zero outside a support, to which all belongs that is before it.
void Dynamics::solve_upper(double *x, const std::vector<int> &support) const {
    const std::size_t n = tables_->nv;
    for (int k : support) {
        x[k] *= inverse_[k];
        if (x[k] == 0.0) continue;
        const double *row = &L_[k * n];
        for (int j = tables_->before[k]; j >= 0; j = tables_->before[j]) x[j] -= row[j] * x[k];
    }
}

// L^-1 x.
void Dynamics::solve_lower(double *x) const {
    const std::size_t n = tables_->nv;
    for (std::size_t k = 0; k < n; ++k) {
        const double *row = &L_[k * n];
        double value = x[k];
        for (int j = tables_->before[k]; j >= 0; j = tables_->before[j]) value -= row[j] * x[j];
        x[k] = value * inverse_[k];
    }
}

// Multipliers, beside those that there are, by which the rows get the rates that they lack still.
void Dynamics::push_to_rates() {
    const std::size_t n = tables_->nv;
    const int m = rows_->size();
    for (int i = 0; i < m; ++i) {
        const double *y = &Y_[i * n], *row = &G_[static_cast<std::size_t>(i) * m];
        double value = rates_[i];
        for (int k : rows_->support(i)) value -= y[k] * force_[k];
        for (int j = 0; j < i; ++j) value -= row[j] * more_[j];
        more_[i] = value * row[i];
    }
    for (int i = m - 1; i >= 0; --i) {
        double value = more_[i];
        for (int k = i + 1; k < m; ++k) value -= G_[static_cast<std::size_t>(k) * m + i] * more_[k];
        more_[i] = value * G_[static_cast<std::size_t>(i) * m + i];
        lam_[i] += more_[i];
    }
    for (int i = 0; i < m; ++i) {
        for (int k : rows_->support(i)) force_[k] += Y_[i * n + k] * more_[i];
    }
}

// Cholesky factor of Y Y', whose pivots are what the rows before do not contain of each row. Where
// that is little, rounding is large: the condition of Y Y' is that of Y squared.
Verdict Dynamics::factor_gram() {
    const std::size_t n = tables_->nv, m = rows_->size();
    const auto product = [&](std::size_t i, std::size_t j) {
        double sum = 0.0;
        for (int k : rows_->support(i)) sum += Y_[i * n + k] * Y_[j * n + k];
        return sum;
    };
    Verdict verdict = Verdict::good;
    double least = 0.0;
    int spare = spare_;
    refines_ = false;
    for (std::size_t i = 0; i < m && part_ > 0.0; ++i) {
        least = std::max(least, part_ * product(i, i));
    }
    for (std::size_t i = 0; i < m; ++i) {
        double *row = &G_[i * m];
        for (std::size_t j = 0; j <= i; ++j) {
            const double *other = &G_[j * m], whole = product(i, j);
            double entry = whole;
            for (std::size_t k = 0; k < j; ++k) entry -= row[k] * other[k];
            refines_ = refines_ || (j == i && entry < poor * whole);
            row[j] = j < i ? entry * other[j] : entry;
        }
        const bool others = spare > 0 && std::abs(row[i]) < rounding * least;  // hold it already
        if (!others && !(row[i] > std::max(bad_[i], least))) return Verdict::bad;  // NaN, too
        if (row[i] < stale_[i]) verdict = Verdict::stale;
        spare -= others, row[i] = others ? 0.0 : 1.0 / std::sqrt(row[i]);  // the inverse is needed
    }
    return spare > 0 ? Verdict::bad : verdict;
}

}  // namespace pinloop

#include "projector.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

namespace pinloop {

namespace {

constexpr int iterations = 25;

double norm(const std::vector<double> &x) {
    return std::sqrt(std::inner_product(x.begin(), x.end(), x.begin(), 0.0));
}

// Rows of a matrix in the order in which most is left of them without those before, of equal ones
// the first, and the square of what is left: pivots of the rows' Gram matrix.
void pivot(std::size_t rows, std::size_t n, std::vector<double> &x, std::vector<int> &order,
           std::vector<double> &left) {
    const auto product = [&](std::size_t i, std::size_t j) {
        return std::inner_product(&x[order[i] * n], &x[order[i] * n] + n, &x[order[j] * n], 0.0);
    };
    std::iota(order.begin(), order.end(), 0);
    for (std::size_t i = 0; i < rows; ++i) left[i] = product(i, i);
    for (std::size_t i = 0; i < rows; ++i) {
        const std::size_t top = std::max_element(left.begin() + i, left.begin() + rows) - left.begin();
        std::swap(order[i], order[top]), std::swap(left[i], left[top]);
        for (std::size_t j = i + 1; left[i] > 0.0 && j < rows; ++j) {
            const double part = product(i, j) / left[i];
            for (std::size_t k = 0; k < n; ++k) x[order[j] * n + k] -= part * x[order[i] * n + k];
            left[j] = std::max(0.0, left[j] - part * part * left[i]);
        }
    }
}

// Lower Cholesky factor of a matrix given by its entries; false if it is not positive.
template <class Entry> bool cholesky(std::size_t n, const Entry &entry, std::vector<double> &L) {
    for (std::size_t i = 0; i < n; ++i) {
        for (std::size_t j = 0; j <= i; ++j) {
            const double sum =
                entry(i, j) - std::inner_product(&L[i * n], &L[i * n] + j, &L[j * n], 0.0);
            L[i * n + j] = i == j ? std::sqrt(sum) : sum / L[j * n + j];
        }
        if (!(L[i * n + i] > 0.0)) return false;
    }
    return true;
}

// L^-1 of a vector given by its entries.
template <class Entry>
void solve(std::size_t n, const std::vector<double> &L, const Entry &entry, double *x) {
    for (std::size_t i = 0; i < n; ++i) {
        x[i] = (entry(i) - std::inner_product(x, x + i, &L[i * n], 0.0)) / L[i * n + i];
    }
}

}  // namespace

Projector::Projector(std::shared_ptr<const Tables> tables, const std::vector<ClosedPair> &pairs,
                     const Settings &settings, std::vector<double> unit,
                     const std::vector<char> &locked, std::vector<double> rotors)
    : owned_(std::move(tables)), tables_(*owned_), tree_(tables_), closure_(tables_, pairs, unit),
      unit_(std::move(unit)), rotors_(std::move(rotors)), rank_(static_cast<int>(settings.at("rank"))),
      tol_(settings.at("tol")), near_(settings.at("NEAR")), worse_(settings.at("WORSE")),
      worst_(settings.at("WORST")), curved_(settings.at("CURVED")),
      contradiction_(settings.at("CONTRADICTION")), noise_(settings.at("GRAM_NOISE")),
      rounding_(settings.at("SPEED_ROUNDING")), most_(settings.at("MOST_TAKEN")),
      coarse_(settings.at("COARSE_SPEED")) {
    for (int k = 0; k < tables_.nv; ++k) {
        if (!locked[k]) free_.push_back(k);
    }
    const std::size_t m = closure_.size(), n = tables_.nv;
    lines_.resize(m * n), pivots_.resize(m), lu_.resize(m * m), inverse_.resize(m * m);
    right_.resize(m), shift_.resize(n), trial_.resize(tables_.nq), work_.resize(std::max(m, n));
    still_.resize(n), order_.resize(m);
}

void Projector::begin(Block block, int independent, double known) {
    block_ = std::move(block), independent_ = independent, best = known;
}

void Projector::prepare(const double *q) {
    if (!block_.columns.empty() || closure_.size() == 0) return;
    place(q);
    choose();
}

void Projector::place(const double *q) {
    tree_.place(q);
    closure_.update(tree_, q);
}

bool Projector::apply(const Charts &charts, double *q, double *v) {
    moved = false;
    if (closure_.size() == 0) return true;
    place(q);
    look();
    if (!(regularity >= near_)) return false;
    return close(charts, q) && allow(v);
}

// How independent the rows are, by the pivots of J J', the largest first (LAPACK's dpstrf).
void Projector::look() {
    if (rank_ < 0) return;
    const std::size_t m = closure_.size(), n = tables_.nv;
    for (std::size_t i = 0, at = 0; i < m; ++i) {
        for (int k : free_) lines_[at++] = closure_.J[i * n + k];
    }
    pivot(m, free_.size(), lines_, order_, pivots_);
    const double stop = m * std::numeric_limits<double>::epsilon() * 0.5 * pivots_[0];
    int count = 0;
    while (count < static_cast<int>(m) && pivots_[count] > stop) ++count;
    int rank = rank_;
    if (free_.size() != n) {
        int sure = 0;
        for (int i = 0; i < count; ++i) sure += pivots_[i] > noise_ * pivots_[0];
        rank = std::min(rank, sure);
    }
    if (rank > independent_) {
        regularity = 0.0;  // of which it is not known yet what regular is
        return;
    }
    rank = independent_;
    if (rank == 0) return;
    const double least = rank <= count ? std::sqrt(pivots_[rank - 1] / pivots_[0]) : 0.0;
    best = std::max(best, least);
    regularity = best > 0.0 ? least / best : 1.0;
}

// Newton's method along the coordinates of the block.
bool Projector::close(const Charts &charts, double *q) {
    const double left = 1e-2 * tol_;
    double open = norm(closure_.residual);
    if (open <= tol_) return true;
    moved = true;
    for (int turn = 0; turn < iterations; ++turn) {
        for (int i = 0; i < closure_.size(); ++i) right_[i] = -closure_.residual[i];
        if (!correct(right_, open)) return false;
        charts.integrate(q, shift_.data(), trial_.data());
        place(trial_.data());
        const double now = norm(closure_.residual);
        if (!(now < open)) {
            place(q);
            break;
        }
        std::copy(trial_.begin(), trial_.end(), q);
        open = now;
        if (open < left || (open < 0.3 * tol_ && block_.holds_all)) break;
    }
    return open <= 10.0 * std::max(tol_, contradiction_);
}

// A velocity that the rows allow, at the configuration that has been placed last.
bool Projector::allow(double *v) {
    const std::size_t m = closure_.size(), n = tables_.nv;
    const double *J = closure_.J.data();
    double largest = 1.0;
    for (std::size_t i = 0; i < m; ++i) {
        double rest = 0.0;
        for (std::size_t k = 0; k < n; ++k) rest -= J[i * n + k] * (v[k] / unit_[k]);
        right_[i] = rest;
    }
    if (norm(right_) <= tol_) return true;
    moved = true;
    if (!correct(right_, 0.0)) return false;
    for (std::size_t k = 0; k < n; ++k) v[k] += shift_[k], largest = std::max(largest, std::abs(v[k]));
    for (std::size_t i = 0; i < m; ++i) {
        for (std::size_t k = 0; k < n; ++k) right_[i] -= J[i * n + k] * (shift_[k] / unit_[k]);
    }
    return norm(right_) <= contradiction_ * largest;
}

// Shifts of the block's coordinates that meet the rows; false if others may be better now.
bool Projector::correct(const std::vector<double> &right, double error) {
    const bool is_chosen = !block_.columns.empty();
    if (!is_chosen || !(factor() >= std::max(worse_ * block_.share, worst_))) {
        if (!choose()) return false;
    }
    const std::size_t size = block_.columns.size(), m = closure_.size(), n = tables_.nv;
    std::fill(shift_.begin(), shift_.end(), 0.0);
    double missed = 0.0;
    for (std::size_t i = 0; i < size; ++i) {
        double x = 0.0;
        for (std::size_t j = 0; j < size; ++j) x += inverse_[i * size + j] * right[block_.rows[j]];
        shift_[block_.columns[i]] = x;
    }
    if (!block_.holds_all) {
        for (std::size_t i = 0; i < m; ++i) {
            double rest = -right[i];
            for (int k : block_.columns) rest += closure_.J[i * n + k] * shift_[k];
            missed += rest * rest;
        }
        if (!(std::sqrt(missed) <= tol_ + curved_ * error)) return false;
    }
    for (int k : block_.columns) shift_[k] *= unit_[k];
    return true;
}

// Dependent coordinates, as many rows that contain the others, and the inverse of their block:
// those with the largest relative projections one by one, see `dependent_coordinates` in Python.
// With M = L L' these are rows of L Q over the roots of the inertias, Q being orthonormal columns
// that span L^-1 J'.
bool Projector::choose() {
    const std::size_t m = closure_.size(), n = free_.size(), nv = tables_.nv, rank = independent_;
    if (rank == 0 || independent_ != rank_) return false;
    tree_.move(still_.data());
    tree_.weigh();
    std::vector<double> L(n * n), Y(m * n), R(n * rank), C(m * rank), left(std::max(m, n));
    std::vector<int> order(std::max(m, n)), rows(m);
    const auto inertia = [&](std::size_t i, std::size_t j) {
        const double rotor = i == j ? rotors_[free_[i]] : 0.0;
        return (tree_.inertia(free_[i], free_[j]) + rotor) * unit_[free_[i]] * unit_[free_[j]];
    };
    const auto row = [&](std::size_t i, std::size_t k) { return closure_.J[i * nv + free_[k]]; };
    if (!cholesky(n, inertia, L)) return false;
    for (std::size_t i = 0; i < m; ++i) {
        solve(n, L, [&](std::size_t k) { return row(i, k); }, &Y[i * n]);
    }
    pivot(m, n, Y, rows, left);
    if (!(left[rank - 1] > 0.0)) return false;
    for (std::size_t k = 0; k < n; ++k) {
        for (std::size_t i = 0; i < rank; ++i) {
            const double *y = &Y[rows[i] * n], *l = &L[k * n];
            const double size = std::sqrt(left[i] * inertia(k, k));
            R[k * rank + i] = std::inner_product(l, l + k + 1, y, 0.0) / size;
        }
    }
    pivot(n, rank, R, order, left);
    block_ = {};
    for (std::size_t i = 0; i < rank; ++i) block_.columns.push_back(free_[order[i]]);
    for (std::size_t i = 0; i < m * rank; ++i) {
        C[i] = closure_.J[i / rank * nv + block_.columns[i % rank]];
    }
    std::iota(rows.begin(), rows.end(), 0);
    if (rank < m) pivot(m, rank, C, rows, left);
    block_.rows.assign(rows.begin(), rows.begin() + rank);
    block_.holds_all = rank == m;
    block_.share = factor();
    if (block_.share >= worst_) return true;
    block_ = {};
    return false;
}

// Inverse of the block by Gauss and Jordan with pivots by rows; one over the norms of its rows and
// of its inverse, which tells how good a choice it is.
double Projector::factor() {
    const std::size_t size = block_.columns.size(), n = tables_.nv;
    std::fill(work_.begin(), work_.end(), 0.0);
    for (std::size_t i = 0; i < size; ++i) {
        const double *line = &closure_.J[block_.rows[i] * n];
        for (std::size_t k = 0; k < n; ++k) work_[k] += std::abs(line[k]);
        for (std::size_t j = 0; j < size; ++j) lu_[i * size + j] = line[block_.columns[j]];
        std::fill_n(&inverse_[i * size], size, 0.0);
        inverse_[i * size + i] = 1.0;
    }
    const double rows = *std::max_element(work_.begin(), work_.begin() + n);
    for (std::size_t k = 0; k < size; ++k) {
        std::size_t top = k;
        for (std::size_t i = k + 1; i < size; ++i) {
            if (std::abs(lu_[i * size + k]) > std::abs(lu_[top * size + k])) top = i;
        }
        if (!(std::abs(lu_[top * size + k]) > 0.0)) return 0.0;
        if (top != k) {
            std::swap_ranges(&lu_[k * size], &lu_[k * size] + size, &lu_[top * size]);
            std::swap_ranges(&inverse_[k * size], &inverse_[k * size] + size, &inverse_[top * size]);
        }
        const double one = 1.0 / lu_[k * size + k];
        for (std::size_t j = k; j < size; ++j) lu_[k * size + j] *= one;
        for (std::size_t j = 0; j < size; ++j) inverse_[k * size + j] *= one;
        for (std::size_t i = 0; i < size; ++i) {
            const double part = lu_[i * size + k];
            if (i == k || part == 0.0) continue;
            for (std::size_t j = k; j < size; ++j) lu_[i * size + j] -= part * lu_[k * size + j];
            for (std::size_t j = 0; j < size; ++j) {
                inverse_[i * size + j] -= part * inverse_[k * size + j];
            }
        }
    }
    double largest = 0.0;
    for (std::size_t j = 0; j < size; ++j) {
        double sum = 0.0;
        for (std::size_t i = 0; i < size; ++i) sum += std::abs(inverse_[i * size + j]);
        largest = std::max(largest, sum);
    }
    return 1.0 / (rows * largest);
}

// See `speed_loss` in Python.
bool Projector::is_small(const double *q, const double *start, const double *before,
                         const double *after, const double *tolerance) {
    tree_.place(q);
    tree_.move(still_.data());
    tree_.weigh();
    const std::size_t n = tables_.nv;
    double limit = 0.0;
    for (std::size_t k = 0; k < n; ++k) {
        const double error = tol_ * unit_[k] + (tolerance == nullptr ? 0.0 : tolerance[k]);
        limit += (tree_.mass[k * (n + 1)] + rotors_[k]) * error * error;
    }
    const double taken = kinetic(before, after), speed = kinetic(still_.data(), before);
    double allowed = std::max(most_ * std::sqrt(limit), rounding_ * speed);
    if (tolerance == nullptr) allowed = std::max({allowed, kinetic(start, before), coarse_ * speed});
    return taken <= allowed;
}

// Size of the difference of two velocities: the root of v' M v.
double Projector::kinetic(const double *from, const double *to) {
    double sum = 0.0;
    const std::size_t n = tables_.nv;
    for (std::size_t k = 0; k < n; ++k) shift_[k] = to[k] - from[k];
    for (std::size_t k = 0; k < n; ++k) {
        const double *row = &tree_.mass[k * n];
        double momentum = (row[k] + rotors_[k]) * shift_[k];
        for (int j = tables_.before[k]; j >= 0; j = tables_.before[j]) {
            momentum += 2.0 * row[j] * shift_[j];
        }
        sum += momentum * shift_[k];
    }
    return std::sqrt(std::max(sum, 0.0));
}

}  // namespace pinloop

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
    double sum = 0.0;
    for (double one : x) sum += one * one;
    return std::sqrt(sum);
}

}  // namespace

Projector::Projector(const Tables &tables, Closure closure, const Settings &settings,
                     std::vector<double> unit, const std::vector<char> &locked,
                     std::vector<double> rotors)
    : tables_(tables), tree_(tables), closure_(std::move(closure)), unit_(std::move(unit)),
      rotors_(std::move(rotors)), rank_(static_cast<int>(settings.at("rank"))),
      tol_(settings.at("tol")), near_(settings.at("NEAR")), worse_(settings.at("WORSE")),
      worst_(settings.at("WORST")), curved_(settings.at("CURVED")),
      contradiction_(settings.at("CONTRADICTION")), noise_(settings.at("GRAM_NOISE")),
      rounding_(settings.at("SPEED_ROUNDING")), most_(settings.at("MOST_TAKEN")),
      coarse_(settings.at("COARSE_SPEED")) {
    for (int k = 0; k < tables.nv; ++k) {
        if (!locked[k]) free_.push_back(k);
    }
    const std::size_t m = closure_.size(), n = tables.nv;
    gram_.resize(m * m), pivots_.resize(m), lu_.resize(m * m), inverse_.resize(m * m);
    right_.resize(m), shift_.resize(n), trial_.resize(tables.nq), work_.resize(std::max(m, n));
    still_.resize(n), order_.resize(m);
}

void Projector::begin(Block block, int independent, double known) {
    block_ = std::move(block), independent_ = independent, best = known;
}

void Projector::place(const double *q) {
    tree_.place(q);
    closure_.update(tree_);
}

double Projector::error() const { return norm(closure_.residual); }

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
    const double *J = closure_.J.data();
    double largest = 0.0;
    for (std::size_t i = 0; i < m; ++i) {
        for (std::size_t j = 0; j <= i; ++j) {
            double sum = 0.0;
            for (int k : free_) sum += J[i * n + k] * J[j * n + k];
            gram_[i * m + j] = gram_[j * m + i] = sum;
        }
        largest = std::max(largest, gram_[i * m + i]);
    }
    const double stop = m * std::numeric_limits<double>::epsilon() * 0.5 * largest;
    std::iota(order_.begin(), order_.end(), 0);
    int count = 0;
    for (; count < static_cast<int>(m); ++count) {
        int top = count;
        for (int i = count + 1; i < static_cast<int>(m); ++i) {
            if (gram_[order_[i] * (m + 1)] > gram_[order_[top] * (m + 1)]) top = i;
        }
        std::swap(order_[count], order_[top]);
        const std::size_t at = order_[count];
        const double pivot = gram_[at * (m + 1)];
        if (!(pivot > stop)) break;
        pivots_[count] = std::sqrt(pivot);
        for (std::size_t i = count + 1; i < m; ++i) {
            const std::size_t row = order_[i];
            const double part = gram_[row * m + at] / pivot;
            for (std::size_t j = count + 1; j <= i; ++j) {
                const std::size_t column = order_[j];
                gram_[row * m + column] -= part * gram_[column * m + at];
                gram_[column * m + row] = gram_[row * m + column];
            }
        }
    }
    int rank = rank_;
    if (free_.size() != n) {
        int sure = 0;
        for (int i = 0; i < count; ++i) sure += pivots_[i] * pivots_[i] > noise_ * largest;
        rank = std::min(rank, sure);
    }
    if (rank > independent_) {
        regularity = 0.0;  // of which it is not known yet what regular is
        return;
    }
    rank = independent_;
    if (rank == 0) return;
    const double least = rank <= count ? pivots_[rank - 1] / pivots_[0] : 0.0;
    best = std::max(best, least);
    regularity = best > 0.0 ? least / best : 1.0;
}

// Newton's method along the coordinates of the block.
bool Projector::close(const Charts &charts, double *q) {
    const double left = 1e-2 * tol_;
    double open = error();
    if (open <= tol_) return true;
    moved = true;
    for (int turn = 0; turn < iterations; ++turn) {
        for (int i = 0; i < closure_.size(); ++i) right_[i] = -closure_.residual[i];
        if (!correct(right_, open)) return false;
        charts.integrate(q, shift_.data(), trial_.data());
        charts.normalize(trial_.data());
        place(trial_.data());
        const double now = error();
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
    if (block_.columns.empty() || !factor()) return false;
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

// Inverse of the block by Gauss and Jordan with pivots by rows; false if it is a worse choice than
// it was, by one over the norms of its rows and of its inverse.
bool Projector::factor() {
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
        if (!(std::abs(lu_[top * size + k]) > 0.0)) return false;
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
    return 1.0 / (rows * largest) >= std::max(worse_ * block_.share, worst_);
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

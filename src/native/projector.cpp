#include "projector.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

namespace pinloop {

namespace {

constexpr int iterations = 25;

std::vector<int> counted(std::size_t count) {
    std::vector<int> numbers(count);
    std::iota(numbers.begin(), numbers.end(), 0);
    return numbers;
}

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

}  // namespace

Projector::Projector(std::shared_ptr<const Tables> tables, const std::vector<ClosedPair> &pairs,
                     const Settings &settings, std::vector<double> unit,
                     const std::vector<char> &locked)
    : owned_(std::move(tables)), tables_(*owned_), tree_(tables_), rows_(tables_, counted(tables_.rows.size())),
      pairs_(pairs), unit_(std::move(unit)), rank_(static_cast<int>(settings.at("rank"))),
      tol_(settings.at("tol")), near_(settings.at("NEAR")), worse_(settings.at("WORSE")),
      worst_(settings.at("WORST")), curved_(settings.at("CURVED")),
      contradiction_(settings.at("CONTRADICTION")), noise_(settings.at("GRAM_NOISE")) {
    lock(locked);
    const std::size_t m = size(), n = tables_.nv;
    J_.resize(m * n), residual_.resize(m), lines_.resize(m * n), pivots_.resize(m), lu_.resize(2 * m * m);
    right_.resize(m), shift_.resize(n), trial_.resize(tables_.nq), work_.resize(std::max(m, n));
    still_.resize(n), way_.resize(n), order_.resize(m);
}

void Projector::lock(const std::vector<char> &locked) {
    free_.clear();
    for (int k = 0; k < tables_.nv; ++k) {
        if (!locked[k]) free_.push_back(k);
    }
}

void Projector::begin(Block block, int independent, double regular, double known) {
    block_ = std::move(block), independent_ = independent, regularity = regular, best = known;
}

// All rows, per unit of each velocity, and how far they are from zero.
void Projector::place(const double *q) {
    tree_.place(q);
    rows_.update(tree_, q, still_.data());
    for (std::size_t i = 0; i < J_.size(); ++i) J_[i] = rows_.J[i] * unit_[i % unit_.size()];
    int loop = -1;
    Opening opening;
    for (std::size_t i = 0; i < residual_.size(); ++i) {
        const Row &row = tables_.rows[i];
        if (row.loop >= 0 && row.loop != loop) {
            loop = row.loop;
            opening = opening_of(pairs_[loop], tables_.loops[loop], tree_);
        }
        residual_[i] = row.loop >= 0 ? open_by(row, opening) : rows_.value[i];
    }
}

bool Projector::apply(const Charts &charts, double *q, double *v) {
    moved = false;
    std::fill(way_.begin(), way_.end(), 0.0);
    if (rows_.size() == 0) return true;
    place(q);
    look();
    if (!(regularity >= near_)) return false;
    return close(charts, q) && allow(v);
}

// How independent the rows are, by the pivots of J J', the largest first (LAPACK's dpstrf).
void Projector::look() {
    if (rank_ < 0) return;
    const std::size_t m = rows_.size(), n = tables_.nv;
    for (std::size_t i = 0, at = 0; i < m; ++i) {
        for (int k : free_) lines_[at++] = J_[i * n + k];
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
    double open = norm(residual_);
    if (open <= tol_) return true;
    moved = true;
    for (int turn = 0; turn < iterations; ++turn) {
        for (int i = 0; i < rows_.size(); ++i) right_[i] = -residual_[i];
        if (!correct(right_, open)) return false;
        charts.integrate(q, shift_.data(), trial_.data());
        place(trial_.data());
        const double now = norm(residual_);
        if (!(now < open)) {
            place(q);
            break;
        }
        std::copy(trial_.begin(), trial_.end(), q);
        for (std::size_t k = 0; k < way_.size(); ++k) way_[k] += shift_[k];
        open = now;
        if (open < left || (open < 0.3 * tol_ && block_.holds_all)) break;
    }
    return open <= 10.0 * std::max(tol_, contradiction_);
}

// A velocity that the rows allow, at the configuration that has been placed last.
bool Projector::allow(double *v) {
    const std::size_t m = rows_.size(), n = tables_.nv;
    const double *J = J_.data();
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
    if (block_.columns.empty() || !(factor() >= std::max(worse_ * block_.share, worst_))) return false;
    const std::size_t size = block_.columns.size(), m = rows_.size(), n = tables_.nv;
    std::fill(shift_.begin(), shift_.end(), 0.0);
    double missed = 0.0;
    for (std::size_t i = 0; i < size; ++i) {
        double x = 0.0;
        for (std::size_t j = 0; j < size; ++j) x += lu_[(2 * i + 1) * size + j] * right[block_.rows[j]];
        shift_[block_.columns[i]] = x;
    }
    if (!block_.holds_all) {
        for (std::size_t i = 0; i < m; ++i) {
            double rest = -right[i];
            for (int k : block_.columns) rest += J_[i * n + k] * shift_[k];
            missed += rest * rest;
        }
        if (!(std::sqrt(missed) <= tol_ + curved_ * error)) return false;
    }
    for (int k : block_.columns) shift_[k] *= unit_[k];
    return true;
}

// Inverse of the block by Gauss and Jordan with pivots by rows, beside the unit matrix that they
// begin with; one over the norms of its rows and of its inverse, which tells how good a choice it is.
double Projector::factor() {
    const std::size_t size = block_.columns.size(), n = tables_.nv, width = 2 * size;
    std::fill(work_.begin(), work_.end(), 0.0);
    std::fill_n(lu_.begin(), size * width, 0.0);
    for (std::size_t i = 0; i < size; ++i) {
        const double *line = &J_[block_.rows[i] * n];
        for (std::size_t k = 0; k < n; ++k) work_[k] += std::abs(line[k]);
        for (std::size_t j = 0; j < size; ++j) lu_[i * width + j] = line[block_.columns[j]];
        lu_[i * width + size + i] = 1.0;
    }
    const double rows = *std::max_element(work_.begin(), work_.begin() + n);
    for (std::size_t k = 0; k < size; ++k) {
        std::size_t top = k;
        for (std::size_t i = k + 1; i < size; ++i) {
            if (std::abs(lu_[i * width + k]) > std::abs(lu_[top * width + k])) top = i;
        }
        double *line = &lu_[k * width];
        if (!(std::abs(lu_[top * width + k]) > 0.0)) return 0.0;
        if (top != k) std::swap_ranges(line, line + width, &lu_[top * width]);
        const double pivot = line[k];
        for (std::size_t j = k; j < width; ++j) line[j] /= pivot;
        for (std::size_t i = 0; i < size; ++i) {
            const double part = lu_[i * width + k];
            for (std::size_t j = k; i != k && part != 0.0 && j < width; ++j) {
                lu_[i * width + j] -= part * line[j];
            }
        }
    }
    double largest = 0.0;
    for (std::size_t j = 0; j < size; ++j) {
        double sum = 0.0;
        for (std::size_t i = 0; i < size; ++i) sum += std::abs(lu_[i * width + size + j]);
        largest = std::max(largest, sum);
    }
    return 1.0 / (rows * largest);
}

}  // namespace pinloop

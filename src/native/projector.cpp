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
        const auto top = std::max_element(left.begin() + i, left.begin() + rows) - left.begin();
        std::swap(order[i], order[top]), std::swap(left[i], left[top]);
        for (std::size_t j = i + 1; left[i] > 0.0 && j < rows; ++j) {
            const double part = product(i, j) / left[i];
            for (std::size_t k = 0; k < n; ++k) x[order[j] * n + k] -= part * x[order[i] * n + k];
            left[j] = std::max(0.0, left[j] - part * part * left[i]);
        }
    }
}

}  // namespace

Projector::Projector(std::shared_ptr<const Tables> tables, const Settings &settings,
                     std::vector<double> unit, std::vector<double> rotors)
    : dynamics_(std::move(tables)), tables_(dynamics_.tables()), tree_(dynamics_.tree_),
      unit_(std::move(unit)), rotors_(std::move(rotors)),
      rank_(static_cast<int>(settings.at("rank"))), tol_(settings.at("tol")),
      near_(settings.at("NEAR")), worse_(settings.at("WORSE")), worst_(settings.at("WORST")),
      curved_(settings.at("CURVED")), contradiction_(settings.at("CONTRADICTION")),
      noise_(settings.at("GRAM_NOISE")) {
    lock({});
    const std::size_t m = size(), n = tables_.nv;
    J_.resize(m * n), residual_.resize(m), lines_.resize(m * n), lu_.resize(2 * m * m);
    right_.resize(m), shift_.resize(n), trial_.resize(tables_.nq), still_.resize(n), way_.resize(n);
    for (auto *part : {&pivots_, &work_}) part->resize(std::max(m, n));
    order_.resize(pivots_.size());
}

void Projector::lock(const std::vector<int> &columns) {
    std::vector<int> rows(size());
    std::iota(rows.begin(), rows.end(), 0);
    std::vector<double> rotors = rotors_;
    for (int column : columns) rotors.at(column) = immovable;
    dynamics_.hold(rows, {}, {}, rotors);
    free_.clear();
    for (int k = 0; k < tables_.nv; ++k) {
        if (rotors[k] < immovable) free_.push_back(k);
    }
}

void Projector::prepare(const double *q) {
    if (!block_.columns.empty() || size() == 0) return;
    place(q);
    choose();
}

// All rows, per unit of each velocity, and how far they are from zero.
void Projector::place(const double *q) {
    HeldRows &rows = *dynamics_.rows_;
    tree_.place(q);
    rows.update(tree_, q, still_.data(), true);
    for (std::size_t i = 0, n = unit_.size(); i < J_.size(); i += n) {
        for (std::size_t k = 0; k < n; ++k) J_[i + k] = rows.J[i + k] * unit_[k];
    }
    residual_ = rows.residual;
}

bool Projector::apply(const Charts &charts, double *q, double *v) {
    moved = false;
    std::fill(way_.begin(), way_.end(), 0.0);
    if (size() == 0) return true;
    place(q);
    look();
    return regularity >= near_ && close(charts, q) && allow(v);
}

// How independent the rows are, by the pivots of J J', the largest first (LAPACK's dpstrf).
void Projector::look() {
    if (rank_ < 0) return;
    const std::size_t m = size(), n = tables_.nv;
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
    double open = norm(residual_);
    if (open <= tol_) return true;
    moved = true;
    for (int turn = 0; turn < iterations; ++turn) {
        for (int i = 0; i < size(); ++i) right_[i] = -residual_[i];
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
        if (open < 1e-2 * tol_ || (open < 0.3 * tol_ && holds_all())) break;
    }
    return open <= 10.0 * std::max(tol_, contradiction_);
}

// A velocity that the rows allow, at the configuration that has been placed last.
bool Projector::allow(double *v) {
    const std::size_t m = size(), n = tables_.nv;
    const auto miss = [&](const double *x) {
        for (std::size_t i = 0; i < m; ++i) {
            for (std::size_t k = 0; k < n; ++k) right_[i] -= J_[i * n + k] * (x[k] / unit_[k]);
        }
        return norm(right_);
    };
    std::fill(right_.begin(), right_.end(), 0.0);
    if (miss(v) <= tol_) return true;
    moved = true;
    if (!correct(right_, 0.0)) return false;
    double largest = 1.0;
    for (std::size_t k = 0; k < n; ++k) largest = std::max(largest, std::abs(v[k] += shift_[k]));
    return miss(shift_.data()) <= contradiction_ * largest;
}

// Shifts of coordinates that meet the rows, or if these contradict each other, do so best; false if
// there are none.
bool Projector::correct(const std::vector<double> &right, double error) {
    const double slack = tol_ + curved_ * error;
    const double grown = std::max(1.0, left() / block_.left);
    const double least = std::max(worse_ * block_.share * grown, worst_);
    if (block_.columns.empty() || !(factor() >= least) || !meet(right, slack)) {
        if (!choose()) return false;
        if (!meet(right, slack)) factor(true), meet(right, slack, true);
    }
    for (int k : block_.columns) shift_[k] *= unit_[k];
    return true;
}

// Shifts by the block that has been factored; whether the rows that are not in it come out, too.
bool Projector::meet(const std::vector<double> &right, double slack, bool by_squares) {
    const std::size_t size = block_.columns.size(), m = right.size(), n = tables_.nv;
    std::fill(shift_.begin(), shift_.end(), 0.0);
    for (std::size_t j = 0; j < size; ++j) {
        const double *column = &J_[block_.columns[j]];
        double side = by_squares ? 0.0 : right[block_.rows[j]];
        for (std::size_t i = 0; by_squares && i < m; ++i) side += column[i * n] * right[i];
        for (std::size_t i = 0; i < size; ++i) {
            shift_[block_.columns[i]] += lu_[(2 * i + 1) * size + j] * side;
        }
    }
    double missed = 0.0;
    for (std::size_t i = 0; i < m && !holds_all(); ++i) {
        double rest = -right[i];
        for (int k : block_.columns) rest += J_[i * n + k] * shift_[k];
        missed += rest * rest;
    }
    return std::sqrt(missed) <= slack;
}

// Dependent coordinates, as many rows that contain the others, and the inverse of their block:
// those with the largest relative projections one by one, see `dependent_coordinates` in Python.
// With M = L' L these are rows of L' Q over the roots of the inertias, where the columns of Q are
// orthonormal and span L'^-1 J'.
bool Projector::choose() {
    const std::size_t m = size(), nv = tables_.nv, n = free_.size(), rank = independent_;
    if (rank == 0) return false;
    tree_.move(still_.data());
    tree_.weigh();
    if (!dynamics_.factor_mass()) return false;
    dynamics_.factor_rows();
    std::vector<double> Y = dynamics_.Y_, R(n * rank), C(m * rank);
    pivot(m, nv, Y, order_, pivots_);
    if (!(pivots_[rank - 1] > 0.0)) return false;
    for (std::size_t i = 0; i < n * rank; ++i) {
        const std::size_t k = free_[i / rank];
        const double *L = &dynamics_.L_[k], *y = &Y[order_[i % rank] * nv];
        const double inertia = tree_.mass[k * (nv + 1)] + rotors_[k];
        for (std::size_t j = k; j < nv; ++j) R[i] += L[j * nv] * y[j];
        R[i] /= std::sqrt(pivots_[i % rank] * inertia);
    }
    pivot(n, rank, R, order_, pivots_);
    block_ = {};
    for (std::size_t i = 0; i < rank; ++i) block_.columns.push_back(free_[order_[i]]);
    for (std::size_t i = 0; i < m * rank; ++i) C[i] = J_[i / rank * nv + block_.columns[i % rank]];
    std::iota(order_.begin(), order_.end(), 0);
    if (rank < m) pivot(m, rank, C, order_, pivots_);
    block_.rows.assign(order_.begin(), order_.begin() + rank);
    block_.share = factor(), block_.left = left();
    if (!(block_.share >= worst_)) block_ = {};
    return !block_.columns.empty();
}

// Inverse of the block by Gauss and Jordan with pivots by rows, beside the unit matrix that they
// begin with; one over the norms of its rows and of its inverse, which tells how good a choice it
// is. Or of the products of its columns, of all rows.
double Projector::factor(bool by_squares) {
    const std::size_t size = block_.columns.size(), n = tables_.nv, width = 2 * size;
    std::fill(work_.begin(), work_.end(), 0.0);
    std::fill_n(lu_.begin(), size * width, 0.0);
    for (std::size_t i = 0; i < size; ++i) {
        const double *line = &J_[block_.rows[i] * n];
        for (std::size_t k = 0; k < n; ++k) work_[k] += std::abs(line[k]);
        for (std::size_t j = 0; j < size; ++j) {
            const double *x = &J_[block_.columns[i]], *y = &J_[block_.columns[j]];
            double &entry = lu_[i * width + j] = by_squares ? 0.0 : line[block_.columns[j]];
            for (std::size_t k = 0; by_squares && k < J_.size(); k += n) entry += x[k] * y[k];
        }
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

// Responses of a held robot to torques and missing accelerations of rows, by the factors at hand.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "derivatives.hpp"

namespace pinloop {

// Of some columns, which stay in registers meanwhile.
template <class Columns>
[[gnu::always_inline]] inline void subtract_columns(double *to, const double *factors,
                                                    std::size_t step, const double *rows,
                                                    std::size_t length, std::size_t many) {
    Columns sums;
    sums.get(to);
    for (std::size_t i = 0; i < many; ++i) sums.take(factors[i * step], rows + i * length);
    sums.put(to);
}

PINLOOP_WIDE void subtract(double *to, std::size_t count, const double *factors, std::size_t step,
                           const double *rows, std::size_t length, std::size_t many) {
    std::size_t k = 0;
    for (; k + 12 <= count; k += 12) {
        subtract_columns<Twelve>(to + k, factors, step, rows + k, length, many);
    }
    for (; k + 4 <= count; k += 4) {
        subtract_columns<Four>(to + k, factors, step, rows + k, length, many);
    }
    for (; k < count; ++k) {
        for (std::size_t i = 0; i < many; ++i) to[k] -= factors[i * step] * rows[i * length + k];
    }
}

namespace {

// What the rows before leave of one, squared, below which nothing is said; how far rows may
// contradict each other, or be from depending on each other, by rounding; rows that are nothing
// but rounding, as across the plane in which a robot moves.
constexpr double singular = 1e-7, rounded = 1e-11, nothing = 1e-14;

double product(const double *a, const double *b, std::size_t count) {
    return std::inner_product(a, a + count, b, 0.0);
}

// Lower Cholesky factor in the place of a matrix, with inverses on its diagonal.
bool factor(double *G, std::size_t m) {
    for (std::size_t i = 0; i < m; ++i) {
        double *row = G + i * m;
        const double whole = row[i];
        for (std::size_t j = 0; j <= i; ++j) {
            const double rest = row[j] - product(row, G + j * m, j);
            row[j] = j < i ? rest * G[j * m + j] : rest;
        }
        if (!(row[i] > singular * whole)) return false;  // NaN, too
        row[i] = 1.0 / std::sqrt(row[i]);
    }
    return true;
}

// R^-1 X for such a factor, in the place of X; each row one column shorter than the next.
void forward(const double *R, std::size_t m, double *X, std::size_t columns, std::size_t first) {
    for (std::size_t i = 0; i < m; ++i) {
        double *row = X + i * columns;
        const std::size_t count = std::min(fours(first + i), columns);
        subtract(row, count, R + i * m, 1, X, columns, i);
        for (std::size_t k = 0; k < count; ++k) row[k] *= R[i * m + i];
    }
}

}  // namespace

// Responses to a torque or a missing acceleration of a row each: accelerations, reactions of the
// rows and of what is locked. With Y = J L^-1 = R U, U U' = 1, N = L'^-1 and T = U N they are
//     P = N' N - T' T,   K = R'^-1 T,   (Y Y')^-1 = R'^-1 R^-1.
PINLOOP_WIDE bool Derivatives::invert() {
    const std::size_t n = n_, m = held_, columns = columns_;
    double *basis = basis_.data(), *N = roots_.data(), *x = moved_.data();
    for (std::size_t i = 0; i < m; ++i) {
        double *row = &basis[i * columns];
        const double *Y = &dynamics_.Y_[i * n], *G = dynamics_.G_.data();
        if (!(1.0 > singular * product(Y, Y, n) * G[i * m + i] * G[i * m + i])) return false;
        std::copy(Y, Y + n, row);
        std::fill(row + n, row + columns, 0.0);
        row[n + i] = 1.0;
    }
    forward(dynamics_.G_.data(), m, basis, columns, n + 1);
    if (dynamics_.refines_) {  // R of what rounding has left of the first time
        for (std::size_t i = 0; i < m * m; ++i) {
            gram_[i] = product(&basis[i / m * columns], &basis[i % m * columns], n);
        }
        if (!factor(gram_.data(), m)) return false;
        forward(gram_.data(), m, basis, columns, n + 1);
    }
    std::fill(responses_, responses_ + (n + m) * width_, 0.0);
    for (std::size_t i = 0; i < n; ++i) {
        const std::size_t first = chains_[i].back();
        std::fill(x + first, x + i, 0.0), x[i] = -1.0;
        dynamics_.solve_upper(x, chains_[i]);
        for (int j : chains_[i]) N[j * columns + i] = -x[j];
        subtract(&responses_[i * width_], fours(i + 1), x + first, 1, N + first * columns, columns,
                 i + 1 - first);
    }
    for (double *row = basis, *end = basis + m * columns; row != end; row += columns) {  // -T
        std::copy(row, row + n, x);
        std::fill(row, row + n, 0.0);
        subtract(row, n, x, 1, N, columns, n);
    }
    for (std::size_t i = 0; i < n; ++i) {
        double *to = &responses_[i * width_];
        subtract(to, fours(i + 1), basis + i, columns, basis, columns, m);
        for (std::size_t j = 0; j < i; ++j) responses_[j * width_ + i] = to[j];
    }
    for (std::size_t r = 0; r < m; ++r) {
        double *to = &responses_[(n + r) * width_], *from = &basis[r * columns];
        subtract(to, fours(n + r + 1), from + n + r, columns, from, columns, m - r);
        for (std::size_t i = 0; i < n; ++i) responses_[i * width_ + n + r] = -to[i];
        for (std::size_t k = n; k <= n + r; ++k) to[k] = -to[k];
        for (std::size_t s = 0; s < r; ++s) responses_[(n + s) * width_ + n + r] = to[n + s];
    }
    for (int k = 0; k < locked(); ++k) {
        const int h = dynamics_.given_[k];
        for (int i = 0; i < static_cast<int>(n + m); ++i) {
            double *x = &responses_[i * width_], &held = x[n + m + k] = i == h ? -1.0 : 0.0;
            for (int j = 0; j < static_cast<int>(n); ++j) held += tree_.inertia(h, j) * x[j];
            for (std::size_t r = 0; r < m; ++r) held -= line(r)[h] * x[n + r];
        }
    }
    return true;
}

// The other rows as combinations C of those that are held, what they have beside these, and -Q with
// Q = (B S S B')^-1 B S S, B = (1, C') and units S: the smallest of equal reactions, Q' lam, and
// least squares of rates.
PINLOOP_WIDE bool Derivatives::spread(const double *a) {
    if (m_ == held_) return true;
    double size = 0.0, rate = 0.0;
    const auto gamma = [this](std::size_t i) {
        return i < held_ ? dynamics_.rows_->gamma[i] : others_.gamma[i - held_];
    };
    for (std::size_t i = 0; i < m_; ++i) {
        double largest = 0.0, sum = std::abs(gamma(i));
        for (std::size_t k = 0; k < n_; ++k) {
            largest = std::max(largest, std::abs(line(i)[k]));
            sum += std::abs(line(i)[k] * a[k]);
        }
        size = std::max(size, sizes_[i] = units_[i] * largest);
        rate = std::max(rate, units_[i] * sum);
    }
    std::fill(gram_.begin(), gram_.end(), 0.0);
    std::fill(spread_.begin(), spread_.end(), 0.0);
    std::fill(dependence_.begin(), dependence_.end(), 0.0);
    for (std::size_t r = 0; r < held_; ++r) {
        gram_[r * held_ + r] = -(spread_[r * m_ + r] = -units_[r] * units_[r]);
    }
    for (std::size_t o = 0, i = held_; i < m_; ++o, ++i) {
        double *C = dependence_.data() + o * held_, *rest = &rests_[o * n_];
        const double *J = line(i), unit = units_[i];
        if (!(unit * std::abs(gamma(i) + product(J, a, n_)) <= rounded * rate)) return false;
        std::copy(J, J + n_, rest);
        if (sizes_[i] < nothing * size) continue;
        subtract(C, held_, J, 1, &responses_[n_], width_, n_);
        subtract(rest, n_, C, 1, dynamics_.rows_->J.data(), n_, held_);
        for (std::size_t k = 0; k < n_; ++k) {
            const double left = dynamics_.inverse_[k] == 0.0 ? 0.0 : unit * std::abs(rest[k]);
            if (!(left <= rounded * size)) return false;
        }
        for (std::size_t r = 0; r < held_; ++r) {
            const double factor = spread_[r * m_ + i] = -unit * unit * C[r];
            for (std::size_t s = 0; s <= r; ++s) gram_[r * held_ + s] -= factor * C[s];
        }
    }
    if (!factor(gram_.data(), held_)) return false;
    forward(gram_.data(), held_, spread_.data(), m_, m_);
    for (std::size_t i = held_; i-- > 0;) {
        double *row = &spread_[i * m_];
        subtract(row, m_, &gram_[i * held_] + held_ + i, held_, row + m_, m_, held_ - i - 1);
        for (std::size_t k = 0; k < m_; ++k) row[k] *= gram_[i * held_ + i];
    }
    return true;
}

void Derivatives::write_reactions(const double *tau, const Derived &to) const {
    const double *lam = dynamics_.lam_.data();
    std::copy(lam, lam + held_, to.reactions);
    std::fill(to.shared, to.shared + held_, 0.0);
    for (std::size_t i = 0; m_ > held_ && i < m_; ++i) {
        to.reactions[i] = 0.0, to.shared[i] = i < held_ ? 0.0 : 1.0;
        for (std::size_t r = 0; r < held_; ++r) to.reactions[i] -= spread_[r * m_ + i] * lam[r];
        for (std::size_t o = 0; i < held_ && o < m_ - held_; ++o) {
            const double part = units_[held_ + o] / units_[i] * dependence_[o * held_ + i];
            to.shared[i] = std::max(to.shared[i], std::abs(part));
        }
    }
    for (int k = 0; k < locked(); ++k) {
        const int h = dynamics_.given_[k];
        to.reactions[m_ + k] = dynamics_.missing(h, to.a) - tau[h], to.shared[m_ + k] = 0.0;
        // What rows may share as they like may also press on what is locked.
        for (std::size_t o = 0; o < m_ - held_; ++o) {
            const double more = rests_[o * n_ + h];
            to.reactions[m_ + k] -= more * to.reactions[held_ + o];
            to.shared[m_ + k] = std::max(to.shared[m_ + k], units_[held_ + o] * std::abs(more));
        }
    }
}

}  // namespace pinloop

// Responses of a held robot to torques and missing accelerations of rows, by the factors at hand.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "derivatives.hpp"

namespace pinloop {

namespace {

// What the rows before leave of one, squared, below which nothing is said.
constexpr double singular = 1e-7;
// How far rows may contradict each other, or be from depending on each other, by rounding.
constexpr double rounded = 1e-11;

// Take rows times factors, four at a time, which takes half as long.
PINLOOP_WIDE void subtract(double *__restrict to, std::size_t count, const double *factors,
                           std::size_t step, const double *rows, std::size_t length,
                           std::size_t many) {
    for (; many >= 4; many -= 4, factors += 4 * step, rows += 4 * length) {
        const double f = factors[0], g = factors[step];
        const double h = factors[2 * step], i = factors[3 * step];
        const double *a = rows, *b = a + length, *c = b + length, *d = c + length;
        for (std::size_t k = 0; k < count; ++k) {
            to[k] -= (f * a[k] + g * b[k]) + (h * c[k] + i * d[k]);
        }
    }
    for (; many > 0; --many, factors += step, rows += length) {
        for (std::size_t k = 0; k < count; ++k) to[k] -= *factors * rows[k];
    }
}

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

// R^-1 X for such a factor, in the place of X.
void forward(const double *R, std::size_t m, double *X, std::size_t columns) {
    for (std::size_t i = 0; i < m; ++i) {
        double *row = X + i * columns;
        subtract(row, columns, R + i * m, 1, X, columns, i);
        for (std::size_t k = 0; k < columns; ++k) row[k] *= R[i * m + i];
    }
}

}  // namespace

// Responses to a torque or a missing acceleration of a row each: accelerations, reactions of the
// rows and of what is locked. With Y = J L^-1 = R U, U U' = 1 and T = U L'^-1 they are
//     P = M^-1 - T' T,   K = R'^-1 T,   (Y Y')^-1 = R'^-1 R^-1.
bool Derivatives::invert() {
    const std::size_t n = n_, m = held_, columns = n + m;
    const double *G = dynamics_.G_.data();
    for (std::size_t i = 0; i < m; ++i) {
        double *row = &basis_[i * columns];
        const double *Y = &dynamics_.Y_[i * n];
        if (!(1.0 > singular * product(Y, Y, n) * G[i * m + i] * G[i * m + i])) return false;
        std::copy(Y, Y + n, row);
        std::fill(row + n, row + columns, 0.0);
        row[n + i] = 1.0;
    }
    forward(G, m, basis_.data(), columns);
    if (dynamics_.refines_) {  // R of what rounding has left of the first time
        for (std::size_t i = 0; i < m * m; ++i) {
            gram_[i] = product(&basis_[i / m * columns], &basis_[i % m * columns], n);
        }
        if (!factor(gram_.data(), m)) return false;
        forward(gram_.data(), m, basis_.data(), columns);
    }
    for (std::size_t i = 0; i < m; ++i) lower(&basis_[i * columns], n);
    std::fill(responses_.begin(), responses_.end(), 0.0);
    for (std::size_t i = 0; i < n; ++i) {
        double *x = &responses_[i * width_];
        x[i] = 1.0;
        dynamics_.solve_upper(x, chains_[i]);
        lower(x, i + 1);
        subtract(x, i + 1, basis_.data() + i, columns, basis_.data(), columns, m);
        for (std::size_t j = 0; j < i; ++j) responses_[j * width_ + i] = x[j];
    }
    for (std::size_t r = 0; r < m; ++r) {
        double *x = &responses_[(n + r) * width_], *from = &basis_[r * columns];
        subtract(x, columns, from + n + r, columns, from, columns, m - r);
        for (std::size_t k = 0; k < columns; ++k) x[k] = -x[k];
        for (std::size_t i = 0; i < n; ++i) responses_[i * width_ + n + r] = -x[i];
    }
    for (int k = 0; k < locked(); ++k) {
        const int h = dynamics_.given_[k];
        for (std::size_t i = 0; i < columns; ++i) {
            double *x = &responses_[i * width_];
            double held = static_cast<int>(i) == h ? -1.0 : 0.0;
            for (int j = 0; j < static_cast<int>(n); ++j) held += tree_.inertia(h, j) * x[j];
            for (std::size_t r = 0; r < m; ++r) held -= line(r)[h] * x[n + r];
            x[columns + k] = held;
        }
    }
    return true;
}

// L^-1 x, as far as wanted.
void Derivatives::lower(double *x, std::size_t count) const {
    for (std::size_t k = 0; k < count; ++k) {
        const double *row = &dynamics_.L_[k * n_];
        double value = x[k];
        for (int j = tables().before[k]; j >= 0; j = tables().before[j]) value -= row[j] * x[j];
        x[k] = value * dynamics_.inverse_[k];
    }
}

// The other rows as combinations C of those that are held, and Q = (B S S B')^-1 B S S with
// B = (1, C') and units S: the smallest of equal reactions, Q' lam, and least squares of rates.
bool Derivatives::spread(const double *a) {
    const std::size_t more = m_ - held_;
    if (more == 0) return true;
    double size = 0.0, rate = 0.0;
    const auto gamma = [this](std::size_t i) {
        return i < held_ ? dynamics_.rows_->gamma[i] : others_.gamma[i - held_];
    };
    for (std::size_t i = 0; i < m_; ++i) {
        double sum = std::abs(gamma(i));
        for (std::size_t k = 0; k < n_; ++k) {
            size = std::max(size, units_[i] * std::abs(line(i)[k]));
            sum += std::abs(line(i)[k] * a[k]);
        }
        rate = std::max(rate, units_[i] * sum);
    }
    std::fill(gram_.begin(), gram_.end(), 0.0);
    std::fill(spread_.begin(), spread_.end(), 0.0);
    for (std::size_t r = 0; r < held_; ++r) {
        gram_[r * held_ + r] = spread_[r * m_ + r] = units_[r] * units_[r];
    }
    for (std::size_t o = 0; o < more; ++o) {
        double *C = &dependence_[o * held_];
        const double *J = line(held_ + o), unit = units_[held_ + o];
        const double missed = gamma(held_ + o) + product(J, a, n_);
        if (!(unit * std::abs(missed) <= rounded * rate)) return false;
        for (std::size_t r = 0; r < held_; ++r) {
            C[r] = product(J, &responses_[(n_ + r) * width_], n_);
        }
        for (std::size_t k = 0; k < n_; ++k) {
            const double left = dynamics_.inverse_[k] == 0.0 ? 0.0 : rest(o, k);
            if (!(unit * std::abs(left) <= rounded * size)) return false;
        }
        for (std::size_t r = 0; r < held_; ++r) {
            const double factor = spread_[r * m_ + held_ + o] = unit * unit * C[r];
            for (std::size_t s = 0; s < held_; ++s) gram_[r * held_ + s] += factor * C[s];
        }
    }
    if (!factor(gram_.data(), held_)) return false;
    forward(gram_.data(), held_, spread_.data(), m_);
    for (std::size_t i = held_; i-- > 0;) {
        double *row = &spread_[i * m_];
        subtract(row, m_, &gram_[i * held_] + held_ + i, held_, row + m_, m_, held_ - i - 1);
        for (std::size_t k = 0; k < m_; ++k) row[k] *= gram_[i * held_ + i];
    }
    return true;
}

void Derivatives::write_reactions(const double *tau, const Derived &to) const {
    const double *lam = dynamics_.lam_.data();
    for (std::size_t i = 0; i < m_; ++i) {
        to.reactions[i] = i < held_ ? lam[i] : 0.0, to.shared[i] = i < held_ ? 0.0 : 1.0;
        if (m_ == held_) continue;
        to.reactions[i] = 0.0;
        for (std::size_t r = 0; r < held_; ++r) to.reactions[i] += spread_[r * m_ + i] * lam[r];
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
            const double more = rest(o, h);
            to.reactions[m_ + k] -= more * to.reactions[held_ + o];
            to.shared[m_ + k] = std::max(to.shared[m_ + k], units_[held_ + o] * std::abs(more));
        }
    }
}

// What a row that depends on others has beside them.
double Derivatives::rest(std::size_t other, std::size_t k) const {
    double value = line(held_ + other)[k];
    for (std::size_t r = 0; r < held_; ++r) value -= dependence_[other * held_ + r] * line(r)[k];
    return value;
}

}  // namespace pinloop

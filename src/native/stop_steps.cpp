#include "stop_steps.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

namespace pinloop {

constexpr int corrections = 4;   // of the instant at which something happens
constexpr double never = 2.0;    // part of a step
constexpr double clear = 1e-9;   // part of its size that what is watched surely passes zero by
constexpr double enough = 1e-3;  // part of a speed that is none, which is none where a step ends

StopSteps::StopSteps(std::shared_ptr<StopDynamics> dynamics, Tableau tableau,
                     const Settings &settings, std::vector<double> unit, Dense dense)
    : Steps(dynamics->shared_tables(), std::move(tableau), settings, std::move(unit),
            std::vector<int>(dynamics->tables().nv)),
      stop_(std::move(dynamics)), dense_(std::move(dense)), tie_(settings.at("GUARD_BAND")),
      turn_(settings.at("TURN")), instant_(settings.at("STEP_INSTANT")),
      basis_(dense_.size * tables().nv), path_(basis_.size()), powers_(dense_.size + 1),
      hull_(powers_), q_(tables().nv), v_(q_) {
    follow(*stop_);
}

Next StopSteps::look(double t0, Course &course, const State &state, const Taken &taken, int k) {
    const int n = tables().nv;
    const double h = course.t - t0, *v = taken.v + k * n;
    hits_.clear();
    if (!bend(t0, h, state, taken, k) || stop_->is_bound_near()) return Next::back;
    const double first = locate(t0, h, state);
    if (first < never && end_at(t0, first, course, state, taken, k)) return Next::halt;
    // What has happened, NaN too, has not where the step before ends.
    if (first != never) return hits_.clear(), Next::back;
    const bool moves = std::any_of(v, v + n, [this](double x) { return std::abs(x) > slow_; });
    return moves ? Next::on : Next::halt;
}

// Dense output of a step, with accelerations inside; false if it is for Python.
bool StopSteps::bend(double t0, double h, const State &state, const Taken &taken, int k) {
    const int n = tables().nv, m = dense_.size;
    const double *ends[] = {taken.psi + k * n, state.v, taken.v + k * n, state.a, taken.a + k * n};
    double turned = 0.0;
    for (int i = 0; i < 5 * n; ++i) {
        basis_[i] = ends[i / n][i % n] * (i < n ? 1.0 : i < 3 * n ? h : h * h);
    }
    const std::size_t width = 2 + 2 * m;
    for (std::size_t row = 0; row < dense_.inside.size(); row += width) {
        const double *weights = &dense_.inside[row];
        const int place = static_cast<int>(weights[1]);
        double *a = taken.bends + (k * (m - 5) + place - 5) * n;
        for (int i = 0; i < n; ++i) {
            double path = 0.0, rate = 0.0;
            for (int j = 0; j < m; ++j) {
                path += weights[2 + j] * basis_[j * n + i];
                rate += weights[2 + m + j] * basis_[j * n + i];
            }
            q_[i] = state.q[i] + path, v_[i] = rate / h;
        }
        if (stop_->accelerate(t0 + weights[0] * h, q_.data(), v_.data(), a) == Verdict::bad) {
            return false;
        }
        for (int i = 0; i < n; ++i) basis_[place * n + i] = h * h * a[i];
        ++taken.counts[3 * k];
    }
    for (int j = 0; j < m; ++j) {
        for (int i = 0; i < n; ++i) {
            double sum = 0.0;
            for (int l = 0; l < m; ++l) sum += dense_.powers[j * m + l] * basis_[l * n + i];
            path_[j * n + i] = sum, turned += std::abs(sum);
        }
    }
    return stop_->is_free() || turned <= turn_;
}

// Coefficients and control points of what is watched, along the step.
void StopSteps::shape(const Watched &watched, double t0, double h, const State &state) {
    const int n = tables().nv, m = dense_.size;
    const double *path = &path_[watched.column];
    powers_[0] = state.q[watched.column], powers_[m] = 0.0;
    for (int j = 0; j < m; ++j) {
        if (watched.is_speed) powers_[j] = (j + 1) * path[j * n] / h;
        else powers_[j + 1] = path[j * n];
    }
    powers_[0] -= watched.level + watched.rate * (t0 - stop_->start());
    powers_[1] -= watched.rate * h;
    for (double &power : powers_) power *= watched.sign;
    for (int i = 0; i <= m; ++i) {
        const double *row = &dense_.bernstein[i * (m + 1)];
        hull_[i] = std::inner_product(row, row + m + 1, powers_.begin(), 0.0);
    }
}

double StopSteps::value(double part) const {
    return std::accumulate(powers_.rbegin(), powers_.rend(), 0.0,
                           [part](double x, double power) { return x * part + power; });
}

// The part of a step at which the first thing happens, or `never`; NaN if that is not plain.
double StopSteps::locate(double t0, double h, const State &state) {
    const double unknown = std::numeric_limits<double>::quiet_NaN();
    double first = never;
    roots_.assign(watched_.size(), never);
    for (std::size_t i = 0; i < watched_.size(); ++i) {
        shape(watched_[i], t0, h, state);
        const auto [least, most] = std::minmax_element(hull_.begin(), hull_.end());
        const double band = std::abs(hull_[0]) <= tiny_ ? tiny_ : 0.0;
        if (*least > band) continue;
        const bool leaves = std::is_sorted(hull_.begin(), hull_.end()) && *most > band;
        const bool passes = std::is_sorted(hull_.rbegin(), hull_.rend());
        if (!(band > 0.0 ? leaves : passes && *least < -clear * *most)) return unknown;
        if (band > 0.0) continue;  // it leaves its level at once
        double low = 0.0, high = 1.0;
        for (double middle = 0.5; low < middle && middle < high; middle = 0.5 * (low + high)) {
            (value(middle) > 0.0 ? low : high) = middle;
        }
        first = std::min(first, roots_[i] = high);
    }
    const double tie = tie_ * std::max(1.0, std::abs(t0 + h)) / h;
    for (std::size_t i = 0; i < roots_.size() && first < never; ++i) {
        if (roots_[i] <= first + tie) hits_.push_back(static_cast<int>(i));
    }
    return first;
}

// Take the step again to what happens in it, see `HybridIntegrator._taken_again` in Python; false
// if it is for Python.
bool StopSteps::end_at(double t0, double first, Course &course, const State &state,
                       const Taken &taken, int k) {
    const Watched &watched = watched_[hits_[0]];
    const double h = course.t - t0, error = course.error;
    const double size = std::max(course.h, course.t - (t0 + first * h));
    double root = t0 + first * h, least = never;
    std::int64_t evaluations = 0, rejected = 0;
    shape(watched, t0, h, state);
    course.asked[k] = 0;
    for (int turn = 0; turn < corrections; ++turn) {
        evaluations += taken.counts[3 * k], rejected += taken.counts[3 * k + 1];
        const bool is_near = turn > 0 && std::abs(root - course.t) <= instant_ * (course.t - t0);
        if (!is_near) course.t = t0, course.h = root - t0, course.end = root;
        if (!(is_near ? prolong(root, course, taken, k)
                      : course.h > 0.0 && controlled(course, state, taken, k))) return false;
        const int at = k * tables().nv + watched.column;
        const double x = watched.is_speed ? taken.v[at] : taken.q[at];
        const double off = x - watched.level - watched.rate * (root - stop_->start());
        if (course.t < root || !(std::abs(off) < 0.5 * least)) return false;
        least = std::abs(off);
        if (least <= enough * tiny_) break;
        const double part = (root - t0) / h, gap = 1e-4;
        root -= watched.sign * off * 2.0 * gap * h / (value(part + gap) - value(part - gap));
        if (!(t0 < root && root < t0 + h)) return false;
    }
    taken.counts[3 * k] += evaluations, taken.counts[3 * k + 1] += rejected;
    taken.numbers[5 * k + 1] = size, taken.numbers[5 * k + 2] = error;
    return bend(t0, course.t - t0, state, taken, k);
}

}  // namespace pinloop

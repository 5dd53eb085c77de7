#include "steps.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace pinloop {

namespace {

double largest_difference(const double *x, const double *y, std::size_t n) {
    double most = 0.0;
    for (std::size_t k = 0; k < n; ++k) most = std::max(most, std::abs(x[k] - y[k]));
    return most;
}

double size_of(const double *x, std::size_t n) {
    double sum = 0.0;
    for (std::size_t k = 0; k < n; ++k) sum += std::abs(x[k]);
    return sum;
}

}  // namespace

Steps::Steps(std::shared_ptr<const Tables> tables, Tableau tableau, const Settings &settings,
             std::vector<double> unit, const std::vector<char> &locked)
    : tables_(tables), dynamics_(tables), charts_(*tables, locked),
      control_(settings, std::move(unit)), attempt_(std::move(tableau), tables->nq, tables->nv),
      trifle_(settings.at("PROJECTED_TRIFLE")),
      infinite_(settings.at("INFINITE")), still_(tables->nv),
      shift_(tables->nv), rate_(tables->nv) {}

int Steps::take(Course course, const double *q, const double *v, const double *a,
                const Taken &taken) {
    const std::size_t nq = tables_->nq, nv = tables_->nv;
    bool is_stale = false;
    if (projector_) projector_->prepare(q);
    int k = 0;
    while (k < taken.most && !is_stale && course.t < course.end) {
        const State state{q, v, a};
        const bool done = course.times.empty() ? controlled(course, state, taken, k)
                                               : fixed(course, state, taken, k);
        if (!done) break;
        is_stale = last_ == Verdict::stale;
        taken.counts[3 * k + 2] = is_stale;
        q = taken.q + k * nq, v = taken.v + k * nv, a = taken.a + k * nv;
        ++k;
    }
    return k;
}

// One accepted step, of whatever size its error allows; false if it is for Python.
bool Steps::controlled(Course &course, const State &state, const Taken &taken, int k) {
    double h = course.h, first = 0.0;
    if (course.asked[k] && course.end - course.t > course.crawls * h) return false;
    attempt_.evaluations = rejected_ = 0;
    for (;;) {
        h = std::min(h, control_.largest);
        const double slack = control_.time_sum * std::max(std::abs(course.t), h);
        const bool last = course.t + h >= course.end - slack;
        const double next = last ? course.end : course.t + h, size = next - course.t;
        if (size < control_.smallest && (first > 0.0 || !last)) return false;
        first = first > 0.0 ? first : size;
        if (!attempt(size, state, true)) return false;
        const double error = control_.error(attempt_.errors, state.v, attempt_.v1.data());
        if (!(error <= 1.0)) {  // it may be NaN
            ++rejected_;
            h = size * control_.shrink(error);
            continue;
        }
        if (!finish(state, true, taken, k)) return false;
        const double factor = control_.grow(error, course.error);
        // A step that had to end at an event does not make the next ones short.
        course.h = last ? std::max(h, size * factor) : h * factor;
        course.error = std::max(error, control_.first_error);
        course.t = next;
        write(course, taken, k);
        return true;
    }
}

// One step of fixed size.
bool Steps::fixed(Course &course, const State &state, const Taken &taken, int k) {
    if (k >= static_cast<int>(course.times.size()) || course.asked[k]) return false;
    attempt_.evaluations = rejected_ = 0;
    if (!attempt(course.times[k] - course.t, state, false)) return false;
    if (!finish(state, false, taken, k)) return false;
    course.t = course.times[k];
    write(course, taken, k);
    return true;
}

bool Steps::attempt(double h, const State &state, bool with_errors) {
    last_ = attempt_.take(dynamics_, charts_, h, state.q, state.v, state.a, with_errors);
    return last_ != Verdict::bad;
}

// Put the end of a step back on the manifold; false if it is for Python.
bool Steps::finish(const State &state, bool with_errors, const Taken &taken, int k) {
    const std::size_t nq = tables_->nq, nv = tables_->nv;
    double *q = taken.q + k * nq, *v = taken.v + k * nv, *a = taken.a + k * nv;
    double *psi = taken.psi + k * nv;
    const std::vector<double> &before = attempt_.v1;
    std::copy(attempt_.q1.begin(), attempt_.q1.end(), q);
    std::copy(before.begin(), before.end(), v);
    std::copy(attempt_.psi.begin(), attempt_.psi.end(), psi);
    if (projector_ && !projector_->apply(charts_, q, v)) return false;
    const bool moved = projector_ && projector_->moved;
    if (moved) {
        // First order in the shift, which is as small as the error of the step.
        charts_.difference(attempt_.q1.data(), q, shift_.data());
        charts_.rate(psi, shift_.data(), rate_.data());
        for (std::size_t i = 0; i < nv; ++i) psi[i] += rate_[i];
    }
    if (moved || !attempt_.has_end) {
        last_ = attempt_.accelerate(dynamics_, q, v, a);
        if (last_ == Verdict::bad) return false;
    } else {
        std::copy(attempt_.a1.begin(), attempt_.a1.end(), a);
    }
    // Not if one of them is not a number.
    if (!(size_of(q, nq) + size_of(v, nv) < infinite_) || !std::isfinite(size_of(a, nv))) {
        return false;
    }
    return !moved || is_small_shift(state, with_errors, q, v);
}

// Whether the projection at the end of a step has taken no more than its error.
bool Steps::is_small_shift(const State &state, bool with_errors, const double *q,
                           const double *v) {
    const double *before = attempt_.v1.data();
    const std::size_t nv = tables_->nv;
    const double least = with_errors ? control_.finest()
                                     : trifle_ * largest_difference(before, still_.data(), nv);
    if (largest_difference(before, v, nv) <= least) return true;
    const double *tolerance = with_errors ? control_.tolerance(state.v, before).data() : nullptr;
    return projector_->is_small(q, state.v, before, v, tolerance);
}

void Steps::write(const Course &course, const Taken &taken, int k) const {
    double *numbers = taken.numbers + 5 * k;
    numbers[0] = course.t, numbers[1] = course.h, numbers[2] = course.error;
    numbers[3] = projector_ ? projector_->regularity : 1.0;
    numbers[4] = projector_ ? projector_->best : 0.0;
    taken.counts[3 * k] = attempt_.evaluations, taken.counts[3 * k + 1] = rejected_;
}

}  // namespace pinloop

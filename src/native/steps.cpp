#include "steps.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

namespace pinloop {

static double size_of(const double *x, std::size_t n) {
    return std::accumulate(x, x + n, 0.0, [](double sum, double y) { return sum + std::abs(y); });
}

Steps::Steps(std::shared_ptr<const Tables> tables, Tableau tableau, const Settings &settings,
             std::vector<double> unit, const std::vector<int> &locked)
    : dynamics_(tables), charts_(*tables, locked), control_(settings, std::move(unit)),
      attempt_(std::move(tableau), tables->nq, tables->nv), infinite_(settings.at("INFINITE")),
      rate_(tables->nv) {}

int Steps::take(Course course, State state, const Taken &taken) {
    const std::size_t nq = tables().nq, nv = tables().nv;
    bool is_stale = false;
    if (projector_) projector_->prepare(state.q);
    int k = 0;
    while (k < taken.most && !is_stale && course.t < course.end) {
        const double t0 = course.t;
        const bool done = course.times.empty() ? controlled(course, state, taken, k)
                                               : fixed(course, state, taken, k);
        const Next next = done ? look(t0, course, state, taken, k) : Next::back;
        if (next == Next::back) break;
        taken.counts[3 * k + 2] = is_stale = last_ == Verdict::stale;
        state = {taken.q + k * nq, taken.v + k * nv, taken.a + k * nv};
        ++k;
        if (next == Next::halt) break;
    }
    return k;
}

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
        last_ = attempt_.take(*system_, charts_, course.t, size, state.q, state.v, state.a, true);
        if (last_ == Verdict::bad) return false;
        const double error = control_.error(attempt_.errors, state.v, attempt_.v1.data());
        if (!(error <= 1.0)) {  // it may be NaN
            ++rejected_;
            h = size * control_.shrink(error);
            continue;
        }
        const double factor = control_.grow(error, course.error);
        // A step that had to end at an event does not make the next ones short.
        course.h = last ? std::max(h, size * factor) : h * factor;
        course.error = std::max(error, control_.first_error);
        return finish(next, course, taken, k);
    }
}

// One step of fixed size.
bool Steps::fixed(Course &course, const State &state, const Taken &taken, int k) {
    if (k >= static_cast<int>(course.times.size()) || course.asked[k]) return false;
    attempt_.evaluations = rejected_ = 0;
    const double h = course.times[k] - course.t;
    last_ = attempt_.take(*system_, charts_, course.t, h, state.q, state.v, state.a, false);
    return last_ != Verdict::bad && finish(course.times[k], course, taken, k);
}

bool Steps::prolong(double t, Course &course, const Taken &taken, int k) {
    const std::size_t nv = tables().nv;
    const double *q = taken.q + k * nv, *v = taken.v + k * nv, more = t - course.t;
    attempt_.evaluations = rejected_ = 0, attempt_.has_end = false;
    for (std::size_t i = 0; i < nv; ++i) {
        attempt_.psi[i] = taken.psi[k * nv + i] + more * v[i], attempt_.q1[i] = q[i] + more * v[i];
        attempt_.v1[i] = v[i] + more * taken.a[k * nv + i];
    }
    return finish(t, course, taken, k);
}

// Put the end of a step back on the manifold; false if it is for Python.
bool Steps::finish(double t, Course &course, const Taken &taken, int k) {
    const std::size_t nq = tables().nq, nv = tables().nv;
    double *q = taken.q + k * nq, *v = taken.v + k * nv, *a = taken.a + k * nv;
    double *psi = taken.psi + k * nv;
    std::vector<double> &before = attempt_.v1;
    system_->pin(t, before.data());
    std::copy(attempt_.q1.begin(), attempt_.q1.end(), q);
    std::copy(before.begin(), before.end(), v);
    std::copy(before.begin(), before.end(), taken.before + k * nv);
    std::copy(attempt_.psi.begin(), attempt_.psi.end(), psi);
    if (projector_ && !projector_->apply(charts_, q, v)) return false;
    const bool moved = projector_ && projector_->moved;
    if (moved) {
        // First order in the shift, which is as small as the error of the step.
        charts_.rate(psi, projector_->shift().data(), rate_.data());
        for (std::size_t i = 0; i < nv; ++i) psi[i] += rate_[i];
    }
    if (moved || !attempt_.has_end) {
        ++attempt_.evaluations;
        last_ = system_->accelerate(t, q, v, a);
        if (last_ == Verdict::bad) return false;
    } else {
        std::copy(attempt_.a1.begin(), attempt_.a1.end(), a);
    }
    double *numbers = taken.numbers + 5 * k;
    numbers[0] = course.t = t, numbers[1] = course.h, numbers[2] = course.error;
    numbers[3] = projector_ ? projector_->regularity : 1.0;
    numbers[4] = projector_ ? projector_->best : 0.0;
    taken.counts[3 * k] = attempt_.evaluations, taken.counts[3 * k + 1] = rejected_;
    // Not if one of them is not a number.
    return size_of(q, nq) + size_of(v, nv) < infinite_ && std::isfinite(size_of(a, nv));
}

}  // namespace pinloop

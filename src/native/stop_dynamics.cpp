#include "stop_dynamics.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace pinloop {

StopDynamics::StopDynamics(std::shared_ptr<const Tables> tables)
    : dynamics_(tables), tau_(tables->nv), solution_(4 * tables->nv) {}

void StopDynamics::enter(const std::vector<int> &rows, double part, int spare,
                         std::vector<int> pinned, std::vector<double> armature,
                         std::vector<double> torques, double start, std::vector<Bound> bounds) {
    pinned_ = std::move(pinned), armature_ = armature;
    for (int k : pinned_) armature[k] = immovable;
    torques_ = std::move(torques), start_ = start, bounds_ = std::move(bounds);
    is_bound_near();
    const std::vector<double> none(rows.size());
    dynamics_.hold(rows, none, none, std::move(armature), part, spare);
}

// As `SlidingTorques.torques` and `StopEquations.solve`, which say why.
bool StopDynamics::solve(double t, const double *q, const double *v, const double *given,
                         double *solution) {
    const int n = tables().nv;
    double *a = solution, *joint = a + n, *gear = joint + n, *holding = gear + n;
    const double later = t - start_;
    for (int k = 0; k < n; ++k) {
        joint[k] =
            of(rest_of_joint)[k] + of(rate_of_joint)[k] * later - of(viscous_of_joint)[k] * v[k];
        if (const double extra = of(breakaway)[k]; extra != 0.0) {
            const double part = v[k] * of(width)[k];
            joint[k] -= extra * std::exp(-part * part);
        }
        const double before =
            of(rest_of_motor)[k] + of(rate_of_motor)[k] * later - of(viscous_of_motor)[k] * v[k];
        gear[k] = before * of(before > 0.0 ? gain_up : gain_down)[k];
        tau_[k] = joint[k] + gear[k];
        a[k] = given[k];
    }
    dynamics_.reach(q, v);
    if (dynamics_.solve(tau_.data(), a) == Verdict::bad) return false;
    for (int k = 0; k < n; ++k) gear[k] -= of(rotor)[k] * a[k];
    std::fill(holding, holding + n, 0.0);
    for (int k : pinned_) holding[k] = dynamics_.missing(k, a) + armature_[k] * a[k] - joint[k];
    return true;
}

Verdict StopDynamics::accelerate(double t, const double *q, const double *v, double *a) {
    if (!solve(t, q, v, of(drive_rate), solution_.data())) return Verdict::bad;
    std::copy_n(solution_.begin(), tables().nv, a);
    for (Bound &bound : bounds_) {
        const double x = bound.factor * solution_[bound.place];
        bound.most = std::max(bound.most, x + bound.now + bound.rate * (t - start_));
        bound.high = std::max(bound.high, x), bound.low = std::min(bound.low, x);
    }
    return Verdict::good;
}

void StopDynamics::pin(double t, double *v) const {
    for (int k : pinned_) v[k] = of(drive_speed)[k] + of(drive_rate)[k] * (t - start_);
}

bool StopDynamics::is_bound_near() {
    bool is_near = false;
    for (Bound &bound : bounds_) {
        is_near = is_near || bound.most + bound.high - bound.low > 0.0;
        bound.most = bound.high = -1e300, bound.low = 1e300;
    }
    return is_near;
}

}  // namespace pinloop

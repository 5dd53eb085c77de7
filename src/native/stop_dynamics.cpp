#include "stop_dynamics.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace pinloop {

StopDynamics::StopDynamics(std::shared_ptr<const Tables> tables)
    : dynamics_(std::move(tables)), tau_(dynamics_.tables().nv), q_(tau_), v_(tau_) {}

void StopDynamics::enter(const std::vector<int> &rows, double part, std::vector<int> pinned,
                         std::vector<double> armature, std::vector<double> torques, double start) {
    pinned_ = std::move(pinned), armature_ = armature;
    for (int k : pinned_) armature[k] = immovable;
    torques_ = std::move(torques), start_ = start;
    const std::vector<double> none(rows.size());
    dynamics_.hold(rows, none, none, std::move(armature), part);
}

// As `SlidingTorques.torques` and `StopEquations.solve`, which say why.
bool StopDynamics::solve(double t, const double *q, const double *v, const double *given,
                         double *solution) {
    const int n = tables().nv;
    double *a = solution, *joint = a + n, *gear = joint + n, *holding = gear + n;
    const auto of = [this, n](Torques which, int k) {
        return torques_[static_cast<std::size_t>(which) * n + k];
    };
    const double later = t - start_;
    for (int k = 0; k < n; ++k) {
        joint[k] = of(rest_of_joint, k) + of(rate_of_joint, k) * later - of(viscous_of_joint, k) * v[k];
        if (const double extra = of(breakaway, k); extra != 0.0) {
            const double part = v[k] * of(width, k);
            joint[k] -= extra * std::exp(-part * part);
        }
        const double before =
            of(rest_of_motor, k) + of(rate_of_motor, k) * later - of(viscous_of_motor, k) * v[k];
        gear[k] = before * of(before > 0.0 ? gain_up : gain_down, k);
        tau_[k] = joint[k] + gear[k];
        a[k] = given[k];
    }
    dynamics_.reach(q, v);
    if (dynamics_.solve(tau_.data(), a) == Verdict::bad) return false;
    for (int k = 0; k < n; ++k) gear[k] -= of(rotor, k) * a[k];
    std::fill(holding, holding + n, 0.0);
    for (int k : pinned_) holding[k] = dynamics_.missing(k, a) + armature_[k] * a[k] - joint[k];
    return true;
}

bool StopDynamics::follow(double t, double h, const double *q, int count, int m,
                          const double *sums, double *basis, const double *given,
                          double *solutions) {
    const int n = tables().nv;
    for (int e = 0; e < count; ++e, sums += 2 + 2 * m, given += n, solutions += 4 * n) {
        for (int k = 0; k < n; ++k) {
            double path = 0.0, rate = 0.0;
            for (int i = 0; i < m; ++i) {
                path += sums[2 + i] * basis[i * n + k], rate += sums[2 + m + i] * basis[i * n + k];
            }
            q_[k] = q[k] + path, v_[k] = rate / h;
        }
        if (!solve(t + h * sums[0], q_.data(), v_.data(), given, solutions)) return false;
        double *row = basis + static_cast<int>(sums[1]) * n;
        for (int k = 0; k < n; ++k) row[k] = h * h * solutions[k];
    }
    return true;
}

}  // namespace pinloop

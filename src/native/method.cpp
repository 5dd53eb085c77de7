#include "method.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

namespace pinloop {

bool Tableau::looks_ahead() const {
    bool ahead = false;
    for (std::size_t k = stages(); k < errors.size(); k += stages() + 1) ahead |= errors[k] != 0.0;
    return ahead;
}

double Tableau::node(int stage) const {
    if (stage == stages()) return 1.0;
    return std::accumulate(&a[stage * b.size()], &a[stage * b.size()] + stage, 0.0);
}

Control::Control(const Settings &settings, std::vector<double> unit)
    : smallest(settings.at("smallest")), largest(settings.at("largest")),
      time_sum(settings.at("TIME_SUM")), first_error(settings.at("FIRST_ERROR")),
      rtol_(settings.at("rtol")), atol_(settings.at("atol")), alpha_(settings.at("alpha")),
      beta_(settings.at("beta")), least_error_(settings.at("LEAST_ERROR")), unit_(std::move(unit)),
      tolerance_(unit_.size()) {}

double Control::error(const std::vector<double> &errors, const double *v0, const double *v1) {
    const std::size_t n = unit_.size();
    for (std::size_t i = 0; i < n; ++i) {
        tolerance_[i] = rtol_ * std::max(std::abs(v0[i]), std::abs(v1[i])) + atol_ * unit_[i];
    }
    double norms[2] = {0.0, 0.0};
    const std::size_t count = errors.size() / (2 * n);
    for (std::size_t k = 0; k < count; ++k) {
        const double *of_psi = &errors[k * 2 * n], *of_v = of_psi + n;
        double psi = 0.0, v = 0.0;
        for (std::size_t i = 0; i < n; ++i) {
            const double x = of_psi[i] / (atol_ * unit_[i] + rtol_ * unit_[i]);
            const double y = of_v[i] / tolerance_[i];
            psi += x * x, v += y * y;
        }
        norms[k] = std::sqrt((psi >= v || std::isnan(psi) ? psi : v) / static_cast<double>(n));
    }
    if (count < 2) return norms[0];
    const double fifth = norms[0] * norms[0], third = norms[1] * norms[1];
    return fifth == 0.0 && third == 0.0 ? 0.0 : fifth / std::sqrt(fifth + 0.01 * third);
}

double Control::shrink(double error) const {
    return std::max(0.2, 0.9 * std::pow(error, -alpha_ - beta_));  // also if it is not a number
}

double Control::grow(double error, double before) const {
    const double last = std::max(error, least_error_);
    const double factor = 0.9 * std::pow(last, -alpha_) * std::pow(before, beta_);
    return std::min(5.0, std::max(0.2, factor));
}

Attempt::Attempt(Tableau tableau, int nq, int nv)
    : psi(nv), q1(nq), v1(nv), a1(nv), errors(tableau.estimates() * 2 * nv),
      tableau_(std::move(tableau)), slopes_((tableau_.stages() + 1) * 2 * nv), step_(2 * nv) {}

// A weighted sum of slopes, to `step_`.
void Attempt::sum(const double *weights, int count, double h) {
    const std::size_t size = step_.size();
    std::fill(step_.begin(), step_.end(), 0.0);
    for (int i = 0; i < count; ++i) {
        const double weight = h * weights[i], *slope = &slopes_[i * size];
        for (std::size_t k = 0; weight != 0.0 && k < size; ++k) step_[k] += weight * slope[k];
    }
}

Verdict Attempt::take(System &system, const Charts &charts, double t, double h, const double *q,
                      const double *v, const double *a, bool with_errors) {
    const std::size_t n = psi.size();
    const int s = tableau_.stages(), k = tableau_.estimates();
    std::copy(v, v + n, slopes_.begin());
    std::copy(a, a + n, slopes_.begin() + n);
    Verdict verdict = Verdict::good;
    has_end = with_errors && tableau_.looks_ahead();
    for (int j = 1; j <= s; ++j) {
        sum(j < s ? &tableau_.a[static_cast<std::size_t>(j) * s] : tableau_.b.data(), j, h);
        for (std::size_t i = 0; i < n; ++i) psi[i] = step_[i], v1[i] = v[i] + step_[n + i];
        charts.integrate(q, psi.data(), q1.data());
        if (j == s && !has_end) break;
        double *slope = &slopes_[j * 2 * n];
        charts.rate(psi.data(), v1.data(), slope);
        ++evaluations;
        verdict = system.accelerate(t + h * tableau_.node(j), q1.data(), v1.data(), slope + n);
        if (verdict == Verdict::bad) return verdict;
    }
    if (has_end) std::copy_n(&slopes_[s * 2 * n + n], n, a1.begin());
    for (int e = 0; with_errors && e < k; ++e) {
        sum(&tableau_.errors[static_cast<std::size_t>(e) * (s + 1)], has_end ? s + 1 : s, h);
        std::copy(step_.begin(), step_.end(), errors.begin() + e * 2 * n);
    }
    return verdict;
}

}  // namespace pinloop

#include "charts.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "tree.hpp"

namespace pinloop {

namespace {

struct Quaternion {
    Vec v;
    double w;
};

Quaternion quaternion(const double *q) { return {{q[0], q[1], q[2]}, q[3]}; }
Quaternion operator*(const Quaternion &a, const Quaternion &b) {
    return {a.w * b.v + b.w * a.v + cross(a.v, b.v), a.w * b.w - dot(a.v, b.v)};
}
void write(const Quaternion &a, double *q) {
    const double s = 1.0 / std::sqrt(dot(a.v, a.v) + a.w * a.w);
    q[0] = s * a.v.x, q[1] = s * a.v.y, q[2] = s * a.v.z, q[3] = s * a.w;
}
void write(const Vec &a, double *q) { q[0] = a.x, q[1] = a.y, q[2] = a.z; }

Quaternion exponential(const Vec &w) {
    const double angle = std::sqrt(dot(w, w));
    const double s = angle > 0.0 ? std::sin(0.5 * angle) / angle : 0.5;
    return {s * w, std::cos(0.5 * angle)};
}

// Shift of a body's origin that moves along a constant twist.
Vec shifted(const Spatial &twist) {
    const double square = dot(twist.w, twist.w), angle = std::sqrt(square);
    const double half = 0.5 * angle, s = half > 0.0 ? std::sin(half) / half : 1.0;
    const double c = square < 1e-7 ? 1.0 / 6 : (angle - std::sin(angle)) / (angle * square);
    const Vec turned = cross(twist.w, twist.v);
    return twist.v + 0.5 * s * s * turned + c * cross(twist.w, turned);
}

// A and B of `inverse_dexp` by the square of the angle: Selig, Geometric Fundamentals of Robotics
// (2005), section 7.6. Their rounding is as large as it may be where they are multiplied.
std::array<double, 2> coefficients(double square) {
    if (square < 1e-4) return {1.0 / 12, -1.0 / 720};
    const double half = 0.5 * std::sqrt(square), s = std::sin(half);
    const double a = half * std::cos(half) / s, c = half * half / (s * s), d = 0.5 * (a - c);
    return {(2.0 * (1.0 - a) + d) / square, (1.0 - a + d) / (square * square)};
}

// dexpinv(-x) y on se(3), and on its subalgebras: y + ad y / 2 + A ad^2 y + B ad^4 y.
Spatial inverse_dexp(const Spatial &x, const Spatial &y) {
    const auto [A, B] = coefficients(dot(x.w, x.w));
    const Spatial first = cross(x, y), second = cross(x, first);
    return y + 0.5 * first + A * second + B * cross(x, cross(x, second));
}

bool is_curved(Motion motion) { return motion > Motion::translation; }

// A velocity of a joint that is curved, no vector space, as a twist.
Spatial twist_of(Motion motion, const double *v) {
    if (motion == Motion::spherical) return {Vec{}, vec(v)};
    if (motion == Motion::planar) return {{v[0], v[1], 0.0}, {0.0, 0.0, v[2]}};
    return {vec(v), vec(v + 3)};
}

void write(Motion motion, const Spatial &twist, double *v) {
    if (motion == Motion::spherical) return write(twist.w, v);
    if (motion == Motion::planar) {
        v[0] = twist.v.x, v[1] = twist.v.y, v[2] = twist.w.z;
        return;
    }
    write(twist.v, v), write(twist.w, v + 3);
}

// Cosine and sine turned on by an angle.
void turn(const double *q, double angle, double *moved) {
    const double c = std::cos(angle), s = std::sin(angle), x = q[0], y = q[1];
    const double cosine = c * x - s * y, sine = s * x + c * y;
    const double size = 1.0 / std::hypot(cosine, sine);
    moved[0] = size * cosine, moved[1] = size * sine;
}

}  // namespace

Spatial logarithm(const Placement &placement) {
    const Rotation &R = placement.R;
    const Vec s = 0.5 * Vec{R.y.z - R.z.y, R.z.x - R.x.z, R.x.y - R.y.x};
    const double sine = std::sqrt(dot(s, s)), cosine = 0.5 * (R.x.x + R.y.y + R.z.z - 1.0);
    const double turn = sine > 0.0 ? std::atan2(sine, cosine) / sine : 1.0;
    const Vec w = (cosine > -0.9 ? turn : std::numeric_limits<double>::quiet_NaN()) * s;
    // V^-1 of the shift: what `inverse_dexp` is on so(3), turned the other way.
    const Spatial v = inverse_dexp({Vec{}, -w}, {Vec{}, placement.p});
    return {v.w, w};
}

Charts::Charts(const Tables &tables, const std::vector<int> &locked) : tables_(tables) {
    for (const Link &link : tables.links) {
        const int count = velocities[static_cast<int>(link.motion)];
        const auto first = locked.begin() + link.v;
        held_.push_back(std::find(first, first + count, 0) == first + count);
        flat_ = flat_ && !is_curved(link.motion);
    }
}

void Charts::integrate(const double *q, const double *psi, double *moved) const {
    for (std::size_t i = 0; i < held_.size(); ++i) {
        const Link &link = tables_.links[i];
        const double *from = q + link.q, *step = psi + link.v;
        double *to = moved + link.q;
        const int count = coordinates[static_cast<int>(link.motion)];
        if (held_[i]) {
            std::copy(from, from + count, to);
            continue;
        }
        switch (link.motion) {
        case Motion::screw:
        case Motion::translation:
            for (int k = 0; k < count; ++k) to[k] = from[k] + step[k];
            break;
        case Motion::circle:
            turn(from, step[0], to);
            break;
        case Motion::spherical:
            write(quaternion(from) * exponential(vec(step)), to);
            break;
        case Motion::free:
        case Motion::planar: {
            const Spatial twist = twist_of(link.motion, step);
            const Vec p = joint_placement(link, from) * shifted(twist);
            to[0] = p.x, to[1] = p.y;
            if (link.motion == Motion::planar) {
                turn(from + 2, step[2], to + 2);
            } else {
                to[2] = p.z, write(quaternion(from + 3) * exponential(twist.w), to + 3);
            }
            break;
        }
        }
    }
}

void Charts::rate(const double *psi, const double *v, double *rate) const {
    std::copy(v, v + tables_.nv, rate);
    if (flat_) return;
    for (const Link &link : tables_.links) {
        if (!is_curved(link.motion)) continue;
        const Spatial x = twist_of(link.motion, psi + link.v);
        const Spatial y = twist_of(link.motion, v + link.v);
        write(link.motion, inverse_dexp(x, y), rate + link.v);
    }
}

}  // namespace pinloop

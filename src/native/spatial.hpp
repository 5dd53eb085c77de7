// Vectors, rotations, twists and inertias of bodies. All coordinates are those of the world, with
// twists and wrenches at its origin, linear part first: "spatial vectors" in the sense of
// R. Featherstone, Rigid Body Dynamics Algorithms (2008), chapter 2.
#pragma once

#include <cmath>

namespace pinloop {

constexpr double full_turn = 2.0 * 3.14159265358979323846;

struct Vec {
    double x = 0.0, y = 0.0, z = 0.0;
};

inline Vec vec(const double *x) { return {x[0], x[1], x[2]}; }
inline Vec operator+(const Vec &a, const Vec &b) { return {a.x + b.x, a.y + b.y, a.z + b.z}; }
inline Vec operator-(const Vec &a, const Vec &b) { return {a.x - b.x, a.y - b.y, a.z - b.z}; }
inline Vec operator-(const Vec &a) { return {-a.x, -a.y, -a.z}; }
inline Vec operator*(double s, const Vec &a) { return {s * a.x, s * a.y, s * a.z}; }
inline Vec &operator+=(Vec &a, const Vec &b) { return a = a + b; }
inline double dot(const Vec &a, const Vec &b) { return a.x * b.x + a.y * b.y + a.z * b.z; }
inline Vec cross(const Vec &a, const Vec &b) {
    return {a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z, a.x * b.y - a.y * b.x};
}

// A matrix by its columns: of a rotation the axes of a frame.
struct Rotation {
    Vec x{1.0, 0.0, 0.0}, y{0.0, 1.0, 0.0}, z{0.0, 0.0, 1.0};
};

inline Vec operator*(const Rotation &R, const Vec &a) { return a.x * R.x + a.y * R.y + a.z * R.z; }
inline Rotation operator*(const Rotation &A, const Rotation &B) {
    return {A * B.x, A * B.y, A * B.z};
}
inline Rotation transposed(const Rotation &R) {
    return {{R.x.x, R.y.x, R.z.x}, {R.x.y, R.y.y, R.z.y}, {R.x.z, R.y.z, R.z.z}};
}

// Rodrigues' formula for a unit axis, by cosine and sine of the angle.
inline Rotation turned(const Vec &a, double c, double s) {
    const double w = 1.0 - c;
    return {{c + a.x * a.x * w, a.x * a.y * w + a.z * s, a.x * a.z * w - a.y * s},
            {a.x * a.y * w - a.z * s, c + a.y * a.y * w, a.y * a.z * w + a.x * s},
            {a.x * a.z * w + a.y * s, a.y * a.z * w - a.x * s, c + a.z * a.z * w}};
}

// Of a unit quaternion, imaginary part first.
inline Rotation rotation(const double *q) {
    const double x = q[0], y = q[1], z = q[2], w = q[3];
    return {{1 - 2 * (y * y + z * z), 2 * (x * y + w * z), 2 * (x * z - w * y)},
            {2 * (x * y - w * z), 1 - 2 * (x * x + z * z), 2 * (y * z + w * x)},
            {2 * (x * z + w * y), 2 * (y * z - w * x), 1 - 2 * (x * x + y * y)}};
}

// Axes and origin of a frame.
struct Placement {
    Rotation R;
    Vec p;
};

inline Vec operator*(const Placement &A, const Vec &a) { return A.p + A.R * a; }
inline Placement operator*(const Placement &A, const Placement &B) {
    return {A.R * B.R, A * B.p};
}

// A twist or its rate (v, w), or a wrench (force, moment); `v` is that of the world's origin.
struct Spatial {
    Vec v, w;
};

inline Spatial operator+(const Spatial &a, const Spatial &b) { return {a.v + b.v, a.w + b.w}; }
inline Spatial operator-(const Spatial &a, const Spatial &b) { return {a.v - b.v, a.w - b.w}; }
inline Spatial operator*(double s, const Spatial &a) { return {s * a.v, s * a.w}; }
inline Spatial &operator+=(Spatial &a, const Spatial &b) { return a = a + b; }
inline double dot(const Spatial &a, const Spatial &b) { return dot(a.v, b.v) + dot(a.w, b.w); }

// Velocity of a point of what moves by a twist, and the wrench of a force at a point.
inline Vec velocity_at(const Vec &p, const Spatial &twist) { return twist.v + cross(twist.w, p); }
inline Spatial wrench_at(const Vec &p, const Vec &force) { return {force, cross(p, force)}; }

// Rate of a twist `b` that is carried along by `a` (Featherstone, eq. 2.31).
inline Spatial cross(const Spatial &a, const Spatial &b) {
    return {cross(a.w, b.v) + cross(a.v, b.w), cross(a.w, b.w)};
}

// Rate of a wrench `f` that is carried along by `a` (Featherstone, eq. 2.32).
inline Spatial cross_dual(const Spatial &a, const Spatial &f) {
    return {cross(a.w, f.v), cross(a.w, f.w) + cross(a.v, f.v)};
}

// A twist in the axes and at the origin of a frame, seen from the world.
inline Spatial carried(const Placement &at, const Spatial &twist) {
    const Vec w = at.R * twist.w;
    return {at.R * twist.v + cross(at.p, w), w};
}

// The same of a wrench.
inline Spatial carried_wrench(const Placement &at, const Spatial &wrench) {
    const Vec force = at.R * wrench.v;
    return {force, cross(at.p, force) + at.R * wrench.w};
}

// Spatial inertia: mass, first moment `m c`, and moments of inertia about the world's origin.
struct Inertia {
    double m = 0.0;
    Vec h;
    double xx = 0.0, xy = 0.0, yy = 0.0, xz = 0.0, yz = 0.0, zz = 0.0;
};

inline Inertia &operator+=(Inertia &a, const Inertia &b) {
    a.m += b.m, a.h += b.h;
    a.xx += b.xx, a.xy += b.xy, a.yy += b.yy, a.xz += b.xz, a.yz += b.yz, a.zz += b.zz;
    return a;
}

// Momentum of a twist (Featherstone, eq. 2.61).
inline Spatial operator*(const Inertia &Y, const Spatial &a) {
    const Vec Iw{Y.xx * a.w.x + Y.xy * a.w.y + Y.xz * a.w.z,
                 Y.xy * a.w.x + Y.yy * a.w.y + Y.yz * a.w.z,
                 Y.xz * a.w.x + Y.yz * a.w.y + Y.zz * a.w.z};
    return {Y.m * a.v + cross(a.w, Y.h), Iw + cross(Y.h, a.v)};
}

// A body's inertia as robots hold it, about its centre of mass and in its own axes, seen from the
// world: turned, then moved by Steiner's theorem.
inline Inertia carried(const Placement &at, double m, const Vec &com, const double *I) {
    const Rotation own{{I[0], I[1], I[3]}, {I[1], I[2], I[4]}, {I[3], I[4], I[5]}};
    const auto [x, y, z] = at.R * own * transposed(at.R);
    const Vec c = at * com;
    return {m, m * c, x.x + m * (c.y * c.y + c.z * c.z), y.x - m * c.x * c.y,
            y.y + m * (c.x * c.x + c.z * c.z), z.x - m * c.x * c.z, z.y - m * c.y * c.z,
            z.z + m * (c.x * c.x + c.y * c.y)};
}

}  // namespace pinloop

// What both modules take from Python, and steps; names and shapes are in `_kernel.pyi`.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <stdexcept>

#include "spatial.hpp"

namespace pinloop {

template <class T, int dimensions>
using Given = nanobind::ndarray<T, nanobind::ndim<dimensions>, nanobind::c_contig,
                                nanobind::device::cpu>;
using Numbers = Given<const double, 1>;
using Matrix = Given<const double, 2>;
using Room = Given<double, 2>;

inline void require(bool fits, const char *what) {
    if (!fits) throw std::invalid_argument(what);
}

inline Spatial spatial(const double *x) { return {vec(x), vec(x + 3)}; }
inline Placement placement(const double *x) { return {{vec(x), vec(x + 3), vec(x + 6)}, vec(x + 9)}; }
// A whole number in an array, not below one and below another.
inline int number(double x, int least, std::size_t end) {
    require(x >= least && x < static_cast<double>(end), "a link, loop or coordinate that is none");
    return static_cast<int>(x);
}

void bind_steps(nanobind::module_ &module);
void bind_derivatives(nanobind::module_ &module);

}  // namespace pinloop

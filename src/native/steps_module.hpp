// What both modules take from Python, and steps; names and shapes are in `_kernel.pyi`.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <stdexcept>

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

void bind_steps(nanobind::module_ &module);
void bind_derivatives(nanobind::module_ &module);

}  // namespace pinloop

// What both modules take from Python, and steps; names and shapes are in `_kernel.pyi`.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <stdexcept>
#include <tuple>
#include <vector>

#include "tables.hpp"

namespace nb = nanobind;
using namespace nb::literals;

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
inline Placement placement(const double *x) {
    return {{vec(x), vec(x + 3), vec(x + 6)}, vec(x + 9)};
}
// A whole number in an array, not below one and below another.
inline int number(double x, int least, std::size_t end) {
    require(x >= least && x < static_cast<double>(end), "a link, loop or coordinate that is none");
    return static_cast<int>(x);
}

inline void require_below(const std::vector<int> &numbers, std::size_t end) {
    for (int x : numbers) number(x, 0, end);
}
inline End end_of(const double *x, std::size_t links) {
    return {number(x[0], -1, links), placement(x + 1)};
}
template <class Q, class V, class Rate>
void require_state(const Tables &tables, const Q &q, const V &v, const Rate &rate) {
    const std::size_t nq = tables.nq, nv = tables.nv;
    require(q.size() == nq && v.size() == nv && rate.size() == nv, "a state of another robot");
}

template <class Array> std::vector<double> copied(const Array &array) {
    return {array.data(), array.data() + array.size()};
}

// What is made of each line of a table.
template <class Make> auto each(const Matrix &table, const Make &make) {
    std::vector<decltype(make(table.data()))> all;
    for (std::size_t k = 0; k < table.shape(0); ++k) all.push_back(make(&table(k, 0)));
    return all;
}

void bind_steps(nanobind::module_ &module);
void bind_derivatives(nanobind::module_ &module);

}  // namespace pinloop

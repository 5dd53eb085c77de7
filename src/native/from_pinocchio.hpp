// Tables from the objects that Python holds: a `pin.Model` and what ties its joints.
#pragma once

#include <nanobind/nanobind.h>

#include <memory>

#include "tables.hpp"

namespace pinloop {

// The tables of a model, with one row per entry of the loops' rows and per coupling; none if it has
// a joint that the kernel does not know. `_kernel.pyi` says what a loop is.
std::shared_ptr<const Tables> tables_of(nanobind::handle model, nanobind::sequence loops,
                                        nanobind::sequence couplings);

}  // namespace pinloop

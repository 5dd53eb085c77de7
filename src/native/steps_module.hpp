// What Python sees of steps; names and shapes are in `_kernel.pyi`.
#pragma once

#include <nanobind/nanobind.h>

namespace pinloop {

void bind_steps(nanobind::module_ &module);

}  // namespace pinloop

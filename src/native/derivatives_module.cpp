// What Python sees of the derivatives; names and shapes are in `_kernel.pyi`.
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/vector.h>

#include "derivatives.hpp"
#include "steps_module.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace pinloop {

namespace {

void create(Derivatives *derivatives, std::shared_ptr<const Tables> tables,
            const std::vector<int> &rows, int held, const Numbers &units, const Numbers &armature) {
    bool fits = held >= 0 && held <= static_cast<int>(rows.size()) && units.size() == rows.size() &&
                armature.size() == static_cast<std::size_t>(tables->nv);
    for (int row : rows) fits = fits && row >= 0 && row < static_cast<int>(tables->rows.size());
    require(fits, "rows, units or rotors that the tables do not have");
    new (derivatives) Derivatives(tables, rows, held, {units.data(), units.data() + rows.size()},
                                  {armature.data(), armature.data() + armature.size()});
}

bool at(Derivatives &derivatives, const Numbers &q, const Numbers &v, const Numbers &tau,
        const Given<double, 1> &room) {
    const std::size_t nq = derivatives.tables().nq, nv = derivatives.tables().nv;
    require(q.size() == nq && v.size() == nv && tau.size() == nv &&
                room.size() == derivatives.size(), "a state of another robot");
    const nb::gil_scoped_release unlocked;
    return derivatives.at(q.data(), v.data(), tau.data(), room.data());
}

}  // namespace

void bind_derivatives(nb::module_ &module) {
    nb::class_<Derivatives>(module, "Derivatives")
        .def("__init__", &create, "tables"_a, "rows"_a, "held"_a, "units"_a, "armature"_a)
        .def_prop_ro("size", &Derivatives::size)
        .def("at", &at, "q"_a, "v"_a, "tau"_a, "room"_a.noconvert());
}

}  // namespace pinloop

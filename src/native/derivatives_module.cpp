// What Python sees of the derivatives; names and shapes are in `_kernel.pyi`.
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/vector.h>

#include "derivatives.hpp"
#include "steps_module.hpp"

namespace pinloop {

namespace {

void create(Derivatives *derivatives, std::shared_ptr<const Tables> tables,
            const std::vector<int> &rows, int held, const Numbers &units, const Numbers &armature) {
    require(held >= 0 && held <= static_cast<int>(rows.size()) && units.size() == rows.size() &&
                armature.size() == static_cast<std::size_t>(tables->nv),
            "units or rotors that the tables do not have");
    require_below(rows, tables->rows.size());
    new (derivatives) Derivatives(tables, rows, held, copied(units), copied(armature));
}

bool at(Derivatives &derivatives, const Numbers &q, const Numbers &v, const Numbers &tau,
        const Given<double, 1> &room) {
    require_state(derivatives.tables(), q, v, tau);
    require(room.size() == derivatives.size(), "room for another robot");
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

// What Python sees. Names and shapes are in `_kernel.pyi`.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/vector.h>

#include <stdexcept>
#include <string>

#include "dynamics.hpp"
#include "from_pinocchio.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace pinloop {

namespace {

using Numbers = nb::ndarray<const double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Result = nb::ndarray<double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

void hold(Dynamics &dynamics, const std::vector<int> &rows, const std::vector<double> &stale,
          const std::vector<double> &bad, const Numbers &armature) {
    const int most = static_cast<int>(dynamics.tables().rows.size());
    bool fits = stale.size() == rows.size() && bad.size() == rows.size() &&
                static_cast<int>(armature.size()) == dynamics.tables().nv;
    for (int row : rows) fits = fits && row >= 0 && row < most;
    if (!fits) throw std::invalid_argument("rows, pivots or rotors that the tables do not have");
    dynamics.hold(rows, stale, bad, {armature.data(), armature.data() + armature.size()});
}

int acceleration(Dynamics &dynamics, const Numbers &q, const Numbers &v, const Numbers &tau,
                 const Result &a) {
    const std::size_t nq = dynamics.tables().nq, nv = dynamics.tables().nv;
    if (q.size() != nq || v.size() != nv || tau.size() != nv || a.size() != nv) {
        throw std::invalid_argument("the robot has " + std::to_string(nq) + " coordinates and " +
                                    std::to_string(nv) + " velocities");
    }
    const nb::gil_scoped_release unlocked;
    return static_cast<int>(dynamics.acceleration(q.data(), v.data(), tau.data(), a.data()));
}

}  // namespace

}  // namespace pinloop

NB_MODULE(_kernel, module) {
    using namespace pinloop;
    nb::class_<Tables>(module, "Tables");
    module.def("tables_of", &tables_of, "model"_a, "loops"_a);
    nb::class_<Dynamics>(module, "Dynamics")
        .def(nb::init<std::shared_ptr<const Tables>>(), "tables"_a)
        .def("hold", &hold, "rows"_a, "stale"_a, "bad"_a, "armature"_a)
        .def("acceleration", &acceleration, "q"_a, "v"_a, "tau"_a, "a"_a.noconvert())
        .def_prop_ro("multipliers", &Dynamics::multipliers);
}

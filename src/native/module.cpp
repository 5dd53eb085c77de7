// What Python sees. Names and shapes are in `_kernel.pyi`.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/vector.h>

#include <stdexcept>
#include <string>

#include "dynamics.hpp"
#include "from_pinocchio.hpp"
#include "steps_module.hpp"
#include "stop_dynamics.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace pinloop {

namespace {

using Numbers = nb::ndarray<const double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Table = nb::ndarray<const double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
template <std::size_t n>
using Written = nb::ndarray<double, nb::ndim<n>, nb::c_contig, nb::device::cpu>;
using Result = Written<1>;
using Matrix = Written<2>;
using Matrices = Written<3>;

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

void require(bool fits, const char *what) {
    if (!fits) throw std::invalid_argument(what);
}

void enter(StopDynamics &stop, const std::vector<int> &rows, double part,
           const std::vector<int> &pinned, const Numbers &armature, const Table &torques,
           double start) {
    const std::size_t nv = stop.tables().nv;
    bool fits = armature.size() == nv && torques.size() == torque_arrays * nv;
    for (int row : rows) fits = fits && row >= 0 && row < static_cast<int>(stop.tables().rows.size());
    for (int k : pinned) fits = fits && k >= 0 && k < stop.tables().nv;
    require(fits, "rows, velocities, rotors or torques that the tables do not have");
    stop.enter(rows, part, pinned, {armature.data(), armature.data() + nv},
               {torques.data(), torques.data() + torques.size()}, start);
}

bool solve(StopDynamics &stop, double t, const Numbers &q, const Numbers &v, const Numbers &given,
           const Matrix &solution) {
    const std::size_t nq = stop.tables().nq, nv = stop.tables().nv;
    require(q.size() == nq && v.size() == nv && given.size() == nv && solution.size() == 4 * nv,
            "a state of another robot");
    return stop.solve(t, q.data(), v.data(), given.data(), solution.data());
}

std::size_t solve_all(StopDynamics &stop, const Numbers &t, const Table &q, const Table &v,
                      const Table &given, const Matrices &solutions) {
    const std::size_t nq = stop.tables().nq, nv = stop.tables().nv, count = t.size();
    require(q.size() == count * nq && v.size() == count * nv && given.size() == count * nv &&
                solutions.size() == 4 * count * nv,
            "states of another robot");
    const nb::gil_scoped_release unlocked;
    for (std::size_t k = 0; k < count; ++k) {
        if (!stop.solve(t.data()[k], q.data() + k * nq, v.data() + k * nv, given.data() + k * nv,
                        solutions.data() + 4 * k * nv)) {
            return k;
        }
    }
    return count;
}

}  // namespace

}  // namespace pinloop

NB_MODULE(_kernel, module) {
    using namespace pinloop;
    nb::class_<Tables>(module, "Tables");
    module.def("tables_of", &tables_of, "model"_a, "loops"_a, "couplings"_a = nb::tuple());
    nb::class_<Dynamics>(module, "Dynamics")
        .def(nb::init<std::shared_ptr<const Tables>>(), "tables"_a)
        .def("hold", &hold, "rows"_a, "stale"_a, "bad"_a, "armature"_a)
        .def("acceleration", &acceleration, "q"_a, "v"_a, "tau"_a, "a"_a.noconvert())
        .def_prop_ro("multipliers", &Dynamics::multipliers);
    nb::class_<StopDynamics>(module, "StopDynamics")
        .def(nb::init<std::shared_ptr<const Tables>>(), "tables"_a)
        .def("enter", &enter, "rows"_a, "part"_a, "pinned"_a, "armature"_a, "torques"_a, "start"_a)
        .def("solve", &solve, "t"_a, "q"_a, "v"_a, "given"_a, "solution"_a.noconvert())
        .def("solve_all", &solve_all, "t"_a, "q"_a, "v"_a, "given"_a, "solutions"_a.noconvert());
    bind_steps(module);
}

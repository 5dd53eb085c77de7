// What Python sees. Names and shapes are in `_kernel.pyi`.
#include "dynamics.hpp"
#include "steps_module.hpp"
#include "stop_dynamics.hpp"

namespace pinloop {

namespace {

using Terms = std::vector<std::tuple<int, int, int, std::vector<double>>>;

void create_tables(Tables *place, const std::tuple<int, int> &sizes, const Numbers &gravity,
                   const std::tuple<Matrix, Matrix, Matrix, Matrix> &arrays, const Terms &terms) {
    const auto &[links, twists, loops, rows] = arrays;
    Tables tables;
    std::tie(tables.nq, tables.nv) = sizes;
    require(gravity.size() == 3 && links.shape(1) == 31 && loops.shape(1) == 31 &&
                rows.shape(1) == 8 && twists.shape(1) == 6, "tables of other sizes");
    const std::size_t nq = std::max(tables.nq, 0), nv = std::max(tables.nv, 0);
    tables.gravity = vec(gravity.data());
    int v = 0;
    for (std::size_t k = 0; k < links.shape(0); ++k) {
        const double *x = links.data() + 31 * k;
        const int motion = number(x[1], 0, coordinates.size());
        const int q = number(x[2], 0, nq + 1 - coordinates[motion]);
        tables.links.push_back({number(x[0], -1, k), static_cast<Motion>(motion), q, v,
                                placement(x + 3), spatial(x + 15), x[21], vec(x + 22),
                                {x[25], x[26], x[27], x[28], x[29], x[30]}});
        v += velocities[motion];
    }
    tables.twists = each(twists, spatial);
    require(v == tables.nv && twists.shape(0) == nv, "links with other velocities");
    tables.loops = each(loops, [end = tables.links.size()](const double *x) {
        const FreeMotion free{number(x[26], 0, 4), vec(x + 27), x[30]};
        return Loop{end_of(x, end), end_of(x + 13, end), free};
    });
    tables.rows = each(rows, [end = tables.loops.size()](const double *x) {
        const auto tie = static_cast<Tie>(number(x[1], 0, static_cast<int>(Tie::angle) + 1));
        return Row{number(x[0], -1, end), tie, spatial(x + 2), {}};
    });
    for (const auto &[row, in_q, in_v, polynomial] : terms) {
        tables.rows.at(row).terms.push_back({number(in_q, 0, nq), number(in_v, 0, nv), polynomial});
    }
    for (std::size_t i = 0; i < tables.links.size(); ++i) {
        const int last = tables.last_velocity(static_cast<int>(i));
        tables.before.push_back(tables.last_velocity(tables.links[i].parent));
        for (int k = tables.links[i].v; k < last; ++k) tables.before.push_back(k);
        tables.link_of.resize(last + 1, static_cast<int>(i));
    }
    new (place) Tables(std::move(tables));
}

void hold(Dynamics &dynamics, const std::vector<int> &rows, const std::vector<double> &stale,
          const std::vector<double> &bad, const Numbers &armature) {
    const std::size_t most = dynamics.tables().rows.size(), nv = dynamics.tables().nv;
    require(stale.size() == rows.size() && bad.size() == rows.size() && armature.size() == nv,
            "pivots or rotors that the tables do not have");
    require_below(rows, most);
    dynamics.hold(rows, stale, bad, copied(armature));
}

int acceleration(Dynamics &dynamics, const Numbers &q, const Numbers &v, const Numbers &tau,
                 const Given<double, 1> &a) {
    require_state(dynamics.tables(), q, v, tau), require_state(dynamics.tables(), q, v, a);
    const nb::gil_scoped_release unlocked;
    return static_cast<int>(dynamics.acceleration(q.data(), v.data(), tau.data(), a.data()));
}

void enter(StopDynamics &stop, const std::vector<int> &rows, double part, int spare,
           const std::vector<int> &pinned, const Numbers &armature, const Matrix &torques,
           double start, const Matrix &bounds) {
    const std::size_t nv = stop.tables().nv;
    require(armature.size() == nv && torques.size() == torque_arrays * nv && bounds.shape(1) == 4,
            "rotors or torques that the tables do not have");
    require_below(rows, stop.tables().rows.size()), require_below(pinned, nv);
    stop.enter(rows, part, spare, pinned, copied(armature), copied(torques), start,
               each(bounds, [nv](const double *x) {
                   return Bound{number(x[0], 0, 4 * nv), x[1], x[2], x[3], 0.0, 0.0, 0.0};
               }));
}

std::size_t solve_all(StopDynamics &stop, const Numbers &t, const Matrix &q, const Matrix &v,
                      const Matrix &given, const Given<double, 3> &solutions) {
    const std::size_t nq = stop.tables().nq, nv = stop.tables().nv, count = t.size();
    require(q.size() == count * nq && v.size() == count * nv && given.size() == count * nv &&
                solutions.size() == 4 * count * nv, "states of another robot");
    const nb::gil_scoped_release unlocked;
    std::size_t k = 0;
    while (k < count && stop.solve(t.data()[k], q.data() + k * nq, v.data() + k * nv,
                                   given.data() + k * nv, solutions.data() + 4 * k * nv)) ++k;
    return k;
}

// Per state and row J, gamma, and how far it is open.
void rows_at(const Tables &tables, const Matrix &q, const Matrix &v, const Given<double, 3> &room) {
    const std::size_t count = q.shape(0), m = tables.rows.size(), nq = tables.nq, nv = tables.nv;
    require(q.size() == count * nq && v.size() == count * nv && room.size() == count * m * (nv + 2),
            "states of another robot");
    std::vector<int> all;
    for (std::size_t i = 0; i < m; ++i) all.push_back(static_cast<int>(i));
    Tree tree(tables);
    HeldRows rows(tables, all);
    double *x = room.data();
    for (std::size_t k = 0; k < count; ++k) {
        tree.place(&q(k, 0)), tree.move(&v(k, 0)), rows.update(tree, &q(k, 0), &v(k, 0), true);
        for (std::size_t i = 0; i < m; ++i)
            x = std::copy_n(&rows.J[i * nv], nv, x), *x++ = rows.gamma[i], *x++ = rows.residual[i];
    }
}

}  // namespace

}  // namespace pinloop

NB_MODULE(_kernel, module) {
    using namespace pinloop;
    // What is told at exit are robots that caches of a program still hold: it is no leak.
    nb::set_leak_warnings(false);
    module.attr("SOURCES_DIGEST") = SOURCES_DIGEST;
    nb::class_<Tables>(module, "Tables")
        .def("__init__", &create_tables, "sizes"_a, "gravity"_a, "arrays"_a, "terms"_a);
    nb::class_<Dynamics>(module, "Dynamics")
        .def(nb::init<std::shared_ptr<const Tables>>(), "tables"_a)
        .def("hold", &hold, "rows"_a, "stale"_a, "bad"_a, "armature"_a)
        .def("acceleration", &acceleration, "q"_a, "v"_a, "tau"_a, "a"_a.noconvert())
        .def_prop_ro("multipliers", &Dynamics::multipliers);
    nb::class_<StopDynamics>(module, "StopDynamics")
        .def(nb::init<std::shared_ptr<const Tables>>(), "tables"_a)
        .def("enter", &enter, "rows"_a, "part"_a, "spare"_a, "pinned"_a, "armature"_a, "torques"_a,
             "start"_a, "bounds"_a)
        .def("solve_all", &solve_all, "t"_a, "q"_a, "v"_a, "given"_a, "solutions"_a.noconvert())
        .def_prop_ro("multipliers", &StopDynamics::multipliers);
    module.def("rows_at", &rows_at, "tables"_a, "q"_a, "v"_a, "room"_a.noconvert());
    bind_steps(module);
    bind_derivatives(module);
}

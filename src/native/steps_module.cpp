#include "steps_module.hpp"

#include <nanobind/stl/map.h>
#include <nanobind/stl/string.h>

#include "stop_steps.hpp"

namespace pinloop {

namespace {

// The block that is kept, and what is known of regular poses.
using Known = std::tuple<std::vector<int>, std::vector<int>, double, double, int, double, double>;

using Arrays = std::tuple<Matrix, Numbers, Matrix>;

Tableau checked(const Arrays &tableau, const Tables &tables, const Numbers &unit) {
    const auto &[a, b, errors] = tableau;
    require(a.size() == b.size() * b.size() && b.size() > 0, "a tableau of these sizes is none");
    require(errors.shape(0) <= 2 && errors.size() == errors.shape(0) * (b.size() + 1),
            "error estimates have other sizes than the tableau");
    require(tables.nv > 0, "nothing moves");
    require(unit.size() == static_cast<std::size_t>(tables.nv), "one unit per velocity");
    return {copied(a), copied(b), copied(errors)};
}

void create(Steps *steps, std::shared_ptr<const Tables> tables, const Arrays &tableau,
            const Settings &settings, const Numbers &unit, const std::vector<int> &locked) {
    const Tableau copy = checked(tableau, *tables, unit);
    require(locked.size() == unit.size(), "a mark per velocity");
    new (steps) Steps(tables, copy, settings, copied(unit), locked);
}

void create_for_stops(StopSteps *steps, std::shared_ptr<StopDynamics> dynamics,
                      const Arrays &tableau, const Settings &settings, const Numbers &unit,
                      const std::tuple<Matrix, Matrix, Matrix> &dense) {
    const auto &[inside, powers, bernstein] = dense;
    const std::size_t size = powers.shape(0);
    require(dynamics->tables().nq == dynamics->tables().nv, "joints that are curved");
    require(size >= 5 && powers.size() == size * size && inside.shape(1) == 2 + 2 * size &&
                bernstein.size() == (size + 1) * (size + 1), "dense output of other sizes");
    for (std::size_t k = 0; k < inside.shape(0); ++k) number(inside(k, 1), 5, size);
    Dense copies{static_cast<int>(size), copied(inside), copied(powers), copied(bernstein)};
    new (steps) StopSteps(dynamics, checked(tableau, dynamics->tables(), unit), settings,
                          copied(unit), std::move(copies));
}

// Per line column, whether it is a speed, sign, level and its rate; and what is pinned.
void watch(StopSteps &steps, const Matrix &table, const std::vector<int> &pinned, double tiny,
           double slow) {
    require(table.shape(1) == 5, "five numbers of each that is watched");
    if (steps.projector()) steps.projector()->lock(pinned);
    const auto line = [nv = steps.tables().nv](const double *x) {
        return Watched{number(x[0], 0, nv), x[1] != 0.0, x[2], x[3], x[4]};
    };
    steps.watch(each(table, line), tiny, slow);
}

// Per velocity a constant torque, a stiffness and a damping; and lines between points of links:
// link and point, the same again, stiffness, length and damping; forces and axes: see `loads.hpp`.
void load(Steps &steps, const Matrix &terms, const Matrix &lines, const Matrix &pushes,
          const Matrix &axes) {
    const std::size_t nv = steps.tables().nv, end = steps.tables().links.size();
    require(terms.size() == 3 * nv && terms.shape(0) == 3 && lines.shape(1) == 11 &&
                pushes.shape(1) == 8 && axes.shape(1) == 37, "forces on another robot");
    const double *x = terms.data();
    Loads loads{{x, x + nv}, {x + nv, x + 2 * nv}, {x + 2 * nv, x + 3 * nv}, {}, {}, {}};
    const auto link = [end](double x) { return number(x, -1, end); };
    loads.lines = each(lines, [&link](const double *x) {
        return Line{link(x[0]), link(x[4]), vec(x + 1), vec(x + 5), x[8], x[9], x[10]};
    });
    loads.pushes = each(pushes, [&link](const double *x) {
        return Push{link(x[0]), vec(x + 1), vec(x + 4), x[7] != 0.0};
    });
    loads.axes = each(axes, [end](const double *x) {
        return Axis{end_of(x, end), end_of(x + 13, end), spatial(x + 26), x[32] != 0.0,
                    x[33], x[34], x[35], x[36]};
    });
    steps.dynamics().load(std::move(loads));
}

void project(Steps &steps, std::shared_ptr<const Tables> tables, const Settings &settings,
             const Numbers &unit, const Numbers &rotors) {
    const std::size_t nv = steps.tables().nv;
    require(tables->nv == steps.tables().nv && unit.size() == nv && rotors.size() == nv,
            "rows, units or rotors of another robot");
    steps.project(std::make_unique<Projector>(tables, settings, copied(unit), copied(rotors)));
}

// What Python knows of the projections so far.
void recall(Steps &steps, const Known &known) {
    const auto &[rows, columns, share, left, independent, regularity, best] = known;
    Projector *projector = steps.projector();
    require(projector != nullptr && rows.size() == columns.size(), "there is no such block");
    require_below(rows, projector->size()), require_below(columns, steps.tables().nv);
    projector->begin({rows, columns, share, left}, independent, regularity, best);
}

// The block that is kept by now.
std::tuple<std::vector<int>, std::vector<int>, double, double> block(Steps &steps) {
    require(steps.projector() != nullptr, "nothing is projected");
    const Block &block = steps.projector()->block();
    return {block.rows, block.columns, block.share, block.left};
}

// Whether a state could be put on the manifold, in its place, and was moved; what is known then.
auto close(Steps &steps, const Given<double, 1> &q, const Given<double, 1> &v) {
    const Projector *projector = steps.projector();
    require(projector != nullptr, "nothing is projected"), require_state(steps.tables(), q, v, v);
    const bool done = steps.close(q.data(), v.data());
    return std::tuple(done, projector->moved, projector->regularity, projector->best);
}

// Steps from a state, into arrays with room for some of them.
int take(Steps &steps, const std::tuple<double, double, double, double, double> &start,
         const std::tuple<Numbers, Numbers, Numbers> &state, const std::vector<double> &times,
         const std::vector<int> &asked, const std::tuple<Room, Given<std::int64_t, 2>> &notes,
         const std::tuple<Room, Room, Room, Room, Room> &states, const Given<double, 3> &bends) {
    const auto &[q, v, a] = state;
    const auto &[numbers, counts] = notes;
    const auto &[q1, v1, a1, psi, before] = states;
    const std::size_t nq = steps.tables().nq, nv = steps.tables().nv, most = numbers.shape(0);
    const auto has = [most](const auto &room, std::size_t n) {
        return room.shape(0) == most && room.shape(1) == n;
    };
    require_state(steps.tables(), q, v, a);
    require(has(numbers, 5) && has(counts, 3) && has(q1, nq) && has(v1, nv) && has(a1, nv) &&
                has(psi, nv) && has(before, nv) && bends.size() == most * steps.inside() * nv,
            "room for states of another robot");
    const auto [t, h, error, end, crawls] = start;
    Course course{t, h, error, end, crawls, times, std::vector<char>(most)};
    for (int number : asked) course.asked.at(number) = 1;
    const Taken taken{static_cast<int>(most), numbers.data(), counts.data(), q1.data(), v1.data(),
                      a1.data(), psi.data(), before.data(), bends.data()};
    const nb::gil_scoped_release unlocked;
    return steps.take(std::move(course), {q.data(), v.data(), a.data()}, taken);
}

}  // namespace

void bind_steps(nb::module_ &module) {
    nb::class_<Steps>(module, "Steps")
        .def("__init__", &create, "tables"_a, "tableau"_a, "settings"_a, "unit"_a, "locked"_a)
        .def_prop_ro("dynamics", &Steps::dynamics, nb::rv_policy::reference_internal)
        .def("load", &load, "terms"_a, "lines"_a, "pushes"_a, "axes"_a)
        .def("project", &project, "tables"_a, "settings"_a, "unit"_a, "rotors"_a)
        .def("block", &block).def("recall", &recall, "known"_a)
        .def("close", &close, "q"_a.noconvert(), "v"_a.noconvert())
        .def("take", &take, "start"_a, "state"_a, "times"_a, "asked"_a, "notes"_a, "states"_a,
             "bends"_a);
    nb::class_<StopSteps, Steps>(module, "StopSteps")
        .def("__init__", &create_for_stops, "dynamics"_a, "tableau"_a, "settings"_a, "unit"_a,
             "dense"_a).def("watch", &watch, "table"_a, "pinned"_a, "tiny"_a, "slow"_a)
        .def_prop_ro("hits", &StopSteps::hits);
}

}  // namespace pinloop

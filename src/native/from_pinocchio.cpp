#include "from_pinocchio.hpp"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <optional>
#include <stdexcept>
#include <string>

namespace nb = nanobind;

namespace pinloop {

namespace {

// A joint of the kernel, and its place in the link that carries it.
struct Part {
    Motion motion;
    Placement place;
    Spatial axis;
};
using Chain = std::vector<Part>;

// All numbers of an array, row by row.
std::vector<double> numbers(nb::handle array) {
    const nb::object flat = nb::module_::import_("numpy").attr("ravel")(array);
    return nb::cast<std::vector<double>>(flat.attr("tolist")());
}

Vec vector(nb::handle array) {
    const std::vector<double> x = numbers(array);
    return {x.at(0), x.at(1), x.at(2)};
}

Placement placement(nb::handle se3) {
    const std::vector<double> R = numbers(se3.attr("rotation"));
    return {{{R.at(0), R.at(3), R.at(6)}, {R.at(1), R.at(4), R.at(7)}, {R.at(2), R.at(5), R.at(8)}},
            vector(se3.attr("translation"))};
}

// Twists of a joint in its neutral configuration, in the link that it carries.
std::vector<Spatial> twists_of(nb::handle joint, nb::handle neutral) {
    const nb::object data = joint.attr("createData")();
    joint.attr("calc")(data, neutral);
    const std::vector<double> S = numbers(data.attr("S"));  // (6, k)
    const std::size_t k = S.size() / 6;
    std::vector<Spatial> twists;
    for (std::size_t i = 0; i < k; ++i) {
        twists.push_back({{S[i], S[k + i], S[2 * k + i]}, {S[3 * k + i], S[4 * k + i], S[5 * k + i]}});
    }
    return twists;
}

// A joint of Pinocchio as joints of the kernel, one after the other.
std::optional<Chain> chain_of(nb::handle joint, Placement place, nb::handle neutral) {
    const auto name = nb::cast<std::string>(joint.attr("shortname")());
    const auto nq = nb::cast<int>(joint.attr("nq")), nv = nb::cast<int>(joint.attr("nv"));
    if (name == "JointModelComposite") {
        Chain chain;
        const nb::object composite = joint.attr("extract")();
        const nb::object parts = composite.attr("joints"), places = composite.attr("jointPlacements");
        for (std::size_t i = 0; i < nb::len(parts); ++i) {
            const auto part = chain_of(parts[i], place * placement(places[i]), neutral);
            if (!part) return std::nullopt;
            chain.insert(chain.end(), part->begin(), part->end());
            place = Placement{};
        }
        return chain;
    }
    if (name == "JointModelTranslation") return Chain{{Motion::translation, place, {}}};
    if (name == "JointModelSpherical") return Chain{{Motion::spherical, place, {}}};
    if (name == "JointModelFreeFlyer") return Chain{{Motion::free, place, {}}};
    if (name == "JointModelPlanar") return Chain{{Motion::planar, place, {}}};
    const bool is_product = name == "JointModelUniversal" || name == "JointModelSphericalZYX";
    if (!is_product && !(nv == 1 && (nq == 1 || nq == 2))) return std::nullopt;
    // Twists of a product of hinges turn with its coordinates: at zero they are the axes.
    Chain chain;
    for (const Spatial &axis : twists_of(joint, neutral)) {
        chain.push_back({nq == nv ? Motion::screw : Motion::circle, place, axis});
        place = Placement{};
    }
    return chain;
}

// The links of a model; per joint of it the link that it carries. Empty if a joint is not known.
std::vector<int> add_tree(Tables &tables, nb::handle model) {
    const nb::object neutral = nb::module_::import_("pinocchio").attr("neutral")(model);
    const auto joints = nb::cast<int>(model.attr("njoints"));
    tables.nq = nb::cast<int>(model.attr("nq"));
    tables.gravity = vector(model.attr("gravity").attr("linear"));
    std::vector<int> carried{-1};
    for (int number = 1; number < joints; ++number) {
        const nb::object joint = model.attr("joints")[number];
        const auto chain = chain_of(joint, placement(model.attr("jointPlacements")[number]), neutral);
        if (!chain) return {};
        int parent = carried.at(nb::cast<int>(model.attr("parents")[number]));
        int q = nb::cast<int>(joint.attr("idx_q"));
        for (const Part &part : *chain) {
            tables.links.push_back({parent, part.motion, q, tables.nv, part.place, part.axis, 0.0,
                                    Vec{}, {}});
            parent = static_cast<int>(tables.links.size()) - 1;
            q += coordinates[static_cast<int>(part.motion)];
            tables.nv += velocities[static_cast<int>(part.motion)];
        }
        // The last link of the chain is the body, the others are massless.
        const nb::object body = model.attr("inertias")[number];
        const std::vector<double> I = numbers(body.attr("inertia"));
        Link &link = tables.links.back();
        link.mass = nb::cast<double>(body.attr("mass"));
        link.com = vector(body.attr("lever"));
        link.inertia = {I.at(0), I.at(1), I.at(4), I.at(2), I.at(5), I.at(8)};
        carried.push_back(parent);
    }
    return carried;
}

}  // namespace

std::shared_ptr<const Tables> tables_of(nb::handle model, nb::sequence loops,
                                        nb::sequence couplings) {
    auto tables = std::make_shared<Tables>();
    const std::vector<int> &carried = tables->carried = add_tree(*tables, model);
    if (carried.empty()) return nullptr;
    for (const nb::handle loop : loops) {
        const int number = static_cast<int>(tables->loops.size());
        tables->loops.push_back({carried.at(nb::cast<int>(loop[0])), carried.at(nb::cast<int>(loop[2])),
                                 placement(loop[1]), placement(loop[3])});
        const auto is_point = nb::cast<bool>(loop[5]);
        for (const nb::handle along : nb::borrow<nb::sequence>(loop[4])) {
            const std::vector<double> s = numbers(along);
            tables->rows.push_back(
                {number, is_point, {{s.at(0), s.at(1), s.at(2)}, {s.at(3), s.at(4), s.at(5)}}, {}});
        }
    }
    for (const nb::handle coupling : couplings) {
        Row row{-1, false, {}, {}};
        for (const nb::handle term : nb::borrow<nb::sequence>(coupling)) {
            const auto q = nb::cast<int>(term[0]), v = nb::cast<int>(term[1]);
            if (q < 0 || q >= tables->nq || v < 0 || v >= tables->nv) {
                throw std::out_of_range("a coupling of coordinates that the model does not have");
            }
            row.terms.push_back({q, v, numbers(term[2])});
        }
        tables->rows.push_back(std::move(row));
    }
    if (tables->nv != nb::cast<int>(model.attr("nv"))) {
        throw std::logic_error("the kernel counts other velocities than the model has");
    }
    tables->complete();
    return tables;
}

}  // namespace pinloop

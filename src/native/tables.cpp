#include "tables.hpp"

namespace pinloop {

namespace {

// Twists of a joint in the link that it carries: unit vectors, or the axis.
std::vector<Spatial> twists_of(const Link &link) {
    const Vec x{1, 0, 0}, y{0, 1, 0}, z{0, 0, 1}, o;
    switch (link.motion) {
    case Motion::screw:
    case Motion::circle:
        return {link.axis};
    case Motion::translation:
        return {{x, o}, {y, o}, {z, o}};
    case Motion::spherical:
        return {{o, x}, {o, y}, {o, z}};
    case Motion::free:
        return {{x, o}, {y, o}, {z, o}, {o, x}, {o, y}, {o, z}};
    case Motion::planar:
        return {{x, o}, {y, o}, {o, z}};
    }
    return {};
}

}  // namespace

int Tables::last_velocity(int link) const {
    return link < 0 ? -1 : links[link].v + velocities[static_cast<int>(links[link].motion)] - 1;
}

void Tables::complete() {
    for (std::size_t i = 0; i < links.size(); ++i) {
        int last = last_velocity(links[i].parent);
        for (const Spatial &twist : twists_of(links[i])) {
            twists.push_back(twist);
            link_of.push_back(static_cast<int>(i));
            before.push_back(last);
            last = static_cast<int>(before.size()) - 1;
        }
    }
}

}  // namespace pinloop

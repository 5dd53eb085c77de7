// A robot as tables: what Python takes from a `pin.Model` and from the rows of its loops. Nothing
// of it changes once it is made, so that any number of threads may look at it.
#pragma once

#include <array>
#include <map>
#include <string>
#include <vector>

#include "spatial.hpp"

namespace pinloop {

using Settings = std::map<std::string, double>;

// How a joint moves. Its velocities are coefficients of twists that are constant in the frame of
// the link that it carries; a joint for which they are not is a chain of joints and massless links.
enum class Motion : int {
    screw,        // along and about an axis by one coordinate: hinges, slides, screws
    circle,       // a hinge by cosine and sine of its angle
    translation,  // three coordinates
    spherical,    // a quaternion; angular velocity of the link
    free,         // a position and a quaternion; twist of the link
    planar,       // two positions, cosine and sine; twist of the link
};

constexpr std::array<int, 6> coordinates{1, 2, 3, 4, 7, 4}, velocities{1, 1, 3, 3, 6, 3};

// A joint and the link that it carries.
struct Link {
    int parent;       // link that carries the joint, -1 for the world
    Motion motion;
    int q, v;         // its first coordinate and velocity
    Placement joint;  // place of the joint in the link that carries it
    Spatial axis;     // its twist, for motions with one velocity
    double mass;
    Vec com;
    std::array<double, 6> inertia;  // xx, xy, yy, xz, yz, zz about the centre of mass
};

// What a pair whose motions form a group leaves free.
struct FreeMotion {
    int turns = 0;       // free rotations: 0, 1 about z, 3
    Vec slides;          // 1 along axes of A along which B may slide, else 0
    double pitch = 0.0;  // advance along z per radian
};

// A frame in a link.
struct End {
    int link;
    Placement at;
};

// Frames A and B of a joint that closes a loop, and what it leaves free.
struct Loop {
    End a, b;
    FreeMotion free;
};

// A polynomial of one coordinate, the constant first.
struct Term {
    int q, v;
    std::vector<double> polynomial;
};

// What a row of a loop takes of the motion of B relative to A.
enum class Tie : int {
    twist,   // a component of the twist, in the axes of B
    point,   // a component of the shift of B's origin from A's, in the axes of B
    offset,  // a coordinate of B's origin in A
    rod,     // the distance of the origins: a weight, and that times the length
    angle,   // between z of A and x of B, its cosine: a weight of turning
};

// A constraint row: `J a + gamma = 0`, of a loop or a coupling.
struct Row {
    int loop;                 // -1 for a coupling
    Tie tie;
    Spatial along;            // component or weights, see `Tie`
    std::vector<Term> terms;  // of a coupling, whose sum is zero
};

struct Tables {
    int nq = 0, nv = 0;
    std::vector<Link> links;
    std::vector<Spatial> twists;  // per velocity, in its link
    std::vector<int> link_of;     // per velocity
    std::vector<int> before;      // per velocity the next one towards the root, -1 for none
    std::vector<Loop> loops;
    std::vector<Row> rows;
    Vec gravity;

    // The last velocity on the way from the root to a link, -1 for none.
    int last_velocity(int link) const {
        return link < 0 ? -1 : links[link].v + velocities[static_cast<int>(links[link].motion)] - 1;
    }
};

}  // namespace pinloop

// Derivatives of accelerations and reactions by positions, velocities and torques: those of
// `dynamics/derivatives.py`, where it says what is differentiated, if rows agree with each other.
#pragma once

#include <memory>
#include <vector>

#include "dynamics.hpp"

// Four numbers at once where the processor can; the same bits as one after the other.
#if defined(__x86_64__) && defined(__gnu_linux__) && defined(__GLIBC__) && !defined(__clang__)
#define PINLOOP_WIDE __attribute__((target_clones("avx2", "default")))
#else
#define PINLOOP_WIDE
#endif

namespace pinloop {

// Where to write, one after the other; k rows hold the robot, of all that there are.
struct Derived {
    double *slopes;     // (3 nv + k, width): of all by positions, velocities, torques and rows
    double *a;          // (nv)
    double *reactions;  // (rows + locked), of which the smallest
    double *shared;     // (rows + locked) what others may take of a reaction
    double *rates;      // (rows, nv): of J v by positions
    double *J;          // (rows, nv)
};

// Response to a missing torque or rate, and how much of it is missing by a position and a velocity.
struct Part {
    const double *response;
    double q, v;
};

// Numbers one after another for which compilers take registers: four of them, or thrice.
struct Four {
    double a = 0.0, b = 0.0, c = 0.0, d = 0.0;
    void get(const double *x) { a = x[0], b = x[1], c = x[2], d = x[3]; }
    void take(double f, const double *x) {
        a -= f * x[0], b -= f * x[1], c -= f * x[2], d -= f * x[3];
    }
    void put(double *x) const { x[0] = a, x[1] = b, x[2] = c, x[3] = d; }
};
struct Twelve {
    Four a, b, c;
    void get(const double *x) { a.get(x), b.get(x + 4), c.get(x + 8); }
    void take(double f, const double *x) { a.take(f, x), b.take(f, x + 4), c.take(f, x + 8); }
    void put(double *x) const { a.put(x), b.put(x + 4), c.put(x + 8); }
};
inline std::size_t fours(std::size_t count) { return (count + 3) / 4 * 4; }

// Take rows times factors.
void subtract(double *to, std::size_t count, const double *factors, std::size_t step,
              const double *rows, std::size_t length, std::size_t many);

// Of a subtree: its momentum, and what r x (w x v) of its mass are for unit vectors w; doubled.
struct Coriolis {
    Vec p;
    Rotation N{{}, {}, {}};
};

// For one thread at a time. Nothing is allocated after construction.
class Derivatives {
  public:
    // The first `held` rows hold the robot, the others depend on them; units of all multipliers;
    // rotors as in `Dynamics`, infinite where a velocity is locked.
    Derivatives(std::shared_ptr<const Tables> tables, const std::vector<int> &rows, int held,
                std::vector<double> units, const std::vector<double> &armature);

    // False where other rows had better be held, or rows do not agree.
    bool at(const double *q, const double *v, const double *tau, double *room);
    std::size_t size() const {  // numbers that `at` writes
        return n_ + 2 * (m_ + locked()) + (3 * n_ + held_) * width_ + 2 * n_ * m_;
    }
    const Tables &tables() const { return dynamics_.tables(); }

  private:
    // Rows of one loop, and velocities that move A alone, 1, or B alone, -1.
    struct Tied {
        int loop;
        std::vector<int> rows;
        std::vector<std::pair<int, double>> sides;
        Spatial wrench;  // of its rows on B
    };
    // What the links behind one add, as they move otherwise than it does, and what does not turn.
    struct Behind {
        Coriolis coriolis;
        Spatial wrench, still;
    };

    int locked() const { return static_cast<int>(dynamics_.given_.size()); }
    void tie(int row);
    bool invert();
    bool spread(const double *a);
    void accelerate(const double *a);
    void weigh(Tied &tied, const double *lam);
    void differentiate_loads();
    void differentiate_loop(const Tied &tied);
    void differentiate_couplings(const double *q, const double *v, const Derived &to);
    void combine(double *slopes);
    void write_reactions(const double *tau, const Derived &to) const;
    Spatial gained(int link) const { return link < 0 ? Spatial{} : gained_[link]; }
    const double *line(std::size_t row) const {
        return row < held_ ? &dynamics_.rows_->J[row * n_] : &others_.J[(row - held_) * n_];
    }

    Dynamics dynamics_;
    Tree &tree_;
    std::vector<int> numbers_;  // of the rows
    HeldRows others_;
    std::vector<double> units_;
    std::size_t n_, m_, held_, width_, columns_;
    std::vector<Tied> tied_;
    std::vector<std::vector<int>> chains_, related_, touching_;  // per velocity
    std::vector<Spatial> gained_, turn_, bend_, rate_;
    std::vector<Behind> behind_;
    std::vector<Part> parts_;
    // By each position or velocity: loads; per row its acceleration by both, its rate by positions.
    std::vector<double> load_q_, load_v_, rows_, motions_, covectors_, moved_, shared_;
    std::vector<double> basis_, roots_;  // T and R^-1; L'^-1
    std::vector<double> gram_, dependence_, rests_, spread_, sizes_;
    double *responses_ = nullptr;  // where they are written
};

}  // namespace pinloop

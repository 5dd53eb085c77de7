"""Every number below which something counts as nothing, equal, closed, dependent or at rest.

A decision that is made in several places uses one named value. The text below each gives its unit
and what it decides; the table of `docs/tolerances.md` is made of that. A unit of 1 marks a fraction
of what the text names; "lengths" are characteristic lengths of the robot. Defaults of the
accuracies that users choose are here, too; tableaux of integrators and physical data are not.
"""

from __future__ import annotations

# -- numbers --------------------------------------------------------------------------------------

TINY = 1e-300
"""any: keeps a quotient finite whose divisor is zero, and changes no other"""
SAME = 1e-9
"""1: fraction by which numbers computed in two ways may differ and still be the same"""
SAME_PLACE = 1e-9
"""m: points of a file that are closer together are one"""
SAME_INSTANT = 1e-9
"""s: events that are closer together are simultaneous"""
COINCIDENT = 1e-12
"""rad, m: frames, axes and values that differ by less coincide"""
LAST_BITS = 1e-14
"""1: relative rounding error of a few operations"""
TIME_SUM = 1e-12
"""1: relative error of sums of time steps"""
REAL_ROOT = 1e-9
"""1: imaginary part up to which a root of a polynomial is real: double ones are no more accurate"""
NO_DIRECTION = 1e-9
"""1: a vector that is shorter, in the unit that it is given in, has no direction"""
ROTATION = 1e-6
"""1: how far a quaternion or a matrix may be from a rotation: files have few digits"""
ROTATION_DUST = 1e-15
"""1: entries of a rotation that are only rounding and are not written"""
DIFFERENCE_STEP = 1e-6
"""rad, m: half width of central differences; their error is its square or 1e-10"""
SLOPE_STEP = 2e-3
"""rad, m: the same for derivatives by differences of fourth order"""
SLOPE_TIME = 1e-4
"""s: the same for derivatives by time"""
INPUT_STEP = 1e-5
"""1: part of a number of brakes, drives or plan, by which laws linear in it are differentiated"""
FOLLOWED_JOINTS = 1e-6
"""1: how far motions at unit speed may be from what loops allow, and still follow from others"""
ONE_CAUSE = 1e-6
"""1: part by which shifts of an instant, or accelerations there, differ and are the same"""
SENSITIVE_INTEGRAL = 1e-7
"""1: part of an integral over a stop that may be missing where it is differentiated"""
FORWARD_STEP = 1e-7
"""rad, lengths: width of one-sided differences"""
SPEED_STEP = 3e-11
"""rad/s, lengths/s: the least width of those in a velocity: friction may turn within 1e-9"""
COMPLEX_STEP = 1e-30
"""m: step in the imaginary direction, where a derivative has no difference to round"""
INTEGRATION = 1e-8
"""1, rad, m: default relative and absolute accuracy of integrators with step control"""
LEAST_STEP = 1e-12
"""s: default of the smallest step of integrators"""
LEAST_ERROR = 1e-10
"""1: error over what is allowed, below which a step does not grow further"""
SOLVED_STEP = 1e-13
"""1, rad, m: tolerance to which an implicit step of fixed size is solved"""

RETRACED = 1e-8
"""rad, lengths: how far a step of a run may be off that is computed again for its tangent; also of
its speed as a fraction, and ten times the method's tolerances if those are more"""
GUARD_ZERO = 1e-9
"""1: part of the largest value of a guard that is its zero, where sensitivities look at it"""
SHALLOW = 1e-3
"""1: part of its range by which a guard turns back beyond zero, or before it, where an event is
about not to happen, or to happen"""

# -- ranks ----------------------------------------------------------------------------------------

RANK = 1e-9
"""1: fraction of the largest singular value below which others are zero: rows, twists, motions"""
SCALED_RANK = 1e-8
"""1: the same for Jacobians at configurations that were closed by iteration"""
SCALED_NOISE = 1e-9
"""1: singular values of scaled Jacobians that are rounding even if all are"""
EQUAL_SPACES = 0.1 * RANK
"""1: entries of projectors on the same subspace differ by less. Less than makes a direction
independent: what is taken for equal must not add to a sum. Planes of linkages that hang on each
other are no more parallel than their file has digits"""
LEAST_SQUARES = 1e-10
"""1: fraction of the largest singular value below which least squares drop a direction"""
GRAM_RANK = 1e-15
"""1: the same for the damped gram matrix of assembly, which is regular by its damping"""
ROW_NOISE = 1e-12
"""1: rounding of rows of size one"""
ROUNDED_ROWS = 1e-12
"""1: how far rows may contradict each other, or be from depending on each other, by rounding"""
WELL_CONDITIONED = 1e-9
"""1: reciprocal condition of J M^-1 J' down to which its Cholesky factor is used"""
LIGHT = 1e-8
"""1: part of a coordinate's inertia, left after those before it, at which to look closer"""
SINGULAR_MASS = 1e-13
"""1: least eigenvalue of a mass matrix with ones on its diagonal that is rounding"""
THIN_MASS = 1e-9
"""1: pivot or eigenvalue of a mass matrix with ones on its diagonal that may be none"""
THIN_BODY = 1e-9
"""1: principal inertia, over the largest, below which a body counts as a rod or a point"""
WITHOUT_MASS = 1e-12
"""1: inertia of a motion, over what is on loan, below which it has none of its own"""
RESPONSE_RANK = 1e-11
"""1: response of a row or contact, over that of its bodies alone, below which it is redundant"""
GRAM_NOISE = 1e-12
"""1: pivots of J J' below this part of the largest are rounding"""
NO_SOLUTION = 1e-10
"""1: what is left of non-negative least squares where bounds have no solution: 1 / (1 + |x|^2) of
the shortest one in units of what violates them"""
ACTIVATED = 1e-8
"""1: what is left of activated rows that depend on persistent ones"""
PIVOT_TIE = 1e-6
"""1: relative difference of pivots that are equal; of these the first is taken"""
PIVOT_KEPT = 1e-5
"""1: part of a row that others do not contain, down to which it stays chosen for Pinocchio"""
HELD_ROW = 1e-20
"""1: damping of a row that holds in Pinocchio's solver, over the least entry of J M^-1 J'"""
ENTRY_NOISE = 1e-10
"""1: entries of J M^-1 J' below this part of the largest are zero: the row vanishes"""
SELECTION_DUST = 1e-13
"""1: entries of rows from regularization that are rounding, over the row's largest"""
PITCH = 1e-7
"""lengths/rad: pitch below which a motion is a rotation"""
NO_PITCH = 1e-12
"""m/rad: a thread finer than this is none: turns cannot be counted by the advance"""
PURE_TRANSLATION = 1e-12
"""1: angular part of a unit twist below which it is a translation"""
MOTION_SHARE = 1e-6
"""1: fraction of a motion below which a joint has no part in it"""

# -- loops and states -----------------------------------------------------------------------------

CLOSED = 1e-10
"""rad, lengths: residual up to which assembly, a fit or Pinocchio has closed the loops"""
PROGRAM_CLOSED = 1e-12
"""rad, m: the same for a program that is written to close them, for robots up to a metre"""
ASSEMBLED = 1e-9
"""rad, lengths: residual up to which a configuration that is given counts as assembled"""
BALANCED = 1e-10
"""rad, m: step of Newton's method below which a configuration is an equilibrium"""
GOOD_CLOSURE = 1e-8
"""rad, m: residual that the report of a run calls good"""
TORN = 1e-6
"""rad, lengths: residual of all rows at which loops that are held by fewer count as torn"""
DRIFT = 1e-11
"""rad, lengths: default residual above which a run projects its state"""
CONSISTENT = 1e-6
"""1: rounding of a state that is given: closure (rad, lengths), velocities and accelerations that
rows do not allow, over the largest one"""
CONTRADICTION = 1e-8
"""1: what is left if rows cannot be met, over the largest velocity (rad, lengths for positions)"""
AT_LIMIT = 1e-9
"""rad, m: distance from a limit or end stop within which a joint is at it"""
LINKAGE_FIT = 1e-6
"""rad, m: default error of the positions of motors as polynomials of those of joints"""
LIMIT_PASSED = 1e-6
"""rad, m: a limit that is passed by less counts as kept, as by a joint that rests on it"""
IDLE_WEIGHT = 1e-6
"""1: weight, in assembly, of motions that bring no joint nearer to where it is wanted"""
FITTED = 1e-12
"""rad, lengths: residual at which a fit of rounded geometry has succeeded, or has nothing to do"""
BEST_FIT = 1e-15
"""rad, lengths: residual per root of the equations at which a fit stops improving"""
FITTED_ZERO = 1e-11
"""1: singular values of rows that depend on each other exactly stay below this after a fit"""
FITTED_FINEST = 1e-8
"""1: singular values that a fit sees at last: of normal equations, the square of the last bits"""
LEAST_DAMPING = 1e-9
"""1: least damping of the steps of a fit"""

# -- bodies and files -----------------------------------------------------------------------------

PLACEHOLDER_MASS = 1e-6
"""1: mass over that of the heaviest link below which it looks like a placeholder"""
POINT_MASS = 1e-12
"""1: least principal moment over the largest, at which a body cannot give every joint inertia"""
TRIANGLE = 1e-6
"""1: by how much the largest principal moment may exceed the sum of the others"""
GYRATION = 1e-12
"""m^2: squared radius of gyration below which the sign of a moment is rounding"""
MOMENT_DUST = 1e-15
"""kg m^2: moment of inertia of which the sign is rounding"""
TENSOR_DIGITS = 1e-5
"""1: relative error of inertia tensors that a table of few digits brings"""
NEGATIVE_MOMENT = 1e-10
"""1: negative principal moment over the largest entry of the tensor that is rounding"""
PARALLEL = 1e-6
"""1: by how much the cosine of axes that are parallel may be less than 1"""
ARMATURE = 1e-6
"""1: relative difference of an armature and of the rotor inertia that it repeats"""
HOLONOMIC = 1e-6
"""1: default size up to which the object of non-holonomy is zero, over that of its terms"""

# -- runs -----------------------------------------------------------------------------------------

ENERGY_ROUNDING = 1e-15
"""1: part of the energy that rounding takes or makes per step"""
SPEED_ROUNDING = 1e-10
"""1: part of the velocities that is rounding, however fine the tolerances are"""
PROJECTED_TRIFLE = 1e-6
"""1: fraction of the largest velocity that a projection may always take after a fixed step"""
LOW_BOUNCE = 1e-10
"""rad, lengths: a bounce that rises by less ends at rest"""
NO_SPEED = 1e-12
"""rad/s, m/s, 1: speeds below this, or this share of the largest, are zero"""
HELD_SHARE = 1e-9
"""1: share of an end stop in moving its joint below which others hold it already"""
NO_PULL = 1e-10
"""1: part of the forces below which a pull away from an end stop is rounding"""
LEAVING = 1e-9
"""rad, rad/s, rad/s^2 (m): beyond a limit by less, or faster away from it by less, is neither"""
EVENT_FIT = 1e-7
"""1: how closely polynomials follow a guard, as part of its size in a step"""
GUARD_ROUNDING = 1e-12
"""any: how far a one-sided guard that starts at zero may be beyond it without having passed"""
GUARD_BAND = 1e-10
"""1: part of a guard's size, or of the time, within which a zero is the one just found"""
ROOT_SHARE = 8.9e-16
"""1: relative accuracy of an instant: four last bits, the least that can be asked for"""
DUE = 1e-13
"""1: fraction of the time by which an event may lie ahead and still be due"""
CHATTER = 1e-6
"""1: fraction of a run within which many events count as chatter"""
WHOLE_STEPS = 1e-6
"""1: fraction of a fixed step by which a whole number of steps may miss a time"""
SLIDER_MISSED = 1e-6
"""rad, m: a joint that misses the value of its slider by more makes the viewer say why"""

# -- stops ----------------------------------------------------------------------------------------

TORQUE_NOISE = 1e-12
"""1: rounding of a torque, as a part of all that acts"""
STICTION_NOISE = 1e-13
"""1: rounding in stick and slip, as a part of what there is before the rows take their share"""
SIGNAL_SPEED = 1e-9
"""1: speeds below this part of the largest at the signal, or of 1 rad/s or m/s, are zero"""
HELD_ACCELERATION = 1e-6
"""rad/s^2, m/s^2: acceleration of what is held through loops by joints that stick"""
NO_ACCELERATION = 1e-12
"""rad/s^2, m/s^2: least deceleration in an estimate of how long a speed takes to fall"""
STEP_INSTANT = 1e-8
"""1: part of a step over which what is left beside velocity and acceleration is rounding"""
BOUND_INSTANT = 1e-13
"""s: accuracy of the instant at which a torque reaches its bound"""
AT_ONCE = 1e-5
"""s: what was hit less than this ago is hit again at once"""
FOLLOWS = 1e-6
"""1: a joint follows from others if less of its motion is left when they stand still"""
NO_LOAD = 1e-9
"""1: a load below this part of what holds it, of the weight, or of the largest load is none"""
NO_ENERGY = 1e-9
"""1: part of the energy of lifting the robot by its length that is none"""
LEAST_MASS = 1e-9
"""kg: mass of a robot without mass, so that its energies have a unit"""
PEAK = 1e-6
"""1: part of a peak that the last coefficients of its polynomial may be"""
WORK = 2e-8
"""1: part of all energy turned over that the last coefficients of a power may be in a piece"""
TRAVEL = 1e-8
"""1: part of a path that the last coefficients of the speed may be in a piece"""
PATH_DURATION = 1e-7
"""1: to what part of itself the duration of a stop on its path is found"""

# -- studies, space and standards -----------------------------------------------------------------

PLACES_FIT = 1e-11
"""1: gain at which the search for a place of the tool ends"""
SPEED_SHARE = 1e-3
"""1: to how much of full speed the share that is allowed is found"""
SHARE_MISSED = 1e-6
"""1: by how much a fraction that a standard asks for may be missed"""
POSE_SLOPE = 1e-6
"""1: slopes, distances and heights below this part of the robot's length are none"""
ALIKE = 1e-7
"""1: relative difference of poses that reach equally far, of which the first is taken"""
FIT_COST = 1e-6
"""1: relative gain at which a fit of an axis ends: a thousandth of the standard errors"""
FIT_DIGITS = 1e-6
"""1: misfit that is the rounding of parameters to six digits"""
FIT_STEP = 1e-9
"""1: relative step at which the model of an axis is as good as it gets: that costs no stops"""
LEAST_TORQUE = 1e-12
"""N m: least torque that a fit of an axis starts from"""
TOUCH = 1e-5
"""m: bodies that are not farther apart touch"""
DISTANCE_ERROR = 3e-6
"""m: error of a distance by coal; 2.1e-6 was the largest in 1,500 random pairs of shapes"""
SLACK = 1e-7
"""m: room for rounding, and for steps that end up to 1e-10 beside the next stored state"""
BESIDE_STATE = 1e-10
"""rad, m: a step that ends farther from the next stored state is joined to it by a piece"""
SHORT_STEP = 1e-6
"""s: shorter steps are judged by their ends: between them the slope shows rounding only"""
FLAT_HULL = 1e-6
"""m: half thickness that flat sets of points are given"""
SPOT = 1e-6
"""m: radius of the ball that stands for a point"""
NO_ADVANCE = 1e-12
"""m, m/s: advances below this are rounding"""

# -- pictures -------------------------------------------------------------------------------------

STILL = 1e-9
"""rad, m: what moves by less has not moved"""
STILL_TOOL = 1e-6
"""m: a tool that is nowhere farther away is at one place"""
LOG_FLOOR = 1e-17
"""any: what is smaller is drawn here on logarithmic axes, zero too"""
ALL_EQUAL = 1e-12
"""1: relative spread below which all values of a distribution are the same"""
TICK_DIGITS = 1e-6
"""1: part of the last digit of a tick that needs one digit more"""
THIN_TRIANGLE = 1e-6
"""1: area of a triangle, over that of a cell, below which it is left out of a lighter mesh"""
SLIDER_STEP = 1e-9
"""s: least step of the time slider of a player"""


class Regularity:
    """Branches and singular poses: how nearly rows depend that are independent elsewhere.

    Of rows the regularity is the least singular value over that of regular poses: 1 far from
    bifurcations, 0 at them.
    """

    NEAR = 0.1
    """1: a step that starts below is near a bifurcation, and states are projected more closely"""
    AWAY = 0.2
    """1: a step that starts above has passed the singular pose"""
    LOST = 1e-3
    """1: so near a bifurcation a motion is on its branch, wherever it goes"""
    LOOK = 1e-5
    """rad, lengths: how far ahead and behind one looks how fast the regularity changes"""
    CHANGES = 0.25
    """1/rad, 1/lengths: share of the regularity that a motion changes if a bifurcation is near"""
    AGAIN = 0.1
    """1: a branch not found is looked for again at this part of the largest regularity since"""
    BASE = 1e-5
    """1: singular values of rows at a regular pose below which they are redundant"""
    NODE = 0.1
    """1: inverse condition above which rows tell where a branch goes, over that at its base"""
    NODE_CLOSED = 1e-13
    """rad, lengths: Newton steps below which a node of a branch is reached"""
    SMOOTH = 1e-9
    """1: share by which the basis of a branch may differ from what its nodes tell"""
    MEETING = 1e-10
    """rad, lengths: residual between closed poses above which branches do not meet"""
    WELL_TOLD = 1e-12
    """rad, lengths: error between nodes of a branch below which no closer ones are tried"""
    SAME_BRANCH = 1e-6
    """rad, lengths: a singular pose is at most so far off the branch that is found beside it"""
    TURNED = 1e-3
    """1: part of the speed that the velocity of a start may lose to the rows or to its branch"""
    AT = 1e-6
    """1: below, rounding decides how the motion goes on"""
    WORSE = 0.7
    """1: dependent coordinates are chosen again if their share falls to this part of what it was"""
    WORST = 1e-5
    """1: dependent coordinates are chosen again at each projection when their share is below"""
    SINGULAR = 1e-9
    """1: ratio of singular values below which a block of a branch has no sign"""
    BARELY_HELD = 1e-2
    """1: singular values of rows, over the next larger one, that may be errors of the drawing"""
    ELSEWHERE = 1e-4
    """rad, lengths: shorter motions lead nowhere: rounding lets closed loops move so far"""

"""What the programs of ``examples/`` say about papers 1 to 3: what moves, and how exactly.

The papers' numbers are those of the programs; those that only count something stand here, once.
"""

from __future__ import annotations

from collections.abc import Iterator
from types import ModuleType

import numpy as np

from .validation_lines import Line, both, claim, equal, within

__all__ = ["double_pendulum", "floating", "heavy_top", "loops", "satellite", "singular",
           "snakeboard", "three_bars"]  # fmt: skip


# -- paper 1 --------------------------------------------------------------------------------


def satellite(module: ModuleType) -> Iterator[Line]:
    """Section 5.4.1."""
    worst = module.main()
    paper = module.PAPER_ENERGY, module.PAPER_MOMENTUM
    for what, limit, ours in (
        ("satellite: error of the energy of the reference [J]", paper[0], worst["energy"]),
        (
            "satellite: error of its angular momentum [kg m²/s]", paper[1], worst["reference"]
        ),
    ):  # fmt: skip
        yield claim(what, f"{limit:.1e}", float(ours), ours <= limit)
    yield claim(
        "satellite, Euler: angular momentum [kg m²/s]",
        "error grows steadily",
        float(worst["free"]),
        worst["free"] > 1e6 * worst["reference"],
    )
    yield claim(
        "satellite, Euler with the law as a constraint: the same",
        "eliminated",
        float(worst["held"]),
        worst["held"] < 1e-12,
    )


def snakeboard(module: ModuleType) -> Iterator[Line]:
    """Section 5.4.2."""
    result = module.main()
    robot = module.mechanism()
    positions, velocities = result.projections[0].sum(axis=1)
    yield equal("snakeboard: coordinates", 12, robot.nv)
    yield equal("snakeboard: holonomic equations (sum of the projections)", 6, round(positions))
    yield equal("snakeboard: non-holonomic equations", 2, round(velocities - positions))
    yield equal(
        "snakeboard: degrees of freedom at configuration level", 6, robot.nv - round(positions)
    )
    differ = sum(set(first) != set(second[:6]) for first, second in result.sets)
    yield claim(
        "snakeboard: dependent positions and velocities are others",
        "not necessarily the same",
        f"in {differ} of {len(result.sets)} states",
        differ == len(result.sets),
    )
    optimal, worse = module.STEP * result.errors.sum(axis=0)
    best, other = module.PAPER_EPS
    unlike = "other masses, see below"
    yield Line("snakeboard: eps, optimal dependent set", f"{best:.1e}", float(optimal), unlike)
    yield Line("snakeboard: eps, another set", f"{other:.2e}", float(worse), unlike)
    yield claim(
        "snakeboard: how much larger", f"{other / best:.0f}", f"{worse / optimal:.0f}",
        worse > 1000 * optimal,
    )  # fmt: skip


# -- paper 2 --------------------------------------------------------------------------------


def heavy_top(module: ModuleType) -> Iterator[Line]:
    """Section 5.1."""
    drifts = module.main(until=0.5)
    rigid, split = drifts["SE3"], drifts["SO3xR3"]
    yield within(
        "heavy top: kinetic energy at the start [kJ]",
        module.PAPER_ENERGY / 1e3,
        rigid.kinetic[0] / 1e3,
        0.005,  # kJ: half of the last digit
    )
    yield claim(
        "heavy top: drift of the pivot on SE(3) [m]",
        "correct within the computation accuracy",
        f"{rigid.pivot.max():.0e}",
        rigid.pivot.max() < 1e-13,
    )
    yield claim(
        "heavy top: the same on SO(3)×R³ [m]",
        "significant drifts",
        float(split.pivot.max()),
        split.pivot.max() > 1e6 * rigid.pivot.max(),
    )
    lost = [float(np.abs(d.kinetic / d.kinetic[0] - 1).max()) for d in (rigid, split)]
    orders = float(np.log10(lost[1] / lost[0]))
    yield Line(
        "heavy top: drift of the kinetic energy, SO(3)×R³ over SE(3), in orders of magnitude",
        2,
        f"{orders:.1f}",
        f"{orders - 2:+.1f}, further apart" if orders > 2 else f"{orders - 2:+.1f}",
    )


def double_pendulum(module: ModuleType) -> Iterator[Line]:
    """Section 5.2."""
    drifts = module.main(until=0.5)
    first, second = (
        [float(drifts[space].opening[f"joint_{k}"].max()) for space in ("SE3", "SO3xR3")]
        for k in (1, 2)
    )
    energy = [float(np.abs(drifts[space].energy).max()) for space in ("SE3", "SO3xR3")]
    yield claim(
        "double pendulum: joint 1, SE(3) and SO(3)×R³ [m]",
        "SE(3) better",
        f"{first[0]:.0e} and {first[1]:.1e}",
        first[0] < first[1],
    )
    yield claim(
        "double pendulum: joint 2 [m]", "SE(3) generally better", both(*second),
        second[0] < second[1],
    )  # fmt: skip
    yield claim(
        "double pendulum: joint 2 worse than joint 1",
        "in both",
        "in both" if all(b > a for a, b in zip(first, second, strict=True)) else "not in both",
        all(b > a for a, b in zip(first, second, strict=True)),
    )
    yield claim(
        "double pendulum: drift of the energy, relative", "comparable", both(*energy),
        max(energy) < 10 * min(energy),
    )  # fmt: skip


def floating(module: ModuleType) -> Iterator[Line]:
    """Section 5.3."""
    drifts = module.main()
    for what, values in (
        ("joint [m]", [d.opening.max() for d in drifts.values()]),
        ("kinetic energy, relative", [np.abs(d.energy).max() for d in drifts.values()]),
    ):
        yield claim(
            f"floating bodies: {what}", "similar", both(*values), max(values) < 10 * min(values)
        )


def three_bars(module: ModuleType) -> Iterator[Line]:
    """Section 5.4."""
    drifts = module.main()
    for number, name in ((1, "ball_1"), (3, "ball_3")):
        rigid, split = (float(drifts[space].opening[name].max()) for space in ("SE3", "SO3xR3"))
        yield claim(
            f"three-bar loop: joint {number}, to the ground [m]",
            "perfect on SE(3)",
            f"{rigid:.0e} and {split:.1e}",
            rigid < 1e-13 < split,
        )
    between = [float(d.opening["ball_2"].max()) for d in drifts.values()]
    energy = [float(np.abs(d.energy).max()) for d in drifts.values()]
    for what, values in (("joint 2, between [m]", between), ("energy, relative", energy)):
        yield claim(
            f"three-bar loop: {what}", "similar", both(*values), max(values) < 10 * min(values)
        )


# -- paper 3 --------------------------------------------------------------------------------


def loops(module: ModuleType) -> Iterator[Line]:
    """Section 4.1."""
    found = module.main()
    for name, runs in found.items():
        sweeps, _, lagrange, reduction = runs
        paper = module.PAPER_VIOLATION
        yield claim(
            f"{name}: violation after 10 s, O-DCA [m]",
            f"order of {paper:.0e}",
            f"{sweeps.violation.max():.0e}",
            sweeps.violation.max() < 10 * paper,
        )
        if name != "sevenbar":
            continue
        for label, run in (("O-DCA", sweeps), ("Lagrange", lagrange), ("reduction", reduction)):
            exponent = module.PAPER_EXPONENTS[label]
            better = run.exponent < exponent
            off = f"{run.exponent - exponent:+.2f}" + (", grows less" if better else "")
            yield Line(
                f"{name}: growth exponent over time, {label}", exponent, f"{run.exponent:.2f}", off
            )


def singular(module: ModuleType) -> Iterator[Line]:
    """Section 4.2."""
    found = module.main()
    for title, runs in found.items():
        by_method = {run.method: run for run in runs}
        sweeps = by_method["O-DCA, all four sweeps"]
        yield claim(
            f"figure {title}: O-DCA",
            "unaffected",
            f"20 s, violation {sweeps.violation.max():.0e} m",
            not sweeps.failure and sweeps.violation.max() < 1e-13,
        )
        if "started" not in title:
            continue
        for method in ("Lagrange, plain", "reduction, velocity level"):
            run = by_method[method]
            yield claim(
                f"figure {title}: {method}",
                "fails at once",
                "fails at once" if run.failure and len(run.t) == 1 else "goes on",
                bool(run.failure) and len(run.t) == 1,
            )

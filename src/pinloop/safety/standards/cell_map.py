"""Where people may be in a cell while a robot moves at a share of its speeds, seen from above.

A person at a place, who walks in any direction from then on, is not touched if the place is at
least ``v_h T + C + Z_d + Z_r`` from everything that the robot sweeps from the signal until it is at
rest, with ``T`` from when the person is measured until then; before the signal, for the time of
the detection, the robot goes at most at the largest speed of any of its points. These are the terms
of `separation`; what the robot advances is taken from where it really goes. Seen from above a
person is a point, and what the robot sweeps is its shadow: where one is in the other, they touch.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Unpack

import numpy as np
from joblib import delayed
from scipy.spatial import ConvexHull

from ...boundary.arguments import flat_numbers, public
from ...boundary.csv import write_rows
from ...boundary.marks import Array
from ...boundary.values import forward
from ...errors import BadValue
from ...model.mechanism import Mechanism
from ...tables.number_format import number
from ...tables.report import KeyValues, Notes, Report, Reported, Table
from ..brakes.brakes import Brakes
from ..space.solids import require_length
from ..stopping import StopResult
from ..stopping.intervals import Guesses
from ..stopping.result_document import PLANNING_AID
from ..studies.case_values import case_values
from ..studies.cases import Setup
from ..studies.space import Sampling, Sobol, Space
from ..studies.study import StudySettings, checked_size, make_setup
from ..studies.workers import start_workers
from .advance import collect_shapes, fastest_before_command
from .allowed_speed import scaled
from .distances import at_least_zero

_SHARES = (0.25, 0.5, 0.75, 1.0)
_SIDES = {"+x": (1, 0), "-x": (-1, 0), "+y": (0, 1), "-y": (0, -1)}
_MOST_PLACES = 250_000


@public
@dataclass(frozen=True)
class Watch:
    """How people in a cell are watched, and how fast they are.

    Args:
        human_speed: v_h, of people [m/s]; 1.6 m/s where it is not measured (ISO/TS 15066).
        detection: from when a person is where they are measured until the signal of the stop [s].
        intrusion: C, how far a part of the body can reach before it is detected [m].
        z_d: uncertainty of the place of the person [m].
        z_r: uncertainty of the place of the robot [m].
    """

    human_speed: float = 1.6
    detection: float = 0.0
    intrusion: float = 0.0
    z_d: float = 0.0
    z_r: float = 0.0

    def __post_init__(self) -> None:
        at_least_zero("human_speed", self.human_speed, "a speed >= 0 in m/s")
        at_least_zero("detection", self.detection, "a time >= 0 in seconds")
        for name in ("intrusion", "z_d", "z_r"):
            at_least_zero(name, getattr(self, name))

    def needs(self, stop: StopResult, robot_speed: float) -> float:
        """Distance from what the robot sweeps [m]; ``robot_speed``: before the signal [m/s]."""
        walked = self.human_speed * (self.detection + stop.stopping_time)
        allowances = self.intrusion + self.z_d + self.z_r
        return walked + robot_speed * self.detection + allowances


@dataclass(frozen=True, eq=False)
class Shadow:
    """What one stop sweeps, seen from above.

    ``polygons``: corners of convex polygons, counter-clockwise, each of shape (m, 2) [m];
    ``needs``: distance that people need from them [m].
    """

    polygons: tuple[Array, ...]
    needs: float

    def distance(self, places: Array) -> Array:
        """Distance of places from the polygons, 0 within, shape (n,) [m]; places: (n, 2)."""
        least = np.full(len(places), np.inf)
        for corners in self.polygons:
            least = np.minimum(least, polygon_distance(corners, places))
        return least


def polygon_distance(corners: Array, places: Array) -> Array:
    """Distance of places (n, 2) from a convex polygon, corners counter-clockwise; 0 within."""
    edges = np.roll(corners, -1, axis=0) - corners
    since = places[:, None] - corners
    along = (since * edges).sum(axis=-1) / (edges**2).sum(axis=-1)
    nearest = np.clip(along, 0.0, 1.0)[..., None] * edges
    outside = edges[:, 0] * since[..., 1] - edges[:, 1] * since[..., 0] < 0.0
    distance = np.linalg.norm(since - nearest, axis=-1).min(axis=1)
    return np.asarray(np.where(outside.any(axis=1), distance, 0.0))


@public
@dataclass(frozen=True, eq=False)
class CellMap(Reported):
    """Where people may be while the robot moves at shares of its speeds.

    Args:
        robot: name of the robot.
        shares: shares of the speeds, rising.
        x: lines of the grid in the world [m], shape (m,).
        y: those across [m], shape (n,).
        margins: per share and place, by how much a person there is farther away than needed in the
            worst case; negative where they are too near [m], shape (k, n, m).
        needs: largest distance from what is swept that a share needs in any case [m].
        footprint: polygons that the robot sweeps at full share, for the picture.
        watch: how people are watched.
        cases: number of cases.
        guesses: brake data that are guesses.
        notes: what was left out, one sentence each.
    """

    robot: str
    shares: tuple[float, ...]
    x: Array = field(repr=False)
    y: Array = field(repr=False)
    margins: Array = field(repr=False)
    needs: tuple[float, ...]
    footprint: tuple[Array, ...] = field(repr=False)
    watch: Watch
    cases: int
    guesses: Guesses
    notes: tuple[str, ...] = field(default=(), repr=False)

    @property
    def allowed(self) -> Array:
        """Share that is allowed while a person is at a place, shape (n, m); 0: it must stand."""
        keeps = np.logical_and.accumulate(self.margins >= 0.0, axis=0)
        return np.asarray(np.array([0.0, *self.shares])[keeps.sum(axis=0)])

    @property
    def areas(self) -> tuple[float, ...]:
        """Area of the grid in which people are too near for each share [m^2]."""
        cell = np.ptp(self.x) * np.ptp(self.y) / ((len(self.x) - 1) * (len(self.y) - 1))
        return tuple(float(cell * np.sum(self.allowed < share)) for share in self.shares)

    def reach(self, share: float, side: str) -> float:
        """How far the zone of a share reaches from the origin to a side, "+x" or so [m]."""
        ends = np.array(np.meshgrid(self.x, self.y))[:, self.allowed < share]
        direction = np.array(_SIDES[side])
        return float((direction @ ends).max()) if ends.size else 0.0

    def __rich__(self) -> Report:
        watch, heads = self.watch, [f"reach from the origin | {side} [m]" for side in _SIDES]
        rows = [
            [
                f"{100 * share:g} %",
                number(need, 2),
                number(area, 1),
                *(number(self.reach(share, side), 2) for side in _SIDES),
            ]
            for share, need, area in zip(self.shares, self.needs, self.areas, strict=True)
        ]
        allowances = watch.intrusion + watch.z_d + watch.z_r
        facts = [
            ("cases", f"{self.cases}, speeds scaled together"),
            ("people", f"{watch.human_speed:g} m/s in any direction"),
            ("detection", f"{1e3 * watch.detection:g} ms until the signal"),
            ("C + Z_d + Z_r", f"{1e3 * allowances:g} mm"),
            ("grid", f"{len(self.x)} x {len(self.y)} places"),
        ]
        headings = ("speed", "needs [m]", "zone [m^2]", *heads)
        blocks = (
            KeyValues.of("Cell", facts),
            Table.of("Zones that must be free of people", headings, rows),
            Notes.of("Notes", self._notes(), "caution"),
        )
        title = self.guesses.title(f"{self.robot}: speeds by where people are")
        return Report.of(title, blocks, PLANNING_AID)

    def _notes(self) -> list[str]:
        inner = np.ones(self.allowed.shape, dtype=bool)
        inner[1:-1, 1:-1] = False
        open_at = [s for s in self.shares if (inner & (self.allowed < s)).any()]
        notes = [
            f"sampled, not guaranteed: zones are of {self.cases} cases; one that was not looked at "
            "may need more",
            "a zone counts its places: its edge is known to the distance of two",
        ]
        if open_at:
            notes.append(
                f"the zone of {100 * open_at[0]:g} % and more reaches the edge of the map: give "
                "more room"
            )
        return [*notes, *self.notes]

    def rows(self) -> list[dict[str, str | float]]:
        """A row per place: its allowed share, and the margin at each share."""
        names = [f"margin_{100 * share:g}_percent_m" for share in self.shares]
        allowed, rows = self.allowed, list[dict[str, str | float]]()
        for j, y in enumerate(self.y.tolist()):
            for i, x in enumerate(self.x.tolist()):
                margins = dict(zip(names, self.margins[:, j, i].tolist(), strict=True))
                rows.append({"x_m": x, "y_m": y, "allowed_share": float(allowed[j, i]), **margins})
        return rows

    def to_csv(self, path: str | Path) -> Path:
        """Write a row per place as CSV, units in the column names."""
        rows = self.rows()
        return write_rows(path, rows[0], (row.values() for row in rows))

    def plot(self) -> Any:
        """Draw the zones from above, with what the robot sweeps at full share."""
        title = f"{self.robot}: speeds by where people are, {self.cases} cases, not guaranteed"
        title = self.guesses.title(title).text
        return forward("show.plots", "by_matplotlib", "draw_zones", title, self)

    def as_dict(self) -> dict[str, Any]:
        """The zones, in SI units; places are in the CSV."""
        return {
            "headline": self.__rich__().title.text,
            "robot": self.robot,
            "cases": self.cases,
            "zones": [
                {
                    "share": share,
                    "needs_m": need,
                    "area_m2": area,
                    "reach_m": {side: self.reach(share, side) for side in _SIDES},
                }
                for share, need, area in zip(self.shares, self.needs, self.areas, strict=True)
            ],
            "notes": self._notes(),
            "disclaimer": PLANNING_AID,
        }


@public
def cell_map(
    robot: Mechanism,
    brakes: Brakes | str | Path,
    space: Space | None = None,
    sampling: Sampling = Sobol(16),  # noqa: B008 (frozen)
    *,
    shares: Sequence[float] = _SHARES,
    watch: Watch = Watch(),
    spacing: float = 0.1,
    jobs: int = -1,
    **settings: Unpack[StudySettings],
) -> CellMap:
    """Map where people may be while a robot moves at shares of its speeds.

    For each case its stop at each share is computed, and what the whole robot sweeps until it is at
    rest, see `swept_volume`; bodies without shape are left out, with a note.

    Args:
        robot: the robot; z of its world is up.
        brakes: its brakes, or their file.
        space: poses, and speeds at full share.
        sampling: which cases.
        shares: shares of the speeds.
        watch: how people are watched, and how fast they are.
        spacing: distance of the places of the map [m].
        jobs: number of processes; all cores by default.
        settings: further arguments of `study`: category, payload, ...

    Raises:
        BadValue: an argument is impossible, or the robot does not come to rest in some case.
    """
    setup = make_setup(robot, brakes, space, **settings)
    if setup.space.motion is not None:
        raise BadValue("speeds of a recorded motion are what they are; give poses and speeds")
    parts, spacing = _checked_shares(shares), require_length("spacing", spacing)
    cases = case_values(setup, sampling, 0, checked_size(setup, sampling, jobs))
    by_share, notes = _shadows(setup, cases, parts, watch, spacing / 5, jobs)
    x, y = _grid([shadow for some in by_share for shadow in some], spacing)
    places = np.stack(np.meshgrid(x, y), axis=-1).reshape(-1, 2)
    margins = start_workers(jobs)(delayed(_margin)(some, places) for some in by_share)
    return CellMap(
        robot.name,
        parts,
        x,
        y,
        np.array(list(margins)).reshape(len(parts), len(y), len(x)),
        tuple(max(shadow.needs for shadow in some) for some in by_share),
        tuple(polygon for shadow in by_share[-1] for polygon in shadow.polygons),
        watch,
        len(cases),
        setup.guesses,
        notes,
    )


def _checked_shares(shares: Sequence[float]) -> tuple[float, ...]:
    """The shares, rising."""
    parts = np.unique(flat_numbers(shares, "shares", len(shares)))
    if not len(parts) or parts[0] <= 0.0 or parts[-1] > 1.0:
        raise BadValue(f"shares are {shares!r}; give numbers above 0 and up to 1")
    return tuple(parts.tolist())


def _shadows(
    setup: Setup,
    cases: Sequence[Mapping[str, float]],
    parts: Sequence[float],
    watch: Watch,
    tolerance: float,
    jobs: int,
) -> tuple[list[list[Shadow]], tuple[str, ...]]:
    """What the stops of all cases sweep at each share; a note on bodies that have no shape."""
    tasks = (
        delayed(_shadow)(setup, scaled(case, share), watch, tolerance)
        for share in parts
        for case in cases
    )
    shadows, bare = zip(*start_workers(jobs)(tasks), strict=True)
    by_share = [list(shadows[k : k + len(cases)]) for k in range(0, len(shadows), len(cases))]
    names = sorted({name for some in bare for name in some})
    return by_share, (f"without shapes, and left out: {', '.join(names)}",) if names else ()


def _shadow(
    setup: Setup, values: Mapping[str, float], watch: Watch, tolerance: float
) -> tuple[Shadow, tuple[str, ...]]:
    """What a stop sweeps, from above, and bodies without shape."""
    stop = setup.stop(values)
    if not stop.holds:
        raise BadValue(
            f"a stop of robot '{setup.robot.name}' ends as '{stop.outcome}': no distance protects "
            "from a robot that does not come to rest and hold"
        )
    speed = 0.0
    if watch.detection > 0.0:
        speed = fastest_before_command(stop, collect_shapes(stop.run, tolerance, {}, None))
    volume = stop.swept_volume(tolerance=tolerance)
    corners = [hull.vertices[:, :2] for hulls in volume.parts.values() for hull in hulls]
    polygons = tuple(points[ConvexHull(points).vertices] for points in corners)
    return Shadow(polygons, watch.needs(stop, speed)), volume.bare


def _margin(shadows: Iterable[Shadow], places: Array) -> Array:
    """The least margin of any of some stops, shape (n,) [m]."""
    margins = (shadow.distance(places) - shadow.needs for shadow in shadows)
    return np.asarray(np.min(list(margins), axis=0))


def _grid(shadows: Sequence[Shadow], spacing: float) -> tuple[Array, Array]:
    """Lines of the grid, round multiples of the spacing, around all that is needed."""
    most = max(shadow.needs for shadow in shadows) + 2 * spacing
    corners = np.concatenate([corner for shadow in shadows for corner in shadow.polygons])
    low = np.floor((corners.min(axis=0) - most) / spacing)
    high = np.ceil((corners.max(axis=0) + most) / spacing)
    counts = high - low + 1
    if counts.prod() > _MOST_PLACES:
        raise BadValue(
            f"a spacing of {spacing:g} m gives {counts.prod():.0f} places, more than "
            f"{_MOST_PLACES}; give a larger one"
        )
    x, y = (spacing * np.arange(a, b + 1) for a, b in zip(low, high, strict=True))
    return x, y

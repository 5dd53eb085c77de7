"""Plots: round ticks that hold the data, labels that do not cover each other, curves thinned."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from pinloop.show.plots import Chart, Instant, Line, Shape, merge_instants
from pinloop.show.plots.svg import draw, figure, label_width, ticks
from pinloop.show.stop_report.stop_curves import stacked
from pinloop.tables.report import Markup, render

numbers = st.floats(-1e3, 1e3)


@given(numbers, st.floats(1e-3, 1e6), st.integers(4, 12))
@example(0.0, 1.0, 6)
@example(-1.0, 2.0, 4)
@example(0.0, 0.25, 6)
@example(7.0, 2.5e-3, 5)
def test_ticks_are_round_and_hold_the_data(low: float, size: float, most: int) -> None:
    high = low + size
    found = ticks(low, high, most)
    step = found.values[1] - found.values[0]
    assert_allclose(np.diff(found.values), step, rtol=1e-6)
    assert found.span[0] <= low + 1e-6 * size
    assert found.span[1] >= high - 1e-6 * size
    assert 2 <= len(found.values) <= most + 1
    mantissa = step / 10.0 ** np.floor(np.log10(step * (1 + 1e-9)))
    assert min(abs(mantissa - digit) for digit in (1, 2, 2.5, 5, 10)) < 1e-5
    # What is written is what is meant.
    written = [float(text.replace("\N{MINUS SIGN}", "-")) for text in found.texts]
    assert_allclose(written, found.values, atol=1e-6 * step)
    assert len(set(found.texts)) == len(found.texts)


@pytest.mark.parametrize("value", [0.0, 3.0, -250.0])
def test_a_constant_has_ticks_around_it(value: float) -> None:
    found = ticks(value, value, 6)
    assert found.span[0] < value < found.span[1]


def plot(instants: list[Instant], lines: list[Line] | None = None) -> str:
    x = np.linspace(0, 100, 11)
    shown = lines or [Line("one", x, x)]
    return draw(Chart("y [m]", shown, title="title", span=(0.0, 100.0), instants=instants))


@given(
    st.lists(
        st.tuples(st.floats(0, 100), st.integers(3, 34)), max_size=14, unique_by=lambda one: one[0]
    )
)
def test_no_label_covers_another_one_or_a_line(given_labels: list[tuple[float, int]]) -> None:
    marks = [Instant(x, chr(65 + k) * n) for k, (x, n) in enumerate(given_labels)]
    svg = plot(marks)
    lines = {
        float(x): float(high)
        for x, high in re.findall(r'<line x1="([^"]+)" x2="[^"]+" y1="([^"]+)" [^>]*instant', svg)
    }
    assert len(re.findall('class="instant"', svg)) == len(marks)
    boxes = []
    for x, y, anchor, text in re.findall(
        r'<text x="([^"]+)" y="([^"]+)" text-anchor="(\w+)" class="label">(\w+)<', svg
    ):
        begin = float(x) - (label_width(text) if anchor == "end" else 0)
        boxes.append((begin, begin + label_width(text), float(y)))
        assert begin >= 0
        assert begin + label_width(text) <= 900 + 1e-6
    for k, (a, b, y) in enumerate(boxes):
        for c, d, other in boxes[:k]:
            assert y != other or b < c or d < a
        for x, high in lines.items():
            assert not (a < x < b and high < y - 11), "a line crosses a label"


def test_labels_with_room_are_all_there() -> None:
    names = ["command", "brakes act", "all stand"]
    svg = plot([Instant(x, name) for x, name in zip((5.0, 50.0, 100.0), names, strict=True)])
    assert re.findall(r'class="label">([^<]+)<', svg) == ["all stand", "command", "brakes act"]


def test_a_label_with_no_room_ahead_ends_at_its_instant() -> None:
    """The line at the end of the axis rises between the second instant and the end of its label."""
    svg = plot([Instant(92.0, "brakes act"), Instant(100.0, "drives off; full brake torque")])
    places = re.findall(r'text-anchor="(\w+)" class="label">([^<]+)<', svg)
    assert places == [("end", "drives off; full brake torque"), ("end", "brakes act")]


def test_labels_of_one_instant_are_put_together() -> None:
    marks = [Instant(2.0, "b"), Instant(1.0), Instant(2.0, "c"), Instant(1.0, "a")]
    assert list(merge_instants(marks)) == [Instant(1.0, "a"), Instant(2.0, "b; c")]


def test_thinned_curves_keep_their_peaks() -> None:
    x = np.linspace(0, 100, 50_001)
    y = np.sin(x)
    y[31_234], y[7] = 9.0, -7.0
    svg = plot([], [Line("one", x, y)])
    (points,) = re.findall(r'<polyline points="([^"]+)"', svg)
    places = np.array([[float(c) for c in pair.split(",")] for pair in points.split()])
    assert len(places) <= 700
    assert np.all(np.diff(places[:, 0]) >= 0)
    ys = ticks(-7.0 - 0.03 * 16, 9.0 + 0.03 * 16, 6)
    slope = 240 / (ys.span[1] - ys.span[0])
    assert np.ptp(places[:, 1]) == pytest.approx(16 * slope, abs=0.11)


def test_steps_stay_upright_and_flats_are_short() -> None:
    x = np.concatenate([np.linspace(0, 50, 100), np.linspace(50, 100, 100)])
    y = np.concatenate([np.zeros(100), np.ones(100)])
    (points,) = re.findall(r'<polyline points="([^"]+)"', plot([], [Line("one", x, y)]))
    places = [tuple(map(float, pair.split(","))) for pair in points.split()]
    assert len(places) == 4
    assert places[1][0] == places[2][0]
    assert places[0][1] == places[1][1] > places[2][1] == places[3][1]


def test_the_legend_names_curves_with_different_lines() -> None:
    x = np.array([0.0, 1.0])
    made = [Line(f"joint <{k}>", x, x) for k in range(2)]
    assert re.search(
        r'<line [^>]*stroke-width="2.5"/></svg> joint &lt;1&gt;', figure(Chart("y", made))
    )
    assert "<ul" not in figure(Chart("y", made[:1]))


def test_bars_are_as_long_as_their_amounts() -> None:
    chart, keys = stacked("title", {"in": {"a": 15.0, "b": 15.0, "c": 10.0}, "out": {"a": 20.0}})
    assert [key.name for key in keys] == ["a", "b", "c"]
    svg = draw(chart)
    found = re.findall(r'<rect x="([^"]+)" y="([^"]+)" width="([^"]+)"', svg)
    begins, widths = (np.array([float(one[k]) for one in found]) for k in (0, 2))
    assert_allclose(widths / widths[0], [1, 1, 2 / 3, 4 / 3], rtol=1e-4)
    assert_allclose(begins[1:3], begins[:2] + widths[:2], atol=0.01)
    assert begins[3] == begins[0]
    assert found[0][1] == found[1][1] == found[2][1] != found[3][1]
    # Forty joules reach to the number 40 on the axis.
    (at,) = re.findall(r'<text x="([^"]+)" y="[^"]+" text-anchor="middle">40<', svg)
    assert begins[2] + widths[2] == pytest.approx(float(at), abs=0.01)


def test_spans_of_lanes_lie_on_the_axis() -> None:
    svg = draw(
        Chart(
            rows=["joint"],
            shapes=[Shape.in_row(0, (20.0, 60.0), "#111", "at rest")],
            span=(0.0, 100.0),
            instants=[Instant(60.0)],
        )
    )
    ((x, width),) = re.findall(r'<rect x="([^"]+)" y="[^"]+" width="([^"]+)"', svg)
    (line,) = re.findall(r'<line x1="([^"]+)"[^>]*class="instant"', svg)
    assert float(x) + float(width) == pytest.approx(float(line), abs=0.01)
    left, right = (
        float(re.findall(rf'data-{side}="([^"]+)"', svg)[0]) for side in ("left", "right")
    )
    assert float(x) == pytest.approx(left + 0.2 * (right - left), abs=0.01)


def test_marks_lie_where_the_axes_say() -> None:
    """A hexagon of 20 mm and a spot at its middle, on axes with equal units."""
    marks = [
        Shape("hexagon", [50.0], [10.0], "#111", "six", 20.0),
        Shape("spot", [50.0], [10.0], "#222", size=4.0),
    ]
    svg = draw(Chart(span=(0.0, 100.0), y_span=(-20.0, 40.0), shapes=marks, equal=True))
    left, right = (float(re.findall(rf'data-{s}="([^"]+)"', svg)[0]) for s in ("left", "right"))
    unit = (right - left) / 100.0
    ((x, y),) = re.findall(r'<circle cx="([^"]+)" cy="([^"]+)"', svg)
    assert float(x) == pytest.approx(left + 50 * unit, abs=0.01)
    path = re.findall(r'<path d="M([\d.]+) ([\d.]+)l([\d.]+) ([\d.]+)v([\d.]+)', svg)
    ((begin, top, across, down, side),) = [tuple(map(float, numbers)) for numbers in path]
    assert (begin, top) == pytest.approx((float(x), float(y) - 20 * unit), abs=0.02)
    assert across == pytest.approx(np.sqrt(0.75) * side, abs=0.02)
    assert (down, side) == pytest.approx((10 * unit, 20 * unit), abs=0.02)


def test_what_reaches_beyond_the_axes_is_cut_off_with_its_name_in_sight() -> None:
    corners = 1e3 * np.array([(-1, -1), (1, -1), (1, 1), (-1, 1)])
    floor = Shape("outline", corners[:, 0], corners[:, 1], name="floor")
    svg = draw(Chart(span=(0.0, 100.0), y_span=(0.0, 50.0), shapes=[floor], equal=True))
    (box,) = re.findall(r'<svg x="([^"]+)" y="([^"]+)" width="([^"]+)" height="([^"]+)"', svg)
    left, top, width, height = map(float, box)
    ((x, y),) = re.findall(r'<text x="([^"]+)" y="([^"]+)"[^>]*class="label">floor<', svg)
    assert float(x) == pytest.approx(left + width / 2, abs=0.1)
    assert top < float(y) < top + height
    assert height == pytest.approx(width / 2, abs=0.1)


def test_text_is_escaped_once() -> None:
    text = render("show/plots/templates/figure.html", title="a < b & \x1b 5\N{NO-BREAK SPACE}mm",
                  legend=Markup("<ul>"), picture="<i>", half=False)  # fmt: skip
    assert "a &lt; b &amp; \\x1b 5\N{NO-BREAK SPACE}mm" in text
    assert "<ul>" in text and "&lt;i&gt;" in text

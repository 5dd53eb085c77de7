"""Tables of the documentation that programs write: what is quick is computed again and compared."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from tools import (
    choosing,
    house,
    pages,
    published_stops,
    regularization,
    schemas,
    tolerances,
    validation,
)

import pinloop as pl
from pinloop.boundary.schema import keys_of

NUMBER = re.compile(r"[-+]?\d+(?:\.\d+)?(?:e[-+]\d+)?")


def page(name: str) -> str:
    return (pages.DOCS / f"{name}.md").read_text(encoding="utf-8")


def cells(text: str) -> list[list[str]]:
    """Cells of all tables in a text, without their heads."""
    tables = re.findall(r"^\|.*\n\| -[-:| ]+\|\n((?:\|.*\n)+)", text, re.MULTILINE)
    lines = [line for table in tables for line in table.splitlines()]
    return [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines]


def same(ours: str, printed: str) -> bool:
    """Whether words are the same and numbers agree to 1 %, or are rounding errors both."""
    if NUMBER.sub("#", ours) != NUMBER.sub("#", printed):
        return False
    pairs = zip(NUMBER.findall(ours), NUMBER.findall(printed), strict=True)
    return all(
        abs(float(a) - float(b)) <= 0.01 * abs(float(b)) or max(abs(float(a)), abs(float(b))) < 1e-8
        for a, b in pairs
    )


def test_what_counts_as_the_same() -> None:
    assert same("differs by 4.01e-07 m", "differs by 4.0e-07 m")
    assert same("3e-15 and 2", "9e-16 and 2")
    assert not same("differs by 4.1e-07 m", "differs by 4.0e-07 m")
    assert not same("holds", "does not hold")
    assert not same("3e-15 and 3", "3e-15 and 2")


# -- validation -----------------------------------------------------------------------------

QUICK = [case for case in validation.CASES if case.quick]


@pytest.mark.parametrize("case", QUICK, ids=lambda case: case.program)
def test_numbers_of_the_papers_come_out_again(case: validation.Case) -> None:
    printed = [
        row
        for row in cells(pages.between(page("validation"), f"paper {case.paper}"))
        if row[-1] == f"`{case.program}`"
    ]
    found = validation.rows(case)
    assert [row[:2] for row in found] == [row[:2] for row in printed]
    for ours, row in zip(found, printed, strict=True):
        assert same(ours[2], row[2]) and same(ours[3], row[3]), (ours, row)


def test_every_program_that_reproduces_a_paper_is_in_the_tables() -> None:
    quoted = {row[-1].strip("`") for row in cells(page("validation"))}
    assert quoted == {case.program for case in validation.CASES}
    assert all((pages.ROOT / "examples" / f"{name}.py").is_file() for name in quoted)


def test_claims_that_do_not_hold_are_told_and_explained() -> None:
    broken = [row[0] for row in cells(page("validation")) if row[3] == "does not hold"]
    assert broken == [
        "double pendulum: joint 2 [m]",
        "figure 5-b, started singular: Lagrange, plain",
    ]
    assert "At the second joint of the double pendulum" in page("validation")
    assert "Started in the singular configuration of figure 5-b" in page("validation")


# -- regularization -------------------------------------------------------------------------


@pytest.mark.parametrize("name", sorted(set(regularization.BLOCKS) - {"fourbar rows"}))
def test_tables_of_regularization_are_current(name: str) -> None:
    assert pages.between(page("regularization"), name) == regularization.BLOCKS[name]()


def test_rows_of_the_four_bar_are_those_of_its_geometry() -> None:
    """``v = omega x e_z``: the rows see (v_x, w_y) and (v_y, -w_x) alike."""
    printed, found = (
        np.array([[float(cell) for cell in row] for row in cells(text)])
        for text in (
            pages.between(page("regularization"), "fourbar rows"),
            regularization.fourbar_rows(),
        )
    )
    by_hand = np.array([[1, 0, 0, 0, 1], [0, 1, 0, -1, 0]]) / np.sqrt(2)
    for U in (printed, found):
        np.testing.assert_allclose(U.T @ U, by_hand.T @ by_hand, atol=2e-6)


# -- schemas --------------------------------------------------------------------------------


@pytest.mark.parametrize("name", schemas.SCHEMAS)
def test_schemas_are_current(name: str) -> None:
    path = pages.DOCS / "schemas" / f"{name}.schema.json"
    assert path.read_text(encoding="utf-8") == schemas.text_of(name)


def test_every_schema_is_made_by_the_program() -> None:
    names = {path.name.removesuffix(".schema.json") for path in pages.DOCS.glob("schemas/*.json")}
    assert names == set(schemas.SCHEMAS)


@pytest.mark.parametrize("name", schemas.TABLES)
def test_tables_of_keys_are_current(name: str) -> None:
    assert schemas.with_tables(name, page(name)) == page(name)
    for kind in schemas.TABLES[name].values():
        assert all(key.meaning for key in keys_of(kind).values()), kind


# -- tolerances -----------------------------------------------------------------------------


def test_the_table_of_tolerances_is_current() -> None:
    ours = cells(tolerances.tolerance_table(house.Package()))
    printed = cells(pages.between(page("tolerances"), "tolerances"))
    assert printed == ours and len(ours) > 100


def test_every_tolerance_says_what_it_decides_and_is_used() -> None:
    found = list(tolerances.list_tolerances(house.Package()))
    assert len(found) > 100 and len({t.name for t in found}) == len(found)
    for tolerance in found:
        assert tolerance.unit and len(tolerance.reason) > 10, tolerance.name
        assert 0 < tolerance.value < 1 and tolerance.users, tolerance.name


def test_tests_that_notice_a_tolerance_are_there() -> None:
    found = {t.name: t for t in tolerances.list_tolerances(house.Package())}
    noticed = [tolerance for tolerance in found.values() if tolerance.test]
    assert len(noticed) >= len(found) // 2
    for tolerance in noticed:
        path, _, function = tolerance.test.partition("[")[0].partition("::")
        text = (pages.ROOT / path).read_text(encoding="utf-8")
        assert f"def {function.rpartition('::')[2]}(" in text, tolerance.name


# -- choosing -------------------------------------------------------------------------------


def test_every_robot_and_method_is_in_the_tables() -> None:
    text = page("choosing")
    rows = cells(pages.between(text, "formulations"))
    assert [row[0] for row in rows] == [f"`{name}`" for name in choosing.ROBOTS]
    assert all(len(row) == 4 + len(choosing.FORMULATIONS) for row in rows)
    assert all(float(row[-1]) < 1e-9 for row in rows)
    for row in rows:
        robot = choosing.load(row[0].strip("`"))
        assert row[1:3] == [str(robot.nv), str(len(pl.Constraints(robot)))]
    runs = cells(pages.between(text, "integrators"))
    assert len(runs) == len(choosing.RELEASED) * len(choosing.METHODS)
    ways = cells(pages.between(text, "stabilizations"))
    assert {row[1] for row in ways} == set(choosing.WAYS)
    assert all(float(row[2]) < 1e-10 for row in ways if row[1] != "none")


def test_an_error_of_an_integrator_comes_out_again() -> None:
    robot, method = choosing.load("fourbar"), pl.MuntheKaas()
    q = choosing.released(robot)
    exact = pl.simulate(robot, q, until=choosing.UNTIL, method=choosing.EXACT, losses=False)
    made = choosing.accuracy(robot, method, exact.q[-1])
    rows = cells(pages.between(page("choosing"), "integrators"))
    (row,) = (
        row for row in rows if row[0] == "`fourbar`" and row[1] == "`dop853`, tolerance 1e-08"
    )
    assert made.error == pytest.approx(float(row[2]), rel=0.6)  # printed with one digit
    assert made.evaluations == pytest.approx(int(row[3]), rel=0.2)


# -- marks ----------------------------------------------------------------------------------


def test_writing_leaves_the_text_alone(tmp_path: Path) -> None:
    path = tmp_path / "page.md"
    path.write_text("a\n<!-- t: begin -->\nold\n<!-- t: end -->\nb\n", encoding="utf-8")
    pages.put(path, "t", "new\n")
    pages.put(path, "t", "new\n")
    text = path.read_text(encoding="utf-8")
    assert text == "a\n<!-- t: begin -->\nnew\n<!-- t: end -->\nb\n"
    assert pages.between(text, "t") == "new\n"
    with pytest.raises(ValueError, match="<!-- u: begin --> and <!-- u: end --> once each"):
        pages.put(path, "u", "new")


# -- published stops ------------------------------------------------------------------------


def held_rows() -> dict[tuple[str, str], list[str]]:
    rows = cells(pages.between(page("stopping"), "held out"))
    return {(row[0], row[1]): row[2:] for row in rows}


def test_what_brakes_are_like_is_as_the_code_has_it() -> None:
    assert pages.between(page("brakes"), "estimates") == published_stops.estimates_table()


def test_numbers_that_were_not_fitted_are_predicted_as_the_page_says() -> None:
    held = [*published_stops.ramps(), *published_stops.hyundai()]
    ours, printed = cells(published_stops.held_table(held)), held_rows()
    for robot, what, *numbers in ours[:-1]:
        assert numbers == printed[robot, what]
    assert int(printed["all", "all"][0]) == len(held) + 9


def test_angles_of_category_0_are_predicted_as_the_page_says() -> None:
    try:
        axes = [axis for axis in published_stops.axes() if axis.robot == "KR 20 R3100"]
    except ValueError:
        pytest.skip("example-robot-data is not installed")
    shares = pages.between(page("stopping"), "shares")
    (percent,) = re.findall(r"(\d+) % for KR 20", shares)
    errors = [
        abs(axis.angle_for_time(int(percent) / 100) / axis.published[1] - 1.0) for axis in axes
    ]
    median, largest = (float(held_rows()["KR 20 R3100", "angle"][k]) for k in (1, 4))
    assert 100 * np.median(errors) == pytest.approx(median, abs=0.6)
    assert 100 * max(errors) == pytest.approx(largest, abs=0.6)
    # A constant torque goes too far: time and angle are not those of one.
    assert axes[0].angle_for_time(0.0) > 1.1 * axes[0].published[1]


def test_the_readme_says_what_the_page_says() -> None:
    readme = (pages.ROOT / "README.md").read_text(encoding="utf-8")
    text = " ".join(pages.between(readme, "published stops").split())
    count, median, low, high, _ = held_rows()["all", "all"]
    assert f"other {count} with a median error of {median} %" in text
    assert f"(95 % interval: {low} to {high} %)" in text
    rows = cells(pages.between(page("stopping"), "guessed brakes"))
    inside = sum(row[-1] == "yes" for row in rows)
    assert f"{inside} of {len(rows)} published times are within the band" in text


def test_order_statistics_hold_the_median() -> None:
    """In 95 of 100 samples, or a little more: by counting."""
    rng, inside = np.random.default_rng(0), []
    for _ in range(2000):
        _, low, high = published_stops.median_with_ends(rng.exponential(size=9).tolist())
        inside.append(low < np.log(2.0) < high)
    assert 0.94 < np.mean(inside) < 0.98
    assert published_stops.median_with_ends([3.0, 1.0, 2.0]) == (2.0, 1.0, 3.0)

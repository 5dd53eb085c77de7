"""A robot in which nothing moves goes through runs, stops, and all that is made of them."""

from __future__ import annotations

from pathlib import Path

import numpy as np

import pinloop as pl

from ..io.urdf_by_hand import joint, link, robot

BALL = '<collision><geometry><sphere radius="0.1"/></geometry></collision>'
STILL = robot(
    link("base", BALL), link("lamp", BALL), joint("j", "base", "lamp", "fixed", xyz=(1, 0, 0))
)


def test_a_run_of_it_is_shown_and_saved(tmp_path: Path) -> None:
    still = pl.load(STILL)
    run = pl.simulate(still, still.neutral, until=1.0)
    assert run(np.linspace(0, 1, 5)).q.shape == (5, 0)
    assert not run.energy().kinetic.any() and not run.closure().any()
    for file in (run.save_html(tmp_path / "run.html"), run.save(tmp_path / "run.npz")):
        assert file.stat().st_size > 0
    assert pl.load_trajectory(tmp_path / "run.npz").t[-1] == 1.0


def test_a_stop_of_it_has_stopped_and_sweeps_what_it_is(tmp_path: Path) -> None:
    still = pl.load(STILL)
    stop = pl.stop(still, still.neutral, [], brakes=pl.Brakes({}))
    assert stop.holds and stop.stopping_time == 0.0 and not stop.joints
    # The balls at both ends, and not much more.
    low, high = stop.swept_volume(tolerance=0.005).bounds
    np.testing.assert_allclose(low, [-0.1, -0.1, -0.1], atol=0.02)
    np.testing.assert_allclose(high, [1.1, 0.1, 0.1], atol=0.02)
    assert stop.save_html(tmp_path / "stop.html", swept=True).stat().st_size > 0

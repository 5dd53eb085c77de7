"""The programs about declared tables and distances in docs/studies.md run, and say what is said."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
DOCS = (ROOT / "docs" / "studies.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", ["tables", "distances", "heat", "map", "between"])
def test_the_program_runs(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (program,) = re.findall(rf"<!-- {name} -->\n```python\n(.*?)```", DOCS, re.DOTALL)
    (tmp_path / "urdf").symlink_to(ROOT / "urdf")
    monkeypatch.chdir(tmp_path)
    found: dict[str, object] = {}
    exec(compile(program, name, "exec"), found)
    out = capsys.readouterr().out
    if name == "tables":
        rows = (tmp_path / "six_axis_arm.annex_b.csv").read_text(encoding="utf-8").splitlines()
        assert len(rows) == 4 and "100 % of speed, extension and payload" in out
    elif name == "between":
        assert "stops between the cells" in out and 0.1 < float(out.split()[0]) < 0.5
    elif name == "map":
        pages = (tmp_path / "cell.png", tmp_path / "cell.csv")
        assert "Zones that must be free" in out and all(page.stat().st_size for page in pages)
    elif name == "heat":
        assert "an hour" in out and out.strip().split("\n")[-1].split()[1] in ("True", "False")
    else:
        # S_p and S of the same stops: 1.6 m/s over the whole time is in both.
        assert "5.5.4.2.3" in out and "sampled, not guaranteed" in out
        distance, sampled = map(float, out.strip().split("\n")[-2].split())
        assert distance >= sampled > float(out.strip().split("\n")[-1])

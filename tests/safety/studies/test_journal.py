"""The file of results: rows to the last digit, resuming after a kill, files of something else."""

from __future__ import annotations

import math
import os
import subprocess
import sys
import zlib
from pathlib import Path
from typing import Any

import pytest

import pinloop as pl
from pinloop.safety.studies.journal import Journal, read_rows

NAMES = ["case", "x", "outcome", "reason", "y"]
MANIFEST: dict[str, Any] = {"robot": "wheel", "sampling": "Sobol(count=8, seed=0)", "until": 10.0}


def row(case: int, x: float = 0.1, reason: str = "", y: float = 2.0) -> dict[str, float | str]:
    return {"case": float(case), "x": x, "outcome": "stopped", "reason": reason, "y": y}


def sealed(line: str) -> str:
    """A line with its checksum, as the file has it."""
    return f"{line},{zlib.crc32(line.encode('utf-8', 'surrogateescape')):08x}"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "deep" / "results.csv"


def open_journal(path: Path, **changes: Any) -> Journal:
    return Journal(path, NAMES, MANIFEST | changes)


def test_numbers_and_words_come_back_to_the_last_digit(path: Path) -> None:
    journal = open_journal(path)
    odd = [0.1 + 0.2, 1e-300, -1.7976931348623157e308, math.inf, 5e-324, 3.0, -0.0, 2.0**60]
    reasons = ['joint "a", b: 3 mm; open', "ö → \u2028 x", "'", ",,"]
    rows = [row(k, x, reasons[k % 4]) for k, x in enumerate(odd)]
    journal.append(rows[:5])
    journal.append(rows[5:])
    assert journal.done == 8
    assert list(read_rows(path, NAMES, 8)) == rows
    assert open_journal(path).done == 8
    assert path.read_text(encoding="utf-8").splitlines()[0] == "case,x,outcome,reason,y,checksum"


def test_what_is_not_there_is_no_number(path: Path) -> None:
    journal = open_journal(path)
    journal.append([{"case": 0.0, "outcome": "failed", "reason": "why", "x": math.nan}])
    (found,) = read_rows(path, NAMES, 1)
    assert math.isnan(float(found["y"])) and math.isnan(float(found["x"]))
    assert path.read_text().splitlines()[1] == sealed("0,nan,failed,why,")


def test_reading_a_part(path: Path) -> None:
    open_journal(path).append([row(k) for k in range(5)])
    assert [found["case"] for found in read_rows(path, NAMES, 3)] == [0.0, 1.0, 2.0]
    with pytest.raises(pl.PinloopError, match="it has 5 rows, not 6"):
        list(read_rows(path, NAMES, 6))
    path.unlink()
    with pytest.raises(pl.PinloopError, match=r"results file .* cannot be read .*No such file"):
        list(read_rows(path, NAMES, 3))
    assert not path.exists()


def test_a_torn_line_is_cut_off_wherever_it_is_torn(path: Path) -> None:
    journal = open_journal(path)
    journal.append([row(k, 0.1, 'a "quoted", reason') for k in range(3)])
    whole = path.read_bytes()
    lines = whole.splitlines(keepends=True)
    for size in range(len(whole) + 1):
        path.write_bytes(whole[:size])
        again = open_journal(path)
        kept = max(0, sum(len(b"".join(lines[: k + 1])) <= size for k in range(4)) - 1)
        assert again.done == kept, size
        again.append([row(k, 0.1, 'a "quoted", reason') for k in range(kept, 3)])
        assert path.read_bytes() == whole, size


@pytest.mark.parametrize(
    ("change", "match"),
    [
        (lambda text: text.replace("case,x", "case,z"), "its columns are not those of this study"),
        (lambda text: text.replace("\n1,", "\n2,"), "line 3 was changed"),
        (lambda text: text + sealed("1,0.1,stopped,,2") + "\n", "line 5 is not case 3"),
        (lambda text: text + sealed("one,0.1,stopped,,2") + "\n", "invalid literal"),
        (lambda text: text + sealed("3,7,0.1,stopped,,2") + "\n", "line 5 is not case 3"),
        (lambda text: text + sealed("\udcff3,0.1,stopped,,2") + "\n", "can't decode byte"),
        (lambda text: text + sealed(200_000 * "x" + ",0.1,stopped,,2") + "\n", "field larger"),
        (lambda text: "case,x,outcome,reason,y\n0,0.1,stopped,,2\n", "its columns are not those"),
        (lambda text: "notes of somebody, not a study\n", "its columns are not those"),
        (lambda text: text[:10], None),
        (lambda text: "", None),
    ],
)
def test_files_that_are_damaged(path: Path, change: Any, match: str | None) -> None:
    open_journal(path).append([row(k) for k in range(3)])
    damaged = change(path.read_text()).encode("utf-8", "surrogateescape")
    path.write_bytes(damaged)
    if match is None:
        assert open_journal(path).done == 0
        return
    with pytest.raises(pl.PinloopError, match=rf"cannot be read \(.*{match}.*move it away"):
        open_journal(path)
    assert path.read_bytes() == damaged


def test_no_byte_can_be_changed_without_notice(path: Path) -> None:
    rows = [row(k, 0.1 + k, "why, 'so'", -2.5 * k) for k in range(3)]
    open_journal(path).append(rows)
    whole = path.read_bytes()
    for place in range(len(whole)):
        for flip in (*(1 << bit for bit in range(8)), whole[place] ^ 10, whole[place] ^ ord("7")):
            if flip == 0:
                continue
            changed = bytearray(whole)
            changed[place] ^= flip
            path.write_bytes(changed)
            try:
                done = open_journal(path).done
            except pl.PinloopError:
                continue
            # Only the end of the last line can go unnoticed: then the line is computed again.
            assert list(read_rows(path, NAMES, done)) == rows[:done]
            assert done == 3 or place == len(whole) - 1


def test_a_file_of_somebody_else_is_not_touched(path: Path) -> None:
    path.parent.mkdir()
    path.write_text("important\n")
    with pytest.raises(pl.PinloopError, match=r"exists, but its manifest .* cannot be read"):
        open_journal(path)
    assert path.read_text() == "important\n"
    for content in ("[1, 2]", "no json", "{}"):
        Path(f"{path}.manifest.json").write_text(content)
        with pytest.raises(pl.PinloopError, match=r"manifest|another study"):
            open_journal(path)
        assert path.read_text() == "important\n"


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes")
def test_pipes_and_devices_are_no_files_for_results(path: Path) -> None:
    path.parent.mkdir()
    os.mkfifo(path)
    link = path.with_name("device.csv")
    link.symlink_to(os.devnull)
    for place in (path, link):
        with pytest.raises(pl.PinloopError, match="is no file; results are read again"):
            open_journal(place)
    assert sorted(path.parent.iterdir()) == sorted([path, link])
    assert not path.is_file() and link.is_symlink()


def test_another_study_is_named(path: Path) -> None:
    open_journal(path).append([row(0)])
    before = path.read_bytes()
    with pytest.raises(
        pl.PinloopError,
        match=r"holds another study: its until is 10\.0, not 5\.0; give another file",
    ):
        open_journal(path, until=5.0)
    with pytest.raises(pl.PinloopError, match=r'its sampling is "Sobol.*, not "Sobol'):
        open_journal(path, sampling="Sobol(count=16, seed=0)", until=5.0)
    with pytest.raises(pl.PinloopError, match="its more is null, not 1"):
        open_journal(path, more=1)
    assert path.read_bytes() == before


def test_two_runs_of_the_same_study_at_once(path: Path) -> None:
    one, two = open_journal(path), open_journal(path)
    one.append([row(0)])
    with pytest.raises(pl.PinloopError, match="does the same study run twice"):
        two.append([row(0)])
    assert open_journal(path).done == 1


def test_a_file_that_may_not_be_read_or_is_a_folder(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    open_journal(path).append([row(0)])
    before = path.read_bytes()

    usual = Path.open

    def denied(file: Path, mode: str = "r", *arguments: Any, **more: Any) -> Any:
        if file == path and mode == "rb":
            raise PermissionError(13, "Permission denied")
        return usual(file, mode, *arguments, **more)

    denial = r"cannot be read \(\[Errno 13\] Permission denied"
    with monkeypatch.context() as patch, pytest.raises(pl.PinloopError, match=denial):
        patch.setattr(Path, "open", denied)
        open_journal(path)
    assert path.read_bytes() == before
    path.rename(path.with_name("moved.csv"))
    path.mkdir()
    with pytest.raises(pl.PinloopError, match=r"cannot be read \(\[Errno 21\] Is a directory"):
        open_journal(path)


def test_of_long_lists_the_part_that_differs_is_named(path: Path) -> None:
    ranges = [[f"pose_joint_{k}_rad", -1.0, 1.0] for k in range(6)]
    open_journal(path, variables=[*ranges, ["payload_kg", 0.0, 3.0]])
    with pytest.raises(
        pl.PinloopError,
        match=r'variables is \["payload_kg", 0\.0, 3\.0\], not \["payload_kg", 0\.0, 4\.0\]; give',
    ):
        open_journal(path, variables=[*ranges, ["payload_kg", 0.0, 4.0]])
    with pytest.raises(
        pl.PinloopError, match=r'variables is \[\["pose_joint_0_rad.*\.\.\., not \[\];'
    ):
        open_journal(path, variables=[])


def test_a_folder_that_cannot_be(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(pl.PinloopError, match=r"cannot be written: Not a directory|File exists"):
        open_journal(tmp_path / "file" / "results.csv")


def test_a_write_that_fails_takes_back_what_it_has_written(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal = open_journal(path)
    journal.append([row(0)])
    before = path.read_bytes()

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(
            pl.PinloopError,
            match=r"cannot be written \(No space left on device\); 1 cases are done: make room",
        ):
            journal.append([row(1), row(2)])
    assert path.read_bytes() == before and journal.done == 1
    journal.append([row(1)])
    assert open_journal(path).done == 2


FULL = """
import resource, sys
from tests.safety.studies.test_journal import open_journal, row
import pinloop as pl
from pathlib import Path
path = Path(sys.argv[1])
journal = open_journal(path)
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]), resource.RLIM_INFINITY))
try:
    while True:
        journal.append([row(k, 0.1) for k in range(journal.done, journal.done + 10)])
except pl.PinloopError as error:
    print(journal.done, error)
"""


def test_no_room_for_a_file_of_this_size(path: Path) -> None:
    """The kernel writes what fits and refuses the rest, as on a disk that is full."""
    done = subprocess.run(
        [sys.executable, "-c", FULL, str(path), "1000"],
        cwd=Path(__file__).parents[3], capture_output=True, text=True, timeout=60, check=True,
    )  # fmt: skip
    count, _, sentence = done.stdout.partition(" ")
    assert "File too large" in sentence and f"{count} cases are done" in sentence
    # A header of 33 bytes, ten rows of 26, then rows of 27: ten more would be 1103 bytes.
    assert int(count) == 30
    assert path.stat().st_size == 33 + 10 * 26 + 20 * 27
    journal = open_journal(path)
    assert journal.done == 30
    journal.append([row(k, 0.1) for k in range(30, 40)])
    assert [found["case"] for found in read_rows(path, NAMES, 40)] == list(range(40))


def test_rows_are_on_the_disk_when_they_are_counted(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[bytes] = []
    fsync = os.fsync

    def seen(descriptor: int) -> None:
        fsync(descriptor)
        synced.append(path.read_bytes() if path.exists() else b"")

    monkeypatch.setattr(os, "fsync", seen)
    journal = open_journal(path)
    synced.clear()
    journal.append([row(0), row(1)])
    assert synced[-1].count(b"\n") == 3

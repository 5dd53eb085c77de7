"""Promises about processes, memory, networks and files that a program relies on without asking."""

from __future__ import annotations

import contextlib
import hashlib
import multiprocessing
import os
import resource
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tools.soak.promises import COUNT, ROBOTS, WORK, draw_long_run, repeat, run_long

import pinloop as pl

from ..io.every_format import URDF_TREE
from ..robots_to_break import XACRO, XML
from ..states import URDF, robot

# -- processes and threads ------------------------------------------------------------------


def digest(name: str) -> str:
    """What a run, a stop and a regularization give, to the last bit."""
    machine = robot(name)
    q = pl.assemble(machine)
    v = pl.consistent_velocity(machine, q, {machine.actuated[0]: 0.3})
    run = pl.simulate(machine, q, v, until=0.1)
    stop = pl.stop(machine, q, v, brakes=pl.Brakes.template(machine))
    rows = pl.regularize(machine)
    J = pl.Constraints(rows).jacobian(q)
    parts = (run.t, run.q, run.v, stop.run.q, stop.run.t, J)
    return hashlib.sha256(
        b"".join(np.ascontiguousarray(part).tobytes() for part in parts)
    ).hexdigest()


@pytest.mark.skipif(os.name == "nt", reason="there is no fork")
@pytest.mark.filterwarnings("ignore::pinloop.PinloopWarning", "ignore:.*fork:DeprecationWarning")
@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_processes_give_the_same_bits(method: str) -> None:
    """Also one that is forked after the robot was used, with all that is remembered of it."""
    wanted = digest("palletizer")
    with multiprocessing.get_context(method).Pool(2) as pool:
        assert pool.map(digest, ["palletizer"] * 3) == [wanted] * 3


PROGRAM = (
    "from tests.project.test_promises import digest; print(*map(digest, ('delta', 'stewart')))"
)


def test_one_and_two_threads_of_blas_give_the_same_bits() -> None:
    def run(threads: int) -> str:
        environment = os.environ | {
            name: str(threads)
            for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")
        }
        done = subprocess.run(
            [sys.executable, "-W", "ignore", "-c", PROGRAM],
            env=environment, cwd=Path(__file__).parents[2], check=True, capture_output=True,
            text=True, timeout=300,
        )  # fmt: skip
        return done.stdout

    assert run(1) == run(2)


# -- memory and time ------------------------------------------------------------------------


@pytest.mark.parametrize("what", WORK)
def test_memory_stays_flat(what: str) -> None:
    """The campaign ``loads`` of `tools.soak` does it 10,000 times."""
    assert COUNT == 10_000 and "fourbar" in ROBOTS
    assert repeat({"what": what, "robot": "fourbar", "count": 300}).findings == ()


def test_a_four_bar_turns_for_three_hours() -> None:
    """10,000 s: its loop stays closed, and its energy what it was."""
    data = draw_long_run(np.random.default_rng(1))
    assert data["until"] == 1e4
    assert run_long(data).findings == ()


# -- no network, no code ----------------------------------------------------------------------


@pytest.fixture
def no_network(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Connections and names that somebody asked for."""
    asked: list[Any] = []

    def refuse(*arguments: Any, **_: Any) -> Any:
        asked.append(arguments)
        raise OSError("there is no network")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket.socket, "connect_ex", refuse)
    for name in ("getaddrinfo", "gethostbyname", "create_connection"):
        monkeypatch.setattr(socket, name, refuse)
    return asked


PLACES = ("http://localhost:1/a.stl", "https://localhost:1/a.stl", "ftp://localhost/a.stl",
          "//localhost/share/a.stl", "package://far/a.stl", "model://far")  # fmt: skip


@pytest.mark.filterwarnings("ignore::pinloop.PinloopWarning")
@pytest.mark.parametrize("place", PLACES)
def test_nothing_asks_the_network(place: str, no_network: list[Any], tmp_path: Path) -> None:
    shape = f'<visual><geometry><mesh filename="{place}"/></geometry></visual>'
    texts = [
        URDF_TREE.replace('<link name="base"/>', f'<link name="base">{shape}</link>'),
        f'<sdf version="1.9"><world name="w"><include><uri>{place}</uri></include></world></sdf>',
        f'<mujoco><include file="{place}"/></mujoco>',
        f'<mujoco><asset><mesh name="m" file="{place}"/></asset><worldbody><body><joint/>'
        '<geom type="mesh" mesh="m"/></body></worldbody></mujoco>',
        f'<!DOCTYPE robot SYSTEM "{place}"><robot name="a"><link name="a"/></robot>',
    ]
    for text in texts:
        with contextlib.suppress(pl.PinloopError):
            machine = pl.load(text)
            q = pl.assemble(machine)
            pl.save_html(machine, tmp_path / "robot.html")
            run = pl.simulate(machine, q, until=0.01)
            run.save_html(tmp_path / "run.html")
            pl.stop(machine, q, 0.0 * run.v[0], brakes=pl.Brakes.template(machine))
    assert no_network == []


CODE = (
    "!!python/object/apply:os.system ['touch ran']",
    "!!python/object/apply:builtins.eval [\"open('ran', 'w')\"]",
    "!!python/name:os.system",
    "${open('ran', 'w')}",
    "${__import__('os').system('touch ran')}",
    "${[].__class__.__base__.__subclasses__()}",
    "$(eval open('ran', 'w'))",
    "$(env HOME)`touch ran`;touch ran",
)


@pytest.mark.filterwarnings("ignore::pinloop.PinloopWarning")
@pytest.mark.parametrize("code", CODE)
def test_no_code_of_a_file_is_run(
    code: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    quoted = code.replace("'", "&apos;").replace('"', "&quot;")
    xacro = XACRO["xacro"].replace('value="0.5"', f'value="{quoted}"')
    (tmp_path / "a.xacro").write_text(xacro)
    (tmp_path / "a.yaml").write_text(f"bodies: {code}\n")
    (tmp_path / "b.brakes.yaml").write_text(f"format: {code}\n")
    tree = XML["urdf"].replace('xyz="0 0 1"', f'xyz="{quoted}"')
    readers: list[Callable[[], Any]] = [
        lambda: pl.load(tmp_path / "a.xacro"),
        lambda: pl.load(tmp_path / "a.yaml"),
        lambda: pl.load(tree),
        lambda: pl.load(URDF_TREE, loops={"loops": code}),
        lambda: pl.Brakes.from_yaml(tmp_path / "b.brakes.yaml"),
        lambda: pl.load_scenario(tmp_path / "a.yaml"),
    ]
    for reader in readers:
        with pytest.raises(pl.PinloopError):
            reader()
    assert not (tmp_path / "ran").exists()


class Touch:
    """A pickle of it makes a file where it is read."""

    def __reduce__(self) -> Any:
        return os.system, ("touch ran",)


def test_no_pickle_of_a_run_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    np.savez(tmp_path / "run.npz", t=np.array([Touch()], dtype=object))
    with pytest.raises(pl.PinloopError):
        pl.load_trajectory(tmp_path / "run.npz")
    assert not (tmp_path / "ran").exists()


# -- whole files or none ----------------------------------------------------------------------

WRITERS: dict[str, Callable[[Any, Any, Path], Any]] = {
    "run.npz": lambda run, stop, path: run.save(path),
    "run.csv": lambda run, stop, path: run.to_csv(path),
    "run.html": lambda run, stop, path: run.save_html(path),
    "robot.urdf": lambda run, stop, path: run.robot.save(path),
    "robot.xml": lambda run, stop, path: run.robot.save(path),
    "stop.html": lambda run, stop, path: stop.save_html(path),
    "a.brakes.yaml": lambda run, stop, path: stop.brakes.to_yaml(path),
}


@pytest.mark.skipif(os.name == "nt", reason="there is no fork")
@pytest.mark.filterwarnings("ignore::pinloop.PinloopWarning", "ignore:.*fork:DeprecationWarning")
@pytest.mark.parametrize("fate", ["disk", "kill"])
@pytest.mark.parametrize("name", WRITERS)
def test_a_full_disk_or_a_kill_leaves_the_old_file_or_the_new_one(
    name: str, fate: str, tmp_path: Path
) -> None:
    machine = pl.load(URDF / "fourbar.urdf")
    q = pl.assemble(machine)
    run = pl.simulate(machine, q, until=0.05)
    stop = pl.stop(machine, q, 0 * run.v[0], brakes=pl.Brakes.template(machine))
    path = tmp_path / name
    WRITERS[name](run, stop, path)
    whole = {file.name: file.read_bytes() for file in tmp_path.iterdir()}
    size = max(len(content) for content in whole.values())
    for content in whole:
        (tmp_path / content).write_bytes(b"old")
    for part in (1, size // 2, size - 1):
        child = os.fork()
        if child == 0:
            _write_with_little_room(lambda: WRITERS[name](run, stop, path), part, fate)
        _, status = os.waitpid(child, 0)
        assert os.WIFSIGNALED(status) if fate == "kill" else os.WEXITSTATUS(status) == 7
        for file in whole:
            assert (tmp_path / file).read_bytes() in (b"old", whole[file])
    assert path.read_bytes() == b"old"


def _write_with_little_room(write: Callable[[], Any], size: int, fate: str) -> None:
    """In a child: files have room for so many bytes; then the disk is full, or the child dies."""
    if fate == "disk":
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    else:
        signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))
    try:
        write()
    except pl.PinloopError:
        os._exit(7)
    finally:
        os._exit(1)

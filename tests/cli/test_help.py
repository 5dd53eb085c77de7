"""One style of help over all commands, its examples, and what the shell completes."""

from __future__ import annotations

import inspect
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from pinloop.cli import main as cli

from .commands import Captured

ROOT = Path(__file__).parents[2]


def commands(command: Any, words: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """All commands with the words that call them."""
    below = getattr(command, "commands", None)
    if below is None:
        yield words, command
        return
    for name, one in below.items():
        yield from commands(one, (*words, name))


COMMANDS = dict(commands(get_command(cli.app)))
NAMES = pytest.mark.parametrize("words", COMMANDS, ids=" ".join)


def test_all_commands_are_there() -> None:
    assert [" ".join(words) for words in COMMANDS] == [
        "check", "assemble", "regularize", "convert", "view", "examples", "simulate", "play",
        "stop", "study", "worst", "allowed-speed", "cell-map", "separation", "minimum-distance",
        "annex-b", "compare", "fit", "swept", "brakes init",
    ]  # fmt: skip


def examples(command: Any) -> list[str]:
    return re.findall(r"^Example: pinloop (.+)$", command.epilog, re.MULTILINE)


@NAMES
@pytest.mark.parametrize("width", [80, 120])
def test_a_page_of_help(
    words: tuple[str, ...], width: int, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    monkeypatch.setenv("TERMINAL_WIDTH", str(width))
    assert cli.run([*words, "--help"]) == 0
    out = capsys.readouterr().out
    lines = [line.rstrip() for line in out.splitlines()]
    assert max(map(len, lines)) <= width
    flat = re.sub(r"\s+", " ", out)
    assert f"Usage: pinloop {' '.join(words)} [OPTIONS]" in flat
    summary = (COMMANDS[words].help or "").partition("\n")[0]
    assert summary.endswith(".") and summary in flat
    assert f"Example: pinloop {examples(COMMANDS[words])[0]}" in flat
    _, _, codes = flat.partition("Exit codes: ")
    numbers = [int(code.split()[0]) for code in codes.strip().split("; ")]
    assert numbers == sorted(set(numbers)) and {0, 2} <= set(numbers)
    assert "2 invalid input" in codes and codes.strip().endswith(".")


@pytest.mark.parametrize("words", [*COMMANDS, (), ("brakes",)], ids=" ".join)
def test_flags_have_no_value(words: tuple[str, ...], capsys: Captured) -> None:
    assert cli.run([*words, "--help"]) == 0
    out = capsys.readouterr().out
    assert "bool" not in out and "--help" in out and "--pose" not in out


@NAMES
def test_results_are_json_alike(words: tuple[str, ...]) -> None:
    """Every command that prints a result has the option; the others show, or write one file."""
    options = {option for parameter in COMMANDS[words].params for option in parameter.opts}
    assert ("--json" in options) == (words[0] not in ("convert", "view", "play", "brakes"))


@NAMES
def test_the_style_of_options(words: tuple[str, ...]) -> None:
    """Sentences, values in capitals, one wording for what several commands share."""
    for parameter in COMMANDS[words].params:
        if parameter.name == "help":
            continue
        text = inspect.cleandoc(parameter.help or "")
        assert text[:1].isupper() and text.endswith("."), parameter.name
        if parameter.param_type_name == "argument" or not parameter.is_flag:
            value = parameter.metavar or "|".join(parameter.type_descriptor.choices or ())
            assert value, f"{parameter.name} has no word for its value"
        if parameter.multiple:
            assert "May be given several times." in text, parameter.name


def test_the_same_option_has_the_same_help() -> None:
    told: dict[str, set[tuple[str, str]]] = {}
    for command in COMMANDS.values():
        for parameter in command.params:
            for option in parameter.opts:
                told.setdefault(option, set()).add((str(parameter.metavar), str(parameter.help)))
    shared = ("robot", "--loops", "--package-dir", "--floating-base", "--ignore-limits", "--json",
              "--brakes", "--jobs", "--results")  # fmt: skip
    for name in shared:
        assert len(told[name]) == 1, name


# -- examples -------------------------------------------------------------------------------------


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with what examples name; the robot of another package is only there by name."""
    for name in ("urdf", "examples"):
        (tmp_path / name).symlink_to(ROOT / name)
    (tmp_path / "ur5_robot.urdf").touch()
    monkeypatch.chdir(tmp_path)
    return tmp_path


QUICK = [line for words, command in COMMANDS.items() for line in examples(command)
         if words[0] not in ("play", "study", "worst", "compare", "fit")]  # fmt: skip


@pytest.mark.parametrize("line", QUICK)
def test_an_example_runs(line: str, shop: Path, capsys: Captured) -> None:
    assert cli.run(shlex.split(line)) == 0, capsys.readouterr().err
    for name in re.findall(r"(?:-o|--html|--csv) (\S+)", line):
        assert (shop / name).stat().st_size > 0


def test_the_example_of_play_runs(shop: Path) -> None:
    assert cli.run(["simulate", "urdf/fourbar.scenario.yaml", "-o", "run.npz"]) == 0
    (line,) = examples(COMMANDS["play",])
    assert cli.run(shlex.split(line)) == 0
    assert (shop / "run.html").stat().st_size > 0


@pytest.mark.parametrize("name", ["study", "worst", "compare", "fit"])
def test_an_example_of_many_stops_is_understood(
    name: str, shop: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its words arrive; what they ask for is computed by tests of their own, which takes long."""
    seen: dict[str, Any] = {}

    def noted(**arguments: Any) -> int:
        seen.update(arguments)
        return 0

    monkeypatch.setattr(COMMANDS[name,], "callback", noted)
    (line,) = examples(COMMANDS[name,])
    command = COMMANDS[name,]
    with command.make_context("pinloop", shlex.split(line)[1:]) as context:
        command.invoke(context)
    given = [parameter for parameter in command.params if parameter.param_type_name == "argument"]
    files = [seen[parameter.name] for parameter in given]
    every = [x for some in files for x in (some if isinstance(some, list | tuple) else [some])]
    assert every and all(Path(file).is_file() for file in every)


# -- completion -----------------------------------------------------------------------------------


def complete(
    capsys: Captured, monkeypatch: pytest.MonkeyPatch, line: str, shell: str = "bash"
) -> list[str]:
    """What a shell is told when TAB is pressed at the end of a line."""
    asked = {
        "bash": {"COMP_WORDS": line, "COMP_CWORD": str(len(line.split(" ")) - 1)},
        "zsh": {"_TYPER_COMPLETE_ARGS": line},
        "fish": {"_TYPER_COMPLETE_ARGS": line, "_TYPER_COMPLETE_FISH_ACTION": "get-args"},
    }[shell]
    for name, value in {"_PINLOOP_COMPLETE": f"complete_{shell}", **asked}.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(SystemExit):
        cli.run([])
    out, err = capsys.readouterr()
    assert err == ""
    return re.findall(r"[\w./=-]+", out.replace("_arguments", ""))


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_files_are_completed_in_every_shell(
    capsys: Captured, monkeypatch: pytest.MonkeyPatch, shell: str
) -> None:
    monkeypatch.chdir(ROOT)
    found = complete(capsys, monkeypatch, "pinloop check urdf/palletizer.u", shell)
    assert "urdf/palletizer.urdf" in found and "urdf/delta.urdf" not in found


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("pinloop assemble urdf/pal", [f"urdf/palletizer.{end}" for end in
                                       ("brakes.yaml", "scenario.yaml", "urdf")]),
        ("pinloop assemble urdf/palletizer.urdf --q sho", ["shoulder="]),
        ("pinloop view urdf/palletizer.urdf --q front", ["front_rod_hinge="]),
        ("pinloop stop urdf/six_axis_arm.urdf --speed joint_1", ["joint_1="]),
        ("pinloop assemble urdf/none.urdf --q sho", []),
        ("pinloop simulate urdf/four", ["urdf/fourbar.scenario.yaml"]),
        ("pinloop simulate nowhere/", []),
        ("pinloop worst urdf/six_axis_arm.study.yaml --html docs/s", ["docs/schemas/"]),
        ("pinloop sim", ["simulate"]),
        ("pinloop brakes i", ["init"]),
        ("pinloop assemble --igno", ["--ignore-limits"]),
    ],
)  # fmt: skip
def test_what_is_completed(
    capsys: Captured, monkeypatch: pytest.MonkeyPatch, line: str, found: list[str]
) -> None:
    monkeypatch.chdir(ROOT)
    assert complete(capsys, monkeypatch, line) == found


def test_a_lone_folder_offers_what_is_in_it(
    tmp_path: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "robots").mkdir()
    for name in ("a.urdf", "b.urdf", "notes.txt", ".hidden.urdf"):
        (tmp_path / "robots" / name).touch()
    monkeypatch.chdir(tmp_path)
    found = complete(capsys, monkeypatch, "pinloop check ro")
    assert found == ["robots/a.urdf", "robots/b.urdf"]

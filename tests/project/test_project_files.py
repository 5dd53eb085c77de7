"""Files around the code: one version, valid forms, and a source distribution with all it needs."""

from __future__ import annotations

import re
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

import pinloop as pl

from ..conftest import DEFAULT, MARKS, mark_and_pattern

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
FORMS = sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml"))


def read(name: str) -> Any:
    return yaml.safe_load((ROOT / name).read_text(encoding="utf-8"))


# -- one version ----------------------------------------------------------------------------


def test_the_citation_is_of_this_version() -> None:
    assert read("CITATION.cff")["version"] == pl.__version__


def test_the_recipe_is_of_this_version_and_needs_what_the_package_needs() -> None:
    recipe = read("recipe/recipe.yaml")
    assert recipe["schema_version"] == 1 and recipe["context"]["version"] == pl.__version__
    other = {"pin": "pinocchio", "meshcat": "meshcat-python"}  # names at conda-forge
    wanted = [
        re.split(r"(?=[<>=])", need, maxsplit=1) for need in PROJECT["project"]["dependencies"]
    ]
    needs = {other.get(name, name): bounds for name, bounds in wanted}
    own = dict(need.split(" ") for need in recipe["requirements"]["run"] if " " in need)
    assert own == needs


def test_an_index_shows_the_readme_without_what_is_beside_it() -> None:
    """Links and pictures lead to files of the release, which exist."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    for rule in PROJECT["tool"]["hatch"]["metadata"]["hooks"]["fancy-pypi-readme"]["substitutions"]:
        text = re.sub(rule["pattern"], rule["replacement"].replace("$HFPR_VERSION", "9"), text)
    targets = re.findall(r"\]\(([^)]+)\)", text)
    assert len(targets) > 30 and all(x.startswith(("https://", "#")) for x in targets)
    home = PROJECT["project"]["urls"]["Source"]
    pictures = [x for x in re.findall(r"!\[[^\]]*\]\(([^)]+)\)", text)]
    assert pictures and all("raw.githubusercontent.com" in x for x in pictures)
    raw = home.replace("github.com", "raw.githubusercontent.com") + "/v9/"
    for target in targets:
        for base in (f"{home}/blob/v9/", raw):
            if target.startswith(base):
                assert (ROOT / target.removeprefix(base).partition("#")[0]).exists(), target


def test_the_package_takes_its_version_from_the_same_place() -> None:
    assert "version" in PROJECT["project"]["dynamic"] and "version" not in PROJECT["project"]
    path = ROOT / PROJECT["tool"]["scikit-build"]["metadata"]["version"]["input"]
    assert re.findall(r'^__version__ = "(.*)"$', path.read_text(), re.MULTILINE) == [pl.__version__]


def test_the_changelog_has_this_version_or_announces_it() -> None:
    """Newest first, each release with its date."""
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert text.index("## [Unreleased]") < min(
        (match.start() for match in re.finditer(r"^## \[\d", text, re.MULTILINE)), default=len(text)
    )
    releases = re.findall(r"^## \[(\d+)\.(\d+)\.(\d+)\](.*)$", text, re.MULTILINE)
    numbers = [tuple(map(int, release[:3])) for release in releases]
    assert numbers == sorted(numbers, reverse=True)
    assert all(re.fullmatch(r" - \d{4}-\d\d-\d\d", release[3]) for release in releases)
    assert f"[{pl.__version__}]" in text or f"To become {pl.__version__}" in text
    groups = set(re.findall(r"^### (.*)$", text, re.MULTILINE))
    assert groups <= {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}


# -- citation -------------------------------------------------------------------------------


def test_the_citation_has_what_the_format_asks_for() -> None:
    """Required keys of Citation File Format 1.2.0, of the file and of each reference."""
    citation = read("CITATION.cff")
    assert citation["cff-version"] == "1.2.0" and citation["type"] == "software"
    assert citation["license"] == PROJECT["project"]["license"]
    assert citation["title"] == PROJECT["project"]["name"] and citation["message"]
    authors = [author["name"] for author in citation["authors"]]
    assert authors == [author["name"] for author in PROJECT["project"]["authors"]]
    assert len(citation["references"]) == 5
    for reference in citation["references"]:
        assert {"type", "authors", "title"} <= set(reference)
        assert all({"given-names", "family-names"} <= set(one) for one in reference["authors"])


# -- forms ----------------------------------------------------------------------------------

FIELDS = {"markdown", "textarea", "input", "dropdown", "checkboxes"}


@pytest.mark.parametrize(
    "form", [pytest.param(path, id=path.stem) for path in FORMS if path.stem != "config"]
)
def test_a_form_is_one(form: Path) -> None:
    """Keys and kinds of fields of GitHub's form schema; identifiers are unique."""
    content = yaml.safe_load(form.read_text(encoding="utf-8"))
    assert set(content) <= {"name", "description", "title", "labels", "assignees", "body"}
    assert content["name"] and content["description"]
    asked = [field for field in content["body"] if field["type"] != "markdown"]
    assert all(field["type"] in FIELDS for field in content["body"])
    names = [field["id"] for field in asked]
    assert len(set(names)) == len(names) and all(re.fullmatch(r"[\w-]+", name) for name in names)
    assert all(field["attributes"]["label"] for field in asked)
    assert any(field.get("validations", {}).get("required") for field in asked)
    for field in content["body"]:
        assert field["type"] != "markdown" or field["attributes"]["value"]
        assert field["type"] != "dropdown" or len(field["attributes"]["options"]) > 1


def test_there_is_a_form_for_each_kind_of_report() -> None:
    assert {path.stem for path in FORMS} == {
        "bug_report", "robot_file", "feature_request", "config",
    }  # fmt: skip


# -- tools ----------------------------------------------------------------------------------


def test_the_hooks_are_the_tools_of_the_environment() -> None:
    """So they cannot be of another version than those of the gate."""
    (repository,) = read(".pre-commit-config.yaml")["repos"]
    assert repository["repo"] == "local"
    known = {re.split(r"[<>=\[ ]", need)[0] for need in needs("test")}
    owner = {"ruff": "ruff", "mypy": "mypy", "lint-imports": "import-linter"}
    for hook in repository["hooks"]:
        assert hook["language"] == "system"
        assert owner[hook["entry"].split()[0]] in known
    gate = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    assert all(hook["entry"].split()[0] in gate for hook in repository["hooks"])


def needs(extra: str) -> list[str]:
    return list(PROJECT["project"]["optional-dependencies"][extra])


def test_every_pattern_of_a_mark_decides_for_a_file() -> None:
    """Files that were renamed would otherwise lose their mark without a word."""
    deciding = {mark_and_pattern(path) for path in (ROOT / "tests").rglob("test_*.py")}
    assert {(mark, pattern) for mark, several in MARKS.items() for pattern in several} <= deciding
    known = {text.partition(":")[0] for text in PROJECT["tool"]["pytest"]["ini_options"]["markers"]}
    assert known == {*MARKS, DEFAULT}


def test_a_test_has_the_mark_of_its_file(request: pytest.FixtureRequest) -> None:
    """Every test of this run has one of the marks, and only one."""
    for item in request.session.items:
        assert [mark.name for mark in item.iter_markers() if mark.name in {*MARKS, DEFAULT}] == [
            mark_and_pattern(item.path)[0]
        ]


def test_extras_name_extras_that_exist() -> None:
    extras = PROJECT["project"]["optional-dependencies"]
    for found in (need for several in extras.values() for need in several):
        if match := re.fullmatch(r"pinloop\[(.*)\]", found):
            assert set(match[1].split(",")) <= set(extras)


def test_the_source_distribution_carries_what_is_needed() -> None:
    """All that is under version control, except what git and editors alone need."""
    included = PROJECT["tool"]["scikit-build"]["sdist"]["include"]
    for name in included:
        assert (ROOT / name).exists(), name
    for text in ("README.md", "CONTRIBUTING.md"):
        for target in re.findall(r"\]\(([^)#:]+)\)", (ROOT / text).read_text(encoding="utf-8")):
            assert Path(target).parts[0] in included, target
            assert (ROOT / target).exists(), target
    if not (ROOT / ".git").exists():
        pytest.skip("not a checkout: nothing to compare with")
    listed = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, check=True, capture_output=True, text=True, timeout=60
    ).stdout.splitlines()
    tracked = {Path(name).parts[0] for name in listed}
    assert tracked <= set(included)

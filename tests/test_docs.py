"""What README and docs say is what the program does."""

from __future__ import annotations

import doctest
import importlib
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import click
import pytest

import byhand
from byhand.checking.verdicts import Verdict
from byhand.cli import main
from byhand.models import builtin_names
from calling import Outcome
from elsewhere import sum_otherwise

ROOT = Path(__file__).parent.parent
COG = ("-P", "-I", "docs", "--markers={{{cog }}} {{{end}}}")  # as in `make docs`
PAGES = [ROOT / "README.md", ROOT / "README.es.md", *sorted((ROOT / "docs").glob("*.md"))]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_transcript_is_what_the_command_prints(page: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "cogapp", *COG, "--check", "--diff", str(page)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"run `make docs`\n{done.stdout}{done.stderr}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_python_example_gives_what_it_says(page: Path) -> None:
    blocks = re.findall(r"```python\n(.*?)```", page.read_text("utf-8"), re.DOTALL)
    assert all(">>>" in block for block in blocks), "what is not typed in is not run"
    source = "\n".join(blocks)
    test = doctest.DocTestParser().get_doctest(source, {}, page.name, str(page), 0)
    result = doctest.DocTestRunner().run(test)
    assert result.failed == 0


IN_FLOATS = [
    pytest.param(command, output, id=command)
    for page in PAGES
    for command, output in re.findall(
        r"```console\n\$ (byhand [^\n]*(?:--float|generate minigpt)[^\n]*)\n(.*?)\n```",
        page.read_text("utf-8"),
        re.DOTALL,
    )
]


@pytest.mark.parametrize(("command", "output"), IN_FLOATS)
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a_transcript_in_floats_is_the_same_in_whatever_order_a_machine_sums(
    command: str, output: str, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "docs"))
    transcript = importlib.import_module("transcript")
    sum_otherwise(monkeypatch, seed)
    assert transcript.run(command) == output


def judged(dump: Path) -> list[tuple[str, Verdict, list[str]]]:
    """Which verdict each line of a dump gets, and who is suspected."""
    marking = byhand.check("minigpt", dump)
    return [(line.address, line.verdict, [one.kind for one in line.suspects]) for line in marking]


def test_a_dump_of_the_port_made_here_is_judged_like_the_one_in_the_page(tmp_path: Path) -> None:
    port = ROOT / "docs" / "examples" / "port.py"
    subprocess.run([sys.executable, str(port), str(tmp_path / "here.npz")], check=True)
    assert judged(tmp_path / "here.npz") == judged(port.with_suffix(".npz"))


def test_every_command_and_option_is_documented() -> None:
    text = (ROOT / "docs" / "commands.md").read_text("utf-8")
    assert isinstance(main, click.Group)
    for name, command in main.commands.items():
        assert f"## byhand {name}" in text
        for parameter in command.params:
            for option in parameter.opts:
                if option.startswith("-"):
                    assert option in text, f"byhand {name} {option}"


TOURS = [ROOT / "docs" / "tour.md", ROOT / "docs" / "tour.es.md"]


@pytest.mark.parametrize("page", TOURS, ids=lambda page: page.name)
def test_every_built_in_model_is_in_the_tour(page: Path) -> None:
    text = page.read_text("utf-8")
    assert [name for name in builtin_names() if f"`{name}`" not in text] == []


def outline(page: Path) -> list[str]:
    """Headings as levels, commands, code: all that does not depend on the language."""
    text = page.read_text("utf-8")
    text = re.sub(r"<!-- {{{cog.*?{{{end}}} -->", "cog", text, flags=re.DOTALL)
    code = re.findall(r"`[^`\n]+`|```.*?```", text, re.DOTALL)
    headings = [line.split()[0] for line in text.splitlines() if line.startswith("#")]
    return [*headings, str(text.count("cog")), *sorted(set(code))]


@pytest.mark.parametrize("pages", [PAGES[:2], TOURS], ids=["front", "tour"])
def test_both_languages_say_the_same(pages: list[Path]) -> None:
    assert outline(pages[0]) == outline(pages[1])


def written() -> list[Path]:
    """Every page of the repository in Markdown."""
    found = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("src/**/*.md")]
    return [page for page in sorted(found) if in_the_repository(page)]


def in_the_repository(path: Path) -> bool:
    """Whether a file is kept, and does not merely lie there because somebody made it."""
    done = subprocess.run(["git", "check-ignore", "-q", str(path)], cwd=ROOT, check=False)
    return path.exists() and done.returncode != 0


def test_every_link_leads_to_something_that_the_repository_keeps() -> None:
    dead = []
    for page in written():
        for link in re.findall(r"\]\((?!\w+:)([^)\s]+)", page.read_text("utf-8")):
            file, _hash, place = link.partition("#")
            target = page.parent / file if file else page
            if not in_the_repository(target) or (place and place not in headings(target)):
                dead.append(f"{page.relative_to(ROOT)}: {link}")
    assert dead == []


def test_every_file_that_a_page_names_is_in_the_repository() -> None:
    listed = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.split()
    kept = "\n".join(f"/{path}" for path in listed) + "\n"
    for page in written():
        if page.name != "CHANGELOG.md":  # which tells what was, too
            for name in re.findall(r"`([\w/]+\.py)`", page.read_text("utf-8")):
                assert f"/{name}\n" in kept, f"{page.relative_to(ROOT)}: {name}"


def headings(page: Path) -> set[str]:
    """What stands behind # to lead to a heading of a page."""
    found = re.findall(r"(?m)^#+ (.*)$", page.read_text("utf-8"))
    return {re.sub(r"[^\w -]", "", head.lower()).strip().replace(" ", "-") for head in found}


def test_the_commands_that_make_the_books_make_them(
    byhand: Callable[..., Outcome], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    listed = (ROOT / "docs" / "books" / "README.md").read_text("utf-8")
    commands = re.findall(r"`(byhand book .*?)`", listed)
    assert len(commands) == len(builtin_names()) + 2 + 4  # two in Spanish, four examples
    monkeypatch.chdir(tmp_path)
    for command in commands:
        if " tiny " in command:  # the others are made in the same way
            assert byhand(*command.split()[1:]).status == 0
            assert Path(command.split("--out ")[1].split()[0], "index.html").exists()


FRONT = ["README.md", "README.es.md"]


@pytest.mark.parametrize("page", FRONT)
def test_the_front_page_is_short_and_begins_with_a_picture(page: str) -> None:
    lines = (ROOT / page).read_text("utf-8").splitlines()
    assert len(lines) <= 160
    assert any(line.startswith("![") for line in lines[:12])


@pytest.mark.parametrize("page", FRONT)
def test_every_picture_of_the_front_page_is_there(page: str) -> None:
    pictures = re.findall(r"!\[[^]]+\]\(([^)]+)\)", (ROOT / page).read_text("utf-8"))
    assert len(pictures) == 6
    assert [name for name in pictures if not (ROOT / name).is_file()] == []


@pytest.mark.parametrize(("language", "name"), [("en", "pass.svg"), ("es", "pass.es.svg")])
def test_the_moving_picture_is_that_of_a_trace(
    language: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    drawn = importlib.import_module("moving_picture").picture(language)
    assert drawn == (ROOT / "docs" / "pictures" / name).read_text("utf-8")
    assert "1 + e" in drawn

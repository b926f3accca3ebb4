"""`byhand.prove` in Python: the options of the command line, the same answers and refusals."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from io import StringIO
from pathlib import Path
from typing import Any

import click
import pytest

import byhand as library
from byhand.cli import main
from byhand.document.media.json.proof import write_json
from byhand.errors import ByhandError, UsageError
from byhand.proofs import Simple
from calling import Outcome

Call = Callable[..., Outcome]
OF_THE_SEARCH = {
    "certificate", "resume", "jobs", "seconds", "cluster", "html", "pdf", "as_json", "lang",
    "model", "property",
}  # fmt: skip


def test_python_has_the_options_of_the_command_line() -> None:
    named = {param.name for param in main.commands["prove"].params}
    assert named - OF_THE_SEARCH == set(Simple.__annotations__)
    assert all(isinstance(param, click.Parameter) for param in main.commands["verify"].params)


@pytest.mark.parametrize(
    "said",
    [
        {"texts": "a .", "next": "a"},
        {"length": 2, "constant": True},
        {"up_to": 2, "of": "a c", "lead": "a over b"},
        {"texts": "(?<x>[a b]) a", "next": "x"},
        {"texts": "a b", "at": "block.0.attn.weights[0,-1,-1] >= 0.7"},
        {"texts": "a .", "unmoved": True, "within": "1/1000"},
        {"texts": "[a", "next": "a"},
        {"texts": "x", "next": "a"},
        {"up_to": 9, "next": "a"},
        {"up_to": 2, "lead": "a b"},
        {"up_to": 2, "next": "a", "constant": True},
        {"up_to": 2, "unmoved": True},
        {"up_to": 2, "next": "a", "rounded_to": "float9"},
    ],
    ids=str,
)
def test_both_faces_say_the_same(said: dict[str, Any], byhand: Call) -> None:
    words = []
    for name, value in said.items():
        option = "--" + name.replace("_", "-")
        words += [option] if value is True else [option, str(value)]
    done = byhand("prove", "tiny", *words, "--json")
    if done.status == 2:
        with pytest.raises(ByhandError) as refused:
            library.prove("tiny", **said)
        assert done.err == f"error: {refused.value}\n"
        return
    outcome = library.prove("tiny", **said)
    text = StringIO()
    write_json(outcome, text)
    one, other = json.loads(text.getvalue()), json.loads(done.out)
    assert {**one, "seconds": 0} == {**other, "seconds": 0}


def test_a_property_is_a_file_a_mapping_or_itself(tmp_path: Path) -> None:
    table = {"texts": {"pattern": "a ."}, "claim": {"next": "a"}}
    file = tmp_path / "a.property.yaml"
    file.write_text(json.dumps(table), "utf-8")
    first = library.prove("tiny", table)
    for given in (file, str(file), first.property):
        assert library.prove("tiny", given).texts == first.texts == 3
    assert library.prove("tiny", texts=["a b", "c c"], next="a").texts == 2


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"property": {}, "next": "a"}, "property and next exclude each other"),
        ({"up_to": 2, "next": "a", "jobs": 0}, "jobs has a value that does not fit"),
        ({"up_to": 2, "next": "a", "seconds": 0}, "seconds has a value that does not fit"),
        ({"up_to": 2}, "a claim is missing"),
        ({"up_to": 2, "next": "a", "seconds": "ten"}, "seconds has a value that does not fit"),
    ],
    ids=str,
)
def test_what_does_not_fit_is_refused(given: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        library.prove("tiny", **given)


def test_an_option_that_there_is_not_is_a_type_error() -> None:
    with pytest.raises(TypeError, match="unexpected keyword argument 'nxt'"):
        library.prove("tiny", up_to=2, nxt="a")  # type: ignore[call-arg]


def test_a_search_goes_on_from_its_file(tmp_path: Path) -> None:
    kept = tmp_path / "tiny.journal"
    first = library.prove("tiny", texts="a .", next="a", resume=kept)
    again = library.prove("tiny", texts="a .", next="a", resume=kept)
    assert first.passes > again.passes == 0
    assert again.answer == "proven"
    with pytest.raises(ByhandError, match="the journal of another model or property"):
        library.prove("tiny", texts="b .", next="a", resume=kept)


def test_progress_is_told_how_much_is_decided() -> None:
    seen: list[float] = []
    library.prove(
        "tiny", texts="a .", next="a", progress=lambda standing: seen.append(standing.done)
    )
    assert seen[-1] == 1.0


def test_a_notebook_shows_the_report(tmp_path: Path) -> None:
    found = library.prove("tiny", texts=". b", next="a")
    html = found._repr_html_() or ""
    assert html.startswith('<div class="byhand"')
    assert "b b" in html
    with pytest.raises(UsageError, match="only a proven property has a certificate"):
        found.save(tmp_path / "none.json")


def test_proving_and_checking_import_neither_torch_nor_rich_nor_ray() -> None:
    code = """
import sys, byhand
found = byhand.prove("tiny", texts="a .", next="a")
assert byhand.verify("tiny", found).accepted
print({'rich', 'torch', 'ray', 'transformers', 'click'} & set(sys.modules))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("set()\n", "")


def test_the_help_of_prove_imports_nothing_heavy() -> None:
    code = """
import contextlib, io, sys
from byhand.cli import main
with contextlib.redirect_stdout(io.StringIO()):
    for command in ([], ["prove"], ["verify"]):
        main.run([*command, "--help"])
heavy = {'rich', 'torch', 'flint', 'yaml', 'multiprocessing', 'byhand.proofs', 'byhand.proving'}
print(heavy & set(sys.modules))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("set()\n", "")

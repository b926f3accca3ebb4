"""`byhand prove` as it is typed: answers, exit statuses, files, refusals, and how to go on."""

from __future__ import annotations

import json
import re
import shlex
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import byhand as library
from byhand import proofs
from byhand.proving.outcome import Outcome as Found
from calling import Outcome
from outcomes import left_open

Call = Callable[..., Outcome]
EXAMPLES = Path(__file__).parent.parent.parent / "docs" / "examples"
CLOCK = str(EXAMPLES / "clock.yaml")
ALL_BUT_ONE = "1 if a == 3 and b == 4 else (a + b) % 7"
ADDS = ("--texts", "{a} {b}", "--where", "a: 0..6", "--where", "b: 0..6")


# ------------------------------------------------------------------ answers


def test_a_proof_is_told_and_exits_with_0(byhand: Call) -> None:
    done = byhand("prove", CLOCK, *ADDS, "--next", "(a + b) % 7")
    assert (done.status, done.err) == (0, "")
    assert "Proven. It holds for all 49 texts." in done.out
    assert "least lead ≥ 0.3765" in done.out


def test_a_property_file_says_the_same_as_options(byhand: Call) -> None:
    typed = byhand("prove", CLOCK, *ADDS, "--next", "(a + b) % 7", "--json")
    read = byhand("prove", CLOCK, str(EXAMPLES / "clock.property.yaml"), "--json")
    one, other = json.loads(typed.out), json.loads(read.out)
    assert one["answer"] == other["answer"] == "proven"
    assert one["texts"] == other["texts"] == 49
    assert one["least"]["lead"] == other["least"]["lead"]


def test_a_counterexample_is_told_in_full_and_exits_with_1(byhand: Call) -> None:
    done = byhand("prove", CLOCK, *ADDS, "--next", ALL_BUT_ONE)
    assert done.status == 1
    assert "Refuted. After “3 4” comes “0”, not “1”." in done.out
    told = done.out[done.out.index("The counterexample") : done.out.index("The texts")]
    for line in ("text +3 4", "should come +1", "comes +0", r"logits\[1,1\] +0\.623490"):
        assert re.search(line, told), line
    assert f"byhand trace {CLOCK} --at 'logits[1,1]' '3 4'" in " ".join(told.split())


def test_the_number_that_goes_wrong_is_the_one_that_the_trace_has(byhand: Call) -> None:
    done = byhand("prove", CLOCK, *ADDS, "--next", ALL_BUT_ONE, "--json")
    found = json.loads(done.out)["counterexample"]
    program, command, model, text = shlex.split(found["trace"])
    assert (program, command) == ("byhand", "trace")
    trace = library.trace(model, text, digits=12)
    assert found["address"] == "logits[1,1]"
    assert found["value"]["decimal"] == trace["logits[1,1]"].significant(10)
    assert trace.token(trace.next[-1].id) == found["found"]["text"] == "0"


def test_what_is_open_is_told_and_exits_with_1(
    byhand: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(proofs, "prove", lambda *_said, **_more: left_open("undecided ties"))
    done = byhand("prove", "tiny", "--length", "2", "--next", "a")
    assert done.status == 1
    assert "33.33 % of the domain is proven, 1 region is left" in done.out
    assert done.err == ""


@pytest.mark.parametrize(
    ("said", "answer"),
    [
        (["--up-to", "2", "--of", "a c", "--next", "a"], "proven"),
        (["--texts", "a .", "--constant"], "proven"),
        (["--length", "2", "--constant"], "refuted"),
        (["--texts", "a .", "--agree", "tiny"], "proven"),
        (["--texts", "a .", "--lead", "a over b by 1"], "proven"),
        (["--texts", "a .", "--lead", "a over b by 3"], "refuted"),
        (["--texts", "a b", "--at", "block.0.attn.weights[0,-1,-1] >= 0.7"], "proven"),
        (["--texts", "a b", "--at", "block.0.attn.weights[0,-1,-1] >= 0.75"], "refuted"),
        (["--texts", "a .", "--unmoved", "--printed", "4"], "proven"),
        (["--texts", "a .", "--unmoved", "--within", "1/1000"], "proven"),
        (["--texts", "a .", "--unmoved", "--known-to", "bfloat16"], "proven"),
        (["--texts", "a .", "--next", "a", "--rounded-to", "bfloat16"], "proven"),
        (["--texts", "c c", "--continuation", "a"], "proven"),
    ],
    ids=" ".join,
)
def test_every_simple_property_has_its_options(byhand: Call, said: list[str], answer: str) -> None:
    done = byhand("prove", "tiny", *said, "--json")
    assert json.loads(done.out)["answer"] == answer
    assert done.status == (0 if answer == "proven" else 1)


def test_the_further_embeddings_may_be_moved_the_less_is_the_lead(byhand: Call) -> None:
    leads = []
    for distance in ("1/10000", "1/10"):
        done = byhand("prove", "abc", "--texts", "A", "--unmoved", "--moved", distance, "--json")
        found = json.loads(done.out)
        assert found["answer"] == "proven"
        leads.append(float(found["least"]["lead"]))
    assert 0 < leads[1] < leads[0] - 1


def test_what_comes_next_may_be_a_function_in_a_file(byhand: Call, tmp_path: Path) -> None:
    function = tmp_path / "adds.py"
    function.write_text("def answer(a, b, text):\n    return (a + b) % 7\n")
    done = byhand("prove", CLOCK, *ADDS, "--file", str(function))
    assert done.status == 0, done.err


# ------------------------------------------------------------------ files


def test_the_reports_and_the_certificate_are_written(byhand: Call, tmp_path: Path) -> None:
    files = {name: str(tmp_path / name) for name in ("proof.json", "proof.html", "proof.pdf")}
    written = [f"--{option}={file}" for option, file in zip(
        ("certificate", "html", "pdf"), files.values(), strict=True)]  # fmt: skip
    done = byhand("prove", "tiny", "--texts", "a .", "--next", "a", *written)
    assert done.status == 0, done.err
    assert json.loads(Path(files["proof.json"]).read_text())["answer"] == "proven"
    assert Path(files["proof.html"]).read_text().rstrip().endswith("</html>")
    assert Path(files["proof.pdf"]).read_bytes().startswith(b"%PDF")
    assert f"  byhand verify tiny {files['proof.json']}\n" in done.err


def test_a_refutation_has_no_certificate(byhand: Call, tmp_path: Path) -> None:
    file = tmp_path / "proof.json"
    done = byhand("prove", "tiny", "--length", "2", "--next", "a", "--certificate", str(file))
    assert (done.status, done.err) == (1, "there is no certificate: nothing is proven\n")
    assert not file.exists()


# ------------------------------------------------------------------ stopped, and gone on


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where temporary files go."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    return folder


def test_a_search_that_is_stopped_keeps_what_is_decided_and_says_how_to_go_on(
    byhand: Call, temporary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[Path] = []

    def stopped(*_said: object, resume: Path, **_more: object) -> Found:
        given.append(resume)
        return left_open("out of time")

    monkeypatch.setattr(proofs, "prove", stopped)
    done = byhand("prove", "tiny", "--length", "2", "--next", "a", "--seconds", "1")
    (kept,) = temporary.iterdir()
    assert given == [kept]
    assert done.status == 1
    assert done.err.splitlines() == [
        "what is decided is kept; go on with",
        f"  byhand prove tiny --length 2 --next a --resume {kept}",
    ]


def test_a_second_ctrl_c_loses_nothing_either(
    byhand: Call, temporary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_said: object, resume: Path, **_more: object) -> Found:
        resume.write_text("{}\n{}\n", "utf-8")
        raise KeyboardInterrupt

    monkeypatch.setattr(proofs, "prove", interrupted)
    done = byhand("prove", "tiny", "--length", "2", "--next", "a")
    (kept,) = temporary.iterdir()
    assert done.status == 130
    assert f"  byhand prove tiny --length 2 --next a --resume {kept}\n" in done.err


def test_ctrl_c_before_anything_is_decided_leaves_nothing_behind(
    byhand: Call, temporary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_said: object, **_more: object) -> Found:
        raise KeyboardInterrupt

    monkeypatch.setattr(proofs, "prove", interrupted)
    assert byhand("prove", "tiny", "--length", "2", "--next", "a").status == 130
    assert list(temporary.iterdir()) == []


def test_a_search_that_ends_leaves_nothing_behind(byhand: Call, temporary: Path) -> None:
    assert byhand("prove", "tiny", "--texts", "a .", "--next", "a").status == 0
    assert list(temporary.iterdir()) == []


def test_a_search_goes_on_from_its_file(byhand: Call, tmp_path: Path) -> None:
    call = ("prove", CLOCK, *ADDS, "--next", "(a + b) % 7", "--json")
    file = tmp_path / "clock.journal"
    first = json.loads(byhand(*call, "--resume", str(file)).out)
    again = json.loads(byhand(*call, "--resume", str(file)).out)
    assert first["passes"] > again["passes"] == 0
    assert (again["answer"], again["cases"]) == ("proven", first["cases"])


# ------------------------------------------------------------------ refusals

WRONG = {
    "no texts": (
        ["tiny", "--next", "a"],
        """error: no texts are given
  expected: one of PROPERTY.yaml, --texts, --up-to, --length
""",
    ),
    "no claim": (
        ["tiny", "--up-to", "2"],
        """error: nothing is claimed
  expected: one of PROPERTY.yaml, --next, --continuation, --file, --lead, --at, --agree, --constant, --unmoved
""",  # noqa: E501
    ),
    "a file and options": (
        ["tiny", "clock.property.yaml", "--up-to", "2"],
        """error: PROPERTY.yaml and --up-to exclude each other
  hint: leave one of them out
""",
    ),
    "a variable without a range": (
        ["tiny", "--texts", "{a}", "--where", "a 0..2", "--next", "a"],
        """error: --where has a value that does not fit
  expected: a: 0..9
  found: 'a 0..2'
""",
    ),
    "no jobs": (
        ["tiny", "--up-to", "2", "--next", "a", "--jobs", "0"],
        """error: --jobs has a value that does not fit
  expected: a whole number from 1 to 1,024
  found: 0
""",
    ),
    "no time": (
        ["tiny", "--up-to", "2", "--next", "a", "--seconds", "0"],
        """error: --seconds has a value that does not fit
  expected: a whole number from 1 to 1,000,000,000
  found: 0
""",
    ),
    "a folder that is not there": (
        ["tiny", "--up-to", "2", "--next", "a", "--certificate", "/nowhere/proof.json"],
        """error: /nowhere/proof.json: cannot be written
  found: no such folder: /nowhere
""",
    ),
    "a file named twice": (
        ["tiny", "--up-to", "2", "--next", "a", "--html", "x.html", "--certificate", "x.html"],
        """error: x.html: this file is named twice
  expected: a file for each
  found: --certificate, --html
""",
    ),
    "a property that is not there": (
        ["tiny", "nowhere.yaml"],
        "error: nowhere.yaml: the file cannot be read: No such file or directory\n",
    ),
    "texts of other tokens": (
        ["tiny", "--texts", "x", "--next", "a"],
        """error: texts.pattern: 'x' is not in the vocabulary
  expected: a, b, c
  found: 'x'
""",
    ),
    "texts that are too long": (
        ["tiny", "--up-to", "3", "--next", "a"],
        """error: texts.up to: the text is too long for this model
  expected: at most 2 tokens
  found: 3 tokens
""",
    ),
    "no such model": (
        ["tinny", "--up-to", "2", "--next", "a"],
        """error: there is no model 'tinny'
  expected: a model file, the folder of a checkpoint, a .gguf file, or one of tiny, abc, abc-walkthrough, journey, minigpt-init, minigpt
  found: tinny
  hint: did you mean tiny?
""",  # noqa: E501
    ),
}


def test_a_cluster_needs_ray(byhand: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    done = byhand("prove", "tiny", "--texts", "a .", "--next", "a", "--cluster", "auto")
    assert (done.status, done.out) == (2, "")
    assert done.err == "error: a cluster needs ray\n  hint: pip install 'byhand[ray]'\n"


def test_a_pdf_needs_typst_which_is_said_before_the_work(
    byhand: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "typst", None)
    monkeypatch.setattr(proofs, "prove", None)
    file = str(tmp_path / "proof.pdf")
    done = byhand("prove", "tiny", "--texts", "a .", "--next", "a", "--pdf", file)
    assert done.status == 2
    assert done.err.startswith("error: PDF is typeset with Typst, which is not installed\n")


@pytest.mark.parametrize("case", WRONG)
def test_a_wrong_call_says_what_is_wrong_and_exits_with_2(byhand: Call, case: str) -> None:
    call, said = WRONG[case]
    done = byhand("prove", *call)
    assert (done.status, done.out, done.err) == (2, "", said)

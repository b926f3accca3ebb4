"""Property files: read whole, said in words, and in a few words of Python."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from property_samples import MACHINE, answers, read, texts_of

from byhand.errors import InputError
from byhand.proving.claims import Agree, AtLeast, Lead, Next, Same, Unmoved
from byhand.proving.properties import in_words, read_property, simple

ADDITION = """\
property: the sum of two digits, modulo 7
model: machine.yaml
texts:
  pattern: "{a} + {b} ="
  where:
    a, b: 0..6
claim:
  next: (a + b) % 7
"""


def test_a_file_names_its_model_which_lies_beside_it(tmp_path: Path) -> None:
    MACHINE.save(tmp_path / "machine.yaml")
    (tmp_path / "p.yaml").write_text(ADDITION)
    found = read_property(tmp_path / "p.yaml")
    assert found.model.vocabulary == MACHINE.vocabulary
    assert len(texts_of(found)) == 49
    assert answers(found)["6 + 5 ="] == "4"


def test_the_source_is_plain_and_reads_back_after_json(tmp_path: Path) -> None:
    (tmp_path / "p.yaml").write_text(ADDITION)
    found = read_property(str(tmp_path / "p.yaml"), MACHINE)
    again = read_property(json.loads(json.dumps(found.source)), MACHINE)
    assert again.source == found.source
    assert answers(again) == answers(found)
    assert "model" not in found.source


def test_files_that_a_property_names_are_kept_in_its_source(tmp_path: Path) -> None:
    (tmp_path / "texts.txt").write_text("A B\n\nB A\n")
    (tmp_path / "table.csv").write_text('A B,C\nB A,"="\n')
    (tmp_path / "p.yaml").write_text(
        "texts: {list: {file: texts.txt}}\nclaim: {next: {table: table.csv}}\n"
    )
    found = read_property(tmp_path / "p.yaml", MACHINE)
    assert found.source == {
        "texts": {"list": ["A B", "B A"]},
        "claim": {"next": {"table": {"A B": "C", "B A": "="}}},
    }
    (tmp_path / "table.json").write_text('{"A B": "B", "B A": "A"}')
    (tmp_path / "p.yaml").write_text("claim: {next: {table: table.json}}\n")
    assert answers(read_property(tmp_path / "p.yaml", MACHINE)) == {"A B": "B", "B A": "A"}


def mistake(text: str, folder: Path) -> InputError:
    (folder / "p.yaml").write_text(text)
    with pytest.raises(InputError) as caught:
        read_property(folder / "p.yaml", MACHINE)
    return caught.value


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("- a", 1, "a property is a table"),
        ("texts: A\nclaims: constant\n", "2: claims", "there is no key 'claims' here"),
        ("texts: A\n", 1, "the key 'claim' is missing"),
        ("claim: constant\n", 1, "the key 'texts' is missing"),
        ("texts: A\ntexts: B\n", "2: texts", "this key is given twice"),
        ("texts:\n  pattern: A\n  where:\n    a: 5..1\nclaim: constant\n", "4: texts.where.a",
         "a range goes from the smaller to the larger number"),
        ("texts:\n  list:\n  - A\n  - Z\nclaim: constant\n", "4: texts.list[1]",
         "'Z' is not in the vocabulary"),
        ("texts: {list: {file: no.txt}}\nclaim: constant\n", "1: texts.list.file",
         "the file cannot be read: No such file or directory"),
        ("texts: A\nembeddings: 0.1\nclaim: constant\n", "2: embeddings",
         "0.1 is not possible here"),
    ],
)  # fmt: skip
def test_a_mistake_has_its_file_line_and_key(
    text: str, line: Any, message: str, tmp_path: Path
) -> None:
    error = mistake(text, tmp_path)
    assert error.message == message
    assert error.where == f"{tmp_path}/p.yaml:{line}"


def test_a_mistake_in_a_named_file_has_its_own_line(tmp_path: Path) -> None:
    (tmp_path / "texts.txt").write_text("A\n\nZ\n")
    error = mistake("texts: {list: {file: texts.txt}}\nclaim: constant\n", tmp_path)
    assert (error.where or "").startswith(f"{tmp_path}/texts.txt:3")
    (tmp_path / "t.csv").write_text("A,B\nB\n")
    error = mistake("claim: {next: {table: t.csv}}\n", tmp_path)
    assert error.where == f"{tmp_path}/t.csv:2"
    assert error.message == "a line of a table has a text and a token"


def test_what_is_no_property_is_refused() -> None:
    with pytest.raises(InputError):
        read_property(3, MACHINE)  # type: ignore[arg-type]
    with pytest.raises(InputError) as caught:
        read_property({"texts": "A", "claim": {"next": object()}}, MACHINE)
    assert caught.value.where == "claim.next"
    with pytest.raises(InputError) as caught:
        read_property({"texts": "A", "claim": "constant"})
    assert caught.value.message == "the key 'model' is missing"


# ------------------------------------------------------------------------------- in words


@pytest.mark.parametrize(
    ("tree", "words"),
    [
        ({"texts": "(?<a>[0-9]) (?<b>[0-9])", "claim": {"next": "(a + b) % 7"}},
         "After every text `(?<a>[0-9]) (?<b>[0-9])` (100 texts), the next token is "
         "`(a + b) % 7`."),
        ({"texts": {"pattern": "{a} {b}", "where": {"a": "0..9", "b": "9 - a"},
                    "conditions": ["a <= 4"]}, "claim": {"next": ["A", "B", "C"]}},
         "After every text `{a} {b}` with `a` from 0 to 9, `b = 9 - a` and `a <= 4` (5 texts), "
         "the next token is `A`, `B` or `C`."),
        ({"texts": {"up to": 3, "of": ["A", "B"]}, "claim": {"next": "majority"}},
         "After every text of up to 3 tokens of `A`, `B` (14 texts), the next token is the "
         "majority of its tokens."),
        ({"texts": {"length": 2}, "claim": "constant", "weights": {"printed": 4}},
         "After every text of 2 tokens (529 texts), the prediction is always the same. It must "
         "hold for all weights that print as the model's with 4 decimals."),
        ({"texts": ["A"], "claim": "unmoved", "embeddings": {"within": 0.01}},
         "After the text `A`, the prediction does not move. It must hold wherever each entry of "
         "an embedding is moved by at most 0.01."),
        ({"texts": ["A", "B"], "claim": {"lead": {"of": "A", "over": "B", "by": "1/2"}},
          "weights": {"block.*": {"within": "1e-3"}}},
         "After the texts `A` and `B`, the logit of `A` leads that of `B` by at least 1/2. It "
         "must hold for all weights of block.* within 1e-3 of the model's."),
        ({"texts": ["A", "B", "C", "="], "claim": {"continuation": {"sorted": {"then": "<end>"}}},
          "weights": {"rounded to": "bfloat16"}},
         "After each of 4 texts, from `A` to `=`, the greedy continuation is its tokens, "
         "sorted, then `<end>`. The weights are rounded to bfloat16."),
        ({"texts": "A +", "claim": [{"at": "block.0.attn.weights[0,-1,0]", "at least": 0.1},
                                    {"next": "A"}], "weights": {"known to": "float16"}},
         "After every text `A +` (one text), `block.0.attn.weights[0,-1,0]` is at least 0.1. For "
         "all these texts, the next token is `A`. It must hold for all weights that round to the "
         "model's in float16."),
        ({"texts": "[0-9]{20}", "claim": {"continuation": {"sum": {"digits": 3}}}},
         "After every text `[0-9]{20}` (100,000,000,000,000,000,000 texts), the greedy "
         "continuation is the sum of its numbers in 3 digits."),
    ],
)  # fmt: skip
def test_a_property_is_said_in_sentences(tree: Any, words: str) -> None:
    assert in_words(read(**tree)) == words


# ------------------------------------------------------------------------------- a few words


@pytest.mark.parametrize(
    ("words", "claim"),
    [
        ({"pattern": "(?<a>[0-9])", "next": "a"}, Next),
        ({"texts": ["A", "B"], "next": ["A"]}, Next),
        ({"up_to": 2, "of": ["A", "B"], "continuation": "A B"}, Next),
        ({"length": 2, "constant": True}, Same),
        ({"pattern": "A", "unmoved": True, "within": "1e-3"}, Unmoved),
        ({"pattern": "A", "unmoved": True, "moved": 0.5}, Unmoved),
        ({"pattern": "A", "unmoved": True, "rounded_to": "bfloat16"}, Unmoved),
        ({"pattern": "A", "lead": "A over B by 1/2", "printed": 3}, Lead),
        ({"pattern": "A", "at": "logits[0,0] >= 0.5", "known_to": "float32"}, AtLeast),
        ({"pattern": "A", "agree": MACHINE}, Agree),
    ],
)
def test_simple_properties_need_no_file(words: Any, claim: type) -> None:
    found = simple(MACHINE, **words)
    assert isinstance(found.goals[0].claim, claim)
    assert read_property(found.source, MACHINE).source == found.source


def test_the_words_of_simple_properties_mean_what_they_say(tmp_path: Path) -> None:
    lead = simple(MACHINE, pattern="A", lead="A over others").goals[0].claim
    assert isinstance(lead, Lead)
    assert (lead.behind, lead.by) == (None, 0)
    bound = simple(MACHINE, pattern="A", at="logits[-1, 3] <= 2").goals[0].claim
    assert isinstance(bound, AtLeast)
    assert (bound.most, bound.bound, bound.index.at({})) == (True, Fraction(2), (-1, 3))
    (tmp_path / "f.py").write_text("def answer(a):\n    return 9 - a\n")
    found = simple(MACHINE, pattern="{a}", where={"a": "0..9"}, file=tmp_path / "f.py")
    assert answers(found)["2"] == "7"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ({"pattern": "A"}, "a claim is missing"),
        ({"pattern": "A", "lead": "A by 2"}, "this is no lead of one token over another"),
        ({"pattern": "A", "at": "logits[0,0] = 2"}, "this is no bound of a number"),
        ({"pattern": "A", "next": "A", "constant": True}, "a claim says one thing"),
        ({"pattern": "A", "next": "A", "file": "f.py"}, "next is given twice"),
        ({"next": "A"}, "the key 'texts' is missing"),
    ],
)
def test_a_mistake_in_simple_words_is_named(words: Any, message: str) -> None:
    with pytest.raises(InputError) as caught:
        simple(MACHINE, **words)
    assert caught.value.message == message

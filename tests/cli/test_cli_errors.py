"""Every way to call byhand wrongly: what is said, on which stream, with which exit status."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from byhand.numbers.base import Prediction
from byhand.numbers.exact import Exact

Call = Callable[..., Any]

NAMES = "tiny, abc, abc-walkthrough, journey, minigpt-init, minigpt"
COMMANDS = (
    "trace, generate, check, prove, score, verify, explain, book, course, serve, step, train, "
    "models, count, selftest, completion"
)
MODELS = f"a model file, the folder of a checkpoint, a .gguf file, or one of {NAMES}"

WRONG_CALLS: dict[str, tuple[list[str], str]] = {
    "an unknown command": (
        ["trac", "tiny"],
        f"""error: there is no command 'trac'
  expected: {COMMANDS}
  hint: did you mean trace, train?
""",
    ),
    "a model where a command belongs": (
        ["tiny"],
        f"""error: there is no command 'tiny'
  expected: {COMMANDS}
  hint: did you mean byhand trace tiny?
""",
    ),
    "no model": (
        ["trace"],
        """error: MODEL is missing
  hint: see byhand trace --help
""",
    ),
    "an unknown model": (
        ["trace", "tinny"],
        f"""error: there is no model 'tinny'
  expected: {MODELS}
  found: tinny
  hint: did you mean tiny?
""",
    ),
    "an unknown model to count": (
        ["count", "journy"],
        f"""error: there is no model 'journy'
  expected: {MODELS}
  found: journy
  hint: did you mean journey?
""",
    ),
    "an unknown option": (
        ["trace", "tiny", "--onyl", "logits"],
        """error: there is no option --onyl
  hint: did you mean --only, --json?
""",
    ),
    "an unknown option like none": (
        ["models", "--zzz"],
        """error: there is no option --zzz
  hint: see byhand models --help
""",
    ),
    "an option without its value": (
        ["trace", "tiny", "--at"],
        """error: --at cannot be used like this
  expected: one value after it, or none if it takes none
  hint: see byhand --help
""",
    ),
    "a value for an option without one": (
        ["trace", "tiny", "--json=3"],
        """error: --json cannot be used like this
  expected: one value after it, or none if it takes none
  hint: see byhand --help
""",
    ),
    "a text without quotation marks": (
        ["trace", "tiny", "a", "b"],
        """error: too many arguments
  found: b
  hint: put a text of several words in quotation marks
""",
    ),
    "an argument too many": (
        ["models", "tiny"],
        """error: too many arguments
  found: tiny
  hint: see byhand models --help
""",
    ),
    "negative decimals": (
        ["trace", "tiny", "--decimals", "-1"],
        """error: --decimals has a value that does not fit
  expected: a whole number from 0 to 1,000
  found: '-1'
""",
    ),
    "decimals that are no number": (
        ["trace", "tiny", "--decimals", "two"],
        """error: --decimals has a value that does not fit
  expected: a whole number from 0 to 1,000
  found: 'two'
""",
    ),
    "decimals beyond reason": (
        ["trace", "tiny", "--decimals", "10000000"],
        """error: --decimals has a value that does not fit
  expected: a whole number from 0 to 1,000
  found: 10000000
""",
    ),
    "an unknown language": (
        ["trace", "tiny", "--lang", "fr"],
        """error: --lang has a value that does not fit
  expected: en, es
  found: 'fr'
""",
    ),
    "exact and rounded at once": (
        ["trace", "tiny", "--exact", "--decimals", "2"],
        """error: --exact and --decimals exclude each other
  hint: leave one of them out
""",
    ),
    "a boundary of rounded numbers": (
        ["trace", "tiny", "--stop-at-boundary", "--decimals", "2"],
        """error: --stop-at-boundary needs exact numbers
  found: decimals 2
  hint: rounded numbers have no boundary: add --exact
""",
    ),
    "two kinds of numbers": (
        ["trace", "tiny", "--exact", "--float", "float32"],
        """error: --exact and --float exclude each other
  hint: leave one of them out
""",
    ),
    "an unknown format": (
        ["trace", "tiny", "--float", "float8"],
        """error: --float has a value that does not fit
  expected: float64, float32, bfloat16, float16
  found: 'float8'
""",
    ),
    "an unknown style of names": (
        ["trace", "tiny", "--names", "lama"],
        """error: --names has a value that does not fit
  expected: byhand, transformer_lens, transformer_bridge, gpt2, llama, gpt_neox, huggingface, vllm, llama.cpp, mlx, flax, onnx, hf
  found: 'lama'
  hint: did you mean llama, llama.cpp, vllm?
""",  # noqa: E501
    ),
    "names of a checkpoint that is none": (
        ["trace", "tiny", "--names", "hf"],
        """error: this model comes from no checkpoint, so it has no names of its own
  expected: byhand, transformer_lens, transformer_bridge, gpt2, llama, gpt_neox, huggingface, vllm, llama.cpp, mlx, flax, onnx
  found: hf
""",  # noqa: E501
    ),
    "an unknown word": (
        ["trace", "journey", "the cat sut"],
        """error: 'sut' is not in the vocabulary
  expected: the, cat, sat, on, mat, dog
  found: 'sut' at position 2
  hint: did you mean sat?
""",
    ),
    "a word in capitals": (
        ["trace", "tiny", "A b"],
        """error: 'A' is not in the vocabulary
  expected: a, b, c
  found: 'A' at position 0
  hint: did you mean a?
""",
    ),
    "an empty text": (
        ["trace", "tiny", ""],
        """error: the text is empty
  expected: at least one token of a, b, c
  found: ''
""",
    ),
    "an unknown target": (
        ["trace", "journey", "--target", "moon"],
        """error: 'moon' is not in the vocabulary
  expected: the, cat, sat, on, mat, dog
  found: 'moon'
  hint: did you mean on?
""",
    ),
    "an unknown address": (
        ["trace", "tiny", "--at", "block.0.attn.score[0,0,0]"],
        """error: there is no step 'block.0.attn.score'
  hint: did you mean block.0.attn.scores, block.0.attn.out, block.0.attn.v?
""",
    ),
    "a pattern that matches nothing": (
        ["trace", "tiny", "--only", "zzz"],
        """error: there is no step 'zzz'
  hint: byhand trace tiny --shapes lists every step
""",
    ),
    "a loss without a target": (
        ["trace", "tiny", "--at", "loss[0]"],
        """error: there is no step 'loss'
  hint: the loss needs a target: --target WORD
""",
    ),
    "an index outside": (
        ["trace", "tiny", "--at", "block.0.attn.scores[0,5,0]"],
        """error: block.0.attn.scores[0,5,0]: the index lies outside the step
  expected: a place from 0 to 1, the shape is 1 × 2 × 2
  found: 5
""",
    ),
    "an index with too many places": (
        ["trace", "tiny", "--at", "logits[0,0,0]"],
        """error: logits[0,0,0]: too many places in the index
  expected: at most 2, the shape is 2 × 3
  found: 3
""",
    ),
    "an index that is none": (
        ["trace", "tiny", "--at", "logits[a]"],
        """error: logits[a]: this is not an index
  expected: whole numbers and slices, such as [0,2] or [:,1:3]
  found: 'a'
""",
    ),
    "an address that is none": (
        ["trace", "tiny", "--at", "[0]"],
        """error: this is not an address
  expected: a name such as logits or block.0.attn.scores[1,2,0]
  found: '[0]'
""",
    ),
    "an unknown weight": (
        ["trace", "tiny", "--at", "weight.embed.tokn[0]"],
        """error: there is no weight 'weight.embed.tokn'
  hint: did you mean weight.embed.token, weight.embed.position, weight.block.0.attn.v?
""",
    ),
    "too few decimals for a probability": (
        ["trace", "tiny", "--target", "b", "--decimals", "0"],
        """error: loss: rounded to 0 decimals, the probability of the target became 0, which has no logarithm
  hint: use more decimals
""",  # noqa: E501
    ),
    "a folder that is not a trace": (
        ["trace", "tiny", "--out", "/"],
        """error: /: this is there already, and it is not a saved trace
  expected: a new folder, or a saved trace to replace
  hint: choose another folder
""",
    ),
}


@pytest.mark.parametrize("case", WRONG_CALLS)
def test_a_wrong_call_says_what_is_wrong_and_exits_with_2(byhand: Call, case: str) -> None:
    arguments, message = WRONG_CALLS[case]
    found = byhand(*arguments)
    assert found.err == message
    assert found.status == 2
    assert found.out == ""


def test_a_text_too_long_says_how_long_it_may_be(byhand: Call) -> None:
    found = byhand("trace", "tiny", "a b c")
    assert found.status == 2
    assert "error: the text is too long for this model\n  expected: at most 2 tokens\n" in found.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["trace", "--lang", "es", "tinny"],
            "error: no existe el modelo 'tinny'\n  se esperaba: un archivo de modelo, "
            f"la carpeta de un checkpoint, un archivo .gguf, o uno de {NAMES}\n"
            "  se encontró: tinny\n  pista: ¿querías decir tiny?\n",
        ),
        (
            ["--lang=es", "trac"],
            "error: no existe la orden 'trac'\n"
            f"  se esperaba: {COMMANDS}\n"
            "  pista: ¿querías decir trace, train?\n",
        ),
        (
            ["trace", "tiny", "--onyl", "--lang", "es"],
            "error: no existe la opción --onyl\n  pista: ¿querías decir --only, --json?\n",
        ),
    ],
)
def test_complaints_come_in_the_language_asked_for(
    byhand: Call, arguments: list[str], message: str
) -> None:
    assert byhand(*arguments).err == message


def test_the_language_of_the_locale_is_spoken(
    byhand: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LC_ALL", "es_ES.UTF-8")
    assert byhand("trace").err.startswith("error: falta MODEL")
    monkeypatch.setenv("LC_ALL", "de_DE.UTF-8")
    assert byhand("trace").err.startswith("error: MODEL is missing")


def test_a_next_token_that_cannot_be_decided_exits_with_1(
    byhand: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    def argmax(self: Exact, x: Any) -> list[Prediction]:
        return [Prediction(None, None, False, candidates=(0, 2)) for _row in x]

    monkeypatch.setattr(Exact, "argmax", argmax)
    found = byhand("trace", "tiny", "a b")
    assert found.status == 1
    assert "0 a  →  ?   undecided between a and c" in found.out
    assert byhand("trace", "tiny", "a b", "--only", "logits").status == 0
    asked = byhand("trace", "tiny", "a b", "--at", "next[1]")
    assert asked.status == 1
    assert "undecided between a and c" in asked.out


def test_a_seed_of_many_digits_is_one_and_what_is_too_long_is_told_as_that(
    byhand: Call, tmp_path: Path
) -> None:
    asked = ["book", "tiny", "--out", str(tmp_path / "book"), "--worksheet", "--seed"]
    assert byhand(*asked, "123456").status == 0
    assert "a whole number from 0 to 999,999,999" in byhand(*asked, "1234567890").err

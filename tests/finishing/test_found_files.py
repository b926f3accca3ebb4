"""Model files that once ended in a traceback, a warning or half a page, made small."""

from __future__ import annotations

from typing import Any

import pytest
from finished import finish
from minimising import minimised
from random_calls import Call
from random_files import RandomFile

UNKNOWN = {"vocabulary": ["a"], "text": "a", "model": {"d_model": "1", "layers": "0"},
           "weights": {"embed.token": "unknown"}}  # fmt: skip
LARGE = {
    "vocabulary": ["a", "b"],
    "text": "a b",
    "model": {"d_model": "2", "layers": "1", "attention": {}, "mlp": "none"},
    "weights": {
        "embed.token": [["1e200", "0"], ["-1e200", "1e200"]],
        **{f"block.0.attn.{name}": "identity" for name in "qkv"},
        "block.0.attn.out": "identity",
    },
}
ENDLESS = {**LARGE, "weights": {**LARGE["weights"], "embed.token": [["1e30", "0"], ["-1e30", "0"]]}}
PLAIN = {**UNKNOWN, "vocabulary": ["a", "b"], "weights": {"embed.token": [["1"], ["2"]]}}
ROUTED = {
    "vocabulary": ["a", "b"],
    "text": "a b",
    "model": {"d_model": "1", "layers": "1", "context": "2", "mlp": "none",
              "attention": {"heads": "1", "score_table": "true"}},
    "weights": {"embed.token": [["1"], ["2"]],
                **{f"block.0.attn.{name}": "ones" for name in ("q", "k", "v", "out")},
                "block.0.attn.score_table": [[["0", "1"], ["2", "0"]]]},
}  # fmt: skip
LATER = {  # the second position may look at nothing
    **ROUTED,
    "text": "a",
    "model": {**ROUTED["model"], "attention": {"score_table": "true", "window": "1"}},
    "weights": {**ROUTED["weights"], "block.0.attn.score_table": [[["0", "0"], ["0", "masked"]]]},
}
BIASED = {
    "vocabulary": ["a", "b"],
    "text": "a",
    "model": {"d_model": "2", "layers": "0", "final_norm": {}},
    "weights": {"embed.token": [["0", "0"], ["0", "-exp(80)"]], "final.norm.gain": "zeros",
                "final.norm.bias": ["0", "-exp(80)"]},
}  # fmt: skip


def call(said: str, **more: Any) -> Call:
    command, *arguments = said.split()
    return Call(command, tuple(arguments), **more)


FOUND = {
    "a heading before a first token that cannot be worked out": (UNKNOWN, "generate", "refused"),
    "a later token that cannot be worked out": (LATER, "generate --count 3", "answered"),
    "JSON of a later token that cannot be worked out": (LATER, "generate --json",
                                                        "answered"),
    "angles and planes of large numbers": (LARGE, "explain --float float64", "answered"),
    "pages of large numbers": (LARGE, "book --out @book --float float64", "answered"),
    "ranges of large numbers": (LARGE, "check @claims.npz --no-suspects", "answered"),
    "shares that are no numbers": (ENDLESS, "explain --float float32", "answered"),
    "terms that are no numbers": (BIASED, "explain --float bfloat16",
                                  "answered"),
    "bars of shares that are no numbers": (ENDLESS, "book --out @book --pdf --float float32",
                                           "answered"),
    "claims that are no numbers": (ENDLESS, "check @golden --no-suspects --all", "answered"),
    "a number too small for fractions": (ENDLESS, "book --out @book --digits 30", "answered"),
    "a token explained where no logits are needed": (PLAIN, "explain --only inputs --token b",
                                                     "answered"),
    "a next token that nobody knows": (UNKNOWN, "trace --at next[0]", "answered"),
    "an index outside the text": (PLAIN, "trace --only logits --at logits[5,0]", "refused"),
    "an index outside the text, and a folder": (PLAIN, "trace --out @golden --at logits[5,0]",
                                                "refused"),
    "an index outside a comparison": (
        PLAIN,
        "trace --digits 5 --float float32 --only logits --at logits[5,0]",
        "refused",
    ),
    "differences too small for an exponent": (ENDLESS, "trace --digits 5 --float float64",
                                              "answered"),
    "a table of scores that a suspect works out": (ROUTED, "check @claims.npz", "answered"),
}  # fmt: skip


@pytest.mark.parametrize("name", list(FOUND))
def test_it_finishes(name: str) -> None:
    tree, said, how = FOUND[name]
    for seed in range(3) if said.startswith("check") else (0,):
        assert finish(RandomFile(tree), call(said, seed=seed)) == how


def test_what_a_failure_does_not_need_is_taken_away() -> None:
    def fails(file: RandomFile) -> bool:
        return "unknown" in str(file.tree.get("weights"))

    file = RandomFile({**UNKNOWN, "about": "Much that is not needed.", "notes": ["One.", "Two."]})
    assert minimised(file, fails).tree == {"weights": {"embed.token": "unknown"}}

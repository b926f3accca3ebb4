"""Compiles a RASP program by hand into the arrays of a transformer, and saves them as an npz file.

The program says of each token whether the token before it was the same:

    before = aggregate(select(indices, indices, key == query - 1), tokens)
    same = sequence_map(before == tokens → "yes", else "no")

`python docs/examples/compiled.py` writes compiled.npz beside it; `byhand trace` opens that.
"""

from pathlib import Path

import numpy as np

BOS, LETTERS, PLACES = "BOS", ("a", "b"), range(8)  # a text is BOS and up to eight letters
STREAM = [
    "one",
    *(f"tokens:{token}" for token in (BOS, *LETTERS)),
    *(f"indices:{place}" for place in PLACES),
    *(f"before:{letter}" for letter in LETTERS),
    "same:yes",
    "same:no",
]
KEYS = [*(f"indices:{place}" for place in PLACES), f"tokens:{BOS}"]  # what is looked for
SHARP = 100  # the score of a key that is selected; BOS has half of it, all others 0


def matrix(rows, columns, entries):
    """A matrix with these entries, (row, column) → number, by the names of its sides."""
    data = np.zeros((len(rows), len(columns)))
    for (row, column), number in entries.items():
        data[rows.index(row), columns.index(column)] = number
    return data


def embeddings():
    """A token is its own direction and `one`; a letter's place is another, and BOS has none."""
    tokens = [BOS, *LETTERS]
    own = {(token, f"tokens:{token}"): 1 for token in tokens}
    places = [None, *PLACES]  # BOS stands first
    return {
        "token_embed/embeddings": matrix(
            tokens, STREAM, own | {(token, "one"): 1 for token in tokens}
        ),
        "pos_embed/embeddings": matrix(
            places, STREAM, {(place, f"indices:{place}"): 1 for place in PLACES}
        ),
    }


def attention():
    """before: place i looks for place i - 1, and finds BOS where there is none."""
    sharp = SHARP * np.sqrt(len(KEYS))  # scores are divided by this root
    wanted = {(f"indices:{i}", f"indices:{i - 1}"): sharp for i in PLACES[1:]}
    found = {(key, key): 1 for key in KEYS}
    value = {(f"tokens:{letter}", letter): 1 for letter in LETTERS}
    written = {(letter, f"before:{letter}"): 1 for letter in LETTERS}
    inside = [*LETTERS, *KEYS[len(LETTERS) :]]  # the values are as wide as the keys
    return {
        "query/w": matrix(STREAM, KEYS, wanted | {("one", f"tokens:{BOS}"): sharp / 2}),
        "key/w": matrix(STREAM, KEYS, found),
        "value/w": matrix(STREAM, inside, value),
        "linear/w": matrix(inside, STREAM, written),
    }


def mlp():
    """same: a unit for each letter is 1 where it stands here and before; one more is always 1."""
    units = [*LETTERS, "always"]
    reads = {(f"{name}:{letter}", letter): 1 for letter in LETTERS for name in ("tokens", "before")}
    reads |= {("one", letter): -1 for letter in LETTERS} | {("one", "always"): 1}
    writes = {(letter, "same:yes"): 1 for letter in LETTERS}
    writes |= {(letter, "same:no"): -1 for letter in LETTERS} | {("always", "same:no"): 1}
    return {"linear_1/w": matrix(STREAM, units, reads), "linear_2/w": matrix(units, STREAM, writes)}


def compiled():
    """All arrays, under the names that Tracr gives them."""
    arrays = embeddings()
    for part, weights in (("attn", attention()), ("mlp", mlp())):
        for name, weight in weights.items():
            arrays[f"transformer/layer_0/{part}/{name}"] = weight
            bias = name.replace("/w", "/b")
            arrays[f"transformer/layer_0/{part}/{bias}"] = np.zeros(weight.shape[1])
    answers = {("same:yes", "yes"): 1, ("same:no", "no"): 1}
    return arrays | {
        "unembed": matrix(STREAM, ["yes", "no"], answers),
        "heads": np.array(1),
        "tokens": np.array([BOS, *LETTERS]),
        "outputs": np.array(["yes", "no"]),
        "residual": np.array(STREAM),
        "text": np.array("BOS a b b"),
    }


if __name__ == "__main__":
    np.savez(Path(__file__).with_suffix(".npz"), **compiled())

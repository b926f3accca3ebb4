"""The glossary: the technical words that byhand uses, each told in one sentence, in both languages.

One source for every surface: the page shows an entry where its word is pointed at, and a course or
a book can print all of them.  `forms` are the ways in which a word is written in running text.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from byhand.language import _, later

BETWEEN = "|"  # between the forms of a word


@dataclass(frozen=True)
class Entry:
    """One word: as it is listed, as it occurs in texts, and what it means."""

    key: str
    word: str
    forms: tuple[str, ...]
    says: str


# key → (the forms, the first of which is the word itself; what it means)
ENTRIES: Mapping[str, tuple[str, str]] = {
    "token": (
        later("token|tokens"),
        later("A piece of text, such as a word or a letter, that the model reads as one unit."),
    ),
    "id": (
        later("id|ids"),
        later("The number of a token: its place in the vocabulary, counted from 0."),
    ),
    "vocabulary": (
        later("vocabulary|vocabularies"),
        later("All the tokens that a model knows, in a fixed order."),
    ),
    "position": (
        later("position|positions"),
        later("The place of a token in the text, counted from 0."),
    ),
    "vector": (
        later("vector|vectors"),
        later("A row of numbers. Each position of the text has one, and every step changes it."),
    ),
    "matrix": (
        later("matrix|matrices"),
        later("A table of numbers that turns one vector into another by sums of products."),
    ),
    "weight": (
        later("weight|weights"),
        later("A number of the model itself. Training sets it; reading a text does not change it."),
    ),
    "bias": (
        later("bias|biases"),
        later("A weight that is added, the same at every position."),
    ),
    "parameter": (
        later("parameter|parameters"),
        later("Any number that training sets: the weights and the biases of a model."),
    ),
    "embedding": (
        later("embedding|embeddings"),
        later("The table that gives each token its first vector, one row for each token."),
    ),
    "residual stream": (
        later("residual stream|residual streams|stream"),
        later("The vector of a position, which every part of the model reads and adds to."),
    ),
    "block": (
        later("block|blocks"),
        later("One round of attention and MLP. A model repeats it several times."),
    ),
    "layer": (
        later("layer|layers"),
        later("Another word for a block; sometimes for one matrix in it."),
    ),
    "attention": (
        later("attention"),
        later("The part that lets a position take something from earlier positions."),
    ),
    "head": (
        later("head|heads"),
        later("One of several attentions that work side by side, each with its own weights."),
    ),
    "query": (
        later("query|queries|question|questions"),
        later("What a position looks for: a vector that is compared with the keys of others."),
    ),
    "key": (
        later("key|keys"),
        later("What a position can be found by: a vector that queries are compared with."),
    ),
    "value": (
        later("value vector|value vectors"),
        later("What a position hands on to those that attend to it."),
    ),
    "score": (
        later("score|scores"),
        later("How well a query fits a key: the sum of their products, usually scaled."),
    ),
    "attention weights": (
        later("attention weights|attention weight"),
        later("The shares that a position gives to the others; each row adds up to 1."),
    ),
    "mask": (
        later("mask|masked|masks"),
        later("The rule that hides later positions, so that no word can see its future."),
    ),
    "softmax": (
        later("softmax"),
        later("Turns any numbers into positive shares that add up to 1; the largest gets most."),
    ),
    "MLP": (
        later("MLP|MLPs"),
        later("Two matrices with an activation between them. It works on each position alone."),
    ),
    "activation": (
        later("activation|activations"),
        later("A bend between two matrices; without it, they would be the same as one."),
    ),
    "relu": (
        later("relu|ReLU"),
        later("An activation: negative numbers become 0, all others stay as they are."),
    ),
    "gelu": (
        later("gelu|GELU"),
        later("An activation like ReLU with a rounded corner."),
    ),
    "norm": (
        later("norm|norms|layernorm|layer norm"),
        later("Brings the numbers of a position to a common size before or after a part."),
    ),
    "rmsnorm": (
        later("RMSNorm"),
        later("A norm that divides by the root mean square and leaves the average alone."),
    ),
    "eps": (
        later("eps|epsilon"),
        later("A tiny number under the root of a norm, so that nothing is divided by 0."),
    ),
    "standard deviation": (
        later("standard deviation"),
        later("How far numbers spread around their average: the root of the variance."),
    ),
    "variance": (
        later("variance"),
        later("The average of the squared distances from the average."),
    ),
    "logit": (
        later("logit|logits"),
        later("How strongly the model expects a word, before softmax makes it a probability."),
    ),
    "probability": (
        later("probability|probabilities"),
        later("A share from 0 to 1. The probabilities of all words add up to 1."),
    ),
    "argmax": (
        later("argmax"),
        later("The place of the largest number: here, the word that is expected."),
    ),
    "loss": (
        later("loss|losses"),
        later("How much the target surprises the model: minus the logarithm of its probability."),
    ),
    "target": (
        later("target|targets"),
        later("The word that should come next, which the loss is measured by."),
    ),
    "gradient": (
        later("gradient|gradients"),
        later("How fast the loss grows when a number grows a little."),
    ),
    "learning rate": (
        later("learning rate|learning rates"),
        later("How large a step training takes against the gradient."),
    ),
    "optimizer": (
        later("optimizer|optimizers"),
        later("The rule by which training turns gradients into new weights."),
    ),
    "rope": (
        later("RoPE|rope"),
        later("Marks positions by turning queries and keys by an angle that grows with them."),
    ),
    "exact number": (
        later("exact number|exact numbers"),
        later("A number without any rounding: a fraction such as 3/10."),
    ),
    "named number": (
        later("named number|named numbers"),
        later("A number that is exact only with a name in it, such as e or √2."),
    ),
    "float": (
        later("float|floats|float32|float64|bfloat16"),
        later("A number with a fixed count of binary digits; most results have to be rounded."),
    ),
    "residual": (
        later("residual connection|residual connections"),
        later(
            "The addition that keeps what was in the residual stream and adds what a part has made."
        ),
    ),
}


def glossary() -> list[Entry]:
    """Every entry in the language spoken now, in alphabetical order."""
    found = []
    for key, (forms, says) in ENTRIES.items():
        written = tuple(_(forms).split(BETWEEN))
        found.append(Entry(key, written[0], written, _(says)))
    return sorted(found, key=lambda entry: entry.word.casefold())

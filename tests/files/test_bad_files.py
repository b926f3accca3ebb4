"""Malformed model files: each is refused with its line, its key, what was expected and found."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from byhand.errors import InputError, ModelFileError, ShapeError
from byhand.files import parse_model
from byhand.spec import ACTIVATIONS
from calling import Outcome

GOOD = """\
name: small
vocabulary: [a, b, c]
text: a b
target: c
model:
  d_model: 2
  context: 4
  layers: 1
  position: learned
  norm: {kind: layernorm, eps: 1e-5, gain: false, bias: false}
  final_norm: none
  attention: {heads: 1, out: false}
  mlp: {d_ff: 3}
weights:
  embed.token: [[1, 0], [0, 1], [1, 1]]
  embed.position: zeros
  block.0.attn.q: identity
  block.0.attn.k: identity
  block.0.attn.v: identity
  block.0.mlp.hidden: [[1, 2, 3], [4, 5, 6]]
  block.0.mlp.out:
    - [1, 2]
    - [3, 4]
    - [5, 6]
"""


@dataclass(frozen=True)
class Bad:
    """GOOD with `old` replaced by `new`, and what the error must say."""

    old: str
    new: str
    where: str  # after small.yaml:
    message: str
    expected: str | None = None
    found: str | None = None
    hint: str | None = None

    def __str__(self) -> str:
        return self.new.strip()[:50].replace("\n", " ") or "nothing"


Q = "block.0.attn.q: identity"
NEAREST = "did you mean {}?".format

CASES = [
    # ------------------------------------------------------------------ not even a tree
    Bad("name: small", "name: small\nname: tiny", "2: name", "this key is given twice",
        "each key once", "name on line 1 and again here"),
    Bad("mlp: {d_ff: 3}", "mlp: {d_ff: 3, d_ff: 4}", "13: model.mlp.d_ff",
        "this key is given twice", "each key once"),
    Bad("[a, b, c]", "&words [a, b, c]", "2: vocabulary", "a model file has no anchors",
        None, "&words"),
    Bad("text: a b", "text: *words", "3: text", "a model file has no aliases", None, "*words"),
    Bad("text: a b", "<<: {text: a b}", "3", "a model file has no merge keys", None, "<<"),
    Bad("text: a b", "text: !!python/name:os.system a", "3: text", "a model file has no tags",
        None, "tag:yaml.org,2002:python/name:os.system"),
    Bad("name: small", "---\nname: small\n---\na: b\n---", "3", "a model file is one document"),
    Bad("text: a b", "text: [a, b", "4", "this is not YAML: did not find expected ',' or ']'",
        None, "target: c"),
    Bad("block.0.attn.k: identity", "block.0.attn.k: @block.0.attn.q", "18",
        "this is not YAML: found character that cannot start any token",
        None, "block.0.attn.k: @block.0.attn.q",
        'a reference is written in quotes: "@block.0.attn.q"'),
    Bad("  d_model: 2", "\td_model: 2", "6",
        "this is not YAML: found character that cannot start any token", None, "d_model: 2",
        "indent with spaces, not with tabs"),
    Bad("text: a b", "[x, y]: a b", "3", "a key is one word", None, "a list or a table"),
    Bad("text: a b", "text: " + "[" * 30 + "]" * 30, f"3: text[{'0,' * 18}0]",
        "nested more than 20 deep"),
    # ------------------------------------------------------------------ the document
    Bad("name: small", "nmae: small", "1: nmae", "there is no key 'nmae' here",
        "name, about, vocabulary, outputs, text, target, end, notes, model, weights, source, "
        "source_vocabulary, start", "nmae",
        NEAREST("name")),
    Bad("name: small", "name:", "1: name", "some text is missing", "text", "nothing"),
    Bad("name: small", "name: small\nend: z", "2: end", "'z' is not in the vocabulary"),
    Bad("vocabulary: [a, b, c]", "about: x", "1", "the key 'vocabulary' is missing"),
    Bad("[a, b, c]", "abc", "2: vocabulary", "a vocabulary is a list of tokens",
        "[a, b, c]", "abc"),
    Bad("[a, b, c]", "[a, b, a]", "2: vocabulary[2]", "the token 'a' is in the vocabulary twice",
        "each token once", "a"),
    Bad("[a, b, c]", "[a, 'b b', c]", "2: vocabulary[1]", "a token cannot be 'b b'",
        "a word without white space", "'b b'"),
    Bad("[a, b, c]", "[a, '', c]", "2: vocabulary[1]", "a token cannot be ''",
        "a word without white space", "''"),
    Bad("[a, b, c]", "{kind: characters, tokens: [a, bc]}", "2: vocabulary.tokens[1]",
        "a token cannot be 'bc'", "one character", "'bc'"),
    Bad("[a, b, c]", "{kind: letters, tokens: [a]}", "2: vocabulary.kind",
        "letters is not possible here", "words, characters", "letters"),
    Bad("[a, b, c]", "{size: 0}", "2: vocabulary.size", "0 is not possible here",
        "a whole number from 1 to 1,000,000", "0"),
    Bad("text: a b", "text: a d", "3: text", "'d' is not in the vocabulary", "a, b, c",
        "'d' at position 1"),
    Bad("text: a b", "text: a B", "3: text", "'B' is not in the vocabulary", "a, b, c",
        "'B' at position 1", NEAREST("b")),
    Bad("text: a b", "text: ' '", "3: text", "the text is empty", "at least one token of a, b, c",
        "' '"),
    Bad("text: a b", "text: a b c a b", "3: text", "the text is too long for this model",
        "at most 4 tokens", "5 tokens"),
    Bad("target: c", "target: mat", "4: target", "'mat' is not in the vocabulary", "a, b, c"),
    Bad("target: c", "notes: one sentence", "4: notes", "notes is a list of sentences",
        "a list", "one sentence"),
    # ------------------------------------------------------------------ the architecture
    Bad("d_model: 2", "d_modle: 2", "6: model.d_modle", "there is no key 'd_modle' here",
        None, "d_modle", NEAREST("d_model, add_scale")),
    Bad("  d_model: 2\n", "", "5: model", "the key 'd_model' is missing", "model.d_model"),
    Bad("d_model: 2", "d_model: -2", "6: model.d_model", "-2 is not possible here",
        "a whole number from 1 to 1,000,000", "-2"),
    Bad("d_model: 2", "d_model: 2.0", "6: model.d_model", "2.0 is not possible here"),
    Bad("  context: 4\n", "", "5: model", "context cannot be nothing",
        "a length, since positions are learned", "nothing"),
    Bad("layers: 1", "layers: 1001", "8: model.layers", "1001 is not possible here",
        "a whole number from 0 to 1,000", "1001"),
    Bad("layers: 1", "layers: 1\n  layout: out-in", "9: model.layout",
        "out-in is not possible here", "in_out, out_in", "out-in", NEAREST("out_in, in_out")),
    Bad("position: learned", "position: leaned", "9: model.position",
        "leaned is not possible here", "none, learned, sinusoidal, rope, alibi", "leaned",
        NEAREST("learned")),
    Bad("position: learned", "position: [learned, sinusoidal]", "9: model.position[1]",
        "two kinds of positions that exclude each other",
        "one of none, learned, sinusoidal, and rope or alibi beside it", "sinusoidal"),
    Bad("position: learned", "position: {kind: learned, base: 3}", "9: model.position.base",
        "there is no key 'base' here", "kind, first_row", "base"),
    Bad("position: learned", "position: {kind: rope, width: 1}", "9: model.position.width",
        "rope.width cannot be 1", "an even number", "1"),
    Bad("position: learned", "position: {kind: rope, width: 4}", "9: model.position.width",
        "rope.width cannot be 4", "at most the head width 2", "4"),
    Bad("position: learned", "position: {kind: rope, base: -1}", "9: model.position.base",
        "rope.base cannot be -1", "a number above 0", "-1"),
    Bad("position: learned", "position: {kind: rope, base: 3, angles: given}",
        "9: model.position.angles", "given angles leave nothing for a base to do",
        "base or angles, not both", "base, angles"),
    Bad("position: learned", "position: {kind: sinusoidal, base: 0}", "9: model.position.base",
        "position.base cannot be 0", "a number above 0", "0"),
    Bad("kind: layernorm", "kind: layer_norm", "10: model.norm.kind",
        "layer_norm is not possible here", "layernorm, rmsnorm, none", "layer_norm",
        NEAREST("layernorm, rmsnorm")),
    Bad("kind: layernorm", "kind: layernorm, epsilon: 1", "10: model.norm.epsilon",
        "there is no key 'epsilon' here",
        "kind, eps, gain, bias, plus_one, place, one, from", "epsilon", NEAREST("eps, plus_one")),
    Bad("eps: 1e-5", "eps: -1/10", "10: model.norm.eps", "norm.eps cannot be -1/10",
        "a number that is not negative", "-1/10"),
    Bad("eps: 1e-5", "eps: sqrt(2)", "10: model.norm.eps", "sqrt(2) is not a rational number",
        "a decimal or a fraction", "sqrt(2)"),
    Bad("kind: layernorm, eps: 1e-5, gain: false, bias: false", "kind: rmsnorm, bias: true",
        "10: model.norm.bias", "norm.bias cannot be true",
        "false, since rmsnorm has no bias", "true"),
    Bad("gain: false", "gain: no", "10: model.norm.gain", "no is not a truth value", "true, false",
        "no", "write false"),
    Bad("final_norm: none", "final_norm: {kind: layernorm, place: pre}",
        "11: model.final_norm.place", "there is no key 'place' here",
        "kind, eps, gain, bias, plus_one", "place"),
    Bad("  attention: {heads: 1, out: false}\n", "", "5: model", "the key 'attention' is missing",
        "model.attention"),
    Bad("heads: 1, out: false", "heads: 3", "12: model.attention.heads",
        "d_model = 2 cannot be split evenly among 3 heads", "a divisor of 2, or d_head", "3"),
    Bad("heads: 1, out: false", "heads: 2, kv_heads: 3", "12: model.attention.kv_heads",
        "attention.kv_heads cannot be 3", "a divisor of the 2 heads", "3"),
    Bad("heads: 1, out: false", "heads: 3, d_head: 1, out: false", "12: model.attention.out",
        "block.0.attention.out cannot be 3 · 1 = 3",
        "an output matrix, unless heads · d_head is d_model = 2", "3 · 1 = 3"),
    Bad("heads: 1, out: false", "heads: 1, out: false, bias: {out: true}",
        "12: model.attention.bias.out", "attention.bias.out cannot be true",
        "false, since there is no output matrix", "true"),
    Bad("heads: 1, out: false", "heads: 1, packed: concatenated, bias: {q: true}",
        "12: model.attention.bias", "attention.bias cannot be q true, k false, v false",
        "the same for q, k and v, since they are packed into one matrix"),
    Bad("heads: 1, out: false", "heads: 2, kv_heads: 1, packed: per_head",
        "12: model.attention.packed", "attention.packed cannot be per_head",
        "concatenated, since there are fewer key heads than query heads"),
    Bad("heads: 1, out: false", "heads: 1, scale: ln(0)", "12: model.attention.scale",
        "'ln(0)' cannot be read: the logarithm of a number that is not positive"),
    Bad("attention: {heads: 1, out: false}", "attention: nonw", "12: model.attention",
        "nonw is not possible here", "none", "nonw", NEAREST("none")),
    Bad("mlp: {d_ff: 3}", "mlp: {}", "13: model.mlp", "the key 'd_ff' is missing",
        "model.mlp.d_ff"),
    Bad("mlp: {d_ff: 3}", "mlp: {d_ff: 3, activation: glu}", "13: model.mlp.activation",
        "glu is not possible here", ", ".join(ACTIVATIONS), "glu",
        NEAREST("gelu, silu, relu")),
    Bad("mlp: {d_ff: 3}", "mlp: {d_ff: 3, bias: {gate: true}}", "13: model.mlp.bias.gate",
        "mlp.bias.gate cannot be true", "false, since the MLP is not gated", "true"),
    Bad("mlp: {d_ff: 3}", "mlp: {d_ff: 3}\n  residual: paralel", "14: model.residual",
        "paralel is not possible here", "serial, parallel", "paralel", NEAREST("parallel")),
    Bad("final_norm: none", "residual: parallel\n  blocks: {0: {norm: {place: post}}}",
        "11: model.residual", "residual cannot be parallel",
        "serial, since the norms come after the add", "parallel"),
    Bad("final_norm: none", "blocks: {1: {mlp: none}}", "11: model.blocks.1",
        "there is no layer 1", "a layer from 0 to 0", "1"),
    Bad("final_norm: none", "blocks: [{mlp: none}]", "11: model.blocks",
        "blocks is a table by layer", "0: {…}", "a list of 1"),
    Bad("position: learned", "position: {base: 3}", "9: model.position",
        "the key 'kind' is missing", "none, learned, sinusoidal, rope, alibi"),
    Bad("gain: false", "gain: on", "10: model.norm.gain", "on is not a truth value", "true, false",
        "on", "write true"),
    Bad("eps: 1e-5", "eps: [1]", "10: model.norm.eps", "a number is missing", "a number",
        "a list of 1"),
    Bad("final_norm: none", "blocks: {0: {heads: 2}}", "11: model.blocks.0.heads",
        "there is no key 'heads' here",
        "norm, attention, mlp, residual, position, cross, add_scale", "heads"),
    Bad("final_norm: none", "blocks: {0: {position: learned}}", "11: model.blocks.0.position",
        "learned is not possible here", "none, rope, alibi", "learned"),
    Bad("final_norm: none", "head: {tied: maybe}", "11: model.head.tied",
        "maybe is not a truth value", "true, false", "maybe"),
    Bad("final_norm: none", "head: tied", "11: model.head", "tied is not possible here",
        "a table with keys of tied, bias, hidden, scale, logit_scale, cap, in_place, fixed_bias",
        "tied"),
    Bad("final_norm: none", "embed_scale: sqrt(d)", "11: model.embed_scale",
        "'sqrt(d)' cannot be read: there is no constant 'd'", "e, pi", "d at column 6"),
    # ------------------------------------------------------------------ weights: names
    Bad("weights:\n", "weights: []\nx:\n", "15: x", "there is no key 'x' here"),
    Bad("  block.0.attn.k: identity\n", "", "14: weights",
        "the weight block.0.attn.k is missing", "block.0.attn.k: 2×2 (d × d)"),
    Bad(Q, "block.0.atn.q: identity", "17: weights.block.0.atn.q",
        "this model has no weight 'block.0.atn.q'", None, "block.0.atn.q",
        NEAREST("block.0.attn.q, block.0.attn.v, block.0.attn.k")),
    Bad(Q, Q + "\n  head: zeros", "18: weights.head", "this model has no weight 'head'",
        None, "head", "the head is tied to embed.token; untie it with head: {tied: false}"),
    Bad(Q, "block.*.atn.q: identity", "17: weights.block.*.atn.q",
        "this model has no weight 'block.*.atn.q'", None, "block.*.atn.q"),
    # ------------------------------------------------------------------ weights: shapes
    Bad("[[1, 0], [0, 1], [1, 1]]", "[[1, 0], [0, 1]]", "15: weights.embed.token",
        "embed.token has the wrong shape", "3×2 (vocab × d)", "2×2"),
    Bad("[[1, 2, 3], [4, 5, 6]]", "[[1, 4], [2, 5], [3, 6]]", "20: weights.block.0.mlp.hidden",
        "block.0.mlp.hidden has the wrong shape", "2×3 (d × d_ff)", "3×2",
        "it fits when transposed: rows are d here"),
    Bad("    - [3, 4]\n", "    - [3, 4, 5]\n", "23: weights.block.0.mlp.out[1]",
        "the rows have different lengths", "2 numbers, as in the first row", "3"),
    Bad("    - [3, 4]\n", "    - 3\n", "23: weights.block.0.mlp.out[1]", "a list is missing",
        "2 lists within each other", "3"),
    Bad("    - [3, 4]\n", "    - [3, [4]]\n", "23: weights.block.0.mlp.out[1,1]",
        "a number is missing", "2 lists within each other", "a list of 1"),
    Bad("[[1, 0], [0, 1], [1, 1]]", "[]", "15: weights.embed.token",
        "embed.token has the wrong shape", "3×2 (vocab × d)", "0×0"),
    Bad("[[1, 2, 3], [4, 5, 6]]", "identity", "20: weights.block.0.mlp.hidden",
        "block.0.mlp.hidden is not square, so it cannot be the identity",
        "2×3 (d × d_ff)", "identity"),
    # ------------------------------------------------------------------ weights: entries
    Bad("    - [3, 4]\n", "    - [3, four]\n", "23: weights.block.0.mlp.out[1,1]",
        "'four' cannot be read: there is no constant 'four'", "e, pi", "four at column 1"),
    Bad("    - [3, 4]\n", "    - [3, ]\n", "23: weights.block.0.mlp.out[1]",
        "the rows have different lengths"),
    Bad("    - [3, 4]\n", "    - [3, '']\n", "23: weights.block.0.mlp.out[1,1]",
        "a number is missing", "a number", "nothing"),
    Bad("    - [3, 4]\n", "    - [3, .nan]\n", "23: weights.block.0.mlp.out[1,1]",
        ".nan is not a number", "a finite number", ".nan",
        "for a score that is never attended to, write masked in score_table"),
    Bad("    - [3, 4]\n", "    - [3, -inf]\n", "23: weights.block.0.mlp.out[1,1]",
        "-inf is not a number", "a finite number", "-inf"),
    Bad("    - [3, 4]\n", "    - [3, masked]\n", "23: weights.block.0.mlp.out[1,1]",
        "only an entry of score_table can be masked", "a number", "masked"),
    Bad("    - [3, 4]\n", "    - [3, 1/0]\n", "23: weights.block.0.mlp.out[1,1]",
        "'1/0' cannot be read: a division by zero", None, "1/0"),
    Bad("    - [3, 4]\n", "    - [3, 1/(sqrt(2)*sqrt(3) - sqrt(6))]\n",
        "23: weights.block.0.mlp.out[1,1]",
        "'1/(sqrt(2)*sqrt(3) - sqrt(6))' cannot be read: division by zero"),
    Bad("    - [3, 4]\n", "    - [3, sqrt(-2)]\n", "23: weights.block.0.mlp.out[1,1]",
        "'sqrt(-2)' cannot be read: the square root of a negative number"),
    Bad("    - [3, 4]\n", "    - [3, 2 +* 3]\n", "23: weights.block.0.mlp.out[1,1]",
        "'2 +* 3' cannot be read: a number, a name or a bracket is missing", None, "* at column 4"),
    Bad("    - [3, 4]\n", "    - [3, tan(1)]\n", "23: weights.block.0.mlp.out[1,1]",
        "'tan(1)' cannot be read: there is no function 'tan'", None, "tan at column 1",
        NEAREST("tanh")),
    Bad("    - [3, 4]\n", "    - [3, 10^10^10]\n", "23: weights.block.0.mlp.out[1,1]",
        "'10^10^10' cannot be read: a number of more than 4,000 digits", None, "10^10000000000"),
    Bad("    - [3, 4]\n", "    - [3, exp(exp(exp(1000)))]\n", "23: weights.block.0.mlp.out[1,1]",
        "'exp(exp(exp(1000)))' cannot be read: too large: the exponent of e goes beyond 1000000"),
    Bad("    - [3, 4]\n", "    - [3, 1e999999]\n", "23: weights.block.0.mlp.out[1,1]",
        "'1e999999' cannot be read: a number of more than 4,000 digits", None, "1e999999"),
    Bad("    - [3, 4]\n", "    - [3, '__import__(\"os\")']\n", "23: weights.block.0.mlp.out[1,1]",
        "'__import__(\"os\")' cannot be read: this sign has no meaning here", None,
        '" at column 12'),
    # ------------------------------------------------------------------ weights: other ways
    Bad(Q, "block.0.attn.q: identiy", "17: weights.block.0.attn.q",
        "a weight cannot be written like this",
        "2×2 (d × d) numbers, or identity, zeros, ones, unknown", "identiy", NEAREST("identity")),
    Bad(Q, "block.0.attn.q: {ones: 3}", "17: weights.block.0.attn.q",
        "a weight cannot be written like this", "entries, printed + values, product, normal",
        "a table with the keys ones"),
    Bad("block.0.attn.q: identity\n  block.0.attn.k: identity",
        'block.0.attn.q: "@block.0.attn.k"\n  block.0.attn.k: "@block.0.attn.q.T"',
        "17: weights.block.0.attn.q", "references run in a circle",
        None, "block.0.attn.q → block.0.attn.k → block.0.attn.q"),
    Bad(Q, 'block.0.attn.q: "@block.0.attn.q"', "17: weights.block.0.attn.q",
        "references run in a circle", None, "block.0.attn.q → block.0.attn.q"),
    Bad(Q, 'block.0.attn.q: "@block.1.attn.q"', "17: weights.block.0.attn.q",
        "there is no weight 'block.1.attn.q' to refer to",
        "@ and the name of a weight, with .T for its transpose", "@block.1.attn.q",
        NEAREST("block.0.attn.q, block.0.attn.v, block.0.attn.k")),
    Bad(Q, 'block.0.attn.q: "@block.0.mlp.out"', "17: weights.block.0.attn.q",
        "block.0.attn.q has the wrong shape", "2×2 (d × d)", "3×2"),
    Bad(Q, "block.0.attn.q: {product: [[[1], [2]], [[3, 4], [5, 6]]]}",
        "17: weights.block.0.attn.q.product[1]", "these matrices cannot be multiplied",
        "1 rows, one for each column before", "2×2"),
    Bad(Q, "block.0.attn.q: {product: [[[1], [2]], [[3, 4, 5]]]}",
        "17: weights.block.0.attn.q", "block.0.attn.q has the wrong shape", "2×2 (d × d)", "2×3"),
    Bad(Q, "block.0.attn.q: {product: 3}", "17: weights.block.0.attn.q.product",
        "a product is a list of its factors"),
    Bad(Q, "block.0.attn.q: {product: [3, 4]}", "17: weights.block.0.attn.q.product",
        "a product needs at least one matrix"),
    Bad(Q, "block.0.attn.q: {product: [[[1, unknown], [0, 1]]]}",
        "17: weights.block.0.attn.q.product[0]", "a product needs factors that are known exactly",
        "numbers", "unknown"),
    Bad(Q, "block.0.attn.q: {product: [{a: b}]}", "17: weights.block.0.attn.q.product[0]",
        "a matrix is missing", "a list of rows, or a reference", "a table with the keys a"),
    Bad("attention: {heads: 1, out: false}", "attention: {heads: 1, out: false, bias: {q: true}}",
        "14: weights", "the weight block.0.attn.q_bias is missing"),
    Bad(Q, "block.0.attn.q: {product: [[[1e3000, 0], [0, 1]], [[1e3900, 0], [0, 1]]]}",
        "17: weights.block.0.attn.q.product[1]", "too large a product",
        "entries of at most 3,900 digits or 400 parts", "more"),
    Bad(Q, "block.0.attn.q: {normal: {std: 0.02}}", "17: weights.block.0.attn.q.normal",
        "the key 'seed' is missing", "{std: 0.02, seed: 1}"),
    Bad(Q, "block.0.attn.q: {normal: {std: 0, seed: 1}}", "17: weights.block.0.attn.q.normal.std",
        "0 is not possible here", "a number from 2^-60 to 2^60", "0"),
    Bad(Q, "block.0.attn.q: {normal: {std: 1, seed: one}}",
        "17: weights.block.0.attn.q.normal.seed", "one is not possible here"),
    Bad(Q, "block.0.attn.q: {printed: 2}", "17: weights.block.0.attn.q",
        "the key 'values' is missing", "values: 2×2 (d × d)"),
    Bad(Q, "block.0.attn.q: {printed: 2, values: [[0.123, 0], [0, 1]]}",
        "17: weights.block.0.attn.q.values[0,0]", "more decimals than were printed",
        "at most 2 decimals", "0.123"),
    Bad(Q, "block.0.attn.q: {printed: 2, values: [[1/3, 0], [0, 1]]}",
        "17: weights.block.0.attn.q.values[0,0]", "1/3 is not a printed decimal",
        "a decimal such as -0.5150", "1/3"),
    Bad("weights:\n", "weights:\n  file: ../secret.safetensors\n", "15: weights.file",
        "weights are read from a file beside the model file", "a file name without a folder",
        "../secret.safetensors"),
    Bad("out: false", "out: false, score_table: true", "14: weights",
        "the weight block.0.attn.score_table is missing",
        "block.0.attn.score_table: 1×4×4 (heads × context × context)"),
    Bad(Q, 'block.0.attn.q: {entries: {"0,1": 1, "0, 1": 2}}',
        "17: weights.block.0.attn.q.entries.0, 1",
        "this entry is given twice", "each entry once", "0,1 · 0, 1"),
    Bad(Q, 'block.0.attn.q: {entries: {"0,2": 1}}', "17: weights.block.0.attn.q.entries.0,2",
        "block.0.attn.q has no such place", "d: a number from 0 to 1", "'2'"),
    Bad(Q, 'block.0.attn.q: {entries: {"-1,0": 1}}', "17: weights.block.0.attn.q.entries.-1,0",
        "block.0.attn.q has no such place", "d: a number from 0 to 1", "'-1'"),
    Bad(Q, 'block.0.attn.q: {entries: {"1": 1}}', "17: weights.block.0.attn.q.entries.1",
        "an entry needs one index for each side of block.0.attn.q", "2×2 (d × d)", "1"),
    Bad(Q, 'block.0.attn.q: {entries: {"0,1": masked}}', "17: weights.block.0.attn.q.entries.0,1",
        "only an entry of score_table can be masked", "a number", "masked"),
    Bad(Q, 'block.0.attn.q: {entries: {"0,1": [1]}}', "17: weights.block.0.attn.q.entries.0,1",
        "a number is missing", "a number", "a list of 1"),
    Bad(Q, "block.0.attn.q: {entries: [1]}", "17: weights.block.0.attn.q.entries",
        "entries is a table by place", '{"0,4": 1}', "a list of 1"),
    Bad(Q, 'block.0.attn.q: {entries: {"0,1": 1}, rest: 2}', "17: weights.block.0.attn.q.rest",
        "there is no key 'rest' here", "entries, else", "rest"),
    Bad("embed.token: [[1, 0], [0, 1], [1, 1]]", 'embed.token: {entries: {"d,0": 1}}',
        "15: weights.embed.token.entries.d,0", "embed.token has no such place",
        "vocab: a number from 0 to 2; one of a, b, c", "'d'"),
    Bad("d_model: 2", "stream: [x, x]", "6: model.stream[1]",
        "two dimensions have the same name", "each name once", "x"),
    Bad("d_model: 2", "stream: [x, 2]", "6: model.stream[1]",
        "2 is not possible here", "a word without blanks and commas, and no number", "2"),
    Bad("d_model: 2", "stream: xy", "6: model.stream",
        "names are a list of words", "[digit, sum]", "xy"),
    Bad("d_model: 2", "d_model: 2\n  stream: [x]", "7: model.stream",
        "there are more or fewer names than dimensions", "2 names", "1"),
    Bad("mlp: {d_ff: 3}", "mlp: {d_ff: 3, units: [x, y]}", "13: model.mlp.units",
        "there are more or fewer names than dimensions", "3 names", "2"),
    Bad("d_model: 2", "d_model: 999999", "14: weights", "too many weights for a model file",
        "at most 20,000,000 numbers", None,
        "large weights belong in a safetensors file: weights: {file: …}"),
    Bad("weights:\n", "weights: all of them\nnotes:\n", "14: weights",
        "weights is a table by name", "embed.token: […]", "all of them"),
]  # fmt: skip


TABLE = GOOD.replace("out: false", "out: false, score_table: true") + "  block.0.attn.score_table: "


@pytest.mark.parametrize(
    ("rule", "key", "message", "expected"),
    [
        ("previus", "", "a weight cannot be written like this",
         "1×4×4 (heads × context × context) numbers, or "
         "identity, zeros, ones, unknown, previous, self, first"),
        ("previous", "", "query 0 of head 0 has no key left to attend to", None),
        ("[previus]", "[0]", "a score table cannot be written like this", None),
        ("[self, self]", "", "there is one rule for each head", "1 rule"),
        ("{offsets: 4}", ".offsets", "no query of this context has such a key",
         "numbers from -3 to 3, such as -1, -3..-1, 2.."),
        ("{keys: 2..1}", ".keys", "no query of this context has such a key", None),
        ("{keys: [-1]}", ".keys[0]", "no query of this context has such a key", None),
        ("{keys: {0..1: 0, 1: 2}}", ".keys.1", "this score is given twice", "each once"),
        ("{keys: 0, offsets: {0: 1}}", ".offsets",
         "a rule takes its scores from offsets or from keys", "{offsets: -3..-1, keys: {0: 5}}"),
        ("{keys: 0, fallback: nobody}", ".fallback", "a score table cannot be written like this",
         "previous, self, first, zeros, {offsets: …}, {keys: …}"),
        ("{keys: 0, or: self}", ".or", "there is no key 'or' here", None),
        ("[[[0, 0], [0, 0]]]", "", "block.0.attn.score_table has the wrong shape", None),
        ("[{keys: 0, fallback: [[0]]}]", "[0].fallback",
         "a table of scores is square, one row a query", "4×4"),
    ],
)  # fmt: skip
def test_a_bad_rule_for_scores_is_refused_with_its_place(
    rule: str, key: str, message: str, expected: str | None
) -> None:
    error = refused(TABLE + rule)
    assert error.where == f"small.yaml:25: weights.block.0.attn.score_table{key}"
    assert error.message == message
    if expected is not None:
        assert error.expected == expected


def refused(text: str) -> InputError:
    with pytest.raises(InputError) as caught:
        parse_model(text, "small.yaml")
    return caught.value


def test_the_file_the_others_are_made_from_is_good() -> None:
    assert parse_model(GOOD, "small.yaml").name == "small"


@pytest.mark.parametrize("bad", CASES, ids=str)
def test_a_bad_file_is_refused_with_its_place_and_reason(bad: Bad) -> None:
    assert bad.old in GOOD
    error = refused(GOOD.replace(bad.old, bad.new, 1))
    assert type(error) in (ModelFileError, ShapeError)
    assert error.message == bad.message
    assert error.where == f"small.yaml:{bad.where}"
    if bad.expected is not None:
        assert error.expected == bad.expected
    if bad.found is not None:
        assert error.found == bad.found
    if bad.hint is not None:
        assert error.hint == bad.hint
    assert str(error).startswith(f"small.yaml:{bad.where}: {bad.message}")


@pytest.mark.parametrize("bad", CASES, ids=str)
def test_the_command_line_tells_it_on_stderr_and_exits_with_2(
    byhand: Callable[..., Outcome], tmp_path: Path, bad: Bad
) -> None:
    file = tmp_path / "small.yaml"
    file.write_text(GOOD.replace(bad.old, bad.new, 1), "utf-8")
    outcome = byhand("trace", str(file))
    assert outcome.status == 2
    assert outcome.out == ""
    assert outcome.err.startswith("error: ")
    assert bad.message in " ".join(outcome.err.split())
    assert "Traceback" not in outcome.err


def test_there_are_at_least_forty_of_them() -> None:
    assert len(CASES) > 100

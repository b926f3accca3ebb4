"""Random model files over the whole grammar of docs/model-files.md, each made by a seed.

A file is a tree of text.  It is made by asking one question after the other, and keeps what was
answered: so a test can say which parts of the grammar its files have.  Nearly all of them open;
a few have sizes that do not fit, and must be refused.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import yaml

from byhand.errors import InputError
from byhand.files import parse_spec
from byhand.parameters import parameters
from byhand.spec import ACTIVATIONS

Tree = dict[str, Any]
Shape = tuple[int, ...]
Shapes = dict[str, Shape]
Answer = tuple[str, str]  # a question, and what was chosen
TRUTHS = ("true", "false")
WORDS = ("the", "cat", "<b>", "&amp;", "é", "it's", "$x_1$", "=1+1", "#let", "[0]", "日本", "no",
         "\\frac", "*", "-5", '"', "@q", "null", "_a_", "%s", "{x}", "0")  # fmt: skip
CHARACTERS = tuple("ab <&$=#日'\"\\0%{@-")
EXPRESSIONS = ("sqrt(2)/2", "-sqrt(3)", "ln(10)", "exp(1)", "cos(2*pi/5)", "2^(1/3)", "pi",
               "-1/sqrt(6)", "tanh(1)", "erf(1/2)", "relu(-1)")  # fmt: skip
EXTREMES = ("exp(80)", "-exp(80)", "1e30", "-1e-30", "1000", "-1000", "0")
MISFITS = 0.15  # of the files may have sizes that do not fit
NORMS = ("none", "layernorm", "rmsnorm")


@dataclass(frozen=True)
class RandomFile:
    """A model file that was never written, and what was asked to make it."""

    tree: Tree
    form: str = "yaml"
    floats: Mapping[str, Any] = field(default_factory=dict)  # what lies in a safetensors file
    answers: frozenset[Answer] = frozenset()
    possible: frozenset[Answer] = frozenset()  # what could have been answered

    @property
    def text(self) -> str:
        if self.form == "json":
            return json.dumps(self.tree, ensure_ascii=False, indent=1)
        return yaml.safe_dump(self.tree, allow_unicode=True, sort_keys=False)

    def write(self, folder: Path) -> Path:
        """The file in a folder, with what it refers to."""
        path = folder / f"odd.{self.form}"
        path.write_text(self.text, "utf-8")
        if self.floats:
            (folder / "odd.safetensors").write_bytes(safetensors(self.floats))
        return path

    def with_tree(self, tree: Tree) -> RandomFile:
        return replace(self, tree=tree)


class Asking:
    """Answers questions at random and remembers what was said."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.answers: set[Answer] = set()
        self.possible: set[Answer] = set()

    def __call__(self, question: str, *options: Any) -> Any:
        return self._said(question, self.random.choice(options), options)

    def sometimes(self, question: str, chance: float) -> bool:
        answer: bool = self._said(question, self.random.random() < chance, (True, False))
        return answer

    def _said(self, question: str, answer: Any, options: Sequence[Any]) -> Any:
        self.possible |= {(question, str(option)) for option in options}
        self.answers.add((question, str(answer)))
        return answer


def random_file(seed: int) -> RandomFile:
    """The file of a seed: the same for ever."""
    random = Random(f"model file {seed}")
    misfit = random.random() < MISFITS
    while True:
        file = _asked(Asking(random))
        if misfit or _fits(file):
            return file


def _fits(file: RandomFile) -> bool:
    try:
        parse_spec(file.text)
    except InputError:
        return False
    return True


def _asked(ask: Asking) -> RandomFile:
    tree: Tree = {}
    tokens = _vocabulary(ask, tree)
    tree["model"] = _model(ask)
    _text(ask, tree, tokens)
    floats: dict[str, Any] = {}
    tree["weights"] = _Weights(ask, _needed(tree), floats).table()
    form = ask("form", "yaml", "yaml", "json")
    return RandomFile(tree, form, floats, frozenset(ask.answers), frozenset(ask.possible))


# ------------------------------------------------------------------ words and text


def _vocabulary(ask: Asking, tree: Tree) -> list[str]:
    if ask.sometimes("name", 0.3):
        tree["name"] = ask("named", "my model", "<i>x</i>", "a/b", "=cmd", "../up", "模型")
    if ask.sometimes("about", 0.2):
        tree["about"] = "Says $x$ & <nothing>; it's #1 of 100%."
    count = ask("vocabulary size", 1, 2, 3, 3, 4)
    kind = ask("vocabulary", "words", "words", "characters", "numbered")
    if kind == "numbered":
        tree["vocabulary"] = {"size": str(count)}
        return [f"t{place}" for place in range(count)]
    if kind == "characters":
        tokens = ask.random.sample(CHARACTERS, count)
        tree["vocabulary"] = {"kind": "characters", "tokens": tokens}
        return tokens
    tokens = ask.random.sample(WORDS, count)
    tree["vocabulary"] = tokens
    return tokens


def _text(ask: Asking, tree: Tree, tokens: list[str]) -> None:
    most = int(tree["model"].get("context", "4"))
    wanted = ask("text length", 1, 2, 2, 3)
    length = most + 1 if ask.sometimes("text too long", 0.03) else min(wanted, most)
    glue = "" if isinstance(tree["vocabulary"], dict) and "kind" in tree["vocabulary"] else " "
    if ask.sometimes("text", 0.94):
        tree["text"] = glue.join(ask.random.choices(tokens, k=length))
    if ask.sometimes("target", 0.4):
        tree["target"] = ask.random.choice(tokens)
    if ask.sometimes("end", 0.2):
        tree["end"] = ask.random.choice(tokens)
    if ask.sometimes("notes", 0.1):
        tree["notes"] = ["A note with <tags>, $maths$ and #hash.", "Another."]


# ------------------------------------------------------------------ the architecture


def _model(ask: Asking) -> Tree:
    width = ask("d_model", 1, 2, 2, 3, 4, 4)
    layers = ask("layers", 0, 1, 1, 1, 2)
    model: Tree = {"d_model": str(width), "layers": str(layers)}
    if ask.sometimes("context", 0.5):
        model["context"] = str(ask("context size", 1, 2, 3, 4))
    if ask.sometimes("layout given", 0.4):
        model["layout"] = ask("layout", "in_out", "out_in")
    if ask.sometimes("embed scale", 0.25):
        model["embed_scale"] = ask("embed_scale", "1", "2", "0", "sqrt(2)", "-1/3", "none")
    if ask.sometimes("positions", 0.7):
        model["position"] = _position(ask, width)
    if ask.sometimes("norm given", 0.7):
        model["norm"] = _norm(ask, "norm", place=True)
    if ask.sometimes("final norm given", 0.4):
        model["final_norm"] = _norm(ask, "final_norm")
    if layers or ask.sometimes("sublayers without layers", 0.2):
        model["attention"] = _attention(ask, width) if ask.sometimes("attention", 0.8) else "none"
        model["mlp"] = _mlp(ask) if ask.sometimes("mlp", 0.7) else "none"
    if ask.sometimes("residual given", 0.3):
        model["residual"] = ask("residual", "serial", "parallel")
    if ask.sometimes("head given", 0.5):
        model["head"] = {"tied": ask("head.tied", *TRUTHS), "bias": ask("head.bias", *TRUTHS)}
    if layers and ask.sometimes("blocks", 0.35):
        model["blocks"] = {str(ask.random.randrange(layers)): _change(ask, model)}
    if "context" not in model and _needs_context(model):
        model["context"] = str(ask("context size", 1, 2, 3, 4))
    return model


def _needs_context(model: Tree) -> bool:
    said = json.dumps(model)
    return "learned" in said or '"score_table": "true"' in said


def _position(ask: Asking, width: int) -> Any:
    kinds = [ask("position", "none", "learned", "sinusoidal", "rope", "alibi")]
    if kinds[0] in ("learned", "sinusoidal") and ask.sometimes("two positions", 0.3):
        kinds.append(ask("second position", "rope", "alibi"))
    said = [_one_position(ask, kind) for kind in kinds]
    return said[0] if len(said) == 1 else said


def _one_position(ask: Asking, kind: str) -> Any:
    if kind not in ("rope", "sinusoidal") or ask.sometimes(f"{kind} in short", 0.4):
        return kind
    table: Tree = {"kind": kind}
    if kind == "rope":
        if ask.sometimes("rope width", 0.3):
            table["width"] = str(ask("rope.width", 2, 2, 3, 4))
        if ask.sometimes("rope pairing", 0.5):
            table["pairing"] = ask("rope.pairing", "half", "interleaved")
        if ask.sometimes("rope angles", 0.3):
            return table | {"angles": "given"}
    return table | {"base": ask(f"{kind}.base", "10000", "100", "7/2", "1")}


def _norm(ask: Asking, of: str, *, place: bool = False) -> Any:
    kind = ask(of, *NORMS, "layernorm", "rmsnorm")
    if ask.sometimes(f"{of} in short", 0.25):
        return kind
    table: Tree = {"kind": kind, "eps": ask(f"{of}.eps", "0", "1e-5", "1/3")}
    if place:
        table["place"] = ask(f"{of}.place", "pre", "post")
    if ask.sometimes(f"{of} parts", 0.5):
        table["gain"] = ask(f"{of}.gain", *TRUTHS)
        table["bias"] = ask(f"{of}.bias", *TRUTHS) if kind == "layernorm" else "false"
    return table


def _attention(ask: Asking, width: int) -> Tree:
    heads = ask("heads", 1, 1, 2, 2, 3, 4)
    table: Tree = {"heads": str(heads)}
    divides = width % heads == 0
    if not divides and not ask.sometimes("heads that do not divide", 0.3):
        table["d_head"] = str(ask("d_head", 1, 2))
    elif divides and ask.sometimes("own head width", 0.2):
        table["d_head"] = str(ask("d_head", 1, 2, 3))
    if ask.sometimes("grouped heads", 0.3):
        table["kv_heads"] = str(ask("kv_heads", 1, 1, 1, 2))
    if ask.sometimes("scale given", 0.3):
        table["scale"] = ask("scale", "none", "1", "0", "1/8", "-sqrt(2)", "100")
    if ask.sometimes("causal given", 0.4):
        table["causal"] = ask("causal", *TRUTHS)
    if table.get("causal") != "false" and ask.sometimes("window given", 0.25):
        table["window"] = str(ask("window", 1, 2, 5))
    if ask.sometimes("attention bias", 0.4):
        table["bias"] = ask("attention.bias", *TRUTHS, "one by one")
        if table["bias"] == "one by one":
            table["bias"] = {key: ask(f"bias.{key}", *TRUTHS) for key in ("q", "k", "v", "out")}
    if ask.sometimes("packing", 0.2):
        table["packed"] = ask("packed", "none", "concatenated", "per_head")
    if ask.sometimes("no output matrix", 0.15):
        table["out"] = "false"
    for key in ("q_norm", "k_norm"):
        if ask.sometimes(key + " given", 0.15):
            table[key] = _norm(ask, key)
    if ask.sometimes("score table", 0.25):
        table["score_table"] = "true"
    if ask.sometimes("own attention norm", 0.2):
        table["norm"] = _norm(ask, "attention.norm")
    return table


def _mlp(ask: Asking) -> Tree:
    table: Tree = {"d_ff": str(ask("d_ff", 1, 2, 3))}
    if ask.sometimes("activation given", 0.8):
        table["activation"] = ask("activation", *ACTIVATIONS)
    if ask.sometimes("gated", 0.35):
        table["gated"] = "true"
    if ask.sometimes("mlp bias", 0.4):
        table["bias"] = ask("mlp.bias", *TRUTHS, "one by one")
        if table["bias"] == "one by one":
            keys = ("hidden", "out", "gate") if "gated" in table else ("hidden", "out")
            table["bias"] = {key: ask(f"mlp.bias.{key}", *TRUTHS) for key in keys}
    if ask.sometimes("own mlp norm", 0.2):
        table["norm"] = _norm(ask, "mlp.norm")
    return table


def _change(ask: Asking, model: Tree) -> Tree:
    """What one layer does differently."""
    key = ask("changed", "norm", "attention", "mlp", "residual", "position")
    if key == "norm":
        return {key: _norm(ask, "block norm")}
    if key == "residual":
        return {key: ask("block residual", "serial", "parallel")}
    if key == "position":
        return {key: ask("block position", "none", "rope", "alibi")}
    if model.get(key, "none") == "none" or ask.sometimes("sublayer left out", 0.4):
        return {key: "none"}
    if key == "mlp":
        return {key: {"d_ff": str(ask("block d_ff", 1, 4))}}
    return {key: {"causal": ask("block causal", *TRUTHS)}}


# ------------------------------------------------------------------ the weights


def _needed(tree: Tree) -> Shapes:
    """The weights that a file must have, with their shapes; one where it will be refused."""
    try:
        return {each.name: each.shape for each in parameters(parse_spec(json.dumps(tree)))}
    except InputError:
        return {"embed.token": (_count(tree), int(tree["model"]["d_model"]))}


def _count(tree: Tree) -> int:
    said = tree["vocabulary"]
    if isinstance(said, list):
        return len(said)
    return int(said["size"]) if "size" in said else len(said["tokens"])


class _Weights:
    """The table of weights, one way of writing after the other."""

    WAYS = ("numbers", "numbers", "zeros", "ones", "expressions", "extremes", "printed", "unknown",
            "unknown entries", "reference", "product", "normal", "file")  # fmt: skip

    def __init__(self, ask: Asking, needed: Shapes, floats: dict[str, Any]) -> None:
        self.ask, self.needed, self.floats = ask, needed, floats
        # One way for most, or every file would hold an unknown weight somewhere.
        self.usual = ask("usual weights", "numbers", "numbers", "zeros", "ones", "expressions",
                         "extremes", "printed", "normal", "printed to nothing")  # fmt: skip
        self.mixed = ask("mixed weights", 0.0, 0.1, 0.3)

    def table(self) -> Tree:
        table: Tree = {}
        for name, shape in self.needed.items():
            if name.endswith(".slopes") and self.ask.sometimes("usual slopes", 0.5):
                continue
            if name.endswith(".score_table"):
                table[name] = self._score_table(shape)
                continue
            mixed = self.ask.random.random() < self.mixed
            way = self.ask("weight", *self.WAYS) if mixed else self.usual
            said = self._written(way, name, shape)
            if said is None:
                self.floats[name] = self._floats(shape)
                table["file"] = "odd.safetensors"
            else:
                table[name] = said
        if self.ask.sometimes("every layer at once", 0.15):
            table = self._starred(table)
        return table

    def _written(self, way: str, name: str, shape: Shape) -> Any:
        random = self.ask.random
        if way == "reference":
            return self._reference(name, shape) or "zeros"
        if way == "product":
            return self._product(shape) if len(shape) == 2 else "ones"
        if way == "normal":
            return {"normal": {"std": self.ask("std", "1", "1/8", "0.02"),
                               "seed": str(random.randrange(9))}}  # fmt: skip
        if way == "printed":
            places = self.ask("places", 0, 1, 2, 4)
            signs = (0, 0, -1, 1)
            rows = self._rows(shape, lambda: f"{random.choice(signs) * random.random():.{places}f}")
            return {"printed": str(places), "values": rows}
        if way == "printed to nothing":  # every range contains zero
            return {"printed": "2", "values": self._rows(shape, lambda: "0.00")}
        if way == "file":
            return None
        if way in ("zeros", "ones", "unknown"):
            square = len(shape) == 2 and shape[0] == shape[1]
            return "identity" if way == "ones" and square else way
        return self._rows(shape, lambda: self._entry(way))

    def _entry(self, way: str) -> str:
        random = self.ask.random
        if way == "expressions":
            return random.choice((*EXPRESSIONS, "0", "1"))
        if way == "extremes":
            return random.choice(EXTREMES)
        if way == "unknown entries" and random.random() < 0.3:
            return "unknown"
        return random.choice(("0", "1", "-1", "1/2", "-3/2", "0.30", "2", "-1/3"))

    def _rows(self, shape: Shape, entry: Any) -> Any:
        if not shape:
            return entry()
        return [self._rows(shape[1:], entry) for _place in range(shape[0])]

    def _reference(self, name: str, shape: Shape) -> str | None:
        """The same as an earlier weight, so that no circle is made."""
        names = list(self.needed)
        earlier = names[: names.index(name)]
        same = [f"@{each}" for each in earlier if self.needed[each] == shape]
        if len(shape) == 2:
            same += [f"@{each}.T" for each in earlier if self.needed[each] == shape[::-1]]
        return self.ask.random.choice(same) if same else None

    def _product(self, shape: Shape) -> Tree:
        one = self._rows((shape[0], 1), lambda: self._entry("numbers"))
        other = self._rows((1, shape[1]), lambda: self._entry("numbers"))
        scale = ["1/4"] if self.ask.sometimes("scaled product", 0.5) else []
        return {"product": [*scale, one, other]}

    def _floats(self, shape: Shape) -> Any:
        random = self.ask.random
        size = int(np.prod(shape, dtype=int))
        return np.array([random.uniform(-1, 1) for _entry in range(size)], "<f4").reshape(shape)

    def _score_table(self, shape: Shape) -> Any:
        """Some entries forbid a look: any but the own position, the own one, or all the others."""
        forbidden = self.ask("forbidden", "none", "others", "own position", "at random")
        table = self._rows(shape, lambda: self._entry("numbers"))
        for head in table:
            for query, keys in enumerate(head):
                for key in range(len(keys)):
                    if self._forbids(forbidden, query, key):
                        keys[key] = "masked"
        return table

    def _forbids(self, which: str, query: int, key: int) -> bool:
        if which == "others":
            return key != query and self.ask.random.random() < 0.5
        if which == "own position":  # the first position has no other before it
            return key == query and query > 0
        return which == "at random" and self.ask.random.random() < 0.3

    def _starred(self, table: Tree) -> Tree:
        """What block 0 has, said for every layer."""
        return {name.replace("block.0.", "block.*.", 1): said for name, said in table.items()
                if not (name.startswith("block.1.") and f"block.0.{name[8:]}" in table
                        and not name.endswith("score_table"))}  # fmt: skip


def safetensors(arrays: Mapping[str, Any]) -> bytes:
    """The arrays as a safetensors file of float32."""
    header: dict[str, Any] = {}
    data = b""
    for name, array in arrays.items():
        raw = np.ascontiguousarray(array, "<f4").tobytes()
        header[name] = {"dtype": "F32", "shape": list(array.shape),
                        "data_offsets": [len(data), len(data) + len(raw)]}  # fmt: skip
        data += raw
    said = json.dumps(header).encode()
    return len(said).to_bytes(8, "little") + said + data


def random_files(first: int, count: int, among: int = 1) -> Iterator[tuple[int, RandomFile]]:
    """Files with their seeds: of each few, the one with most that no file before it has."""
    seen: set[Answer] = set()
    for place in range(first, first + count):
        seeds = range(place * among, (place + 1) * among)
        drawn = {seed: random_file(seed) for seed in seeds}
        best = max(drawn, key=lambda seed: len(drawn[seed].answers - seen))
        seen |= drawn[best].answers
        yield best, drawn[best]

"""The loss of `tiny` in SymPy, as a function of its weights and of what may be added to a step.

This is one post-norm block of two dimensions, written out once more with SymPy alone.  An entry of
a step or weight can be *moved*: a symbol is added to it, and the loss is a function of the symbol.
Its derivative at 0 is the gradient of that entry.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import sympy as sp

Rows = list[list[sp.Expr]]
WIDTH = 2
S = sp.Symbol("s", real=True)


@dataclass
class Tiny:
    """The model with its weights as flat lists; `normed` is False for one without norms."""

    weights: Mapping[str, list[sp.Expr]]
    tokens: tuple[int, ...]
    normed: bool = True
    moved: tuple[str, int] = ("", 0)  # a step or weight, and which of its entries
    entries: int = 0  # of what is moved

    def weight(self, name: str, columns: int = WIDTH) -> Rows:
        flat = self.move("weight." + name, self.weights[name])
        return [flat[start : start + columns] for start in range(0, len(flat), columns)]

    def move(self, address: str, flat: list[sp.Expr]) -> list[sp.Expr]:
        """The entries; to the one that is moved, S is added."""
        moved, place = self.moved
        if address != moved:
            return flat
        self.entries = len(flat)
        return [entry + S if i == place else entry for i, entry in enumerate(flat)]

    def rows(self, address: str, rows: Rows) -> Rows:
        flat = iter(self.move(address, [entry for row in rows for entry in row]))
        return [[next(flat) for _entry in row] for row in rows]

    def still(self, entry: sp.Expr) -> sp.Expr:
        """The entry with nothing moved."""
        return entry.subs(S, 0)

    # ------------------------------------------------------------------ the pass

    def losses(self, targets: Mapping[int, int]) -> list[sp.Expr]:
        """-ln p of the target at each of these positions."""
        words, places = self.weight("embed.token"), self.weight("embed.position")
        token = self.rows("embed.token", [words[t] for t in self.tokens])
        place = self.rows("embed.position", places[: len(token)])
        x = self.rows("stream.0", added(token, place))
        x = self.attention(x)
        x = self.mlp(x)
        logits = self.rows("logits", [[dot(row, word) for word in words] for row in x])
        return [
            sp.log(sum(sp.exp(z) for z in logits[position])) - logits[position][target]
            for position, target in targets.items()
        ]

    def attention(self, x: Rows) -> Rows:
        at = "block.0.attn"
        q, k, v = (self.rows(f"{at}.{n}", times(x, self.weight(f"{at}.{n}"))) for n in "qkv")
        scores = self.rows(
            f"{at}.scores", [[dot(a, b) for b in k[: i + 1]] for i, a in enumerate(q)]
        )
        shares = self.rows(f"{at}.weights", list(map(softmax, scores)))
        mixed = [dot_columns(row, v) for row in shares]
        out = self.rows(f"{at}.out", self.rows(f"{at}.mixed", mixed))
        return self.norm(f"{at}.norm", self.rows(f"{at}.add", added(x, out)))

    def mlp(self, x: Rows) -> Rows:
        at = "block.0.mlp"
        hidden = self.rows(f"{at}.hidden", times(x, self.weight(f"{at}.hidden")))
        act = [[z if sp.N(self.still(z)) > 0 else z * 0 for z in row] for row in hidden]
        out = times(self.rows(f"{at}.act", act), self.weight(f"{at}.out"))
        out = self.rows(f"{at}.out", out)
        return self.norm(f"{at}.norm", self.rows(f"{at}.add", added(x, out)))

    def norm(self, at: str, x: Rows) -> Rows:
        if not self.normed:
            return x
        (gain,), (bias,) = self.weight(f"{at}.gain"), self.weight(f"{at}.bias")
        means = self.rows(f"{at}.mean", [[sum(row) / WIDTH] for row in x])
        pairs = zip(x, means, strict=True)
        centered = self.rows(f"{at}.centered", [[z - mean for z in row] for row, (mean,) in pairs])
        squares = [[sum(z**2 for z in row) / WIDTH] for row in centered]
        roots = [[sp.sqrt(z)] for (z,) in self.rows(f"{at}.variance", squares)]
        pairs = zip(centered, self.rows(f"{at}.std", roots), strict=True)
        quotients = [[z / std for z in row] for row, (std,) in pairs]
        normalized = self.rows(f"{at}.normalized", quotients)
        return self.rows(
            f"{at}.out",
            [[z * g + b for z, g, b in zip(row, gain, bias, strict=True)] for row in normalized],
        )


def gradient(model: Tiny, address: str, targets: Mapping[int, int]) -> list[sp.Expr]:
    """The derivatives of the mean loss by what is added to each entry of a step or weight."""
    found: list[sp.Expr] = []
    while True:
        moved = replace(model, moved=(address, len(found)))
        losses = moved.losses(targets)
        assert moved.entries, address
        found.append(moved.still(sp.diff(sum(losses) / len(losses), S)))
        if len(found) == moved.entries:
            return found


def dot(first: list[sp.Expr], second: list[sp.Expr]) -> sp.Expr:
    return sum(a * b for a, b in zip(first, second, strict=True))


def dot_columns(shares: list[sp.Expr], v: Rows) -> list[sp.Expr]:
    return [dot(shares, [row[i] for row in v[: len(shares)]]) for i in range(WIDTH)]


def times(x: Rows, matrix: Rows) -> Rows:
    return [[dot(row, list(column)) for column in zip(*matrix, strict=True)] for row in x]


def added(first: Rows, second: Rows) -> Rows:
    return [[a + b for a, b in zip(*rows, strict=True)] for rows in zip(first, second, strict=True)]


def softmax(scores: list[sp.Expr]) -> list[sp.Expr]:
    total = sum(map(sp.exp, scores))
    return [sp.exp(score) / total for score in scores]


def text(tree: sp.Expr) -> str:
    """A tree of SymPy's as byhand reads it."""
    return sp.sstr(tree).replace("**", "^").replace("E", "e").replace("log(", "ln(")

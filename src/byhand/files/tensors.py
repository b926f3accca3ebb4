"""The `weights:` table of a model file → Weights.

A tensor is written as its numbers, as a word (identity, zeros, ones, unknown), as a reference to
another tensor, as a product of smaller ones, as decimals known to some places, or as random numbers
that are the same for ever.  Floats lie in a safetensors file beside the model file, as exact dyadic
rationals.  docs/model-files.md shows each.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from fractions import Fraction
from pathlib import Path

import numpy as np

from byhand.address import write_index
from byhand.errors import InputError, ShapeError, nearest
from byhand.expression import Expression, Number, Power
from byhand.files import scalars
from byhand.files.literals import Literals, misfit, shape_of
from byhand.files.normal import LARGEST_STD, SMALLEST_STD, normal
from byhand.files.products import product
from byhand.files.score_rules import RULES, read_rules, ruled
from byhand.files.sparse import Names, read_entries
from byhand.files.tree import Array, List, Node, Scalar, Table, describe
from byhand.language import _
from byhand.numbers.base import ABSENT, Unknown
from byhand.parameters import Parameter, parameters
from byhand.spec import AttentionSpec, ModelSpec
from byhand.weights import Data, Tensor, Weights

MOST_ENTRIES = 20_000_000  # written or drawn; a safetensors file may hold more
DEEPEST_REFERENCE = 30  # nested references and products
WORDS = ("identity", "zeros", "ones", "unknown")
_REFERENCE = re.compile(r"@(?P<name>[^@]+?)(?P<turned>\.T)?")
_BLOCK = re.compile(r"block\.(\d+)\.")

Named = Callable[[Parameter], Names]


def read_weights(
    node: Node | None, spec: ModelSpec, named: Named, at: Table, folder: Path | None
) -> Weights:
    """All tensors that the spec needs; a missing table is reported at `at`.

    `named` gives the names along the sides of a tensor.
    """
    if node is None:
        node = Table(at.file, at.line, "weights", {})
    if not isinstance(node, Table):
        raise node.wrong(_("weights is a table by name"), expected="embed.token: […]")
    return _Reader(node, spec, named, folder).weights()


class _Reader:
    def __init__(self, node: Table, spec: ModelSpec, named: Named, folder: Path | None) -> None:
        self.node = node
        self.spec = spec
        self.named = named
        self.wanted = {parameter.name: parameter for parameter in parameters(spec)}
        self.made: dict[str, Tensor] = {}
        self.making: list[str] = []
        self.literals = Literals()
        self.floats: Mapping[str, Data] = {}
        if (file := node.get("file")) is not None:
            self.floats = read_floats(file, folder)
            for name in self.floats:
                self.known(name, file)
        self.given = self.expanded()

    def weights(self) -> Weights:
        self.complete()
        self.within_bounds()
        for name in self.wanted:
            self.tensor(name)
        for layer, block in enumerate(self.spec.blocks):
            if (attn := block.attention) and attn.score_table and not attn.nothing:
                self.somewhere_to_look(f"block.{layer}.attn.score_table", attn)
        return Weights({name: self.made[name] for name in self.wanted})

    # ------------------------------------------------------------------------ names

    def known(self, name: str, node: Node) -> None:
        if name not in self.wanted:
            raise node.wrong(
                _("this model has no weight {name}").format(name=repr(name)),
                expected=", ".join(self.wanted) if len(self.wanted) <= 12 else None,
                found=name,
                hint=self.why_not(name) or nearest(name, self.wanted),
            )

    def why_not(self, name: str) -> str | None:
        if name == "head" and self.spec.tied:
            return _("the head is tied to embed.token; untie it with head: {tied: false}")
        return None

    def expanded(self) -> dict[str, Node]:
        """The nodes by full name; block.* covers every layer without its own entry."""
        given: dict[str, Node] = {}
        for name, node in self.node.entries.items():
            if name == "file" or name.startswith("block.*."):
                continue
            self.known(name, node)
            if name in self.floats:
                raise node.wrong(
                    _("this weight is given twice"),
                    expected=_("each weight once"),
                    found=_("{name} here and in {file}").format(
                        name=name, file=describe(self.node.entries["file"])
                    ),
                )
            given[name] = node
        for name, node in self.node.entries.items():
            if not name.startswith("block.*."):
                continue
            rest = name.removeprefix("block.*.")
            every = [
                full
                for full in self.wanted
                if (block := _BLOCK.match(full)) and full[block.end() :] == rest
            ]
            if not every:
                self.known(name, node)
            for full in every:
                if full not in given and full not in self.floats:
                    given[full] = node
        return given

    def complete(self) -> None:
        missing = [
            name
            for name in self.wanted
            if name not in self.given
            and name not in self.floats
            and not name.endswith(".slopes")  # these have a default
        ]
        if missing:
            first = self.wanted[missing[0]]
            raise self.node.wrong(
                _("the weight {name} is missing").format(name=missing[0]),
                expected=f"{missing[0]}: {shape_of(first)}",
                found=", ".join(list(self.node.entries)[:12]) or _("nothing"),
                hint=None
                if len(missing) == 1
                else _("missing too: {names}").format(names=", ".join(missing[1:13])),
            )

    def within_bounds(self) -> None:
        floats = {*self.floats, *(n for n, node in self.given.items() if isinstance(node, Array))}
        size = sum(p.size for name, p in self.wanted.items() if name not in floats)
        if size > MOST_ENTRIES:
            raise self.node.wrong(
                _("too many weights for a model file"),
                expected=_("at most {count} numbers").format(count=f"{MOST_ENTRIES:,}"),
                found=f"{size:,}",
                hint=_("large weights belong in a safetensors file: weights: {file: …}"),
            )

    # ------------------------------------------------------------------------ tensors

    def tensor(self, name: str) -> Tensor:
        """The tensor of this name, made on first use."""
        if name in self.made:
            return self.made[name]
        parameter = self.wanted[name]
        same_as = None
        if name in self.floats:
            data = self.floats[name]
            self.fits(self.node.entries["file"], parameter, data.shape)
        elif name not in self.given:
            data = usual_slopes(parameter.size)
        else:
            node = self.given[name]
            if name in self.making or len(self.making) > DEEPEST_REFERENCE:
                raise node.wrong(
                    _("references run in a circle")
                    if name in self.making
                    else _("references of more than {count} steps").format(count=DEEPEST_REFERENCE),
                    found=" → ".join([*self.making[-4:], name]),
                )
            self.making.append(name)
            if isinstance(node, Scalar) and node.text.startswith("@"):
                data, same_as = self.reference(node, name)
                self.fits(node, parameter, data.shape)
            else:
                data = self.data(node, parameter)
            self.making.pop()
        self.made[name] = Tensor(name, data, same_as)
        return self.made[name]

    def fits(self, node: Node, parameter: Parameter, found: tuple[int, ...]) -> None:
        if found != parameter.shape:
            raise misfit(node, parameter, found)

    def reference(self, node: Scalar, name: str) -> tuple[Data, str]:
        """The data of another tensor or its transpose, and that tensor's name."""
        match = _REFERENCE.fullmatch(node.text)
        other = match["name"] if match else node.text.removeprefix("@")
        if layer := _BLOCK.match(name):
            other = other.replace("block.*.", layer[0], 1)
        if match is None or other not in self.wanted:
            raise node.wrong(
                _("there is no weight {name} to refer to").format(name=repr(other)),
                expected=_("@ and the name of a weight, with .T for its transpose"),
                found=node.text[:60],
                hint=nearest(other, self.wanted),
            )
        target = self.tensor(other)
        data = target.data.T if match["turned"] else target.data
        return data, target.same_as or other

    def data(self, node: Node, parameter: Parameter) -> Data:
        masked = parameter.name.endswith(".score_table")
        if masked and ruled(node):
            return read_rules(node, parameter, self.literals, self.attention(parameter).causal)
        match node:
            case Array(data=data):
                self.fits(node, parameter, data.shape)
                return finite(data, node)
            case List():
                return self.literals.read(node, parameter, masked=masked)
            case Scalar(text=text):
                return self.worded(node, text, parameter)
            case Table(entries=entries) if "printed" in entries:
                node.only("printed", "values")
                places = scalars.whole(entries["printed"], 0, 40)
                return self.literals.read_printed(node, parameter, places)
            case Table(entries=entries) if "product" in entries:
                node.only("product")
                data = product(entries["product"], self.literals, self.factor)
                self.fits(node, parameter, data.shape)
                return data
            case Table(entries=entries) if "entries" in entries:
                return read_entries(node, parameter, self.named(parameter), self.literals)
            case Table(entries=entries) if "normal" in entries:
                node.only("normal")
                return self.drawn(entries["normal"], parameter)
        raise node.wrong(
            _("a weight cannot be written like this"),
            expected="entries, printed + values, product, normal",
        )

    def attention(self, parameter: Parameter) -> AttentionSpec:
        """The attention that a weight belongs to."""
        layer = _BLOCK.match(parameter.name)
        attention = self.spec.blocks[int(layer[1])].attention if layer else None
        assert attention is not None
        return attention

    def factor(self, node: Scalar) -> Data:
        """A reference inside a product."""
        return self.reference(node, self.making[-1])[0]

    def worded(self, node: Scalar, text: str, parameter: Parameter) -> Data:
        shape = parameter.shape
        match text:
            case "zeros":
                return filled(shape, Fraction(0))
            case "ones":
                return filled(shape, Fraction(1))
            case "unknown":
                return filled(shape, Unknown())
            case "identity":
                if len(shape) != 2 or shape[0] != shape[1]:
                    raise ShapeError(
                        _("{name} is not square, so it cannot be the identity").format(
                            name=parameter.name
                        ),
                        where=node.where,
                        expected=shape_of(parameter),
                        found="identity",
                    )
                data = filled(shape, Fraction(0))
                data[np.arange(shape[0]), np.arange(shape[0])] = Fraction(1)
                return data
        words = (*WORDS, *RULES) if parameter.name.endswith(".score_table") else WORDS
        raise node.wrong(
            _("a weight cannot be written like this"),
            expected=_("{shape} numbers, or {words}").format(
                shape=shape_of(parameter), words=", ".join(words)
            ),
            hint=nearest(text, words),
        )

    def drawn(self, node: Node, parameter: Parameter) -> Data:
        table = node if isinstance(node, Table) else Table(node.file, node.line, node.key, {})
        table.only("std", "seed")
        found = describe(node)
        deviation, start = (
            table.needed(key, "{std: 0.02, seed: 1}", found) for key in ("std", "seed")
        )
        std = scalars.number(deviation)
        if not SMALLEST_STD <= std <= LARGEST_STD:
            bounds = _("a number from {least} to {most}").format(least="2^-60", most="2^60")
            raise deviation.impossible(bounds)
        seed = scalars.whole(start, 0, 10**18 - 1)
        return normal(parameter.name, parameter.shape, std, seed)

    def somewhere_to_look(self, name: str, attention: AttentionSpec) -> None:
        """Refuses a mask with a query that may attend to no key."""
        data = self.made[name].data
        for head, query in np.ndindex(*data.shape[:2]):
            keys = data[head, query, : query + 1] if attention.causal else data[head, query]
            if all(entry is ABSENT for entry in keys):
                raise self.given[name].wrong(
                    _("query {query} of head {head} has no key left to attend to").format(
                        query=query, head=head
                    ),
                    expected=_("an entry that is not masked among keys 0 to {last}").format(
                        last=len(keys) - 1
                    ),
                    found=f"{name}[{head},{query}]",
                    hint=_("attention: {nothing: zero} lets it look at nothing"),
                )


def finite(data: Data, node: Node) -> Data:
    """The floats; an error if one is not finite."""
    for place in np.argwhere(~np.isfinite(data)):
        index = tuple(map(int, place))
        scalars.value_of(Scalar("", 0, node.key + write_index(index), str(data[index])))
    return data


def filled(shape: tuple[int, ...], entry: object) -> Data:
    """An array with the same entry everywhere."""
    data = np.empty(shape, dtype=object)
    data.fill(entry)
    return data


def usual_slopes(heads: int) -> Data:
    """The default slopes of ALiBi: powers of 2^(-8/heads).

    For a number of heads that is no power of two, as in published models: those of the next smaller
    power of two, then every other one of twice as many.
    """
    whole = 1 << (heads.bit_length() - 1)
    exponents = [Fraction(-8 * (head + 1), whole) for head in range(whole)]
    exponents += [Fraction(-8 * (2 * extra + 1), 2 * whole) for extra in range(heads - whole)]
    data = np.empty(heads, dtype=object)
    for head, exponent in enumerate(exponents):
        data[head] = power_of_two(exponent)
    return data


def power_of_two(exponent: Fraction) -> Fraction | Expression:
    """2^exponent, exactly."""
    if exponent.denominator == 1:
        return Fraction(2) ** exponent.numerator
    return Power(Number(Fraction(2)), Number(exponent))


# ------------------------------------------------------------------ floats beside the file


def read_floats(node: Node, folder: Path | None) -> Mapping[str, Data]:
    """Every tensor of the file named under `weights.file`, by name."""
    from byhand.files.mapped import open_tensors  # only now: most model files do not need it

    path = _beside(node, folder)
    try:
        return {name: stored.finite() for name, stored in sorted(open_tensors(path).items())}
    except InputError as error:
        raise node.wrong(
            error.message, expected=error.expected, found=error.found or str(path), hint=error.hint
        ) from None


def _beside(node: Node, folder: Path | None) -> Path:
    name = scalars.text(node)
    if folder is None or Path(name).name != name or "\\" in name or name in (".", ".."):
        raise node.wrong(
            _("weights are read from a file beside the model file"),
            expected=_("a file name without a folder"),
            found=name,
        )
    if not name.endswith(".safetensors"):
        raise node.wrong(
            _("weights are read from safetensors files only"),
            expected="….safetensors",
            found=name,
            hint=_("pickled files can run anything when opened; convert them first"),
        )
    return folder / name

"""The claims of a property, read for the texts of every shape.

    next: (a + b) % 7            the next token
    continuation: sorted         the tokens that follow, one goal for each
    lead: {of: A, over: B, by: 1/2}
    at: block.0.attn.weights[0,-1,k]   with at least: 0.9 or at most: 0.1
    same as: other.yaml · constant · unmoved

docs/property-files.md explains them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any

from byhand.errors import AddressError, InputError
from byhand.files import parse_model, scalars
from byhand.files.tree import List, Node, Scalar, Table
from byhand.forward import plan
from byhand.language import _, amount, later
from byhand.model import Model
from byhand.models import open_model
from byhand.proving.claims import Agree, AtLeast, Claim, Function, Lead, Next, Same, Unmoved
from byhand.proving.domain import (
    Reckoned,
    Shape,
    Variable,
)
from byhand.proving.reading import answers
from byhand.proving.reading.continuations import EachToken
from byhand.proving.reading.scopes import Scope
from byhand.proving.reading.texts import LINE
from byhand.proving.reading.words import Words
from byhand.tokens import too_long

KINDS = ("next", "continuation", "lead", "at", "same as", "constant", "unmoved")
OTHERS = "others"
LONGEST = 1_000  # tokens of a continuation

Found = Iterator[tuple[Shape, Claim]]


def read_claims(node: Node, scopes: tuple[Scope, ...], model: Model, moves: bool) -> Found:
    """Every claim about every shape, claim by claim; `moves`: weights or embeddings may vary."""
    items = node.items if isinstance(node, List) else (node,)
    if not items:
        raise node.wrong(_("a claim is missing"), expected=", ".join(KINDS))
    for item in items:
        tried = False
        for shape, claim in _Claims(_table(item), scopes, model, moves).found():
            tried = tried or _try(shape, claim)
            yield shape, claim


def _try(shape: Shape, claim: Claim) -> bool:
    """Asks for the answer to one text, so that mistakes are found now; whether there is one."""
    whole = shape.whole
    assigned = None if whole is None else whole.first()
    if assigned is None:
        return False
    match claim:
        case Next(answers=function) | Lead(ahead=function) | AtLeast(index=function):
            function.at(assigned)
    return True


def _table(node: Node) -> Table:
    """The claim as a table: `constant` is {constant: true}."""
    if isinstance(node, Scalar):
        word = scalars.word(node, "constant", "unmoved")
        return Table(node.file, node.line, node.key, {word: node})
    if not isinstance(node, Table):
        raise node.impossible(", ".join(KINDS))
    return node


class _Claims:
    def __init__(self, node: Table, scopes: tuple[Scope, ...], model: Model, moves: bool) -> None:
        self.node = node
        self.scopes = scopes
        self.model = model
        self.moves = moves
        given = [key for key in KINDS if key in node.entries]
        node.only(*KINDS, "at least", "at most")
        if len(given) != 1:
            raise node.wrong(
                _("a claim says one thing"),
                expected=_("one of {names}").format(names=", ".join(KINDS)),
                found=node.keys(),
                hint=_("several claims are written as a list"),
            )
        (self.kind,) = given
        if self.kind != "at":
            node.only(*KINDS)
        self.inner = node.entries[self.kind]

    def found(self) -> Found:
        match self.kind:
            case "next":
                for scope in self.scopes:
                    yield scope.shape, self.next(scope)
            case "continuation":
                for scope in self.scopes:
                    yield from self.continuations(scope)
            case "lead":
                for scope in self.scopes:
                    yield scope.shape, self.lead(scope)
            case "at":
                for scope in self.scopes:
                    for bound in self.at(scope):
                        yield scope.shape, bound
            case _:
                claim = self.about_the_model()
                for scope in self.scopes:
                    yield scope.shape, claim

    # ----------------------------------------------------------------------- tokens

    def next(self, scope: Scope) -> Next:
        made = answers.raw(self.inner, scope, several=False)
        tokens = answers.Tokens(scope.answers)
        return Next(_through(made, tokens.any, self.inner))

    def continuations(self, scope: Scope) -> Found:
        """The goals of a shape; the texts of a list may have continuations of other lengths."""
        made = answers.raw(self.inner, scope, several=True)
        tokens = answers.Tokens(scope.answers)
        if [one.name for one in scope.shape.variables] != [LINE]:
            whole = scope.shape.whole
            if whole is not None:
                first = whole.first()
                if first is None:  # which does not show that there is none
                    raise self.inner.wrong(_("no text was found to continue"), found=None)
                count = self.length(made, tokens, first)
                yield from self.continuation(scope, EachToken(made, tokens, count, self.inner))
            return
        (variable,) = scope.shape.variables
        lines: dict[int, list[int]] = {}
        for line in variable.values:
            lines.setdefault(self.length(made, tokens, {LINE: line}), []).append(line)
        for count, some in sorted(lines.items()):
            shape = replace(scope.shape, variables=(Variable(LINE, tuple(some)),))
            each = EachToken(made, tokens, count, self.inner)
            yield from self.continuation(replace(scope, shape=shape), each)

    def continuation(self, scope: Scope, each: EachToken) -> Found:
        """One goal for each token, about the text and the tokens before it."""
        if long := too_long(len(scope.shape.places) + each.length - 1, self.model.spec.context):
            raise self.inner.refused(long)
        shape = scope.shape
        for place in range(each.length):
            source = f"({each.made.source})[{place}]"
            answers_here = Function(each.id(place), source)
            yield shape, Next(_through(answers_here, lambda ids: ids, self.inner))
            if place + 1 < each.length:
                shape = shape.followed_by(each.place(place, scope))

    def length(self, made: Function, tokens: answers.Tokens, assigned: Mapping[str, int]) -> int:
        """How many tokens follow one text."""
        try:
            count = len(tokens.each(made.at(assigned)))
        except InputError as error:
            raise error if error.where else self.inner.refused(error) from None
        if not 1 <= count <= LONGEST:
            raise self.inner.wrong(
                _("a continuation has from 1 to {most} tokens").format(most=f"{LONGEST:,}"),
                found=amount(count, later("1 token"), later("{count} tokens")),
            )
        return count

    def lead(self, scope: Scope) -> Lead:
        node = self.inner
        if not isinstance(node, Table):
            raise node.impossible("{of: A, over: B, by: 1/2}")
        node.only("of", "over", "by")
        tokens = answers.Tokens(scope.answers)
        ahead = answers.raw(node.needed("of"), scope, several=False)
        over = node.get("over")
        behind = None
        if over is not None and not (isinstance(over, Scalar) and over.text == OTHERS):
            behind = _through(answers.raw(over, scope, several=False), tokens.one, over)
        by = node.get("by")
        least = Fraction(0) if by is None else scalars.number(by)
        return Lead(_through(ahead, tokens.one, node), behind, least)

    # ----------------------------------------------------------------------- numbers of the pass

    def at(self, scope: Scope) -> Iterator[AtLeast]:
        """A number of the pass that is at least, or at most, so large."""
        name, index = _parts(self.inner)
        length = len(scope.shape.places)
        try:
            step = plan(self.model.spec, length)[name]
        except AddressError as error:
            raise self.inner.refused(error) from None
        if step.op in ("given", "argmax"):
            raise self.inner.wrong(
                _("this is a token, not a number of the pass"),
                expected="logits[-1,a]",
                hint=_("what comes next is claimed by next"),
            )
        if len(index) != len(step.shape):
            raise self.inner.wrong(
                _("one number is needed, with a place on every axis"),
                expected=f"{name}[{','.join(step.axes)}]",
            )
        try:
            function = scope.function(f"({', '.join(index)},)")
        except InputError as error:
            raise self.inner.refused(error) from None
        where = _through(function, _Index(step.shape, self.inner).places, self.inner)
        bounds = {key: self.node.get(key) for key in ("at least", "at most")}
        if not any(bounds.values()):
            raise self.node.wrong(_("a bound is missing"), expected="at least: 0.9")
        for key, bound in bounds.items():
            if bound is not None:
                most = key == "at most"
                yield AtLeast(step.address, where, scalars.number(bound), most)

    # ----------------------------------------------------------------------- the whole model

    def about_the_model(self) -> Claim:
        if self.kind == "same as":
            return Agree(self.other())
        if isinstance(self.inner, Scalar) and self.inner.text != self.kind:
            scalars.word(self.inner, "true")
        if self.kind == "constant":
            return Same()
        if not self.moves:
            raise self.inner.wrong(
                _("nothing can move the prediction"),
                expected=_("ranges of weights or embeddings"),
                hint="embeddings: {within: 0.01}",
            )
        return Unmoved()

    def other(self) -> Model:
        """The model to agree with."""
        node = self.inner
        if isinstance(node, Table):
            node.only("file", "content")
            content = node.needed("content")
            assert isinstance(content, Scalar)
            name = node.get("file")
            other = parse_model(content.text, "model.yaml" if name is None else scalars.text(name))
        else:
            name_or_path = scalars.text(node)
            try:
                other = open_model(name_or_path)
            except InputError as error:
                raise node.refused(error) from None
        pairs = (self.model.vocabulary, other.vocabulary), (self.model.outputs, other.outputs)
        for one, two in pairs:
            if tuple(one.tokens) != tuple(two.tokens):
                raise node.wrong(
                    _("the two models have different vocabularies"),
                    expected=one.sample(),
                    found=two.sample(),
                )
        for scope in self.scopes:
            if long := too_long(len(scope.shape.places), other.spec.context):
                raise node.refused(long)
        return other


def _through(function: Function, then: Any, node: Node) -> Function:
    """A function, and what is made of its value; errors say where it is written."""
    call = function.call

    def through(values: Mapping[str, Any]) -> Any:
        try:
            return then(call(values))
        except InputError as error:
            raise error if error.where else node.refused(error) from None

    return Function(through, function.source)


def _parts(node: Node) -> tuple[str, list[str]]:
    """The name of a step, and the expressions of its index."""
    text = scalars.text(node)
    name, bracket, rest = text.partition("[")
    if not bracket or not rest.endswith("]"):
        raise node.wrong(
            _("one number is needed, with a place on every axis"),
            expected="block.0.attn.weights[0,-1,0]",
        )
    parts, depth, start, inside = list[str](), 0, 0, rest[:-1]
    for at, sign in enumerate(inside):
        depth += (sign in "([") - (sign in ")]")
        if sign == "," and depth == 0:
            parts.append(inside[start:at])
            start = at + 1
    parts.append(inside[start:])
    return name.strip(), [part.strip() for part in parts]


class _Index:
    """Checks that places lie inside a step."""

    def __init__(self, shape: tuple[int, ...], node: Node) -> None:
        self.shape = shape
        self.node = node

    def places(self, found: Any) -> tuple[int, ...]:
        """The index, one number for each axis."""
        for place, size in zip(found, self.shape, strict=True):
            if isinstance(place, Reckoned | Words):
                raise place.varies()
            if type(place) is not int or not -size <= place < size:
                raise self.node.wrong(
                    _("the index lies outside the step"),
                    expected=_("a place from 0 to {last}, the shape is {shape}").format(
                        last=size - 1, shape=" × ".join(map(str, self.shape))
                    ),
                    found=repr(place),
                )
        return tuple(found)

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
from fractions import Fraction
from typing import Any

from byhand.errors import AddressError, InputError
from byhand.files import parse_model, scalars
from byhand.files.tree import List, Node, Scalar, Table
from byhand.forward import plan
from byhand.language import _
from byhand.model import Model
from byhand.models import open_model
from byhand.proving import answers
from byhand.proving.claims import Agree, AtLeast, Claim, Function, Lead, Next, Same, Unmoved
from byhand.proving.domain import Computed, Place, Region, Shape, Values
from byhand.proving.scopes import Scope
from byhand.proving.wholes import Range, Varies, ranges_of
from byhand.proving.words import Words
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
        yield from _Claims(_table(item), scopes, model, moves).found()


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
                hint=_("several claims are a list"),
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
                    yield from self.continuation(scope)
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
        return Next(_through(made, tokens.any))

    def continuation(self, scope: Scope) -> Found:
        """One goal for each token, about the text and the tokens before it."""
        made = answers.raw(self.inner, scope, several=True)
        tokens = answers.Tokens(scope.answers)
        length = self.length(made, tokens, scope)
        each = _Each(made, tokens, length, self.inner)
        shape = scope.shape
        for place in range(length):
            yield shape, Next(Function(each.id(place), f"({made.source})[{place}]"))
            if place + 1 < length:
                shape = shape.followed_by(each.place(place, scope))
        if error := too_long(len(scope.shape.places) + length - 1, self.model.spec.context):
            raise self.inner.refused(error)

    def length(self, made: Function, tokens: answers.Tokens, scope: Scope) -> int:
        """How many tokens follow, for one text; for the others it must be as many."""
        whole = scope.shape.whole
        assigned = None if whole is None else whole.first()
        if assigned is None:
            return 0
        try:
            count = len(tokens.each(made.at(assigned)))
        except InputError as error:
            raise error if error.where else self.inner.refused(error) from None
        if not 1 <= count <= LONGEST:
            raise self.inner.wrong(
                _("a continuation has at least one token"),
                expected=_("a whole number from {least} to {most}").format(least=1, most=LONGEST),
                found=_("{count} tokens").format(count=count),
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
            behind = _through(answers.raw(over, scope, several=False), tokens.one)
        by = node.get("by")
        return Lead(
            _through(ahead, tokens.one), behind, Fraction(0) if by is None else scalars.number(by)
        )

    # ----------------------------------------------------------------------- numbers of the pass

    def at(self, scope: Scope) -> Iterator[AtLeast]:
        """A number of the pass that is at least, or at most, so large."""
        name, index = _parts(self.inner)
        length = len(scope.shape.places)
        try:
            step = plan(self.model.spec, length)[name]
        except AddressError as error:
            raise self.inner.refused(error) from None
        if len(index) != len(step.shape):
            raise self.inner.wrong(
                _("one number is needed, with a place on every axis"),
                expected=f"{name}[{','.join(step.axes)}]",
            )
        try:
            function = scope.function(f"({', '.join(index)},)")
        except InputError as error:
            raise self.inner.refused(error) from None
        where = _through(function, _Index(step.shape, self.inner).places)
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
        outputs = [getattr(one, "outputs", None) or one.vocabulary for one in (self.model, other)]
        for one, two in ((self.model.vocabulary, other.vocabulary), outputs):
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


def _through(function: Function, then: Any) -> Function:
    """A function, and what is made of its value."""
    call = function.call
    return Function(lambda values: then(call(values)), function.source)


class _Each:
    """The tokens of a continuation, each as a function and as a place."""

    def __init__(self, made: Function, tokens: answers.Tokens, length: int, node: Node) -> None:
        self.made = made
        self.tokens = tokens
        self.length = length
        self.node = node

    def value(self, place: int, values: Mapping[str, Any]) -> Any:
        """The number or word at one place of the continuation."""
        found = self.tokens.each(self.made.call(values))
        if len(found) != self.length:
            raise self.node.wrong(
                _("the continuations have different lengths"),
                expected=_("{count} tokens").format(count=self.length),
                found=_("{count} tokens").format(count=len(found)),
                hint=_("texts of one form are continued by the same number of tokens"),
            )
        return found[place]

    def id(self, place: int) -> Any:
        """The function that gives the id of the token, alone in a tuple."""
        return lambda values: (self.tokens.one(self.value(place, values)),)

    def place(self, place: int, scope: Scope) -> Place:
        """The token as a place of the texts that the next goals are about."""
        tokenizer, spelling = scope.spelling.tokens, scope.spelling
        outputs = self.tokens.spelling.tokens

        def label(values: Mapping[str, Any]) -> int:
            word = outputs.tokens[self.tokens.one(self.value(place, values))]
            number = spelling.number(word)
            return tokenizer.id(word) + shift if number is None else number

        numbers = {spelling.number(word): id for id, word in enumerate(tokenizer.tokens)}
        spelled = {number: id for number, id in numbers.items() if number is not None}
        shift = max(map(abs, spelled), default=-1) + 1  # words are labelled beyond all numbers
        words = {
            id + shift: id
            for id, word in enumerate(tokenizer.tokens)
            if spelling.number(word) is None
        }
        tokens = {**spelled, **words}
        labels = {tokenizer.tokens[id]: label for label, id in tokens.items()}
        every = tuple(sorted(tokens))

        def among(region: Region) -> Values:
            try:
                value = self.value(place, ranges_of(region))
            except Varies:
                return every
            if isinstance(value, Range):
                return value.among(spelled) or every
            if isinstance(value, Words):
                return tuple(sorted({labels[word] for word in value.words})) or every
            word = outputs.tokens[self.tokens.one(value)]
            return (labels[word],)

        whole = scope.shape.whole
        return Place(
            Computed(label, every if whole is None else among(whole), self.made.source, among),
            tokens,
        )


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
            if isinstance(place, Range | Words):
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

"""A whole model file: name, vocabulary, default text and target, notes; model and weights."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from byhand.dimensions import UNNAMED, Dimensions
from byhand.errors import TextError
from byhand.files import scalars, tree
from byhand.files.architecture import read_architecture
from byhand.files.naming import read_dimensions
from byhand.files.sparse import Names
from byhand.files.tensors import read_weights
from byhand.files.tree import List, Node, Scalar, Table
from byhand.language import _
from byhand.model import Model
from byhand.parameters import Parameter
from byhand.spec import ModelSpec
from byhand.tokens import KINDS, Tokenizer, Vocabulary, blank_of, too_long

KEYS = (
    "name", "about", "vocabulary", "outputs", "text", "target", "end", "notes", "model", "weights",
    "source", "source_vocabulary", "start",
)  # fmt: skip
MOST_TOKENS = 1_000_000


def read_model(path: Path | str) -> Model:
    """The model of a file; an InputError gives file, line and key of a mistake."""
    path = Path(path)
    return _model(tree.load(path), path.stem, path.parent)


def parse_model(text: str, file: str = "model.yaml", folder: Path | None = None) -> Model:
    """The model of a text; `file` is for messages, `folder` holds its safetensors file."""
    return _model(tree.read(text, file), Path(file).stem, folder)


def read_spec(path: Path | str) -> ModelSpec:
    """The architecture alone, for counting and shapes: weights are not read."""
    path = Path(path)
    return _spec(tree.load(path), path.stem)[0]


def parse_spec(text: str, file: str = "model.yaml") -> ModelSpec:
    """The architecture alone, of a text."""
    return _spec(tree.read(text, file), Path(file).stem)[0]


@dataclass(frozen=True)
class Words:
    """The words of a model: those it reads, those it answers, and names of dimensions."""

    vocabulary: Tokenizer
    outputs: Tokenizer | None = None  # None: those of the vocabulary
    dimensions: Dimensions = UNNAMED
    source: Tokenizer | None = None  # that the encoder reads; None: those of the vocabulary

    def of_sides(self, parameter: Parameter, spec: ModelSpec) -> Names:
        """The names along each side of a tensor."""
        answers = self.vocabulary if self.outputs is None else self.outputs
        own = self.source is not None and parameter.name.startswith("encoder.")
        read = self.source if own and self.source else self.vocabulary
        return self.dimensions.of_sides(parameter, spec, read.tokens, answers.tokens)


def _spec(root: Table, stem: str) -> tuple[ModelSpec, Words]:
    root.only(*KEYS)
    name = root.get("name")
    vocabulary = read_vocabulary(_needed(root, "vocabulary"))
    outputs = read_outputs(root.get("outputs"))
    source = read_outputs(root.get("source_vocabulary"))
    model = _needed(root, "model")
    if not isinstance(model, Table):
        raise model.wrong(_("model is a table"), expected="d_model, layers, …")
    spec = read_architecture(
        model,
        stem if name is None else scalars.text(name),
        len(vocabulary),
        None if outputs is None else len(outputs),
        None if source is None else len(source),
    )
    return spec, Words(vocabulary, outputs, read_dimensions(model, spec), source)


def _model(root: Table, stem: str, folder: Path | None) -> Model:
    return model_of(root, *_spec(root, stem), folder)


def model_of(root: Table, spec: ModelSpec, known: Words, folder: Path | None) -> Model:
    """The model of an architecture and its words, with the rest read from `root`."""
    vocabulary = known.vocabulary
    answers = vocabulary if known.outputs is None else known.outputs
    about, text, target, end = map(root.get, ("about", "text", "target", "end"))
    source, start = root.get("source"), root.get("start")
    ends: tuple[int, ...] = ()
    begun: tuple[int, ...] = ()
    if start is not None:
        with _located(start):
            begun = vocabulary.encode(_plain(start))
    if text is not None:
        with _located(text):
            words = _plain(text)
            length = len(begun) + len(
                vocabulary.plain(words) if begun else vocabulary.encode(words)
            )
            if error := too_long(length, spec.context):
                raise error
    if source is not None:
        _check_source(source, spec, known)
    if target is not None:
        with _located(target):
            answers.id(_plain(target))
    if end is not None:
        with _located(end):
            ends = (answers.id(_plain(end)),)

    def named(parameter: Parameter) -> Names:
        return known.of_sides(parameter, spec)

    return Model(
        spec=spec,
        weights=read_weights(root.get("weights"), spec, named, root, folder),
        vocabulary=vocabulary,
        text=None if text is None else _plain(text),
        target=None if target is None else _plain(target),
        ends=ends,
        about="" if about is None else scalars.text(about),
        source=root.file,
        notes=_notes(root.get("notes")),
        output_words=known.outputs,
        dimensions=known.dimensions,
        source_text=None if source is None else _plain(source),
        source_words=known.source,
        start=begun,
        blank=blank_of(vocabulary) if spec.in_place else None,
    )


def _check_source(source: Node, spec: ModelSpec, known: Words) -> None:
    """Refuses a source that the encoder cannot read, and one without an encoder."""
    if spec.encoder is None:
        raise source.wrong(
            _("this model reads one text"), expected=_("no source, since there is no encoder")
        )
    with _located(source):
        read = known.vocabulary if known.source is None else known.source
        if error := too_long(len(read.encode(_plain(source))), spec.encoder.context):
            raise error


def _needed(root: Table, key: str) -> Node:
    return root.needed(key, ", ".join(KEYS), root.keys())


def _plain(node: Node) -> str:
    """The text unchanged, with its white space, which a character model may need."""
    if not isinstance(node, Scalar):
        raise node.wrong(_("some text is missing"), expected=_("text"))
    return node.text


@contextmanager
def _located(node: Node) -> Iterator[None]:
    """Adds this place to a TextError raised inside."""
    try:
        yield
    except TextError as error:
        raise node.refused(error) from None


def _notes(node: Node | None) -> tuple[str, ...]:
    if node is None:
        return ()
    if not isinstance(node, List):
        raise node.wrong(_("notes is a list of sentences"), expected=_("a list"))
    return tuple(scalars.text(each) for each in node.items)


def read_outputs(node: Node | None) -> Vocabulary | None:
    """The words that the head answers with; None where they are those of the vocabulary."""
    return None if node is None else read_vocabulary(node)


def read_vocabulary(node: Node) -> Vocabulary:
    """The vocabulary that a model file gives: a list of tokens, their kind, or their number."""
    kind, tokens = "words", node
    if isinstance(node, Table) and "size" in node.entries:
        node.only("size")
        size = scalars.whole(node.entries["size"], 1, MOST_TOKENS)
        return Vocabulary(tuple(f"t{id}" for id in range(size)))
    if isinstance(node, Table):
        node.only("kind", "tokens", "size")
        tokens = node.entries.get("tokens", node)
        if (named := node.get("kind")) is not None:
            kind = scalars.word(named, *KINDS)
    if not isinstance(tokens, List) or not tokens.items:
        raise tokens.wrong(_("a vocabulary is a list of tokens"), expected="[a, b, c]")
    words = []
    for item in tokens.items:
        with _located(item):
            words.append(_plain(item))
            Vocabulary((words[-1],), kind)
    with _located(_second(tokens, words)):
        return Vocabulary(tuple(words), kind)


def _second(tokens: List, words: list[str]) -> Node:
    """The first repeated token, for an error; else the list."""
    seen: set[str] = set()
    for item, word in zip(tokens.items, words, strict=True):
        if word in seen:
            return item
        seen.add(word)
    return tokens

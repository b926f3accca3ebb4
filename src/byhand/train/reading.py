"""The reader of RUN.yaml; every error has its file, line and key.

The text is read like model files (`files.tree`): no anchors, no tags, each key once.
docs/training.md explains the keys and their defaults.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

from byhand.errors import SpecError, UsageError
from byhand.files import scalars, tree
from byhand.files.architecture import read_architecture
from byhand.files.tree import List, Node, Scalar, Table, describe
from byhand.language import _
from byhand.model import Model
from byhand.models import builtin_names, open_model, open_spec
from byhand.parameters import parameters
from byhand.spec import ModelSpec
from byhand.train.corpora import Corpus, builtin_corpora, open_corpus
from byhand.train.run import FORMATS, LARGEST_SEED, MOST, Optimizer, Run, Schedule, usual_warmup

KEYS = (
    "name", "data", "model", "init", "context", "steps", "batch", "accumulate", "optimizer",
    "schedule", "clip", "evaluate", "checkpoint", "seed", "format", "threads",
)  # fmt: skip
MOST_THREADS = 1024
RUNS = Path(__file__).parent / "runs"


def builtin_runs() -> tuple[str, ...]:
    """The names of the runs that made the built-in models."""
    return tuple(sorted(file.stem for file in RUNS.glob("*.yaml")))


def read_run(path: Path | str, *, steps: int | None = None) -> Run:
    """The run of a file, or the built-in run of this name; `steps` replaces its own number."""
    if path in builtin_runs():
        file = RUNS / f"{path}.yaml"
        return replace(_Reader(tree.load(file), file).run(steps), file=None)
    path = Path(path)
    return _Reader(tree.load(path), path).run(steps)


@contextmanager
def _located(root: Table, **instead: Node) -> Iterator[None]:
    """Gives a SpecError raised inside the file, line and key it is about."""
    try:
        yield
    except SpecError as error:
        key, _bracket, place = error.key.partition("[")
        node = instead.get(key) or root.at(key)
        if isinstance(node, List) and place:
            node = node.items[int(place.rstrip("]"))]
        raise node.refused(error) from None


class _Reader:
    def __init__(self, root: Table, path: Path) -> None:
        self.root = root
        self.path = path
        self.folder = path.parent

    def run(self, steps: int | None) -> Run:
        root = self.root
        root.only(*KEYS)
        written = root.get("name")
        name = self.path.stem if written is None else scalars.text(written)
        data, corpus = self.data(self.needed("data"))
        init = self.table("init", "std")
        model = self.needed("model")
        spec, start = self.model(model, name, corpus, fresh=root.has("init"))
        count = self.whole("steps", 1, MOST) if root.has("steps") or steps is None else 1
        count = count if steps is None else steps
        clip = root.get("clip")
        seed = root.get("seed")
        context = root.get("context")
        format = root.get("format")
        with _located(root):
            return Run(
                name=name,
                corpus=corpus,
                spec=spec,
                steps=count,
                start=start,
                std=self.std(init, fresh=start is None or root.has("init")),
                context=None if context is None else scalars.whole(context, 1, MOST),
                batch=self.whole("batch", 1, MOST, 64),
                accumulate=self.whole("accumulate", 1, MOST, 1),
                optimizer=self.optimizer(),
                schedule=self.schedule(count),
                clip=1.0 if clip is None else self.clip(clip),
                evaluate_every=self.every("evaluate", 100),
                checkpoint_every=self.every("checkpoint", 200),
                seed=1234 if seed is None else scalars.whole(seed, 0, LARGEST_SEED),
                format="float32" if format is None else scalars.word(format, *FORMATS),
                threads=self.whole("threads", 1, MOST_THREADS, 1),
                data=data,
                model=self.named(model),
                file=self.path,
            )

    # ------------------------------------------------------------------- keys

    def needed(self, key: str) -> Node:
        return self.root.needed(key, ", ".join(KEYS), self.root.keys())

    def table(self, key: str, *known: str) -> Table:
        """The table under a key, with no other keys than these; empty where it is not given."""
        node = self.root.get(key)
        if node is None:
            return Table(self.root.file, self.root.line, key, {})
        if not isinstance(node, Table):
            raise node.impossible(_("a table with keys of {keys}").format(keys=", ".join(known)))
        node.only(*known)
        return node

    def whole(self, key: str, least: int, most: int, usual: int | None = None) -> int:
        node = self.root.get(key)
        if node is None and usual is not None:
            return usual
        return scalars.whole(self.needed(key), least, most)

    def every(self, key: str, usual: int) -> int:
        node = self.table(key, "every").get("every")
        return usual if node is None else scalars.whole(node, 1, MOST)

    def number(self, table: Table, key: str, usual: float) -> float:
        node = table.get(key)
        return usual if node is None else _float(node)

    # ------------------------------------------------------------------- data and model

    def data(self, node: Node) -> tuple[str | Path, Corpus]:
        name = scalars.text(node)
        given: str | Path = name if name in builtin_corpora() else self.folder / name
        try:
            return given, open_corpus(given)
        except UsageError as error:
            raise node.wrong(
                error.message, expected=error.expected, found=name, hint=error.hint
            ) from None

    def named(self, node: Node) -> str | Path | None:
        """The name or path of the model; None where its architecture is written out."""
        if isinstance(node, Table):
            return None
        name = scalars.text(node)
        return name if name in builtin_names() else self.folder / name

    def model(
        self, node: Node, name: str, corpus: Corpus, *, fresh: bool
    ) -> tuple[ModelSpec, Model | None]:
        """The architecture, and the model whose weights (or buffers) are taken."""
        size = len(corpus.vocabulary)
        if isinstance(node, Table):
            return read_architecture(node, name, size), None
        given = self.named(node)
        assert given is not None
        try:
            spec = open_spec(given)
            if not fresh:
                return spec, open_model(given)
        except UsageError as error:
            raise node.wrong(
                error.message, expected=error.expected, found=scalars.text(node), hint=error.hint
            ) from None
        buffers = any(
            p.kind == "buffer" and not p.name.endswith(".slopes") for p in parameters(spec)
        )
        return replace(spec, vocab=size), open_model(given) if buffers else None

    def std(self, table: Table, *, fresh: bool) -> Fraction | None:
        node = table.get("std")
        if node is not None:
            return scalars.number(node)
        return Fraction(1, 50) if fresh else None

    # ------------------------------------------------------------------- settings

    def optimizer(self) -> Optimizer:
        table = self.table("optimizer", "lr", "betas", "eps", "weight_decay")
        usual = Optimizer()
        betas = table.get("betas")
        return Optimizer(
            lr=self.number(table, "lr", usual.lr),
            betas=usual.betas if betas is None else self.betas(betas),
            eps=self.number(table, "eps", usual.eps),
            weight_decay=self.number(table, "weight_decay", usual.weight_decay),
        )

    def betas(self, node: Node) -> tuple[float, float]:
        if not isinstance(node, List) or len(node.items) != 2:
            raise node.wrong(
                _("{found} is not possible here").format(found=describe(node)),
                expected=_("a list of two numbers: [0.9, 0.95]"),
            )
        first, second = map(_float, node.items)
        return first, second

    def schedule(self, steps: int) -> Schedule:
        table = self.table("schedule", "warmup", "end")
        warmup = table.get("warmup")
        return Schedule(
            usual_warmup(steps) if warmup is None else scalars.whole(warmup, 0, MOST),
            self.number(table, "end", 0.1),
        )

    def clip(self, node: Node) -> float | None:
        if isinstance(node, Scalar) and node.text == "none":
            return None
        return _float(node)


def _float(node: Node) -> float:
    """The float64 nearest to a rational number."""
    number = scalars.number(node)
    try:
        return float(number)
    except OverflowError:
        raise node.wrong(
            _("{found} is not possible here").format(found=describe(node)),
            expected=_("a number that a float can be"),
        ) from None

"""The functions of byhand, such as `byhand.trace`: each does a whole job in one call.

The functions share some arguments.  `model` is a built-in name, a model file, the folder of a
checkpoint or a Model.  `text` is the model's own unless given.  An encoder reads the `source`, and
`segments` are the kind of each token, of a model that has several.  `numbers` is "exact", "digits
12" (12 proven significant digits of every number), "decimals 3" (every line rounded, as with a
pencil), a float format, or a number system.  The formats are "float64", "float32", "bfloat16" and
"float16".  Without `numbers`, models of up to 2,000 parameters are exact and larger ones floats.
`exact=True`, `digits=12`, `decimals=3` and `float="float32"` say the same, as on the command line.
With a `device` the work is done with torch: "cpu", "cuda", "cuda:1".  Options that exclude each
other are refused in the words of the command line.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from byhand import evaluate, options
from byhand.counting import Inventory
from byhand.counting import count as count_parameters
from byhand.errors import UsageError
from byhand.language import _
from byhand.model import Model
from byhand.models import called, is_checkpoint, open_model, open_spec, weights_of
from byhand.number_choice import numbers_for
from byhand.numbers.base import Numbers
from byhand.options import Chosen, Spelled
from byhand.spec import ModelSpec
from byhand.tracing import Trace

if TYPE_CHECKING:
    from byhand.checking.verdicts import Marking
    from byhand.explaining import Explanation
    from byhand.generating import Generation


def trace(
    model: str | Path | Model,
    text: str | None = None,
    *,
    source: str | None = None,
    segments: Sequence[int] | None = None,
    numbers: str | Numbers | None = None,
    device: str | None = None,
    target: str | int | None = None,
    losses: bool = False,
    logprobs: bool = False,
    backward: bool = False,
    only: str | Iterable[str] = (),
    heads: bool = False,
    progress: evaluate.Progress | None = None,
    **spelled: Unpack[Spelled],
) -> Trace:
    """Every number from the text to the next token, and back to every weight.

    `numbers` is "exact", "digits 12", "decimals 3", "float32" and the like, or a number system;
    without it, the size of the model decides.  `target` is the token that should come next, or its
    id, and asks for the loss.  `losses` asks for the loss at every position, against the text
    shifted by one, and their mean; `logprobs` for ln of the probability of each next token.
    `backward` asks for the gradients (`trace.grad`) of the mean
    loss where there is one, else of the loss; without a target it asks for losses too.  `only` asks
    for some steps and works out what they need; `heads` asks for each head's own part of the
    attention output.

    With digits, `trace.proof` says whether everything asked for is proven.  That is the steps of
    `only`; without `only` all steps, or above 2,000 parameters the logits, next tokens and loss.

    >>> import byhand
    >>> byhand.trace("journey", target="mat")
    <Trace of journey on 'the cat sat on' (exact): 31 steps, next 'cat', proven>
    >>> byhand.trace("journey", numbers="digits 12").loss.significant(12)
    '1.83129263705'
    >>> byhand.trace("journey", numbers="decimals 2").loss
    183/100
    """
    chosen = Chosen.of(numbers, device, **spelled)
    chosen.refuse_comparison(
        _("byhand.compare takes two traces: one in floats, one with proven digits")
    )
    opened = as_model(model)
    job = evaluate.prepare(
        opened,
        text,
        numbers_for(opened, chosen),
        source=source,
        segments=segments,
        target=as_word(opened, "target", target),
        losses=losses,
        logprobs=logprobs,
        backward=backward,
        only=(only,) if isinstance(only, str) else only,
        head_outputs=heads,
    )
    if chosen.digits is None:
        return job.work(progress=progress)
    from byhand.proving.digits import prove

    return prove(job, chosen.digits, progress=progress)


def traces(
    model: str | Path | Model,
    texts: Iterable[str],
    *,
    sources: Iterable[str] | None = None,
    numbers: str | Numbers | None = None,
    device: str | None = None,
    only: str | Iterable[str] = (),
    heads: bool = False,
    progress: evaluate.Progress | None = None,
    **spelled: Unpack[Spelled],
) -> Iterator[Trace]:
    """The traces of several `texts`, one after another, with `only` and `heads` as in `trace`.

    `sources` are what an encoder reads, one for each text.

    What texts share is made once: the weights as numbers, and the precision that digits take.  On a
    GPU the pass over texts of one length is prepared once and then repeated.

    >>> import byhand
    >>> [len(trace.tokens) for trace in byhand.traces("tiny", ["a b", "c", "b a"])]
    [2, 1, 2]
    >>> several = byhand.traces("tiny", ["a b", "c"], numbers="digits 5")
    >>> [trace["probs[-1,0]"].significant(5) for trace in several]
    ['0.66524', '0.33333']
    """
    from byhand.repeating import prepare_texts, work_texts

    chosen = Chosen.of(numbers, device, **spelled)
    chosen.refuse_comparison(
        _("byhand.compare takes two traces: one in floats, one with proven digits")
    )
    opened = as_model(model)
    jobs = prepare_texts(
        opened,
        (texts,) if isinstance(texts, str) else texts,
        lambda: numbers_for(opened, chosen),
        sources,
        only=(only,) if isinstance(only, str) else tuple(only),
        head_outputs=heads,
    )
    if chosen.digits is None:
        return work_texts(jobs, progress=progress)
    from byhand.proving.digits import prove_texts

    return prove_texts(jobs, chosen.digits, progress=progress)


def as_model(model: str | Path | Model) -> Model:
    """The model itself, or the one of this name, file or folder."""
    return model if isinstance(model, Model) else open_model(model)


def as_word(model: Model, name: str, token: str | int | None) -> str | None:
    """A token as people write it, given as a text or as its id."""
    if token is None or isinstance(token, str):
        return token
    vocabulary = model.outputs
    options.refuse_unless_whole(name, token, 0, len(vocabulary) - 1)
    word = vocabulary.tokens[token]
    if vocabulary.id(word) != token:
        raise UsageError(
            _("the token {id} cannot be told from others by its text").format(id=token),
            expected=_("a token as text"),
            found=repr(word),
        )
    return word


def generate(
    model: str | Path | Model,
    text: str | None = None,
    *,
    source: str | None = None,
    segments: Sequence[int] | None = None,
    count: int = 20,
    temperature: float | None = None,
    top_k: int | None = None,
    top_p: float | None = None,
    seed: int | None = None,
    numbers: str | Numbers | None = None,
    device: str | None = None,
    progress: evaluate.Progress | None = None,
    **spelled: Unpack[Spelled],
) -> Generation:
    """How a text goes on: an iterator of chosen tokens, each with its probability.

    The most probable token is chosen; with a `temperature`, `top_k` or `top_p`, one is drawn, the
    same for the same `seed`.  The numbers are chosen as for `trace`.  With digits, each choice and
    the digits of its probability are proven, or an Undecided says why not.

    >>> import byhand
    >>> [(chosen.token, chosen.probability) for chosen in byhand.generate("tiny", "c", count=2)]
    [('a', 1/3), ('a', e^2/(1 + e + e^2))]
    """
    from byhand.generating import generate as go_on

    chosen = Chosen.of(numbers, device, **spelled)
    chosen.refuse_comparison(options.no_comparison_of_tokens())
    opened = as_model(model)
    return go_on(
        opened,
        text,
        numbers_for(opened, chosen, many=True),
        source=source,
        segments=segments,
        count=count,
        temperature=temperature,
        top_k=top_k,
        top_p=top_p,
        seed=seed,
        digits=chosen.digits,
        progress=progress,
    )


def check(
    model: str | Path | Model,
    *claims: Any,
    text: str | None = None,
    source: str | None = None,
    segments: Sequence[int] | None = None,
    target: str | int | None = None,
    precision: str | None = None,
    optimizer: str | None = None,
    names: str | Path | Mapping[str, Any] | None = None,
    suspects: bool = True,
    progress: evaluate.Progress | None = None,
    **numbers: Any,
) -> Marking:
    """Somebody else's numbers for a model, marked line by line.

    `claims` are files (YAML, JSON, CSV, xlsx, npz, safetensors, a folder of golden files or of npy
    files, the text of llama-eval-callback), mappings of names to arrays, or what `byhand.capture`
    recorded.  Names are byhand's, TransformerLens's, Hugging Face's or those of vLLM, llama.cpp,
    MLX, Flax and ONNX; `names`, a file or a mapping, explains any others.

    The loss is judged by the `target`.  `precision` is what the claimant worked in ("float32",
    "bfloat16", "transformers:bfloat16", "decimals:2"); without it, the claims tell.
    Updates are judged by the `optimizer`, "adamw lr=0.001 weight_decay=0.1 step=1" for example.
    Without `suspects`, no cause is looked for.  Without any claims, those of the document that a
    built-in model comes from are checked.  Claims are judged in numbers that bound every rounding,
    so `numbers` cannot be chosen.

    >>> import byhand
    >>> marking = byhand.check("tiny", {"logits[1]": ["1", "-1", "1/2"]}, text="a b")
    >>> marking.follows, marking.first_error.address
    (False, 'logits[1]')
    """
    from byhand.checking.architectures import open_for
    from byhand.checking.documents import instead_of_claims
    from byhand.checking.dumps.name_maps import read_name_map
    from byhand.checking.marking import mark

    options.refuse_numbers(numbers)
    if not claims:
        claims = (instead_of_claims(called(model)),)
    opened = model if isinstance(model, Model) else open_for(model, claims)
    return mark(
        opened,
        claims,
        text,
        source=source,
        segments=segments,
        target=as_word(opened, "target", target),
        precision=precision,
        optimizer=optimizer,
        names=None if names is None else read_name_map(names),
        suspects=suspects,
        progress=progress,
    )


def explain(
    model: str | Path | Model,
    text: str | None = None,
    *,
    source: str | None = None,
    segments: Sequence[int] | None = None,
    position: int | None = None,
    token: str | int | None = None,
    against: str | int | None = None,
    alone: bool = False,
    neurons: bool = False,
    keys: bool = False,
    length: int | None = None,
    numbers: str | Numbers | None = None,
    device: str | None = None,
    progress: evaluate.Progress | None = None,
    **spelled: Unpack[Spelled],
) -> Explanation:
    """Why this token comes next: attribution, lens, circuits, geometry, facts, health.

    It explains the token predicted at the last `position`, against its strongest rival, unless
    others are named; `alone` takes the logit by itself.  `neurons` and `keys` divide MLPs and heads
    further.  `length` is that of the longest texts in the table of all texts.  The numbers are
    chosen as for `trace`.

    >>> import byhand
    >>> found = byhand.explain("tiny", "a b")
    >>> found
    <Explanation of tiny at position 1: 'a' against 'c'>
    >>> [(term.source.name, term.array[0, 0]) for term in found.attribution][:2]
    [('embed.token', 2(-1 - e)/3), ('embed.position', 2(1 + e)/3)]
    """
    from byhand.explaining import explain as look_into

    chosen = Chosen.of(numbers, device, **spelled)
    chosen.refuse_comparison()
    options.refuse_against_alone(against, alone)
    opened = as_model(model)
    return look_into(
        opened,
        text,
        numbers_for(opened, chosen),
        digits=chosen.digits,
        source=source,
        segments=segments,
        position=position,
        token=as_word(opened, "token", token),
        against=as_word(opened, "against", against),
        alone=alone,
        neurons=neurons,
        keys=keys,
        length=length,
        progress=progress,
    )


def count(model: str | Path | Model | ModelSpec) -> Inventory:
    """The parameters of a model, to the digit, by component and with formulas.

    `model` is a built-in name, a model file, a checkpoint, a Model, or an architecture alone.  Of a
    checkpoint the space that its weights take is told, but no weight is read: the different numbers
    that they hold are not counted.

    >>> import byhand
    >>> inventory = byhand.count("minigpt")
    >>> inventory.total, inventory["count.block.0"]
    (103680, 49728)
    """
    if isinstance(model, ModelSpec):
        return count_parameters(model)
    if not isinstance(model, Model) and is_checkpoint(model):
        return count_parameters(open_spec(model), weights_of(model))
    opened = as_model(model)
    return count_parameters(opened.spec, opened.weights, numbers=opened.family is None)


def book(
    model: str | Path | Model,
    text: str | None = None,
    *,
    out: str | Path,
    source: str | None = None,
    segments: Sequence[int] | None = None,
    target: str | int | None = None,
    claims: Any = None,
    at: str | Iterable[str] = (),
    pdf: bool = False,
    xlsx: bool = False,
    worksheet: bool = False,
    ask: str | Iterable[str] | None = None,
    blanks: int | None = None,
    seed: int | None = None,
    level: str | None = None,
    students: Iterable[str] | None = None,
    numbers: str | Numbers | None = None,
    device: str | None = None,
    language: str | None = None,
    progress: evaluate.Progress | None = None,
    **spelled: Unpack[Spelled],
) -> tuple[Path, ...]:
    """Writes the book of a model and a text into `out`; returns the files, first the page to open.

    The `target` asks for the loss.  `claims` is somebody's working (one file or several), marked in
    the book.  Without `claims`, a built-in model marks the document it comes from; empty `claims`
    mark nothing.  `at` are addresses whose numbers are shown however large the model is.  `pdf` and
    `xlsx` add a typeset book and a spreadsheet of live formulas.  A `worksheet` has as many
    questions as `blanks` says; they `ask` for "values", "shapes", "counts", or for "gradients" and
    a "step" of training, or some of these.
    Another `seed` chooses other questions.  A `level` follows one position line by line: "row",
    "block", "pass", "mistake"; or it asks for learning: "backward".  Each of the `students` gets a
    copy with the name on it; the sheet is exact where `exact` numbers are asked for.  The numbers
    are chosen as for `trace`; the `language` is "en", "es" or the one spoken.

    >>> import byhand, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     files = byhand.book("tiny", "a b", out=folder)
    >>> files[0].name
    'index.html'
    """
    from byhand.editions import make_edition
    from byhand.language import speaking
    from byhand.publication import Wanted, publish, questioning

    chosen = Chosen.of(numbers, device, **spelled)
    chosen.refuse_comparison()
    kinds = (ask,) if isinstance(ask, str) else None if ask is None else tuple(ask)
    questions = questioning(
        worksheet,
        blanks=blanks,
        ask=kinds,
        decimals=chosen.decimals,
        seed=seed,
        level=level,
        exact=chosen.exact,
        students=None if students is None else tuple(students),
    )
    opened = as_model(model)
    given = claims if claims is None or isinstance(claims, list | tuple) else (claims,)
    with speaking(language):
        edition = make_edition(
            opened,
            text,
            called=None if isinstance(model, Model) else str(model),
            source=source,
            segments=segments,
            target=as_word(opened, "target", target),
            claims=given,
            at=(at,) if isinstance(at, str) else at,
            numbers=numbers_for(opened, chosen),
            digits=chosen.digits,
            progress=progress,
        )
        return publish(edition, out, Wanted(pdf, xlsx, questions))

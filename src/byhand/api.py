"""`byhand.trace`, `byhand.explain` and the like: a whole job in one call, from a name on."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from byhand import evaluate
from byhand.counting import Inventory
from byhand.counting import count as count_parameters
from byhand.language import _
from byhand.model import Model
from byhand.models import called, is_checkpoint, open_model, open_spec
from byhand.numbers.base import Numbers
from byhand.options import Chosen, no_comparison_of_tokens, refuse_against_alone
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
    exact: bool = False,
    digits: int | None = None,
    decimals: int | None = None,
    float: str | None = None,
    device: str | None = None,
    target: str | None = None,
    only: Iterable[str] = (),
    heads: bool = False,
    progress: evaluate.Progress | None = None,
) -> Trace:
    """Every number from the text to the next token.

    `model` is a built-in name, a model file, the folder of a checkpoint or a Model; without a
    text, its own is taken.  The numbers are `exact`, enclosed so narrowly that so many significant
    `digits` are proven, rounded to `decimals` line by line, in the format `float` ("float64",
    "float32", "bfloat16", "float16"), or torch tensors on a `device`; where nothing is said, exact
    up to 2,000 parameters and floats above.  `target` asks for the loss, `only` for some steps
    (the others are worked out as far as they are needed), `heads` for each head's own part of the
    attention output.

    With `digits`, `trace.proof` says whether everything asked for is proven: the steps of `only`,
    else all steps up to 2,000 parameters and the logits, next tokens and loss above.
    """
    Chosen(exact, digits, decimals, float, device).refuse_comparison(
        _("byhand.compare tells two traces apart: one in floats, one with digits")
    )
    opened = model if isinstance(model, Model) else open_model(model)
    job = evaluate.prepare(
        opened,
        text,
        numbers_for(
            opened, exact=exact, digits=digits, decimals=decimals, float=float, device=device
        ),
        target=target,
        only=(only,) if isinstance(only, str) else only,
        head_outputs=heads,
    )
    if digits is None:
        return job.work(progress=progress)
    from byhand.proving import prove

    return prove(job, digits, progress=progress)


def numbers_for(
    model: Model,
    *,
    exact: bool = False,
    digits: int | None = None,
    decimals: int | None = None,
    float: str | None = None,
    device: str | None = None,
    many: bool = False,
) -> Numbers:
    """The number system asked for; where nothing is said, the one that suits the model.

    `many` says that many passes of a position each will use the same weights, so that converting
    them once pays.
    """
    Chosen(exact, digits, decimals, float, device).refuse_comparison()
    if exact:
        from byhand.numbers.exact import Exact

        return Exact()
    if digits is not None:
        from byhand.proving import USUAL_LENGTH, enclosing_numbers

        positions = 1 if many else USUAL_LENGTH
        return enclosing_numbers(model, digits, device=device, positions=positions)
    if decimals is not None:
        from byhand.numbers.pencil import Pencil

        return Pencil(decimals)
    if device is not None:
        from byhand.numbers.tensors import Tensors

        return Tensors(float or evaluate.usual_format(model), device)
    if float is None and evaluate.pencil_sized(model):
        from byhand.numbers.exact import Exact

        return Exact()
    from byhand.numbers.floats import Floats

    return Floats(float or evaluate.usual_format(model), convert_once=many)


def generate(
    model: str | Path | Model,
    text: str | None = None,
    *,
    count: int = 20,
    temperature: float | None = None,
    top_k: int | None = None,
    top_p: float | None = None,
    seed: int | None = None,
    exact: bool = False,
    digits: int | None = None,
    decimals: int | None = None,
    float: str | None = None,
    device: str | None = None,
    progress: evaluate.Progress | None = None,
) -> Generation:
    """How a text goes on: an iterator of chosen tokens, each with its probability.

    The most probable token each time; with a `temperature`, `top_k` or `top_p`, one that is drawn,
    the same for the same `seed`.  The numbers are chosen as for `trace`; with `digits` each choice
    is proven, and so many digits of its probability, or an Undecided says why not.
    """
    from byhand.generating import generate as go_on

    chosen = Chosen(exact, digits, decimals, float, device)
    chosen.refuse_comparison(no_comparison_of_tokens())
    opened = model if isinstance(model, Model) else open_model(model)
    numbers = numbers_for(
        opened,
        exact=exact,
        digits=digits,
        decimals=decimals,
        float=float,
        device=device,
        many=True,
    )
    return go_on(
        opened,
        text,
        numbers,
        count=count,
        temperature=temperature,
        top_k=top_k,
        top_p=top_p,
        seed=seed,
        digits=digits,
        progress=progress,
    )


def check(
    model: str | Path | Model,
    *claims: Any,
    text: str | None = None,
    target: str | None = None,
    precision: str | None = None,
    suspects: bool = True,
    progress: evaluate.Progress | None = None,
) -> Marking:
    """Somebody else's numbers for a model, marked line by line.

    `claims` are files (YAML, JSON, CSV, xlsx, npz, safetensors, a folder of golden files),
    mappings of names to arrays, or what `byhand.capture` recorded; names are byhand's,
    TransformerLens's or Hugging Face's.  `precision` is what the claimant worked in ("float32",
    "bfloat16", "transformers:bfloat16", "decimals:2"); unless given, the claims tell.  Without
    `suspects`, no cause is looked for.  Without any claims, those of the document that a built-in
    model comes from are checked.
    """
    from byhand.checking.documents import instead_of_claims
    from byhand.checking.marking import mark

    opened = model if isinstance(model, Model) else open_model(model)
    if not claims:
        claims = (instead_of_claims(called(model)),)
    return mark(
        opened,
        claims,
        text,
        target=target,
        precision=precision,
        suspects=suspects,
        progress=progress,
    )


def explain(
    model: str | Path | Model,
    text: str | None = None,
    *,
    position: int | None = None,
    token: str | None = None,
    against: str | None = None,
    alone: bool = False,
    neurons: bool = False,
    keys: bool = False,
    length: int | None = None,
    exact: bool = False,
    digits: int | None = None,
    decimals: int | None = None,
    float: str | None = None,
    device: str | None = None,
    progress: evaluate.Progress | None = None,
) -> Explanation:
    """Why this token comes next: attribution, lens, circuits, geometry, facts, health.

    The last `position` and the token predicted there, against its strongest rival, unless
    others are named; `alone` takes the logit by itself.  `neurons` and `keys` divide MLPs and
    heads further; `length` is that of the longest texts in the table of every text.  The numbers
    are chosen as for `trace`.
    """
    from byhand.explaining import explain as look_into

    Chosen(exact, digits, decimals, float, device).refuse_comparison()
    refuse_against_alone(against, alone)
    opened = model if isinstance(model, Model) else open_model(model)
    return look_into(
        opened,
        text,
        numbers_for(
            opened, exact=exact, digits=digits, decimals=decimals, float=float, device=device
        ),
        digits=digits,
        position=position,
        token=token,
        against=against,
        alone=alone,
        neurons=neurons,
        keys=keys,
        length=length,
        progress=progress,
    )


def count(model: str | Path | Model | ModelSpec) -> Inventory:
    """The parameters of a model, to the digit, by component and with formulas.

    `model` is a built-in name, a model file, a checkpoint, a Model, or an architecture alone.
    """
    if isinstance(model, ModelSpec):
        return count_parameters(model)
    if not isinstance(model, Model) and is_checkpoint(model):
        return count_parameters(open_spec(model))  # the config alone tells
    opened = model if isinstance(model, Model) else open_model(model)
    return count_parameters(opened.spec, opened.weights)


def book(
    model: str | Path | Model,
    text: str | None = None,
    *,
    out: str | Path,
    target: str | None = None,
    claims: Any = None,
    at: Iterable[str] = (),
    pdf: bool = False,
    xlsx: bool = False,
    worksheet: bool = False,
    ask: Iterable[str] | None = None,
    blanks: int | None = None,
    seed: int | None = None,
    exact: bool = False,
    digits: int | None = None,
    decimals: int | None = None,
    float: str | None = None,
    device: str | None = None,
    language: str | None = None,
    progress: evaluate.Progress | None = None,
) -> tuple[Path, ...]:
    """Writes the book of a model and a text into the folder `out`; returns the files, first the
    page to open.

    `claims` is somebody's working (a file, or several), marked in the book: of a built-in model
    the document it comes from, unless `claims` is empty.  `at` are addresses whose numbers are
    shown however large the model is.  With `pdf` and `xlsx` the book is also typeset, and a
    spreadsheet of live formulas.  A `worksheet` has so many `blanks`, which `ask` for "values",
    "shapes", "counts" or some of them; another `seed` chooses others.  The numbers are chosen as
    for `trace`, the `language` is "en", "es" or the one spoken.
    """
    from byhand.editions import Wanted, make_edition, publish, questioning
    from byhand.language import speaking

    Chosen(exact, digits, decimals, float, device).refuse_comparison()
    kinds = (ask,) if isinstance(ask, str) else None if ask is None else tuple(ask)
    questions = questioning(worksheet, blanks=blanks, ask=kinds, decimals=decimals, seed=seed)
    opened = model if isinstance(model, Model) else open_model(model)
    given = (claims,) if isinstance(claims, str | Path) else claims
    with speaking(language):
        edition = make_edition(
            opened,
            text,
            called=None if isinstance(model, Model) else str(model),
            target=target,
            claims=given,
            at=(at,) if isinstance(at, str) else at,
            numbers=numbers_for(
                opened, exact=exact, digits=digits, decimals=decimals, float=float, device=device
            ),
            digits=digits,
            progress=progress,
        )
        return publish(edition, out, Wanted(pdf, xlsx, questions))

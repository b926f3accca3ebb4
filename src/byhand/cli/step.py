"""`byhand step`: training steps worked out, line by line."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from byhand.cli.choosing import DASHES, beside_options, numbers_options
from byhand.cli.completing import models, some_of
from byhand.cli.printing import talk
from byhand.cli.speaking import MODEL, as_command, json_option, later, option
from byhand.language import _
from byhand.options import whole_or_text

if TYPE_CHECKING:
    from byhand.learning import Training
    from byhand.options import Chosen

TEXTS = {
    "[TEXT …]": later("the text, or several, a batch; without any, the model's own"),
}


def _whole(ctx: click.Context, param: click.Parameter, value: str | None) -> Any:
    """A whole number, or the text as it is, to be refused with the other settings."""
    return whole_or_text(value)


@as_command(
    later("a training step, worked out line by line"),
    later(
        "Works out training steps: the loss before, every weight's gradient, their norm "
        "and clipping, the optimizer's moments, the new weights, and the loss after. One "
        "text with a target is learned from its last position, other texts from all their "
        "positions."
    ),
    MODEL | TEXTS,
)
@click.argument("model", metavar="MODEL", shell_complete=models)
@click.argument("texts", metavar="[TEXT …]", nargs=-1)
@beside_options
@option("--target", "WORD", later("the word that should come next, after each text"))
@option(
    "--loss",
    "WHICH",
    later("mean: over all positions; last: of the last position alone"),
    shell_complete=some_of("mean", "last"),
)
@option("--prompt", "N", later("do not learn to predict the first N tokens"), callback=_whole)
@option(
    "--optimizer",
    "NAME",
    later("sgd, momentum, adam or adamw (sgd unless told)"),
    default="sgd",
    shell_complete=some_of("sgd", "momentum", "adam", "adamw"),
)
@option("--lr", "RATE", later("the learning rate (1/10; adam and adamw: 1/1000)"))
@option("--momentum", "M", later("of momentum: the share of the last change kept (0.9)"))
@option("--betas", "B1,B2", later("of adam and adamw: the shares kept of both means (0.9,0.999)"))
@option("--eps", "E", later("of adam and adamw: added to the root (1e-8)"))
@option("--decay", "D", later("the weight decay (adamw: 0.01; else 0)"))
@option("--clip", "NORM", later("scale the gradients down to this norm, all together"))
@option("--steps", "N", later("so many steps (1 unless told)"), callback=_whole)
@option("--warmup", "N", later("raise the rate in equal parts over N steps"), callback=_whole)
@option(
    "--schedule",
    "KIND",
    later("the rate after that: constant, or cosine, down to a share"),
    default="constant",
    shell_complete=some_of("constant", "cosine"),
)
@option("--end", "SHARE", later("of a cosine: the share of the rate at the last step (0.1)"))
@option(
    "--only",
    "PATTERN",
    later("only these lines of the last step: 'update.*.block.0.attn.q'; may be repeated"),
    multiple=True,
)
@option(
    "--at",
    "ADDRESS",
    later("how one number of the last step comes about: 'update.norm[0]'; may be repeated"),
    multiple=True,
)
@option("--out", "NEW.yaml", later("save the model with its new weights"))
@numbers_options
@json_option
def command(
    model: str,
    texts: tuple[str, ...],
    source: str | None,
    segments: Any,
    target: str | None,
    loss: str | None,
    prompt: Any,
    only: tuple[str, ...],
    at: tuple[str, ...],
    out: str | None,
    chosen: Chosen,
    as_json: bool,
    steps: Any,
    warmup: Any,
    **settings: Any,
) -> int:
    """Works training steps out, shows them and saves the new model; returns the exit status."""
    from byhand.cli.printing import print_parts
    from byhand.cli.progress import telling
    from byhand.cli.saving import can_be_written
    from byhand.cli.trace import steps_of
    from byhand.document.compose.learning import document
    from byhand.document.compose.working import workings
    from byhand.files.writing import refuse_unwritable
    from byhand.lessons import teach
    from byhand.models import open_model
    from byhand.rules import Settings

    if out is not None:
        can_be_written(out)
    how = Settings(
        **settings,
        steps=1 if steps is None else steps,
        warmup=0 if warmup is None else warmup,
        dashes=DASHES,
    )
    with telling() as progress:
        opened = open_model(model)
        if out is not None:
            refuse_unwritable(opened)
        training = teach(
            opened,
            texts,
            how,
            chosen,
            source=source,
            segments=segments,
            target=target,
            loss=loss,
            prompt=0 if prompt is None else prompt,
            wanted=(*only, *steps_of(at)),
            progress=progress,
        )
    last = training.steps[-1].trace
    lines = [part for address in at for part in workings(last, address)]
    if out is not None:
        save(training, out)
    if as_json:
        print_json(training, (*only, *steps_of(at)))
    elif only or not at:
        print_parts(document(training, only=only))
    print_parts([] if as_json else lines)
    return 0 if proven(training) else 1


def save(training: Training, out: str) -> None:
    """Saves the new model, and says on stderr how exact its weights are."""
    from byhand.files.writing import save_with_tensors

    new = training.new_model()
    files = save_with_tensors(new, out)
    talk(_("saved in {files}").format(files=", ".join(map(str, files))))
    for note in new.notes:
        talk(f"  {note}")


def print_json(training: Training, only: tuple[str, ...]) -> None:
    """Prints the steps as one JSON document."""
    from byhand.document.media.json.learning import write_training

    write_training(training, sys.stdout, only)


def proven(training: Training) -> bool:
    """Whether everything asked for is proven; says on stderr what is not."""
    from byhand.cli.trace import tell_unproven

    open_ones = [t for t in training.traces if t.proof is not None and not t.proof.complete]
    for trace in open_ones[:1]:
        tell_unproven(trace)
    return not open_ones

"""The view of a State: one passage, the map, the prediction, the residual stream, attention.

look      one passage and everything around it models    the available models, and what can be
edited in them
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any

import numpy as np

from byhand.counting import count
from byhand.document import words
from byhand.document.compose.book.prediction import candidates, predicted
from byhand.document.compose.book.strips import near, pattern_of
from byhand.document.compose.book.topics import Topic
from byhand.document.compose.book.whole import stops
from byhand.document.compose.standing import cell_of, rank_said
from byhand.document.parts import Candidate
from byhand.editions import TOY_PARAMETERS
from byhand.errors import ByhandError
from byhand.evaluate import Progress, pencil_sized
from byhand.model import Model
from byhand.serving.answers import error_data
from byhand.serving.changes import MOST_ADDRESSES, addresses, changed_weights, changes
from byhand.serving.edits import edited
from byhand.serving.experiments import experiments
from byhand.serving.number_texts import number_text
from byhand.serving.passages import map_of, outline, passage_data, topic_named
from byhand.serving.settings import settings
from byhand.serving.states import Library, State
from byhand.serving.tables import tables
from byhand.serving.teaching import learn
from byhand.serving.telling import told
from byhand.serving.worked_state import Pass, pass_of
from byhand.tokens import Ids, Vocabulary
from byhand.tracing import Trace

MOST_WORDS = 512  # of a vocabulary
MOST_PATTERNS = 16  # heads whose attention is shown
SHORT, MOST_DRAWN = 4, 1_024  # longest stream written as numbers; longest stream drawn
MOST_MOVED = 12  # words whose probability is compared


def look(library: Library, asked: Mapping[str, Any], progress: Progress | None) -> dict[str, Any]:
    """One passage of a State, and everything shown around it."""
    state, before = asked["state"], asked["before"]
    found = pass_of(state, library, asked["position"], progress)
    topic = topic_named(found, asked["passage"])
    answer = {
        "model": model_data(found.model, state.name),
        "notes": list(found.notes),
        "text": found.trace.text,
        "tokens": [
            {"place": place, "id": id, "text": found.label(id)}
            for place, id in enumerate(found.trace.tokens)
        ],
        "position": found.position,
        "numbers": found.trace.numbers.name if state.digits is None else f"digits {state.digits}",
        "numbers_about": words.numbers_name(found.trace.numbers, found.trace.proof),
        "map": map_of(found, topic.addresses),
        "passages": outline(found),
        "passage": passage_data(found, topic),
        "next": next_of(found),
        "loss": loss_of(found),
        "stream": _stream(found),
        "attention": list(_attention(found, topic)),
        "changed": None if before is None else _changed(found, before, library, progress),
    }
    if asked["weights"]:
        answer["weights"] = list(tables(found.model))
    if asked["gradients"]:
        answer["learning"] = _learning(library, asked, progress)
    return answer


def _learning(
    library: Library, asked: Mapping[str, Any], progress: Progress | None
) -> dict[str, Any]:
    """What the model has learned and would learn next, or why it cannot."""
    try:
        return learn(library, asked, progress)
    except ByhandError as error:
        return {"refused": error_data(error)}


# ------------------------------------------------------------------ models


def models(library: Library, asked: Mapping[str, Any], progress: Progress | None) -> Any:
    """Every model of the library."""
    return {"models": [model_data(library.open(name), name) for name in library.names]}


def model_data(model: Model, name: str | None) -> dict[str, Any]:
    """A description of a model, and what can be edited in it."""
    spec, tokens = model.spec, model.vocabulary.tokens
    total = count(spec, model.weights).total
    return {
        "name": name or model.name,
        "title": model.name,
        "about": words.told(model.about),
        "text": model.text,
        "target": model.target,
        "kind": _kind(model),
        "vocabulary": [words.token_label(token) for token in tokens[:MOST_WORDS]],
        "vocab": spec.vocab,
        "outputs": None
        if model.output_words is None
        else [words.token_label(word) for word in model.output_words.tokens[:MOST_WORDS]],
        "context": spec.context,
        "layers": len(spec.blocks),
        "parameters": total,
        "exact": pencil_sized(model),
        "large": total > TOY_PARAMETERS,
        "experiments": experiments(name),
        "edit": {
            "weights": total <= TOY_PARAMETERS,
            "architecture": settings(spec),
        },
    }


def _kind(model: Model) -> str:
    match model.vocabulary:
        case Vocabulary(kind=kind):
            return kind
        case Ids():
            return "ids"
    return "subwords"


# ------------------------------------------------------------------ around the passage


def next_of(found: Pass) -> dict[str, Any] | None:
    """The prediction after the followed position."""
    trace, edition, place = found.trace, found.edition, found.position
    probs = trace.steps.get("probs")
    if trace.next is None or probs is None or probs.missing is not None:
        return None
    prediction = predicted(edition, place, trace.next[place])
    return {
        "place": place,
        "token": prediction.token,
        "id": trace.next[place].id,
        "proven": prediction.proven,
        "sentence": prediction.sentence,
        "margin": None
        if prediction.margin is None
        else edition.showing.cell_said(prediction.margin),
        "candidates": [
            _candidate(one, found.by_decimals) for one in candidates(edition, place).candidates
        ],
    }


def loss_of(found: Pass) -> dict[str, Any] | None:
    """The loss, if there is a target: as text, and as a float for a bar."""
    trace = found.trace
    worked = trace.steps.get("loss")
    if worked is None or worked.missing is not None or trace.target is None:
        return None
    number = found.edition.showing.number(worked, (0,))
    return {
        "target": found.answer(trace.target),
        "address": number.address,
        "text": number_text(number, decimals=found.by_decimals),
        "value": float(near(worked)[0]),
        **standing_of(found),
    }


def standing_of(found: Pass) -> dict[str, Any]:
    """ln p of the target, and its rank: null where it is open; {} where neither is known."""
    standings = found.trace.standings
    standing = standings[-1] if standings else None
    if standing is None:
        return {}
    showing = found.edition.showing
    return {
        "logprob": cell_of(showing, standing.logprob).decimal,
        "rank": standing.rank,
        "rank_text": rank_said(showing, standing),
    }


def _candidate(one: Candidate, decimals: bool) -> dict[str, Any]:
    return {
        "token": one.token,
        "id": one.id,
        "share": one.share,
        "probability": number_text(one.probability, decimals=decimals),
        "logit": number_text(one.logit, decimals=decimals),
        "addresses": [one.logit.address, one.probability.address],
        "target": one.target,
    }


def _stream(found: Pass) -> dict[str, Any]:
    """The row of the followed position at every station."""
    return {
        "place": found.position,
        "label": found.edition.showing.labels[found.position],
        "stops": [
            {
                "address": stop.address,
                "label": stop.label,
                "kind": stop.kind,
                "layer": stop.layer,
                "trip": stop.trip,
                "size": stop.size,
                "register": stop.register,
                "row": _row(found, stop.address),
                "numbers": [
                    {
                        "address": number.address,
                        "text": number_text(number, decimals=found.by_decimals),
                    }
                    for number in stop.numbers
                ],
            }
            for stop in stops(found.edition, found.position)
        ],
    }


def _row(found: Pass, address: str) -> list[float] | None:
    """Floats of a whole row, for a picture; None if it is short or far too long."""
    if not SHORT < found.model.spec.d_model <= MOST_DRAWN:
        return None
    worked = found.trace.steps[found.trace.plan.known[address]]
    return [float(x) for x in near(worked)[found.position]]


def _attention(found: Pass, topic: Topic) -> Iterator[dict[str, Any]]:
    """The attention of the heads within the text; of many, those of the passage's block."""
    steps = [worked for worked in found.trace.values()
             if worked.address.endswith(".attn.weights") and not worked.step.of_source]  # fmt: skip
    if sum(worked.step.shape[0] for worked in steps) > MOST_PATTERNS and steps:
        layer = 0 if topic.layer is None else topic.layer
        steps = [worked for worked in steps if worked.address.split(".")[1] == str(layer)]
    for worked in steps:
        if worked.missing is not None:
            continue
        pattern = pattern_of(found.edition.showing, worked, forms=False)
        for head in pattern.patterns[:MOST_PATTERNS]:
            yield {
                "address": head.address,
                "layer": int(worked.address.split(".")[1]),
                "head": head.head,
                "labels": list(pattern.labels),
                "values": [[None if np.isnan(x) else float(x) for x in row] for row in head.values],
            }


# ------------------------------------------------------------------ what changed


def _changed(
    found: Pass, state: State, library: Library, progress: Progress | None
) -> dict[str, Any]:
    """The numbers that differ from the previous State, and the change of the prediction."""
    earlier = pass_of(state, library, None, progress)
    before, after = earlier.trace, found.trace
    steps = changes(before, after)
    return {
        "count": sum(step.count for step in steps),
        "addresses": list(islice(addresses(steps), MOST_ADDRESSES)),
        "steps": [{"address": step.address, "count": step.count} for step in steps],
        "nodes": list(found.spine.lit(tuple(step.address for step in steps))),
        "first": steps[0].address if steps else None,
        "next": _moved(before, after, found.position),
        "loss": {"before": loss_of(earlier), "after": loss_of(found)},
        "told": told(earlier, found, steps),
        "weights": changed_weights(edited(state, library).model, found.model),
    }


def _moved(before: Trace, after: Trace, place: int) -> dict[str, Any] | None:
    """The words after a position with their probabilities, before and now."""
    if not (before.next and after.next):
        return None
    then = min(place, len(before.tokens) - 1)
    if before.model.spec.answers != after.model.spec.answers:
        return None
    old, new = near(before.steps["probs"])[then], near(after.steps["probs"])[place]
    order = np.argsort(-np.maximum(np.nan_to_num(old), np.nan_to_num(new)), kind="stable")
    token = [
        None if found.id is None else words.token_label(after.answer(found.id))
        for found in (before.next[then], after.next[place])
    ]
    return {
        "before": token[0],
        "after": token[1],
        "words": [
            {
                "token": words.token_label(after.answer(int(id))),
                "id": int(id),
                "before": float(old[id]),
                "after": float(new[id]),
            }
            for id in order[:MOST_MOVED]
        ],
    }

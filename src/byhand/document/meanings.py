"""What one number of a pass means, in a sentence: for every kind of step and of weight.

`meaning` says it before its address is shown: "How much position 1 (b) attends to position 0 (a) in
head 0."  It needs the plan and the tokens, and no number.
"""

from __future__ import annotations

from collections.abc import Mapping

from byhand.document import words
from byhand.language import _, later
from byhand.numbers.base import ABSENT
from byhand.optimizer import BEFORE, UPDATE
from byhand.plan import GRAD, WEIGHT, Step
from byhand.tracing import Trace

Index = tuple[int, ...]

POSITIONS = ("pos", "query")
SOURCES = ("source", "source_query")
KEYS = ("key", "source_key", "past")

# The last name of a step → its sentence.  {p}: its position, {k}: the one looked at, {i}: the last
# index, {h}: head, {e}: expert, {word}: what the index stands for.
SAID: Mapping[str, str] = {
    "tokens": later("The id of the token at {p}: its place in the vocabulary."),
    "source": later("The id of the token at {p}: its place in the vocabulary."),
    "embed.token": later("Number {i} of the row that the embedding has for the token at {p}."),
    "embed.position": later("Number {i} of the row that marks {p}, whatever token stands there."),
    "embed.segment": later("Number {i} of the row that says of which kind the token at {p} is."),
    "embed.projected": later("Number {i} of the embedding at {p}, brought to the model's width."),
    "embed.sum": later("Number {i} of the embedding at {p}, before it is normalised."),
    "embed.position_added": later("Number {i} of token and position together, at {p}."),
    "embed.segment_added": later("Number {i} of token and kind together, at {p}."),
    "stream.0": later("Number {i} of the residual stream at {p}, before the first block."),
    "relative": later("What head {h} adds to a score for the way from {p} to {k}."),
    # attention
    "qkv": later("Number {i} of query, key and value of {p}, side by side."),
    "q": later("Number {i} of the query of {p} in head {h}: what this position looks for."),
    "k": later("Number {i} of the key of {p} in head {h}: what others can find here."),
    "v": later("Number {i} of the value of {p} in head {h}: what it hands on."),
    "q_rotated": later("Number {i} of the query of {p} in head {h}, turned by its position."),
    "k_rotated": later("Number {i} of the key of {p} in head {h}, turned by its position."),
    "past_k": later("Number {i} of a key in head {h}, kept from earlier tokens."),
    "past_v": later("Number {i} of a value in head {h}, kept from earlier tokens."),
    "all_k": later("Number {i} of the key of {k} in head {h}."),
    "all_v": later("Number {i} of the value of {k} in head {h}."),
    "scores": later("How well the query of {p} fits the key of {k} in head {h}."),
    "weights": later("How much {p} attends to {k} in head {h}."),
    "mixed": later("Number {i} of what {p} collects in head {h} from the positions it attends to."),
    "head_out": later("Number {i} of what head {h} alone adds to the residual stream at {p}."),
    "attn.out": later("Number {i} of what attention adds to the residual stream at {p}."),
    "cross.out": later("Number {i} of what the source adds to the residual stream at {p}."),
    "attn.add": later("Number {i} of the residual stream at {p}, with attention added."),
    "cross.add": later("Number {i} of the residual stream at {p}, with the source added."),
    # the MLP
    "hidden": later("How strongly unit {i} of the MLP answers at {p}, before the activation."),
    "gate": later("The gate of unit {i} of the MLP at {p}, before the activation."),
    "act": later("What the activation leaves of unit {i} of the MLP at {p}."),
    "gated": later("Unit {i} of the MLP at {p}, multiplied by its gate."),
    "raised": later("Unit {i} of the MLP at {p}, raised by a constant."),
    "mlp.out": later("Number {i} of what the MLP adds to the residual stream at {p}."),
    "mlp.add": later("Number {i} of the residual stream at {p}, with the MLP added."),
    "scaled": later("Number {i} of what is added to the residual stream at {p}, scaled."),
    "router": later("How well expert {e} suits {p}, before experts are chosen."),
    "router_scores": later("How well expert {e} suits {p}, as a number from 0 to 1."),
    "ranked": later("How well expert {e} suits {p}, with the bias that balances the choice."),
    "chosen": later("Whether expert {e} answers at {p}: 1 if it does, 0 if not."),
    "shares": later("The share that expert {e} has in the answer at {p}."),
    "answers": later("Number {i} of what expert {e} would answer at {p}."),
    "combined": later("Number {i} of what the chosen experts answer together at {p}."),
    "shared.out": later("Number {i} of what the shared expert answers at {p}."),
    "score": later("How much the shared expert counts at {p}, before it becomes a share."),
    "share": later("The share of the shared expert's answer at {p}."),
    "weighed": later("Number {i} of the shared expert's answer at {p}, by its share."),
    # norms
    "mean": later("The average of the numbers at {p}."),
    "centered": later("Number {i} at {p}, less the average."),
    "variance": later("How far the numbers at {p} lie from their average: its mean square."),
    "std": later("The standard deviation of the numbers at {p}: how far they spread."),
    "mean_square": later("The average of the squares of the numbers at {p}."),
    "rms": later("The root mean square of the numbers at {p}: how large they are."),
    "normalized": later("Number {i} at {p}, measured by how far the numbers there spread."),
    "norm.out": later("Number {i} at {p} after the norm."),
    "after.out": later("Number {i} at {p} after the norm."),
    # out of the stream
    "head.in": later("Number {i} at {p} as the head reads it."),
    "head.hidden": later("Number {i} inside the head at {p}, before the activation."),
    "head.act": later("What the activation leaves of number {i} inside the head at {p}."),
    "head.projected": later("Number {i} at {p}, brought to the width of the embedding."),
    "head.out": later("The logit of {word} after {p}, before it is adjusted."),
    "head.biased": later("The logit of {word} after {p}, with its bias."),
    "head.scaled": later("The logit of {word} after {p}, scaled."),
    "logits": later("How strongly the model expects {word} after {p}: its logit."),
    "probs": later("The probability of {word} after {p}."),
    "next": later("The word that the model expects after {p}."),
    "target": later("The word that should come next."),
    "loss": later("How much the target surprises the model: −ln of its probability."),
    "targets": later("The word that should come after {p}."),
    "losses": later("How much the word after {p} surprises the model: −ln of its probability."),
    "mean_loss": later("The average of all losses of the text."),
}
IN_PLACE = {
    "logits": later("How strongly the model takes {word} for the word at {p}: its logit."),
    "probs": later("The probability that {word} is the word at {p}."),
    "next": later("The word that the model takes for the one at {p}."),
}
BY_OPERATION = {
    "split_heads": later("Number {i} for head {h} at {p}, cut out of a longer row."),
    "clamp": later("A number at {p}, kept within limits."),
    "constants": later("How far RoPE turns pair {i} from one position to the next."),
    "linear": later("Number {i} at {p}: a sum of products with weights."),
    "add": later("Number {i} at {p}: the sum of two numbers."),
    "beside": later("Number {i} at {p} in head {h}: a part that is turned, and one that is not."),
}
ANY = later("Number {i} of step {step} at {p}.")
MASKED = later("{p} may not look at {k}: the mask hides it, so here is no number.")

# The last names of a weight → what it does.  {i} and {j}: its last indices; {word}: its row's.
WEIGHTS: Mapping[str, str] = {
    "embed.token": later("number {j} of the row that stands for {word}."),
    "embed.position": later("number {j} of the row that marks position {i}."),
    "embed.segment": later("number {j} of the row of kind {i}."),
    "relative": later("what head {j} adds to a score at distance bucket {i}."),
    "gain": later("what the norm multiplies number {j} by."),
    "bias": later("what is added to number {j} at every position."),
    "slopes": later("how fast head {j} loses interest with distance."),
    "sinks": later("the attention that head {j} can give to nothing."),
    "score_table": later("a score that depends only on the two positions."),
    "frequencies": later("how far RoPE turns pair {j} from one position to the next."),
    "head": later("how strongly number {from} of the residual stream favours {word}."),
    "q": later("how much number {from} of its input counts in number {to} of a query."),
    "k": later("how much number {from} of its input counts in number {to} of a key."),
    "v": later("how much number {from} of its input counts in number {to} of a value."),
    "hidden": later("how much number {from} of its input counts for unit {to}."),
    "gate": later("how much number {from} of its input counts for the gate of {to}."),
    "router": later("how much number {from} of its input speaks for expert {to}."),
    "mlp.out": later("how much unit {from} of the MLP adds to number {to}."),
    "out": later("how much number {from} that is collected adds to number {to}."),
}
ANY_WEIGHT = later("how much number {from} of its input counts in number {to}.")


def meaning(trace: Trace, name: str, index: Index) -> str:
    """What the entry of a step, a weight, a gradient or an update means, in a sentence.

    >>> import byhand
    >>> meaning(byhand.trace("tiny"), "block.0.attn.weights", (0, 1, 0))
    'How much position 1 (b) attends to position 0 (a) in head 0.'
    """
    if name.startswith(BEFORE):
        return _("What the optimizer remembers from the steps before.")
    if name.startswith(UPDATE):
        return _("A number of the training step: {step}.").format(step=f"`{name}`")
    if name.startswith(GRAD):
        of = name.rpartition(".via.")[2].removeprefix(GRAD)
        if of.startswith(WEIGHT):
            return _("How fast the loss grows with this weight: its gradient.")
        return _("How fast the loss grows with this number: its gradient.")
    if name.startswith(WEIGHT):
        return _of_weight(trace, name.removeprefix(WEIGHT), index)
    step = trace.plan[name]
    at = _Places(trace, step, index)
    sentence = _(MASKED if _masked(trace, step, index) else _template(trace, step))
    return _placed(_capital(sentence.format(**at.filled())), trace, step.address)


def _masked(trace: Trace, step: Step, index: Index) -> bool:
    """Whether the entry is no number because its position may not look there."""
    worked = trace.steps.get(step.address)
    if worked is None or worked.missing is not None or worked.whole:
        return False
    return len(step.axes) > 1 and step.axes[-1] in KEYS and worked.at(index) is ABSENT


def _template(trace: Trace, step: Step) -> str:
    """The sentence of a step: by the last two names of its address, the last, or its operation."""
    parts = step.address.removeprefix("encoder.").split(".")
    last, two = parts[-1], ".".join(parts[-2:])
    if trace.model.spec.in_place and step.address in IN_PLACE:
        return IN_PLACE[step.address]
    if "shared" in parts and last == "out":
        return SAID["shared.out"]
    for key in (two, last):
        if key in SAID and not (key == last and last in ("out", "add")):
            return SAID[key]
    return BY_OPERATION.get(step.op, ANY)


class _Places:
    """What an index of a step stands for, in words."""

    def __init__(self, trace: Trace, step: Step, index: Index) -> None:
        self.trace, self.step = trace, step
        self.index = dict(zip(step.axes, index, strict=False))

    def filled(self) -> dict[str, str]:
        """Every name that a sentence may have in it."""
        axes, index = self.step.axes, self.index
        heads = (index[axis] for axis in ("head", "kv_head", "one_head") if axis in index)
        return {
            "p": self._named(POSITIONS + SOURCES) or self._last_of_all(),
            "k": self._named(KEYS) or "",
            "h": str(next(heads, 0)),
            "e": str(index.get("expert", 0)),
            "i": str(index[axes[-1]]) if axes else "",
            "word": self._word(),
            "step": f"`{self.step.address}`",
        }

    def _named(self, axes: tuple[str, ...]) -> str | None:
        """The position on one of these axes, with its token."""
        axis = next((axis for axis in axes if axis in self.index), None)
        if axis is None:
            return None
        return position_named(self.trace, self.index[axis], of_source=axis.startswith("source"))

    def _last_of_all(self) -> str:
        return position_named(self.trace, len(self.trace.tokens) - 1)

    def _word(self) -> str:
        """The word that the last index stands for, among those that the model can answer."""
        spec = self.trace.model.spec
        at = self.index.get(spec.answer_axis)
        return "" if at is None else f"`{words.token_label(self.trace.answer(at))}`"


def position_named(trace: Trace, place: int, *, of_source: bool = False) -> str:
    """A position with its token: position 1 (b)."""
    if of_source:
        ids = () if trace.source is None else trace.source.tokens
        label = trace.source_token(ids[place]) if place < len(ids) else None
    else:
        label = trace.token(trace.tokens[place]) if place < len(trace.tokens) else None
    if label is None:  # a key from before this text
        return _("position {place}").format(place=place)
    told = _("source position {place} ({token})") if of_source else _("position {place} ({token})")
    return told.format(place=place, token=words.token_label(label))


# ------------------------------------------------------------------ weights


def _of_weight(trace: Trace, name: str, index: Index) -> str:
    """What a weight does, by its name and the layout of its matrix."""
    parts = name.removeprefix("encoder.").split(".")
    last, two = parts[-1], ".".join(parts[-2:])
    if last.endswith("_bias") or last == "bias":
        template = WEIGHTS["bias"]
    else:
        template = WEIGHTS.get(two) or WEIGHTS.get(last) or ANY_WEIGHT
    pair = index[-2:] if len(index) > 1 else (index or (0,)) * 2
    source, target = pair if trace.model.spec.layout == "in_out" else pair[::-1]
    row = target if name == "head" else pair[0]
    does = _(template).format(
        i=pair[0],
        j=pair[-1],
        to=target,
        word=_word_of_row(trace, name, row),
        **{"from": source},
    )
    layer, encoder = _place(trace, name)
    said = {
        (False, False): _("A weight: {does}"),
        (True, False): _("A weight of block {layer}: {does}"),
        (False, True): _("A weight of the encoder: {does}"),
        (True, True): _("A weight of block {layer} of the encoder: {does}"),
    }[layer is not None, encoder]
    return said.format(layer=layer, does=does)


def _word_of_row(trace: Trace, name: str, row: int) -> str:
    """The token that a row of an embedding, or a column of the head, stands for."""
    if name == "embed.token":
        return f"`{words.token_label(trace.token(row))}`"
    if name == "encoder.embed.token":
        return f"`{words.token_label(trace.source_token(row))}`"
    return f"`{words.token_label(trace.answer(row))}`" if name == "head" else ""


# ------------------------------------------------------------------ where it is


def _placed(sentence: str, trace: Trace, address: str) -> str:
    """The sentence, with the block before it where the model has several."""
    layer, encoder = _place(trace, address)
    if layer is None and not encoder:
        return sentence
    said = {
        (True, False): _("In block {layer}: {sentence}"),
        (False, True): _("In the encoder: {sentence}"),
        (True, True): _("In block {layer} of the encoder: {sentence}"),
    }[layer is not None, encoder]
    return said.format(layer=layer, sentence=_small(sentence))


def _place(trace: Trace, address: str) -> tuple[str | None, bool]:
    """The block of an address, where there are several, and whether it is of the encoder."""
    encoder = address.startswith("encoder.")
    parts = address.removeprefix("encoder.").split(".")
    spec = trace.model.spec
    blocks = spec.encoder.blocks if encoder and spec.encoder else spec.blocks
    return (parts[1] if parts[0] == "block" and len(blocks) > 1 else None), encoder


def _capital(sentence: str) -> str:
    return sentence[:1].upper() + sentence[1:]


def _small(sentence: str) -> str:
    return sentence[:1].lower() + sentence[1:]

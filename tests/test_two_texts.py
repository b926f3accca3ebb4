"""A source beside the text, and the kinds of tokens, through the whole product."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import byhand
from byhand.errors import InputError, TextError, UsageError
from byhand.expression import Call, Number
from byhand.model import Model
from byhand.parameters import parameters
from byhand.spec import (
    AttentionSpec,
    BlockSpec,
    EncoderSpec,
    HeadSpec,
    MlpSpec,
    ModelSpec,
    NormSpec,
    RelativeSpec,
    over_root,
)
from byhand.tokens import Vocabulary
from byhand.weights import Tensor, Weights

TRANSLATOR = "docs/examples/translator.yaml"
NORM, RMS = NormSpec("layernorm", Fraction(1, 100)), NormSpec("rmsnorm", bias=False)
GERMAN = Vocabulary(("<s>", "die", "Katze", "schläft", "</s>"))
ENGLISH = Vocabulary(("the", "cat", "sleeps", "."))


def attention(causal: bool, **more: Any) -> AttentionSpec:
    return AttentionSpec(2, 2, 2, causal=causal, **more)


def with_weights(spec: ModelSpec, seed: int = 0, **more: Any) -> Model:
    """Weights of a few small fractions."""
    draw = np.random.default_rng(seed)

    def entries(shape: tuple[int, ...]) -> Any:
        whole = draw.integers(-4, 5, shape)
        return np.vectorize(lambda x: Fraction(int(x), 4), otypes=[object])(whole)

    named = {p.name: Tensor(p.name, entries(p.shape)) for p in parameters(spec)}
    return Model(spec, Weights(named), **{"vocabulary": GERMAN, **more})


def original() -> Model:
    """The Transformer of the original paper: post-norm, sinusoids, embeddings times √d."""
    root = Call("sqrt", Number(Fraction(4)))
    plain, across = attention(True, scale=over_root(2)), attention(False, scale=over_root(2))
    mlp = MlpSpec(3, hidden_bias=True, out_bias=True)
    block = BlockSpec(plain, mlp, NORM, NORM, norm_place="post", cross=across, cross_norm=NORM)
    read = BlockSpec(across, mlp, NORM, NORM, norm_place="post")
    encoder = EncoderSpec((read,) * 2, vocab=4, position="sinusoidal", embed_scale=root)
    spec = ModelSpec("original", 5, 4, None, (block,) * 2, position="sinusoidal", embed_scale=root,
                     encoder=encoder)  # fmt: skip
    return with_weights(spec, source_words=ENGLISH, start=(0,), ends=(4,))


def like_t5() -> Model:
    """Relative buckets, RMSNorm, a gated MLP, a scaled tied head; one vocabulary."""
    mlp = MlpSpec(3, gated=True)
    block = BlockSpec(attention(True, relative=True), mlp, RMS, RMS, cross=attention(False),
                      cross_norm=RMS)  # fmt: skip
    encoder = EncoderSpec((BlockSpec(attention(False, relative=True), mlp, RMS, RMS),),
                          final_norm=RMS, relative=RelativeSpec(4, 3, both=True))  # fmt: skip
    spec = ModelSpec("t5", 5, 4, None, (block,), final_norm=RMS, relative=RelativeSpec(4, 3),
                     head_scale=over_root(4), encoder=encoder)  # fmt: skip
    return with_weights(spec, start=(0,))


def like_bert() -> Model:
    """Segments, a norm of the embedding, blocks that look both ways, a head that bends."""
    mlp = MlpSpec(3, hidden_bias=True, out_bias=True)
    block = BlockSpec(attention(False, scale=over_root(2)), mlp, NORM, NORM, norm_place="post")
    spec = ModelSpec("bert", 5, 4, 6, (block,), position="learned", segments=2, embed_norm=NORM,
                     head=HeadSpec("relu", NORM), head_bias=True, in_place=True)  # fmt: skip
    words = Vocabulary(("[CLS]", "[MASK]", "a", "b", "c"))
    return with_weights(spec, vocabulary=words, blank=1)


# ------------------------------------------------------------------ every number system


@pytest.mark.parametrize("make", [original, like_t5, like_bert])
def test_exact_numbers_proven_digits_and_floats_are_near_each_other(
    make: Callable[[], Model],
) -> None:
    model = make()
    asked = {"text": "a b [MASK]", "segments": (0, 1, 1)} if model.in_place else {
        "text": "die", "source": "the cat" if model.source_words else "Katze schläft"
    }  # fmt: skip
    exact = byhand.trace(model, exact=True, only="logits", **asked)
    digits = byhand.trace(model, digits=9, only="logits", **asked)
    floats = byhand.trace(model, numbers="float64", **asked)
    assert digits.proof is not None
    assert digits.proof.complete
    for place, logit in np.ndenumerate(np.asarray(floats["logits"])):
        at = f"logits[{place[0]},{place[1]}]"
        assert abs(float(exact.places(at, 12)) - logit) < 1e-9
        assert abs(float(digits.significant(at, 9)) - logit) < 1e-7
    assert exact.source == floats.source
    assert exact.segments == floats.segments


def test_the_pass_is_that_of_torch() -> None:
    import torch
    from torch import nn

    model = original()
    trace = byhand.trace(model, "die Katze", source="the cat sleeps", numbers="float64")

    def weight(name: str) -> Any:
        return torch.tensor(np.asarray(model.weights[name].data, np.float64))

    def attend(at: str, x: Any, other: Any, mask: Any = None) -> Any:
        cut = [(weight(f"{at}.{n}").T @ y.T).T.reshape(-1, 2, 2).transpose(0, 1)
               for n, y in zip("qkv", (x, other, other), strict=True)]  # fmt: skip
        mixed = nn.functional.scaled_dot_product_attention(*(y[None] for y in cut), attn_mask=mask)
        return mixed[0].transpose(0, 1).reshape(len(x), 4) @ weight(f"{at}.out")

    def normed(at: str, x: Any) -> Any:
        return nn.functional.layer_norm(x, (4,), weight(f"{at}.gain"), weight(f"{at}.bias"), 0.01)

    def mlp(at: str, x: Any) -> Any:
        inner = torch.relu(x @ weight(f"{at}.hidden") + weight(f"{at}.hidden_bias"))
        return inner @ weight(f"{at}.out") + weight(f"{at}.out_bias")

    def waves(count: int) -> Any:
        angle = torch.arange(count)[:, None] / torch.tensor([1.0, 100.0], dtype=torch.float64)
        return torch.stack([angle.sin(), angle.cos()], dim=2).reshape(count, 4)

    x = weight("encoder.embed.token")[[0, 1, 2]] * 2 + waves(3)
    for layer in range(2):
        at = f"encoder.block.{layer}"
        x = normed(f"{at}.attn.norm", x + attend(f"{at}.attn", x, x))
        x = normed(f"{at}.mlp.norm", x + mlp(f"{at}.mlp", x))
    assert np.allclose(np.asarray(trace["encoder.out"]), x.numpy(), atol=1e-12)
    source, y = x, weight("embed.token")[[0, 1, 2]] * 2 + waves(3)
    back = torch.ones(3, 3).tril().bool()
    for layer in range(2):
        at = f"block.{layer}"
        y = normed(f"{at}.attn.norm", y + attend(f"{at}.attn", y, y, back))
        y = normed(f"{at}.cross.norm", y + attend(f"{at}.cross", y, source))
        y = normed(f"{at}.mlp.norm", y + mlp(f"{at}.mlp", y))
    assert np.allclose(np.asarray(trace["logits"]), y @ weight("embed.token").T, atol=1e-12)


# ------------------------------------------------------------------ generation, losses


@pytest.mark.parametrize("numbers", ["float64", "digits 3"])
def test_a_generation_works_the_encoder_out_once_and_goes_on_as_traces_do(numbers: str) -> None:
    model = replace(like_t5(), ends=())
    seen: list[str] = []
    made = byhand.generate(model, source="Katze schläft", count=3, numbers=numbers,
                           progress=lambda step: seen.append(step.address))  # fmt: skip
    words = [chosen.token for chosen in made]
    assert seen.count("encoder.block.0.attn.scores") == 1
    for place in range(3):
        trace = byhand.trace(model, " ".join(words[:place]), source="Katze schläft",
                             numbers="float64")  # fmt: skip
        assert trace.next is not None
        assert trace.next[-1].id == GERMAN.id(words[place])


def test_the_losses_are_those_of_the_decoders_text() -> None:
    model = like_t5()
    trace = byhand.trace(model, "die Katze", source="Katze", losses=True, target="</s>",
                         backward=True, numbers="float64")  # fmt: skip
    assert trace.tokens == (0, 1, 2)
    assert trace.targets == (1, 2, 4)
    name = "encoder.block.0.mlp.hidden"
    slope = np.asarray(trace.grad[f"weight.{name}"])
    at = np.unravel_index(np.abs(slope).argmax(), slope.shape)

    def loss(change: float) -> float:
        data = np.asarray(model.weights[name].data, np.float64)
        data[at] += change
        other = replace(model, weights=Weights({**model.weights, name: Tensor(name, data)}))
        found = byhand.trace(other, "die Katze", source="Katze", losses=True, target="</s>",
                             numbers="float64")  # fmt: skip
        return float(found.mean_loss)

    assert slope[at] == pytest.approx((loss(1e-6) - loss(-1e-6)) / 2e-6, rel=1e-6)


def test_a_target_belongs_at_the_blank() -> None:
    model = like_bert()
    trace = byhand.trace(model, "[CLS] a [MASK]", target="b", numbers="float64")
    assert trace.losses is not None
    assert trace.losses[:2] == (None, None)
    assert trace.losses[2] == pytest.approx(-np.log(np.asarray(trace["probs"])[2, 3]))
    every = byhand.trace(model, "[CLS] a [MASK]", losses=True, numbers="float64")
    assert every.targets == (0, 2, -1)
    with pytest.raises(TextError, match="has no blank"):
        byhand.trace(model, "[CLS] a", target="b")
    with pytest.raises(UsageError, match="which word stands at each place"):
        byhand.generate(model, "[CLS] a")


def test_segments_change_the_rows_they_belong_to() -> None:
    model = like_bert()
    asked: Any = {"only": "embed.sum", "numbers": "float64"}
    plain = np.asarray(byhand.trace(model, "a b", **asked)["embed.sum"])
    kinds = np.asarray(byhand.trace(model, "a b", segments=[0, 1], **asked)["embed.sum"])
    table = np.asarray(model.weights["embed.segment"].data, np.float64)
    assert (kinds - plain).tolist() == [[0.0] * 4, (table[1] - table[0]).tolist()]
    for wrong in ([0], [0, 2], "0x"):
        with pytest.raises((InputError, UsageError)):
            byhand.trace(model, "a b", segments=wrong)


# ------------------------------------------------------------------ shown, saved, checked


def test_the_command_line_takes_a_source_and_shows_it_under_its_own_heading(
    byhand: Callable[..., Any],
) -> None:
    done = byhand("trace", TRANSLATOR, "the white", "--source", "el perro blanco corre")
    assert done.status == 0, done.err
    assert "source   el perro blanco corre" in done.out
    for heading in ("── Source ─", "── Encoder · Block 0 · attention ─",
                    "── Block 0 · cross-attention ─"):  # fmt: skip
        assert heading in done.out
    weights = done.out.partition("block.0.cross.weights")[2].splitlines()
    assert weights[2].split() == ["0", "el", "1", "perro", "2", "blanco", "3", "corre"]
    said = byhand("generate", TRANSLATOR, "--source", "el perro blanco corre", "-n", "4", "--json")
    data = json.loads(said.out)
    assert [each["token"] for each in data["generated"]] == ["the", "white", "dog", "runs"]
    assert data["source"]["text"] == "el perro blanco corre"
    assert byhand("trace", "tiny", "a b", "--source", "a").status == 2
    assert "0,0,1" in byhand("trace", "tiny", "a b", "--segments", "a").err
    assert "no segments" in byhand("trace", "tiny", "a b", "--segments", "0,1").err


def test_golden_files_keep_the_source_and_are_checked_by_it(tmp_path: Path) -> None:
    model = byhand.open_model(TRANSLATOR)
    byhand.trace(model, "the", source="el perro", numbers="float32").save(tmp_path / "golden")
    marking = byhand.check(model, tmp_path / "golden")
    assert marking.passed
    assert marking.texts[0].source is not None
    assert marking.texts[0].source.text == "el perro"
    wrong = {"source": "el gato", "text": "the", "encoder.block.0.attn.q[0,gato]": ["0"] * 7}
    found = byhand.check(model, wrong)
    assert found.first_error is not None
    assert found.first_error.address == "encoder.block.0.attn.q[0,1]"


def test_several_texts_have_a_source_each() -> None:
    model = byhand.open_model(TRANSLATOR)
    sources = ["el gato negro duerme", "el perro"]
    found = list(byhand.traces(model, ["the", ""], sources=sources, numbers="float64"))
    assert [trace.source and trace.source.text for trace in found] == sources
    assert [len(trace.tokens) for trace in found] == [2, 1]
    with pytest.raises(UsageError, match="sources"):
        list(byhand.traces(model, ["the"], sources=sources))


def test_the_served_page_shows_every_passage_of_both_streams() -> None:
    from byhand.serving import answer
    from byhand.serving.states import Library

    state = {"model": {"file": Path(TRANSLATOR).read_text("utf-8")}}
    shown = answer(Library(), "look", {"state": state})
    assert shown["next"]["token"] == "sleeps"
    ids = [one["id"] for one in shown["passages"]]
    (across,) = (one for one in ids if one.endswith("0-cross-weights"))
    whole = answer(Library(), "look", {"state": state, "passage": across})
    assert "duerme" in whole["passage"]["html"]

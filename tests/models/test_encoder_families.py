"""Encoders and encoder–decoders beside the transformers library, and their folders.

`benchmarks.families` has more configs and comparisons.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from benchmarks.families import registry, runs
from safetensors.torch import load_file, save_file

import byhand
from byhand.errors import InputError, TextError, Undecided
from byhand.models import open_model, open_spec
from byhand.models.huggingface.encoders import ENCODERS
from byhand.relative_buckets import buckets
from byhand.spec import ModelSpec, RelativeSpec


def case_of(kind: str, name: str) -> registry.Case:
    return next(case for case in registry.every([kind]) if case.name == name)


def test_every_encoder_has_at_least_six_configs() -> None:
    registry.every()
    assert [kind for kind in ENCODERS if len(registry.CASES.get(kind, ())) < 6] == []


@pytest.mark.parametrize(
    ("kind", "name"),
    [("roberta", "padding"), ("t5", "newer"), ("marian", "apart and scaled")],
)
def test_float64_the_count_and_the_tokens_are_those_of_the_library(kind: str, name: str) -> None:
    with runs.pair(case_of(kind, name), seed=1) as pair:
        assert runs.distance(pair) < registry.NEAR
        ours, theirs = runs.counts(pair)
        assert ours == theirs
        ours, theirs = runs.greedy(pair, count=2)
        assert ours == theirs
        assert not [note for note in pair.ours.notes if "keys byhand does not know" in note]


@pytest.mark.parametrize(("kind", "lines"), [("t5", 150), ("bert", 50)])
def test_a_padded_batch_in_float32_raises_no_alarm(kind: str, lines: int) -> None:
    with runs.pair(case_of(kind, "plain"), seed=2) as pair:
        model: Any = runs.auto(pair.case).from_pretrained(pair.folder, attn_implementation="eager")
        short = [1] * 4 + [0] * 3
        ids = torch.tensor([[5, 7, 3, 9, 11, 4, 6], [5, 7, 3, 9, 1, 1, 1]])
        given = {"input_ids": ids, "attention_mask": torch.tensor([[1] * 7, short])}
        if kind == "t5":
            given["decoder_input_ids"] = torch.tensor([[0, 8, 3], [0, 4, 4]])
        else:
            given["token_type_ids"] = torch.tensor([[0, 1, 2, 0, 1, 2, 0], short])
        marking = byhand.check(pair.ours, byhand.capture(model.eval(), **given))
        assert len(list(marking)) > lines
        assert not marking.unmatched
        assert all(line.verdict.follows for line in marking)


def test_a_mistake_in_the_encoder_is_found_where_it_is() -> None:
    with runs.pair(case_of("bart", "plain"), seed=2) as pair:
        model: Any = runs.auto(pair.case).from_pretrained(pair.folder, attn_implementation="eager")
        model.model.encoder.layers[1].self_attn.scaling *= 1.1
        marking = byhand.check(pair.ours, byhand.capture(model.eval(), **pair.inputs()))
        assert marking.first_error is not None
        assert marking.first_error.address == "encoder.block.1.attn.weights"


def test_gradients_flow_back_to_the_encoder_as_in_torch() -> None:
    with runs.pair(case_of("t5", "more layers"), seed=2) as pair:
        model: Any = runs.auto(pair.case).from_pretrained(pair.folder, attn_implementation="eager")
        labels = torch.tensor([[-100, *range(1, len(pair.ids))]])
        capture = byhand.capture(model.eval(), **pair.inputs(), labels=labels, backward=True)
        marking = byhand.check(pair.ours, capture)
        judged = {line.address for line in marking}
        assert {"grad.weight.encoder.relative", "grad.weight.encoder.block.0.attn.q"} <= judged
        assert all(line.verdict.follows for line in marking)


# ------------------------------------------------------------------ buckets


def test_buckets_of_distances_are_those_of_the_library() -> None:
    from transformers.models.t5.modeling_t5 import T5Attention

    far = torch.arange(-2000, 2001)
    for count, largest in ((32, 128), (16, 1000)):
        for both in (False, True):
            theirs = T5Attention._relative_position_bucket(far, both, count, largest).tolist()
            (ours,) = buckets(RelativeSpec(count, largest, both), [0], far.tolist())
            assert list(ours) == theirs, (count, largest, both)


# ------------------------------------------------------------------ folders


def spec_of(folder: Path, kind: str, name: str = "plain", **settings: Any) -> ModelSpec:
    config = {**case_of(kind, name).settings, "model_type": kind, **settings}
    (folder / "config.json").write_text(json.dumps(config), "utf-8")
    return open_spec(folder / "config.json")


@pytest.mark.parametrize(
    ("kind", "settings", "key"),
    [
        ("bert", {"num_attention_heads": 5}, "num_attention_heads"),
        ("bert", {"position_embedding_type": "relative_key"}, "position_embedding_type"),
        ("bert", {"add_cross_attention": True}, "add_cross_attention"),
        ("electra", {"embedding_size": 12}, "embedding_size"),
        ("roberta", {"max_position_embeddings": 2}, "max_position_embeddings"),
        ("t5", {"feed_forward_proj": "gated-gated-gelu"}, "feed_forward_proj"),
        ("t5", {"dense_act_fn": "silu"}, "dense_act_fn"),
        ("t5", {"is_encoder_decoder": False}, "is_encoder_decoder"),
        ("bart", {"normalize_before": True}, "normalize_before"),
        ("bart", {"decoder_attention_heads": 7}, "decoder_attention_heads"),
        ("marian", {"decoder_vocab_size": 5}, "decoder_vocab_size"),
    ],
)
def test_what_a_family_does_not_do_is_refused_by_its_name(
    tmp_path: Path, kind: str, settings: dict[str, Any], key: str
) -> None:
    with pytest.raises(InputError) as caught:
        spec_of(tmp_path, kind, **settings)
    assert str(caught.value.where).endswith(f"config.json: {key}")


def test_what_the_config_says_of_a_head_is_what_the_first_and_the_newer_t5_mean(
    tmp_path: Path,
) -> None:
    first = spec_of(tmp_path, "t5")
    assert first.tied
    assert first.head_scale is not None
    newer = spec_of(tmp_path, "t5", tie_word_embeddings=False)
    assert not newer.tied
    assert newer.head_scale is None
    saved_anew = spec_of(tmp_path, "t5", tie_word_embeddings=True, scale_decoder_outputs=False)
    assert saved_anew.head_scale is None


def test_a_decoder_of_bert_says_what_comes_next(tmp_path: Path) -> None:
    assert spec_of(tmp_path, "bert").in_place
    decoder = spec_of(tmp_path, "bert", is_decoder=True)
    assert decoder.causal
    assert not decoder.in_place


def test_older_names_of_norms_and_leftovers_of_other_tasks_are_read() -> None:
    with runs.pair(case_of("bert", "plain")) as pair:
        file = pair.folder / "model.safetensors"
        tensors = {
            name.replace("LayerNorm.weight", "LayerNorm.gamma").replace("Norm.bias", "Norm.beta"): x
            for name, x in load_file(file).items()
        }
        for name in ("bert.pooler.dense.weight", "cls.seq_relationship.weight"):
            tensors[name] = torch.zeros(2, 2)
        save_file(tensors, file)
        again = open_model(pair.folder)
        for name, tensor in pair.ours.weights.items():
            assert np.array_equal(tensor.data, again.weights[name].data), name


def test_copies_of_the_embedding_must_be_the_same() -> None:
    with runs.pair(case_of("t5", "plain")) as pair:
        file = pair.folder / "model.safetensors"
        tensors = load_file(file)
        copy = tensors["shared.weight"].clone()
        save_file({**tensors, "encoder.embed_tokens.weight": copy}, file)
        assert open_model(pair.folder).weights["embed.token"].data.shape == (19, 24)
        copy[3, 2] += 1
        save_file({**tensors, "encoder.embed_tokens.weight": copy}, file)
        with pytest.raises(InputError) as caught:
            _data = open_model(pair.folder).weights["embed.token"].data
        assert "encoder.embed_tokens.weight[3,2]" in str(caught.value.where)


def test_a_text_begins_and_goes_on_as_generation_config_says() -> None:
    with runs.pair(case_of("bart", "plain"), seed=1) as pair:
        said = {"decoder_start_token_id": 2, "forced_bos_token_id": 0, "num_beams": 4}
        path = pair.folder / "generation_config.json"
        path.write_text(json.dumps(said), "utf-8")
        model = open_model(pair.folder)
        assert model.start == (2, 0)
        assert "num_beams 4" in model.notes[-1]
        assert byhand.trace(model, "5 6", source="4 4").tokens == (2, 0, 5, 6)
        assert byhand.trace(model, source="4 4").tokens == (2, 0)
        first = next(byhand.generate(model, source="4 4"))
        path.write_text(json.dumps({**said, "bad_words_ids": [[first.id]]}), "utf-8")
        with pytest.raises(Undecided, match="forbids"):
            next(byhand.generate(open_model(pair.folder), source="4 4"))


def test_a_tokenizer_adds_its_signs_to_the_source_and_not_to_the_text() -> None:
    from tokenizers import Tokenizer
    from tokenizers.models import WordLevel
    from tokenizers.pre_tokenizers import Whitespace
    from tokenizers.processors import TemplateProcessing

    with runs.pair(case_of("t5", "plain")) as pair:
        words = {"<pad>": 0, "</s>": 1, "<unk>": 2, "das": 3, "Haus": 4, "the": 5, "house": 6}
        made = Tokenizer(WordLevel(words, unk_token="<unk>"))
        made.pre_tokenizer = Whitespace()
        made.add_special_tokens(["<pad>", "</s>"])
        made.post_processor = TemplateProcessing(single="$A </s>", special_tokens=[("</s>", 1)])
        made.save(str(pair.folder / "tokenizer.json"))
        model = open_model(pair.folder)
        trace = byhand.trace(model, "das Haus", source="the house")
        assert trace.source is not None
        assert trace.source.tokens == (5, 6, 1)
        assert trace.tokens == (0, 3, 4)
        assert byhand.trace(model, source="the house").tokens == (0,)


def test_padding_within_a_text_is_refused_where_it_has_no_position() -> None:
    with runs.pair(case_of("roberta", "padding")) as pair:
        assert byhand.trace(pair.ours, "3 1 5").tokens == (3, 1, 5)
        with pytest.raises(TextError, match="counts no position"):
            byhand.trace(pair.ours, "3 4 5")


def test_a_source_is_needed_and_refused_where_there_is_no_encoder() -> None:
    with runs.pair(case_of("bart", "one head")) as pair:
        with pytest.raises(InputError, match="reads a source and writes a text"):
            byhand.trace(pair.ours, "3 4")
        with pytest.raises(InputError, match="segments do not fit"):
            byhand.trace(pair.ours, "3 4", source="3", segments=[0, 0, 0])
        with pytest.raises(TextError):
            byhand.trace(pair.ours, "3 4", source="3 99")
        with pytest.raises(TextError, match="too long"):
            byhand.trace(pair.ours, "3 4", source="3 " * 41)
    with pytest.raises(InputError, match="reads one text"):
        byhand.trace("tiny", "a b", source="a")

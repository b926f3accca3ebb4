"""The configs of encoders and encoder–decoders."""

from __future__ import annotations

from typing import Any

from benchmarks.families.registry import family

Settings = dict[str, Any]
BERT: Settings = {
    "vocab_size": 19, "hidden_size": 24, "num_hidden_layers": 3, "num_attention_heads": 4,
    "intermediate_size": 15, "max_position_embeddings": 40, "type_vocab_size": 3,
    "pad_token_id": 1, "masked": True,
}  # fmt: skip
ODD: Settings = {"hidden_size": 21, "num_attention_heads": 3, "vocab_size": 17, "length": 7}
KINDS: dict[str, Settings] = {
    "plain": {},
    "odd": ODD,
    "one_kind": {"type_vocab_size": 1, "num_attention_heads": 1, "hidden_act": "gelu_new"},
    "untied": {"tie_word_embeddings": False, "hidden_act": "relu"},
    "wide_eps": {"layer_norm_eps": 0.01, "hidden_act": "silu", "num_hidden_layers": 1},
    "one_token": {"length": 1, "hidden_act": "quick_gelu"},
}

family("bert", BERT, **KINDS)
family("electra", {**BERT, "embedding_size": 24}, **{**KINDS, "odd": {**ODD, "embedding_size": 21}})
family("roberta", {**BERT, "bos_token_id": 0, "eos_token_id": 2}, **KINDS,
       padding={"pad_token_id": 4})  # fmt: skip
family(
    "xlm-roberta",
    {**BERT, "bos_token_id": 0, "eos_token_id": 2}, **KINDS, padding={"pad_token_id": 0},
)  # fmt: skip
family("camembert", {**BERT, "bos_token_id": 5, "eos_token_id": 6}, **KINDS)
family(
    "distilbert",
    {"vocab_size": 19, "dim": 24, "n_layers": 3, "n_heads": 4, "hidden_dim": 15,
     "max_position_embeddings": 40, "masked": True},
    plain={}, odd={"dim": 21, "n_heads": 3, "length": 7}, relu={"activation": "relu"},
    waves={"sinusoidal_pos_embds": True}, untied={"tie_word_embeddings": False},
    one={"n_layers": 1, "n_heads": 1, "length": 1, "activation": "gelu_new"},
)  # fmt: skip

T5: Settings = {
    "vocab_size": 19, "d_model": 24, "d_kv": 6, "d_ff": 15, "num_layers": 2,
    "num_decoder_layers": 3, "num_heads": 4, "relative_attention_num_buckets": 8,
    "relative_attention_max_distance": 11, "decoder_start_token_id": 0, "source": 14,
}  # fmt: skip
NEWER: Settings = {"feed_forward_proj": "gated-gelu", "tie_word_embeddings": False,
                   "own_head": True}  # fmt: skip
family(
    "t5", T5,
    plain={}, newer=NEWER, odd={"d_model": 21, "d_kv": 5, "num_heads": 3},
    silu={"feed_forward_proj": "gated-silu"}, gelu={"feed_forward_proj": "gelu"},
    more_layers={"num_layers": 3, "num_decoder_layers": 1},
    usual_buckets={"relative_attention_num_buckets": 32, "relative_attention_max_distance": 128,
                   "source": 40, "length": 37},
    wide_eps={"layer_norm_epsilon": 0.01, "source": 1},
)  # fmt: skip
family(
    "mt5", T5,
    plain={}, odd={"d_model": 21, "d_kv": 5, "num_heads": 3}, own={"own_head": True},
    relu={"feed_forward_proj": "relu"}, silu={"feed_forward_proj": "gated-silu"},
    more_layers={"num_layers": 3, "num_decoder_layers": 1},
    wide_eps={"layer_norm_epsilon": 0.01, "source": 1},
)  # fmt: skip

BART: Settings = {
    "vocab_size": 19, "d_model": 24, "encoder_layers": 2, "decoder_layers": 3,
    "encoder_attention_heads": 4, "decoder_attention_heads": 3, "encoder_ffn_dim": 15,
    "decoder_ffn_dim": 13, "max_position_embeddings": 40, "pad_token_id": 1, "eos_token_id": 2,
    "bos_token_id": 0, "decoder_start_token_id": 2, "source": 11,
}  # fmt: skip
KIN: dict[str, Settings] = {
    "plain": {},
    "scaled": {"scale_embedding": True, "activation_function": "swish"},
    "even_heads": {"d_model": 18, "encoder_attention_heads": 9, "decoder_attention_heads": 2},
    "untied": {"tie_word_embeddings": False, "activation_function": "relu"},
    "more_layers": {"encoder_layers": 4, "decoder_layers": 1, "source": 1},
    "new_gelu": {"activation_function": "gelu_new", "source": 40},
    "one_head": {"encoder_attention_heads": 1, "decoder_attention_heads": 1, "length": 5},
}
family("bart", BART, **KIN)
family("mbart", BART, **KIN)
family("pegasus", BART, **KIN)
APART: Settings = {"share_encoder_decoder_embeddings": False, "decoder_vocab_size": 17}
family("marian", BART, **KIN, apart=APART, apart_and_scaled={**APART, "scale_embedding": True})

"""Keys of config.json that no family reads.

Some change the arithmetic, some do not, and some are unknown.  The lists come from the
configuration classes of the transformers library.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from fractions import Fraction
from typing import Any

from byhand.errors import InputError
from byhand.files.mapped import shown
from byhand.language import _
from byhand.models.huggingface.config import Config

NOTHING: tuple[Any, ...] = (None, False, 0, "", [], {})
ONE = (None, 1)
# What a model of these families computes as if the key were not there, and where else it is not:
CHANGING: dict[str, tuple[Any, ...]] = {
    # scores and logits
    **dict.fromkeys(("attn_logit_softcapping", "attention_logit_softcapping", "attn_soft_cap",
                     "attn_softcap", "final_logit_softcapping", "logits_soft_cap",
                     "output_softcap", "logit_softcap"), NOTHING),
    **dict.fromkeys(("logit_scale", "logits_scaling", "logits_scale", "attention_multiplier",
                     "embedding_multiplier", "residual_multiplier", "lm_head_multiplier",
                     "logits_multiplier", "key_multiplier", "attention_in_multiplier",
                     "attention_out_multiplier", "mlp_multipliers", "ssm_multipliers",
                     "output_multiplier", "scale_depth", "scale_emb", "dim_model_base",
                     "mup_width_multiplier", "mup_embeddings_multiplier", "residual_scale",
                     "embedding_scale", "hidden_states_scale", "query_pre_attn_scalar",
                     "attention_scale", "attn_scale", "attn_temperature_tuning"), (*ONE, False)),
    "clip_qkv": NOTHING,
    "scale_embedding": NOTHING,
    "scale_embeddings": NOTHING,
    "normalize_embedding": NOTHING,
    # of one family and not of the others
    **dict.fromkeys(("attention_bias", "mlp_bias", "layer_types", "sliding_window",
                     "use_sliding_window", "head_dim", "num_key_value_heads", "rope_scaling",
                     "rope_parameters", "rope_theta", "partial_rotary_factor", "rotary_dim",
                     "rotary_pct", "rotary_emb_base", "rotary_base", "rotary_percent"), NOTHING),
    # attention between positions, and sources of positions
    **dict.fromkeys(("alibi", "use_alibi", "attention_chunk_size", "no_rope_layers",
                     "no_rope_layer_interval", "attention_sink", "attention_sinks",
                     "use_attention_sinks", "is_encoder_decoder", "add_cross_attention",
                     "cross_attention_hidden_size", "tie_encoder_decoder",
                     "use_bidirectional_attention", "relative_attention", "rope_interleaved",
                     "local_rope_theta",
                     "rope_local_base_freq", "per_layer_config", "attn_config",
                     "multi_query", "multi_query_attention", "new_decoder_architecture",
                     "kv_lora_rank", "q_lora_rank", "ngram_size"), NOTHING),
    "is_causal": (None, True),
    "position_embedding_type": (None, "", "absolute"),
    # other kinds of blocks
    **dict.fromkeys(("num_local_experts", "num_experts", "n_routed_experts", "moe_num_experts",
                     "num_experts_per_tok", "n_shared_experts", "num_shared_experts",
                     "moe_intermediate_size", "expert_capacity", "decoder_sparse_step",
                     "first_k_dense_replace", "moe_layer_freq", "router_jitter_noise",
                     "block_configs", "pruned_heads", "parallel_attn", "parallel_residual",
                     "use_parallel_residual",
                     "use_parallel_block", "apply_residual_connection_post_layernorm",
                     "use_post_norm", "sandwich_norm", "num_nextn_predict_layers",
                     "num_kv_shared_layers", "hidden_size_per_layer_input", "laurel_rank",
                     "altup_num_inputs", "layerdrop", "qk_layernorm", "qk_layernorms",
                     "use_qk_norm", "use_qkv_bias", "lm_head_bias", "word_embed_proj_dim",
                     "vision_config", "audio_config", "text_config", "adapter_layers",
                     "compression_config", "sparsity_config"), NOTHING),
    "hidden_activation": (None,),
}  # fmt: skip

HARMLESS = frozenset({
    # about the file
    "architectures", "model_type", "transformers_version", "dtype", "torch_dtype", "_name_or_path",
    "name_or_path", "_commit_hash", "_attn_implementation_autoset", "_flash_attn_2_enabled",
    "attn_implementation", "_attn_implementation", "_attn_implementation_internal",
    "model_max_length",
    "tokenizer_class", "torchscript", "unsloth_version", "unsloth_fixed",
    "use_bfloat16", "tf_legacy_loss", "custom_pipelines", "language", "license", "tokenizer_file",
    # tokens and generation
    "bos_token_id", "eos_token_id", "eod_token_id", "pad_token_id", "sep_token_id",
    "decoder_start_token_id",
    "use_cache", "forced_bos_token_id", "forced_eos_token_id", "max_length", "min_length",
    "do_sample", "early_stopping", "num_beams", "num_beam_groups", "diversity_penalty",
    "temperature", "top_k", "top_p", "typical_p", "repetition_penalty", "length_penalty",
    "no_repeat_ngram_size", "encoder_no_repeat_ngram_size", "bad_words_ids",
    "num_return_sequences", "output_scores", "return_dict_in_generate", "remove_invalid_values",
    "exponential_decay_length_penalty", "suppress_tokens", "begin_suppress_tokens", "prefix",
    "task_specific_params", "max_new_tokens",
    # training
    "attention_dropout", "hidden_dropout", "hidden_dropout_prob", "attention_probs_dropout_prob",
    "classifier_dropout", "attn_pdrop", "embd_pdrop", "resid_pdrop", "initializer_range",
    "gradient_checkpointing", "pretraining_tp", "rope_scaling_type", "max_sequence_length",
    "resid_dropout", "residual_dropout", "embed_dropout", "embedding_dropout", "emb_pdrop",
    "init_device", "output_attentions", "output_hidden_states", "return_dict", "use_return_dict",
    # heads of other tasks, which a language model ignores
    "finetuning_task", "id2label", "label2id", "num_labels", "problem_type", "summary_type",
    "summary_use_proj", "summary_activation", "summary_proj_to_labels", "summary_first_dropout",
    # how weights are packed, which `quantised` reads
    "quantization_config",
    # duplicates of other keys, or settings of the same arithmetic
    "n_ctx", "is_decoder", "reorder_and_upcast_attn", "chunk_size_feed_forward",
    "_sliding_window_pattern", "cache_implementation", "n_positions",
    # of encoders and encoder–decoders: training, other tasks, older versions
    "dropout", "dropout_rate", "activation_dropout", "encoder_layerdrop", "decoder_layerdrop",
    "qa_dropout", "seq_classif_dropout", "classif_dropout", "init_std", "initializer_factor",
    "output_past", "pooler_fc_size", "pooler_num_attention_heads",
    "pooler_num_fc_layers", "pooler_size_per_head", "pooler_type", "directionality",
    "tie_weights_", "summary_last_dropout", "add_bias_logits", "extra_pos_embeddings",
    "force_bos_token_to_be_generated", "save_step", "student",
})  # fmt: skip
OTHER_CODE = ("AutoModel", "AutoModelForCausalLM")


def check_unread(config: Config, family: str) -> tuple[str, ...]:
    """Refuses keys that would change the arithmetic; returns notes on unknown ones."""
    for key in config.table:
        if key in CHANGING and key not in config.asked:
            check_neutral(config, key, CHANGING[key], family)
    check_no_other_code(config)
    known = config.asked | CHANGING.keys() | HARMLESS | {"auto_map"}
    unknown = sorted(key for key in config.table if key not in known)
    if not unknown:
        return ()
    names = ", ".join(shown(key) for key in unknown[:20]) + (", …" if len(unknown) > 20 else "")
    return (_("config.json has keys byhand does not know: {names}").format(names=names),)


def check_neutral(config: Config, key: str, neutral: Iterable[Any], family: str) -> None:
    """Refuses a key that the family does not have, unless its value is neutral."""
    found = config.table[key]
    if any(_same(found, value) for value in neutral):
        return
    raise unsupported(config, key, neutral, family)


def unsupported(config: Config, key: str, neutral: Iterable[Any], family: str) -> InputError:
    """The error for a key that changes the arithmetic."""
    values = ", ".join(json.dumps(value) for value in neutral if value not in ("", [], {}))
    return config.refuse(
        key,
        _("{values}, or no such key").format(values=values),
        message=_("{key} changes the arithmetic, and byhand does not do that for {family}").format(
            key=config.prefix + key, family=family
        ),
    )


def _same(found: Any, value: Any) -> bool:
    numbers = int | Fraction
    if isinstance(found, bool) or isinstance(value, bool):
        return found is value
    if isinstance(found, numbers) and isinstance(value, numbers):
        return found == value
    return type(found) is type(value) and bool(found == value)


def check_no_other_code(config: Config) -> None:
    """Refuses a folder with its own model class, whose computation is unknown."""
    found = config.table.get("auto_map")
    if "auto_map" in config.asked:
        return  # the family knows that code
    if isinstance(found, dict) and any(key in OTHER_CODE for key in found):
        raise config.refuse(
            "auto_map",
            _("a model that the transformers library itself has"),
            message=_("this folder brings code of its own, which byhand does not run"),
        )


def know_their_code(config: Config, starts: tuple[str, ...]) -> None:
    """Accepts the code that the first checkpoints of a family brought: the library has it now."""
    found = config.table.get("auto_map")
    if isinstance(found, dict) and all(
        isinstance(word, str) and word.startswith(starts) for word in found.values()
    ):
        config.asked.add("auto_map")

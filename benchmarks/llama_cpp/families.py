"""Random small models of every architecture, through llama.cpp's converter, worked out by three.

`python -m benchmarks.llama_cpp.families CONVERTER [--seed N] [--only NAME]` makes a model with
transformers, converts it with the scripts of llama.cpp (CONVERTER is the folder of
convert_hf_to_gguf.py), opens the file with byhand and compares the logits in float64 with those of
transformers in float64, and with what llama.cpp computes.  Then llama.cpp's dumps of the model,
with flash attention and without, are judged by `check`.  It ends with an error if one is off, or a
line is called wrong or unusual.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers

import byhand

COMMON: dict[str, Any] = {
    "vocab_size": 96, "hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 2,
    "num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 128,
}  # fmt: skip
EXPERTS = {"num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 32}
LLAMA3 = {
    "rope_type": "llama3", "rope_theta": 10000.0, "factor": 8.0, "low_freq_factor": 1.0,
    "high_freq_factor": 4.0, "original_max_position_embeddings": 32,
}  # fmt: skip
YARN = {
    "rope_type": "yarn", "rope_theta": 10000.0, "factor": 4.0, "beta_fast": 32.0, "beta_slow": 1.0,
    "original_max_position_embeddings": 32,
}  # fmt: skip
DEEPSEEK = {
    "num_key_value_heads": 4, "kv_lora_rank": 16, "q_lora_rank": 24, "qk_nope_head_dim": 16,
    "qk_rope_head_dim": 8, "v_head_dim": 12, "n_routed_experts": 8, "n_shared_experts": 1,
    "num_experts_per_tok": 2, "moe_intermediate_size": 32, "first_k_dense_replace": 1,
    "n_group": 4, "topk_group": 2,
}  # fmt: skip
GPT = {"vocab_size": 96, "n_embd": 64, "n_head": 4, "n_layer": 2, "n_positions": 128}
CASES: dict[str, tuple[str, dict[str, Any]]] = {
    "llama": ("Llama", {"attention_bias": True, "mlp_bias": True}),
    "llama tied": ("Llama", {"tie_word_embeddings": True, "head_dim": 24}),
    "llama3": ("Llama", {"rope_parameters": LLAMA3}),
    "mistral": ("Mistral", {"sliding_window": None}),
    "mixtral": ("Mixtral", {"num_local_experts": 4, "num_experts_per_tok": 2,
                            "sliding_window": None}),
    "qwen2": ("Qwen2", {}),
    "qwen3": ("Qwen3", {"head_dim": 24}),
    "qwen2moe": ("Qwen2Moe", EXPERTS | {"shared_expert_intermediate_size": 48,
                                        "decoder_sparse_step": 1}),
    "qwen3moe": ("Qwen3Moe", EXPERTS | {"head_dim": 24, "norm_topk_prob": True}),
    "gemma": ("Gemma", {"head_dim": 24, "hidden_act": "gelu_pytorch_tanh"}),
    "gemma2": ("Gemma2", {"head_dim": 16, "query_pre_attn_scalar": 16, "sliding_window": 4,
                          "attn_logit_softcapping": 5.0, "final_logit_softcapping": 3.0}),
    "gemma3": ("Gemma3", {"head_dim": 16, "query_pre_attn_scalar": 16, "sliding_window": 4,
                          "num_hidden_layers": 7}),
    "phi2": ("Phi", {"partial_rotary_factor": 0.5, "num_key_value_heads": 4,
                     "intermediate_size": 256}),
    "phi3": ("Phi3", {"pad_token_id": 0, "sliding_window": None}),
    "gpt2": ("GPT2", GPT),
    "gptneox": ("GPTNeoX", {"hidden_act": "gelu_new", "rotary_pct": 0.25}),
    "gptneox serial": ("GPTNeoX", {"hidden_act": "gelu_new", "use_parallel_residual": False}),
    "falcon": ("Falcon", {"multi_query": True,
            "activation": "gelu_new", "num_kv_heads": 1, "parallel_attn": True, "bias": False,
                          "alibi": False, "new_decoder_architecture": False}),
    "falcon new": ("Falcon", {"new_decoder_architecture": True,
            "activation": "gelu_new", "num_kv_heads": 2, "bias": False,
                              "alibi": False}),
    "starcoder2": ("Starcoder2", {"use_bias": True, "sliding_window": None}),
    "stablelm": ("StableLm", {"use_qkv_bias": True, "partial_rotary_factor": 0.5}),
    "stablelm parallel": ("StableLm", {"use_parallel_residual": True}),
    "olmo": ("Olmo", {"clip_qkv": 0.5}),
    "olmo2": ("Olmo2", {}),
    "command-r": ("Cohere", {"logit_scale": 0.25}),
    "granite": ("Granite", {"embedding_multiplier": 3.0, "residual_multiplier": 0.5,
                            "attention_multiplier": 0.2, "logits_scaling": 2.0}),
    "deepseek2": ("DeepseekV2", {
        "num_key_value_heads": 4, "kv_lora_rank": 16, "q_lora_rank": 24, "qk_nope_head_dim": 16,
        "qk_rope_head_dim": 8, "v_head_dim": 12, "n_routed_experts": 4, "n_shared_experts": 1,
        "num_experts_per_tok": 2, "moe_intermediate_size": 32, "first_k_dense_replace": 1,
        "topk_method": "greedy", "n_group": 1, "topk_group": 1}),
    "deepseek3": ("DeepseekV3", DEEPSEEK),
    "gpt-oss": ("GptOss", {
        "num_local_experts": 4, "num_experts_per_tok": 2, "head_dim": 16, "sliding_window": 4,
        "rope_parameters": YARN | {"truncate": True}}),
    "linear": ("Llama", {"rope_parameters": {
        "rope_type": "linear", "rope_theta": 10000.0, "factor": 3.0}}),
    "yarn": ("Qwen2", {"rope_parameters": YARN}),
    "yarn of deepseek": ("DeepseekV3", DEEPSEEK | {
        "rope_parameters": YARN | {"mscale": 1.0, "mscale_all_dim": 1.0}}),
    "longrope": ("Phi3", {
        "pad_token_id": 0, "sliding_window": None, "max_position_embeddings": 1024,
        "original_max_position_embeddings": 512,
        "rope_parameters": {
            "rope_type": "longrope", "rope_theta": 10000.0,
            "short_factor": [1.0, 1.25, 1.5, 1.75, 2.0, 2.5, 3.0, 3.5],
            "long_factor": [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0],
            "original_max_position_embeddings": 512}}),
}  # fmt: skip


IDS = [5, 17, 3, 60, 42, 8, 77, 30, 11]


def make(kind: str, own: dict[str, Any], seed: int) -> Any:
    """A model of this class with numbers that make every term count."""
    torch.manual_seed(seed)
    config_class = getattr(transformers, f"{kind}TextConfig", None) or getattr(
        transformers, f"{kind}Config"
    )
    settings = own if kind == "GPT2" else COMMON | own
    config = config_class(**settings)
    for key in ("initializer_range", "tie_word_embeddings"):
        if key == "initializer_range":
            setattr(config, key, 0.2)
    config._experts_implementation = "eager"
    model_class = getattr(
        transformers, f"{kind}{'LMHeadModel' if kind == 'GPT2' else 'ForCausalLM'}"
    )
    model = model_class(config).eval().float()
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if weight.ndim == 1:
                usual = 1.0 if name.endswith("weight") and "norm" in name.lower() else 0.0
                weight.copy_(usual + 0.2 * torch.randn_like(weight))
        for name, buffer in model.named_buffers():
            if name.endswith("e_score_correction_bias"):
                buffer.copy_(0.2 * torch.randn_like(buffer))
    return model


def _older_keys(table: dict[str, Any]) -> dict[str, Any]:
    """The settings with those that the converter asks for and transformers has moved."""
    if table["model_type"] == "gpt2":
        table |= {"n_ctx": table["n_positions"]}
    if table["model_type"] == "deepseek_v3":
        table |= {"scoring_func": "sigmoid"}
    if table["model_type"] == "gpt_neox":
        rope = table["rope_parameters"]
        table |= {"rotary_pct": rope.get("partial_rotary_factor", 1.0),
                  "rotary_emb_base": rope["rope_theta"]}  # fmt: skip
    return table


def convert(folder: Path, path: Path) -> None:
    """llama.cpp's own conversion, without a tokenizer."""
    import gguf
    from conversion import ModelBase, ModelType, get_model_architecture, get_model_class

    settings = _older_keys(ModelBase.load_hparams(folder, False))
    name = get_model_architecture(settings, ModelType.TEXT)
    base = get_model_class(name)

    def no_words(self: Any) -> None:
        self._set_vocab_none()
        if "llama" not in str(self.gguf_writer.arch):
            self.gguf_writer.add_vocab_size(self.hparams["vocab_size"])

    writer = type(base.__name__, (base,), {"set_vocab": no_words, "model_arch": base.model_arch})
    writer(folder, gguf.LlamaFileType.ALL_F32, path, eager=True, hparams=settings).write()


def judged(path: Path, tokens: list[int]) -> tuple[int, int, float]:
    """Lines of two dumps, how many of them are not right or unusual, and the largest × usual."""
    from benchmarks.llama_cpp.engine import run

    lines = []
    for flash in (False, True):
        dump = run(path, tokens, steps=True, flash=flash)
        text = " ".join(map(str, tokens))
        lines += byhand.check(path, dump.steps, text=text, suspects=False).texts[0].lines
    odd = [line for line in lines if line.verdict.value != "right" or line.unusual]
    return len(lines), len(odd), max(line.times or 0.0 for line in lines)


def compared(
    name: str, seed: int, scratch: Path
) -> tuple[float, float, float, tuple[int, int, float]]:
    """How far byhand is from transformers and llama.cpp, the largest logit, and what is judged."""
    from benchmarks.llama_cpp.engine import F32, run

    model = make(*CASES[name], seed)
    folder, path = scratch / name, scratch / f"{name}.gguf"
    model.save_pretrained(folder)
    words = {"model": {"vocab": [str(id) for id in range(96)]}, "added_tokens": []}
    (folder / "tokenizer.json").write_text(json.dumps(words))  # Gemma 3 counts its words
    convert(folder, path)
    ids = IDS
    with torch.no_grad():
        truth = model.double()(torch.tensor([ids])).logits[0].numpy()
    own = byhand.trace(path, " ".join(map(str, ids)), numbers="float64")["logits"].array
    engine = run(path, ids, cache=F32).logits
    return (
        float(np.abs(own - truth).max()),
        float(np.abs(own - engine).max()),
        float(np.abs(truth).max()),
        judged(path, ids),
    )


def quantised(seed: int, scratch: Path) -> int:
    """A Llama with rows of whole blocks, all of one type: how many odd lines its dumps have."""
    from benchmarks.llama_cpp.engine import FILE_TYPES, quantise

    model = make("Llama", {"hidden_size": 256, "intermediate_size": 512}, seed)
    folder, plain = scratch / "wide", scratch / "wide.gguf"
    model.save_pretrained(folder)
    convert(folder, plain)
    found = 0
    for kind in FILE_TYPES:
        path = scratch / f"wide-{kind}.gguf"
        quantise(plain, path, kind, pure=True)
        lines, odd, times = judged(path, IDS)
        print(f"{kind:18} {lines} lines, {odd} odd, {times:.1f} × usual" + "  OFF" * bool(odd))
        found += odd
    return found


def main() -> None:
    """Compares all architectures."""
    parser = argparse.ArgumentParser()
    parser.add_argument("converter", type=Path)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", choices=CASES)
    asked = parser.parse_args()
    sys.path[:0] = [str(asked.converter), str(asked.converter / "gguf-py")]
    wrong = 0
    with tempfile.TemporaryDirectory() as folder:
        for name in [asked.only] if asked.only else CASES:
            try:
                truth, engine, size, (lines, odd, times) = compared(name, asked.seed, Path(folder))
            except Exception as error:
                print(f"{name:18} {type(error).__name__}: {str(error)[:300]}")
                if asked.only:
                    raise
                wrong += 1
                continue
            # float32 settings and islands of transformers; float32 sums of llama.cpp,
            # whose gelu is a table of float16
            fine = truth < 2e-6 * size and engine < 2e-3 * size and not odd
            wrong += not fine
            print(
                f"{name:18} transformers {truth:.1e}  llama.cpp {engine:.1e}  of {size:.2f};"
                f" {lines} lines, {odd} odd, {times:.1f} × usual" + "  OFF" * (not fine)
            )
        if not asked.only:
            wrong += quantised(asked.seed, Path(folder))
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()

"""Dumps that TransformerLens and ONNX Runtime make themselves, judged without a false alarm.

    python benchmarks/foreign_dumps.py make lens FOLDER   where transformer_lens is installed
    python benchmarks/foreign_dumps.py make onnx FOLDER   where onnx and onnxruntime are
    python benchmarks/foreign_dumps.py check FOLDER       where byhand is

`make` saves small random models of `transformers` (seeds 0 to 2) and what the library gives for
them: TransformerLens as it is, with its processing, without it, and with refactored matrices; ONNX
graphs with every tensor as an output.  `check` counts verdicts, and a planted mistake for each.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

IDS = [[3, 1, 4, 1, 5, 9]]
SIZES: dict[str, Any] = {"vocab_size": 50, "bos_token_id": 0, "eos_token_id": 0}
WIDE: dict[str, Any] = {
    "hidden_size": 24, "intermediate_size": 40, "num_hidden_layers": 2,
    "max_position_embeddings": 16, **SIZES,
}  # fmt: skip
MODES: dict[str, dict[str, bool] | None] = {
    "raw": None,
    "processed": {},
    "unprocessed": {"no_processing": True},
    "refactored": {"refactor_factored_attn_matrices": True},
}


def models(seed: int) -> Iterator[tuple[str, Any]]:
    """Random models of transformers, no weight at its usual size."""
    import torch
    import transformers

    configs = {
        "gpt2": transformers.GPT2Config(n_embd=24, n_layer=2, n_head=4, n_positions=16, **SIZES),
        "llama": transformers.LlamaConfig(num_attention_heads=4, num_key_value_heads=2, **WIDE),
        "qwen2": transformers.Qwen2Config(num_attention_heads=4, num_key_value_heads=2, **WIDE),
        "gpt_neox": transformers.GPTNeoXConfig(num_attention_heads=3, **WIDE),
    }
    for name, config in configs.items():
        torch.manual_seed(seed)
        config._attn_implementation, config.use_cache = "eager", False
        model = transformers.AutoModelForCausalLM.from_config(config).eval()
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.copy_(torch.randn(parameter.shape) * 0.3)
        yield f"{name}-{seed}", model


def _vocabulary(folder: Path) -> Any:
    """A tokenizer of whole words, saved beside the model."""
    import transformers
    from tokenizers import Tokenizer, models, pre_tokenizers

    words = Tokenizer(models.WordLevel({str(id): id for id in range(50)}, unk_token="0"))
    words.pre_tokenizer = pre_tokenizers.Whitespace()
    made = transformers.PreTrainedTokenizerFast(
        tokenizer_object=words, unk_token="0", bos_token="0", eos_token="0"
    )
    made.save_pretrained(folder)
    return transformers.AutoTokenizer.from_pretrained(folder)


def make_lens(folder: Path) -> None:
    """The caches of TransformerLens' bridge, in every mode."""
    import torch
    import transformers
    from transformer_lens.model_bridge import TransformerBridge

    for seed in range(3):
        for name, model in models(seed):
            place = folder / name
            model.save_pretrained(place)
            words = _vocabulary(place)
            for mode, settings in MODES.items():
                if mode == "refactored" and not name.startswith("gpt2"):
                    continue  # TransformerLens refuses it with RoPE
                fresh = transformers.AutoModelForCausalLM.from_pretrained(
                    place, attn_implementation="eager"
                )
                bridge = TransformerBridge.boot_transformers(
                    str(place), hf_model=fresh.eval(), tokenizer=words, dtype=torch.float32
                )
                if settings is not None:
                    bridge.enable_compatibility_mode(disable_warnings=True, **settings)
                with torch.no_grad():
                    logits, cache = bridge.run_with_cache(torch.tensor(IDS))
                arrays = {key: value.numpy() for key, value in cache.items()
                          if torch.is_tensor(value)}  # fmt: skip
                np.savez(
                    folder / f"{name}.{mode}.npz", input_ids=np.array(IDS),
                    logits=logits.numpy(), **arrays,
                )  # fmt: skip


def make_onnx(folder: Path) -> None:
    """Every tensor of the graphs that torch.onnx exports, worked out by ONNX Runtime."""
    import onnx
    import onnxruntime
    import torch

    for seed in range(3):
        for name, model in models(seed):
            if name.startswith("gpt2"):
                continue  # its second input is a cache, which torch.onnx cannot trace
            model.save_pretrained(folder / name)
            file = folder / f"{name}.onnx"
            given = (torch.tensor(IDS), torch.ones(1, 6, dtype=torch.long))
            torch.onnx.export(model, given, file, dynamo=False, opset_version=17,
                              input_names=["input_ids", "attention_mask"])  # fmt: skip
            graph = onnx.load(file)
            there = {output.name for output in graph.graph.output}
            for node in graph.graph.node:
                for output in {*node.output} - there - {""}:
                    graph.graph.output.append(onnx.ValueInfoProto(name=output))
            session = onnxruntime.InferenceSession(graph.SerializeToString())
            values = {"input_ids": np.array(IDS), "attention_mask": np.ones((1, 6), np.int64),
                      "logits_to_keep": np.array(0)}  # fmt: skip
            feed = {each.name: values[each.name] for each in session.get_inputs()}
            names = [output.name for output in session.get_outputs()]
            arrays = dict(zip(names, session.run(names, feed), strict=True))
            inner = {key: value for key, value in arrays.items() if key.startswith("/")}
            np.savez(folder / f"{name}.onnx.npz", input_ids=np.array(IDS), **inner)


def check(folder: Path) -> None:
    """Verdicts on every dump, and on the same dump with one number changed."""
    import byhand

    for file in sorted(folder.glob("*.npz")):
        model = byhand.open_model(folder / file.name.split(".")[0])
        marking = byhand.check(model, file)
        counts = Counter(line.verdict.value for line in marking)
        arrays = dict(np.load(file))
        name = next(line.claim.name for line in marking if line.address.endswith(".mlp.out"))
        again = [key for key in arrays if np.array_equal(arrays[key], arrays[name])]
        for same in again:
            arrays[same] = arrays[same].copy()  # a step may have several names
            arrays[same].flat[5] += 0.1
        found = byhand.check(model, arrays, suspects=False).first_error
        caught = found is not None and found.claim.address.endswith(".mlp.out")
        said = next((each.how for each in marking.texts[0].readings if each.name == "hook_*"), "")
        print(f"{file.name}: {dict(counts)}; planted mistake found: {caught}; {said}")


MAKERS = {"lens": make_lens, "onnx": make_onnx}

if __name__ == "__main__":
    do = MAKERS[sys.argv[2]] if sys.argv[1] == "make" else check
    do(Path(sys.argv[-1]))

"""A checkpoint that is larger than memory need be: weights stream from the disk, scored in float32.

    python -m benchmarks.streaming [--layers N] [--scratch FOLDER] [--record]

Writes a Llama-like checkpoint in bfloat16 with random weights (32 layers: 6.7 billion parameters,
13.5 GB) and scores four texts of 64 tokens in a process of its own, on one thread.  Told are the
processor time and the largest memory that the process held by itself, without the file's pages that
the system keeps.  `--record` writes them for docs/corpora.md.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np

WIDTH, HEADS, D_FF, VOCAB = 4096, 32, 11_008, 32_000
TEXTS, LENGTH = 4, 64
BLOCK = 1 << 24  # numbers that are drawn; tensors repeat them from different places
RECORD = Path(__file__).parent.parent / "docs" / "streaming.json"
SCORE = """
import json, sys, threading, time
import numpy as np
from byhand import open_model
from byhand.scoring.samples import Sample
from byhand.scoring.scorer import Scorer

def own():
    fields = open("/proc/self/status").read().split()
    return int(fields[fields.index("RssAnon:") + 1])

most, done = 0, threading.Event()
def watch():
    global most
    while not done.wait(0.05):
        most = max(most, own())

model = open_model(sys.argv[1])
random = np.random.default_rng(0)
ids = [tuple(random.integers(0, model.spec.vocab, {length}).tolist()) for _ in range({texts})]
threading.Thread(target=watch).start()
start = time.process_time()
scored = list(Scorer(model, "float32").score([Sample(str(n), each) for n, each in enumerate(ids)]))
seconds = time.process_time() - start
done.set()
print(json.dumps({{"seconds": round(seconds, 1), "megabytes": round(max(most, own()) / 1024),
                   "finite": all(bool(np.isfinite(each.logprobs).all()) for each in scored)}}))
"""


def shapes(layers: int) -> dict[str, tuple[int, ...]]:
    """The tensors of a Llama by their names."""
    found: dict[str, tuple[int, ...]] = {"model.embed_tokens.weight": (VOCAB, WIDTH)}
    for layer in range(layers):
        at = f"model.layers.{layer}"
        for name in "qkvo":
            found[f"{at}.self_attn.{name}_proj.weight"] = (WIDTH, WIDTH)
        found[f"{at}.mlp.gate_proj.weight"] = found[f"{at}.mlp.up_proj.weight"] = (D_FF, WIDTH)
        found[f"{at}.mlp.down_proj.weight"] = (WIDTH, D_FF)
        found[f"{at}.input_layernorm.weight"] = (WIDTH,)
        found[f"{at}.post_attention_layernorm.weight"] = (WIDTH,)
    return found | {"model.norm.weight": (WIDTH,), "lm_head.weight": (VOCAB, WIDTH)}


def write(folder: Path, layers: int) -> int:
    """The checkpoint; how many parameters it has."""
    random = np.random.default_rng(7)
    drawn = random.standard_normal(BLOCK, dtype=np.float32) * np.float32(0.02)
    block = drawn.astype(ml_dtypes.bfloat16).tobytes()
    ones = np.ones(WIDTH, ml_dtypes.bfloat16).tobytes()
    config = {
        "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": WIDTH,
        "num_attention_heads": HEADS, "num_key_value_heads": HEADS, "num_hidden_layers": layers,
        "intermediate_size": D_FF, "vocab_size": VOCAB, "max_position_embeddings": 2048,
        "rms_norm_eps": 1e-5, "rope_theta": 10_000.0, "hidden_act": "silu",
        "tie_word_embeddings": False, "torch_dtype": "bfloat16",
    }  # fmt: skip
    (folder / "config.json").write_text(json.dumps(config))
    header: dict[str, Any] = {}
    end = 0
    for name, shape in shapes(layers).items():
        size = 2 * int(np.prod(shape))
        header[name] = {"dtype": "BF16", "shape": shape, "data_offsets": [end, end + size]}
        end += size
    head = json.dumps(header).encode()
    head += b" " * (-len(head) % 8)
    with (folder / "model.safetensors").open("wb") as file:
        file.write(len(head).to_bytes(8, "little") + head)
        for place, shape in enumerate(shapes(layers).values()):
            size = 2 * int(np.prod(shape))
            turned = block[2 * (place * 9973 % BLOCK) :] + block
            data = ones if len(shape) == 1 else turned * (size // len(turned) + 1)
            file.write(memoryview(data)[:size])
    return end // 2


def main() -> None:
    """Writes the checkpoint, scores with it, and tells what that took."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--layers", type=int, default=32)
    parser.add_argument("--scratch", type=Path)
    parser.add_argument("--record", action="store_true")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=asked.scratch) as made:
        folder = Path(made)
        parameters = write(folder, asked.layers)
        disk = (folder / "model.safetensors").stat().st_size
        script = SCORE.format(length=LENGTH, texts=TEXTS)
        done = subprocess.run(
            [sys.executable, "-c", script, made], capture_output=True, text=True, check=False
        )
    if done.returncode:
        sys.exit(done.stderr)
    found = {"parameters": parameters, "gigabytes": round(disk / 1e9, 1), "texts": TEXTS,
             "length": LENGTH, **json.loads(done.stdout)}  # fmt: skip
    print(found)
    if asked.record:
        RECORD.write_text(json.dumps(found, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main()

"""Real sizes: a whole float32 trace beside one plain forward pass of `transformers`.

The models are made here with random weights, saved as Hugging Face folders, and read back by both
sides.  Each has one thread, timed in turn in one process; memory is measured in separate
processes.  Also: the memory of `--only logits` for a model of a gigabyte, and the size of an
installation.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
ONE_THREAD = dict.fromkeys(THREADS, "1")
LENGTH, ROUNDS = 32, 41


def gpt2_small() -> Any:
    from transformers import GPT2Config, GPT2LMHeadModel

    return GPT2LMHeadModel(GPT2Config())  # the defaults are GPT-2 small: 124 million


def llama_like() -> Any:
    """A model of GPT-2 small's size built like Llama: grouped queries, gated MLP, RoPE."""
    from transformers import LlamaConfig, LlamaForCausalLM

    return LlamaForCausalLM(
        LlamaConfig(
            vocab_size=32_000,
            hidden_size=768,
            intermediate_size=2048,
            num_hidden_layers=12,
            num_attention_heads=12,
            num_key_value_heads=4,
            max_position_embeddings=2048,
            tie_word_embeddings=True,
        )
    )


def a_gigabyte() -> Any:
    """269 million parameters, 1.07 GB in float32."""
    from transformers import LlamaConfig, LlamaForCausalLM

    return LlamaForCausalLM(
        LlamaConfig(
            vocab_size=32_000,
            hidden_size=1024,
            intermediate_size=2816,
            num_hidden_layers=20,
            num_attention_heads=16,
            num_key_value_heads=8,
            tie_word_embeddings=True,
        )
    )


@contextmanager
def folder_of(make: Callable[[], Any]) -> Iterator[Path]:
    """The model saved as a Hugging Face folder."""
    import torch

    torch.manual_seed(0)
    with tempfile.TemporaryDirectory() as place:
        make().save_pretrained(place)
        yield Path(place)


@dataclass(frozen=True)
class Timing:
    """Seconds of alternating rounds: (a whole trace, a plain pass)."""

    rounds: list[tuple[float, float]]
    tensors: int  # kept by the trace

    def __str__(self) -> str:
        ours, theirs = zip(*self.rounds, strict=True)
        ratio = median(a / b for a, b in self.rounds)
        return (
            f"trace of {self.tensors} tensors {median(ours):.3f} s, transformers "
            f"{median(theirs):.3f} s, ratio {ratio:.2f} (of the fastest rounds "
            f"{min(ours) / min(theirs):.2f})"
        )


def trace_against_transformers(make: Callable[[], Any]) -> Timing:
    """A whole trace beside a plain forward pass of the same weights, timed in turn."""
    import numpy as np
    import torch
    from transformers import AutoModelForCausalLM

    import byhand

    torch.set_num_threads(1)
    with folder_of(make) as folder, torch.inference_mode():
        theirs = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
        ours = byhand.open_model(folder)
        ids = [(7 * place + 1) % ours.spec.vocab for place in range(LENGTH)]
        text = " ".join(map(str, ids))
        tokens = torch.tensor([ids])

        def trace() -> Any:
            return byhand.trace(ours, text, float="float32")

        def forward() -> Any:
            return theirs(tokens, use_cache=False)

        worked, logits = trace(), forward().logits[0].numpy()
        distance = np.abs(worked["logits"].array - logits).max() / np.abs(logits).max()
        assert distance < 1e-4, f"the two passes differ by {distance}"
        pairs = [(_seconds(trace), _seconds(forward)) for _round in range(ROUNDS)]
    return Timing(pairs, len({id(step.value) for step in worked}))


def _seconds(work: Callable[[], object]) -> float:
    start = perf_counter()
    work()
    return perf_counter() - start


# ------------------------------------------------------------------ memory

OURS = """
import byhand
model = byhand.open_model({folder!r})
trace = byhand.trace(model, {text!r}, float="float32", only={only!r})
assert trace["logits"].array.shape == ({length}, model.spec.vocab)
"""
THEIRS = """
import torch
from transformers import AutoModelForCausalLM
torch.set_num_threads(1)
with torch.inference_mode():
    model = AutoModelForCausalLM.from_pretrained({folder!r}, dtype=torch.float32)
    model(torch.tensor([[int(i) for i in {text!r}.split()]]), use_cache=False)
"""
PEAK = """
print(next(line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM")))
"""  # and not ru_maxrss, which a child inherits from the process that started it


def peak(program: str) -> int:
    """The peak resident memory of a new process, mapped files included."""
    done = subprocess.run(
        [sys.executable, "-c", program + PEAK],
        check=True,
        capture_output=True,
        text=True,
        env={**os.environ, **ONE_THREAD},
    )
    return 1024 * int(done.stdout.split()[-1])


def memory_of(make: Callable[[], Any], only: tuple[str, ...] = ()) -> tuple[int, int, int]:
    """(bytes of the weights, peak of the trace, peak of a plain pass of transformers)."""
    text = " ".join(str(7 * place + 1) for place in range(LENGTH))
    with folder_of(make) as folder:
        size = sum(file.stat().st_size for file in folder.glob("*.safetensors"))
        said = {"folder": str(folder), "text": text, "only": only, "length": LENGTH}
        return size, peak(OURS.format(**said)), peak(THEIRS.format(**said))


# ------------------------------------------------------------------ what an installation weighs


def installed(extra: str = "") -> int:
    """The bytes that `pip install byhand` brings, without pip itself."""
    project = Path(__file__).parent.parent
    with tempfile.TemporaryDirectory() as place:
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-compile"]
        command += ["--disable-pip-version-check", "--target", place, f"{project}{extra}"]
        subprocess.run(command, check=True, capture_output=True)
        shutil.rmtree(Path(place) / "bin", ignore_errors=True)
        return sum(file.stat().st_size for file in Path(place).rglob("*") if file.is_file())


def main() -> None:
    mega = 1_000_000
    print(f"{LENGTH} tokens, float32, one thread, medians of {ROUNDS} rounds in turn")
    for name, make in (("GPT-2 small", gpt2_small), ("Llama-like", llama_like)):
        timing = trace_against_transformers(make)
        size, peak_ours, peak_theirs = memory_of(make)
        print(
            f"  {name:12} {timing}; peak memory {peak_ours / mega:,.0f} MB, "
            f"transformers {peak_theirs / mega:,.0f} MB (weights {size / mega:,.0f} MB)"
        )
    size, ours_peak, theirs_peak = memory_of(a_gigabyte, ("logits",))
    print(
        f"  {'a gigabyte':12} --only logits: peak {ours_peak / mega:,.0f} MB = "
        f"{ours_peak / size:.2f} × the {size / mega:,.0f} MB of weights; "
        f"transformers {theirs_peak / size:.2f} ×"
    )
    for extra in ("", "[hf]"):
        print(f"  installed byhand{extra}: {installed(extra) / mega:,.0f} MB")


if __name__ == "__main__":
    if any(os.environ.get(name) != "1" for name in THREADS):  # BLAS reads them when it is loaded
        os.execve(
            sys.executable,
            [sys.executable, "-m", "benchmarks.checkpoints"],
            {**os.environ, **ONE_THREAD},
        )
    main()

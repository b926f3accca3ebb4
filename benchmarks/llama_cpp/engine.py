"""llama.cpp through ctypes: what it computes at every step of a text, and its own quantiser.

The bindings are those of llama-cpp-python; the environment variable LLAMA_CPP_LIB_PATH names a
folder with a library that was built elsewhere.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import llama_cpp.llama_cpp as lib
import numpy as np

F32, F16, I32 = 0, 1, 26
FORMATS = {F32: np.dtype("<f4"), F16: np.dtype("<f2"), I32: np.dtype("<i4")}
FILE_TYPES = {
    "F16": 1, "Q4_0": 2, "Q4_1": 3, "Q8_0": 7, "Q5_0": 8, "Q5_1": 9, "Q2_K": 10, "Q3_K": 12,
    "Q4_K": 15, "Q5_K": 17, "Q6_K": 18, "IQ4_NL": 25, "IQ4_XS": 30, "BF16": 32, "TQ1_0": 36,
    "TQ2_0": 37, "MXFP4": 38,
}  # fmt: skip
_SILENT = lib.llama_log_callback(lambda _level, _text, _data: None)


class _Tensor(ctypes.Structure):
    """ggml_tensor, as far as a dump needs it."""

    _fields_ = (
        ("type", ctypes.c_int),
        ("buffer", ctypes.c_void_p),
        ("ne", ctypes.c_int64 * 4),
        ("nb", ctypes.c_size_t * 4),
        ("op", ctypes.c_int),
        ("op_params", ctypes.c_int32 * 16),
        ("flags", ctypes.c_int32),
        ("src", ctypes.c_void_p * 10),
        ("view_src", ctypes.c_void_p),
        ("view_offs", ctypes.c_size_t),
        ("data", ctypes.c_void_p),
        ("name", ctypes.c_char * 64),
    )

    def array(self) -> np.ndarray | None:
        """A copy of the numbers, the innermost side last; None for formats that are packed."""
        dtype = FORMATS.get(self.type)
        if dtype is None or not self.data:
            return None
        size = 1 + sum(
            (count - 1) * step for count, step in zip(self.ne, self.nb, strict=True)
        ) + dtype.itemsize - 1  # fmt: skip
        raw = np.frombuffer((ctypes.c_char * size).from_address(self.data), np.uint8)
        view = np.ndarray(tuple(self.ne)[::-1], dtype, raw.data, strides=tuple(self.nb)[::-1])
        return view.copy()


@dataclass
class Run:
    """What llama.cpp gave for one text."""

    logits: np.ndarray  # (pos, vocab)
    # by name; Qcur-0#1 is the second of its name
    steps: dict[str, np.ndarray] = field(default_factory=dict)


def run(
    path: Path,
    tokens: Sequence[int],
    *,
    steps: bool = False,
    cache: int = F16,
    flash: bool = False,
    repack: bool = True,
    threads: int = 1,
) -> Run:
    """One pass over a text.  `cache` is the format of keys and values that are kept."""
    lib.llama_log_set(_SILENT, None)
    lib.llama_backend_init()
    settings = lib.llama_model_default_params()
    settings.use_extra_bufts = repack
    model = lib.llama_model_load_from_file(str(path).encode(), settings)
    if not model:
        raise RuntimeError(f"llama.cpp does not open {path}")
    found: dict[str, np.ndarray] = {}

    @lib.ggml_backend_sched_eval_callback
    def seen(address: int, asking: bool, _data: object) -> bool:
        if not asking:
            tensor = _Tensor.from_address(address)
            if (data := tensor.array()) is not None:
                name, time = tensor.name.decode(), 0
                while (name if not time else f"{name}#{time}") in found:
                    time += 1
                found[name if not time else f"{name}#{time}"] = data
        return True

    asked = lib.llama_context_default_params()
    asked.n_ctx = max(64, len(tokens))
    asked.n_batch = asked.n_ubatch = asked.n_ctx
    asked.n_threads = asked.n_threads_batch = threads
    asked.type_k = asked.type_v = cache
    asked.flash_attn_type = 1 if flash else 0
    if steps:
        asked.cb_eval = seen
    context = lib.llama_init_from_model(model, asked)
    if not context:
        raise RuntimeError(f"llama.cpp cannot run {path}")
    count = len(tokens)
    batch = lib.llama_batch_init(count, 0, 1)
    batch.n_tokens = count
    for place, token in enumerate(tokens):
        batch.token[place], batch.pos[place] = token, place
        batch.n_seq_id[place], batch.logits[place] = 1, 1
        batch.seq_id[place][0] = 0
    if lib.llama_decode(context, batch):
        raise RuntimeError("llama.cpp cannot decode")
    vocab = lib.llama_vocab_n_tokens(lib.llama_model_get_vocab(model))
    rows = [
        np.ctypeslib.as_array(lib.llama_get_logits_ith(context, place), (vocab,)).copy()
        for place in range(count)
    ]
    lib.llama_batch_free(batch)
    lib.llama_free(context)
    lib.llama_model_free(model)
    return Run(np.array(rows), found)


def quantise(source: Path, target: Path, kind: str, *, pure: bool = False) -> None:
    """Quantises a file as llama.cpp does, with its choice of types unless it is to be pure."""
    lib.llama_log_set(_SILENT, None)
    settings = lib.llama_model_quantize_default_params()
    settings.ftype = FILE_TYPES[kind]
    settings.nthread = 1
    settings.pure = pure
    failed = lib.llama_model_quantize(
        str(source).encode(), str(target).encode(), ctypes.byref(settings)
    )
    if failed:
        raise RuntimeError(f"llama.cpp does not quantise {source} to {kind}")

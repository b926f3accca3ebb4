"""Bugs of caches and batches: positions that do not go on, buffers that are not written."""

from __future__ import annotations

import torch
from torch import Tensor

from benchmarks.museum.catalogue import exhibit
from benchmarks.museum.replicas import Replica

GITHUB = "https://github.com"
TURNED = "block.0.attn.q_rotated"
PROMPT = 7  # tokens that were worked out at once; the others came one by one


@exhibit(
    "caches",
    f"{GITHUB}/unslothai/unsloth/issues/3699",
    2025,
    "Batched generation with left-padding produces incorrect output",
    family="llama",
    shows=TURNED,
    says="5 positions",
    batch=True,
)
def slots_for_positions(port: Replica, padding: int) -> None:
    """Texts of a batch were padded on the left.  The slot of the cache was taken for the position,
    for all texts alike, so the shorter ones counted their padding.

    Slot and position are one number until there is padding.
    """
    port.places = port.places + padding


@exhibit(
    "caches",
    f"{GITHUB}/axolotl-ai-cloud/axolotl/pull/3796",
    2026,
    "fix: correct and streamline multipack packing decontamination across attn backends",
    family="llama",
    shows="block.0.attn.weights",
    says="packed into the row see each other",
    texts=(PROMPT, 5),
)
def packed_texts_see_each_other(port: Replica) -> None:
    """Several texts were packed into one row, to waste no padding.  With two of the attention
    functions the texts' borders never reached the mask, and each text read those before it.

    The positions did begin again with each text.  That alone separates nothing.
    """
    port.owners = torch.zeros_like(port.owners)


@exhibit(
    "caches",
    f"{GITHUB}/huggingface/nanoVLM/pull/204",
    2026,
    "Fix packed sequence position IDs and cross-sample attention",
    family="llama",
    shows=TURNED,
    says="positions are larger by 7",
    texts=(PROMPT, 5),
)
def packed_positions_go_on(port: Replica) -> None:
    """The reverse half: positions went on through a packed row, so a text that is second in its row
    was trained at positions that it never has when it is read alone.

    Packing has two parts, the mask and the positions.  Each can be forgotten alone.
    """
    port.places = torch.arange(len(port.places))


@exhibit(
    "caches",
    f"{GITHUB}/Blaizzy/mlx-vlm/issues/1983",
    2026,
    "Qwen3-Omni: decode assigns RoPE position 0 to every token (get_rope_index ignores cache "
    "offset)",
    family="llama",
    shows=TURNED,
    says="from position 7 on, every position is turned as position 0",
)
def every_new_token_is_first(port: Replica) -> None:
    """Positions were counted from the start of the tokens at hand.  That is right for a prompt, and
    0 for every token that is generated after it.

    A prompt and the tokens after it take two paths.  Dump both.
    """
    port.places = torch.where(port.places < PROMPT, port.places, 0)


@exhibit(
    "caches",
    f"{GITHUB}/skyzh/tiny-llm/pull/46",
    2025,
    "fix: Add flash attention option and fix token offset",
    family="llama",
    shows=TURNED,
    says="larger by 7 from position 7 on",
)
def prompt_counted_twice(port: Replica) -> None:
    """After the prompt the offset grew by the number of tokens so far instead of by one.  A prompt
    of 7 tokens was followed by position 14.

    The first generated token is the one to look at.
    """
    port.places = torch.where(port.places < PROMPT, port.places, port.places + PROMPT)


@exhibit(
    "caches",
    f"{GITHUB}/fla-org/flash-linear-attention/issues/766",
    2026,
    "[Bug] Cache seen-token count is committed too early during decode, shifting upper-layer RoPE "
    "offsets",
    family="llama",
    shows="block.1.attn.q_rotated",
    says="larger by 1 from position 7 on",
)
def counted_by_the_first_layer(port: Replica) -> None:
    """The first layer added the new token to the cache's count at once.  All layers above it asked
    the cache for the position and were told one more.

    A shared counter that is written while it is read: layer 0 was right.
    """
    usual, places = port.placed, port.places

    def placed(at: str, q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        above = at != "block.0.attn"
        port.places = torch.where((places >= PROMPT) & torch.tensor(above), places + 1, places)
        return usual(at, q, k, v)

    port.instead(placed=placed)


@exhibit(
    "caches",
    f"{GITHUB}/gittensor-ai-lab/sparkinfer/pull/518",
    2026,
    "fix(kernels): write the whole Q head vector in the int8 QK-norm+RoPE kernels (Qwen3.6 top-1 "
    "0.66 -> 0.83)",
    family="glm",
    shows=TURNED,
    says="8 to 15 are those of the position before",
)
def stale_tail(port: Replica) -> None:
    """A kernel turned the first entries of each query and wrote only those to its output.  The
    other entries were what the buffer still held: those of the token before.

    The first token agreed with the reference in 66 of 100 cases instead of 83: wrong, and not
    obviously so.
    """
    usual = port.placed

    def placed(at: str, q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        q, k, v = usual(at, q, k, v)
        q = q.clone()
        q[:, 1:, port.turning :] = q[:, :-1, port.turning :].clone()
        return port.keep(f"{at}.q_rotated", q), k, v

    port.instead(placed=placed)


@exhibit(
    "caches",
    f"{GITHUB}/InfiniTensor/InfiniLM/pull/553",
    2026,
    "fix: #552 int8 kv cache quantization cannot be enabled",
    family="llama",
    shows="block.0.attn.scores",
    says="everything is 0",
)
def cache_scale_of_zero(port: Replica) -> None:
    """Keys and values were kept as 8-bit integers with a scale.  The scale's memory was reserved
    and never set; it held 0, and so every cached key and value was 0.

    Attention then shares evenly and mixes nothing, and the residual stream carries the text on.
    """
    usual = port.scores
    port.instead(scores=lambda q, k: usual(q, torch.zeros_like(k)))

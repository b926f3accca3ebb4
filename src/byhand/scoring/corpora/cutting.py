"""A corpus cut into shards: texts of about one length together, whoever scores them.

The cut depends on the texts and the model alone.  So a shard holds the same bytes whatever the
number of workers, and whenever it is written.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256

from byhand.scoring.float_batches import rows_of_batch
from byhand.scoring.samples import Sample
from byhand.spec import ModelSpec

PARTS = 64  # shards that a corpus is cut into, if that makes them neither small nor large
LARGEST = 1 << 16  # positions of a shard in floats
PROVEN = (256, 1 << 13)  # fewest and most positions of a shard whose digits are proven


@dataclass(frozen=True)
class Shard:
    """Texts that are scored and written together: their places in the corpus, by length."""

    number: int
    places: tuple[int, ...]
    samples: tuple[Sample, ...]


def cut(spec: ModelSpec, samples: Sequence[Sample], proven: bool) -> list[Shard]:
    """The shards of a corpus; every text is in one of them."""
    lengths = [len(sample.ids) - 1 for sample in samples]
    fewest, most = PROVEN if proven else (rows_of_batch(spec), LARGEST)
    size = max(fewest, min(most, sum(lengths) // PARTS))
    found: list[Shard] = []
    group: list[int] = []
    positions = 0

    def close() -> None:
        texts = tuple(samples[place] for place in group)
        found.append(Shard(len(found), tuple(group), texts))

    for place in sorted(range(len(samples)), key=lambda place: (lengths[place], place)):
        if group and positions + lengths[place] > size:
            close()
            group, positions = [], 0
        group.append(place)
        positions += lengths[place]
    if group:
        close()
    return found


def digest_of(samples: Sequence[Sample]) -> str:
    """What tells a corpus from all others: its texts' names, ids and prompts, in their order."""
    told = sha256()
    for sample in samples:
        ids = " ".join(map(str, sample.ids))
        told.update(f"{len(sample.name)} {sample.name} {sample.first} {ids}\n".encode())
    return told.hexdigest()

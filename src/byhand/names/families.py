"""The names of modules in every family of checkpoints."""

from __future__ import annotations

from collections.abc import Mapping

from byhand.names.decoders import DECODERS
from byhand.names.encoders import ENCODERS
from byhand.names.mixtures import MIXTURES
from byhand.names.modules import Names

MODULES: Mapping[str, Names] = {**DECODERS, **MIXTURES, **ENCODERS}

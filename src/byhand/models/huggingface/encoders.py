"""Encoders and encoder–decoders: the reader of each model_type."""

from __future__ import annotations

from byhand.models.huggingface import bart, bert, t5
from byhand.models.huggingface.family import Family

ENCODERS: dict[str, Family] = {
    "bert": Family("bert", bert.read_bert),
    "roberta": Family("roberta", bert.read_roberta),
    "xlm-roberta": Family("roberta", bert.read_roberta),
    "camembert": Family("roberta", bert.read_roberta),
    "distilbert": Family("distilbert", bert.read_distilbert),
    "electra": Family("electra", bert.read_electra),
    "t5": Family("t5", t5.read_t5, seen=t5.with_own_head),
    "mt5": Family("t5", t5.read_mt5, seen=t5.with_own_head),
    "bart": Family("bart", bart.read_bart, seen=bart.as_stored),
    "mbart": Family("bart", bart.read_mbart, seen=bart.as_stored),
    "marian": Family("marian", bart.read_marian, seen=bart.as_stored),
    "pegasus": Family("marian", bart.read_pegasus, seen=bart.as_stored),
}

"""Logs of engines: what is read, how it is matched with texts, and what is odd about it.

read_log, read_logs   the one door: the form of a file is recognised from its content
openai                completions and chats, also of a batch or a stream
vllm                  RequestOutput; prompt_logprobs of its server
sglang                meta_info with triples
llama_server          completion_probabilities, of today and of before
llama_logits          what llama-perplexity saves for --kl-divergence
rollouts              rows of TRL, verl and others: JSON, Parquet, npz
matching              each logged text beside its sample
recognising           what the numbers themselves, or the true ones, say of a log
"""

from byhand.scoring.logs.findings import Finding
from byhand.scoring.logs.log import Log, LoggedText
from byhand.scoring.logs.matching import Matched, match
from byhand.scoring.logs.reading import read_log, read_logs
from byhand.scoring.logs.recognising import recognised
from byhand.scoring.logs.samples_from import samples_of

__all__ = [
    "Finding",
    "Log",
    "LoggedText",
    "Matched",
    "match",
    "read_log",
    "read_logs",
    "recognised",
    "samples_of",
]

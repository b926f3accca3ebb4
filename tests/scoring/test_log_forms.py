"""Every form of logs gives the same text, and what is not a log is refused with its place."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import engine_logs as logged
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from byhand.errors import ByhandError, InputError
from byhand.model import Model
from byhand.scoring.logs import match, read_log, read_logs, samples_of
from byhand.scoring.samples import Sample

SAMPLE = Sample("one", logged.IDS)


def values_of(path: Path, tiny: Model) -> list[float]:
    """What the log has for the two scored tokens."""
    (matched,) = match(read_log(path), [SAMPLE], tiny.vocabulary)
    return [float(value) for value in matched.logprobs]


@pytest.mark.parametrize("form", sorted(logged.COMPLETE))
def test_a_log_with_the_whole_text_gives_its_values(form: str, tmp_path: Path, tiny: Model) -> None:
    path = logged.write(tmp_path, logged.COMPLETE[form]())
    assert values_of(path, tiny) == [-0.5, -1.25]
    assert [sample.ids for sample in samples_of(read_log(path), tiny)] == [logged.IDS]


@pytest.mark.parametrize("form", sorted(logged.COMPLETIONS))
def test_a_log_of_the_completion_alone_is_laid_on_the_end_of_the_text(
    form: str, tmp_path: Path, tiny: Model
) -> None:
    path = logged.write(tmp_path, logged.COMPLETIONS[form]())
    assert values_of(path, tiny) == pytest.approx([-0.5, -1.25], abs=1e-15)
    with pytest.raises(InputError, match="does not hold the prompt"):
        samples_of(read_log(path), tiny)


def test_the_form_is_told_from_the_content_and_the_engine_from_the_name(tmp_path: Path) -> None:
    forms = {
        form: read_log(logged.write(tmp_path, make(), name="mine.log"))
        for form, make in {**logged.COMPLETE, **logged.COMPLETIONS}.items()
    }
    assert {log.engine for log in forms.values()} == {"mine"}
    assert {form: log.form for form, log in forms.items()} == {
        "completion": "OpenAI completions",
        "chat": "OpenAI chats",
        "mlx": "OpenAI chats",
        "vllm server": "OpenAI chats",
        "vllm": "vLLM",
        "vllm flat": "vLLM",
        "sglang": "SGLang",
        "llama server": "llama.cpp server",
        "llama server, sampled": "llama.cpp server",
        "llama server, before": "llama.cpp server",
        "trl": "rollouts: logprobs",
        "trl likeliest": "rollouts: logprobs",
        "verl": "rollouts: old_log_probs",
        "whole": "rollouts: token_logprobs",
    }


def test_lines_of_a_batch_keep_their_own_names_and_say_which_request_failed(
    tmp_path: Path, tiny: Model
) -> None:
    good = {"custom_id": "a-1", "response": {"status_code": 200, "body": logged.completion()}}
    bad = {"custom_id": "a-2", "response": {"status_code": 500, "body": {"error": "out of memory"}}}
    lost = {"custom_id": "a-3", "response": None, "error": {"message": "too late"}}
    log = read_log(logged.write(tmp_path, good, bad, lost))
    assert [text.name for text in log.texts] == ["a-1"]
    assert [finding.kind for finding in log.findings] == ["failed request"] * 2
    assert "out of memory" in str(log.findings[0])
    assert "too late" in str(log.findings[1])


def test_pieces_of_a_stream_are_joined(tmp_path: Path, tiny: Model) -> None:
    pieces = []
    for word, value in zip(logged.WORDS, logged.VALUES, strict=True):
        one = {"tokens": [word], "token_logprobs": [value], "top_logprobs": [None]}
        choice = {"index": 0, "text": word, "logprobs": one}
        pieces.append({"id": "cmpl-9", "object": "text_completion", "choices": [choice]})
    path = tmp_path / "stream.txt"
    lines = [f"data: {json.dumps(piece)}\n\n" for piece in pieces]
    path.write_text("".join([*lines, "data: [DONE]\n"]))
    assert values_of(path, tiny) == [-0.5, -1.25]


def test_equal_pieces_of_a_stream_are_all_kept_and_answers_end_where_they_say(
    tmp_path: Path, tiny: Model
) -> None:
    def piece(word: str, value: float | None, end: str | None = None) -> Any:
        one = {"tokens": [word], "token_logprobs": [value], "top_logprobs": None}
        return {"id": "", "choices": [{"index": 0, "text": word, "logprobs": one,
                                       "finish_reason": end}]}  # fmt: skip

    stream = [piece("b", None), piece(" a", -0.5), piece(" a", -0.5), piece(" c", -1.25, "length")]
    empty = {"id": "", "choices": [{"index": 0, "text": "", "logprobs": None}]}
    log = read_log(logged.write(tmp_path, empty, *stream, empty, *stream[:1], stream[3]))
    assert [text.pieces for text in log.texts] == [("b", " a", " a", " c"), ("b", " c")]
    assert log.findings == ()


def test_whole_answers_of_one_name_are_texts_of_their_own(tmp_path: Path) -> None:
    one, other = logged.chat(), logged.chat()
    other["choices"][0]["logprobs"]["content"].pop()
    log = read_log(logged.write(tmp_path, one, other, one))
    assert [len(text) for text in log.texts] == [2, 1]
    assert [finding.kind for finding in log.findings] == ["duplicate"]
    short = logged.completion()
    del short["choices"][0]["finish_reason"]
    assert len(read_log(logged.write(tmp_path, short, logged.completion())).texts) == 2


@pytest.mark.parametrize("again", [False, True])
def test_a_stream_of_llama_server_is_one_text(again: bool, tmp_path: Path, tiny: Model) -> None:
    whole = logged.llama_server()
    rows = whole["completion_probabilities"]
    pieces = [
        {"content": row["token"], "stop": False, "completion_probabilities": [row]} for row in rows
    ]
    end = {**(whole if again else {}), "content": "", "stop": True}
    path = logged.write(tmp_path, *pieces, end)
    assert values_of(path, tiny) == [-0.5, -1.25]
    assert len(read_log(path).texts) == 1


def test_objects_over_several_lines_and_numbers_in_quotes_are_read(
    tmp_path: Path, tiny: Model
) -> None:
    row = {"input_ids": ["1", "0", "2"], "logprobs": [None, "-0.5", "-1.25e0"]}
    path = tmp_path / "engine.json"
    pretty = json.dumps(row, indent=2)
    path.write_text(pretty + "\n" + pretty)
    assert values_of(path, tiny) == [-0.5, -1.25]
    second = 2 + pretty.count("\n")
    assert [text.where for text in read_log(path).texts] == [
        f"{path}: line 1", f"{path}: line {second}"
    ]  # fmt: skip


def test_tokens_written_as_ids_are_ids(tmp_path: Path) -> None:
    answer = logged.completion()
    answer["choices"][0]["logprobs"]["tokens"] = [f"token_id:{id}" for id in logged.IDS]
    (text,) = read_log(logged.write(tmp_path, answer)).texts
    assert text.ids == logged.IDS


def test_rollouts_with_two_engines_are_two_logs(tmp_path: Path) -> None:
    row = {**logged.trl(), "rollout_log_probs": [-0.5, -1.0]}
    path = logged.write(tmp_path, row)
    logs = {log.engine: log.texts[0].logprobs[1:].tolist() for log in read_logs(path)}
    assert logs == {
        "engine:logprobs": [-0.5, -1.25],
        "engine:rollout_log_probs": [-0.5, -1.0],
    }
    assert read_log(path, "rollout_log_probs").texts[0].logprobs[2] == -1.0
    with pytest.raises(InputError, match="several engines"):
        read_log(path)


@pytest.mark.parametrize("ids", ["input_ids", "tokens", "ids"])
@pytest.mark.parametrize("numbers", ["logprobs", "per_token_logps", "old_log_probs"])
def test_padded_arrays_lose_their_padding(
    ids: str, numbers: str, tmp_path: Path, tiny: Model
) -> None:
    table = {
        ids: np.array([[1, 0, 2, 0], [2, 2, 0, 1]]),
        numbers: np.array([[0.0, -0.5, -1.25, 0.0], [0.0, -3.0, -2.0, -1.0]], np.float32),
        "attention_mask": np.array([[1, 1, 1, 0], [1, 1, 1, 1]]),
    }
    log = read_log(logged.zipped(tmp_path, **table))
    assert [text.ids for text in log.texts] == [(1, 0, 2), (2, 2, 0, 1)]
    samples = [Sample("two", (2, 2, 0, 1)), SAMPLE]
    found = {m.sample.name: m.logprobs.tolist() for m in match(log, samples, tiny.vocabulary)}
    assert found == {"one": [-0.5, -1.25], "two": [-3.0, -2.0, -1.0]}


def test_parquet_gives_the_rows_that_json_gives(tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "engine.parquet"
    table = pyarrow.Table.from_pylist([logged.trl(), logged.trl()])
    parquet.write_table(table, path)
    texts = read_log(path).texts
    assert [text.logprobs[1:].tolist() for text in texts] == [[-0.5, -1.25]] * 2
    path.write_bytes(path.read_bytes()[:-40])
    with pytest.raises(InputError, match="not a whole Parquet file"):
        read_log(path)


def test_saved_logits_are_within_half_a_step_of_what_was_saved(tmp_path: Path) -> None:
    data, true = logged.saved_logits(rows=3, length=9, size=7)
    path = tmp_path / "base.kld"
    path.write_bytes(data)
    log = read_log(path)
    for text, row in zip(log.texts, true, strict=True):
        assert text.first == 5  # the second half of a chunk, from its second token on
        apart = np.abs(text.logprobs - row)[5:]
        assert apart.max() <= 16 / 65535 / 2 + 1e-6
    path.write_bytes(data[:-1])
    with pytest.raises(InputError) as caught:
        read_log(path)
    assert "2 of 3 chunks" in str(caught.value)


def test_printed_perplexities_are_no_log_probabilities(tmp_path: Path) -> None:
    path = tmp_path / "ppl.log"
    path.write_text(
        "perplexity: calculating perplexity over 2 chunks, n_ctx=512\n"
        "[1]6.1324,[2]6.7021,\nFinal estimate: PPL = 6.7021 +/- 0.31\n"
    )
    with pytest.raises(InputError) as caught:
        read_log(path)
    assert "--save-all-logits" in str(caught.value)


# ------------------------------------------------------------------ what is refused


def broken(answer: Any, *path: Any, value: Any) -> Any:
    """The answer with another value at a place."""
    inner = answer
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = value
    return answer


LOGPROBS = ("choices", 0, "logprobs")


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (broken(logged.completion(), *LOGPROBS, "tokens", value=["b"]), "equally long"),
        (broken(logged.completion(), *LOGPROBS, "token_logprobs", 1, value="x"), "a number"),
        (broken(logged.completion(), *LOGPROBS, "token_logprobs", 1, value=True), "a number"),
        (broken(logged.completion(), *LOGPROBS, "token_logprobs", 1, value=10**400), "a float"),
        (broken(logged.completion(), *LOGPROBS, value=None), "no log-probability"),
        (broken(logged.completion(), "choices", value={}), "a list"),
        (broken(logged.chat(), *LOGPROBS, "content", 0, "bytes", value=[300]), "from 0 to 255"),
        (broken(logged.vllm(), "prompt_token_ids", value=[1, 0, 2]), "equally long"),
        (broken(logged.vllm(), "prompt_logprobs", 1, value={"x": 1.0}), "a token id"),
        (broken(logged.vllm_flat(), "prompt_logprobs", "end_indices", value=[0, 9]), "a range"),
        (broken(logged.sglang(), "meta_info", "input_token_logprobs", 1, value=[1]), "an id"),
        (broken(logged.sglang(), "meta_info", value={"id": "1"}), "input_token_logprobs"),
        (broken(logged.trl(), "logprobs", value=[-1.0]), "equally long"),
        (broken(logged.trl(), "completion_ids", value=[-5, 2]), "a token id"),
        (broken(logged.trl(), "logprobs", value=[[-0.5, -1.0], [-1.25]]), "ids in logprob_token"),
        (broken(logged.trl(), "logprobs", value=["-0.5", "lots"]), "a number or null"),
        (broken(logged.whole_row(), "token_logprobs", value=[-1.0] * 9), "more numbers"),
        (broken(logged.verl(), "response_mask", 0, value=[7, 1, 0, 0]), "0 or 1"),
        ({"hello": "world"}, "engine that byhand knows"),
        ([], "the log is empty"),
        (3, "engine that byhand knows"),
        (logged.llama_server_before() | {"completion_probabilities": [{"probs": [{}]}]}, "a text"),
    ],
)
def test_a_malformed_log_is_refused_with_what_was_expected(
    answer: Any, says: str, tmp_path: Path
) -> None:
    with pytest.raises(ByhandError) as caught:
        read_log(logged.write(tmp_path, answer))
    assert says in str(caught.value)
    assert caught.value.exit_status == 2


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "empty"),
        (b" \n\t", "empty"),
        (b"\xff\xfe{}", "UTF-8"),
        (b"hello", "engine that byhand knows"),
        (b"\x1f\x8b\x08\x00", "gunzip"),
        (b"\x80\x04\x95", "nothing is unpickled"),
        (b"[RequestOutput(request_id=0, prompt='b')]", "json.dumps"),
        (b"{'input_ids': [1, 0], 'logprobs': [None, -0.5]}", "json.dumps"),
        (b"{", "cut off"),
        (json.dumps(logged.completion())[:-3].encode(), "cut off"),
        (json.dumps(logged.completion()).encode() + b"\n" + b'{"id": "x", "cho', "1 before it"),
        (b"[" * 100_000, "nested too deeply"),
        (b'{"choices": ' + b"[" * 100_000, "nested too deeply"),
        (b"PK\x03\x04 and no more", "not a whole npz file"),
        (b"PAR1 and no more", "Parquet"),
        (b"_logits_\x05", "cut off"),
        (b"_logits_" + b"\xff" * 12, "malformed"),
        (b'{"choices": []}\n{"meta_info": {}}', "another form"),
    ],
)
def test_hostile_files_are_refused(content: bytes, says: str, tmp_path: Path) -> None:
    path = tmp_path / "engine.json"
    path.write_bytes(content)
    with pytest.raises(ByhandError) as caught:
        read_log(path)
    assert says in str(caught.value)


def test_what_is_no_file_is_refused(tmp_path: Path) -> None:
    for path, says in ((tmp_path, "a folder"), (tmp_path / "no", "no file"), ("a\0b", "no file")):
        with pytest.raises(InputError, match=says):
            read_log(path)


def test_nothing_is_unpickled(tmp_path: Path) -> None:
    path = logged.zipped(tmp_path, ids=np.array([[1], "x"], dtype=object))
    with pytest.raises(InputError, match="objects"):
        read_log(path)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=8,
)
PLACES = [
    ("choices",), ("choices", 0), ("choices", 0, "logprobs"), ("choices", 0, "logprobs", "tokens"),
    ("meta_info", "input_token_logprobs"), ("prompt_logprobs",), ("outputs",), ("logprobs",),
    ("completion_ids",), ("completion_probabilities", 0), ("attention_mask",), ("prompts", 0),
]  # fmt: skip


@settings(max_examples=30)
@given(st.sampled_from(PLACES), st.data(), JSON)
def test_any_value_anywhere_is_read_or_refused(
    tmp_path_factory: pytest.TempPathFactory, place: tuple[Any, ...], data: Any, value: Any
) -> None:
    makers = {**logged.COMPLETE, **logged.COMPLETIONS}
    answer = makers[data.draw(st.sampled_from(sorted(makers)))]()
    try:
        answer = broken(answer, *place, value=value)
    except (KeyError, IndexError, TypeError):
        answer[str(place[0])] = value
    path = tmp_path_factory.getbasetemp() / "any.json"
    path.write_text(json.dumps(answer))
    try:
        logs = read_logs(path)
    except ByhandError:
        return
    assert all(len(text.given) == len(text) for log in logs for text in log.texts)


@given(
    st.lists(
        st.lists(
            st.tuples(st.integers(0, 2), st.floats(-40, 0, allow_nan=False)), min_size=2, max_size=6
        ),
        min_size=1,
        max_size=4,
    )
)
def test_rollouts_survive_the_way_through_json_and_npz(
    tmp_path_factory: pytest.TempPathFactory, texts: list[list[tuple[int, float]]]
) -> None:
    folder = tmp_path_factory.getbasetemp()
    rows = [
        {"input_ids": [id for id, _ in text], "logprobs": [None, *(v for _, v in text[1:])]}
        for text in texts
    ]
    longest = max(map(len, texts))
    ends = [[0] * (longest - len(text)) for text in texts]
    rows_and_ends = list(zip(texts, ends, strict=True))
    padded = {
        "input_ids": np.array([[id for id, _ in text] + end for text, end in rows_and_ends]),
        "logprobs": np.array([[0.0, *(v for _, v in t[1:]), *end] for t, end in rows_and_ends]),
        "attention_mask": np.array([[1] * len(text) + end for text, end in rows_and_ends]),
    }
    for path in (logged.write(folder, *rows), logged.zipped(folder, **padded)):
        for text, given_text in zip(read_log(path).texts, texts, strict=True):
            assert text.ids == tuple(id for id, _ in given_text)
            assert text.logprobs[1:].tolist() == [value for _, value in given_text[1:]]
            assert text.first == 1

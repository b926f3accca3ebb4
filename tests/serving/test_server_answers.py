"""The server answers what is asked, as JSON or as lines, and serves its page."""

from __future__ import annotations

import json
import re
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from asking import asked, state
from serving_server import Address, served

from byhand import models
from byhand.errors import InputError
from byhand.serving import QUESTIONS, Library, answer
from byhand.serving.app import PAGE
from byhand.serving.questions import ASKED
from byhand.serving.server import bound

NDJSON = "application/x-ndjson"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Address]:
    mine = tmp_path_factory.mktemp("models") / "mine.yaml"
    mine.write_text(asked("file", state=state())["text"], "utf-8")
    with served({"mine": mine}) as address:
        yield address


def test_every_question_can_be_asked() -> None:
    assert {*ASKED, "models"} == set(QUESTIONS)


@pytest.mark.parametrize("name", list(ASKED))
def test_the_table_of_a_question_has_just_the_keys_that_it_takes(name: str) -> None:
    with pytest.raises(InputError) as refused:
        answer(Library(), name, {"no such key": 1})
    assert sorted(ASKED[name].keys) == sorted((refused.value.expected or "").split(", "))


@pytest.mark.parametrize("name", list(ASKED))
def test_the_example_of_a_question_has_its_answer(server: Address, name: str) -> None:
    request = dict(ASKED[name].example)
    reply = server.ask(name, request)
    assert reply.status == 200
    assert reply.headers["content-type"] == "application/json"
    assert reply.data == asked(name, **request)
    assert set(ASKED[name].answer) <= set(reply.data)


def test_the_models_are_the_built_in_ones_and_those_named(server: Address) -> None:
    found = [model["name"] for model in server.get("/api/models").data["models"]]
    assert found == ["mine", *Library().names]
    about = server.get("/api/models?language=es").data["models"][1]["about"]
    assert about.startswith("Tres palabras")


def test_an_edited_weight_changes_the_numbers(server: Address) -> None:
    edited = {"state": state(weights={"embed.token[0,1]": "1/3"}), "only": ["embed.token"]}
    (step,) = server.ask("trace", edited).data["steps"]
    assert step["value"][0] == ["1", "1/3"]


def test_a_posted_file_is_a_model(server: Address) -> None:
    text = asked("file", state=state("journey"))["text"]
    reply = server.ask("look", {"state": {"model": {"file": text}}})
    assert reply.data["next"]["token"] == "cat"


def test_a_file_that_is_changed_is_read_again(server: Address, tmp_path: Path) -> None:
    mine = tmp_path / "own.yaml"
    request = {"state": {"model": {"name": "own"}}, "only": ["embed.token"]}
    mine.write_text(asked("file", state=state())["text"], "utf-8")
    with served({"own": mine}) as address:
        before = address.ask("trace", request).data["steps"][0]["value"]
        other = asked("file", state=state(weights={"embed.token[0,1]": "1/3"}))["text"]
        mine.write_text(other, "utf-8")
        after = address.ask("trace", request).data["steps"][0]["value"]
    assert (before[0], after[0]) == (["1", "0"], ["1", "1/3"])


def test_an_error_is_the_one_of_the_command_line(server: Address) -> None:
    reply = server.ask("look", {"state": state("tyni")})
    assert reply.status == 400
    assert reply.data["error"] == {
        "message": "there is no model 'tyni'",
        "where": None,
        "expected": ", ".join(("mine", *Library().names)),
        "found": "tyni",
        "hint": "did you mean tiny?",
    }


def test_an_error_speaks_the_language_of_the_state(server: Address) -> None:
    reply = server.ask("look", {"state": state("tyni", language="es")})
    assert reply.message == "no existe el modelo 'tyni'"
    assert server.ask("look", {"state": state("tyni")}).message == "there is no model 'tyni'"


def test_what_is_wrong_with_a_key_is_said_with_its_name(server: Address) -> None:
    error = server.ask("look", {"state": state(numbers="octal")}).data["error"]
    assert error["where"] == "state.numbers"
    error = server.ask("look", {"state": state(), "position": -1}).data["error"]
    assert (error["where"], error["found"]) == ("position", "-1")


def test_models_take_a_language_and_nothing_else(server: Address) -> None:
    for query in ("path=/etc/passwd", "language=xx", "language=en&language=es"):
        assert server.get(f"/api/models?{query}").status == 400


# ------------------------------------------------------------------ lines


def test_the_last_line_is_the_answer(server: Address) -> None:
    reply = server.ask("trace", {"state": state(), "only": ["logits"]}, Accept=NDJSON)
    assert reply.headers["content-type"] == NDJSON
    *_progress, line = reply.lines
    assert line["result"] == asked("trace", state=state(), only=["logits"])


def test_a_long_answer_tells_how_far_it_is(server: Address) -> None:
    connection = server.begin("look", {"state": state("minigpt", numbers="exact")}, Accept=NDJSON)
    with connection, connection.makefile("rb") as lines:
        told = (json.loads(line) for line in lines if line.startswith(b"{"))
        first, second = (next(told)["progress"] for _line in range(2))
    assert first["pass"] == second["pass"] == 1
    assert 0 < first["count"] <= second["count"]
    assert second["address"].startswith(("embed", "block"))


def test_an_error_among_lines_is_a_line_and_its_status_is_that_of_lines(server: Address) -> None:
    for request in ({"state": state("tyni")}, {"state": state(numbers="octal")}):
        reply = server.ask("look", request, Accept=NDJSON)
        assert (reply.status, reply.headers["content-type"]) == (200, NDJSON)
        *_progress, line = reply.lines
        assert [*line] == ["error"]
    assert server.ask("look", {"state": state("tyni")}).status == 400


def test_a_posted_file_refers_to_no_file_of_this_machine(server: Address) -> None:
    text = (Path(models.__file__).parent / "minigpt.yaml").read_text("utf-8")
    reply = server.ask("look", {"state": {"model": {"file": text}}})
    assert reply.status == 400
    assert reply.message == "a model file that is posted can read no other file"


def test_the_end_of_an_answer_does_not_wait_for_its_beginning_to_be_confirmed() -> None:
    with bound(0) as listening, socket.create_connection(listening.getsockname()):
        taken, _address = listening.accept()
        with taken:
            assert taken.proto == socket.IPPROTO_TCP  # by which asyncio sets TCP_NODELAY


# ------------------------------------------------------------------ the page


def test_the_page_and_what_it_loads_are_served(server: Address) -> None:
    page = server.get("/")
    assert page.status == 200
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    loaded = re.findall(r'(?:src|href)="(/?assets/[^"]+)"', page.body.decode())
    assert [path for path in loaded if server.get("/" + path.lstrip("/")).status != 200] == []
    for language, word in (("en", "text"), ("es", "texto")):
        words = server.get(f"/assets/words-{language}.json").data
        assert word in " ".join(words.values()).lower().split()
    assert server.get("/assets/book.css").headers["content-type"] == "text/css; charset=utf-8"


def test_nothing_of_the_page_is_from_elsewhere_or_written_inline(server: Address) -> None:
    page = server.get("/").body.decode()
    assert not re.search(r"(src|href)=[\"']?(https?:)?//", page)
    assert not re.search(r"<script(?![^>]*\bsrc=)[^>]*>", page)
    assert "<style" not in page
    assert not re.search(r"\son[a-z]+=", page)


@pytest.mark.parametrize(
    "path",
    [
        "/assets/../app.py",
        "/assets/..%2fapp.py",
        "/assets/%2e%2e/app.py",
        "/assets//etc/passwd",
        "/assets/%2fetc%2fpasswd",
        "/assets/app.py",
        "/assets/index.html",
        "/assets/page.css%00.txt",
        "/assets/",
        "/../../etc/passwd",
        "//etc/passwd",
        "/%00",
        "/api/../healthz",
        "/api/look/",
        "/mine.yaml",
        "/C:/Windows/win.ini",
    ],
)
def test_no_path_leads_to_a_file(server: Address, path: str) -> None:
    reply = server.get(path)
    assert reply.status == 404
    assert b"import" not in reply.body
    assert [*reply.data] == ["error"]


def test_a_model_s_name_is_no_path(server: Address) -> None:
    for name in ("/etc/passwd", "../mine.yaml", str(PAGE), "mine.yaml", "\0"):
        reply = server.ask("look", {"state": {"model": {"name": name}}})
        assert reply.status == 400
        assert reply.message.startswith("there is no model")


def test_the_document_describes_every_path(server: Address) -> None:
    document = server.get("/openapi.json").data
    assert document["openapi"] == "3.1.0"
    paths = {*document["paths"]}
    assert paths == {"/healthz", "/api/models", *(f"/api/{name}" for name in ASKED)}
    names = set(re.findall(r'"#/components/schemas/(\w+)"', json.dumps(document)))
    assert names <= {*document["components"]["schemas"]}


def test_a_question_is_posted(server: Address) -> None:
    reply = server.get("/api/look")
    assert reply.status == 405
    error: dict[str, Any] = reply.data["error"]
    assert (error["expected"], error["found"]) == ("POST", "GET")
    assert server.get("/api/lok").data["error"]["hint"].startswith("did you mean /api/look")

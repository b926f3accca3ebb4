"""What nobody should send is refused with the right status, and the server goes on."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from contextlib import suppress

import pytest
from asking import state
from serving_server import Address, head, read_all, read_reply, served

from byhand.serving.limits import Limits
from patience import PATIENCE

PATIENT = Limits(
    workers=1,
    body=100_000,
    head_seconds=PATIENCE,
    body_seconds=PATIENCE,
    connections=30,
)
HASTY = Limits(
    workers=0, head_seconds=0.5, body_seconds=0.5, idle_seconds=1, unread_seconds=0.5
)  # and nothing is asked of it that would take time on a busy machine

MANY = b"y" * 6_000  # more than anybody says byte by byte before he is left


@pytest.fixture(scope="module")
def patient() -> Iterator[Address]:
    with served(limits=PATIENT) as address:
        yield address


@pytest.fixture
def server(patient: Address) -> Iterator[Address]:
    """A server that goes on after whatever a test does to it."""
    yield patient
    assert patient.still_answers()


@pytest.fixture(scope="module")
def hurried() -> Iterator[Address]:
    with served(limits=HASTY) as address:
        yield address


@pytest.fixture
def hasty(hurried: Address) -> Iterator[Address]:
    """A server that soon leaves whoever is slow, and goes on."""
    yield hurried
    assert hurried.get("/healthz").status == 200


def posted(server: Address, body: bytes) -> tuple[int, str]:
    reply = server.send("POST", "/api/look", body, {"Content-Type": "application/json"})
    return reply.status, reply.message


def status_of(said: bytes) -> int:
    return int(said.split()[1])


# ------------------------------------------------------------------ what is sent


def test_a_body_that_says_it_is_too_large_is_not_read(server: Address) -> None:
    with server.raw() as connection:
        connection.sendall(head("POST", "/api/look", server.port, 10**12))
        said = read_all(connection)
    assert status_of(said) == 413
    assert b"at most 100,000 bytes" in said


def test_a_body_that_is_somewhat_too_large_is_read_so_that_the_client_hears_why(
    server: Address,
) -> None:
    status, message = posted(server, b" " * 700_000)
    assert (status, message) == (413, "this request is too large")


def test_a_body_that_turns_out_too_large_is_left(server: Address) -> None:
    start = head("POST", "/api/look", server.port, 0)
    start = start.replace(b"Content-Length: 0", b"Transfer-Encoding: chunked")
    with server.raw() as connection:
        connection.sendall(start)
        for _piece in range(81):
            connection.sendall(b"2710\r\n" + b" " * 10_000 + b"\r\n")
        assert status_of(connection.recv(1000)) == 413


@pytest.mark.parametrize(
    "length", ["-1", "1e3", "٣", "999999999999999999999999999999", "5, 6", "+5"]
)
def test_a_length_that_is_none_is_refused(server: Address, length: str) -> None:
    start = head("POST", "/api/look", server.port, 0).replace(b": 0", b": " + length.encode())
    with server.raw() as connection:
        connection.sendall(start)
        assert status_of(read_all(connection)) in (400, 413)


def test_a_smuggled_second_length_is_refused(server: Address) -> None:
    start = head("POST", "/api/look", server.port, 4)
    start = start.replace(b"\r\n\r\n", b"\r\nTransfer-Encoding: chunked\r\n\r\n")
    with server.raw() as connection:
        connection.sendall(start + b"0\r\n\r\nGET /healthz HTTP/1.1\r\n\r\n")
        assert status_of(read_all(connection)) == 400


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"nonsense",
        b'{"state": {"model": {"name": "tiny"}}} x',
        b"\xff\xfe{}",
        b'"\xc3("',
        b'{"state": NaN}',
        b'{"state": ' + b"9" * 5_000 + b"}",
        b'{"state": {"model": {"name": "\\ud800"}}}',
        b"[" * 50_000,
        b"[" * 40_000 + b"]" * 40_000,
        b'{"a":' * 10_000 + b"1" + b"}" * 10_000,
        b"[" + b"[]," * 30_000 + b"[]]",
    ],
    ids=lambda body: repr(body[:20]),
)
def test_what_is_not_json_is_refused(server: Address, body: bytes) -> None:
    status, _message = posted(server, body)
    assert status == 400


def test_what_is_nested_deeper_than_any_request_is_refused(server: Address) -> None:
    status, message = posted(server, b'{"state": ' + b"[" * 900 + b"]" * 900 + b"}")
    assert (status, message) == (400, "tables within tables within tables")


@pytest.mark.parametrize("data", [None, 1, "text", [], [1], True])
def test_json_that_is_no_table_is_refused(server: Address, data: object) -> None:
    assert posted(server, json.dumps(data).encode()) == (400, "a request is a table")


def test_a_key_that_comes_twice_is_refused(server: Address) -> None:
    body = b'{"state": {"model": {"name": "tiny"}}, "state": {"model": {"name": "journey"}}}'
    assert posted(server, body) == (400, "the key 'state' comes twice")


@pytest.mark.parametrize(
    "said",
    [
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",  # TLS
        b"GET\r\n\r\n",
        b"\r\n\r\n\r\nnonsense\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nbroken header\r\n\r\n",
        b"GET / HTTP/1.1\r\nX: " + b"y" * 30_000 + b"\r\n\r\n",
    ],
    ids=lambda said: repr(said[:20]),
)
def test_what_is_not_http_is_told_so(server: Address, said: bytes) -> None:
    with server.raw() as connection:
        connection.sendall(said)
        reply = read_all(connection)
    assert status_of(reply) == 400
    assert b"this is not an HTTP request" in reply


def test_a_request_to_change_the_protocol_is_answered_as_if_it_were_none(server: Address) -> None:
    said = {"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13"}
    assert server.get("/api/models", **said).status == 200


# ------------------------------------------------------------------ how slowly


def dribble(connection: socket.socket, data: bytes) -> bytes:
    """Says a byte now and then, and returns what the server says before it was the last."""
    connection.settimeout(0.05)
    for sign in data:
        with suppress(TimeoutError):
            with suppress(BrokenPipeError, ConnectionResetError):  # it has hung up: it said why
                connection.sendall(bytes([sign]))
            return connection.recv(1000)
    return b""


def test_a_head_that_comes_byte_by_byte_is_left_in_time(hasty: Address) -> None:
    with hasty.raw() as connection:
        said = dribble(connection, b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX: " + MANY)
    assert status_of(said) == 408


def test_a_connection_that_says_nothing_is_left_in_time(hasty: Address) -> None:
    with hasty.raw() as connection:
        assert status_of(read_all(connection)) == 408


def test_the_second_head_of_a_connection_has_no_more_time_than_the_first(hasty: Address) -> None:
    ask = f"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1:{hasty.port}\r\n\r\n".encode()
    with hasty.raw() as connection:
        connection.sendall(ask)
        assert read_reply(connection).status == 200
        said = dribble(connection, ask[:-2] + b"X: " + MANY)
    assert status_of(said) == 408


def test_a_body_that_comes_byte_by_byte_is_left_in_time(hasty: Address) -> None:
    with hasty.raw() as connection:
        connection.sendall(head("POST", "/api/look", hasty.port, 2 * len(MANY)))
        said = dribble(connection, MANY)
    assert status_of(said) == 408


def test_a_connection_without_a_further_request_is_closed(hasty: Address) -> None:
    ask = f"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1:{hasty.port}\r\n\r\n".encode()
    with hasty.raw() as connection:
        connection.sendall(ask)
        assert read_all(connection).count(b"HTTP/1.1 200") == 1  # and then the end


def test_a_client_that_does_not_read_is_left_in_time(hasty: Address) -> None:
    ask = f"GET /assets/book.css HTTP/1.1\r\nHost: 127.0.0.1:{hasty.port}\r\n\r\n".encode()
    connection = socket.socket()
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
    connection.settimeout(PATIENCE)
    connection.connect(("127.0.0.1", hasty.port))
    with connection, pytest.raises((ConnectionResetError, BrokenPipeError)):
        connection.sendall(ask * 200_000)  # answers of gigabytes, which nobody reads


# ------------------------------------------------------------------ how many


def test_one_connection_too_many_is_told_so_at_once(server: Address) -> None:
    held = [server.raw() for _one in range(PATIENT.connections)]
    try:
        with server.raw() as late:
            said = read_all(late)
        assert status_of(said) == 503
        assert b"retry-after: 1" in said
    finally:
        for connection in held:
            connection.close()


def test_requests_that_are_all_sent_at_once_are_answered_one_by_one(server: Address) -> None:
    body = json.dumps({"state": state(), "only": ["logits"]}).encode()
    ask = head("POST", "/api/trace", server.port, len(body)) + body
    last = head("POST", "/api/trace", server.port, len(body), Connection="close") + body
    with server.raw() as connection:
        connection.sendall(ask * 19 + last)
        assert read_all(connection).count(b"HTTP/1.1 200 OK") == 20

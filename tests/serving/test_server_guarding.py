"""Only the server's own page may ask, and a browser may load nothing from elsewhere for it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from asking import state
from serving_server import Address, read_all, served


@pytest.fixture(scope="module")
def server() -> Iterator[Address]:
    with served() as address:
        yield address


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "evil.example:{port}",
        "127.0.0.1",
        "127.0.0.1:1",
        "localhost.evil.example:{port}",
        "127.0.0.1:{port}.evil.example",
        "0.0.0.0:{port}",
        "[::1]:{port}",
        "",
        "user@127.0.0.1:{port}",
    ],
)
@pytest.mark.parametrize("path", ["/", "/api/models", "/openapi.json", "/assets/book.css"])
def test_a_name_that_was_made_to_point_here_is_refused(
    server: Address, host: str, path: str
) -> None:
    reply = server.get(path, Host=host.format(port=server.port))
    assert reply.status == 421
    assert reply.data["error"]["where"] == "Host"


def test_a_request_without_a_host_or_with_two_is_refused(server: Address) -> None:
    own = f"Host: 127.0.0.1:{server.port}\r\n"
    for start, hosts, status in (
        ("GET / HTTP/1.0", "", b"421"),
        ("GET / HTTP/1.1", "", b"400"),
        ("GET / HTTP/1.1", own + "Host: evil.example\r\n", b"400"),
        ("GET http://evil.example/ HTTP/1.1", own, b"404"),
    ):
        with server.raw() as connection:
            connection.sendall(f"{start}\r\n{hosts}Connection: close\r\n\r\n".encode())
            assert read_all(connection).split()[1] == status
    assert server.still_answers()


def test_both_names_of_this_machine_are_its_own(server: Address) -> None:
    for name in ("127.0.0.1", "localhost", "LocalHost"):
        host = f"{name}:{server.port}"
        assert server.get("/api/models", Host=host).status == 200
        assert server.get("/api/models", Origin=f"http://{host}").status == 200


@pytest.mark.parametrize(
    "origin",
    ["http://evil.example", "null", "https://127.0.0.1:{port}", "http://127.0.0.1:1", "file://"],
)
def test_another_page_can_ask_nothing(server: Address, origin: str) -> None:
    said = {"Origin": origin.format(port=server.port)}
    reply = server.ask("look", {"state": state()}, **said)
    assert (reply.status, reply.data["error"]["where"]) == (403, "Origin")
    preflight = server.send("OPTIONS", "/api/look", headers=said)
    assert preflight.status == 403
    assert not [name for name in preflight.headers if name.startswith("access-control")]


def test_a_browser_s_word_for_another_site_is_believed(server: Address) -> None:
    for site in ("cross-site", "same-site"):
        said = {"Sec-Fetch-Site": site, "Sec-Fetch-Mode": "no-cors"}
        assert server.get("/api/models", **said).status == 403
        assert server.get("/assets/book.css", **said).status == 403
        followed = {"Sec-Fetch-Site": site, "Sec-Fetch-Mode": "navigate"}
        assert server.get("/", **followed).status == 200
        assert server.get("/api/models", **followed).status == 403
    assert server.get("/api/models", **{"Sec-Fetch-Site": "same-origin"}).status == 200


@pytest.mark.parametrize(
    "kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", "", "json"]
)
def test_what_a_form_of_another_page_can_send_is_no_request(server: Address, kind: str) -> None:
    body = b'{"state": {"model": {"name": "tiny"}}}'
    reply = server.send("POST", "/api/look", body, {"Content-Type": kind})
    assert reply.status == 415


@pytest.mark.parametrize("path", ["/", "/api/models", "/nowhere", "/assets/book.css"])
def test_every_answer_carries_the_policy(server: Address, path: str) -> None:
    headers = server.get(path).headers
    policy = dict(part.split(" ", 1) for part in headers["content-security-policy"].split("; "))
    assert policy["default-src"] == "'none'"
    assert policy["script-src"] == policy["style-src"] == policy["connect-src"] == "'self'"
    assert policy["frame-ancestors"] == policy["base-uri"] == policy["form-action"] == "'none'"
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["cross-origin-resource-policy"] == "same-origin"
    assert headers["referrer-policy"] == "no-referrer"
    assert "server" not in headers

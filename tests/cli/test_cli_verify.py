"""`byhand verify` as it is typed: certificates accepted, rejected and refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from terminals import on_a_terminal

import byhand as library
from byhand.proving.certificates import certificate_digest
from calling import Outcome

Call = Callable[..., Outcome]
CLOCK = str(Path(__file__).parent.parent.parent / "docs" / "examples" / "clock.yaml")


@pytest.fixture
def certificate(tmp_path: Path) -> Path:
    """That `a` and any other token are followed by `a`."""
    library.prove("tiny", texts="a .", next="a").save(tmp_path / "proof.json")
    return tmp_path / "proof.json"


def changed(file: Path, change: Callable[[Any], None]) -> None:
    """Changes a certificate, whose digest is then right again."""
    found = json.loads(file.read_text("utf-8"))
    change(found)
    found["digest"] = certificate_digest(found)
    file.write_text(json.dumps(found), "utf-8")


def test_a_certificate_is_accepted_and_exits_with_0(byhand: Call, certificate: Path) -> None:
    done = byhand("verify", "tiny", str(certificate))
    assert (done.status, done.err) == (0, "")
    assert "After every text `a .` (3 texts), the next token is `a`." in done.out
    assert "Accepted. Every case of the certificate was decided again." in done.out
    data = json.loads(byhand("verify", "tiny", str(certificate), "--json").out)
    assert (data["accepted"], data["reasons"], data["texts"], data["cases"]) == (True, [], 3, 1)


def test_a_lead_that_is_too_large_is_rejected_and_exits_with_1(
    byhand: Call, certificate: Path
) -> None:
    def enlarge(found: Any) -> None:
        found["goals"][0]["tree"]["lead"] = found["least"]["lead"] = "1.5"

    changed(certificate, enlarge)
    done = byhand("verify", "tiny", str(certificate))
    assert (done.status, done.err) == (1, "")
    assert "Rejected. goals[0].tree:" in done.out
    data = json.loads(byhand("verify", "tiny", str(certificate), "--json").out)
    assert data["accepted"] is False
    assert data["reasons"][0].startswith("goals[0].tree:")


def test_the_certificate_of_another_model_is_rejected(byhand: Call, certificate: Path) -> None:
    done = byhand("verify", "abc", str(certificate))
    assert done.status == 1
    assert "Rejected." in done.out


def test_a_certificate_must_prove_the_property_that_is_asked_for(
    byhand: Call, certificate: Path, tmp_path: Path
) -> None:
    asked = tmp_path / "asked.yaml"
    asked.write_text("texts: {pattern: a .}\nclaim: {next: a}\n")
    assert byhand("verify", "tiny", str(certificate), "--property", str(asked)).status == 0
    asked.write_text("texts: {pattern: c .}\nclaim: {next: a}\n")
    done = byhand("verify", "tiny", str(certificate), "--property", str(asked))
    assert done.status == 1
    assert "Rejected. The certificate is about another property." in done.out


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"{}", "expected: \"format\": \"byhand certificate 1\"\n  found: None\n"),
        (b"no", "expected: JSON\n"),
        (b"\xff\xfe", "expected: UTF-8\n"),
    ],
)  # fmt: skip
def test_what_is_no_certificate_is_refused_with_2(
    byhand: Call, tmp_path: Path, content: bytes, said: str
) -> None:
    file = tmp_path / "no.json"
    file.write_bytes(content)
    done = byhand("verify", "tiny", str(file))
    assert (done.status, done.out) == (2, "")
    assert done.err.startswith(f"error: {file}: this is no certificate\n  {said}")


def test_a_certificate_that_is_not_there_is_refused_with_2(byhand: Call) -> None:
    done = byhand("verify", "tiny", "nowhere.json")
    assert (done.status, done.out) == (2, "")
    assert done.err == "error: nowhere.json: cannot be read\n  found: No such file or directory\n"


def test_python_checks_files_contents_and_outcomes(certificate: Path) -> None:
    outcome = library.prove("tiny", texts="a .", next="a")
    content = json.loads(certificate.read_text("utf-8"))
    for given in (certificate, str(certificate), content, outcome):
        found = library.verify("tiny", given)
        assert repr(found) == "<Verification: accepted, 3 texts in 1 case>"
    content["answer"] = "refuted"
    assert repr(library.verify("tiny", content)) == (
        "<Verification: rejected, 'the digest is not that of this certificate'>"
    )
    with pytest.raises(library.ByhandError, match="only a proven property has a certificate"):
        library.verify("tiny", library.prove("tiny", texts=". b", next="a"))


def test_the_cases_that_are_checked_are_told_on_a_terminal(certificate: Path) -> None:
    seen = on_a_terminal("verify", "tiny", str(certificate))
    assert seen.status == 0
    assert "getting ready" in seen.text
    assert not any("getting ready" in line for line in seen.screen.lines)

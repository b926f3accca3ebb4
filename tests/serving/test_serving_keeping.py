"""What is taken away: a model file that is the model, and one page that needs nothing else."""

from __future__ import annotations

import re
from base64 import b64decode
from html import escape
from html.parser import HTMLParser
from pathlib import Path

import pytest
from asking import LIBRARY, asked, state

from byhand.document.media import html
from byhand.errors import ByhandError, InputError
from byhand.files import parse_model
from byhand.serving import answer, read_state
from byhand.serving.downloads import file_name


def test_a_file_takes_text_and_target_along() -> None:
    kept = asked("file", state=state("journey", text="the dog", target="sat"))
    model = parse_model(kept["text"])
    assert kept["name"] == "journey.yaml"
    assert (model.text, model.target, model.name) == ("the dog", "sat", "journey")


def test_a_file_shows_what_the_state_showed() -> None:
    data = state("journey", weights={"head[0,0]": "sqrt(2)"}, architecture={"activation": "silu"})
    kept = asked("file", state=data)
    again = asked("look", state={"model": {"file": kept["text"]}})
    assert again["next"] == asked("look", state=data)["next"]
    assert again["model"]["title"] == "journey-edited"


def test_a_file_without_a_target_says_none() -> None:
    assert parse_model(asked("file", state=state("journey", target=None))["text"]).target is None


def test_a_text_that_the_model_cannot_read_is_refused_before_it_is_kept() -> None:
    with pytest.raises(ByhandError, match="not in the vocabulary"):
        asked("file", state=state(text="z"))


HTML = Path(html.__file__).parent


class _Links(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.ids: list[str] = []
        self.links: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name == "id" and value:
                self.ids.append(value)
            if name in ("href", "src") and value:
                self.links.append(value)


@pytest.mark.parametrize("model", ["tiny", "journey"])
def test_a_shared_page_stands_by_itself(model: str) -> None:
    html = asked("share", state=state(model, weights={"embed.token[0,0]": "3/7"}))["html"]
    page = _Links()
    page.feed(html)
    outside = [link for link in page.links if not link.startswith(("#", "data:"))]
    assert outside == []
    assert len(page.ids) == len(set(page.ids))
    assert html.startswith("<!doctype html>")
    assert not re.search(r"https?://(?!www\.w3\.org)", html)
    assert 'id="next-logits"' in html
    assert f"<title>{model}, by hand</title>" in html  # once
    assert "workings of single numbers are left out" not in html
    for name in ("book.css", "explained.css"):
        assert (HTML / name).read_text("utf-8")[:200] in html


def test_a_shared_page_says_what_was_edited_and_carries_the_model_file() -> None:
    edited = state(weights={"embed.token[0,0]": "3/7"}, architecture={"norm.eps": "1/100"})
    html = asked("share", state=edited)["html"]
    assert "Changed by hand: <code>norm.eps = 1/100</code>, <code>embed.token[0,0] = 3/7" in html
    kept = asked("file", state=edited)
    carried = re.search(r'download="([^"]+)" href="data:application/yaml;base64,([^"]+)"', html)
    assert carried is not None
    assert carried[1] == kept["name"] == "tiny-edited.yaml"
    assert b64decode(carried[2]).decode() == kept["text"]
    assert f"<pre>{escape(kept['text'])}</pre>" in html


def test_a_shared_page_speaks_the_language_of_the_state() -> None:
    assert '<html lang="es"' in asked("share", state=state(language="es"))["html"]


def test_names_of_files_are_safe() -> None:
    plain = read_state(state())
    assert file_name("../../etc/passwd", plain) == "etc-passwd"
    assert file_name("", plain) == "model"
    assert file_name("a b", read_state(state(weights={"embed.token[0,0]": "1"}))) == "a-b-edited"


def test_attribution_adds_up_to_the_logit() -> None:
    found = asked("explain", state=state("journey"))
    terms = [term["value"] for term in found["attribution"]["terms"]]
    assert found["token"] == "cat"
    assert sum(terms) == pytest.approx(found["attribution"]["total"])
    assert found["lens"][-1]["token"] == "cat"
    assert sum(one["share"] for one in found["lens"][0]["words"]) <= 1.0001


def test_explaining_follows_the_position_and_the_token() -> None:
    found = asked("explain", state=state("journey"), position=1, token="mat")
    assert (found["position"], found["token"]) == (1, "mat")
    with pytest.raises(InputError):
        answer(LIBRARY, "explain", {"state": state(), "token": "z"})
    assert asked("explain", state=state("abc-walkthrough"))["attribution"] is None

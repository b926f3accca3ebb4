"""Runs a random call on a random file, and looks whether it finished and left something whole.

It finishes with an answer or with one of byhand's own errors.  An error comes before the first line
of the answer, and leaves no file behind; an answer is whole: JSON parses, HTML closes what it
opens, spreadsheets and golden folders open, a PDF has its end.
"""

from __future__ import annotations

import json
import re
from contextlib import redirect_stderr, redirect_stdout
from html.parser import HTMLParser
from io import BytesIO, StringIO
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import yaml
from random_calls import Call
from random_files import RandomFile

import byhand
from byhand.cli import main
from byhand.errors import ByhandError
from byhand.golden import open_trace
from byhand.language import speak
from byhand.serving import Library, answer
from byhand.tracing import Trace
from calling import Outcome

VOID = {"br", "hr", "img", "input", "link", "meta", "wbr"}
ANSWERED, NO, REFUSED = 0, 1, 2
CLAIMED = 12  # steps that somebody claims, at most


class Unfinished(AssertionError):
    """A call that stopped in the middle, or left something in pieces."""


def finish(file: RandomFile, call: Call) -> str:
    """Runs the call; says whether it was answered or refused, or raises what went wrong."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        path = file.write(folder)
        try:
            if call.command == "serve":
                return _ask(file, path, call)
            return _run(path, folder, call)
        finally:
            speak("en")


# ------------------------------------------------------------------ the command line


def _run(path: Path, folder: Path, call: Call) -> str:
    arguments = [
        str(folder / each[1:]) if each.startswith("@") else each for each in call.arguments
    ]
    if call.command in ("check", "book"):
        write_claims(path, folder, call.seed)
    if call.command in ("prove", "verify"):
        write_proof(path, folder, call.seed)
    before = set(folder.rglob("*"))
    done = _called(call.command, str(path), *arguments)
    written = sorted(each for each in folder.rglob("*") if each not in before and each.is_file())
    told = f"byhand {call}\n{done.err}"
    _require(done.status in (ANSWERED, NO, REFUSED), f"status {done.status}: {told}")
    _require("Traceback" not in done.err, told)
    _require("cannot be written" not in done.err, told)
    refused = done.err.startswith("error: ") or "\nerror: " in done.err
    if refused:
        _require(not written, f"an error, and yet files {written}: {told}")
        if not (done.out and call.command == "generate"):  # which shows the tokens that came
            _require(not done.out, f"an error after the answer began: {told}")
            return "refused"
        came = re.search(r"^ +\d+  .*\n\n|\"generated\": \[\n", done.out, re.MULTILINE)
        _require(done.status == NO or came is not None, told)
    _require(refused or done.status != REFUSED, f"refused without a word: {told}")
    _require(bool(done.out or written), f"neither an answer nor an error: {told}")
    if "--json" in call.arguments and done.out:
        strict_json(done.out)
    for each in written:
        whole(each)
    if (folder / "golden").is_dir() and call.command == "trace":
        open_trace(folder / "golden")
    return "answered"


def _called(*arguments: str) -> Outcome:
    out, err = StringIO(), StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        status = main.run(arguments)
    return Outcome(status, out.getvalue(), err.getvalue())


def _require(holds: bool, otherwise: str) -> None:
    if not holds:
        raise Unfinished(otherwise)


# ------------------------------------------------------------------ somebody's claims


def write_claims(path: Path, folder: Path, seed: int) -> None:
    """Somebody's working of the model as YAML, JSON, CSV, npz and golden files, partly spoiled."""
    random = Random(seed)
    trace = _worked(path, "float32") if random.random() < 0.5 else None
    trace = trace or _worked(path, "float64")
    arrays: dict[str, Any] = {}
    for address, worked in () if trace is None else trace.steps.items():
        value = worked.value
        if isinstance(value, np.ndarray) and value.dtype.kind == "f" and random.random() < 0.7:
            arrays[address] = np.ma.filled(value, -np.inf) if np.ma.isMaskedArray(value) else value
    names = random.sample(sorted(arrays), min(CLAIMED, len(arrays)))
    arrays = {name: _spoiled(arrays[name], random) for name in names}
    np.savez(folder / "claims.npz", **arrays)
    rows = {name: _written(value.tolist()) for name, value in arrays.items()}
    (folder / "claims.yaml").write_text(yaml.safe_dump(rows), "utf-8")
    (folder / "claims.json").write_text(json.dumps(rows), "utf-8")
    lines = ["address,value"]
    for name, value in arrays.items():
        for index in np.ndindex(value.shape[:1]) if value.ndim == 2 else ():
            lines.append(",".join([f'"{name}[{index[0]}]"', *_written(value[index].tolist())]))
    (folder / "claims.csv").write_text("\n".join(lines) + "\n", "utf-8")
    (folder / "map.yaml").write_text("names: {out: logits}\nskip: [nothing.*]\n", "utf-8")
    if trace is not None:
        _called("trace", str(path), "--float", "float32", "--out", str(folder / "golden"))


def write_proof(path: Path, folder: Path, seed: int) -> None:
    """A property of the model's own text, its certificate, partly spoiled, and a function."""
    random = Random(seed)
    (folder / "answers.py").write_text("def answer(text):\n    return text[-1]\n", "utf-8")
    (folder / "asked.yaml").write_text("texts: {length: 1}\nclaim: constant\n", "utf-8")
    proof = folder / "proof.json"
    try:
        opened = byhand.open_model(path)
        trace = byhand.trace(opened, digits=3, only="next")
        comes = None if trace.next is None else trace.next[-1].id
        if comes is not None and opened.text is not None:
            said = [opened.text]
            byhand.prove(
                opened, texts=said, next=[opened.vocabulary.tokens[comes]], seconds=3
            ).save(proof)
    except ByhandError:
        pass
    if proof.exists() and random.random() < 0.3:
        data = proof.read_bytes()
        at = random.randrange(len(data))
        proof.write_bytes(data[:at] + random.choice((b"", b"7", b"}")) + data[at + 1 :])


def _worked(path: Path, format: str) -> Trace | None:
    try:
        return byhand.trace(path, float=format)
    except ByhandError:
        return None


def _spoiled(value: Any, random: Random) -> Any:
    if random.random() < 0.2 and value.size:
        value = value.copy()
        value.flat[random.randrange(value.size)] += random.choice((1e-3, 1.0, 100.0, np.nan))
    return value


def _written(value: Any) -> Any:
    if isinstance(value, list):
        return [_written(each) for each in value]
    if not np.isfinite(value):
        return "masked" if value < 0 else "_"
    return f"{value:.3f}" if abs(value) < 1e9 else f"{value:.3e}"


# ------------------------------------------------------------------ the server


def _ask(file: RandomFile, path: Path, call: Call) -> str:
    (question,) = call.arguments
    request = json.loads(call.request)
    library = Library({"odd": path})
    for key in ("state", "a", "b", "before"):
        if key in request:
            posted = not file.floats and call.seed % 2
            request[key]["model"] = {"file": file.text} if posted else {"name": "odd"}
    try:
        said = answer(library, question, request)
    except ByhandError as error:
        str(error)
        return "refused"
    json.dumps(said, allow_nan=False).encode()
    for html in _pages_in(said):
        Whole(html)
    return "answered"


def _pages_in(said: Any) -> list[str]:
    """Every text of an answer that is HTML."""
    if isinstance(said, dict):
        return [text for each in said.values() for text in _pages_in(each)]
    if isinstance(said, list):
        return [text for each in said for text in _pages_in(each)]
    is_html = isinstance(said, str) and said.startswith("<") and said.endswith(">")
    return [said] if is_html and "</" in said else []


# ------------------------------------------------------------------ what is whole


def whole(path: Path) -> None:
    """That a file can be read to its end by whom it is meant for."""
    data = path.read_bytes()
    _require(not path.name.startswith("."), f"a draft is left: {path}")
    _require(bool(data), f"an empty file: {path}")
    if path.suffix == ".html":
        text = data.decode()
        Whole(text)
        _require(text.rstrip().endswith(("</html>", ">")), f"no end: {path}")
    elif path.suffix == ".json":
        strict_json(data.decode())
    elif path.suffix in (".yaml", ".yml"):
        yaml.safe_load(data.decode())
    elif path.suffix == ".pdf":
        _require(data.startswith(b"%PDF") and data.rstrip().endswith(b"%%EOF"), f"{path}")
    elif path.suffix == ".xlsx":
        from openpyxl import load_workbook

        _require(bool(load_workbook(BytesIO(data)).sheetnames), f"{path}")
    elif path.suffix == ".csv":
        data.decode()


def strict_json(text: str) -> Any:
    """JSON as its definition has it: NaN and infinity are no numbers there."""

    def refuse(name: str) -> Any:
        raise Unfinished(f"JSON has no {name}")

    return json.loads(text, parse_constant=refuse)


class Whole(HTMLParser):
    """What is opened is closed, in order."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.feed(text)
        self.close()
        _require(not self.open, f"not closed: {self.open}")

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        names = [name for name, _value in attrs]
        _require(len(names) == len(set(names)), f"an attribute twice: {self.get_starttag_text()}")
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        _require(bool(self.open) and self.open.pop() == tag, f"</{tag}> closes nothing")

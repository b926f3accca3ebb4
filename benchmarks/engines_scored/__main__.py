"""Scores real engines: honest ones must be told as what they are, planted bugs seen and found.

    python -m benchmarks.engines_scored FOLDER… [--seed N] [--texts N] [--length N] [--digits N]
                                        [--scratch FOLDER] [--only honest|planted|llama] [--record]

Every engine writes a log in a real shape, and `byhand score` reads it.  Where a bug is planted, the
dump that the score asks for is made, and the `byhand check` that it names is run.  llama.cpp takes
part where llama-cpp-python and gguf are installed.  `--record` writes what was found for
docs/score-engines.md.
"""

from __future__ import annotations

import argparse
import json
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import torch

import byhand
from benchmarks.engines_scored import llama, shapes, texts, ways
from benchmarks.engines_scored.planted import BUGS, Bug
from byhand.document.media.json.records import write_document
from byhand.scoring.likeness import FACTOR

RECORD = Path(__file__).parents[2] / "docs" / "score-engines.json"
LIBRARIES = ("torch", "transformers", "llama_cpp_python")
POINTS = r"is that of token (\d+) of text ([\w-]+)"  # in a report


Row = dict[str, Any]  # an engine, and what was said of it


@dataclass
class Run:
    """What is asked for."""

    folder: Path
    scratch: Path
    digits: int
    seed: int
    texts: list[texts.Text]
    tokenizer: Any

    def decode(self, id: int) -> str:
        """The text of one token, as engines write it."""
        return str(self.tokenizer.decode([id], skip_special_tokens=False))


def command(*arguments: str | Path) -> tuple[int, str]:
    """A command of byhand: its status and what it prints."""
    asked = [sys.executable, "-m", "byhand", *map(str, arguments)]
    done = subprocess.run(asked, capture_output=True, text=True, check=False)
    if done.returncode not in (0, 1):
        print(done.stderr, file=sys.stderr)
    return done.returncode, done.stdout


def scored(run: Run, logs: Sequence[tuple[str, Path]]) -> tuple[dict[str, Any], str]:
    """The score of logs, as data and as the report that it prints."""
    listed, folder = run.scratch / "texts.jsonl", run.scratch / "score"
    texts.write(run.texts, listed)
    against = [part for engine, path in logs for part in ("--against", f"{engine}={path}")]
    given = [str(run.folder), str(listed), *against, "--digits", str(run.digits)]
    _status, report = command("score", *given, "--out", folder)
    found: dict[str, Any] = json.loads((folder / "score.json").read_text())
    return found, " ".join(report.split())


def told(engine: dict[str, Any]) -> str:
    """The finest format that the errors are no wider than."""
    for one in engine["likeness"]:
        if one["high"] is not None and one["high"] <= FACTOR:
            return str(one["format"])
    return "wider than " + str(engine["likeness"][-1]["format"])


def honest(run: Run) -> list[Row]:
    """transformers in all its ways, each told as what it is or not."""
    logs = []
    for number, (way, rows) in enumerate(ways.logits_of(run.folder, run.texts)):
        write = shapes.SHAPES[number % len(shapes.SHAPES)]
        own = shapes.logprobs(rows)
        path = write(run.scratch / way.name.replace(" ", "-"), run.texts, own, run.decode)
        logs.append((way.name, path))
    data, _report = scored(run, logs)
    return [
        show(run, "honest", way.name, engine, told(engine) in way.like and not engine["findings"])
        for way, engine in zip(ways.WAYS, data["engines"], strict=True)
    ]


def show(run: Run, kind: str, name: str, engine: dict[str, Any], good: bool | None) -> Row:
    """Prints a line of the table; what is recorded of it."""
    summary, found = engine["summary"], told(engine)
    mark = " " if good is None else "+" if good else "-"
    print(
        f"{mark} {run.folder.name:12} {kind:8} {name:44} {summary['count']:5} tokens"
        f"  spread {number(summary['spread'])}  largest {number(summary['largest'])}  {found}",
        flush=True,
    )
    for finding in engine["findings"]:
        print(f"      {finding}")
    known = {key: summary[key] for key in ("count", "spread", "largest")}
    return {
        "model": run.folder.name, "kind": kind, "engine": name, **known, "told": found,
        "good": good, "findings": engine["findings"],
    }  # fmt: skip


def number(value: float | None) -> str:
    """A number of a summary; null where it is not finite."""
    return "     ∞  " if value is None else f"{value:.2e}"


def llama_cpp(run: Run) -> list[Row]:
    """llama.cpp with weights in several formats; what is told of each is printed."""
    from benchmarks.llama_cpp.convert import convert
    from benchmarks.llama_cpp.engine import quantise

    plain = run.scratch / f"{run.folder.name}.gguf"
    convert(run.folder, plain)
    logs = []
    for weights, cache in (("F32", "F32"), ("F32", "F16"), ("BF16", "F16"), ("Q8_0", "F16")):
        model = plain
        if weights != "F32":
            model = run.scratch / f"{run.folder.name}.{weights}.gguf"
            quantise(plain, model, weights)
        name = f"{weights} weights, {cache} cache"
        place = run.scratch / f"llama-{weights}-{cache}"
        engine = llama.opened(model, run.texts, cache)
        logs.append((f"{name}, completions", llama.completed(engine, run.texts, place)))
        own = place.with_name(f"{place.name}-logits")
        logs.append((f"{name}, logits", llama.worked(engine, run.texts, own)))
    data, _report = scored(run, logs)
    pairs = zip(logs, data["engines"], strict=True)
    return [show(run, "llama", name, engine, None) for (name, _path), engine in pairs]


def planted(run: Run) -> list[Row]:
    """Every bug: seen in the score, and found by the check it points to."""
    rows = []
    made = np.random.default_rng(run.seed)
    models, logs = [], []
    for bug in BUGS:
        model = texts.model_of(run.folder, attn_implementation="eager")
        what = bug.plant(model, made)
        name = bug.name.replace(" ", "-")
        own = shapes.logprobs(ways.alone(model, run.texts))
        logs.append((name, shapes.trl(run.scratch / name, run.texts, own, run.decode)))
        models.append((bug, model, what))
    data, report = scored(run, logs)
    for (bug, model, what), engine in zip(models, data["engines"], strict=True):
        seen = told(engine) != "float32"
        row = show(run, "planted", f"{bug.name}: {what}", engine, seen)
        rows.append(row | follow(run, bug, model, report))
    return rows


def follow(run: Run, bug: Bug, model: Any, report: str) -> Row:
    """Makes the dump that the report asks for, and runs the command that it gives."""
    name = re.escape(bug.name.replace(" ", "-"))
    pointed = re.search(rf"(?:error of|if) {name} .*?{POINTS}", report)
    told_command = re.search(r"byhand check \S+ dump\.safetensors(?: --precision \S+)?", report)
    if pointed is None or told_command is None:
        print("      not found: the report asks for no dump")
        return {"found": False, "first": None, "causes": []}
    last, title = int(pointed.group(1)), pointed.group(2)
    text = next(each for each in run.texts if each.name == title)
    ids = torch.tensor([text.ids[:last]])
    dump = run.scratch / "dump.safetensors"
    replace(byhand.capture(model, ids), positions=None).save(dump)
    asked = shlex.split(told_command.group(0))[1:]
    asked[asked.index("dump.safetensors")] = str(dump)
    status, answer = command(*asked, "--json")
    marking = json.loads(answer) if answer.strip() else {"texts": []}
    line = first_error(marking)
    address = line["address"] if line else "none"
    causes = [each["sentence"] for each in line["suspects"]] if line else []
    found = status == 1 and bug.shows(address)
    mark = "found" if found else "not found"
    print(f"      {mark}: first error {address}; {'; '.join(causes) or 'no cause named'}")
    return {"found": found, "first": address, "causes": causes}


def first_error(marking: dict[str, Any]) -> dict[str, Any] | None:
    """The first line of a marking that is an error."""
    for text in marking["texts"]:
        for line in text["lines"]:
            if line["verdict"] == "error":
                return dict(line)
    return None


PARTS = {"honest": honest, "llama": llama_cpp, "planted": planted}


def record(asked: argparse.Namespace, rows: list[Row]) -> None:
    """Writes what was found for the documentation."""
    how = {name: getattr(asked, name) for name in ("seed", "texts", "length", "digits")}
    versions = {name: version(name) for name in LIBRARIES}
    with RECORD.open("w", encoding="utf-8") as file:
        write_document({**how, **versions, "rows": rows}, file, ("rows",))


def main() -> None:
    """Runs what was asked for, for each folder."""
    parser = argparse.ArgumentParser()
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--texts", type=int, default=12)
    parser.add_argument("--length", type=int, default=64)
    parser.add_argument("--digits", type=int, default=6)
    parser.add_argument("--scratch", type=Path)
    parser.add_argument("--only", choices=list(PARTS))
    parser.add_argument("--record", action="store_true")
    asked = parser.parse_args()
    torch.set_num_threads(1)
    rows = []
    for folder in asked.folders:
        with tempfile.TemporaryDirectory() as kept:
            scratch = asked.scratch or Path(kept)
            scratch.mkdir(parents=True, exist_ok=True)
            tokenizer = _tokenizer(folder)
            own = texts.sampled(folder, tokenizer, asked.seed, asked.texts, asked.length)
            run = Run(folder, scratch, asked.digits, asked.seed, own, tokenizer)
            for part in (asked.only,) if asked.only else PARTS:
                rows += PARTS[part](run)
    for kind, right in (("honest", "good"), ("planted", "good"), ("planted", "found")):
        of = [row for row in rows if row["kind"] == kind]
        print(f"{kind}: {sum(row[right] for row in of)} of {len(of)} {right}")
    if asked.record:
        record(asked, rows)


def _tokenizer(folder: Path) -> Any:
    import transformers

    library: Any = transformers
    return library.PreTrainedTokenizerFast(tokenizer_file=str(folder / "tokenizer.json"))


if __name__ == "__main__":
    main()

"""The trained built-in models, made again from their runs.

    python tools/trained.py         # trains abc and minigpt and writes their model files
    python tools/trained.py abc     # just one

abc is written as decimals of four places, for pencils; minigpt as exact floats.  The bits of a
training depend on the processor, so another machine may write other digits.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path

import numpy as np
import yaml

from byhand.models import open_model
from byhand.train import train

MODELS = Path(__file__).resolve().parent.parent / "src" / "byhand" / "models"
PLACES = 4
ABOUT = {
    "abc": "Trained on ABCABC… in two dimensions: one head, one block, {count} parameters of four "
    "decimals.",
    "minigpt": "A GPT of {count} parameters that has learned English and Spanish verb forms.",
}
NOTES = {
    "abc": [
        "Made by byhand train abc, then rounded to four decimals.",
        "The model has no norms. In two dimensions a layernorm would leave nothing of a vector "
        "but a sign.",
    ],
    "minigpt": [
        "Made by byhand train minigpt. What follows the text is a form it has never seen.",
    ],
}
TARGET = {"abc": "A", "minigpt": "-ió"}


def make(name: str) -> None:
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / name
        result = train(name, out=folder)
        print(f"{name}: held-out loss {result.loss:.6f}, right {result.right}/{result.questions}")
        document = yaml.safe_load((folder / "model.yaml").read_text("utf-8"))
        weights = open_model(folder / "model.yaml").weights
        count = sum(tensor.size for tensor in weights.values())
        file = f"{name}.safetensors"
        if name == "minigpt":
            shutil.copyfile(folder / "model.safetensors", MODELS / file)
    head = {
        "name": name,
        "about": ABOUT[name].format(count=f"{count:,}"),
        "vocabulary": document["vocabulary"],
        "text": document["text"],
        "target": TARGET[name],
        **({"end": "<end>"} if name == "minigpt" else {}),
        "notes": NOTES[name],
        "model": document["model"],
    }
    text = yaml.safe_dump(
        head, allow_unicode=True, sort_keys=False, width=96, default_flow_style=None
    )
    text += "weights: {file: minigpt.safetensors}\n" if name == "minigpt" else "weights:\n"
    if name == "abc":
        text += "".join(written(key, tensor.data) for key, tensor in weights.items())
    (MODELS / f"{name}.yaml").write_text(text, "utf-8")


def written(name: str, data: np.ndarray) -> str:
    """A tensor as decimals of four places, one line for each row."""
    if data.ndim == 1:
        return f"  {name}: {row(data)}\n"
    return f"  {name}:\n" + "".join(f"    - {row(line)}\n" for line in data)


def row(numbers: np.ndarray) -> str:
    return "[" + ", ".join(f"{number:.{PLACES}f}" for number in numbers) + "]"


if __name__ == "__main__":
    for wanted in sys.argv[1:] or ("abc", "minigpt"):
        make(wanted)

"""How often formats say another token than the true one: the surveys of docs/survey.md.

    python -m benchmarks.survey minigpt --record
    python -m benchmarks.survey stories path/to/stories260K --record
    python -m benchmarks.survey python path/to/checkpoint --record

The texts of minigpt are its own corpus.  Those of the stories are written here.  Those of the
checkpoint that has learned Python are the first functions of modules of the standard library.  With
another Python they may be others, so its version and their hash are recorded.  Each record is what
`byhand score --survey --json` prints, with the texts, the time and the memory.
"""

from __future__ import annotations

import hashlib
import importlib
import inspect
import json
import platform
import resource
import sys
from pathlib import Path
from time import process_time

import byhand
from byhand.document.compose.survey.plots import plots_of_layers, plots_of_margins
from byhand.document.media.html.scatter import scatter_on_paper
from byhand.document.media.json.records import write_document
from byhand.document.media.json.survey import document_of
from byhand.model import Model
from byhand.scoring.survey import Survey
from byhand.train.corpora import open_corpus

DOCS = Path(__file__).parent.parent / "docs"
MODULES = (
    "bisect", "calendar", "colorsys", "csv", "fnmatch", "fractions", "heapq", "shlex", "string",
    "textwrap",
)  # fmt: skip
PICTURED = "python"  # whose plots the documentation shows
LENGTH = 128  # tokens of each text of a checkpoint
STORIES = (
    "Once upon a time, there was a little cat named Tom. Tom lived in a small red house near "
    "a big tree. Every day he sat at the window and looked at the birds. One day, a bird came "
    "to the window and said hello. Tom was very happy to have a new friend.",
    "Lily and Ben went to the park with their mom. They wanted to play on the slide, but it "
    "was wet. Ben had an idea. He took off his coat and wiped the slide. Lily laughed and "
    "went down first. They played until the sun went away.",
    "One day, a boy found a shiny stone in the garden. He showed it to his dad. His dad said "
    "it was a very old stone from the sea. The boy put the stone in a box and kept it under "
    "his bed. At night he dreamed of fish and big waves.",
    "There was a bear who loved honey. The bear climbed a tall tree to find some, but the "
    "bees were angry. The bear said sorry and went home. The next day, the bees gave him a "
    "little honey because he was kind.",
    "Sara had a red ball. She threw the ball too high and it went over the wall. Sara was "
    "sad. An old man came out of his house and gave the ball back to her. Sara said thank you "
    "and gave him a flower.",
    "The train was late and it was cold outside. Anna held her grandma's hand and told her a "
    "story about a brave mouse. When the story was over, the train came. Grandma said it was "
    "the best story that she knew.",
    "Max wanted to bake a cake for his mom. He took flour, milk and two eggs. The kitchen was "
    "a big mess. His mom came in and smiled. They cleaned the kitchen together and ate the "
    "cake.",
    "A small frog could not jump. All the other frogs jumped over the water, but the small "
    "frog was afraid. His sister told him to close his eyes and try. He jumped and fell into "
    "the water with a splash. Everybody clapped.",
)


def texts_of(name: str, model: Model) -> list[list[int]]:
    """The texts as token ids."""
    if name == "minigpt":
        return [list(map(int, each)) for each in open_corpus("verbs").train]
    if name == "stories":
        return [list(model.read(each))[:LENGTH] for each in STORIES]
    return [list(model.read(first_function(each)))[:LENGTH] for each in MODULES]


def first_function(module: str) -> str:
    """The source of a module from its first function or class on."""
    source = inspect.getsource(importlib.import_module(module))
    start = min(place for word in ("\ndef ", "\nclass ") if (place := source.find(word)) >= 0)
    return source[start + 1 : start + 1 + 8 * LENGTH]


def main() -> None:
    """Surveys one model, prints the report's JSON, and records it with --record."""
    given = [each for each in sys.argv[1:] if not each.startswith("--")]
    name, where = given[0], given[-1]
    model = byhand.open_model(where)
    texts = texts_of(name, model)
    start = process_time()
    found = byhand.survey(
        model, texts, progress=lambda numbers, done, of: print(f"{done}/{of}", file=sys.stderr)
    )
    record = {
        **document_of(found),
        "lengths": [min(map(len, texts)), max(map(len, texts))],
        "seconds": round(process_time() - start),
        "megabytes": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024),
        "hash": hashlib.sha256(json.dumps(texts).encode()).hexdigest()[:16],
        "python": platform.python_version() if name == "python" else None,
    }
    if "--record" in sys.argv:
        with (DOCS / f"survey-{name}.json").open("w", encoding="utf-8") as file:
            write_document(record, file, ("margins", "formats"))
        if name == PICTURED:
            draw(found, name)
    else:
        print(json.dumps(record, indent=1))


def draw(found: Survey, name: str) -> None:
    """Two of the plots of the report, for the documentation."""
    _margins, flips, _changes = plots_of_margins(found)
    layers = next(iter(plots_of_layers(found)))
    for plot, kind in ((flips, "flips"), (layers, "layers")):
        place = DOCS / "pictures" / f"survey-{name}-{kind}.svg"
        place.write_text(scatter_on_paper(plot) + "\n", "utf-8")


if __name__ == "__main__":
    main()

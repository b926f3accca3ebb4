"""Golden files: a trace saved as a folder that any program can read, and read back.

    manifest.json        what was worked out: model, numbers, tokens, every step with its axes
    values.safetensors   every step as an array
    exact.json           every step's exact, named or enclosed values as text, with their letters

docs/golden-files.md describes them for people who write readers.  The rooms: `manifest` (what is
said beside the numbers), `enclosed` (enclosures as floats with radii), `writing`, `reading`.
"""

from byhand.golden.reading import SavedStep, SavedTrace, open_trace
from byhand.golden.writing import save, save_working

__all__ = ["SavedStep", "SavedTrace", "open_trace", "save", "save_working"]

"""Model files: a YAML or JSON text that describes a model completely.

    read_model(path)        → Model
    parse_model(text, …)    → Model, from a text
    read_spec(path)         → ModelSpec, without looking at the weights
    making.make_model(…)    → Model, from Python values

docs/model-files.md is the reference of the format.  Modules: `tree` (text with line numbers),
`scalars`, `architecture` (→ ModelSpec), `tensors` with `literals`, `products` and `normal` (→
Weights), `document` (the whole file), `tables` and `writing` (the other way round).  Also: `mapped`
and `tensor_file`, which read and write safetensors, and `saved`, the folders of traces.
"""

from byhand.files.document import parse_model, parse_spec, read_model, read_spec

__all__ = ["parse_model", "parse_spec", "read_model", "read_spec"]

"""The page's own words in the languages that byhand speaks: key → text, `{names}` left to fill in.

What is said about a model, a step or a number comes with the answers and is not here.
"""

from __future__ import annotations

from byhand.language import _, speaking


def words(language: str) -> dict[str, str]:
    """Every word of the page in one language."""
    with speaking(language):
        return {
            **_around(),
            **_steps(),
            **_model(),
            **_pictures(),
            **_two(),
            **_practice(),
            **_keys(),
        }


def _around() -> dict[str, str]:
    return {
        "skip": _("Skip to the step"),
        "views": _("Views"),
        "view.steps": _("Steps"),
        "view.weights": _("Weights"),
        "view.pictures": _("Pictures"),
        "view.compare": _("Compare"),
        "view.practice": _("Practice"),
        "undo": _("Undo"),
        "redo": _("Redo"),
        "reset": _("Take back every edit"),
        "keep": _("Keep"),
        "keep.file": _("Model file"),
        "keep.file.about": _("as it is now, to open here or with byhand"),
        "keep.page": _("One HTML page"),
        "keep.page.about": _("every step worked out, to pass on"),
        "keep.link": _("Copy the link"),
        "keep.link.about": _("to this very place, with your edits in it"),
        "theme": _("Light, dark, or as the system has it"),
        "help": _("Keys and help"),
        "close": _("Close"),
        "model": _("Model"),
        "open": _("Open a model file"),
        "own.file": _("your file"),
        "text": _("Text"),
        "numbers": _("Numbers"),
        "numbers.exact": _("exact"),
        "numbers.digits 12": _("12 proven digits"),
        "numbers.float64": "float64",
        "numbers.float32": "float32",
        "numbers.float16": "float16",
        "numbers.bfloat16": "bfloat16",
        "numbers.decimals 2": _("two decimals"),
        "tokens": _("Tokens; choose the position to look at"),
        "token.about": _("token {id}"),
        "comes": _("what comes next"),
        "append": _("Write it behind the text"),
        "target": _("aim"),
        "target.none": _("no aim"),
        "loss": _("loss"),
        "error.where": _("where"),
        "error.expected": _("expected"),
        "error.found": _("found"),
        "error.hint": _("hint"),
        "dismiss": _("Dismiss"),
        "waiting": _("Working it out …"),
        "waiting.turn": _("waiting for its turn"),
        "cancel": _("Cancel"),
        "offline": _("the server does not answer"),
        "drop": _("Let go: the model file opens here. It stays on this computer."),
        "drop.large": _("{name} is too large to be opened here"),
        "drop.limit": _("a model file of at most 4 MB"),
    }


def _steps() -> dict[str, str]:
    return {
        "map": _("The whole pass"),
        "map.here": _("you are here"),
        "map.differs": _("numbers differ here"),
        "map.changed": _("changed by the last edit"),
        "page.tokens": _("From text to numbers"),
        "page.attention": _("Attention"),
        "page.block": _("Around the block"),
        "page.next": _("The next token"),
        "block": _("block {layer}"),
        "head": _("head {head}"),
        "player": _("From step to step"),
        "first": _("First step"),
        "previous": _("Step before"),
        "following": _("Next step"),
        "last": _("Last step"),
        "play": _("Play"),
        "pause": _("Pause"),
        "reads": _("reads"),
        "read-by": _("read by"),
        "rail": _("What comes of it"),
        "next": _("What comes next"),
        "word": _("word"),
        "logit": _("logit"),
        "probability": _("probability"),
        "changed": _("Since the last change"),
        "changed.nothing": _("No number of the pass is another one."),
        "changed.count": _("{count} numbers are others now."),
        "changed.first": _("The first are in “{title}”."),
        "changed.compare": _("Before and after, side by side"),
        "becomes": _("becomes"),
        "way": _("The way of position {label}"),
        "length": _("length {size}"),
        "masked": _("masked"),
        "number.from": _("comes from {count} numbers"),
        "number.readers": _("read by {count}"),
        "number.go": _("Where it is worked out"),
        "number.go.reader": _("Where it is read"),
        "number.edit": _("Change it"),
        "number.practise": _("Work it out yourself"),
        "number.press": _("Press to keep this open."),
        "number.press.weight": _("Press to change it."),
        "editor.how": _("0.2, −3/2, sqrt(2)/2 · ↑ ↓ nudge · Enter keeps · Esc takes back"),
    }


def _model() -> dict[str, str]:
    return {
        "weights.title": _("{model}, laid open"),
        "architecture": _("Architecture"),
        "weights": _("Weights"),
        "weights.count": _("{count} numbers"),
        "weights.how": _("Press a number to change it; everything downstream follows."),
        "weights.fixed": _("The weights of this model are too many to change here."),
        "weights.same": _("the same numbers as {name}; changed there, they change here"),
        "edited": _("edited"),
        "pan.↑": _("rows above"),
        "pan.↓": _("rows below"),
        "pan.←": _("columns to the left"),
        "pan.→": _("columns to the right"),
        "pan.to": _("where the window on {name} begins: row, column"),
        "setting.norm.kind": _("Norm"),
        "setting.norm.place": _("Norm stands"),
        "setting.norm.eps": "eps",
        "setting.norm.gain": _("Norm has a gain"),
        "setting.norm.bias": _("Norm has a bias"),
        "setting.final_norm": _("Last norm"),
        "setting.position": _("Positions"),
        "setting.context": _("Longest text"),
        "setting.activation": _("Activation"),
        "setting.heads": _("Heads"),
        "setting.kv_heads": _("Heads of keys and values"),
        "setting.scale": _("Scores are scaled by"),
        "setting.causal": _("Only earlier positions are seen"),
        "setting.window": _("Window"),
        "setting.residual": _("Trips"),
        "setting.tied": _("Logits by the embedding"),
    }


def _pictures() -> dict[str, str]:
    return {
        "pictures.title": _("Pictures of position {label}"),
        "attention": _("Attention"),
        "attention.about": _(
            "Each row shares out one whole:"
            " how much a position takes from each one that it may look at."
        ),
        "attribution": _("Who speaks for the word"),
        "attribution.about": _("What each part of the model adds to the logit of {token}."),
        "attribution.none": _("This cannot be told apart for this model."),
        "attribution.total": _("together: the logit of {token}"),
        "lens": _("What would come if the model stopped here"),
        "lens.about": _("The stream, read off after each part as if it were the last."),
        "stream": _("The stream, number by number"),
        "stream.about": _(
            "Each line is the stream, or what is added to it: orange above zero, blue below,"
            " full colour at {reach}."
        ),
        "stream.largest": _("largest in size: number {at}, {value}"),
        "logits": _("Logits"),
        "part.token": _("the token"),
        "part.position": _("the position"),
        "part.embedding": _("the embedding"),
        "part.head": _("attention"),
        "part.attention": _("attention"),
        "part.bias": _("a bias"),
        "part.norm": _("a norm's bias"),
        "part.mlp": "MLP",
        "part.final": _("the last norm"),
    }


def _two() -> dict[str, str]:
    return {
        "compare.title": _("Two passes, side by side"),
        "compare.presets": _("compare with"),
        "compare.a": _("what you look at"),
        "compare.b": _("compared with"),
        "preset.float32": "float32",
        "preset.bfloat16": "bfloat16",
        "preset.proven": _("proven numbers"),
        "preset.pre": _("norms before (pre)"),
        "preset.post": _("norms after (post)"),
        "preset.original": _("without your edits"),
        "preset.before": _("before the last change"),
        "along": _("Along the pass"),
        "along.about": _("The largest difference of each step; bars grow with its digits."),
        "along.first": _("here they part"),
        "step": _("step"),
        "difference": _("largest difference"),
        "only.a": _("only in A"),
        "only.b": _("only in B"),
    }


def _practice() -> dict[str, str]:
    return {
        "practice.title": _("Your turn"),
        "practice.about": _("One number is hidden. Work it out, to three decimals or exactly."),
        "practice.given": _("What it reads"),
        "practice.answer": _("Your number"),
        "practice.check": _("Check"),
        "practice.reveal": _("Show it"),
        "practice.another": _("Another one"),
        "practice.see": _("To this step"),
        "practice.expected": _("It is"),
        "practice.score": _("{right} of {tried} follow"),
        "where": _("where {names}"),
    }


def _keys() -> dict[str, str]:
    return {
        "help.about": _(
            "Point at a number to see its working and, along the map, all it comes from."
            " Press a weight to change it."
        ),
        "help.private": _("Everything is worked out on this computer; nothing leaves it."),
        "keys.step": _("a step back, a step on"),
        "keys.ends": _("first and last step"),
        "keys.play": _("play and pause"),
        "keys.tab": _("to the next table of numbers"),
        "keys.table": _("from number to number in a table"),
        "keys.enter": _("keep a number's working open, or change a weight"),
        "keys.undo": _("undo"),
        "keys.redo": _("redo"),
        "keys.escape": _("let go, take back"),
        "keys.help": _("this help"),
    }

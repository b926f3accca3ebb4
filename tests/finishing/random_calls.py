"""Random calls of every command that shows, saves, checks, explains, publishes or serves a model.

A call is a command line whose files lie in a folder of its own (`@` stands for it), or a question
to the server.  What was chosen is kept, so that a test can say which options its calls have.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import lru_cache
from random import Random
from typing import Any

from byhand import forward
from byhand.address import write_index
from byhand.document.compose.explanation import SECTIONS
from byhand.errors import ByhandError
from byhand.files import parse_model
from byhand.model import Model
from byhand.parameters import parameters
from byhand.plan import Plan
from byhand.serving.settings import SETTINGS

FORMATS = ("float64", "float32", "bfloat16", "float16")
STYLES = ("byhand", "transformer_lens", "gpt2", "llama", "gpt_neox")
SYSTEMS: tuple[tuple[str, ...], ...] = (
    (), ("--exact",), ("--digits", "1"), ("--digits", "6"), ("--digits", "30"),
    ("--decimals", "0"), ("--decimals", "2"), *(("--float", each) for each in FORMATS),
    ("--device", "cpu"), ("--float", "bfloat16", "--device", "cpu"),
)  # fmt: skip
COMPARED = tuple(("--digits", "5", "--float", each) for each in FORMATS)
ASKED_FOR = ("values", "shapes,counts", "gradients", "step", "values,gradients,step")
LEVELS = ("spread", "row", "block", "pass", "mistake", "backward")
CLAIMS = ("claims.yaml", "claims.json", "claims.csv", "claims.npz", "golden")
COMMANDS = (
    "trace", "check", "explain", "book", "generate", "count", "serve", "step", "prove", "verify",
)  # fmt: skip


@dataclass(frozen=True)
class Call:
    """A command with its options, or a question with its request."""

    command: str
    arguments: tuple[str, ...] = ()
    request: str = ""  # of a question, as JSON: the model is put in when it is asked
    seed: int = 0  # of the claims
    labels: frozenset[str] = frozenset()

    def __str__(self) -> str:
        return f"{self.command} {' '.join(self.arguments)} {self.request}".strip()


class Choosing:
    """Chooses options at random, and addresses that a model has."""

    def __init__(self, random: Random, text: str, command: str) -> None:
        self.random = random
        self.model = _opened(text)
        self.plan = _plan(self.model)
        self.arguments: list[str] = []
        self.labels: set[str] = set()
        self.command = command

    def flag(self, name: str, chance: float = 0.3) -> bool:
        """Adds an option without a value."""
        chosen = self.random.random() < chance
        if chosen:
            self.arguments.append(name)
            self.labels.add(f"{self.command} {name}")
        return chosen

    def option(self, name: str, value: str, chance: float = 0.3) -> None:
        if self.random.random() < chance:
            self.arguments += [name, value]
            self.labels.add(f"{self.command} {name}")

    def numbers(self, *more: tuple[str, ...]) -> None:
        system = self.random.choice((*SYSTEMS, *more))
        self.arguments += system
        self.labels.add(f"{self.command} {' '.join(system) or 'as usual'}")
        self.labels |= {f"{self.command} {each}" for each in system if each.startswith("--")}

    def word(self) -> str:
        """A token that the model has, or now and then one it has not."""
        if self.model is None or self.random.random() < 0.05:
            return "nowhere"
        return self.random.choice(self.model.vocabulary.tokens)

    def said(self) -> str:
        """A text of tokens that the model has."""
        if self.model is None:
            return "nowhere"
        tokens = self.random.choices(self.model.vocabulary.tokens, k=self.random.randint(1, 3))
        return ("" if self.model.vocabulary.kind == "characters" else " ").join(tokens)

    def step(self) -> str:
        if self.plan is None or self.random.random() < 0.03:
            return "block.7.attn"
        return self.random.choice([each.address for each in self.plan])

    def address(self) -> str:
        """One number of a step or of a weight."""
        if self.model is None or self.plan is None:
            return "logits[0,0]"
        if self.random.random() < 0.2:
            weight = self.random.choice(parameters(self.model.spec))
            return f"weight.{weight.name}{self._index(weight.shape)}"
        step = self.random.choice(list(self.plan))
        return f"{step.address}{self._index(step.shape)}"

    def _index(self, shape: tuple[int, ...]) -> str:
        index = tuple(self.random.randrange(size) for size in shape)
        return write_index(index) if index else ""

    def made(self, request: dict[str, Any] | None = None) -> Call:
        said = "" if request is None else json.dumps(request, ensure_ascii=False)
        seed = self.random.randrange(10**6)
        return Call(self.command, tuple(self.arguments), said, seed, frozenset(self.labels))


@lru_cache(maxsize=1)
def _opened(text: str) -> Model | None:
    try:
        return parse_model(text, "odd.yaml")
    except ByhandError:
        return None


def _plan(model: Model | None) -> Plan | None:
    if model is None or model.text is None:
        return None
    try:
        return forward.plan(model.spec, len(model.vocabulary.encode(model.text)), target=True,
                            head_outputs=True)  # fmt: skip
    except ByhandError:
        return None


def random_call(command: str, text: str, random: Random) -> Call:
    """A call of a command for the model of a file."""
    return MAKERS[command](Choosing(random, text, command))


def _text(choosing: Choosing, chance: float = 0.2) -> None:
    """Now and then another text than the model's own."""
    if choosing.random.random() < chance:
        choosing.arguments += ["--", choosing.said()]
        choosing.labels.add(f"{choosing.command} TEXT")


def _beside(choosing: Choosing) -> None:
    """What is read beside the text: refused by a model without an encoder or without segments."""
    choosing.option("--source", choosing.said(), 0.03)
    choosing.option("--segments", choosing.random.choice(("0,0", "0", "1 0", "x")), 0.02)


def _language(choosing: Choosing) -> None:
    choosing.option("--lang", "es", 0.15)


# ------------------------------------------------------------------ the commands


def _trace(choosing: Choosing) -> Call:
    for _again in range(choosing.random.choice((0, 0, 0, 1, 2))):
        choosing.option("--only", choosing.step(), 1)
    for _again in range(choosing.random.choice((0, 0, 1, 2))):
        choosing.option("--at", choosing.address(), 1)
    choosing.option("--target", choosing.word())
    if not choosing.flag("--stop-at-boundary", 0.1):
        choosing.numbers(*COMPARED)
    choosing.flag("--heads")
    choosing.flag("--backward", 0.25)
    choosing.flag("--losses", 0.2)
    choosing.flag("--logprobs", 0.1)
    choosing.flag("--shapes", 0.08)
    choosing.option("--out", "@golden", 0.25)
    choosing.option("--against", choosing.random.choice(("@odd.yaml", "@odd.yaml", "tiny")), 0.05)
    choosing.option("--names", choosing.random.choice(STYLES), 0.2)
    choosing.flag("--json")
    _beside(choosing)
    _language(choosing)
    _text(choosing)
    return choosing.made()


def _check(choosing: Choosing) -> Call:
    kind = choosing.random.choice(CLAIMS)
    choosing.labels.add(f"check {kind}")
    choosing.arguments.append(f"@{kind}")
    choosing.option("--target", choosing.word())
    choosing.option("--precision", choosing.random.choice((*FORMATS, "tf32", "decimals:2")), 0.25)
    choosing.option("--optimizer", choosing.random.choice(("sgd lr=0.1", "adamw lr=1e-3")), 0.15)
    choosing.option("--names", "@map.yaml", 0.1)
    choosing.option("--only", choosing.step(), 0.15)
    choosing.flag("--all")
    choosing.option("--text", choosing.said(), 0.1)
    choosing.flag("--no-suspects", 0.5)
    choosing.flag("--allow-unjudged")
    choosing.option("--report", "@report.html")
    choosing.option("--gradebook", "@marks.csv", 0.2)
    choosing.option("--feedback", "@feedback", 0.08)
    choosing.flag("--json")
    _beside(choosing)
    _language(choosing)
    return choosing.made()


def _explain(choosing: Choosing) -> Call:
    for _again in range(choosing.random.choice((0, 1, 1, 2))):
        section = choosing.random.choice(SECTIONS)
        choosing.option("--only", section, 1)
        choosing.labels.add(f"explain --only {section}")
    choosing.option("--position", str(choosing.random.randrange(2)), 0.2)
    choosing.option("--token", choosing.word(), 0.2)
    choosing.option("--against", choosing.word(), 0.15)
    for name in ("--alone", "--neurons", "--keys", "--all"):
        choosing.flag(name, 0.2)
    inputs = "inputs" in choosing.arguments
    choosing.option("--length", str(choosing.random.randint(1, 3)), 0.5 if inputs else 0.02)
    choosing.numbers()
    choosing.option("--report", "@report.html")
    choosing.flag("--json")
    _beside(choosing)
    _language(choosing)
    _text(choosing)
    return choosing.made()


def _book(choosing: Choosing) -> Call:
    choosing.option("--out", "@book", 1)
    choosing.option("--target", choosing.word())
    choosing.option("--claims", choosing.random.choice([f"@{each}" for each in CLAIMS]), 0.3)
    choosing.option("--at", choosing.address(), 0.2)
    choosing.flag("--pdf", 0.06)
    choosing.flag("--xlsx", 0.4)
    if choosing.flag("--worksheet", 0.4):
        choosing.option("--ask", choosing.random.choice(ASKED_FOR), 0.4)
        choosing.option("--level", choosing.random.choice(LEVELS), 0.3)
        choosing.option("--students", "Ada,Zoë", 0.15)
        choosing.option("--blanks", str(choosing.random.choice((1, 3, 500))), 0.3)
        choosing.option("--seed", str(choosing.random.randrange(9)), 0.3)
    choosing.numbers()
    _beside(choosing)
    _language(choosing)
    _text(choosing, 0.1)
    return choosing.made()


def _generate(choosing: Choosing) -> Call:
    choosing.option("--count", str(choosing.random.choice((0, *(1, 3) * 5))), 1)
    choosing.option("--temperature", choosing.random.choice(("0.7", "2", "0.01")))
    choosing.option("--top-k", str(choosing.random.choice((1, 2, 9))), 0.2)
    choosing.option("--top-p", choosing.random.choice(("0.5", "0.9", "1")), 0.2)
    drawn = {"--temperature", "--top-k", "--top-p"} & set(choosing.arguments)
    choosing.option("--seed", str(choosing.random.randrange(9)), 0.5 if drawn else 0.05)
    choosing.numbers()
    choosing.flag("--json")
    _beside(choosing)
    _language(choosing)
    _text(choosing)
    return choosing.made()


def _step(choosing: Choosing) -> Call:
    choosing.option("--target", choosing.word())
    choosing.option("--loss", choosing.random.choice(("mean", "last")))
    choosing.option("--prompt", str(choosing.random.randrange(3)), 0.15)
    choosing.option(
        "--optimizer", choosing.random.choice(("sgd", "momentum", "adam", "adamw")), 0.7
    )
    choosing.option("--lr", choosing.random.choice(("0.1", "1/3", "1e-3")))
    choosing.option("--momentum", "1/2", 0.1)
    choosing.option("--betas", "0.8,0.9", 0.1)
    choosing.option("--eps", choosing.random.choice(("1e-8", "0.1")), 0.15)
    choosing.option("--decay", "0.1", 0.2)
    choosing.option("--clip", choosing.random.choice(("1", "0.001")))
    choosing.option("--steps", str(choosing.random.choice((1, 1, 2))), 0.4)
    choosing.option("--warmup", "2", 0.1)
    choosing.option("--schedule", choosing.random.choice(("constant", "cosine")), 0.2)
    choosing.option("--end", "0.2", 0.1)
    choosing.option("--only", choosing.random.choice(("update.norm", "update.*", "grad.*")), 0.15)
    choosing.option("--at", "update.norm[0]", 0.15)
    choosing.option("--out", "@new.yaml", 0.3)
    _beside(choosing)
    choosing.numbers()
    choosing.flag("--json")
    _language(choosing)
    _text(choosing)
    return choosing.made()


FORMS = ("{0}", "[{0} {1}]", ".", "(?<a>[{0} {1}])", "[{0}", "{{a}}", "{0} {1}", "{0}{{1,2}}")
NEXT = ("{0}", "text[-1]", "text[0] if len(text) > 1 else text[-1]", "1 +", "parity")
MOVED = (("--printed", "3"), ("--within", "1/1000"), ("--known-to", "bfloat16"),
         ("--rounded-to", "float16"), ("--moved", "0.001"))  # fmt: skip


def _prove(choosing: Choosing) -> Call:
    random = choosing.random
    words = [choosing.word(), choosing.word()]
    if random.random() < 0.4:
        form = random.choice(FORMS)
        choosing.option("--texts", form.format(*words), 1)
        choosing.option("--where", random.choice(("a: 0..2", "a")), 0.9 if "{{" in form else 0.02)
    else:
        context = 2 if choosing.model is None else choosing.model.spec.context or 2
        length = str(random.randint(1, min(2, context)))
        choosing.option(random.choice(("--up-to", "--length")), length, 0.98)
        choosing.option("--of", " ".join(words), 0.4)
    claims = _claims(choosing, words)
    for option, value in random.choices(claims, k=2 if random.random() < 0.03 else 1):
        choosing.flag(option, 1) if value is None else choosing.option(option, value, 1)
    choosing.option(*random.choice(MOVED), 0.95 if "--unmoved" in choosing.arguments else 0.25)
    choosing.option("--certificate", "@proof.json", 0.4)
    choosing.option("--resume", "@proof.journal", 0.2)
    choosing.option("--html", "@proof.html", 0.3)
    choosing.option("--pdf", "@proof.pdf", 0.03)
    choosing.option("--jobs", "1", 1)
    choosing.option("--seconds", "3", 1)
    choosing.flag("--json")
    _language(choosing)
    return choosing.made()


def _claims(choosing: Choosing, words: list[str]) -> list[tuple[str, str | None]]:
    random = choosing.random
    leads = ("{0} over {1} by 1/100", "{0} over {1}", "{0} over {1}", "{0}")
    return [
        ("--next", random.choice(NEXT).format(*words)),
        ("--continuation", random.choice(("copy", *words))),
        ("--file", random.choice(("@answers.py",) * 4 + ("@nowhere.py",))),
        ("--lead", random.choice(leads).format(*words)),
        ("--at", choosing.address() + random.choice((" >= -1", " <= 1/3", " <= 1/3", ""))),
        ("--agree", random.choice(("@odd.yaml",) * 3 + ("tiny",))),
        ("--constant", None),
        ("--unmoved", None),
    ]


def _verify(choosing: Choosing) -> Call:
    """A certificate, whole or spoiled, that was written for the call."""
    choosing.arguments.append("@proof.json")
    choosing.option("--property", "@asked.yaml", 0.3)
    choosing.option("--jobs", "1", 1)
    choosing.flag("--json")
    _language(choosing)
    return choosing.made()


def _count(choosing: Choosing) -> Call:
    choosing.flag("--json", 0.5)
    _language(choosing)
    return choosing.made()


# ------------------------------------------------------------------ the server

ANSWERED = (
    "look", "number", "weight", "trace", "compare", "practice", "explain", "file", "share", "learn",
    "prove",
)  # fmt: skip
SAID = ("", "exact", "digits 5", "decimals 2", *FORMATS)
EDITS = {"norm.eps": "1/9", "context": "3", "heads": "2", "kv_heads": "1", "scale": "1/2",
         "window": "2"}  # fmt: skip


def _serve(choosing: Choosing) -> Call:
    question = choosing.random.choice(ANSWERED)
    choosing.labels.add(f"serve {question}")
    choosing.arguments.append(question)
    request: dict[str, Any] = {"a" if question == "compare" else "state": _state(choosing)}
    random = choosing.random
    if question == "compare":
        request["b"] = _state(choosing)
    if question == "number" or (question == "practice" and random.random() < 0.5):
        request["address"] = choosing.address()
        if question == "practice":
            request["answer"] = random.choice(("2", "0.25", "1/3", "-1", "nothing", "masked"))
    if question == "weight":
        names = [] if choosing.model is None else list(choosing.model.weights)
        request["name"] = random.choice(names or ["embed.token"])
    if question in ("look", "compare", "explain") and random.random() < 0.5:
        request["position"] = random.randrange(2)
    if question == "look" and random.random() < 0.3:
        request["before"] = _state(choosing)
        request["weights"] = True
    if question == "practice":
        request["seed"] = random.randrange(5)
        request["reveal"] = random.random() < 0.5
    if question == "prove":
        request["texts"] = random.choice(("1", "2", "up to 2", "7"))
        request["claim"] = random.choice((None, "table", "next", "function", "constant"))
        request["token"] = choosing.word()
        request["expression"] = random.choice(("text[-1]", "text[0]", "(a + b) % 2", "nothing"))
    if question == "learn":
        request["gradients"] = random.random() < 0.5
    if question == "trace" and random.random() < 0.5:
        request["only"] = [choosing.step()]
    return choosing.made(request)


def _state(choosing: Choosing) -> dict[str, Any]:
    """A State without its model: the file is put in when it is asked."""
    random = choosing.random
    numbers = random.choice(SAID)
    choosing.labels.add(f"serve in {numbers or 'as usual'}")
    state: dict[str, Any] = {"numbers": numbers}
    if random.random() < 0.3:
        state["target"] = choosing.word()
    if choosing.model is not None and random.random() < 0.3:
        weight = random.choice(parameters(choosing.model.spec))
        edited = f"{weight.name}{choosing._index(weight.shape)}"
        state["weights"] = {edited: random.choice(("0", "1/3", "sqrt(2)", "0.5"))}
        choosing.labels.add("serve edited weights")
    if random.random() < 0.3:
        key = random.choice(list(SETTINGS))
        state["architecture"] = {key: random.choice(SETTINGS[key].choices or (EDITS[key],))}
        choosing.labels.add("serve edited architecture")
    if random.random() < 0.15:
        state["language"] = "es"
    return state


MAKERS = {"trace": _trace, "check": _check, "explain": _explain, "book": _book,
          "generate": _generate, "count": _count, "serve": _serve, "step": _step, "prove": _prove,
          "verify": _verify}  # fmt: skip

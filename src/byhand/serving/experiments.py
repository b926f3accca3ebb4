"""Experiments for each built-in model: what to change, and what to look for.

An experiment is a change of the State; the page applies it with one press.  What comes of it is
worked out like any other change (`telling`), so nothing here says a result.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from byhand.language import _, later

Change = Mapping[str, Any]  # keys of a State


@dataclass(frozen=True)
class Experiment:
    """A change of the State of one model, with the passage that shows it.

    `start` is the State to set out from.  `turns` are the values of one weight, which are tried in
    order until another word is expected.
    """

    name: str
    title: str
    look_for: str
    change: Change = field(default_factory=dict)
    start: Change = field(default_factory=dict)
    passage: str = ""
    weight: str = ""
    turns: tuple[str, ...] = ()

    @property
    def data(self) -> dict[str, Any]:
        """The experiment as JSON, in the language spoken now."""
        return {
            "name": self.name,
            "title": _(self.title),
            "look_for": _(self.look_for),
            "change": dict(self.change),
            "start": dict(self.start),
            "passage": self.passage or None,
            "weight": self.weight or None,
            "turns": list(self.turns),
        }


def _unmasked(passage: str = "attention-0-attn-weights") -> Experiment:
    return Experiment(
        "mask",
        later("Break the mask and watch the future leak"),
        later("Above the diagonal, positions now attend to words that come after them."),
        {"architecture": {"causal": "false"}},
        passage=passage,
    )


NO_NORM = {"architecture": {"norm.kind": "none"}}
NEXT = "next-probs"

EXPERIMENTS: Mapping[str, tuple[Experiment, ...]] = {
    "tiny": (
        Experiment(
            "exact",
            later("Let the layernorm make a number exact again"),
            later("Attention leaves an e in the numbers. Look at what the norm makes of them."),
            start=NO_NORM,
            passage="block-0-attn-norm",
        ),
        _unmasked(),
        Experiment(
            "flip",
            later("Turn one weight until the prediction flips"),
            later("A larger number in the row of `c` brings its logit to the front."),
            weight="embed.token[2,0]",
            turns=("1.25", "1.5", "1.75", "2", "2.25", "2.5"),
            passage=NEXT,
        ),
        Experiment(
            "root",
            later("Put √2 into the embedding"),
            later("See how far the root travels, and what becomes of the prediction."),
            {"weights": {"embed.token[1,1]": "sqrt(2)"}},
            passage=NEXT,
        ),
    ),
    "abc": (
        Experiment(
            "backwards",
            later("Give it a text that it was never trained on"),
            later("After B should come C. Does it count back, or go on from the B?"),
            {"text": "CB"},
            passage=NEXT,
        ),
        _unmasked(),
        Experiment(
            "places",
            later("Take the positions away"),
            later("The text is AA. Without positions both rows of probabilities become the same."),
            {"text": "AA", "architecture": {"position": "none"}},
            start={"text": "AA"},
            passage=NEXT,
        ),
        Experiment(
            "bfloat16",
            later("Round every number to bfloat16"),
            later("Compare with the exact numbers: where do the digits part?"),
            {"numbers": "bfloat16"},
            passage=NEXT,
        ),
    ),
    "abc-walkthrough": (
        Experiment(
            "order",
            later("Write the letters in another order"),
            later(
                "Of this model the blocks are unknown. The residual stream still follows the text."
            ),
            {"text": "CAB"},
            passage="tokens-embed",
        ),
        Experiment(
            "known",
            later("Change a weight that is known"),
            later("Follow the change: it goes on as far as the weights are known."),
            {"weights": {"embed.token[0,0]": "2"}},
            passage="tokens-embed",
        ),
    ),
    "journey": (
        Experiment(
            "flip",
            later("Turn one weight until the prediction flips"),
            later("One weight of the column of `mat` grows. Watch its logit pass the others."),
            weight="head[2,4]",
            turns=("0.3", "0.4", "0.5", "0.6", "0.7", "0.8"),
            passage=NEXT,
        ),
        _unmasked(),
        Experiment(
            "post",
            later("Put the norms after attention and MLP"),
            later("Each norm now rescales the residual stream itself. Does the prediction change?"),
            {"architecture": {"norm.place": "post"}},
            passage=NEXT,
        ),
        Experiment(
            "places",
            later("Take the positions away"),
            later("The model no longer knows the order of the words. Does it expect another?"),
            {"architecture": {"position": "none"}},
            passage=NEXT,
        ),
    ),
    "minigpt-init": (
        Experiment(
            "learn",
            later("Let it learn the next word in five steps"),
            later("Before, every word is about as likely. Watch what becomes of `-ió`."),
            {
                "lessons": [
                    {
                        "text": "<en> yesterday she climb -ed = ella sub",
                        "target": "-ió",
                        "optimizer": "adam",
                        "rate": "0.01",
                        "steps": 5,
                    }
                ]
            },
            passage=NEXT,
        ),
        _unmasked(),
    ),
    "minigpt": (
        Experiment(
            "they",
            later("Let more than one person climb"),
            later("The ending of the Spanish verb has to agree with `ellos`. Which one comes?"),
            {"text": "<en> yesterday they climb -ed = ellos sub"},
            passage=NEXT,
        ),
        Experiment(
            "today",
            later("Let it be today"),
            later("The tense stands in `today` and in `-s`. Does the Spanish ending follow?"),
            {"text": "<en> today she climb -s = ella sub"},
            passage=NEXT,
        ),
        _unmasked(),
        Experiment(
            "bfloat16",
            later("Round every number to bfloat16"),
            later("Far fewer digits are kept. Is the prediction still the same?"),
            {"numbers": "bfloat16"},
            passage=NEXT,
        ),
    ),
}


def experiments(name: str | None) -> list[dict[str, Any]]:
    """The experiments of a built-in model, in the language spoken now; none of any other."""
    return [one.data for one in EXPERIMENTS.get(name or "", ())]

"""Bugs of training: losses, gradients and the optimizer's step."""

from __future__ import annotations

import numpy as np

from benchmarks.gradients.adamw import Learner
from benchmarks.gradients.passes import Data
from benchmarks.museum.catalogue import learning_exhibit

GITHUB = "https://github.com"
MEAN_OF_MEANS, MEAN_TWICE = "mean of means", "norm with its mean twice"


class Pupil(Learner):
    """A port of gradients that can make two mistakes more."""

    def keep(self, address: str, value: Data) -> Data:
        """Stores a value; the gradients of the logits perhaps by each text's own mean."""
        if address == "grad.logits" and self.has(MEAN_OF_MEANS):
            counted = self.lesson.targets >= 0
            for text in self.lesson.texts:
                parts = len(self.lesson.texts) * counted[text].sum()
                value[text] *= self.wide(counted.sum() / parts)
        return super().keep(address, value)

    def _through_norm(self, at: str, stream: str, g: Data) -> Data:
        result = super()._through_norm(at, stream, g)
        if not self.has(MEAN_TWICE):
            return result
        once_more = np.mean(g * self.w[f"{at}.gain"], axis=-1, keepdims=True)
        return result - once_more / self[f"{at}.std"][:, None]


learning_exhibit(
    "accumulation-by-mean",
    f"{GITHUB}/huggingface/transformers/pull/34191",
    2024,
    "Fix Gradient Accumulation issue",
    """When a batch is worked out in parts, each part's loss was averaged over its own tokens, and
    the averages were averaged.  Short texts counted as much as long ones.

    Other trainers had it too, for years.  Accumulation is only a sum if the divisor is that of
    the whole batch.""",
    bug=MEAN_OF_MEANS,
    port=Pupil,
    family="llama",
    shows="grad.logits",
    says="the mean of each text's mean",
)

learning_exhibit(
    "labels-shifted-twice",
    f"{GITHUB}/huggingface/transformers/pull/37830",
    2025,
    "Fixed a bug calculating cross entropy loss in `JetMoeForCausalLM`",
    """The model shifted labels by one and passed them to a loss function that shifts them again.
    Each position learned the token after next.

    The loss falls nicely, only not as far.  No shape and no type is wrong.""",
    bug="shift by two",
    family="llama",
    shows="grad.logits",
    says="target is the token two places on",
)

learning_exhibit(
    "step-never-counted",
    f"{GITHUB}/allenai/OLMo-core/pull/317",
    2025,
    "Add config option for to enable/disable the step-increment bugfix.",
    """The optimizer's step count was never increased, so AdamW's correction of its young averages
    did not happen.  The learning rate was in effect 2.2 times what the config said.

    Runs depended on it by then.  The bug became an option.""",
    bug="bias correction missing",
    family="llama",
    shows="update.weight.embed.token",
    says="not corrected for beginning at 0",
)

learning_exhibit(
    "decay-on-norms",
    f"{GITHUB}/bigscience-workshop/Megatron-DeepSpeed/pull/262",
    2022,
    "[embed norm] switch to apex MixedFusedLayerNorm",
    """Norms are exempt from weight decay.  The list of what is a norm named one class, and the norm
    of the embedding was another class of the same name: it decayed.

    A rule that asks for a type is silent when it does not match.""",
    bug="decay on norms and biases",
    family="llama",
    shows="update.weight.block.0.attn.norm.gain",
    says="biases and gains decay too",
)

learning_exhibit(
    "gradient-summed-in-bfloat16",
    f"{GITHUB}/linkedin/Liger-Kernel/pull/950",
    2025,
    "fixbug, ensure FP32 accumulation for dW in Llama-mode RMSNorm backward",
    """The gradient of a norm's gain is a sum over all positions.  One of two kernels rounded the
    terms to bfloat16 and summed them there.

    Eight bits of mantissa are gone after a few hundred terms.""",
    bug="added in bfloat16",
    family="llama",
    shows="grad.weight.head",
    says="bfloat16",
)

learning_exhibit(
    "accumulation-overwrites",
    f"{GITHUB}/karpathy/llm.c/pull/408",
    2024,
    "Layernorm backward updates",
    """The backward pass of layernorm did not add to the gradients that were there.  With gradient
    accumulation only the last part of a batch counted.

    A batch that is worked out at once cannot show it.""",
    bug="only the last text",
    family="gpt2",
    shows="grad.weight.final.norm.gain",
    says="only the last of the 2 texts counts",
)

learning_exhibit(
    "mean-subtracted-twice",
    f"{GITHUB}/tenstorrent/tt-metal/pull/53215",
    2026,
    "[tt-train] Fix layernorm_bw dx double-subtract and non-L1 nested DST acquire",
    """On the way back through layernorm, a register that still held the mean was added to once
    more.  The mean of the gradient was subtracted twice.

    The test allowed an error of 0.5 on gradients of about 1.  A tolerance is part of a test.""",
    bug=MEAN_TWICE,
    port=Pupil,
    family="gpt2",
    shows="grad.block.1.mlp.add",
    says="mean twice",
)

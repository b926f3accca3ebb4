"""What torch gives on its way back is allowed, fused or not; and what leaves a term out is not."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import torch
from torch.nn import functional

from byhand import backward, evaluate, forward, optimizer
from byhand.model import Model
from byhand.models import open_model
from byhand.numbers.allowed import Allowed, Judged, Range
from byhand.numbers.floats import Floats
from byhand.worked import Worked

FORMATS = ("float64", "float32", "bfloat16", "float16")
EPS = Fraction(1, 100_000)
WIDTH, LENGTH = 48, 24


def tensors(format: str, *shapes: tuple[int, ...], seed: int = 0, far: float = 0.0) -> list[Any]:
    chance = torch.Generator().manual_seed(seed)
    kind = getattr(torch, format)
    return [
        (torch.randn(shape, generator=chance, dtype=torch.float64) + far).to(kind)
        for shape in shapes
    ]


def known(tensor: Any) -> Range:
    return Range(tensor.detach().double().numpy())


def judged(numbers: Allowed, value: Range, tensor: Any) -> Judged:
    return numbers.judge(value, (), tensor.detach().double().numpy())


def norm_back(numbers: Allowed, x: Range, grad: Range, *, centred: bool) -> tuple[Range, Range]:
    """The gradient of a norm's input, and its normalised rows."""
    rows, mean = x, None
    if centred:
        mean = numbers.mean(x)
        rows = numbers.center(x, mean)
    by = numbers.root(numbers.mean_square(rows), eps=EPS)
    done = numbers.normalize(rows, by)
    dot = numbers.divisor_back(numbers.row_dots(done, grad), by)
    through = numbers.mean_square_back(numbers.root_back(dot, by), rows)
    whole = numbers.total(term_1=numbers.normalize_back(grad, by), term_2=through)
    if mean is None:
        return whole, done
    shift = numbers.mean_back(numbers.center_back(whole), width=x.shape[-1])
    return numbers.total(term_1=whole, term_2=shift), done


@pytest.mark.parametrize("far", [0.0, 30.0])
@pytest.mark.parametrize("format", FORMATS)
def test_torchs_layernorm_goes_back_within_the_range(format: str, far: float) -> None:
    numbers = Allowed(f"transformers:{format}" if "16" in format else format)
    x, grad = tensors(format, (LENGTH, WIDTH), (LENGTH, WIDTH), far=far)
    gain, bias = tensors(format, (WIDTH,), (WIDTH,), seed=1)
    inputs = [each.requires_grad_() for each in (x, gain, bias)]
    functional.layer_norm(x, (WIDTH,), gain, bias, float(EPS)).backward(grad)
    scaled = numbers.affine(known(grad), gain=known(gain))
    back, rows = norm_back(numbers, known(x), scaled, centred=True)
    for value, given in (
        (back, inputs[0].grad),
        (numbers.column_sums(known(grad), by=rows), inputs[1].grad),
        (numbers.column_sums(known(grad)), inputs[2].grad),
    ):
        found = judged(numbers, value, given)
        assert 0 <= found.share <= 1
        assert found.times is None or found.times < 8


@pytest.mark.parametrize("format", FORMATS)
def test_an_eager_rmsnorm_goes_back_within_the_range(format: str) -> None:
    """As transformers writes it: float32 inside, stored before its gain."""
    numbers = Allowed(f"transformers:{format}")
    x, grad = tensors(format, (LENGTH, WIDTH), (LENGTH, WIDTH), seed=2)
    (gain,) = tensors(format, (WIDTH,), seed=3)
    x.requires_grad_()
    gain.requires_grad_()
    wide = x.float()
    rows = wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + float(EPS))
    (gain * rows.to(x.dtype)).backward(grad)
    scaled = numbers.affine(known(grad), gain=known(gain))
    back, done = norm_back(numbers, known(x), scaled, centred=False)
    assert judged(numbers, back, x.grad).possible
    assert judged(numbers, numbers.column_sums(known(grad), by=done), gain.grad).possible


@pytest.mark.parametrize("missing", ["mean", "dot"])
@pytest.mark.parametrize("format", ["float32", "bfloat16"])
def test_a_layernorm_that_leaves_a_term_out_is_seen(format: str, missing: str) -> None:
    numbers = Allowed(f"transformers:{format}")
    x, grad = tensors(format, (LENGTH, WIDTH), (LENGTH, WIDTH), seed=4)
    wide, dy = x.double(), grad.double()
    root = 1 / (wide.var(-1, keepdim=True, correction=0) + float(EPS)).sqrt()
    rows = (wide - wide.mean(-1, keepdim=True)) * root
    less = {"mean": dy.mean(-1, keepdim=True), "dot": rows * (dy * rows).mean(-1, keepdim=True)}
    right = root * (dy - less["mean"] - less["dot"])
    back, _rows = norm_back(numbers, known(x), known(grad), centred=True)
    assert judged(numbers, back, right.to(x.dtype)).possible
    wrong = root * (dy - sum(part for name, part in less.items() if name != missing))
    found = judged(numbers, back, wrong.to(x.dtype))
    assert (found.shares > 1).mean() > (0.9 if format == "float32" else 0.3)


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("kind", ["gelu", "gelu_tanh", "silu", "relu"])
def test_torchs_activations_go_back_within_the_range(format: str, kind: str) -> None:
    functions = {
        "gelu": functional.gelu,
        "gelu_tanh": lambda x: functional.gelu(x, approximate="tanh"),
        "silu": functional.silu,
        "relu": functional.relu,
    }
    numbers = Allowed(format)
    x, grad = tensors(format, (LENGTH, WIDTH), (LENGTH, WIDTH), seed=5)
    x = (x * torch.linspace(0.1, 12, WIDTH)).to(grad.dtype).requires_grad_()
    functions[kind](x).backward(grad)
    value = numbers.multiply(known(grad), numbers.slope(known(x), kind=kind))
    assert judged(numbers, value, x.grad).possible


@pytest.mark.parametrize("format", FORMATS)
def test_gelu_written_out_goes_back_within_the_range(format: str) -> None:
    """As transformers writes it for GPT-2: every step of its way back is stored."""
    numbers = Allowed(format)
    x, grad = tensors(format, (LENGTH, WIDTH), (LENGTH, WIDTH), seed=6)
    small = (grad * torch.logspace(0, -6, WIDTH)).to(x.dtype)
    x.requires_grad_()
    inner = (2 / torch.pi) ** 0.5 * (x + 0.044715 * torch.pow(x, 3.0))
    (0.5 * x * (1.0 + torch.tanh(inner))).backward(small)
    value = numbers.multiply(known(small), numbers.slope(known(x), kind="gelu_tanh"))
    assert judged(numbers, value, x.grad).possible


@pytest.mark.parametrize("format", FORMATS)
def test_torchs_cross_entropy_goes_back_within_the_range(format: str) -> None:
    numbers = Allowed(format)
    (logits,) = tensors(format, (LENGTH, WIDTH), seed=7)
    logits = (4 * logits).to(getattr(torch, format)).requires_grad_()
    targets = [place if place % 3 else -1 for place in range(LENGTH)]
    ids = torch.tensor(targets)
    loss = functional.cross_entropy(logits, ids, ignore_index=-1)
    loss.backward()
    probs = numbers.softmax(known(logits))
    claimed = numbers.overlay(probs, (), torch.softmax(logits, -1).detach().double().numpy())
    for shares in (probs, claimed):
        assert judged(numbers, numbers.loss_back(shares, targets), logits.grad).possible
        average = numbers.average(numbers.losses(shares, targets))
        assert judged(numbers, average, loss.reshape(1)).possible
    summed = judged(numbers, numbers.loss_back(probs, targets), logits.grad * 16)
    assert not summed.possible


@pytest.mark.parametrize("format", FORMATS)
def test_embeddings_are_added_up_in_their_format(format: str) -> None:
    """torch adds each row to a 16-bit table on processors: 200 rows in bfloat16 show it."""
    numbers = Allowed(format)
    (grad,) = tensors(format, (200, 4), seed=8, far=1.0)
    table = torch.zeros(3, 4, dtype=grad.dtype, requires_grad=True)
    ids = torch.tensor([0] * 150 + [2] * 50)
    functional.embedding(ids, table).backward(grad)
    value = numbers.scatter(known(grad), ids.tolist(), rows=3)
    found = judged(numbers, value, table.grad)
    assert found.possible
    if format == "bfloat16":
        once = np.abs(value.mid) * 2.0**-8
        assert (np.abs(found.expected - table.grad.detach().double().numpy()) > once).any()


@pytest.mark.parametrize("heads", [4, 2])
@pytest.mark.parametrize("fused", [False, True])
@pytest.mark.parametrize("format", FORMATS)
def test_attention_goes_back_within_the_range(format: str, fused: bool, heads: int) -> None:
    numbers = Allowed(format)
    q, k, v, grad = tensors(format, (4, 12, 16), (heads, 12, 16), (heads, 12, 16), (4, 12, 16))
    for each in (q, k, v):
        each.requires_grad_()
    settings = {"is_causal": True, "enable_gqa": heads < 4}
    if fused:
        mixed = functional.scaled_dot_product_attention(q[None], k[None], v[None], **settings)[0]
    else:
        keys, values = (each.repeat_interleave(4 // heads, 0) for each in (k, v))
        away = torch.ones(12, 12, dtype=torch.bool).triu(1)
        scores = (q @ keys.mT * 0.25).masked_fill(away, -torch.inf)
        mixed = torch.softmax(scores, -1) @ values
    mixed.backward(grad)
    for value, given in zip(attention_back(numbers, q, k, v, grad), (q, k, v), strict=True):
        assert judged(numbers, value, given.grad).possible


def attention_back(numbers: Allowed, q: Any, k: Any, v: Any, grad: Any) -> list[Range]:
    """The gradients of queries, keys and values."""
    from byhand.expression import Number

    places = range(q.shape[1])
    sees: dict[str, Any] = {
        "mask": tuple(tuple(key <= query for key in places) for query in places),
        "queries": places,
        "keys": places,
    }
    scale = Number(Fraction(1, 4))
    weights = numbers.softmax(numbers.scores(known(q), known(k), scale=scale, **sees))
    back = numbers.scores(known(grad), known(v), **sees)
    scores = numbers.softmax_back(weights, back, numbers.row_dots(weights, back))
    to_k = numbers.along_queries(scores, known(q), scale=scale)
    to_v = numbers.along_queries(weights, known(grad))
    if len(k) < len(q):
        to_k, to_v = (numbers.sum_groups(each, heads=len(k)) for each in (to_k, to_v))
    return [numbers.along_keys(scores, known(k), scale=scale), to_k, to_v]


# ------------------------------------------------------------------------ whole passes


RULES = (
    optimizer.Rule("adamw", decay=Fraction(1, 10), clip=Fraction(1)),
    optimizer.Rule("momentum"),
)


def worked(model: Model, rule: optimizer.Rule, numbers: Any, **settings: Any) -> dict[str, Worked]:
    """A training step of a model on its own text."""
    tokens = model.vocabulary.encode(model.text or "")
    passes = forward.plan(model.spec, len(tokens), losses=True)
    plan = optimizer.update(backward.adjoint(passes), rule)
    targets = (*tokens[1:], tokens[0])
    return evaluate.work_out(plan, model.weights, tokens, numbers, targets=targets, **settings)


@pytest.mark.parametrize("name", ["tiny", "journey", "abc", "minigpt"])
@pytest.mark.parametrize("format", FORMATS)
def test_byhands_own_training_steps_are_allowed(name: str, format: str) -> None:
    model = open_model(name)
    rule = RULES[len(name) % 2]
    claims = {
        address: np.asarray(np.ma.getdata(step.value)).astype(np.float64)
        for address, step in worked(model, rule, Floats(format)).items()
        if step.step.op not in ("given", "argmax")
    }
    numbers = Allowed(format)
    for over in (True, False):

        def judge(step: Worked, over: bool = over) -> Worked:
            if step.address not in claims:
                return step
            found = numbers.judge(step.value, (), claims[step.address])
            assert found.possible, (step.address, found.share)
            if not over:
                return step
            assert found.times is None or found.times < 8, (step.address, found.times)
            value = numbers.overlay(step.value, (), claims[step.address])
            return Worked(step.step, value, numbers)

        worked(model, rule, numbers, revise=judge)


def test_a_gradient_of_another_factor_is_seen_there_and_nowhere_else() -> None:
    model = open_model("minigpt")
    claims = {
        address: np.asarray(np.ma.getdata(step.value)).astype(np.float64)
        for address, step in worked(model, RULES[0], Floats("float32")).items()
        if step.step.op not in ("given", "argmax")
    }
    claims["grad.block.1.attn.scores"] = claims["grad.block.1.attn.scores"] * 1.001
    numbers, wrong = Allowed("float32"), []

    def judge(step: Worked) -> Worked:
        if step.address not in claims:
            return step
        if not numbers.judge(step.value, (), claims[step.address]).possible:
            wrong.append(step.address)
        return Worked(step.step, numbers.overlay(step.value, (), claims[step.address]), numbers)

    worked(model, RULES[0], numbers, revise=judge)
    assert wrong == [
        "grad.block.1.attn.scores", "grad.block.1.attn.q_rotated", "grad.block.1.attn.k_rotated",
    ]  # fmt: skip

"""Forms: how near their functions come to the proven bounds, whole passes, and speed.

python -m benchmarks.forms powers         e^x and Φ(x) against Arb, on 100,000 numbers each
python -m benchmarks.forms operations N   each operation on N random forms, against Arb
python -m benchmarks.forms passes N       N random regions of random architectures, against Arb
python -m benchmarks.forms speed          texts and regions a second, beside plain traces
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from random import Random
from time import perf_counter
from typing import Any

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_name] = "1"  # before NumPy is imported
TESTS = Path(__file__).parents[1] / "tests"
sys.path.insert(0, str(TESTS))

import numpy as np  # noqa: E402
from flint import arb, ctx  # noqa: E402

from byhand import forward  # noqa: E402
from byhand.evaluate import Admitted, trace, work_out  # noqa: E402
from byhand.models import open_model  # noqa: E402
from byhand.numbers.forms import Forms, PreciseForms, ends  # noqa: E402
from byhand.numbers.forms.exponential import RELATIVE, power  # noqa: E402
from byhand.numbers.forms.normal import normal_share  # noqa: E402
from byhand.worked import Worked  # noqa: E402
from oracles.architectures import at_random, make_case  # noqa: E402
from oracles.regions import choices, outside, random_region, worked_in_forms  # noqa: E402
from oracles.sampled_forms import missed, random_form  # noqa: E402


def powers(count: int = 100_000) -> None:
    """The largest share of the bound that an error takes."""
    random = Random(1)
    sizes = [random.choice((-1, 1)) * 2.0 ** random.uniform(-60, 9.4) for _x in range(count // 2)]
    turns = [
        (random.randrange(-1009, 1022) + random.choice((0, 0.5, -0.5))) * 0.6931471805599453
        * (1 + random.gauss(0, 1e-15))
        for _x in range(count // 2)
    ]  # fmt: skip
    x = np.array([one for one in (*sizes, *turns) if -700 <= one <= 709])
    with ctx.workprec(160):
        worst = max(
            float(abs(found / arb(number).exp() - 1).upper()) / RELATIVE
            for number, found in zip(x.tolist(), power(x).tolist(), strict=True)
        )
        print(f"e^x on {len(x)} numbers: at most {worst:.2f} of the bound")
        x = np.array([random.uniform(-41, 41) for _number in range(count)])
        root = -1 / arb(2).sqrt()
        worst = max(
            float(abs((number * root).erfc() / 2 - share).upper()) / error
            for number, share, error in zip(x.tolist(), *map(np.ndarray.tolist, normal_share(x)),
                                            strict=True)
        )  # fmt: skip
    print(f"Φ(x) on {len(x)} numbers: at most {worst:.2f} of the bound")


def passes(count: int) -> None:
    """Random regions, each at four choices of letters; every third one in Arb as well."""
    wrong = 0
    for seed in range(count):
        case = make_case(at_random(Random(seed)), seed)
        region = random_region(case, seed)
        for numbers in (Forms(), PreciseForms())[: 2 if seed % 3 == 0 else 1]:
            passed = worked_in_forms(region, numbers)
            for letters in choices(region, seed, 4):
                for place in range(region.moves.shape[1]):
                    for found in outside(region, passed, letters, place):
                        wrong += 1
                        print(f"region {seed}, {numbers.name}: {found}")
    print(f"{count} regions, {wrong} numbers outside their forms")


def operations(count: int) -> None:
    """The test of single operations, with sizes and widths at random."""
    sys.path.insert(0, str(TESTS / "numbers" / "forms"))
    import test_operations_of_forms as tests  # type: ignore[import-not-found]

    wrong = 0
    calls = tests.CALLS | tests.NEWER
    for name, (call, shapes) in calls.items():
        for seed in range(count):
            random = Random(f"{name} {seed}")
            size, wide = (10 ** random.uniform(-9, 3) for _number in range(2))
            numbers = PreciseForms() if seed % 5 == 0 else Forms()
            letters = random.randrange(4)
            forms = [
                random_form(numbers, random, shape, letters=letters, size=size, wide=wide)
                for shape in shapes
            ]
            for found in missed(numbers, call, forms, random, 8):
                wrong += 1
                print(f"{name} {seed}, {numbers.name}: {found}")
    print(f"{len(calls)} operations on {count} forms, {wrong} numbers outside")


def speed() -> None:
    """Texts a second by cases of a pass, beside plain traces; regions a second by letters."""
    model = open_model("abc")
    numbers = Forms()
    admitted = Admitted(model.weights, numbers)
    plan = forward.plan(model.spec, 3).only(["logits"])
    plain = per_second(lambda: trace(model, model.text), 1)
    print(f"abc: {plain:.0f} plain traces a second")
    for cases in (1, 64, 1024):
        ids: Any = np.random.default_rng(0).integers(0, model.spec.vocab, size=(cases, 3))
        found = per_second(
            lambda ids=ids: work_out(plan, admitted, ids, numbers, keep=["logits"]), cases
        )
        print(f"  {cases:5} texts in a pass: {found:8.0f} a second, {found / plain:.0f} times")
    for letters in (1, 4, 16):
        regions(model, plan, admitted, numbers, letters)


def regions(model: Any, plan: Any, admitted: Any, numbers: Forms, letters: int) -> None:
    """Regions a second: the embeddings of all three positions move with letters."""
    random = np.random.default_rng(letters)
    terms = random.normal(size=(letters + 1, 64, 3, model.spec.d_model)) * 0.1
    given = {"embed.token": Worked(plan["embed.token"], numbers.given(terms), numbers)}

    def work() -> None:
        done = work_out(plan, admitted, (0, 0, 0), numbers, given=given, keep=["logits"])
        ends(done["logits"].value)

    print(f"  {letters:5} letters: {per_second(work, 64):8.0f} regions a second")


def per_second(work: Any, count: int) -> float:
    """How many a second, in the best of three seconds."""
    work()
    best = 0.0
    for _round in range(3):
        start, done = perf_counter(), 0
        while perf_counter() - start < 1:
            work()
            done += count
        best = max(best, done / (perf_counter() - start))
    return best


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["powers"]:
            powers()
        case ["passes", number]:
            passes(int(number))
        case ["operations", number]:
            operations(int(number))
        case ["speed"]:
            speed()
        case _:
            sys.exit(__doc__)

"""Mutants of the rules of soundness: each is one mistake in a proof, and the tests must notice it.

`python -m benchmarks.soundness.mutants` plants every one in a copy of byhand and runs the tests of
these rules on it until one fails.  It ends with status 1 if a mutant lives that is not known to be
harmless.  `--only WORD` takes those whose name holds the word, `--tests FILE…` other tests.
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import sys
import tempfile
import traceback
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import flint
import numpy as np
import pytest
import rich
import torch

ROOT = Path(__file__).resolve().parents[2]
LIMBS = "src/byhand/numbers/enclosed/limbs/"
MOVES, ATTENTION = LIMBS + "moves.py", LIMBS + "attention_moves.py"
SIZES, METRICS = LIMBS + "attention_sizes.py", LIMBS + "metrics.py"
POINTS, STREAM = LIMBS + "stream_points.py", "src/byhand/stream_passes.py"
KEPT, FILE = LIMBS + "kept_bounds.py", "src/byhand/bounds_file.py"
STANDING, PREDICTION = "src/byhand/numbers/standing.py", LIMBS + "prediction.py"
SPECTRAL, MODULI = LIMBS + "spectral.py", LIMBS + "moduli.py"
ENCLOSED = "tests/numbers/enclosed/"
RULES_TEST = ENCLOSED + "test_rules_against_arb.py"
NEARLY_MET = ENCLOSED + "test_attention_nearly_met.py"
RIM_TEST = ENCLOSED + "test_passes_from_the_rim.py"
PARTS = ENCLOSED + "test_parts_of_sublayers.py"
SLOPES = (
    NEARLY_MET, ENCLOSED + "test_slopes_at_the_point.py", ENCLOSED + "test_saturated_attention.py",
    ENCLOSED + "test_stream_passes.py", RULES_TEST,
)  # fmt: skip
TESTS = {
    MOVES: SLOPES,
    ATTENTION: SLOPES,
    SIZES: SLOPES,
    METRICS: SLOPES,
    POINTS: (PARTS, SLOPES[3], RIM_TEST),
    STREAM: (PARTS, SLOPES[3], RIM_TEST),
    KEPT: ("tests/test_bounds_file.py",),
    FILE: ("tests/test_bounds_file.py",),
    STANDING: ("tests/test_standings.py", RULES_TEST),
    PREDICTION: ("tests/numbers/test_logprobs.py", "tests/test_standings.py", RULES_TEST),
    SPECTRAL: (ENCLOSED + "test_spectral.py", *SLOPES),
    MODULI: (ENCLOSED + "test_residues.py",),
}
LOADED = flint, np, rich, torch  # once for all mutants
OPTIONS = ("-x", "-q", "-p", "no:cacheprovider", "--no-header", "--tb=line", "-o", "addopts=")
PATIENCE = 300  # seconds, after which a mutant counts as one that hangs


@dataclass(frozen=True)
class Mutant:
    """One text in a file, and the mistake in its place."""

    name: str
    file: str
    right: str
    wrong: str
    harmless: str = ""  # why no proof becomes wrong by it


TWICE = "f(h')u' - f(h)u = f(h')(u' - u) + (f(h') - f(h))u: what moves together is counted twice"
BETWEEN = "each matrix that has a role is said to read the norm itself: no other fits between"
SEEN = "a share's error is divided by NEAR_ZERO, and 1/|x| + w' is below that where it counts"
MUTANTS = (
    Mutant("ζ without the ball beside the divisor", MOVES,
           "less(below, over(x.ball, root_below(x.width)))", "below"),
    Mutant("ζ without the error of the divisor", MOVES,
           "less(divisor.approx * (1 - 2.0**-50), divisor.box)",
           "divisor.approx * (1 - 2.0**-50)"),
    Mutant("the gain left out of a matrix", MOVES,
           "return made if self.gain is None else made *", "return made if True else made *"),
    Mutant("reach without what is not known of hidden", MOVES,
           "sizes.rows[0] + _off(hidden)", "sizes.rows[0]"),
    Mutant("reach without ζ", MOVES,
           "reach = apart[:, None] * sizes.rows[0] + _off(hidden)",
           "reach = 0 * apart[:, None] * sizes.rows[0] + _off(hidden)"),
    Mutant("gated: the move of up left out", MOVES,
           "abs(higher) * off + more * (abs(near) + off)", "abs(higher) * off"),
    Mutant("gated: up and slope moving together left out", MOVES,
           "more * (abs(near) + off)", "more * abs(near)"),
    Mutant("gated: the move of the activation left out", MOVES,
           "_off(made) + steepest * reach", "_off(made)", TWICE),
    Mutant("gated: what moves together left out on both sides", MOVES,
           "[abs(higher) * off + more * (abs(near) + off), away]",
           "[abs(higher) * off, _off(made) + 0 * reach]"),
    Mutant("gated: what is not known of up left out", MOVES,
           "sizes.rows[1] + _off(up)", "sizes.rows[1]"),
    Mutant("gated: what is not known of the slope left out", MOVES,
           "abs(higher) * off + more", "more"),
    Mutant("gated: the slope through up left out", MOVES,
           "near = engine.concatenate([higher * near, values], 1)",
           "near = engine.concatenate([higher * near, 0 * values], 1)"),
    Mutant("the form along its directions at the middle alone", MOVES,
           "form.lengths * (beside + ROUGH * whole)[:, None]", "0 * form.lengths"),
    Mutant("the length of w at the middle alone", MOVES,
           "whole = length(near) + beside", "whole = length(near)"),
    Mutant("the rest of the form left out", MOVES,
           "apart = form.rest * whole**2 + (along", "apart = 0 * whole + (along"),
    Mutant("relu: the kink within reach not seen", MOVES,
           "1.0 * (abs(x) <= reach * (1 + ROUGH))", "0.0 * x"),
    Mutant("relu: the kink at half the reach", MOVES,
           "abs(x) <= reach * (1 + ROUGH)", "abs(x) <= reach / 2"),
    Mutant("relu2: half of its curvature", MOVES, "2.0 * reach + ROUGH", "reach + ROUGH"),
    Mutant("the second derivative left out", MOVES, " + CURVES[kind] * reach", ""),
    Mutant("the error of a share without |x|·w'", MOVES, "error * steep +", "error +", SEEN),
    Mutant("the likeness of gelu taken for gelu", MOVES, "(NEARLY[kind] + ROUGH)", "ROUGH"),
    Mutant("a share near 0 taken for a half", MOVES,
           "NEAR_ZERO / 2 + 0.0 * x, off", "0.0 * x, off"),
    Mutant("slopes no further apart than the largest less 1", MOVES,
           "2 * SLOPES[kind] - 1.0", "SLOPES[kind] - 1.0"),
    Mutant("the largest slope of silu is 1", MOVES, '"silu": 1.0999', '"silu": 1.0'),
    Mutant("tanh: a quarter of its slope", MOVES, '"tanh": 1.0', '"tanh": 0.25'),
    Mutant("squares below the smallest float left out", MOVES,
           "moved + LEAST * (apart > 0)", "moved"),
    Mutant("heights of units by their largest entry", MOVES,
           "heights = length(columns, 0)", "heights = abs(columns).max(0)"),
    Mutant("q, k and v do not move", ATTENTION,
           "_off(engine, value, self.q.shape[0]) + each[:, None] * most * stretch",
           "_off(engine, value, self.q.shape[0]) + 0 * each[:, None] * most * stretch"),
    Mutant("what is not known of q, k and v left out", ATTENTION,
           "_off(engine, value, self.q.shape[0]) + each", "each"),
    Mutant("shares grow once, not twice", ATTENTION,
           "growth(2.0 * at.scale * moved)", "growth(at.scale * moved)"),
    Mutant("scores move by keys alone", ATTENTION,
           "moved = self.long_q * self.off_k + self.off_q * (self.furthest + self.off_k)",
           "moved = self.long_q * self.off_k"),
    Mutant("shares do not grow", ATTENTION, "* (1.0 + grown)[..., None]", "* 1.0"),
    Mutant("what is not known of shares left out", ATTENTION,
           "(self.shares * NEAR + off)", "(self.shares * NEAR)"),
    Mutant("shares that do not add up to 1 left out", ATTENTION,
           "self.grown = grown + 2 * self.loose", "self.grown = grown"),
    Mutant("values by their own norms alone", ATTENTION,
           "_form(self.most, self.sizes.values)",
           "_form(self.most, self.sizes.values * np.eye(len(self.sizes.values)))"),
    Mutant("distances without what moves", ATTENTION,
           "beside = 2 * self.off_tall + self.grown * self.tall + rounding", "beside = rounding"),
    Mutant("distances do not grow with shares", ATTENTION,
           "2 * self.off_tall + self.grown * self.tall + rounding",
           "2 * self.off_tall + rounding"),
    Mutant("distances: half of what values move", ATTENTION,
           "beside = 2 * self.off_tall", "beside = self.off_tall"),
    Mutant("distances: one length where there are two", ATTENTION,
           "furthest = 2 * (self.tall", "furthest = (self.tall"),
    Mutant("other keys without the first", ATTENTION,
           "engine.where(ahead, places - 1.0, places) * first", "(places - 1.0) * first"),
    Mutant("ties for the first not seen", ATTENTION,
           "self.rest = (behind + (places - 1.0) * first)[..., 0]", "self.rest = behind[..., 0]"),
    Mutant("covariance: 2LK·r for 4LK·r", ATTENTION, "widest = 4 *", "widest = 2 *"),
    Mutant("keys: the scale left out", ATTENTION,
           "factor = self.most * at.scale * size", "factor = self.most * size"),
    Mutant("pairs of heads counted once", ATTENTION,
           "found = found + 2 * (least", "found = found + (least"),
    Mutant("pairs of heads left out", ATTENTION,
           "found = found + 2 * (least", "found = found + 0 * (least"),
    Mutant("pairs: products at the middle alone", ATTENTION,
           "near = near + beside[others][..., None] * apart[head]", "pass"),
    Mutant("pairs: products at the middle alone, the other side", ATTENTION,
           "near = near + beside[head][None, :, None] * apart[others]", "pass"),
    Mutant("the move of a query left out of its size", ATTENTION,
           "at.stretch * (self.off_q + self.e * self.long_q)",
           "at.stretch * (0 * self.off_q + self.e * self.long_q)"),
    Mutant("turns that stretch left out", ATTENTION,
           "own = self.long_q * at.stretch * sizes.norms[1]",
           "own = self.long_q * sizes.norms[1]"),
    Mutant("turns that stretch left out of covariances", ATTENTION,
           "(sizes.norms[0][:, None, None] * at.stretch)", "sizes.norms[0][:, None, None]"),
    Mutant("what varies of a covariance once for four times", ATTENTION,
           "4 * (1 + self.grown) ** 2 * unsure", "unsure"),
    Mutant("covariance: keys do not move", ATTENTION,
           "            + self.tall * self.off_wide\n", ""),
    Mutant("covariance: values do not move", ATTENTION,
           "            + self.off_tall * self.wide\n", ""),
    Mutant("covariance does not grow with shares", ATTENTION,
           "            self.grown * self.tall * self.wide\n            + ", "            "),
    Mutant("queries: the scale left out", ATTENTION,
           "_form(at.scale * spread, self.sizes.both)", "_form(spread, self.sizes.both)"),
    Mutant("queries left out", ATTENTION,
           "every @ self.apart + self._queries() * self.apart", "every @ self.apart"),
    Mutant("keys left out", ATTENTION, "self._values() + self._keys()", "self._values()"),
    Mutant("keys not turned back for the query", ATTENTION,
           "        if self.at.turning:\n            turned = turned @ self._turns\n", ""),
    Mutant("queries not turned back for the key", ATTENTION,
           "back = keys.data[:, None] @ self._turns.swapaxes(1, 2)",
           "back = keys.data[:, None] @ (0 * self._turns + np.eye(width, dtype=np.float32))"),
    Mutant("a covariance that is a second moment with the wrong sign", ATTENTION,
           "crossed = crossed - weighted.sum(2)[..., None] * mean",
           "crossed = crossed - 2 * weighted.sum(2)[..., None] * mean"),
    Mutant("few digits of a query by its head", ATTENTION,
           "self._rough_rows(self.q)", "self._rough(self.q)"),
    Mutant("variances without what rounding hides", ATTENTION,
           "+ off * tall", "+ 0 * off * tall"),
    Mutant("few digits taken for all", ATTENTION,
           "return (self.keys + 4 * self.at.k.width + 16) * 2.0**-22", "return 0.0"),
    Mutant("covariances of few digits without their rounding", ATTENTION,
           "return found + self._rough_rounding * self.tall * self.wide", "return found"),
    Mutant("‖W·A‖ for its square", SIZES, "values[head // group]) ** 2", "values[head // group])"),
    Mutant("heads that share no values", SIZES, "values[head // group])", "values[0])"),
    Mutant("a key's norm by its largest entry", SIZES,
           "row([spectral_norm(one) for one in s_key], group)",
           "row([float(abs(one).max()) for one in s_key], group)"),
    Mutant("a factor that is not lifted", METRICS,
           "engine.cholesky(gram, LIFTED * trace)", "engine.cholesky(gram, 2.0**-52 * trace)"),
    Mutant("overlaps without what is left over", METRICS, " + rest / least", ""),
    Mutant("overlaps for a lift that is larger", METRICS, "LIFTED / 2 *", "2.0**-10 *"),
    Mutant("pairs without their rounding", METRICS,
           "return found + whole[:, None] * whole * (DEEPEST * 2.0**-50)", "return found"),
    Mutant("a product's norm without its rounding", METRICS,
           "float(plus(spectral_norm(left @ right), off))", "float(spectral_norm(left @ right))"),
    Mutant("a coherence without its rest", METRICS,
           "rest = float(plus(rest, rounding,", "rest = float(plus(0 * rest, rounding,"),
    Mutant("eigenvalues taken off and not put back", METRICS,
           "return Coherence(top, rest, engine.contiguous(found.T), weights, lengths)",
           "return Coherence(top, rest, engine.contiguous(found.T), 0 * weights, lengths)"),
    Mutant("the top of a coherence without what was taken off", METRICS,
           "top = float(plus(rest, times(most, frobenius(gram))))", "top = rest"),
    Mutant("gated: the Schur bound of one part", METRICS,
           "one = times(float(len(rows)), ", "one = times("),
    Mutant("the stream that is added to is exact", POINTS,
           "plus(self.onto.ball, moved, total.ball)", "plus(moved, total.ball)"),
    Mutant("the rounding of the middle left out", POINTS,
           "plus(self.onto.ball, moved, total.ball)", "plus(self.onto.ball, moved)"),
    Mutant("nothing moves", POINTS,
           "plus(self.onto.ball, moved, total.ball)", "plus(self.onto.ball, total.ball)"),
    Mutant("1 + gain taken for the gain", POINTS,
           'gain.plus_one if norm.attributes.get("plus_one") else gain', "gain"),
    Mutant("no gain", POINTS, 'if norm.op != "affine" or "gain" not in norm.inputs', "if True"),
    Mutant("heads of a packed matrix from its start", POINTS,
           'start, stride = step.attributes["start"], step.attributes["stride"]',
           'start, stride = 0, step.attributes["stride"]'),
    Mutant("packed heads side by side", POINTS,
           'start, stride = step.attributes["start"], step.attributes["stride"]',
           'start, stride = step.attributes["start"], width'),
    Mutant("a magnitude that stretches not seen", POINTS,
           "stretch = max(stretch, numbers.constant(magnitude).size)", "pass"),
    Mutant("the scale of scores taken for 1", POINTS,
           "size = 1.0 if scale is None else numbers.constant(scale).size", "size = 1.0"),
    Mutant("what is hidden turned round", POINTS,
           'hidden = hidden_keys(roles["scores"].attributes["mask"], q.digits, shape)',
           'hidden = hidden_keys(roles["scores"].attributes["mask"], q.digits, shape)\n'
           '        hidden = None if hidden is None else hidden.swapaxes(-1, -2)'),
    Mutant("a sublayer that others read, too", STREAM,
           "if onto in own or not own.issuperset(read):", "if onto in own:"),
    Mutant("sinks not seen", STREAM, 'or "sinks" in softmax.inputs ', ""),
    Mutant("caps of scores not seen", STREAM, ' and "cap" not in scores.attributes', ""),
    Mutant("an MLP's other matrices not seen", STREAM,
           'len(ops["linear"]) != 2 + ("up" in roles) or ', "", BETWEEN),
    Mutant("attention's other matrices not seen", STREAM,
           'if len(ops["linear"]) != len({roles[f"{role}_matrix"].address for role in "qkv"}) + 1:',
           "if False:", BETWEEN),
    Mutant("a second stream not seen", STREAM, "len(starts) != 1 or ", ""),
    Mutant("bounds of other gains", KEPT,
           '    elif getattr(part, "digest", None):\n        parts.append(part.digest)\n',
           '    elif getattr(part, "digest", None):\n        pass\n'),
    Mutant("bounds of other code", KEPT, 'if index["code"] != code_version():', "if False:"),
    Mutant("a hash that does not know the shape", KEPT,
           'f"{array.dtype} {array.shape}"', 'f"{array.dtype}"'),
    Mutant("a hash that does not know the format", KEPT,
           'f"{array.dtype} {array.shape}"', 'f"{array.shape}"'),
    Mutant("a hash of the first entries", KEPT,
           "array.reshape(-1).view(np.uint8).data", "array.reshape(-1)[:64].view(np.uint8).data"),
    Mutant("any seal will do", FILE,
           "or not hmac.compare_digest(seal, _seal(secret, rest))", ""),
    Mutant("a short secret will do", FILE,
           "        if len(found) >= SEAL:\n            return found", "        return found"),
    Mutant("a seal of the beginning", FILE, "hmac.new(secret, data, sha256)",
           "hmac.new(secret, data[:64], sha256)"),
    Mutant("likelier for certain without its own radius", STANDING,
           "lower, upper = logits - off, logits + off", "lower, upper = logits, logits"),
    Mutant("likelier for certain without the token's radius", STANDING,
           "high, low = own + room, own - room", "high, low = own, own"),
    Mutant("an entropy without the radius of its mean", STANDING,
           "room = (radii + other + ", "room = (radii + "),
    Mutant("ln p without the radius of its own logit", PREDICTION,
           "box = plus(trail.widest[here], own)", "box = trail.widest[here]"),
    Mutant("ln p without the radius of the sum", PREDICTION,
           "box = plus(trail.widest[here], own)", "box = own[None] if own.ndim == 0 else own"),
    Mutant("a tie of numbers that are not known", PREDICTION,
           "tied = all(numbers[k].rad == 0 for k in first)", "tied = True"),
    Mutant("a lead without the radius of the next", PREDICTION,
           "Enclosure(one.mid - other.mid, one.rad + other.rad)",
           "Enclosure(one.mid - other.mid, one.rad)"),
    Mutant("norms of stacks without their rounding", SPECTRAL,
           "(engine.root(found + rounding) + rounding)", "(engine.root(found) * (1 - 2.0**-20))"),
    Mutant("one root too many", SPECTRAL,
           "    for _squaring in range(SQUARINGS):\n        found = root(found)",
           "    for _squaring in range(SQUARINGS + 1):\n        found = root(found)"),
    Mutant("a norm that is not proven", SPECTRAL,
           "        if _decomposes(gram, guess):\n", "        if True:\n"),
    Mutant("moduli without room", MODULI, "wanted = most << 10", "wanted = most >> 1"),
    Mutant("one limb below the grid", MODULI, "BELOW = 2 ", "BELOW = 0 "),
)  # fmt: skip


def verdict(mutant: Mutant, copy: Path, tests: tuple[str, ...]) -> str:
    """The test that fails on the mutant, or "lives"."""
    path = copy / mutant.file
    source = path.read_text("utf-8")
    if source.count(mutant.right) != 1:
        return f"the text is there {source.count(mutant.right)} times"
    path.write_text(source.replace(mutant.right, mutant.wrong), "utf-8")
    try:
        return failing(copy, tests)
    finally:
        path.write_text(source, "utf-8")


def failing(copy: Path, tests: Sequence[str]) -> str:
    """The first of these tests that fails, or "lives".

    They run in a process that has loaded nothing of byhand before, but all that takes long.
    """
    log = copy / "log"
    child = os.fork()
    if not child:
        try:
            os._exit(_run(copy, log, tests))
        except BaseException:  # which must not go on as its parent
            traceback.print_exc()
        finally:
            os._exit(3)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if status <= 0:
        return "hangs" if status else "lives"
    said = log.read_text("utf-8")
    failed = [line for line in said.splitlines() if line.startswith(("FAILED", "ERROR"))]
    return failed[0].split(" - ")[0].rpartition("/")[2] if failed else said[-300:]


def _run(copy: Path, log: Path, tests: Sequence[str]) -> int:
    """The status of the tests, whose words go into a file."""
    place = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    os.dup2(place, 1)
    os.dup2(place, 2)
    os.chdir(copy)
    sys.path[:0] = [str(copy / "src"), str(copy), str(copy / "tests")]
    for name in [name for name in sys.modules if name.startswith("benchmarks")]:
        del sys.modules[name]
    signal.alarm(PATIENCE)
    there = [test for test in tests if (copy / test).exists()]
    return int(pytest.main([*OPTIONS, *there]))


def main() -> int:
    """Every mutant, one line each; 1 if one lives that should not."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--only", default="")
    parser.add_argument("--tests", nargs="*")
    given = parser.parse_args()
    alive = []
    chosen = [one for one in MUTANTS if given.only in one.name or given.only in one.file]
    with tempfile.TemporaryDirectory() as room:
        copy = Path(room) / "byhand"
        for part in ("src", "tests", "benchmarks", "pyproject.toml", "docs"):
            source = ROOT / part
            if source.is_dir():
                shutil.copytree(source, copy / part, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                shutil.copy(source, copy / part)
        for mutant in chosen:
            found = verdict(mutant, copy, tuple(given.tests or TESTS[mutant.file]))
            if found == "lives" and not mutant.harmless:
                alive.append(mutant.name)
            print(f"{Path(mutant.file).name}: {mutant.name}: {found}", flush=True)
    print(f"{len(chosen)} mutants, {len(alive)} alive")
    return 1 if alive else 0


if __name__ == "__main__":
    sys.exit(main())

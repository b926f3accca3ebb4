"""Functions of properties: what can be written, and that nothing else can be reached."""

from __future__ import annotations

from typing import Any

import pytest

from byhand.errors import InputError
from byhand.proving.reading.functions import compile_expression, compile_file


def worked(text: str, **values: Any) -> Any:
    compiled = compile_expression(text, values)
    return compiled.call(*(values[name] for name in compiled.names))


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("(a + b) % 7", 5),
        ("a if a > b else b", 9),
        ("-a // 2", -2),
        ("abs(a - b) * 10 ** 3", 6000),
        ("sum(x[i] * 10**i for i in range(3))", 321),
        ("number(x), number(x[::-1]), number([1, 0, 1], 2)", (123, 321, 5)),
        ("digits(a * b, 4)", [0, 0, 2, 7]),
        ("sorted(x, reverse=True)[0]", 3),
        ("max(x), min(a, b), len(x)", (3, 3, 3)),
        ("[p + q for p, q in zip(x, x[1:]) if p]", [3, 5]),
        ("'yes' if a in (1, 3) and not b == 3 else 'no'", "yes"),
        ("{'u': 1, 'v': 2}[w]", 2),
        ("w.upper() + str(a)", "V3"),
        ("[p for p in words if p.startswith('(')]", ["(", "(("]),
        ("words.count('(')", 1),
        ("any(p == w for p in words), all(p for p in words)", (False, True)),
        ("int('12') + divmod(a, 2)[1]", 13),
        ("max(x, key=lambda n: -n)", 1),
        ("a not in x", False),
        ("''.join(sorted(words))", "((()"),
    ],
)
def test_an_expression_is_worked_out_as_python_does(text: str, value: Any) -> None:
    assert worked(text, a=3, b=9, x=[1, 2, 3], w="v", words=["(", "((", ")"]) == value


@pytest.mark.parametrize(
    "text",
    [
        "__import__('os').system('true')",
        "open('/etc/passwd')",
        "eval('1')",
        "exec('1')",
        "a.__class__",
        "a.__class__.__mro__",
        "().__class__.__bases__[0].__subclasses__()",
        "'{0.__class__}'.format(a)",
        "f'{a}'",
        "'%1000000000d' % a",
        "getattr(a, 'real')",
        "type(a)",
        "globals()",
        "print(a)",
        "(lambda: 0)()",
        "(lambda: (yield))",
        "[x := 1]",
        "a / 2",
        "1.5",
        "1j",
        "b'x'",
        "...",
        "a << 100",
        "a @ a",
        "~a",
        "a is None",
        "__builtins__",
        "[__x for __x in (1, 2)]",
        "[len for len in (1, 2)]",
        "max(**{'key': a})",
        "x.sort",
        "x.clear()",
        "await a",
        "import os",
        "a; b",
        "a = 1",
        "unknown + 1",
        "1 < a in (1, 2)",
        "(" * 300 + "a" + ")" * 300,
        "+".join(["a"] * 9000),
        "-" * 15000 + "a",
        "",
    ],
)
def test_anything_else_is_refused_before_it_runs(text: str) -> None:
    with pytest.raises(InputError):
        compile_expression(text, ("a", "x"))


@pytest.mark.parametrize(
    "text",
    [
        "10 ** 1000000",
        "9 ** (9 ** 9)",
        "[0] * 1000000000",
        "'x' * 1000000000",
        "range(10 ** 12)",
        "'x'.replace('x', 'y' * 99999).replace('y', 'z' * 99999)",
        "digits(a, 10 ** 9)",
    ],
)
def test_what_would_take_all_memory_is_refused_when_it_runs(text: str) -> None:
    with pytest.raises(InputError) as caught:
        worked(text, a=3)
    assert caught.value.message == "a number or a list becomes too large"


def test_an_unknown_name_is_met_with_the_known_ones() -> None:
    with pytest.raises(InputError) as caught:
        compile_expression("digit + 1", ("digits_of_a", "a"))
    assert caught.value.message == "there is no variable 'digit' here"
    assert caught.value.expected == "a, digits_of_a"
    assert caught.value.hint == "did you mean digits, dict, digits_of_a?"


# ------------------------------------------------------------------------------- files


BALANCED = '''
"""Whether the brackets of a text are balanced."""
from __future__ import annotations

PAIRS = {"(": 1, ")": -1}


def step(depth: int, token: str) -> int:
    return depth + PAIRS.get(token, 0)


def answer(text: list[str]) -> str:
    depth: int = 0
    for token in text:
        depth = step(depth, token)
        if depth < 0:
            break
    else:
        return "yes" if depth == 0 else "no"
    return "no"
'''


def test_a_file_defines_the_function_answer() -> None:
    compiled = compile_file(BALANCED, ("text", "a"))
    assert compiled.names == ("text",)
    assert [compiled.call(list(text)) for text in ("()", "(()", "())(", "()()")] == [
        "yes", "no", "no", "yes",
    ]  # fmt: skip


def test_a_file_may_loop_and_count() -> None:
    text = "def answer(a, b):\n    while b:\n        a, b = b, a % b\n    a += 0\n    return a\n"
    assert compile_file(text, ("a", "b", "text")).call(84, 36) == 12


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("import os\ndef answer(a): return a", "this part of Python is not possible here"),
        ("def answer(a):\n    import os\n    return a", "this part of Python is not possible here"),
        ("class A: pass\ndef answer(a): return a", "this part of Python is not possible here"),
        ("def answer(a):\n    global b\n    return a", "this part of Python is not possible here"),
        ("def answer(a):\n    try:\n        return a\n    except Exception: return 1",
         "this part of Python is not possible here"),
        ("def answer(a):\n    with a: return a", "this part of Python is not possible here"),
        ("def answer(a):\n    del a", "this part of Python is not possible here"),
        ("def answer(a):\n    raise a", "this part of Python is not possible here"),
        ("def answer(a):\n    yield a", "this part of Python is not possible here"),
        ("@dict\ndef answer(a): return a", "a function cannot be defined like this"),
        ("def len(a): return a\ndef answer(a): return a", "a function cannot be defined like this"),
        ("def answer(a): return a.__class__", "this part of Python is not possible here"),
        ("def answer(c): return c", "there is no variable 'c' here"),
        ("def answer(*a): return a", "the arguments of answer are variables"),
        ("def other(a): return a", "the file has no function answer"),
        ("answer(1)\ndef answer(a): return a", "this part of Python is not possible here"),
        ("def answer(a) return a", "this is not Python: expected ':'"),
        ("B = 1 // 0\ndef answer(a): return a", "the file cannot be run"),
    ],
)  # fmt: skip
def test_a_file_holds_nothing_else(text: str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        compile_file(text, ("a", "b"))
    assert caught.value.message == message


@pytest.mark.parametrize(
    "text",
    ["SEEN = []\ndef answer(a):\n    SEEN.append(a)\n    return len(SEEN)",
     "SEEN = {}\ndef answer(a):\n    SEEN[a] = 1\n    return len(SEEN)",
     "SEEN = [[]]\ndef answer(a):\n    SEEN[0].append(a)\n    return len(SEEN[0])"],
)  # fmt: skip
def test_a_function_remembers_nothing(text: str) -> None:
    call = compile_file(text, ("a",)).call
    with pytest.raises((TypeError, AttributeError)):
        call(1)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("S = zip((1, 2), (3, 4))\ndef answer(a): return len(list(S))", "S can be used up"),
        ("S = (n for n in (1, 2))\ndef answer(a): return sum(S)", "S can be used up"),
        ("def f(a, seen=[]): return a\ndef answer(a): return f(a)",
         "a function cannot be defined like this"),
        ("def answer(a): return (lambda s=[]: s)", "a function cannot be defined like this"),
    ],
)  # fmt: skip
def test_what_calls_could_share_and_change_is_refused(text: str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        compile_file(text, ("a",))
    assert caught.value.message == message


def test_tables_of_a_file_can_be_read() -> None:
    text = "T = {'x': [1, 2], 'y': {3}}\ndef answer(a): return T['x'][1] + len(T.get('y'))"
    assert compile_file(text, ("a",)).call(0) == 3


@pytest.mark.parametrize(
    "body",
    ["while True:\n        pass", "x = 'x'\n    for i in range(99): x = x + x",
     "x = 3\n    for i in range(99): x = x * x", "x = [1]\n    for i in range(99): x.extend(x)",
     "return answer(a)"],
)  # fmt: skip
def test_a_file_that_does_not_end_is_stopped(body: str) -> None:
    call = compile_file(f"def answer(a):\n    {body}\n    return a", ("a",)).call
    with pytest.raises((InputError, RecursionError)):
        call(1)

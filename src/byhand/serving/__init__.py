"""What the page asks and what it is answered: from JSON to JSON, without a server.

    states      a State read and checked, the library of models     requests   the other keys
    editing     State → Model, with `architectures` and `fitting`   passing    State → trace, kept
    looking     one passage and all around it, with `passages` and `changing`
    touching    one number: its working, what it comes from         comparing  two States
    practising  a step to be worked out, and its marking            keeping    files and pages
    tables      weights, whole or by windows

`answer` is the one door.  Every error is one of byhand's own, in the language of the State; the
same question always has the same answer.  What speaks HTTP lives elsewhere.
"""

from byhand.serving.answers import QUESTIONS, answer, error_data
from byhand.serving.states import Library, State, read_state

__all__ = ["QUESTIONS", "Library", "State", "answer", "error_data", "read_state"]

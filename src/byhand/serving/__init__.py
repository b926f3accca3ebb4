"""The questions of the served page and their answers, as JSON, and the server around them.

    answers        the door: a question and its data → its answer
    questions      every question with its keys          fields       how their values are read
    states         a State, the library of models        worked_state a State worked out, kept
    edits          State → Model                         settings     the architecture, key by key
    lessons        what a State's model has learned from learned      the model after its lessons
    teaching       losses and gradients for the page
    fitted_weights the weights of a changed architecture cache        results kept for a while
    views          one passage and all around it         passages     one passage as HTML
    changes        which numbers an edit changed         comparison   two States side by side
    number         the working of one number, and what it comes from
    practice       a number to be worked out, marked     arithmetic_slips  what went wrong in it
    all_texts      claims about all texts of a length
    explanation    the terms of a logit, and the lens    tables       weights, whole or by windows
    downloads      the trace, a model file, one page     page         scripts, style sheets, words

    server         runs `app`, the paths; `access` says who may ask, `limits` how much
    exchange       one question over one connection      connections  how long it may stay open
    workers        the processes that answer             worker       one of them, by `frames`
    openapi        the document that describes it all

Every error is a ByhandError, in the language of the State.  The same question always has the same
answer.
"""

from byhand.serving.answers import answer, error_data
from byhand.serving.questions import QUESTIONS
from byhand.serving.states import Library, State, read_state

__all__ = ["QUESTIONS", "Library", "State", "answer", "error_data", "read_state"]

"""A worksheet: a book with blanks, its key, and the claims file that `byhand check` marks.

    sheet        what a worksheet is made of           composition  trace and book → worksheet
    blanks       which lines are left blank, by seed   questions    tables of counts and shapes
    given        what is printed, as claims            hidden       removes what gives blanks away
    claims       the file to fill in, and its key      wording      the words of a sheet

Every line is rounded to some decimals, as with a pencil (`numbers.pencil`).  A blank is one line
that earns marks: a row of a step, an attention weight, a count, a side of a shape, the next token.
"""

from byhand.document.compose.worksheet.claims import claims_text
from byhand.document.compose.worksheet.composition import worksheet
from byhand.document.compose.worksheet.sheet import VALUES, Blank, Questioning, Worksheet

__all__ = ["VALUES", "Blank", "Questioning", "Worksheet", "claims_text", "worksheet"]

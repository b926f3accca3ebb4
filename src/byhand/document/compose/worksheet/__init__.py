"""A worksheet: a book with blanks, its key, and the claims file that `byhand check` marks.

    sheet        what a worksheet is made of           composition  trace and book → worksheet
    blanks       which lines are left blank, by seed   draft        what is chosen, and printed
    levels       one row, one block, the whole pass    printed      answers that stand elsewhere
    questions    tables of counts and shapes           hidden       removes what gives blanks away
    given        what is printed, as claims            claims       the file to fill in, and its key
    planting     a mistake in a printed working        correction   the sheet with that working
    wording      the words of a sheet

Every line is rounded to some decimals, as with a pencil (`numbers.pencil`), or exact.  A blank is
one line that earns marks: a row of a step, a count, a side of a shape, the next token.
"""

from byhand.document.compose.worksheet.claims import claims_text
from byhand.document.compose.worksheet.composition import worksheet
from byhand.document.compose.worksheet.correction import correction_sheet, lines_in
from byhand.document.compose.worksheet.planting import planted, slips
from byhand.document.compose.worksheet.sheet import (
    MISTAKE,
    VALUES,
    Blank,
    Questioning,
    Worksheet,
    file_stem,
)

__all__ = [
    "MISTAKE",
    "VALUES",
    "Blank",
    "Questioning",
    "Worksheet",
    "claims_text",
    "correction_sheet",
    "file_stem",
    "lines_in",
    "planted",
    "slips",
    "worksheet",
]

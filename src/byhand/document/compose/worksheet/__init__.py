"""A book with blanks, the key to it, and the claims file that `byhand check` marks.

    sheet     what a worksheet is made of              making    trace → worksheet
    choosing  which lines are left blank, by seed      claims    the file to fill in, and its key
    page      the sheet and its key for a browser      paper     both as PDF

The numbers are those of a person with a pencil: every line rounded to so many decimals
(`numbers.pencil`).  A blank is one line that earns marks: a row of a step, a share, a count, a
side of a shape, the next token.
"""

from byhand.document.compose.worksheet.making import (
    make_worksheet,
    worksheet_files,
    write_worksheet,
)
from byhand.document.compose.worksheet.sheet import Blank, Questioning, Worksheet

__all__ = [
    "Blank",
    "Questioning",
    "Worksheet",
    "make_worksheet",
    "worksheet_files",
    "write_worksheet",
]

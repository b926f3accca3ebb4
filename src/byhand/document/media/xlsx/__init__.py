"""The whole pass of a model and a text as an .xlsx file whose every number is a live formula.

    cells      where an entry of a table lies, and how a formula refers to it
    formulas   the expression of an entry (`byhand.working`), or a weight → a formula of cells
    layout     plan → which table stands where, on a sheet for each stage; how many cells that is
    training   the layout of a training step: weights, gradients, new weights side by side
    settings   the eps of norms and the scale of scores, as cells
    references how the formulas of a plan name its cells
    learning   formulas of learning that only a spreadsheet needs
    contents   other formulas that only a spreadsheet needs, the numbers shown, remarks on steps
    style      colours, borders and number formats
    sheets     titles, labels, formulas and weights of one stage → XlsxWriter
    step_sheet the sheet of a training step
    guide      the sheet that says how to read the others
    writing    a trace → the file

`working` has the mathematics.  Nothing here knows about transformers, except that a text cell looks
up its id and that a softmax subtracts the largest score first.
"""

from byhand.document.media.xlsx.layout import MOST_CELLS, check_size, has_room
from byhand.document.media.xlsx.writing import spreadsheet

__all__ = ["MOST_CELLS", "check_size", "has_room", "spreadsheet"]

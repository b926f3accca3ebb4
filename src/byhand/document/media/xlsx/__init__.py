"""The whole pass of a model and a text as an .xlsx file whose every number is a live formula.

    pages      plan → which table stands where, on a sheet for each stage; how many cells that is
    cells      where an entry of a table lies, and how a formula refers to it
    formulas   the expression of an entry (`byhand.working`) → a formula of cells
    operations what a spreadsheet needs to know besides: lookups, softmax by its maximum, argmax
    constants  a weight → the number or the formula in its cell
    looks      colours, borders and number formats
    remarks    registers and boundaries, as the trace knows them
    guide      the sheet that says how to read the others
    sheets     titles, labels, formulas and weights of one stage → XlsxWriter
    values     what the cells show before anything is changed
    writing    a trace or a job → the file

The mathematics is that of `working`: nothing here knows what a transformer is, except that a text
cell looks up its id and that a softmax subtracts the largest score first.
"""

from byhand.document.media.xlsx.pages import MOST_CELLS
from byhand.document.media.xlsx.writing import save_spreadsheet, spreadsheet

__all__ = ["MOST_CELLS", "save_spreadsheet", "spreadsheet"]

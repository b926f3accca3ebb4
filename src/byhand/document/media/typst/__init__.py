"""A book as a typeset PDF, through Typst.

    book.typ  the design: pages, heads, tables, the figure of the whole pass
    pages     a book → the source: title, contents, chapters, passages
    parts     tables and the other parts of a passage     strips    tensors as colours
    numbers   one number, its working, laws with numbers
    maths     expression trees                            figure    the whole pass
    quoting   words and values as Typst writes them       writing   the source → a file

The source is text that anybody may compile and change (`typst_source`); the fonts are those that
come with Typst.  Nothing here computes.
"""

from byhand.document.media.typst.pages import typst_source
from byhand.document.media.typst.writing import typeset, write_pdf

__all__ = ["typeset", "typst_source", "write_pdf"]

"""A book as pages for a browser: files that open from disk and need nothing else.

    page        the pages: head, passages, foot          figure    the whole pass as a drawing
    parts       tables and the other parts of a passage  strips    tensors as colours
    numbers     one number with its working              mathml    expression trees as formulas
    rechecking  the workings as data, for the badge      book.css  book.js

No library, no network, no build step; the script is classic and inline, since modules do not load
from disk.  A page is complete without the script, which adds stepping with keys, the value of a
strip under the pointer, and the badge that works the numbers out again.
"""

from byhand.document.media.html.page import pages, write_book

__all__ = ["pages", "write_book"]

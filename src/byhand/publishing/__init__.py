"""The book of a model and a text: pages, worksheets, a typeset document, a spreadsheet.

    making      model, text → Edition: everything that has to be worked out, once
    pages/      Edition → pages: which passages, in which words, with which numbers
    book        what a book is; `parts`: what its passages show.  Whoever shows a book reads these
    topics · showing · formulas · strips · spine · claimed · saying   what the pages are made with
    mathematics   one walk over formula trees, for every medium
    html/       a book as pages for a browser          typst/   a book as PDF
    worksheets  a book with blanks, and its key        spreadsheet/  the pass as live formulas
    notebook    a trace as one passage                 publication   all of it as files

A book is data.  Whoever shows it computes nothing.
"""

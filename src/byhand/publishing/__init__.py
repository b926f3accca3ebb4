"""The book of a model and a text: pages, worksheets, a typeset document, a spreadsheet.

    making      model, text → Edition: everything that has to be worked out, once
    pages/      Edition → pages: which passages, in which words, with which numbers
    book        what a book is made of; whoever shows a book reads these
    topics · showing · formulas · strips · spine · claimed · saying   what the pages are made with
    html/       a book as pages for a browser          typst/   a book as PDF
    worksheets  a book with blanks, and its key        spreadsheet/  the pass as live formulas

A book is data.  Whoever shows it computes nothing.
"""

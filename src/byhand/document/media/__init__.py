"""Media: each draws the parts of a document, and computes nothing.

terminal   text of a given width        html   pages, reports, notebook cells, the served page
typst      PDF for paper                xlsx   live formulas              json   data
"""

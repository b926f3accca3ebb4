"""The served page: its HTML, style sheets, scripts and words.

`index.html` is the frame, the `.js` files are modules that draw into it, `page.css` and `views.css`
extend the book's style sheet.  There is no build step and nothing from elsewhere.  `words` holds
the page's words in each language.  Numbers, formulas and sentences about the model come from the
questions of `byhand.serving`, never from here.
"""

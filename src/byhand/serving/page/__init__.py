"""The served page: its HTML, style sheets, scripts and words.

`index.html` is the frame, the `.js` files are modules that draw into it, `page.css` and `views.css`
come on top of the book's own style sheet.  Nothing is built or brought in from elsewhere.  `words`
says the page's words in each language.  Numbers, formulas and sentences about the model come from
the questions of `byhand.serving`, never from here.
"""

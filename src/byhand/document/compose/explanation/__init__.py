"""How an explanation is shown: sections of parts for the terminal and the page, and data.

`sections` turns an Explanation into parts (see `parts`), `terminal` and `page` show them, `data`
is the JSON document.  Nothing is worked out here: what the numbers say lives in `explaining`.
"""

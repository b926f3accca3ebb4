"""What byhand shows: parts, the composers that make parts, and the media that draw them.

    parts      what can be shown; everything is data in the reader's language
    compose/   trace, marking, explanation, comparison, book, worksheet → parts
    media/     parts → terminal, HTML, Typst, xlsx, JSON

Composers compute no numbers, and media compose nothing.
"""

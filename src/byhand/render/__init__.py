"""From a trace to the person: trace → document parts → terminal text or JSON.

    document   trace → parts: which entries, in which forms, with which marks
    parts      what a document is made of; later books and spreadsheets read the same
    terminal   parts → text of a given width
    data       trace → the JSON document
    compared   floats beside the truth         unproven   what could not be proven

Nothing here computes a number: forms and decimals come from the number system.
"""

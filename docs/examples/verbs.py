"""What follows a text of the corpus `verbs`: the ending after a stem, the translation after `=`."""

# Three verbs of each class: -ar, -er, -ir.
ENGLISH = ["walk", "work", "visit", "learn", "respond", "depend", "climb", "open", "insist"]
SPANISH = ["camin", "trabaj", "visit", "aprend", "respond", "depend", "sub", "abr", "insist"]
PERSONS = ["I", "you", "she", "we", "you all", "they"]
PERSONAS = ["yo", "tú", "ella", "nosotros", "vosotros", "ellos"]
PRESENT = [
    ["-o", "-as", "-a", "-amos", "-áis", "-an"],
    ["-o", "-es", "-e", "-emos", "-éis", "-en"],
    ["-o", "-es", "-e", "-imos", "-ís", "-en"],
]
PAST = [
    ["-é", "-aste", "-ó", "-amos", "-asteis", "-aron"],
    ["-í", "-iste", "-ió", "-imos", "-isteis", "-ieron"],
    ["-í", "-iste", "-ió", "-imos", "-isteis", "-ieron"],
]


def english(person, verb, past):
    ending = "-ed" if past else "-s" if PERSONS[person] == "she" else "-0"
    return [*PERSONS[person].split(), ENGLISH[verb], ending]


def spanish(person, verb, past):
    endings = PAST if past else PRESENT
    return [PERSONAS[person], SPANISH[verb], endings[verb // 3][person]]


def answer(text):
    past = text[1] in ("yesterday", "ayer")
    told = text[2:-2] if text[-1] == "=" else text[2:]  # the person and the stem
    if text[0] == "<en>":
        person, verb = PERSONS.index(" ".join(told[:-1])), ENGLISH.index(told[-1])
        own, other = english(person, verb, past), spanish(person, verb, past)
    else:
        person, verb = PERSONAS.index(told[0]), SPANISH.index(told[1])
        own, other = spanish(person, verb, past), english(person, verb, past)
    return [*other, "<end>"] if text[-1] == "=" else own[-1:]

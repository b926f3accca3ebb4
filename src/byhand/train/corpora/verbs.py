"""Verb forms of English and Spanish: the tables, and the corpus made from them.

Every form is regular: a stem followed by an ending is the form as people spell it (-0 is the empty
ending).  Each combination of a verb, a person and a tense gives four documents:

    <en> yesterday she climb -ed <end>
    <en> yesterday she climb -ed = ella sub -ió <end>
    <es> ayer ella sub -ió <end>
    <es> ayer ella sub -ió = she climb -ed <end>

The training split has the four documents of a held-out combination too, each cut off before its
first ending.  So the question can be learned, the answer cannot.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Literal

from byhand.tokens import Vocabulary
from byhand.train.corpora.corpus import Corpus, Document, Question

TENSES = ("present", "past")  # the Spanish past is the preterite

TIMES = {"en": ("today", "yesterday"), "es": ("hoy", "ayer")}

PERSONS = {
    "en": ("I", "you", "she", "we", "you all", "they"),
    "es": ("yo", "tú", "ella", "nosotros", "vosotros", "ellos"),
}


@dataclass(frozen=True)
class Verb:
    """A regular verb: its English stem, its Spanish stem, its Spanish conjugation."""

    en: str
    es: str
    conjugation: str

    @property
    def infinitive(self) -> str:
        """The Spanish infinitive."""
        return f"{self.es}{self.conjugation}"

    def stem(self, language: str) -> str:
        """The stem in a language."""
        return self.en if language == "en" else self.es


VERBS = (
    Verb("walk", "camin", "ar"),
    Verb("work", "trabaj", "ar"),
    Verb("visit", "visit", "ar"),
    Verb("learn", "aprend", "er"),
    Verb("respond", "respond", "er"),
    Verb("depend", "depend", "er"),
    Verb("climb", "sub", "ir"),
    Verb("open", "abr", "ir"),
    Verb("insist", "insist", "ir"),
)

# by conjugation and tense, in the order of PERSONS
ENDINGS = {
    ("en", "present"): ("-0", "-0", "-s", "-0", "-0", "-0"),
    ("en", "past"): ("-ed", "-ed", "-ed", "-ed", "-ed", "-ed"),
    ("ar", "present"): ("-o", "-as", "-a", "-amos", "-áis", "-an"),
    ("ar", "past"): ("-é", "-aste", "-ó", "-amos", "-asteis", "-aron"),
    ("er", "present"): ("-o", "-es", "-e", "-emos", "-éis", "-en"),
    ("er", "past"): ("-í", "-iste", "-ió", "-imos", "-isteis", "-ieron"),
    ("ir", "present"): ("-o", "-es", "-e", "-imos", "-ís", "-en"),
    ("ir", "past"): ("-í", "-iste", "-ió", "-imos", "-isteis", "-ieron"),
}

MARKS = {"en": "<en>", "es": "<es>"}
OTHER = {"en": "es", "es": "en"}
SAME, END = "=", "<end>"
PADS = ("<pad0>", "<pad1>", "<pad2>", "<pad3>")  # unused tokens, which make the size 64


@dataclass(frozen=True)
class Combination:
    """A verb in a person and a tense, by their places in the tables."""

    verb: int
    person: int
    tense: int

    @property
    def held_out(self) -> bool:
        """Whether it is held out: nearly a seventh are, one person further back with each verb.

        No two verbs of a conjugation leave out the same person and tense, so that every ending is
        seen with two other stems of its class.  No verb leaves out a form that is spelled like
        another of its own (caminamos is present and past).
        """
        return (self.verb + self.person - 2 * self.tense) % 7 == 6 and not self.tells_apart

    @property
    def tells_apart(self) -> bool:
        """Whether the form tells -er and -ir verbs apart: two forms do; both stay in training."""
        er, ir = (ENDINGS[name, TENSES[self.tense]][self.person] for name in ("er", "ir"))
        return VERBS[self.verb].conjugation in ("er", "ir") and er != ir

    def ending(self, language: str) -> str:
        """The ending of the verb in a language."""
        table = "en" if language == "en" else VERBS[self.verb].conjugation
        return ENDINGS[table, TENSES[self.tense]][self.person]

    def form(self, language: str) -> tuple[str, ...]:
        """Person, stem and ending."""
        stem = VERBS[self.verb].stem(language)
        return (*PERSONS[language][self.person].split(), stem, self.ending(language))

    def sentence(self, language: str) -> tuple[str, ...]:
        """Mark, time, person, stem and ending."""
        return (MARKS[language], TIMES[language][self.tense], *self.form(language))

    def documents(self, language: str) -> tuple[tuple[str, ...], ...]:
        """The documents that begin in this language: the sentence, and the sentence translated."""
        sentence = self.sentence(language)
        return ((*sentence, END), (*sentence, SAME, *self.form(OTHER[language]), END))

    def written(self, language: str) -> str:
        """The form as people spell it: person, verb."""
        *person, stem, ending = self.form(language)
        return " ".join([*person, stem + ending.removeprefix("-").removesuffix("0")])


def combinations() -> Iterator[Combination]:
    """Every verb in every person and tense, verb by verb."""
    for verb in range(len(VERBS)):
        for tense in range(len(TENSES)):
            for person in range(len(PERSONS["en"])):
                yield Combination(verb, person, tense)


@cache
def vocabulary() -> Vocabulary:
    """60 tokens in the order of the tables, and four unused ones."""
    words = [END, SAME, *MARKS.values()]
    for table in (TIMES, PERSONS):
        words += [word for words in table.values() for entry in words for word in entry.split()]
    words += [ending for endings in ENDINGS.values() for ending in endings]
    words += [verb.stem(language) for language in MARKS for verb in VERBS]
    return Vocabulary((*dict.fromkeys(words), *PADS))  # in order of first use


def _ids(words: Sequence[str]) -> Document:
    return tuple(vocabulary().id(word) for word in words)


def corpus() -> Corpus:
    """The documents of every combination; of the held-out ones, only the beginnings in `train`."""
    train: list[Document] = []
    groups: list[int] = []
    validation: list[Document] = []
    for number, combination in enumerate(combinations()):
        for language in MARKS:
            question = _ids(combination.sentence(language)[:-1])
            for document in map(_ids, combination.documents(language)):
                if combination.held_out:
                    validation.append(document)
                train.append(question if combination.held_out else document)
                groups.append(number)
    return Corpus(
        name="verbs",
        about="English and Spanish verb forms, stem and ending, and their translation",
        vocabulary=vocabulary(),
        train=tuple(train),
        validation=tuple(validation),
        stream=False,
        text="<en> yesterday she climb -ed = ella sub",
        questions=questions("validation"),
        groups=tuple(groups),
    )


def questions(split: Literal["train", "validation"]) -> tuple[Question, ...]:
    """Four for each combination of a split: its ending, and its translation, in each language.

    The ending is asked for after the stem; the translation (person, stem, ending and <end>)
    after `=`.  Each has one right answer.
    """
    asked: list[Question] = []
    for combination in combinations():
        if combination.held_out != (split == "validation"):
            continue
        for language, other in OTHER.items():
            *before, ending = sentence = combination.sentence(language)
            what = combination.written(language)
            asked.append(Question(_ids(before), _ids([ending]), what))
            asked.append(
                Question(
                    _ids([*sentence, SAME]),
                    _ids([*combination.form(other), END]),
                    f"{what} = {combination.written(other)}",
                )
            )
    return tuple(asked)

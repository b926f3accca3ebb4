"""The verb corpus: its forms are right, it is complete, and what is held out stays out."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import pytest

from byhand.train.corpora import Corpus, open_corpus, verbs
from byhand.train.corpora.verbs import Combination, combinations

CORPUS = open_corpus("verbs")
COMBINATIONS = tuple(combinations())
HELD_OUT = [combination for combination in COMBINATIONS if combination.held_out]

# Written out by hand: present, then past, in the order I, you, she, we, you all, they.
ENGLISH = {
    "walk": "walk walk walks walk walk walk walked walked walked walked walked walked",
    "work": "work work works work work work worked worked worked worked worked worked",
    "visit": "visit visit visits visit visit visit visited visited visited visited visited visited",
    "learn": "learn learn learns learn learn learn learned learned learned learned learned learned",
    "respond": "respond respond responds respond respond respond "
    "responded responded responded responded responded responded",
    "depend": "depend depend depends depend depend depend "
    "depended depended depended depended depended depended",
    "climb": "climb climb climbs climb climb climb climbed climbed climbed climbed climbed climbed",
    "open": "open open opens open open open opened opened opened opened opened opened",
    "insist": "insist insist insists insist insist insist "
    "insisted insisted insisted insisted insisted insisted",
}

# yo, tú, ella, nosotros, vosotros, ellos
SPANISH = {
    "caminar": "camino caminas camina caminamos camináis caminan "
    "caminé caminaste caminó caminamos caminasteis caminaron",
    "trabajar": "trabajo trabajas trabaja trabajamos trabajáis trabajan "
    "trabajé trabajaste trabajó trabajamos trabajasteis trabajaron",
    "visitar": "visito visitas visita visitamos visitáis visitan "
    "visité visitaste visitó visitamos visitasteis visitaron",
    "aprender": "aprendo aprendes aprende aprendemos aprendéis aprenden "
    "aprendí aprendiste aprendió aprendimos aprendisteis aprendieron",
    "responder": "respondo respondes responde respondemos respondéis responden "
    "respondí respondiste respondió respondimos respondisteis respondieron",
    "depender": "dependo dependes depende dependemos dependéis dependen "
    "dependí dependiste dependió dependimos dependisteis dependieron",
    "subir": "subo subes sube subimos subís suben subí subiste subió subimos subisteis subieron",
    "abrir": "abro abres abre abrimos abrís abren abrí abriste abrió abrimos abristeis abrieron",
    "insistir": "insisto insistes insiste insistimos insistís insisten "
    "insistí insististe insistió insistimos insististeis insistieron",
}


def forms(language: str, number: int) -> list[str]:
    """All forms of a verb without their persons, present and then past."""
    mine = [combination for combination in COMBINATIONS if combination.verb == number]
    return [combination.written(language).split()[-1] for combination in mine]


@pytest.mark.parametrize("number", range(9))
def test_every_form_is_spelled_as_people_spell_it(number: int) -> None:
    verb = verbs.VERBS[number]
    assert forms("en", number) == ENGLISH[verb.en].split()
    assert forms("es", number) == SPANISH[verb.infinitive].split()


def test_persons_go_with_their_forms() -> None:
    said = {combination.written("en"): combination.written("es") for combination in COMBINATIONS}
    assert said["she walked"] == "ella caminó"
    assert said["we learn"] == "nosotros aprendemos"
    assert said["you all opened"] == "vosotros abristeis"
    assert said["you open"] == "tú abres"
    assert said["they insisted"] == "ellos insistieron"


def test_there_are_60_tokens_padded_to_64() -> None:
    tokens = CORPUS.vocabulary.tokens
    assert tokens[60:] == ("<pad0>", "<pad1>", "<pad2>", "<pad3>")
    used = {id for document in (*CORPUS.train, *CORPUS.validation) for id in document}
    assert used == set(range(60))


def test_the_canonical_example_has_8_tokens_and_asks_for_a_form_never_seen() -> None:
    prompt = CORPUS.vocabulary.encode(CORPUS.text)
    assert len(prompt) == 8
    (document,) = [known for known in CORPUS.validation if known[:8] == prompt]
    assert CORPUS.vocabulary.decode(document[8:]) == "-ió <end>"


def test_the_enumeration_is_complete() -> None:
    """9 verbs, 6 persons, 2 tenses, each alone and translated, from each of 2 languages."""
    assert len(set(COMBINATIONS)) == 9 * 6 * 2
    whole = {document for document in CORPUS.train if document[-1] == 0}
    assert not whole & set(CORPUS.validation)
    assert len(whole | set(CORPUS.validation)) == 9 * 6 * 2 * 4
    assert max(map(len, whole)) == 11


def test_the_documents_of_a_combination_are_its_sentences_and_their_translation() -> None:
    walked = Combination(verb=0, person=3, tense=1)
    climb = Combination(verb=6, person=4, tense=0)
    said = [
        " ".join(document)
        for combination in (walked, climb)
        for language in ("en", "es")
        for document in combination.documents(language)
    ]
    assert said == [
        "<en> yesterday we walk -ed <end>",
        "<en> yesterday we walk -ed = nosotros camin -amos <end>",
        "<es> ayer nosotros camin -amos <end>",
        "<es> ayer nosotros camin -amos = we walk -ed <end>",
        "<en> today you all climb -0 <end>",
        "<en> today you all climb -0 = vosotros sub -ís <end>",
        "<es> hoy vosotros sub -ís <end>",
        "<es> hoy vosotros sub -ís = you all climb -0 <end>",
    ]


def test_between_10_and_15_in_a_hundred_are_held_out() -> None:
    assert 0.10 <= len(HELD_OUT) / len(COMBINATIONS) <= 0.15
    assert {combination.verb for combination in HELD_OUT} == set(range(9))
    assert {combination.tense for combination in HELD_OUT} == {0, 1}


def conjugation(combination: Combination) -> str:
    return verbs.VERBS[combination.verb].conjugation


@pytest.mark.parametrize("out", HELD_OUT, ids=lambda out: out.written("es"))
def test_a_held_out_form_can_be_told_from_others(out: Combination) -> None:
    seen = [combination for combination in COMBINATIONS if not combination.held_out]
    same_verb = [c for c in seen if c.verb == out.verb]
    assert any(c.tense == out.tense for c in same_verb)
    assert any(c.person == out.person for c in same_verb)
    alike = [c for c in seen if (c.person, c.tense) == (out.person, out.tense)]
    assert sum(conjugation(c) == conjugation(out) for c in alike) == 2
    # and which conjugation the verb has, by endings that the other two do not have there
    for other in {"ar", "er", "ir"} - {conjugation(out)}:
        telling = [
            c
            for c in same_verb
            if verbs.ENDINGS[other, verbs.TENSES[c.tense]][c.person] != c.ending("es")
        ]
        assert len(telling) >= 2


def whole_words(corpus: Corpus) -> Iterator[tuple[str, str]]:
    """Stem and ending, and every other pair of neighbours, as learned."""
    tokens = corpus.vocabulary.tokens
    for document in corpus.train:
        yield from pairwise(tokens[id] for id in document)


@pytest.mark.parametrize("out", HELD_OUT, ids=lambda out: out.written("es"))
def test_a_held_out_form_is_never_seen(out: Combination) -> None:
    stem = verbs.VERBS[out.verb].es
    assert (stem, out.ending("es")) not in set(whole_words(CORPUS))
    tokens = CORPUS.vocabulary.tokens
    for language in ("en", "es"):
        question = list(out.sentence(language)[:-1])
        same = [d for d in CORPUS.train if [tokens[id] for id in d[: len(question)]] == question]
        assert [len(document) for document in same] == [len(question)] * 2  # asked, not answered


def test_every_question_is_asked_equally_often_in_training() -> None:
    """Otherwise a model learns which combinations are missing, instead of their forms."""
    tokens = CORPUS.vocabulary.tokens
    begun = [tuple(tokens[id] for id in document) for document in CORPUS.train]
    for combination in COMBINATIONS:
        for language in ("en", "es"):
            question = combination.sentence(language)[:-1]
            assert sum(document[: len(question)] == question for document in begun) == 2


def test_every_question_has_one_answer() -> None:
    documents = (*CORPUS.train, *CORPUS.validation)
    for split in ("train", "validation"):
        for question in verbs.questions(split):  # type: ignore[arg-type]
            size = len(question.prompt)
            answers = {
                document[size : size + len(question.answer)]
                for document in documents
                if document[:size] == question.prompt and len(document) > size
            }
            assert answers == {question.answer}


def test_questions_about_what_was_held_out_are_four_a_form() -> None:
    asked = verbs.questions("validation")
    assert CORPUS.questions == asked
    assert len(asked) == 4 * len(HELD_OUT)
    assert len(verbs.questions("train")) == 4 * (len(COMBINATIONS) - len(HELD_OUT))
    decode = CORPUS.vocabulary.decode
    said = {question.what: question for question in asked}
    assert decode(said["ella subió"].prompt) == "<es> ayer ella sub"
    assert decode(said["ella subió"].answer) == "-ió"
    translated = said["she climbed = ella subió"]
    assert decode(translated.prompt) == "<en> yesterday she climb -ed ="
    assert decode(translated.answer) == "ella sub -ió <end>"


def test_the_documents_of_a_combination_are_one_group() -> None:
    assert CORPUS.groups is not None
    assert len(CORPUS.groups) == len(CORPUS.train)
    assert [CORPUS.groups.count(number) for number in range(108)] == [4] * 108

"""The museum: real bugs in ports of ours; byhand names the step, and after the fix finds nothing.

`make museum` replays all of them.  A third is replayed here, and compared with the page.
"""

from __future__ import annotations

import numpy as np
import pytest
from benchmarks.museum import models, packing, page, tour
from benchmarks.museum.catalogue import EXHIBITS, LINK, ROOMS
from benchmarks.museum.replicas import replica

from byhand import forward

RECORDED = {each.name: each for each in tour.recorded()}
REPLAYED = (
    "scaled-frequencies-dropped", "base-hard-coded", "magnitude-divided-out",
    "slopes-of-any-number", "padding-takes-positions", "mask-from-the-wrong-corner",
    "window-one-too-wide", "sink-in-two-parts", "shares-of-all", "scores-for-shares",
    "shares-by-rank", "eps-hard-coded", "last-gain-without-its-one", "header-of-another-block",
    "scales-in-two-places", "packed-by-group", "packed-texts-see-each-other",
    "every-new-token-is-first", "stale-tail", "squares-overflow", "head-overwritten",
    "head-without-its-bias",
)  # fmt: skip


@pytest.mark.parametrize("name", REPLAYED)
def test_a_bug_is_found_at_its_step_and_the_page_says_what_byhand_says(name: str) -> None:
    seen = tour.seen(EXHIBITS[name])
    assert seen.first == EXHIBITS[name].shows
    assert seen.fixed is None
    assert (seen.cause, seen.change) == (RECORDED[name].cause, RECORDED[name].change)
    assert seen.cause or seen.described == RECORDED[name].described


def test_the_page_shows_every_exhibit_with_its_step_right_and_most_causes() -> None:
    assert set(RECORDED) == set(EXHIBITS)
    assert len(EXHIBITS) >= 34
    assert all(each.step_right for each in RECORDED.values())
    assert not any(each.cause_false for each in RECORDED.values())
    text = page.page()
    assert all(exhibit.link in text for exhibit in EXHIBITS.values())


def test_every_exhibit_links_to_an_issue_or_pull_request_and_hangs_in_a_room() -> None:
    assert len({exhibit.link for exhibit in EXHIBITS.values()}) == len(EXHIBITS)
    for exhibit in EXHIBITS.values():
        assert LINK.fullmatch(exhibit.link), exhibit.link
        assert exhibit.room in ROOMS
        assert 2015 <= exhibit.year <= 2026
        assert exhibit.title
        assert exhibit.wrong.endswith((".", ".)"))
        assert exhibit.lesson.endswith(".")


@pytest.mark.parametrize("family", models.SPECS)
def test_a_replica_files_every_step_that_byhand_has(family: str) -> None:
    model = models.model(family)
    plan = forward.plan(model.spec, models.LENGTH)
    dump = replica(model, models.some_ids(), "float32").run()
    assert {plan[name].address for name in dump} == {step.address for step in plan} - {"tokens"}


@pytest.mark.parametrize("way", packing.WAYS)
def test_what_is_packed_is_unpacked_to_nearly_the_same_numbers(way: str) -> None:
    data = np.random.default_rng(5).standard_normal((8, 64)).astype(np.float32)
    packed = packing.WAYS[way].pack(data)
    once = packing.WAYS[way].unpack(packed)
    if way == "gptq":  # every third row is made positive first
        data[::3] = np.abs(data[::3])
    assert once.dtype == np.float32
    assert np.abs(once - data).max() < 0.25
    assert np.abs(once - data).mean() < 0.08


def test_blocks_that_are_read_in_the_wrong_way_give_other_numbers_of_the_same_size() -> None:
    data = np.random.default_rng(6).standard_normal((8, 64)).astype(np.float32)
    awq = packing.pack_awq(data)
    right, wrong = packing.unpack_awq(awq), packing.unpack_awq(awq, tuple(range(8)))
    assert np.array_equal(right[:, ::8], wrong[:, ::8])  # the first of eight stays where it is
    assert not np.array_equal(right, wrong)
    assert np.array_equal(np.sort(right), np.sort(wrong))

"""Files that are there whole or not at all, whatever comes in between."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from byhand.drafts import draft_of, write_all, write_whole
from byhand.errors import OutputError


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_file_is_replaced_and_nothing_else_is_left(tmp_path: Path) -> None:
    target = tmp_path / "page.html"
    target.write_bytes(b"before")
    assert write_whole(target, b"after") == target
    assert target.read_bytes() == b"after"
    assert names(tmp_path) == ["page.html"]


def test_a_writer_that_stops_leaves_what_was_there(tmp_path: Path) -> None:
    target = tmp_path / "values.safetensors"
    target.write_bytes(b"before")

    def half(draft: Path) -> None:
        draft.write_bytes(b"hal")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_whole(target, half)
    assert target.read_bytes() == b"before"
    assert names(tmp_path) == ["values.safetensors"]


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    target, link = tmp_path / "there" / "book.csv", tmp_path / "book.csv"
    target.write_bytes(b"before")
    link.symlink_to(target)
    write_whole(link, b"after")
    assert link.is_symlink()
    assert target.read_bytes() == b"after"
    assert names(tmp_path) == ["book.csv", "there"]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="a device that is always full")
def test_a_device_is_written_into_and_its_answer_is_told() -> None:
    write_whole(Path(os.devnull), b"gone")
    with pytest.raises(OutputError, match="cannot be written"):
        write_whole(Path("/dev/full"), b"no room")


def test_a_folder_is_made_only_where_it_is_asked_for(tmp_path: Path) -> None:
    target = tmp_path / "new" / "page.html"
    with pytest.raises(OutputError, match="cannot be written") as found:
        write_whole(target, b"text")
    assert found.value.where == str(target)
    assert write_whole(target, b"text", make_folder=True).read_bytes() == b"text"


def test_several_files_are_written_into_one_folder(tmp_path: Path) -> None:
    files = {"index.html": b"one", "style.css": b"two"}
    paths = write_all(files, tmp_path / "book")
    assert {path.name: path.read_bytes() for path in paths} == files


def test_a_folder_that_is_not_finished_is_gone(tmp_path: Path) -> None:
    def half_a_folder() -> None:
        with draft_of(tmp_path / "step-1", ".step-1.draft") as draft:
            draft.mkdir()
            (draft / "state.json").write_text("{")
            raise OSError("full")

    with pytest.raises(OSError, match="full"):
        half_a_folder()
    assert names(tmp_path) == []

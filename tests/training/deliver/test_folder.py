"""What may lie in a delivered folder, and what SHA256SUMS says of it."""

from __future__ import annotations

import hashlib

from training.spec.deliver.folder import NO_FILE, File, is_foreign, lacking, sums_of, unfit, with_sums

ONE, TWO = File("a", 3, "0" * 64), File("b b", 5, "f" * 64)


def test_sums_come_last_and_name_all_others() -> None:
    text = f"{'0' * 64}  a\n{'f' * 64}  b b\n"
    assert sums_of([ONE, TWO]) == text
    marker = File("SHA256SUMS", len(text), hashlib.sha256(text.encode()).hexdigest())
    assert with_sums([ONE, TWO]) == (ONE, TWO, marker)
    assert with_sums([ONE, File("SHA256SUMS", 1, ""), TWO]) == (ONE, TWO, marker)


def test_strangers_other_sizes_and_links_do_not_fit() -> None:
    there = {"a": 3, "b b": NO_FILE, ".a.12345678": 3}
    assert (unfit(there, [ONE, TWO]), lacking(there, [ONE, TWO])) == ([".a.12345678", "b b"], ["b b"])
    assert (unfit({"a": 3}, [ONE]), lacking({"a": 3}, [ONE])) == ([], [])


def test_a_working_folder_without_its_mark_is_somebody_else_s() -> None:
    assert [is_foreign(names) for names in ([], ["old"], ["of-shardboard", "old"])] == [False, True, False]

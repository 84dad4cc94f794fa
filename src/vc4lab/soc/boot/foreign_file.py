"""Files that were downloaded in a way that brings something else than the file itself."""

from __future__ import annotations

LFS_POINTER = b"version https://git-lfs.github.com/spec/"
PAGES = (b"<!doctype html", b"<html")
POINTER_TEXT = "is a Git LFS pointer, not the file itself: fetch it with `git lfs pull`"
PAGE_TEXT = "is a web page (HTML), not the file itself: download the raw file"


def foreign_file(head: bytes) -> str | None:
    """Say what kind of file begins like this, and how to get the right one; None: nothing known.

    A repository with Git LFS that was cloned without it, or downloaded as an archive, has a text of
    three lines instead of each large file; saving a file's page on a web site gives the page.
    """
    if head.startswith(LFS_POINTER):
        return POINTER_TEXT
    if head.lstrip().lower().startswith(PAGES):
        return PAGE_TEXT
    return None

"""`vc4lab cache`: what is kept for the next start, and how to be rid of it."""

from __future__ import annotations

from collections import Counter
from typing import Annotated

import typer

from vc4lab.cache.contents import BOUND, KINDS
from vc4lab.cli.exit_codes import ExitCode, failed

NAMES = [kind.name for kind in KINDS]
ALL = "all"


def cache(
    clear: Annotated[
        list[str] | None,
        typer.Option(
            help=f"Remove what is of this kind: {', '.join(NAMES)} or {ALL}; repeat it for more.",
            metavar="KIND",
        ),
    ] = None,
) -> None:
    """Show what the cache holds, by kind, and its bound; with --clear, remove some of it.

    What is above the bound goes by itself, but trees and cards, which --setup downloads.
    """
    from vc4lab.cache import contents
    from vc4lab.cache.place import cache_folder
    from vc4lab.cache.trust import Untrusted
    from vc4lab.files import why

    for name in clear or ():
        if name not in (*NAMES, ALL):
            raise failed(f"--clear {name}: {', '.join(NAMES)} or {ALL}")
    root = cache_folder()
    if root is None:
        raise failed("there is no cache: $HOME is not a folder; set XDG_CACHE_HOME to one")
    try:
        if clear and root.is_dir():
            freed = contents.clear(root, NAMES if ALL in clear else clear)
            typer.echo(f"{size_of(freed)} removed", err=True)
        found = [*contents.pieces(root)] if root.is_dir() else []
    except Untrusted as error:
        raise failed(f"vc4lab cache: {error}") from None
    except OSError as error:
        raise failed(f"{error.filename}: {why(error)}", ExitCode.OUTPUT) from None
    sizes, counts = Counter[str](), Counter[str]()
    for piece in found:
        sizes[piece.kind.name] += piece.size
        counts[piece.kind.name] += 1
    typer.echo(f"{root}: {size_of(sizes.total())}, at most {size_of(BOUND)}")
    for kind in KINDS:
        number = f"{counts[kind.name]} file{'s' * (counts[kind.name] != 1)}"
        typer.echo(f"{kind.name:<10}{size_of(sizes[kind.name]):>9}  {number:<12}  {kind.title}")


def size_of(size: int) -> str:
    """ "308 MB": a size as people read it."""
    return f"{size / 1e9:.1f} GB" if size >= 1e9 else f"{size / 1e6:.0f} MB"

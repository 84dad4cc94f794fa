"""Which register block is at which offset of a bus's window, and the handlers of its registers."""

from __future__ import annotations

from vc4lab.registers import Poll, ReadHandler, WriteHandler
from vc4lab.soc.address.block import Block

PAGE_BITS = 12


def _pages(start: int, block: Block) -> range:
    """Numbers of the pages in which a block at an offset lies."""
    return range(start >> PAGE_BITS, (start + block.SIZE - 1 >> PAGE_BITS) + 1)


class BlockMap:
    """The blocks of a window.

    Attributes
    ----------
    blocks
        Offset and block, as they were attached; where two declare a register, the later one counts.
    reads, writes
        Offset → handler. Those of a page are there from its first access on (`open`): a board has
        fifty blocks, of which a program touches a few.
    steady
        Offsets of registers whose value stays until something happens, in the same pages.
    """

    def __init__(self) -> None:
        self.blocks: list[tuple[int, Block]] = []
        self.reads: dict[int, ReadHandler] = {}
        self.writes: dict[int, WriteHandler] = {}
        self.steady: set[int] = set()
        self._owners: dict[int, tuple[int, Block]] = {}
        self._closed: set[int] = set()
        """Pages whose handlers are not entered yet."""
        self._found: dict[int, tuple[str, Poll] | None] = {}
        """Answers of `find` by offset; it is asked at every vsync of a program that polls."""

    def attach(self, start: int, block: Block) -> None:
        """Put a block at an offset."""
        self.blocks.append((start, block))
        self._found.clear()
        for page in _pages(start, block):
            is_open = page in self._owners and page not in self._closed
            self._owners.setdefault(page, (start, block))
            self._closed.add(page)
            if is_open:
                self.open(page << PAGE_BITS)

    def open(self, offset: int) -> bool:
        """Enter the handlers of the page of an offset; False if they have been."""
        page = offset >> PAGE_BITS
        if page not in self._closed:
            return False
        self._closed.discard(page)
        inside = range(page << PAGE_BITS, page + 1 << PAGE_BITS)
        for start, block in self.blocks:
            if page not in _pages(start, block):
                continue
            for at, read in block.read_handlers().items():
                if start + at in inside:
                    self.reads[start + at] = read
            for at, write in block.write_handlers().items():
                if start + at in inside:
                    self.writes[start + at] = write
            self.steady.update(start + at for at in block.steady())
        return True

    def owner(self, offset: int) -> tuple[Block, int] | None:
        """The block that answers for registers it does not declare, and where in it that is."""
        found = self._owners.get(offset >> PAGE_BITS)
        return (found[1], offset - found[0]) if found is not None else None

    def place(self, offset: int) -> tuple[Block, int] | None:
        """The block at an offset, and where in it; if one declares the register, that."""
        for start, block in self.blocks:
            if block.register_at(offset - start) is not None:
                return block, offset - start
        return self.owner(offset)

    def find(self, offset: int) -> tuple[str, Poll] | None:
        """ "block.REGISTER" and poll kind of the register at an offset."""
        if offset not in self._found:
            self._found[offset] = self._find(offset)
        return self._found[offset]

    def _find(self, offset: int) -> tuple[str, Poll] | None:
        place = self.place(offset)
        if place is None:
            return None
        block, at = place
        declared = block.register_at(at)
        return block.describe(at), declared[1].poll if declared else Poll.SOON

"""The store of a campaign, held from its check to its end, and the parts that come into it.

What cannot be taken into it is left beside it: it may be hours of a real drive. Leaves out how parts travel.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from lowtide import _native
from lowtide._errors import BadPart, LowtideError
from lowtide.distributed._order import GOES_ON, NOT_KEPT, NOT_YET, add, folder, reword, room


class Into:
    """A store, and the campaign in it once that has begun."""

    def __init__(self, store: Path, resume: bool, temporary: bool, run: str) -> None:
        self.store, self.resume, self.temporary, self.run = store, resume, temporary, run
        self.campaign: int | None = None
        self.done: set[int] = set()
        self.left: dict[int, Path] = {}
        """What could not be taken, by group."""
        self._parts: _native.Parts | None = None

    def open(self) -> None:
        """Open the store; from now on nobody else writes to it."""
        self._parts = _native.Parts(os.fspath(self.store), self.resume)

    def close(self) -> None:
        """Let go of it; one that was made for this and has no campaign is gone."""
        if self._parts is not None:
            self._parts.close()

    def begin(self, part: bytes) -> None:
        """Begin the campaign, or go on with it."""
        with passing(part) as path:
            self._begin(path)

    def _begin(self, part: Path) -> None:
        assert self._parts is not None
        self.campaign, done = self._parts.begin(part)
        self.done.update(done)

    def take(self, group: int, part: bytes) -> bool:
        """Take what a group gave; whether the campaign begins with it.

        Raises
        ------
        BadPart
            Where what is in it cannot be: nothing of it was taken, and it is no use to anybody.
        LowtideError
            Where the store cannot take it; it is left beside it.
        """
        assert self._parts is not None
        begins = self.campaign is None
        try:
            with passing(part) as path:
                if begins:
                    self._begin(path)
                self.done.update(self._parts.join(path))
        except BadPart:
            raise
        except LowtideError:
            self._leave(group, part)
            raise
        if group in self.left:
            self.left.pop(group).unlink(missing_ok=True)
        return begins

    def extract(self, cells: list[int]) -> bytes:
        """Give a part with these cells."""
        assert self._parts is not None
        with passing() as part:
            self._parts.extract(cells, part)
            return part.read_bytes()

    def _leave(self, group: int, part: bytes) -> None:
        """Write a part to where there is room, beside the store or where parts pass."""
        if self.temporary:
            return
        for place in (self.store.parent, Path(tempfile.gettempdir())):
            path = place / f"{self.store.name}.{self.run[:8]}-{group}"
            try:
                _native.write_file(os.fspath(path), part, "a part of the campaign")
            except LowtideError:
                continue
            else:
                self.left[group] = path
                return

    def tell(self, error: BaseException) -> None:
        """Say on what ended a campaign how it goes on, and where there is what could not be taken."""
        if self.temporary:
            reword(error, GOES_ON, NOT_KEPT)
        elif self.campaign is None and not self.resume:
            reword(error, GOES_ON, NOT_YET)
        elif self.campaign is not None and isinstance(error, KeyboardInterrupt) and hasattr(error, "add_note"):
            error.add_note(f"campaign {self.campaign} was ended in good order: {GOES_ON}")
        for path in self.left.values():
            merge = f"`lowtide store merge {path} -o {self.store}`"
            help = f"{merge} takes it, and then the same call with resume=True goes on"
            add(error, f"what was measured and could not be taken into the store is in {path}", help)


@contextmanager
def passing(part: bytes | None = None) -> Iterator[Path]:
    """Give a path for a part, with what is in it; it is gone afterwards."""
    with room(tempfile.gettempdir(), "TMPDIR"), folder() as here:
        path = here / "part.db"
        if part is not None:
            path.write_bytes(part)
        yield path

"""A simulated device that is driven from Python.

Leaves out experiments: their loads, their history, their analysis; see `run`.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence
from fractions import Fraction
from typing import Literal, overload

import numpy as np
import numpy.typing as npt

from lowtide import _ask, _native
from lowtide._errors import BadInput

Instants = npt.NDArray[np.uint64]
"""Instants of a device's time, in nanoseconds."""

Integers = int | npt.NDArray[np.integer] | Sequence[int]
"""One number for all requests, or one for each."""


class Op(enum.IntEnum):
    """What a request does."""

    READ = 0
    """Read."""
    WRITE = 1
    """Write; done when the device acknowledges it."""
    WRITE_FUA = 2
    """Write; done when it is durable (force unit access)."""
    TRIM = 3
    """Say that the range holds nothing of worth."""
    WRITE_ZEROES = 4
    """Make the range read as zeroes."""
    FLUSH = 5
    """Done when every acknowledged write is durable; offset and length are ignored."""


OpName = Literal["read", "write", "write-fua", "trim", "write-zeroes", "flush"]
Ops = OpName | Op | Sequence[OpName | Op] | npt.NDArray[np.integer]
"""An operation for all requests, or one for each: names, members of `Op`, or their numbers."""

_CODES = {op.name.lower().replace("_", "-"): int(op) for op in Op}
_LARGEST = 1 << 20


class Device:
    """A simulated device, as new, in a time of its own.

    It takes requests and tells when each is done. Time goes on with requests and `idle`, and with nothing else: between two
    calls no time passes. The same requests on the same device with the same seed take the same times.

    Parameters
    ----------
    device : str, path or dict
        A name of the catalogue (`devices` lists them), the path of a device file, the text of one, or a dict with its keys.
    scale : str, float or Fraction
        Its capacity is multiplied by this share, such as ``"1/8"``; its speed stays.
    seed : int
        The seed of every random choice that it makes.

    Raises
    ------
    BadInput
        Where there is no such device, or no device can be so.

    Examples
    --------
    >>> import numpy as np
    >>> drive = lowtide.Device("intel-320-160gb", scale="1/64")
    >>> done = drive.fill()
    >>> offsets = np.random.default_rng(1).integers(0, drive.capacity // 4096, 10_000) * 4096
    >>> done = drive.write(offsets, length=4096, depth=32)
    >>> done.dtype, done.shape
    (dtype('uint64'), (10000,))
    >>> drive.counters()["host_written_bytes"] == drive.capacity + 10_000 * 4096
    True
    """

    __slots__ = ("_device",)

    def __init__(self, device: _ask.Source, *, scale: str | float | Fraction = 1, seed: int = 1) -> None:
        name, text = _ask.source(device, "device")
        self._device = _native.Device(name, text, scale=_ask.scale(scale), seed=seed)

    @property
    def name(self) -> str:
        """The name it is called by."""
        return self._device.name

    @property
    def title(self) -> str:
        """Maker, model, year."""
        return self._device.title

    @property
    def scale(self) -> Fraction:
        """What its capacity was multiplied by."""
        return Fraction(1, self._device.scale)

    @property
    def seed(self) -> int:
        """The seed of every random choice that it makes."""
        return self._device.seed

    @property
    def capacity(self) -> int:
        """Bytes the host may address."""
        return self._device.capacity

    @property
    def logical_block(self) -> int:
        """Bytes that offsets and lengths are multiples of."""
        return self._device.logical_block

    @property
    def raw_capacity(self) -> int | None:
        """Bytes behind the capacity, where garbage is collected in them."""
        return self._device.raw_capacity

    @property
    def now(self) -> int:
        """Its time, in nanoseconds since it was made: that of the last completion, or later."""
        return self._device.now

    def counters(self) -> dict[str, int]:
        """Give what it has counted since it was made: bytes written by the host and to NAND, erases, stalls, ….

        Write amplification between two moments is the difference of ``nand_written_bytes`` by that of
        ``host_written_bytes``.
        """
        return dict(self._device.counters())

    def erase_counts(self) -> npt.NDArray[np.uint32]:
        """Give the erase cycles of each block; of a device without NAND, none."""
        return self._device.erase_counts()

    @overload
    def submit(
        self,
        op: Ops,
        offsets: Integers,
        lengths: Integers,
        *,
        at: npt.ArrayLike | None = ...,
        depth: int = ...,
        return_begun: Literal[False] = ...,
    ) -> Instants: ...
    @overload
    def submit(
        self,
        op: Ops,
        offsets: Integers,
        lengths: Integers,
        *,
        at: npt.ArrayLike | None = ...,
        depth: int = ...,
        return_begun: Literal[True],
    ) -> tuple[Instants, Instants]: ...
    def submit(
        self,
        op: Ops,
        offsets: Integers,
        lengths: Integers,
        *,
        at: npt.ArrayLike | None = None,
        depth: int = 1,
        return_begun: bool = False,
    ) -> Instants | tuple[Instants, Instants]:
        """Submit requests, and wait for all of them.

        Parameters
        ----------
        op : str, Op, or one for each request
            What they do.
        offsets : int or array of int
            Their first bytes; a multiple of `logical_block`.
        lengths : int or array of int
            Their bytes, for all of them or for each; a multiple of `logical_block`, above 0.
        at : array of int, optional
            When each is submitted, whatever the device does (an open load): nanoseconds of the device's time that begin
            with `now` or later, and do not fall.
        depth : int
            Without `at`: requests in flight (a closed load). The next one is submitted when one of them is done.
        return_begun : bool
            Give the instants of submission, too: ``done - begun`` is the latency.

        Returns
        -------
        done : array of uint64
            When each was done, in nanoseconds of the device's time, in the order of the requests.
        begun : array of uint64
            When each was submitted; only with `return_begun`.

        Raises
        ------
        BadInput
            Where a request does not fit the device; then none was submitted.
        LowtideError
            Where the device failed at a request; then none after it was submitted.
        KeyboardInterrupt
            After Ctrl-C; requests that were submitted have been waited for.

        Examples
        --------
        An open load of 1000 requests a second, half of them reads:

        >>> import numpy as np
        >>> drive = lowtide.Device("intel-320-160gb", scale="1/64")
        >>> random = np.random.default_rng(1)
        >>> offsets = random.integers(0, drive.capacity // 4096, 1000) * 4096
        >>> at = drive.now + np.cumsum(random.exponential(1e6, 1000)).astype(np.uint64)
        >>> done = drive.submit(np.where(random.random(1000) < 0.5, "read", "write"), offsets, 4096, at=at)
        >>> bool((done > at).all())
        True
        """
        begins = np.atleast_1d(_unsigned(offsets, "offsets"))
        ends, begun = self._device.submit(
            _codes(op),
            begins,
            np.atleast_1d(_unsigned(lengths, "lengths")),
            at=None if at is None else np.atleast_1d(_unsigned(at, "at")),
            depth=depth,
        )
        return (ends, begun) if return_begun else ends

    def write(
        self, offsets: Integers, length: Integers = 4096, *, at: npt.ArrayLike | None = None, depth: int = 1
    ) -> Instants:
        """Write, and give when each write was acknowledged; see `submit`."""
        return self.submit(Op.WRITE, offsets, length, at=at, depth=depth)

    def read(
        self, offsets: Integers, length: Integers = 4096, *, at: npt.ArrayLike | None = None, depth: int = 1
    ) -> Instants:
        """Read, and give when each read was done; see `submit`."""
        return self.submit(Op.READ, offsets, length, at=at, depth=depth)

    def trim(self, offsets: Integers, length: Integers, *, at: npt.ArrayLike | None = None, depth: int = 1) -> Instants:
        """Say that ranges hold nothing of worth, and give when that was done; see `submit`."""
        return self.submit(Op.TRIM, offsets, length, at=at, depth=depth)

    def flush(self) -> int:
        """Make every acknowledged write durable, and give when that was done."""
        return int(self.submit(Op.FLUSH, 0, 0)[0])

    def fill(self, share: float = 1.0, *, length: int = _LARGEST, depth: int = 1) -> int:
        """Write once from the beginning, in order, and give when that was done.

        Parameters
        ----------
        share : float
            The share of the capacity that is written, from 0 to 1.
        length : int
            Bytes of a request; the last one may be shorter.
        depth : int
            Requests in flight.
        """
        if not 0 <= share <= 1:
            raise BadInput(f"{share} is no share of a device\n  help: from 0 to 1")
        if length < self.logical_block or length % self.logical_block:
            raise BadInput(f"requests of {length} bytes\n  help: a multiple of {self.logical_block}")
        end = int(self.capacity * share) // self.logical_block * self.logical_block
        offsets = np.arange(0, end, length, dtype=np.uint64)
        lengths = np.minimum(np.uint64(length), np.uint64(end) - offsets)
        if len(offsets):
            self.submit(Op.WRITE, offsets, lengths, depth=depth)
        return self.now

    def idle(self, seconds: float) -> None:
        """Let time pass without requests: what the device does by itself goes on."""
        if not 0 <= seconds < 4e9:
            raise BadInput(f"{seconds} seconds of idle time\n  help: from 0 on")
        self._device.idle(round(seconds * 1e9))

    def secure_erase(self) -> None:
        """Erase everything, which takes no time here; wear stays."""
        self._device.secure_erase()

    def __repr__(self) -> str:
        scale = f", scale {self.scale}" if self.scale < 1 else ""
        return f"<lowtide.Device {self.name!r}{scale}: {self.capacity:_} bytes, now {self.now / 1e9:.6g} s>"


def _unsigned(values: npt.ArrayLike, what: str) -> Instants:
    array = np.asarray(values)
    if array.size == 0:
        array = array.astype(np.uint64)
    if array.dtype.kind not in "iu":
        raise TypeError(f"{what}: whole numbers of bytes or nanoseconds, not {array.dtype}")
    if array.ndim > 1:
        raise BadInput(f"{what}: {array.ndim} dimensions\n  help: one number, or a list of one dimension")
    if array.dtype.kind == "i" and array.size and array.min() < 0:
        raise BadInput(f"{what}: {array.min()} is below 0\n  help: numbers from 0 on")
    return np.ascontiguousarray(array, dtype=np.uint64)


def _codes(op: Ops) -> npt.NDArray[np.uint8]:
    if isinstance(op, str):
        return np.array([_code(op)], dtype=np.uint8)
    array = np.atleast_1d(np.asarray(op))
    if array.dtype.kind in "OU":
        names, inverse = np.unique(array.astype(str), return_inverse=True)
        return np.array([_code(name) for name in names.tolist()], dtype=np.uint8)[inverse]
    if array.dtype.kind not in "iu" or (array.size and (array.min() < 0 or array.max() > 255)):
        raise BadInput(f"no operations: {array!r}\n  help: names ({', '.join(_CODES)}), or members of Op")
    return np.ascontiguousarray(array, dtype=np.uint8)


def _code(name: str) -> int:
    # Members of `Op` in a list of names are numbers in words.
    code = _CODES.get(name, int(name) if name.isdigit() else None)
    if code is None:
        raise BadInput(f"no operation `{name}`\n  help: one of {', '.join(_CODES)}")
    return code

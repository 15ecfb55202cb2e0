"""A lock for what one thread mostly uses alone: who has the turn may do something.

The locks of the library cost four per cent of a round. Here the turn is the last element of a list,
and deleting it takes the turn: at once, in one step for all threads, with or without the
interpreter's own lock, and nothing can interrupt a thread between that and its ``try``:

    lock = self.lock
    try:
        del lock.free[LAST]
        mine = True
    except IndexError:
        mine = lock.wait()
    try:
        ...
    finally:
        if mine:
            lock.free.append(True)
            if lock.waiting:
                mine = False
                lock.pass_on()

For what is not called a hundred thousand times a second there is ``with lock:``. Whoever waits gets
the turn in the order in which they came. A thread that has the turn may take it again.
"""

import copy
from _thread import allocate_lock, get_ident
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from inspect import currentframe
from typing import Any, ClassVar

LAST = 3
"""Where the turn lies; a list of four is not made anew when it loses one and gets one."""
AGAIN = 0.05
"""Seconds after which who waits looks again, should whoever leaves have been interrupted."""


class Turn:
    """One turn, for many threads.

    >>> turn = Turn()
    >>> with turn, turn:
    ...     len(turn.free)
    3
    >>> len(turn.free)
    4
    """

    __slots__ = ("_entered", "_owner", "free", "waiting")

    def __init__(self) -> None:
        self.free = [True] * (LAST + 1)
        self.waiting: deque[Any] = deque()
        """A closed lock for everyone who waits; it opens when the turn is theirs."""
        self._owner = 0
        """The thread that has it by ``with``."""
        self._entered: Any = ()
        """For every ``with``, the innermost first: was it this one that took the turn?"""

    def wait(self) -> bool:
        """Wait for the turn; False where this thread has it already."""
        if self._owner == get_ident() or self._is_mine():
            return False
        door, mine = allocate_lock(), False
        door.acquire()
        self.waiting.append(door)
        try:
            while not mine:
                try:
                    del self.free[LAST]
                    mine = True
                    self.waiting.remove(door)
                except IndexError:  # off the list, the turn is theirs whose door it was
                    mine = door.acquire(timeout=AGAIN) or door not in self.waiting
        except BaseException:
            try:
                self.waiting.remove(door)
            except ValueError:
                mine = True
            if mine:
                self.leave()
            raise
        return True

    def _is_mine(self) -> bool:
        """Is there a call on this thread's stack that took the turn as shown above?"""
        frame: Any = currentframe()
        while frame is not None:
            if "mine" in frame.f_code.co_varnames:
                own = frame.f_locals
                if own.get("lock") is self and own.get("mine"):
                    return True
            frame = frame.f_back
        return False

    def leave(self) -> None:
        """Give the turn back."""
        self.free.append(True)
        self.pass_on()

    def pass_on(self) -> None:
        """Give the turn, which is free, to whoever has waited longest."""
        while self.waiting:
            try:
                del self.free[LAST]
            except IndexError:
                return  # taken meanwhile, and passed on from there
            try:
                door = self.waiting.popleft()
            except IndexError:
                self.free.append(True)
                continue
            door.release()
            return

    def __enter__(self) -> None:
        me = get_ident()
        try:
            del self.free[LAST]
            mine = True
        except IndexError:
            mine = self.wait()
        if mine:
            self._owner = me
        self._entered = (mine, self._entered)

    def __exit__(self, *error: object) -> None:
        mine, self._entered = self._entered
        if mine:
            self._owner = 0
            self.leave()


class Locked:
    """What several threads may use: calls hold ``lock``, and copies have a lock of their own."""

    lock: Turn
    changing: ClassVar[tuple[str, ...]]
    """The attributes that calls change."""
    _undoing = False

    def __deepcopy__(self, memo: dict[int, Any]) -> "Locked":
        with self.lock:
            twin = memo[id(self)] = object.__new__(type(self))
            twin.__setstate__(copy.deepcopy(self._without_lock(), memo))
        return twin

    def __getstate__(self) -> dict[str, Any]:
        with self.lock:
            return copy.deepcopy(self._without_lock())  # it is looked at when the lock is free

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self.lock = Turn()

    def _without_lock(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "lock"}

    @contextmanager
    def all_or_nothing(self) -> Iterator[None]:
        """What happens inside happens whole or, with an error, not at all.

        The model is copied once, however many rounds and replays there are inside. Other threads
        that want it wait for the end.

        >>> import groupwise as gw
        >>> model = gw.Groupwise([gw.by("sex")])
        >>> try:
        ...     with model.all_or_nothing():
        ...         model.learn_one({"sex": "male"}, 0.5)
        ...         model.learn_one({"sex": "male"}, 1.5)
        ... except gw.GroupwiseError:
        ...     print(model.issued)
        0
        """
        with self.lock:
            if self._undoing:
                yield
                return
            before = copy.deepcopy({name: self.__dict__[name] for name in self.changing})
            self._undoing = True
            try:
                yield
            except BaseException:
                self.__dict__.update(before)
                raise
            finally:
                self._undoing = False

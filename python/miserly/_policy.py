"""The form of a policy in Python."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from ._miserly import Job


class Policy(Protocol):
    """A policy: at each pass it returns the numbers of the jobs to start now."""

    def schedule(self, now: float, waiting: list[Job], running: list[Job], free: int) -> Sequence[int]: ...

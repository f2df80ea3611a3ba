"""The native part of the package."""

from collections.abc import Callable, Sequence
from os import PathLike
from typing import Any, final

from ._policy import Policy

class MiserlyError(ValueError):
    """What was asked for is not understood or cannot be done; the message says what, where, and what to do."""

@final
class Log:
    """A job log, in memory."""

    @staticmethod
    def read(path: str | PathLike[str], **options: Any) -> Log:
        """Reads a log of any form that the program reads, with the options of reading."""
    @staticmethod
    def from_swf(text: str | bytes, name: str = "log") -> Log:
        """Takes text in the Standard Workload Format."""
    @staticmethod
    def generate(**options: Any) -> Log:
        """Generates a log by a workload model, with the options of `miserly workload generate`."""
    @property
    def name(self) -> str: ...
    @property
    def procs(self) -> int | None:
        """The processors of the machine in its header, if any."""
    @property
    def sha256(self) -> str: ...
    @property
    def conversion(self) -> str | None:
        """The counts of the conversion, if the file had another form."""
    def to_swf(self) -> bytes: ...
    def describe(self) -> dict[str, Any]:
        """Returns what `miserly workload describe --json` prints."""
    def __len__(self) -> int: ...

@final
class Job:
    """A job as a policy sees it. Times are in seconds of the log. The runtime is not known."""

    @property
    def number(self) -> int: ...
    @property
    def submit(self) -> float: ...
    @property
    def procs(self) -> int: ...
    @property
    def estimate(self) -> float: ...
    @property
    def user(self) -> int | None: ...
    @property
    def group(self) -> int | None: ...
    @property
    def queue(self) -> int | None: ...
    @property
    def expected_end(self) -> float | None:
        """The expected end by the estimate, if the job runs."""

@final
class JobOrder:
    """An order of the queue by a function of a job. The smallest value comes first."""

    def __init__(self, key: Callable[[Job], float], *, backfill: str = "easy", name: str | None = None) -> None: ...

@final
class JobTable:
    """The finished jobs of a run as columns, and as an Arrow stream."""

    @property
    def columns(self) -> list[str]: ...
    def __getitem__(self, name: str) -> list[Any]: ...
    def to_dict(self) -> dict[str, list[Any]]: ...
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...
    def __len__(self) -> int: ...

@final
class Run:
    """One policy on one log."""

    @property
    def policy(self) -> str: ...
    @property
    def document(self) -> dict[str, Any]:
        """The document of the run, as `miserly simulate --json` prints it."""
    @property
    def json(self) -> str: ...
    @property
    def jobs(self) -> JobTable: ...
    def _repr_html_(self) -> str: ...

@final
class Comparison:
    """Several policies on one log."""

    @property
    def runs(self) -> list[Run]: ...
    @property
    def differences(self) -> list[dict[str, Any]]:
        """The paired difference of each pair of runs in each measure, with its 95 % interval."""
    def __len__(self) -> int: ...
    def __getitem__(self, policy: str) -> Run: ...
    def _repr_html_(self) -> str: ...

@final
class Envs:
    """Environments that step together. `miserly.gym` has them as Gymnasium environments."""

    SHAPE: tuple[int, int]
    def __init__(
        self,
        log: Log,
        count: int,
        *,
        jobs: int = 256,
        backfill: bool = False,
        observation: str = "zhang20",
        reward: str = "bounded_slowdown",
        window: tuple[int, int] | None = None,
    ) -> None: ...
    def reset(self, seed: int, observations: Any, masks: Any) -> None: ...
    def step(self, actions: Any, observations: Any, masks: Any, rewards: Any, ends: Any) -> None: ...
    def __len__(self) -> int: ...

def simulate(
    log: Log, policy: str | JobOrder | Policy, *, by: list[str] | None = None, details: bool = False, **options: Any
) -> Run:
    """Runs one policy on a log, with the options of `miserly simulate`."""

def compare(
    log: Log, policies: Sequence[str | JobOrder | Policy], *, by: list[str] | None = None, details: bool = False, **options: Any
) -> Comparison:
    """Runs several policies on a log, with the options of `miserly compare`."""

def score(
    policy: str | JobOrder | Policy, *, windows: str = "training", against: str = "easy"
) -> dict[str, Any]:
    """Returns the score of a policy on made windows. `miserly.benchmarks` runs it in a process of its own."""

"""The native part of the package. `tests/python/run` compares the names, parameters and defaults with the module."""

from collections.abc import Callable, Mapping, Sequence
from os import PathLike
from typing import Any, Protocol, final

from ._policy import Policy

__all__ = [
    "Answer",
    "Comparison",
    "Envs",
    "Job",
    "JobOrder",
    "JobTable",
    "Log",
    "MiserlyError",
    "Run",
    "Symbol",
    "SymbolicJob",
    "compare",
    "experiment",
    "explain",
    "forecast",
    "score",
    "simulate",
    "what_if",
]

class _Frame(Protocol):
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...

class MiserlyError(ValueError):
    """What was asked for is not understood or cannot be done; the message says what, where, and what to do."""

@final
class Log:
    """A job log, in memory."""

    @staticmethod
    def read(source: str | PathLike[str] | _Frame, **options: Any) -> Log:
        """Reads a log of any form that the program reads, or a data frame with `__arrow_c_stream__`, with the options of reading.

        `columns` may be a dict of fields and columns."""
    @staticmethod
    def from_swf(text: str | bytes, name: str = "log") -> Log:
        """Takes text in the Standard Workload Format."""
    @staticmethod
    def generate(**options: Any) -> Log:
        """Generates a log by a workload model, with the options of `miserly workload generate`."""
    @property
    def name(self) -> str:
        """The name of the log."""
    @property
    def procs(self) -> int | None:
        """The processors of the machine in its header, if any."""
    @property
    def sha256(self) -> str:
        """The SHA-256 of the log as it is stored."""
    @property
    def conversion(self) -> str | None:
        """The counts of the conversion, if the log had another form."""
    def to_swf(self) -> bytes:
        """Returns the text of the log, in the Standard Workload Format."""
    def describe(self, *, by: Sequence[str] | None = None) -> dict[str, Any]:
        """Returns what `miserly workload describe --json` prints; with `by`, also the waits that the log records by group."""
    def __len__(self) -> int: ...
    @staticmethod
    def _restored(text: bytes, name: str, sha256: str, conversion: str | None) -> Log: ...

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
    def estimate(self) -> float:
        """The estimate, at least 1."""
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
    """An order of the queue by a function of a job, or by a formula. The smallest value comes first.

    The function is called once for each job, before the run. With `when="pass"` it is called at each pass for each waiting job,
    with the job and the present time. A lambda that is an expression over `submit`, `procs`, `estimate` and `now - job.submit` with
    `+ - * / abs` becomes a formula, which the run evaluates itself. `backfill` is "easy", "conservative" or "none"."""

    def __new__(
        cls,
        key: Callable[[Job], float] | Callable[[Job, float], float] | str,
        *,
        backfill: str = "easy",
        when: str = "once",
        name: str | None = None,
        uses_numbers: bool = False,
    ) -> JobOrder: ...
    @property
    def key(self) -> Any: ...
    @property
    def backfill(self) -> str: ...
    @property
    def when(self) -> str: ...
    @property
    def name(self) -> str: ...
    @property
    def uses_numbers(self) -> bool: ...
    @property
    def formula(self) -> str | None:
        """The formula that is evaluated in place of the function, if there is one."""
    def __getnewargs_ex__(self) -> tuple[tuple[Any], dict[str, Any]]: ...

@final
class JobTable:
    """Jobs as columns, and as an Arrow stream. Times are in seconds of the log."""

    @property
    def columns(self) -> list[str]:
        """The names of the columns."""
    def __getitem__(self, name: str, /) -> list[Any]: ...
    def to_dict(self) -> dict[str, list[Any]]:
        """Returns the columns as lists."""
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Returns the columns as an Arrow stream (the `PyCapsule` interface)."""
    def __len__(self) -> int: ...
    @staticmethod
    def _restored(names: list[str], kinds: list[str], lists: list[list[Any]]) -> JobTable: ...

@final
class Run:
    """One policy on one log."""

    @property
    def policy(self) -> str: ...
    @property
    def document(self) -> dict[str, Any]:
        """The document of the run, as `miserly simulate --json` prints it."""
    @property
    def json(self) -> str:
        """The text of the document."""
    @property
    def jobs(self) -> JobTable:
        """The finished jobs."""
    def gantt(self, window: tuple[int | str, int | str] | None = None) -> str:
        """Returns the jobs on the processors as SVG, in a window of two times of the log, such as (0, "2d"); else on the day of the
        longest queue."""
    def _repr_html_(self) -> str: ...
    @staticmethod
    def _restored(
        log: Log,
        policy: Any,
        by: list[str] | None,
        details: bool,
        options: Mapping[str, Any] | None,
        json: str,
        jobs: JobTable,
    ) -> Run: ...

@final
class Comparison:
    """Several policies on one log."""

    @property
    def runs(self) -> list[Run]:
        """The runs, in the order of the policies."""
    @property
    def differences(self) -> list[dict[str, Any]]:
        """The paired difference of each pair of runs in each measure, with its 95 % interval."""
    def gantt(self, window: tuple[int | str, int | str] | None = None) -> list[str]:
        """Returns the schedule of each policy as SVG, in one window."""
    def __len__(self) -> int: ...
    def __getitem__(self, policy: str, /) -> Run: ...
    def _repr_html_(self) -> str: ...
    @staticmethod
    def _restored(runs: list[Run]) -> Comparison: ...

@final
class Answer:
    """The answer to a question: a document, a text and a part of a notebook."""

    @property
    def document(self) -> Any:
        """The document, as the program prints it with `--json`."""
    @property
    def json(self) -> str:
        """The text of the document, as the program prints it."""
    @property
    def jobs(self) -> JobTable | None:
        """The jobs, where the answer has some."""
    def _repr_html_(self) -> str: ...
    @staticmethod
    def _restored(json: str, text: str, html: str, jobs: JobTable | None) -> Answer: ...

@final
class Symbol:
    """A value of an expression. It has the operators that mean the same in Python and in a formula, and no others."""

    def __add__(self, other: Symbol | float, /) -> Symbol: ...
    def __radd__(self, other: float, /) -> Symbol: ...
    def __sub__(self, other: Symbol | float, /) -> Symbol: ...
    def __rsub__(self, other: float, /) -> Symbol: ...
    def __mul__(self, other: Symbol | float, /) -> Symbol: ...
    def __rmul__(self, other: float, /) -> Symbol: ...
    def __truediv__(self, other: Symbol | float, /) -> Symbol: ...
    def __rtruediv__(self, other: float, /) -> Symbol: ...
    def __neg__(self) -> Symbol: ...
    def __pos__(self) -> Symbol: ...
    def __abs__(self) -> Symbol: ...
    def __bool__(self) -> bool: ...
    def __hash__(self) -> int: ...

@final
class SymbolicJob:
    """A job whose values are `Symbol`s."""

    @property
    def submit(self) -> Symbol: ...
    @property
    def procs(self) -> Symbol: ...
    @property
    def estimate(self) -> Symbol: ...

@final
class Envs:
    """Environments that step together. `miserly.gym` has them as Gymnasium environments."""

    SHAPE: tuple[int, int]
    def __new__(
        cls,
        log: Log,
        count: int,
        *,
        jobs: int = 256,
        backfill: bool = False,
        observation: str = "zhang20",
        reward: str = "bounded_slowdown",
        window: tuple[int, int] | None = None,
    ) -> Envs: ...
    def reset(self, seed: int, observations: Any, masks: Any) -> None:
        """Begins the episodes of a seed, and fills the arrays: float32 of (count, 128, 8) and uint8 of (count, 128)."""
    def step(self, actions: Any, observations: Any, masks: Any, rewards: Any, ended: Any) -> None:
        """Steps each environment by its action (int64), and fills the arrays, also rewards (float64) and ends (uint8: 1 where the
        episode ended, 2 where the action had no job and nothing changed)."""
    def __len__(self) -> int: ...

def simulate(
    log: Log, policy: str | JobOrder | Policy, *, by: Sequence[str] | None = None, details: bool = False, **options: Any
) -> Run:
    """Runs one policy on a log, with the options of `miserly simulate`."""

def compare(
    log: Log,
    policies: Sequence[str | JobOrder | Policy],
    *,
    by: Sequence[str] | None = None,
    details: bool = False,
    **options: Any,
) -> Comparison:
    """Runs several policies on a log, with the options of `miserly compare`."""

def forecast(log: Log, policy: str, *, draws: int = 20, **options: Any) -> Answer:
    """Forecasts the wait of each job of a log at its submission, and audits the forecasts, with the options of `miserly forecast`."""

def what_if(log: Log, policy: str, new_policy: str | None = None, **options: Any) -> Answer:
    """Returns the difference that a change makes to a log, with the options of `miserly what-if`: a second policy, a machine
    (`new_procs`, `new_machine`, `add_hosts`, `lose`), a `load`, `without_user`, or a further job (`cpus`, `time`)."""

def explain(log: Log, job: int, policy: str | JobOrder | Policy, *, seconds: bool = False, **options: Any) -> Answer:
    """Returns the history of a job under a policy, with the options of `miserly explain`. `seconds` leaves out dates."""

def experiment(
    file: str | PathLike[str],
    *,
    output: str | PathLike[str] | None = None,
    traces: str | PathLike[str] | None = None,
    bars: bool = False,
) -> Answer:
    """Makes the missing runs of an experiment file, writes its folder as `miserly experiment run` does, and returns its page."""

def score(
    policy: str | JobOrder | Policy, *, windows: str = "training", against: str = "easy"
) -> dict[str, Any]:
    """Returns the score of a policy on made windows. `miserly.benchmarks` runs it in a process of its own."""

"""The passes on a cluster: a task per part, merged in a tree, by the scheduler of Dask.

Tasks are functions of their part alone and are tied to no worker, so that the results of a lost worker are computed
again. A lost scheduler, a task that kills one worker after another, and a cluster that is left without any worker each
raise one error: tasks that wait for a worker would wait for ever.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from exanova.errors import EngineError, ExanovaError
from exanova.messages import Parameter
from exanova.packages import package
from exanova.progress import Progress
from exanova.sources.parts import Part
from exanova.sources.reading import Engine, here

T = TypeVar("T")

BRANCHES = 8
"""Results that are merged at once."""

CHECKED_EVERY = 5.0
"""Seconds after which a cluster that returns nothing is asked whether it has workers."""

WITHOUT_WORKERS = 300.0
"""Seconds without any worker after which a cluster is given up; the ``no-workers-timeout`` of Dask may be shorter."""


def engine_of(given: Any) -> Engine:
    """The engine that runs the tasks of a pass: this process for ``None``, else a ``distributed.Client``.

    >>> engine_of(None) is here
    True
    """
    return here if given is None else OnCluster(given)


def is_client(given: Any) -> bool:
    """Whether something is a client of ``dask.distributed``, without importing it.

    >>> is_client("tcp://127.0.0.1:8786")
    False
    """
    return all(hasattr(given, name) for name in ("submit", "cancel", "scheduler_info"))


@dataclass(frozen=True)
class OnCluster:
    """Runs the tasks of a pass on the workers of a client."""

    client: Any

    def each(self, task: Callable[[Part], T | None], parts: Sequence[Part], progress: Progress) -> Iterator[T | None]:
        """The result of the task for every part, in the order in which workers finish."""
        every: list[Any] = []
        try:
            for part in parts:
                self._submit(every, task, part)
            waiting = set(every)
            while waiting:
                finished = self._finished(waiting)
                waiting -= finished
                for future in finished:
                    yield future.result()
                    future.release()
                    progress.step(1)
        except (ExanovaError, GeneratorExit):
            raise
        except Exception as error:
            raise lost(error) from error
        finally:
            self._release(every)

    def __call__(
        self,
        task: Callable[[Part], T | None],
        parts: Sequence[Part],
        merge: Callable[[Sequence[T]], T],
        progress: Progress,
    ) -> T | None:
        """The result of the task for every part, merged."""
        every: list[Any] = []
        try:
            waiting = [self._submit(every, task, part) for part in parts]
            while len(waiting) > 1:
                groups = [waiting[k : k + BRANCHES] for k in range(0, len(waiting), BRANCHES)]
                waiting = [self._submit(every, merge_results, merge, group) for group in groups]
            self._finished(waiting)
            merged: T | None = waiting[0].result()
            progress.step(len(parts))
            return merged
        except ExanovaError:
            raise
        except Exception as error:
            raise lost(error) from error
        finally:
            self._release(every)

    def _finished(self, waiting: Collection[Any]) -> set[Any]:
        """Those of some futures that are finished, as soon as one is."""
        without = None
        while True:
            try:
                with self.client.as_current():
                    wait = package("distributed").wait
                    return set(wait(list(waiting), timeout=CHECKED_EVERY, return_when="FIRST_COMPLETED").done)
            except TimeoutError:
                now = time.monotonic()
                without = None if self.client.scheduler_info()["workers"] else without or now
                if without is not None and now - without >= WITHOUT_WORKERS:
                    raise TimeoutError(f"it has had no worker for {now - without:.0f} seconds") from None

    def _submit(self, every: list[Any], function: Callable[..., Any], *arguments: Any) -> Any:
        every.append(self.client.submit(function, *arguments, pure=False))
        return every[-1]

    def _release(self, futures: list[Any]) -> None:
        """Release these results on the cluster, if it can be reached."""
        try:
            self.client.cancel(futures, force=True)
        except Exception:
            return


def merge_results(merge: Callable[[Sequence[T]], T], several: Sequence[T | None]) -> T | None:
    """Merge results; parts without rows have none."""
    results = [one for one in several if one is not None]
    return merge(results) if results else None


def lost(error: BaseException) -> EngineError:
    """The error of a cluster that did not finish."""
    why = next(iter(str(error).strip().splitlines()), "")[:200].rstrip(".")
    return EngineError(
        f"the cluster did not finish: {type(error).__name__}{f', {why}' if why else ''}",
        remedy=[
            "Check that its scheduler and workers run, have exanova, and can read the files; then fit again, or leave ",
            Parameter("engine"),
            " out to read in this process",
        ],
    )

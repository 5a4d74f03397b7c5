"""Errors of tables whose rows are divided among processes."""

from __future__ import annotations

from collections.abc import Sequence


class RankError(RuntimeError):
    """A rank has refused a call. Every rank raises this error, and no rank has changed its rows.

    Attributes:
        rank: the rank that has refused the call, and the first of them if several ranks have refused it.
        error: the type of the exception of this rank, for example ``"IndexError"``.
    """

    def __init__(self, rank: int, error: str, message: str) -> None:
        super().__init__(rank, error, message)
        self.rank = rank
        self.error = error

    def __str__(self) -> str:
        rank, error, message = self.args
        return f"rank {rank}: {error}: {message}"


class TransportError(RuntimeError):
    """An exchange failed, for example because a process has ended or a timeout has passed.

    Attributes:
        missing: the ranks or parts that have given no sign of life since the failure. The list may be
            empty, if this cannot be found out.
    """

    def __init__(self, stage: str, cause: object, missing: Sequence[int]) -> None:
        super().__init__(stage, str(cause), list(missing))
        self.missing = list(missing)

    def __str__(self) -> str:
        stage, cause, missing = self.args
        named = f"; no sign of life of {', '.join(map(str, missing))}" if missing else ""
        return f"the exchange of {stage} failed: {cause}{named}"

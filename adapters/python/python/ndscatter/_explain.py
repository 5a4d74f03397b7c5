"""Reports of how calls would run."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from . import _native

#: The functions whose calls can be explained.
_FUNCTIONS = (
    "scatter_nd",
    "scatter_update",
    "scatter_elements",
    "tensor_scatter",
    "gather_nd",
    "gather",
    "gather_elements",
    "gather_paged",
)


def explain(
    function: str | Callable[..., Any], /, *arguments: Any, **options: Any
) -> _native.Explanation:
    """Report how a call of a scatter or a gather would run. The call does not run.

    Args:
        function: the function of this package to explain, or its name: `scatter_nd`,
            `scatter_update`, `scatter_elements`, `tensor_scatter`, `gather_nd`, `gather`,
            `gather_elements` or `gather_paged`.
        arguments: the positional arguments of the call.
        options: the keyword arguments of the call.

    Returns:
        An `Explanation`: ``str`` gives a text, and ``to_dict()`` gives the facts by name. The
        report assumes contiguous updates and no other call at the same time. For a call of a plan,
        use the method `explain` of the plan.

    Raises:
        TypeError: the arguments are not those of `function`.
        ValueError: calls of `function` are not explained.

    The other errors are those that the call itself raises.

    >>> import numpy as np, ndscatter
    >>> table = np.zeros((4, 8), np.float32)
    >>> explanation = ndscatter.explain(
    ...     ndscatter.scatter_update, table, [2, 2], 1.0, reduction="add", out=table
    ... )
    >>> print(explanation)  # doctest: +ELLIPSIS
    scatter into float32 [4, 8], reduction add, in place
      tuples     2 (with duplicates), in each of 1 repetition(s)
      ...
    >>> explanation.to_dict()["bytes_written"]
    64
    """
    name = function if isinstance(function, str) else getattr(function, "__name__", "")
    if name not in _FUNCTIONS:
        raise ValueError(f"`explain` explains calls of {', '.join(_FUNCTIONS)}, not of {function!r}")
    bound = inspect.signature(getattr(_native, name)).bind(*arguments, **options)
    bound.apply_defaults()
    given = bound.arguments
    if "slots" in given:
        given["indices"] = given.pop("slots")
    explanation: _native.Explanation = _native._explain(name, **given)
    return explanation

"""Reports of how calls would run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from . import _native

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


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

    A call whose indices, options, shapes or element types are wrong has its own error here too.
    Shared memory of the arrays is not checked.

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
    known = {name: getattr(_native, name) for name in _native._EXPLAINED}
    for name, explained in known.items():
        if function is explained or (isinstance(function, str) and function == name):
            break
    else:
        raise ValueError(f"`explain` explains calls of {', '.join(known)}, not of {function!r}")
    # The import is here, because it takes time and few programs explain calls.
    from inspect import signature

    bound = signature(explained).bind(*arguments, **options)
    bound.apply_defaults()
    given = bound.arguments
    if "slots" in given:
        given["indices"] = given.pop("slots")
    explanation: _native.Explanation = _native._explain(name, **given)
    return explanation

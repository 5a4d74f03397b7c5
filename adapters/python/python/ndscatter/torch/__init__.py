"""ndscatter for PyTorch.

`enable` replaces PyTorch's kernels for CPU tensors of the functions in `FUNCTIONS`: ``scatter_add``,
``index_add``, ``index_put``, ``index`` and others. Programs need no other change. `disable` restores
PyTorch's kernels. `counts` returns how many calls ran on ndscatter's kernels and how many on
PyTorch's, and why.

The kernels are native (C++) if the command ``python -m ndscatter.torch build`` has compiled them for
the installed PyTorch. Otherwise they are Python functions, which cost 1 to 3 us more per call.

`scatter_nd`, `scatter_update`, `scatter_elements`, `gather_nd`, `gather` and
`gather_elements` are operators with exact gradients. These operators need no `enable`.

`write_paged`, `write_all`, `gather_paged` and `move_rows` write to caches in place, without
gradients. They need no `enable` either.
"""

from ._counts import Counts, counts, reset_counts
from ._kernels import FUNCTIONS
from ._operators import (
    gather,
    gather_elements,
    gather_nd,
    scatter_elements,
    scatter_nd,
    scatter_update,
)
from ._switch import SUPPORTED, Enabled, disable, enable, enabled
from ._writes import Write, gather_paged, move_rows, write_all, write_paged

__all__ = [
    "FUNCTIONS",
    "SUPPORTED",
    "Counts",
    "Enabled",
    "Write",
    "counts",
    "disable",
    "enable",
    "enabled",
    "gather",
    "gather_elements",
    "gather_nd",
    "gather_paged",
    "move_rows",
    "reset_counts",
    "scatter_elements",
    "scatter_nd",
    "scatter_update",
    "write_all",
    "write_paged",
]

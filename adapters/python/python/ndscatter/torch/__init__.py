"""ndscatter for PyTorch.

`enable` replaces PyTorch's kernels for CPU tensors of the functions in `FUNCTIONS`: ``scatter_add``,
``index_add``, ``index_put``, ``index`` and others. Programs need no other change. `disable` restores
PyTorch's kernels. `calls` counts the calls that have run on ndscatter's kernels.

The kernels are native (C++) if the command ``python -m ndscatter.torch build`` has compiled them for
the installed PyTorch. Otherwise they are Python functions, which cost 1 to 3 us more per call.

`scatter_nd`, `scatter_update`, `scatter_elements`, `gather_nd`, `gather` and
`gather_elements` are operators with exact gradients. These operators need no `enable`.

`write_paged`, `write_all`, `gather_paged` and `move_rows` write to caches in place, without
gradients. They need no `enable` either.
"""

from ._kernels import FUNCTIONS
from ._operators import (
    gather,
    gather_elements,
    gather_nd,
    scatter_elements,
    scatter_nd,
    scatter_update,
)
from ._switch import SUPPORTED, Enabled, calls, disable, enable, enabled
from ._writes import Write, gather_paged, move_rows, write_all, write_paged

__all__ = [
    "FUNCTIONS",
    "SUPPORTED",
    "Enabled",
    "Write",
    "calls",
    "disable",
    "enable",
    "enabled",
    "gather",
    "gather_elements",
    "gather_nd",
    "gather_paged",
    "move_rows",
    "scatter_elements",
    "scatter_nd",
    "scatter_update",
    "write_all",
    "write_paged",
]

"""ndscatter for PyTorch.

`enable` replaces PyTorch's kernels for CPU tensors of the functions ``scatter``, ``scatter_add``,
``scatter_reduce``, ``index_add``, ``index_copy``, ``index_reduce`` and ``index_put``. On request
(argument ``only``), it also replaces the kernel of the gradient of ``embedding``. Programs need no
other change.
`disable` restores PyTorch's kernels.

`scatter_nd`, `scatter_update`, `scatter_elements`, `gather_nd`, `gather` and
`gather_elements` are operators with exact gradients. These operators need no `enable`.
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
from ._switch import SUPPORTED, Enabled, disable, enable, enabled

__all__ = [
    "FUNCTIONS",
    "SUPPORTED",
    "Enabled",
    "disable",
    "enable",
    "enabled",
    "gather",
    "gather_elements",
    "gather_nd",
    "scatter_elements",
    "scatter_nd",
    "scatter_update",
]

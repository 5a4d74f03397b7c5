"""ndscatter for PyTorch.

`enable` registers the kernels under PyTorch's own functions for CPU tensors: ``scatter``,
``scatter_add``, ``scatter_reduce``, ``index_add``, ``index_copy``, ``index_reduce``,
``index_put`` and the gradient of ``embedding``. Programs do not change. `disable` restores
PyTorch's kernels.

`scatter_nd`, `scatter_update`, `scatter_elements`, `gather_nd`, `gather` and
`gather_elements` are separate operators with exact gradients.
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

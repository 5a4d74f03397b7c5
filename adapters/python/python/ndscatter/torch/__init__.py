"""ndscatter under PyTorch.

`enable` puts the kernels under PyTorch's own functions for tensors on the CPU, and `disable`
gives back what was there: ``scatter``, ``scatter_add``, ``scatter_reduce``, ``index_add``,
``index_copy``, ``index_reduce``, ``index_put`` and the gradient of ``embedding``. Programs do
not change. By name, with exact gradients: `scatter_nd`, `scatter_update`, `scatter_elements`,
`gather_nd`, `gather` and `gather_elements`.
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

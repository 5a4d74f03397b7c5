"""Tables whose rows are divided among the ranks of a process group of PyTorch.

`ShardedTable` stores some rows of a table in each rank. Its methods scatter to and gather from the
whole table. Every rank calls a method with its own indices. The result has the bits of one loop over
the indices of rank 0, then those of rank 1, and so on. The numbers of ranks and threads do not change
the bits.

`TablePlan` keeps what a method computes from its indices, for several calls. `SGD` updates only the
rows that have a gradient.

The package adds no transport: it calls ``torch.distributed`` with tensors on the CPU, for example
with the backend gloo.
"""

from .._shards import RankError, TransportError
from ._plan import TablePlan
from ._sgd import SGD
from ._table import ShardedTable

__all__ = ["SGD", "RankError", "ShardedTable", "TablePlan", "TransportError"]

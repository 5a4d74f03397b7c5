"""Tables whose rows are divided among actors of Ray.

`ShardedTable` stores the rows of a table in several actors, and has the methods of
`ndscatter.distributed.ShardedTable`. A call may have the indices of several senders. The result has the
bits of one loop over the indices of the first sender, then those of the second, and so on. The numbers
of actors and threads do not change the bits.

`group_by` and `histogram` read a dataset of ``ray.data``, which may be larger than memory.
"""

from .._shards import RankError, TransportError
from ._data import group_by, histogram
from ._table import ShardedTable

__all__ = ["RankError", "ShardedTable", "TransportError", "group_by", "histogram"]

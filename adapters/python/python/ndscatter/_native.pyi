# The extension module. The package `ndscatter` re-exports the functions of this module. The stub
# file of the package declares the types of these functions.
from typing import Any

from ndscatter import Explanation as Explanation
from ndscatter import GatherPlan as GatherPlan
from ndscatter import ScatterPlan as ScatterPlan
from ndscatter import ShardedPlan as ShardedPlan
from ndscatter import Sharding as Sharding
from ndscatter import Write as Write
from ndscatter import add_at as add_at
from ndscatter import bincount as bincount
from ndscatter import gather as gather
from ndscatter import gather_elements as gather_elements
from ndscatter import gather_nd as gather_nd
from ndscatter import gather_paged as gather_paged
from ndscatter import instruction_set as instruction_set
from ndscatter import machine as machine
from ndscatter import maximum_at as maximum_at
from ndscatter import minimum_at as minimum_at
from ndscatter import move_rows as move_rows
from ndscatter import multiply_at as multiply_at
from ndscatter import plan_gather as plan_gather
from ndscatter import plan_gather_elements as plan_gather_elements
from ndscatter import plan_gather_nd as plan_gather_nd
from ndscatter import plan_gather_paged as plan_gather_paged
from ndscatter import plan_scatter_elements as plan_scatter_elements
from ndscatter import plan_scatter_nd as plan_scatter_nd
from ndscatter import plan_scatter_paged as plan_scatter_paged
from ndscatter import plan_scatter_update as plan_scatter_update
from ndscatter import plan_sharded as plan_sharded
from ndscatter import plan_tensor_scatter as plan_tensor_scatter
from ndscatter import release_scratch as release_scratch
from ndscatter import scatter_elements as scatter_elements
from ndscatter import scatter_nd as scatter_nd
from ndscatter import scatter_update as scatter_update
from ndscatter import subtract_at as subtract_at
from ndscatter import tensor_scatter as tensor_scatter
from ndscatter import threads as threads
from ndscatter import write_all as write_all
from ndscatter import write_paged as write_paged

__version__: str

# The functions that `explain` knows.
_EXPLAINED: tuple[str, ...]

def _explain(name: str, **arguments: Any) -> Explanation: ...
def _scatter_at(name: str, a: Any, indices: Any, b: Any, threads: int | None) -> bool: ...
def _reduction_name(name: str) -> str: ...
def _onnxruntime_runs() -> dict[str, int]: ...

torch: Any

"""Defines the rows of the benchmark's tables of results. A row has the results of one workload: an
operator with shapes and indices.

The rows for the operator ScatterND use the shapes and index patterns of the workloads of another
benchmark, `benches/compare`. This module contains no arrays and no models.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import prod

from compare import workloads
from compare.workloads import Workload

# Forms of a workload in table C. Table C has the results of workloads whose runs take little time.
# Each form of a workload is measured separately. The forms differ in the buffers of the tensor
# "data" and of the output, and in the work before the scatter.
INTO = "into"  # data is an input, and the output is another buffer
IN_PLACE = "in place"  # data and output are bound to one buffer
AFTER_COPY = "after a copy"  # the graph writes 64 MiB before the scatter

# Minimum number of elements of data at which the option `--quick` replaces a workload of
# ScatterElements or TensorScatter by a workload with smaller shapes.
_LARGE = 1 << 16


@dataclass(frozen=True)
class Elements:
    """A workload of ScatterElements. `data` is the shape of data. `indices` is the shape of the
    indices and of the updates."""

    data: tuple[int, ...]
    indices: tuple[int, ...]
    axis: int
    reduction: str
    pattern: str = "uniform"  # uniform, unique (rank 1 only), or rows: one index per row
    dtype: str = "float32"

    def smaller(self) -> Elements:
        def shorter(shape: tuple[int, ...]) -> tuple[int, ...]:
            return (max(shape[0] // 16, 1), *shape[1:])

        return replace(self, data=shorter(self.data), indices=shorter(self.indices))


@dataclass(frozen=True)
class Cache:
    """A workload of TensorScatter. The operator writes `length` new positions of each sequence into
    a cache. `data` is the shape of the cache: [batch, heads, positions, width]."""

    data: tuple[int, int, int, int]
    length: int
    mode: str = "linear"
    dtype: str = "float32"

    def smaller(self) -> Cache:
        batch, heads, room, width = self.data
        shape = (batch, heads, max(room // 16, 1), width)
        return replace(self, data=shape, length=max(self.length // 16, 1))


@dataclass(frozen=True)
class Row:
    name: str
    what: Workload | Elements | Cache
    constant: bool = False  # whether the indices are a constant of the model
    sets: int = 3  # number of sets of indices, through which the samples rotate; 1 if constant
    small: tuple[str, ...] = ()  # forms of a row of table C (short runs); () in other tables

    @property
    def base(self) -> str:
        """Name of the row without its variant. The variant is the part after the slash. For the
        row "gnn_add/constant", the result is "gnn_add"."""
        return self.name.split("/")[0]

    @property
    def reduction(self) -> str:
        return "none" if isinstance(self.what, Cache) else self.what.reduction


def _nd(name: str, dtype: str | None = None) -> Workload:
    workload = next(one for one in workloads.WORKLOADS if one.name == name)
    return workload if dtype is None else replace(workload, dtype=dtype)


GRAPH = Elements((278_208, 80), (240_693, 80), 0, "add", "rows")
RANDOM_ROWS = Elements((200_000, 64), (131_072, 64), 0, "add")
RANDOM_COLUMNS = Elements((16_384, 1024), (16_384, 256), 1, "add")
ONE_AXIS = Elements((16_777_216,), (4_194_304,), 0, "add")

# fmt: off
_THROUGHPUT = [
    # ScatterND with workloads of the benchmark package `compare`, which compares ndscatter with
    # other runtimes.
    Row("kv_decode", _nd("kv_decode")),
    Row("kv_prefill", _nd("kv_prefill")),
    Row("emb_update", _nd("emb_update")),
    Row("emb_grad_add", _nd("emb_grad_add")),
    Row("gnn_add", _nd("gnn_add")),
    Row("gnn_max", _nd("gnn_max")),
    Row("moe_add", _nd("moe_add")),
    Row("voxel_max", _nd("voxel_max")),
    Row("elem_unique", _nd("elem_unique")),
    Row("elem_random_add", _nd("elem_random_add")),
    Row("histogram_add", _nd("histogram_add")),
    Row("seed_nd", _nd("seed_nd")),
    Row("seed_update", _nd("seed_update")),
    # ScatterND with element types other than `f32`.
    Row("kv_prefill_f16", _nd("kv_prefill", "float16")),
    Row("emb_update_f16", _nd("emb_update", "float16")),
    Row("counts_i64", _nd("counts_i64")),
    Row("counts_i64_many", _nd("counts_i64_many")),
    # TensorScatter into a cache of keys or values.
    Row("cache_decode", Cache((16, 8, 2048, 128), 1)),
    Row("cache_decode_f16", Cache((32, 8, 2048, 128), 1, dtype="float16")),
    Row("cache_prefill", Cache((4, 8, 4096, 128), 2048)),
    Row("cache_circular", Cache((4, 8, 4096, 128), 2048, "circular")),
    # ScatterElements along the only axis, the first axis or the last axis. The last row of this
    # list scatters along the second of four axes.
    Row("elements_1d_set", replace(ONE_AXIS, reduction="none", pattern="unique")),
    Row("elements_1d_add", ONE_AXIS),
    Row("elements_1d_add_i64", replace(ONE_AXIS, dtype="int64")),
    Row("elements_graph_add", GRAPH, sets=1),
    Row("elements_rows_add", RANDOM_ROWS, sets=1),
    Row("elements_columns_add", RANDOM_COLUMNS),
    Row("elements_columns_set", replace(RANDOM_COLUMNS, reduction="none")),
    Row("elements_columns_max", replace(RANDOM_COLUMNS, reduction="max")),
    Row("elements_columns_f16", replace(RANDOM_COLUMNS, reduction="none", dtype="float16")),
    Row("elements_seed_update", Elements((100, 256, 10, 15), (100, 250, 10, 15), 1, "none")),
]

# Names of the rows that are also measured with constant indices, as the variant "constant". In
# practice, the indices of these operations are often constants of the model. Examples are the edges
# of a graph, the positions of a mask, and a fixed layout of elements in memory.
_CONSTANT = [
    "gnn_add", "gnn_max", "moe_add", "elem_unique", "elem_random_add", "histogram_add", "seed_nd",
    "seed_update", "elements_1d_add", "elements_graph_add", "elements_columns_add",
    "elements_columns_set",
]

_FORMS = (INTO, IN_PLACE, AFTER_COPY)
_SMALL = [
    Row("tiny", _nd("tiny"), small=_FORMS),
    Row("tiny/constant", _nd("tiny"), constant=True, sets=1, small=(INTO, IN_PLACE)),
    Row("small_add", _nd("small_add"), small=_FORMS),
    Row("small_add/constant", _nd("small_add"), constant=True, sets=1, small=(INTO, IN_PLACE)),
    Row("tiny_elements", Elements((8,), (4,), 0, "add"), small=_FORMS),
    Row("small_elements", Elements((64, 64), (16, 64), 0, "add"), small=_FORMS),
    Row("tiny_cache", Cache((1, 2, 8, 16), 1), small=_FORMS),
    Row("small_cache", Cache((2, 4, 64, 64), 1), small=_FORMS),
    Row("kv_decode/call", _nd("kv_decode"), small=(IN_PLACE,)),
    Row("cache_decode/call", Cache((16, 8, 2048, 128), 1), small=(IN_PLACE,)),
    Row("seed_nd/call", _nd("seed_nd"), small=(IN_PLACE,)),
]
# fmt: on


def _all() -> list[Row]:
    rows = []
    for row in _THROUGHPUT:
        rows.append(row)
        if row.name in _CONSTANT:
            rows.append(replace(row, name=f"{row.name}/constant", constant=True, sets=1))
    return rows + _SMALL


def _smaller(row: Row) -> Row:
    """Returns the row for the option `--quick`, which tests the benchmark itself. If the workload
    of the row is large, its data and indices are shortened to about a sixteenth. A row with a small
    workload is returned unchanged."""
    if not isinstance(row.what, Workload):
        return row if prod(row.what.data) < _LARGE else replace(row, what=row.what.smaller())
    small = workloads.chosen([row.what.name], quick=True)[0]
    return replace(row, what=replace(small, dtype=row.what.dtype))


def names() -> list[str]:
    return [row.name for row in _all()]


def chosen(only: list[str], quick: bool) -> list[Row]:
    """Returns the rows with the names in `only`, or all rows if `only` is empty. A name without a
    variant selects the row and all its variants. `quick` shortens the shapes of large workloads."""
    rows = _all()
    known = {row.name for row in rows} | {row.base for row in rows}
    if unknown := set(only) - known:
        raise SystemExit(f"unknown rows {', '.join(sorted(unknown))}; --list prints all names")
    wanted = [row for row in rows if not only or {row.name, row.base} & set(only)]
    return [_smaller(row) for row in wanted] if quick else wanted

"""Defines the workloads: those of `benches/common/workloads.rs`, then short rows and integer counts.

Data is f32 unless a workload names another type. Indices are i64. Knows shapes and distributions of
indices, and no arrays. Needs nothing but Python itself.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import prod


@dataclass(frozen=True)
class Workload:
    name: str
    data: tuple[int, ...]
    indices: tuple[int, ...]
    reduction: str  # none, add or max
    pattern: str  # unique, uniform, zipf, sorted, even or stretches
    axis: int | None = None  # axis of ScatterUpdate; None for ScatterND
    starts_lowest: bool = False  # whether data is -inf, so that every update exceeds it
    dtype: str = "float32"  # numpy's name of the type; updates of integers are ones

    @property
    def indexed_axes(self) -> slice:
        """Axes of `data` that a tuple addresses."""
        if self.axis is None:
            return slice(0, self.indices[-1])
        return slice(self.axis, self.axis + 1)

    @property
    def indexed_sizes(self) -> tuple[int, ...]:
        return self.data[self.indexed_axes]

    @property
    def tuple_shape(self) -> tuple[int, ...]:
        return self.indices[:-1] if self.axis is None else self.indices

    @property
    def tuples(self) -> int:
        return prod(self.tuple_shape)

    @property
    def repetitions(self) -> int:
        """Number of times that every tuple is applied."""
        return prod(self.data[: self.indexed_axes.start])

    @property
    def slices(self) -> int:
        """Number of destinations of one repetition."""
        return prod(self.indexed_sizes)

    @property
    def window_shape(self) -> tuple[int, ...]:
        return self.data[self.indexed_axes.stop :]

    @property
    def window(self) -> int:
        """Elements of a window."""
        return prod(self.window_shape)

    @property
    def updates(self) -> tuple[int, ...]:
        return self.data[: self.indexed_axes.start] + self.tuple_shape + self.window_shape

    @property
    def repeats(self) -> bool:
        """Whether two tuples may have one destination."""
        return self.pattern in ("uniform", "zipf", "sorted", "even")


def _smaller(workload: Workload) -> Workload:
    """Divides the numbers of destinations and tuples by 16, to test the harness."""

    def divided(shape: tuple[int, ...], axis: int) -> tuple[int, ...]:
        return shape[:axis] + (max(shape[axis] // 16, 1),) + shape[axis + 1 :]

    data, indices = workload.data, workload.indices
    if prod(data) >= 1 << 16:
        longest = data.index(max(data)) if workload.axis is None else 0
        data = divided(data, longest)
    if workload.tuples >= 1 << 12:
        tuples = workload.tuple_shape
        indices = divided(indices, tuples.index(max(tuples)))
    return replace(workload, data=data, indices=indices)


# fmt: off
WORKLOADS = [
    # Overhead of a call, and a small call with some work.
    Workload("tiny", (8,), (4, 1), "none", "unique"),
    Workload("small_add", (256, 64), (128, 1), "add", "uniform"),
    # KV cache of a language model: one token per sequence, then one prompt per sequence.
    Workload("kv_decode", (16, 2048, 1024), (16, 2), "none", "stretches"),
    Workload("kv_prefill", (4, 4096, 1024), (4, 2048, 2), "none", "stretches"),
    # An embedding table, and its gradient.
    Workload("emb_update", (500_000, 64), (65_536, 1), "none", "unique"),
    Workload("emb_grad_add", (200_000, 64), (262_144, 1), "add", "zipf"),
    # Messages along the edges of a graph.
    Workload("gnn_add", (169_343, 64), (1_166_243, 1), "add", "uniform"),
    Workload("gnn_max", (169_343, 64), (1_166_243, 1), "max", "uniform"),
    # A mixture of experts: four updates of every row.
    Workload("moe_add", (2048, 2048), (8192, 1), "add", "even"),
    # Points of a cloud, combined into voxels.
    Workload("voxel_max", (100_000, 64), (400_000, 1), "max", "uniform", starts_lowest=True),
    # Single elements.
    Workload("elem_unique", (16_777_216,), (4_194_304, 1), "none", "unique"),
    Workload("elem_random_add", (16_777_216,), (4_194_304, 1), "add", "uniform"),
    Workload("histogram_add", (1024,), (4_194_304, 1), "add", "uniform"),
    # The examples in OpenVINO's specification of the operators. The second has a tenth of the
    # repetitions.
    Workload("seed_nd", (1000, 256, 10, 15), (25, 125, 3), "none", "unique"),
    Workload("seed_update", (100, 256, 10, 15), (125, 20), "none", "uniform", axis=1),
    # Rows of 8 to 256 bytes in tables of 1 and 16 MiB, as in graphs, point clouds and small
    # embeddings.
    Workload("row2_add", (131_072, 2), (2_097_152, 1), "add", "uniform"),
    Workload("row8_add", (32_768, 8), (1_048_576, 1), "add", "uniform"),
    Workload("row8_add_sorted", (524_288, 8), (1_048_576, 1), "add", "sorted"),
    Workload("row16_max", (16_384, 16), (1_048_576, 1), "max", "uniform", starts_lowest=True),
    Workload("row24_add", (174_763, 24), (600_000, 1), "add", "uniform"),
    Workload("row32_max_hot", (131_072, 32), (400_000, 1), "max", "zipf", starts_lowest=True),
    Workload("row64_add", (65_536, 64), (262_144, 1), "add", "uniform"),
    Workload("row16_set", (262_144, 16), (200_000, 1), "none", "unique"),
    Workload("row4_set_sorted", (65_536, 4), (1_048_576, 1), "none", "sorted"),
    Workload("row32_set_hot", (131_072, 32), (400_000, 1), "none", "zipf"),
    # Counts, in types whose partial results merge to the bits of the sequential loop.
    Workload("counts_u8", (256,), (4_194_304, 1), "add", "uniform", dtype="uint8"),
    Workload("counts_u32", (1000,), (4_194_304, 1), "add", "uniform", dtype="uint32"),
    Workload("counts_u32_1mi", (65_536,), (1_048_576, 1), "add", "uniform", dtype="uint32"),
    Workload("counts_i64", (1000,), (4_194_304, 1), "add", "uniform", dtype="int64"),
    Workload("counts_i64_many", (65_536,), (4_194_304, 1), "add", "uniform", dtype="int64"),
]
# fmt: on


# The workloads of `--brief`, and what they stand for.
BRIEF = {
    "tiny": "4 elements of 8: the cost of a call",
    "small_add": "128 rows of 64 added: a small call",
    "kv_prefill": "4 prompts of 2048 tokens written into a cache",
    "emb_update": "65,536 rows of an embedding table replaced",
    "emb_grad_add": "the gradient of an embedding table",
    "moe_add": "a mixture of experts: 8192 rows of 2048 added",
    "elem_unique": "4 Mi single elements replaced",
    "histogram_add": "4 Mi numbers counted in 1024 bins",
}


@dataclass(frozen=True)
class CacheCase:
    """A write of tokens into `caches` paged caches, or moves of rows in `caches` caches."""

    tokens: int
    format: str  # of the cache, or MOVED
    order: str = "rows"  # of the cache in memory: [blocks, rows, heads, dim] or with heads first
    caches: int = 1

    @property
    def name(self) -> str:
        return f"{self.format}_{self.tokens}_{self.order}" + (f"_x{self.caches}" if self.caches > 1 else "")


MOVED = "compaction"
CACHE_CASES = [
    CacheCase(tokens, *rest)
    for tokens in (64, 4096)
    for rest in [
        *((kind, order) for kind in ("bf16", "f8e4m3fn", "i8") for order in ("rows", "heads")),
        ("f8e4m3fn", "rows", 2),
    ]
] + [CacheCase(moves, MOVED, caches=16) for moves in (64, 4096)]


def chosen(only: list[str] | None, quick: bool) -> list[Workload]:
    wanted = [workload for workload in WORKLOADS if not only or workload.name in only]
    return [_smaller(workload) for workload in wanted] if quick else wanted

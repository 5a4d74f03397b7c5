"""The workloads, one a line: the twin of `benches/common/workloads.rs`.

All are f32 data with i64 indices. Knows shapes and patterns, no arrays.
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
    pattern: str  # unique, uniform, zipf, even or stretches
    axis: int | None = None  # of ScatterUpdate; None is ScatterND
    starts_lowest: bool = False  # data that every update exceeds

    @property
    def indexed_axes(self) -> slice:
        """The axes of `data` that a tuple addresses."""
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
        """How often every tuple is applied."""
        return prod(self.data[: self.indexed_axes.start])

    @property
    def slices(self) -> int:
        """Destinations of one repetition."""
        return prod(self.indexed_sizes)

    @property
    def window_shape(self) -> tuple[int, ...]:
        return self.data[self.indexed_axes.stop :]

    @property
    def window(self) -> int:
        """Elements at one destination."""
        return prod(self.window_shape)

    @property
    def updates(self) -> tuple[int, ...]:
        return self.data[: self.indexed_axes.start] + self.tuple_shape + self.window_shape

    @property
    def repeats(self) -> bool:
        """Whether two tuples may have one destination."""
        return self.pattern in ("uniform", "zipf", "even")


def _smaller(workload: Workload) -> Workload:
    """Sixteen times fewer destinations and tuples, for trying the harness."""

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
    # Call overhead; the same with some work.
    Workload("tiny", (8,), (4, 1), "none", "unique"),
    Workload("small_add", (256, 64), (128, 1), "add", "uniform"),
    # A language model's cache: one token a sequence, a prompt a sequence.
    Workload("kv_decode", (16, 2048, 1024), (16, 2), "none", "stretches"),
    Workload("kv_prefill", (4, 4096, 1024), (4, 2048, 2), "none", "stretches"),
    # An embedding table, and its gradient.
    Workload("emb_update", (500_000, 64), (65_536, 1), "none", "unique"),
    Workload("emb_grad_add", (200_000, 64), (262_144, 1), "add", "zipf"),
    # Messages along the edges of a graph.
    Workload("gnn_add", (169_343, 64), (1_166_243, 1), "add", "uniform"),
    Workload("gnn_max", (169_343, 64), (1_166_243, 1), "max", "uniform"),
    # A mixture of experts: four contributions to every row.
    Workload("moe_add", (2048, 2048), (8192, 1), "add", "even"),
    # The points of a cloud, into voxels.
    Workload("voxel_max", (100_000, 64), (400_000, 1), "max", "uniform", starts_lowest=True),
    # Single elements.
    Workload("elem_unique", (16_777_216,), (4_194_304, 1), "none", "unique"),
    Workload("elem_random_add", (16_777_216,), (4_194_304, 1), "add", "uniform"),
    Workload("histogram_add", (1024,), (4_194_304, 1), "add", "uniform"),
    # The examples on the pages of the operators, the second with a tenth of
    # the repetitions.
    Workload("seed_nd", (1000, 256, 10, 15), (25, 125, 3), "none", "unique"),
    Workload("seed_update", (100, 256, 10, 15), (125, 20), "none", "uniform", axis=1),
]
# fmt: on


def chosen(only: list[str] | None, quick: bool) -> list[Workload]:
    unknown = set(only or ()) - {workload.name for workload in WORKLOADS}
    if unknown:
        raise SystemExit(f"no workload is called {', '.join(sorted(unknown))}")
    wanted = [workload for workload in WORKLOADS if not only or workload.name in only]
    return [_smaller(workload) for workload in wanted] if quick else wanted

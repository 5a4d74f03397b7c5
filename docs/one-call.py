"""Draws docs/one-call.svg: the path of one call through the modules of src/.

    python3 docs/one-call.py            writes the picture
    python3 docs/one-call.py --check    fails if the picture differs from this script

MODULES and ARROWS have the content of the picture. The rest of the file places it on a grid.
A module whose path is not in src/ is an error.
"""

from html import escape
from pathlib import Path
from sys import argv, exit
from typing import NamedTuple

DOCS = Path(__file__).resolve().parent


class Module(NamedTuple):
    name: str
    # The path in src/. Empty outside of the crate.
    path: str
    does: tuple[str, ...]
    column: int
    row: int


class Arrow(NamedTuple):
    start: str
    end: str
    # The value that is passed.
    label: str


LEFT, MAIN, RIGHT = range(3)

MODULES = [
    Module("caller", "", ("data, indices, updates, output",), MAIN, 0),
    Module("operand", "operand", ("A constructor checks once that", "memory and layout agree."), MAIN, 1),
    Module("ops", "ops", ("The shape rule of the operator,", "its options and its methods."), MAIN, 2),
    Module("run", "run.rs", ("The last checks before the first write,", "and the route of the call."), MAIN, 3),
    Module("plan", "plan", ("Bounds, negatives, strides: every tuple", "gets the number of its destination."), MAIN, 4),
    Module("choice", "exec/choice.rs", ("Orders schedules by their cost,", "from sizes, facts and a sample."), MAIN, 5),
    Module("schedule", "exec/schedule", ("Prepares what it needs, and divides", "the transfer into disjoint tiles."), MAIN, 6),
    Module("pool", "pool.rs", ("rayon, the calling thread, or a host:", "runs each task exactly once."), MAIN, 7),
    Module("transfer", "exec/transfer", ("Visits the windows of a tile", "in the order of tuples."), MAIN, 8),
    Module("kernel", "kernel", ("Moves bytes; reduces runs, rows,", "single elements, groups."), MAIN, 9),
    Module("table", "kernel/table.rs", ("The loops of each", "dtype and reduction."), LEFT, 3),
    Module("explain", "run/explain.rs", ("Reports the route, the", "schedule and the reasons."), LEFT, 5),
    Module("direct", "exec/small_transfer.rs", ("Small calls:", "numbers on the stack,", "no loops, no schedule."), RIGHT, 5),
]

ARROWS = [
    Arrow("caller", "operand", "slices, bytes, arrays"),
    Arrow("operand", "ops", "views"),
    Arrow("ops", "run", "Form, Operands"),
    Arrow("run", "plan", "Form, Integers, Layout"),
    Arrow("plan", "choice", "Transfer: IndexPlan, Geometry, Operation"),
    Arrow("choice", "schedule", "Candidates"),
    Arrow("schedule", "pool", "Division: numbered tasks"),
    Arrow("pool", "transfer", "Tile"),
    Arrow("transfer", "kernel", "lists of jobs, rows or offsets"),
    Arrow("run", "table", "requests loops"),
    Arrow("explain", "choice", "Workload"),
    Arrow("run", "direct", "few tuples"),
    Arrow("direct", "kernel", "rows or offsets"),
]

WIDTHS = (190, 330, 190)
GAP, MARGIN = 100, 20
HEIGHT, PITCH = 76, 112
LINE = 16


def left(column: int) -> int:
    return MARGIN + sum(WIDTHS[:column]) + GAP * column


def box(module: Module) -> tuple[int, int, int, int]:
    """Left, top, right, bottom."""
    x, y = left(module.column), MARGIN + module.row * PITCH
    return x, y, x + WIDTHS[module.column], y + HEIGHT


def text(x: float, y: float, words: str, kind: str) -> str:
    return f'<text x="{x:g}" y="{y:g}" class="{kind}">{escape(words)}</text>'


def draw_module(module: Module) -> list[str]:
    x0, y0, x1, y1 = box(module)
    middle = (x0 + x1) / 2
    lines = [(module.name, "name"), *((line, "does") for line in module.does)]
    y = (y0 + y1) / 2 - LINE * (len(lines) - 1) / 2 + 5
    kind = "module" if module.path else "outside"
    return [
        f'<rect x="{x0}" y="{y0}" width="{x1 - x0}" height="{y1 - y0}" rx="6" class="{kind}"/>',
        *(text(middle, y + LINE * i, words, kind) for i, (words, kind) in enumerate(lines)),
    ]


def draw_arrow(arrow: Arrow, modules: dict[str, Module]) -> list[str]:
    start, end = modules[arrow.start], modules[arrow.end]
    a, b = box(start), box(end)
    center = lambda edges: ((edges[0] + edges[2]) / 2, (edges[1] + edges[3]) / 2)
    (ax, ay), (bx, by) = center(a), center(b)
    if start.column == end.column:
        points = [(ax, a[3]), (bx, b[1])]
        label = text(ax + 8, (a[3] + b[1]) / 2 + 4, arrow.label, "right-of")
    elif start.row == end.row:
        x0, x1 = (a[0], b[2]) if bx < ax else (a[2], b[0])
        points = [(x0, ay), (x1, by)]
        label = text((x0 + x1) / 2, ay - 6, arrow.label, "over")
    elif start.column == MAIN:
        points = [(a[2], ay), (bx, ay), (bx, b[1])]
        label = text((a[2] + bx) / 2, ay - 6, arrow.label, "over")
    else:
        points = [(ax, a[3]), (ax, by), (b[2], by)]
        label = text((ax + b[2]) / 2, by - 6, arrow.label, "over")
    points_text = " ".join(f"{x:g},{y:g}" for x, y in points)
    return [f'<polyline points="{points_text}" class="path"/>', label]


def draw() -> str:
    modules = {module.name: module for module in MODULES}
    for module in MODULES:
        assert (DOCS.parent / "src" / module.path).exists(), f"{module.path} is not in src/"
    width = left(RIGHT) + WIDTHS[RIGHT] + MARGIN
    height = MARGIN * 2 + max(module.row for module in MODULES) * PITCH + HEIGHT
    parts = [part for arrow in ARROWS for part in draw_arrow(arrow, modules)]
    parts += [part for module in MODULES for part in draw_module(module)]
    return "\n".join([
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}">',
        "<title>The path of one call</title>",
        "<style>",
        "text { font: 13px sans-serif; text-anchor: middle; fill: #222 }",
        ".name { font-weight: bold; font-size: 14px } .does { fill: #444 }",
        ".over, .right-of { fill: #14508c; font-size: 12px } .right-of { text-anchor: start }",
        ".module { fill: #f2f5f9; stroke: #5a7089 } .outside { fill: #fff; stroke: #999; stroke-dasharray: 4 3 }",
        ".path { fill: none; stroke: #5a7089; stroke-width: 1.5; marker-end: url(#tip) }",
        "</style>",
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
        '<path d="M0,0 L8,4 L0,8 z" fill="#5a7089"/></marker></defs>',
        f'<rect width="{width}" height="{height}" fill="#fff"/>',
        *parts,
        "</svg>",
        "",
    ])


if __name__ == "__main__":
    picture = DOCS / "one-call.svg"
    if argv[1:] == ["--check"]:
        if picture.read_text() != draw():
            exit("docs/one-call.svg differs from docs/one-call.py; run docs/one-call.py")
    else:
        picture.write_text(draw())

"""Functions that every rank of a test of `ndscatter.distributed` runs."""

import datetime
import os

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as checkpoint

import ndscatter
from ndscatter.distributed import SGD, RankError, ShardedTable, TransportError, _exchange

DTYPES = (torch.float32, torch.bfloat16, torch.int64)
REDUCTIONS = ("add", "sub", "mul", "min", "max", "mean", "none")
# Numbers of ranks of the groups in which the random cases run.
GROUPS = (1, 2, 3, 4, 7)


def values(generator, shape, dtype):
    if dtype == torch.int64:
        return torch.randint(-9, 10, shape, generator=generator)
    return (torch.randn(shape, generator=generator) * 8).to(dtype)


def rows_of(generator, kind, rows, count):
    """Return indices: uniform, with a Zipf distribution, or all equal."""
    if kind == "uniform":
        return torch.randint(-rows, rows, (count,), generator=generator)
    if kind == "zipf":
        uniform = torch.rand(count, generator=generator)
        return (rows ** uniform - 1).long().clamp(0, rows - 1)
    return torch.full((count,), int(torch.randint(0, rows, (1,), generator=generator)))


def sharding_for(kind, ranks, rows):
    if kind == "starts":
        return ndscatter.Sharding.starts([rows * part * part // (ranks * ranks) for part in range(ranks)])
    return getattr(ndscatter.Sharding, kind)(ranks)


def combines(reduction, dtype):
    """Whether duplicates of one sender may be combined without a change of the bits."""
    return reduction in ("min", "max", "none") or (dtype == torch.int64 and reduction != "mean")


def whole_table(table):
    """Return the rows of all ranks, in the order of the rows."""
    parts = [None] * table._exchange.ranks
    dist.all_gather_object(parts, table.weight.detach(), group=table._exchange.group)
    whole = torch.empty(table.rows, table.width, dtype=table.weight.dtype)
    for part, rows in enumerate(parts):
        for local in range(len(rows)):
            whole[table.sharding.row(part, local, table.rows)] = rows[local]
    return whole


def by_hand(table, indices, updates, reduction):
    """The loop over all indices, for reductions whose steps torch computes with one rounding."""
    steps = {
        "add": torch.add, "sub": torch.sub, "mul": torch.mul, "none": lambda row, update: update,
    }
    if reduction not in steps:
        return ndscatter.scatter_update(table, indices, updates, reduction=reduction)
    table = table.clone()
    for index, update in zip(indices, updates, strict=True):
        table[index] = steps[reduction](table[index], update)
    return table


def random_case(seed, group, most_rows, most_tuples):
    """Compare one call of every verb with one process. Return a description of a difference."""
    generator = torch.Generator().manual_seed(seed)

    def pick(*choices):
        return choices[int(torch.randint(0, len(choices), (1,), generator=generator))]

    ranks, rank = dist.get_world_size(group), dist.get_rank(group)
    rows, width = 1 + seed % most_rows, pick(0, 1, 3, 8, 17)
    dtype, reduction = pick(*DTYPES), pick(*REDUCTIONS)
    kind, combine = pick("uniform", "zipf", "equal"), pick(False, True)
    sharding = sharding_for(pick("blocks", "modulo", "starts"), ranks, rows)
    piece_bytes = pick(1, 64, 1 << 20)
    combine = combine and combines(reduction, dtype)
    start = values(generator, (rows, width), dtype)
    counts = [int(torch.randint(0, most_tuples + 1, (1,), generator=generator)) for _ in range(ranks)]
    indices = [rows_of(generator, kind, rows, count) for count in counts]
    updates = [values(generator, (count, width), dtype) for count in counts]

    table = ShardedTable(rows, width, dtype, group, sharding=sharding, piece_bytes=piece_bytes)
    table.index_copy_(*((torch.arange(rows), start) if rank == 0 else (torch.arange(0), start[:0])))
    plan = table.plan(indices[rank], combine=combine, reduce=reduction) if pick(False, True) else indices[rank]
    if reduction == "add":
        table.scatter_add_(plan, updates[rank], combine=combine)
    elif reduction == "none":
        table.index_copy_(plan, updates[rank], combine=combine)
    else:
        table.scatter_reduce_(plan, updates[rank], reduction, combine=combine)
    expected = by_hand(start, torch.cat(indices), torch.cat(updates), reduction)
    mine = [row for row in range(rows) if sharding.owner(row, rows)[0] == rank]
    described = f"{seed}: {reduction} of {dtype}, {rows} rows of {width}, {sharding}, {kind}, combine {combine}"
    if not same(table.weight, expected[mine]):
        return f"{described}: {table.weight} is not {expected[mine]}"
    read = table.gather(indices[rank], combine=pick(False, True))
    if not same(read, expected[indices[rank]]):
        return f"{described}: gather {read} is not {expected[indices[rank]]}"
    return None


def names_of_reductions():
    """Every name of a reduction gives the same result, also if updates are combined."""
    names = {"sub": ["subtract"], "mul": ["prod", "multiply"], "max": ["amax", "maximum"], "none": ["update"]}
    rank = dist.get_rank()
    for first, others in names.items():
        results = []
        for name in [first, *others]:
            for is_kept in (False, True):
                table = ShardedTable(6, 2, torch.int64)
                table.scatter_add_(torch.arange(6), torch.full((6, 2), 5))
                indices = torch.tensor([1, 4, 1, rank])
                updates = torch.arange(8).reshape(4, 2) + 2
                plan = table.plan(indices, combine=True, reduce=name) if is_kept else indices
                table.scatter_reduce_(plan, updates, first if is_kept else name, combine=True)
                results.append(whole_table(table))
        assert all(torch.equal(result, results[0]) for result in results), first
    plan = table.plan(torch.tensor([1, 1]), combine=True, reduce="update")
    assert torch.equal(table.gather(plan), whole_table(table)[[1, 1]])
    # The combined updates of a difference are sums. For booleans, these are not the inverse of differences.
    flags = ShardedTable(6, 2, torch.bool)
    try:
        flags.scatter_reduce_(torch.tensor([1, 1]), torch.ones(2, 2, dtype=torch.bool), "sub", combine=True)
        return False
    except RankError as error:
        assert error.error == "ValueError", error
    flags.scatter_reduce_(torch.tensor([1, 1, 2]), torch.ones(3, 2, dtype=torch.bool), "sub")
    odd = torch.tensor([r == 2 and dist.get_world_size() % 2 == 1 for r in range(6)])
    assert torch.equal(whole_table(flags), odd[:, None].expand(6, 2))
    combined = table.plan(torch.tensor([1, 1]), combine=True)
    try:
        table.embedding(combined)
    except ValueError as error:
        return "combine" in str(error)
    return False


def same(a, b):
    """Whether the bits of two tensors are equal."""
    kind = {8: torch.int64, 4: torch.int32, 2: torch.int16}[a.element_size()]
    return torch.equal(a.detach().contiguous().view(kind), b.contiguous().view(kind))


def random_cases(seeds, most_rows, most_tuples):
    world = dist.get_rank()
    groups = {ranks: dist.new_group(list(range(ranks))) for ranks in GROUPS}
    for seed in seeds:
        ranks = GROUPS[seed % len(GROUPS)]
        if world < ranks:
            difference = random_case(seed, groups[ranks], most_rows, most_tuples)
            if difference:
                return difference
    dist.barrier()
    return None


def refused_calls():
    """Each wrong call of one rank is an error of all ranks. The table can be used afterwards."""
    rank = dist.get_rank()
    table = ShardedTable(10, 4)
    table.scatter_add_(torch.arange(10) if rank == 0 else torch.arange(0), torch.ones(10 if rank == 0 else 0, 4))
    good = torch.tensor([1, 9]), torch.ones(2, 4)
    plan = table.plan(good[0])
    combined = table.plan(good[0], combine=True, reduce="amax")
    wrong = {
        "IndexError": lambda: table.scatter_add_(torch.tensor([0, 10]), good[1]),
        "TypeError": lambda: table.scatter_add_(good[0], good[1].double()),
        "ValueError": lambda: table.scatter_add_(good[0], torch.ones(3, 4)),
    }
    right = {
        "IndexError": lambda: table.scatter_add_(*good),
        "TypeError": lambda: table.scatter_add_(*good),
        "ValueError": lambda: table.scatter_add_(*good),
    }
    found = []
    for name in wrong:
        try:
            (wrong if rank == 1 else right)[name]()
        except RankError as error:
            found.append((error.rank, error.error, str(error)))
    for call in (
        lambda: table.scatter_reduce_(*good, "no such reduction"),
        lambda: table.gather(torch.tensor([-11])),
        lambda: table.scatter_add_(plan, torch.ones(1, 4)),
        lambda: table.scatter_add_(combined, good[1]),
    ):
        try:
            call()
        except RankError as error:
            found.append((error.rank, error.error, str(error)))
    assert torch.equal(whole_table(table), torch.ones(10, 4)), "no rank has written"
    table.scatter_add_(plan, good[1])
    expected = torch.ones(10, 4)
    expected[[1, 9]] += dist.get_world_size()
    assert torch.equal(whole_table(table), expected), "the table can be used"
    return found


def ending_rank(stage, piece_bytes):
    """Rank 1 ends before collective call number `stage` of a scatter. Return what the others see."""
    rank = dist.get_rank()
    table = ShardedTable(8, 4, piece_bytes=piece_bytes)
    done, original = 0, _exchange.Exchange._call

    def call(self, *arguments):
        nonlocal done
        if rank == 1 and done == stage:
            os._exit(1)
        done += 1
        return original(self, *arguments)

    _exchange.Exchange._call = call
    _exchange._PATIENCE = datetime.timedelta(seconds=1)
    try:
        table.scatter_add_(torch.arange(8), torch.ones(8, 4))
    except TransportError as error:
        return error.missing, table.is_torn, bool(table.weight.any())
    return None


def late_rank():
    """Rank 1 comes later than the timeout of the group allows."""
    import time

    table = ShardedTable(8, 4)
    if dist.get_rank() == 1:
        time.sleep(6)
    try:
        table.scatter_add_(torch.arange(8), torch.ones(8, 4))
    except TransportError:
        return bool(table.weight.any())
    return None


def save(folder, kind):
    table = ShardedTable(11, 3, sharding=sharding_for(kind, dist.get_world_size(), 11))
    rows = torch.arange(11) if dist.get_rank() == 0 else torch.arange(0)
    table.index_copy_(rows, (rows[:, None] * 10 + torch.arange(3)).float())
    checkpoint.save({"table": table.state_dict()}, checkpoint_id=folder)


def load(folder, kind):
    table = ShardedTable(11, 3, sharding=sharding_for(kind, dist.get_world_size(), 11))
    state = {"table": table.state_dict()}
    checkpoint.load(state, checkpoint_id=folder)
    table.load_state_dict(state["table"])
    return whole_table(table)


def train_in_groups(most):
    """Train in groups of 1 to `most` ranks. Return the tables of each kind of training."""
    tables = {}
    for ranks in range(1, most + 1):
        group = dist.new_group(list(range(ranks)))
        if dist.get_rank() < ranks:
            for sparse in (False, True):
                for bags in (False, True):
                    tables.setdefault((sparse, bags), []).append(train(group, sparse, bags))
    dist.barrier()
    return tables


def train(group, sparse, bags):
    """Train some steps. The ranks of the group divide each batch."""
    ranks, rank = dist.get_world_size(group), dist.get_rank(group)
    table = ShardedTable(50, 5, group=group, sparse_gradient=sparse)
    optimizer = SGD(table.parameters(), lr=0.1)
    generator = torch.Generator().manual_seed(3)
    for _ in range(4):
        batch = torch.randint(0, 50, (24, 4), generator=generator)
        target = torch.randn(24, 5, generator=generator)
        mine = slice(24 * rank // ranks, 24 * (rank + 1) // ranks)
        optimizer.zero_grad()
        if bags:
            output = table.embedding_bag(batch[mine], mode="sum")
        else:
            output = table.embedding(batch[mine]).sum(1)
        ((output - target[mine]) ** 2).sum().backward()
        optimizer.step()
    return whole_table(table)


def train_in_little_memory(rows, width, spare):
    """Train with a limit on the address space that the whole table does not fit."""
    import resource

    with open("/proc/self/statm", encoding="ascii") as file:
        used = int(file.read().split()[0]) * resource.getpagesize()
    size = rows * width * 4
    limit = used + size // 2 + spare
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    try:
        torch.empty(rows, width)
        return "the whole table fits"
    except RuntimeError:
        pass
    table = ShardedTable(rows, width, sparse_gradient=True)
    optimizer = SGD(table.parameters(), lr=1.0)
    indices = torch.arange(dist.get_rank(), rows, rows // 1000)
    for _ in range(3):
        optimizer.zero_grad()
        (table.embedding(indices) - 1).sum().backward()
        optimizer.step()
    read = table.gather(indices)
    return float(read.min()), float(read.max())

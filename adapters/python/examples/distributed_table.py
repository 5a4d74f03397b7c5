"""Trains an embedding table that is divided among processes, and prints a checksum of its bits.

    torchrun --nproc_per_node 4 distributed_table.py
    python distributed_table.py                # one process: the same checksum

The table learns vectors of items: items that occur together get similar vectors. Each process reads its
part of each batch.
"""

import argparse
import os
import time

import torch
import torch.distributed as dist

from ndscatter.distributed import SGD, ShardedTable

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--rows", type=int, default=200_000, help="number of items")
parser.add_argument("--width", type=int, default=32, help="elements of a vector")
parser.add_argument("--steps", type=int, default=20)
parser.add_argument("--batch", type=int, default=8192, help="pairs of items in each step, of all processes")
options = parser.parse_args()

if "RANK" in os.environ:
    dist.init_process_group("gloo")
else:
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
rank, ranks = dist.get_rank(), dist.get_world_size()

table = ShardedTable(options.rows, options.width, sparse_gradient=True)
optimizer = SGD(table.parameters(), lr=0.0005)

# Rank 0 writes the first values of all rows. They do not depend on the number of ranks.
generator = torch.Generator().manual_seed(0)
first = torch.randn(options.rows if rank == 0 else 0, options.width, generator=generator)
table.index_copy_(torch.arange(len(first)), first)

begin, losses = time.perf_counter(), []
for step in range(options.steps):
    generator = torch.Generator().manual_seed(1 + step)
    # Items with small numbers occur often. The two items of a pair have neighbouring numbers.
    uniform = torch.rand(options.batch, generator=generator, dtype=torch.float64)
    items = (options.rows**uniform).long().clamp(1, options.rows - 2)
    pairs = torch.stack([items, items + torch.randint(-1, 2, (options.batch,), generator=generator)], 1)
    mine = pairs[options.batch * rank // ranks : options.batch * (rank + 1) // ranks]

    optimizer.zero_grad()
    vectors = table.embedding(mine)
    loss = ((vectors[:, 0] - vectors[:, 1]) ** 2).sum()
    loss.backward()
    optimizer.step()
    total = loss.detach().double()
    dist.all_reduce(total)
    losses.append(float(total) / options.batch)
seconds = time.perf_counter() - begin

# The sum of the bits of all elements, as integers, has no rounding errors.
checksum = table.weight.detach().view(torch.int32).to(torch.int64).sum()
dist.all_reduce(checksum)
if rank == 0:
    print(f"{ranks} processes, {options.steps} steps in {seconds:.2f} s")
    print(f"loss: {losses[0]:.3f} to {losses[-1]:.3f}")
    print(f"checksum of the table: {int(checksum)}")
dist.destroy_process_group()

"""Runs a function in several processes, which are the ranks of a process group (gloo, loopback)."""

import datetime
import multiprocessing
import os
import pickle
import tempfile
import traceback

import torch
import torch.distributed as dist

# The ranks are forks of a server process that has imported PyTorch, so that they start fast.
_context = multiprocessing.get_context("forkserver")
_context.set_forkserver_preload(["torch", "torch.distributed.tensor", "ndscatter.distributed"])


def run(ranks, function, *arguments, timeout=60, limit=600, dying=()):
    """Return the results of ``function(*arguments)`` in each rank. A rank that raises an exception
    fails the test. The ranks in `dying` must end without a result, and have the result None.

    `timeout` is the timeout of the process group, and `limit` the time until each result, in seconds."""
    results = _context.Queue()
    with tempfile.TemporaryDirectory() as folder:
        store = os.path.join(folder, "store")
        processes = [
            _context.Process(
                target=_run_rank, args=(rank, ranks, store, timeout, results, function, arguments)
            )
            for rank in range(ranks)
        ]
        for process in processes:
            process.start()
        try:
            found = dict(pickle.loads(results.get(timeout=limit)) for _ in range(ranks - len(dying)))
        finally:
            for process in processes:
                process.join(5)
                process.kill()
    assert not set(found) & set(dying), "a rank that must end has a result"
    for rank, (result, failure) in found.items():
        assert failure is None, f"rank {rank}: {failure}"
    return [found[rank][0] if rank in found else None for rank in range(ranks)]


def _run_rank(rank, ranks, store, timeout, results, function, arguments):
    torch.set_num_threads(1)
    try:
        dist.init_process_group(
            "gloo",
            store=dist.FileStore(store, ranks),
            rank=rank,
            world_size=ranks,
            timeout=datetime.timedelta(seconds=timeout),
        )
        answer = function(*arguments), None
    except BaseException:
        answer = None, traceback.format_exc()
    # The queue would share the memory of tensors, which ends with this process.
    results.put(pickle.dumps((rank, answer)))
    results.close()
    results.join_thread()
    # A process group with a missing rank may never end in an orderly way.
    os._exit(0)

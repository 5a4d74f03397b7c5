"""Tests of calls during the end of a process, during a fork, and during signals.

Each test runs a script in a new process, because the script ends, forks or interrupts its process. In each script,
`call()` makes one call on the threads of the pool and checks the result, and `forever()` repeats `call()`.
"""

import os
import subprocess
import sys

import pytest

NUMPY = """
import atexit, os, signal, sys, threading, time
import numpy as np
import ndscatter

data, rows, updates = np.zeros((3000, 32)), np.arange(3000).repeat(4), np.ones((12_000, 32))

def call():
    assert (ndscatter.scatter_update(data, rows, updates, reduction="add") == 4).all()
"""
PLAN = """
plan = ndscatter.plan_scatter_update(data.shape, rows, reduction="add")

def call():
    assert (plan(data, updates) == 4).all()
"""
TORCH = """
import torch
import ndscatter.torch

ndscatter.torch.enable()
tensors = torch.from_numpy(data), torch.from_numpy(rows), torch.from_numpy(updates)

def call():
    assert (torch.index_add(tensors[0], 0, *tensors[1:]).numpy() == 4).all()
"""
OPERATOR = """
def call():
    result = ndscatter.torch.scatter_update(*tensors, reduction="sum")
    assert (result.numpy() == 4).all()
"""
REPEATED = """
def forever():
    while True:
        call()

def start_callers(daemon):
    for _ in range(3):
        threading.Thread(target=forever, daemon=daemon).start()
    call()
"""
ENTRIES = {
    "numpy": NUMPY,
    "plan": NUMPY + PLAN,
    "torch": NUMPY + TORCH,
    "operator": NUMPY + TORCH + OPERATOR,
}


def run(entry, script):
    """Run the script with the functions of an entry point. Return the exit status, the output and the errors."""
    code = ENTRIES[entry] + REPEATED + script
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    return done.returncode, done.stdout.split(), done.stderr


# PyTorch's own functions end the process with SIGABRT in this case, with and without ndscatter.
@pytest.mark.parametrize("entry", ["numpy", "plan"])
def test_the_interpreter_ends_during_calls_of_daemon_threads(entry):
    script = """
start_callers(daemon=True)
atexit.register(call)
time.sleep(0.1)
sys.exit(3)
"""
    assert run(entry, script) == (3, [], "")


@pytest.mark.parametrize("entry", ["numpy", "torch"])
def test_the_process_ends_at_once_during_calls(entry):
    script = """
start_callers(daemon=False)
time.sleep(0.1)
os._exit(4)
"""
    assert run(entry, script) == (4, [], "")


LAST = """
class Last:
    def __del__(self, call=call):
        call()
        os.write(1, b"freed")

_last = Last()       # names with an underscore are freed first, so that `call` still has its arrays
"""


@pytest.mark.parametrize("entry", ["numpy", "plan"])
def test_calls_while_the_interpreter_ends(entry):
    """The method `__del__` of a global object makes a call while the interpreter frees the modules."""
    assert run(entry, "call()" + LAST) == (0, ["freed"], "")


def test_a_first_call_while_the_interpreter_ends():
    """At this time, Python refuses to import the modules that a first call needs. The call raises Python's exception."""
    status, output, errors = run("numpy", LAST)
    assert (status, output) == (0, [])
    assert "ImportError: sys.meta_path is None" in errors and "panicked" not in errors


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
@pytest.mark.parametrize("entry", ["numpy", "plan", "torch", "operator"])
def test_forks_during_calls_of_other_threads(entry):
    """A lock that another thread holds at the time of the fork stays locked in the child process. A call in the child
    must not wait for it. The script forks 20 times, and the alarm ends a child that waits."""
    script = """
import warnings

warnings.simplefilter("ignore", DeprecationWarning)     # Python warns of forks of processes with threads
start_callers(daemon=True)
statuses = set()
for number in range(20):
    time.sleep(number % 7 / 5000)
    child = os.fork()
    if child == 0:
        signal.alarm(10)
        call()
        os._exit(0)
    statuses.add(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
print(*statuses, flush=True)
os._exit(0)     # without an end of the interpreter, which PyTorch's functions in daemon threads do not survive
"""
    assert run(entry, script) == (0, ["0"], "")


@pytest.mark.parametrize("entry", ["numpy", "plan"])
def test_signals_during_calls(entry):
    """An interrupt raises KeyboardInterrupt after the call that it reached, or in the check of the result. Later calls
    are right."""
    script = """
interrupts = 0
signal.signal(signal.SIGALRM, signal.default_int_handler)
while True:
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.003)
        forever()
    except KeyboardInterrupt:
        interrupts += 1
        if interrupts == 20:
            break
call()
print(interrupts)
"""
    assert run(entry, script) == (0, ["20"], "")


def test_exits_of_threads():
    """`sys.exit` in a thread ends only this thread, also if the conversion of an argument calls it."""
    script = """
class Exit:
    def __array__(self, dtype=None, copy=None):
        sys.exit(5)

output = data.copy()
threads = [
    threading.Thread(target=lambda: (call(), sys.exit(6))),
    threading.Thread(target=lambda: ndscatter.scatter_update(data, rows, Exit(), out=output)),
]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join(30)
call()
print(any(thread.is_alive() for thread in threads), output.any())
"""
    assert run("numpy", script) == (0, ["False", "False"], "")

#!/usr/bin/env python3
"""One step of a small decoder with a key/value cache: onnxruntime alone, and with ndscatter.

    cargo build --release -p ndscatter-onnxruntime
    python3 adapters/onnxruntime/examples/decoder_step.py [--tensor-scatter]

Every layer writes the keys and the values of one token for each sequence into its caches, by
ScatterND (or TensorScatter), and attends over all that is in them. The model is the same for
both sessions; one of them is given the library. The caches come in as buffers of the caller's,
and go out into the same buffers or into others. Into the same ones, neither session copies a
cache: only the rows of the token are written. Into others, every step copies all of it, which
is most of the time of the step: the built-in operators do so on one thread. Needs numpy, onnx
and onnxruntime.
"""

import argparse
import ctypes
import json
import statistics
import tempfile
import time
import zlib
from collections import defaultdict
from pathlib import Path

import numpy as np
import onnxruntime as ort
from onnx import TensorProto, helper, numpy_helper

LIBRARY = Path(__file__).resolve().parents[3] / "target/release/libndscatter_onnxruntime.so"
SCATTERS = ("ScatterND", "TensorScatter")
SAME, OTHER = "into the same buffers", "into other buffers"
BUILT_IN, NDSCATTER = "built-in", "ndscatter"
WARM_UP = 4


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    number = dict(type=int, metavar="N")
    parser.add_argument("--layers", default=4, **number)
    parser.add_argument("--sequences", default=16, **number)
    parser.add_argument("--heads", default=16, **number)
    parser.add_argument("--depth", default=64, help="size of a head", **number)
    parser.add_argument("--positions", default=2048, help="length of the cache", **number)
    parser.add_argument("--steps", default=15, help="steps that are timed", **number)
    parser.add_argument("--threads", default=0, help="0: one for each core", **number)
    parser.add_argument("--tensor-scatter", action="store_true", help="opset 24; built in since onnxruntime 1.25")
    parser.add_argument("--library", default=LIBRARY, help="default: %(default)s")
    return parser.parse_args()


class Decoder:
    """The model. `node` and `weight` add to it, and return the name of what they add."""

    VOCABULARY = 1000

    def __init__(self, args):
        self.args = args
        self.width = args.heads * args.depth
        self.nodes, self.weights = [], []
        self.random = np.random.default_rng(0)

    def node(self, operator, *inputs, output=None, **attributes):
        output = output or f"{operator}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(operator, inputs, [output], **attributes))
        return output

    def constant(self, array):
        name = f"constant_{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(np.ascontiguousarray(array), name))
        return name

    def weight(self, *shape):
        values = self.random.standard_normal(shape, dtype=np.float32)
        return self.constant(values / np.float32(shape[0] ** 0.5))

    def reshape(self, value, *shape):
        return self.node("Reshape", value, self.constant(np.array(shape, np.int64)))

    def linear(self, value, rows, columns):
        return self.node("MatMul", value, self.weight(rows, columns))

    def norm(self, value):
        ones = self.constant(np.ones(self.width, np.float32))
        return self.node("LayerNormalization", value, ones)

    def slots(self):
        """Where ScatterND writes: (sequence, head, position of the sequence) for each head."""
        args = self.args
        pairs = np.stack(np.indices((args.sequences, args.heads)), axis=-1)
        shape = self.constant(np.array([args.sequences, args.heads, 1], np.int64))
        position = self.node("Expand", self.reshape("positions", -1, 1, 1), shape)
        return self.node("Concat", self.constant(pairs.astype(np.int64)), position, axis=-1)

    def mask(self):
        """0 up to the position of each sequence, and far below 0 behind it."""
        every = self.constant(np.arange(self.args.positions, dtype=np.int64))
        later = self.node("Greater", every, self.reshape("positions", -1, 1, 1, 1))
        low, zero = self.constant(np.float32(-1e9)), self.constant(np.float32(0))
        return self.node("Where", later, low, zero)

    def write(self, cache, token):
        """The cache with the rows of one token written into it."""
        args, output = self.args, f"new_{cache}"
        if args.tensor_scatter:
            rows = self.reshape(token, args.sequences, args.heads, 1, args.depth)
            return self.node("TensorScatter", cache, rows, "positions", output=output, axis=-2)
        rows = self.reshape(token, args.sequences, args.heads, args.depth)
        return self.node("ScatterND", cache, self.where, rows, output=output)

    def attention(self, value, layer):
        args, width = self.args, self.width
        query, key, token = (self.linear(value, width, width) for _ in range(3))
        keys = self.write(f"keys_{layer}", key)
        values = self.write(f"values_{layer}", token)
        query = self.reshape(query, args.sequences, args.heads, args.depth, 1)
        scores = self.node("MatMul", keys, query)
        scores = self.reshape(scores, args.sequences, args.heads, 1, args.positions)
        scores = self.node("Mul", scores, self.constant(np.float32(args.depth**-0.5)))
        scores = self.node("Softmax", self.node("Add", scores, self.masked), axis=-1)
        mixed = self.reshape(self.node("MatMul", scores, values), args.sequences, width)
        return self.linear(mixed, width, width)

    def network(self, value):
        inner = self.node("Relu", self.linear(value, self.width, 4 * self.width))
        return self.linear(inner, 4 * self.width, self.width)

    def build(self):
        """The model's bytes."""
        args = self.args
        self.where, self.masked = None if args.tensor_scatter else self.slots(), self.mask()
        value = self.node("Gather", self.weight(self.VOCABULARY, self.width), "tokens")
        for layer in range(args.layers):
            value = self.node("Add", value, self.attention(self.norm(value), layer))
            value = self.node("Add", value, self.network(self.norm(value)))
        head = self.weight(self.width, self.VOCABULARY)
        self.node("MatMul", self.norm(value), head, output="logits")

        info, real, whole = helper.make_tensor_value_info, TensorProto.FLOAT, TensorProto.INT64
        inputs = [info(name, whole, [args.sequences]) for name in ("tokens", "positions")]
        inputs += [info(name, real, cache_shape(args)) for name in cache_names(args)]
        outputs = [info("logits", real, [args.sequences, self.VOCABULARY])]
        outputs += [info(f"new_{name}", real, cache_shape(args)) for name in cache_names(args)]
        graph = helper.make_graph(self.nodes, "decoder", inputs, outputs, self.weights)
        opset = helper.make_opsetid("", 24 if args.tensor_scatter else 18)
        model = helper.make_model(graph, opset_imports=[opset])
        # What the opset needs, not what the onnx package is able to write.
        model.ir_version = 12 if args.tensor_scatter else 8
        return model.SerializeToString()


def cache_names(args):
    return [f"{kind}_{layer}" for layer in range(args.layers) for kind in ("keys", "values")]


def cache_shape(args):
    return [args.sequences, args.heads, args.positions, args.depth]


class Session:
    """A session with profiling, and what its runs were for."""

    def __init__(self, model, args, library, folder):
        options = ort.SessionOptions()
        options.intra_op_num_threads = args.threads
        options.enable_profiling = True
        # The built-in TensorScatter warns of every copy that it makes.
        options.log_severity_level = 3
        options.profile_file_prefix = str(folder / ("ndscatter" if library else "built-in"))
        # Else the threads of the one spin for a while as the other is timed.
        options.add_session_config_entry("session.force_spinning_stop", "1")
        if library:
            options.register_custom_ops_library(str(library))
        self.session = ort.InferenceSession(model, options, providers=["CPUExecutionProvider"])
        self.runs = []

    def run(self, bound, title):
        """One step; its milliseconds."""
        start = time.perf_counter()
        self.session.run_with_iobinding(bound)
        self.runs.append(title)
        return 1e3 * (time.perf_counter() - start)

    def shares(self):
        """For each title, the part of the time of a run that goes into scatters: the median."""
        events = json.loads(Path(self.session.end_profiling()).read_text())
        runs = [event for event in events if event["name"] == "model_run"]
        scatters = [event for event in events if event.get("args", {}).get("op_name") in SCATTERS]
        shares = defaultdict(list)
        for run, title in zip(runs, self.runs, strict=True):
            end = run["ts"] + run["dur"]
            spent = sum(event["dur"] for event in scatters if run["ts"] <= event["ts"] <= end)
            shares[title].append(spent / run["dur"])
        return {title: statistics.median(each) for title, each in shares.items()}


class Step:
    """The buffers of a step."""

    def __init__(self, args):
        self.args = args
        random = np.random.default_rng(1)
        shape = cache_shape(args)
        self.caches = [random.standard_normal(shape, dtype=np.float32) for _ in cache_names(args)]
        self.others = [np.zeros_like(cache) for cache in self.caches]
        self.tokens = random.integers(0, Decoder.VOCABULARY, args.sequences)
        # Sequences have come this far, some further than others.
        self.positions = args.positions // 2 + random.integers(0, args.positions // 4, args.sequences)
        self.logits = np.zeros([args.sequences, Decoder.VOCABULARY], np.float32)

    def outputs(self, title):
        return self.caches if title == SAME else self.others

    def bind(self, session, title):
        """Ties the inputs and outputs of a session to the buffers."""
        bound = session.session.io_binding()
        names = cache_names(self.args)
        inputs = {"tokens": self.tokens, "positions": self.positions, **dict(zip(names, self.caches))}
        outputs = {"logits": self.logits}
        outputs |= {f"new_{name}": cache for name, cache in zip(names, self.outputs(title))}
        for name, array in inputs.items():
            bound.bind_input(name, "cpu", 0, array.dtype, array.shape, array.ctypes.data)
        for name, array in outputs.items():
            bound.bind_output(name, "cpu", 0, array.dtype, array.shape, array.ctypes.data)
        return bound

    def spoil(self, title):
        """Overwrites what a step is to write, so that nothing of an earlier one can pass for it."""
        self.logits.fill(np.nan)
        for cache in self.outputs(title):
            if title == SAME:
                cache[np.arange(self.args.sequences), :, self.positions] = np.nan
            else:
                cache.fill(np.nan)

    def digest(self, title):
        """What the step has written, in one number for each tensor."""
        assert np.isfinite(self.logits).all(), "the step has read what it should have overwritten"
        return [zlib.crc32(array) for array in (self.logits, *self.outputs(title))]


def check(step, bound, sessions, title):
    """Whether both sessions write the same bits. What they learn in their first runs, as how
    many threads there are, they have learnt then."""
    digests = []
    for name, session in sessions.items():
        for _ in range(WARM_UP):
            step.spoil(title)
            session.run(bound[name], "check")
        digests.append(step.digest(title))
    assert digests[0] == digests[1], f"the results differ, {title}"


def measure(step, bound, sessions, title):
    """Median milliseconds of a step of each session; they take turns."""
    times = {name: [] for name in sessions}
    for _ in range(step.args.steps):
        for name, session in sessions.items():
            times[name].append(session.run(bound[name], title))
        step.positions += 1
    return {name: statistics.median(taken) for name, taken in times.items()}


def check_counts(args, session):
    """Whether it was the library that ran: it counts the runs of its operators."""
    counted = ctypes.CDLL(str(args.library)).ndscatter_onnxruntime_runs()
    expected = len(session.runs) * len(cache_names(args))
    assert counted == expected, f"the library has run {counted} scatters of {expected}"


def print_table(args, times, shares):
    size = 4 * np.prod(cache_shape(args)) * len(cache_names(args)) / 2**30
    operator = "TensorScatter" if args.tensor_scatter else "ScatterND"
    print(f"onnxruntime {ort.__version__}: {args.layers} layers, {args.sequences} sequences, "
          f"{args.heads} heads of {args.depth}, {args.positions} positions")
    print(f"caches of {size:.2f} GiB, written by {operator}; logits and caches are equal, bit for bit\n")
    print(f"{'':24}{BUILT_IN:>22}{NDSCATTER:>22}")
    print(f"{'caches go out':24}" + 2 * f"{'ms':>10}{'scatters':>12}")
    for title, taken in times.items():
        cells = (f"{taken[name]:10.1f}{shares[name][title]:12.1%}" for name in taken)
        print(f"{title:24}" + "".join(cells) + f"{taken[BUILT_IN] / taken[NDSCATTER]:8.2f} x")


def main():
    args = arguments()
    if args.steps < 1 or args.positions < 8 or args.steps > args.positions // 8:
        raise SystemExit("use at least 8 positions, and at most an eighth as many steps")
    with tempfile.TemporaryDirectory() as folder:
        model = Decoder(args).build()
        libraries = {BUILT_IN: None, NDSCATTER: args.library}
        sessions = {name: Session(model, args, library, Path(folder)) for name, library in libraries.items()}
        del model
        step, times = Step(args), {}
        for title in (SAME, OTHER):
            bound = {name: step.bind(session, title) for name, session in sessions.items()}
            check(step, bound, sessions, title)
            times[title] = measure(step, bound, sessions, title)
        check_counts(args, sessions[NDSCATTER])
        shares = {name: session.shares() for name, session in sessions.items()}
    print_table(args, times, shares)


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""Times one step of a small decoder with a key/value cache, with and without ndscatter.

    pip install ./adapters/python onnx onnxruntime
    python3 adapters/onnxruntime/examples/decoder_step.py [--tensor-scatter]

In each step, each layer writes the keys and values of one token per sequence into its caches, with
ScatterND or TensorScatter. Then the layer computes attention over its whole caches. Two sessions
run the same model. One session uses ndscatter's library of custom operators. The other session uses
the built-in operators of onnxruntime.

The input caches are buffers of this program. Each step is timed with two choices of buffers for the
output caches. If the output caches are the buffers of the input caches, neither session copies a
cache, and a step writes only the rows of the new tokens into the caches. If the output caches are
other buffers, each step also copies all caches, which have 1 GiB with the default options. The
built-in operators copy on one thread.

The example requires numpy, onnx and onnxruntime. Without the Python package `ndscatter`, the example
uses the library that `cargo build --release -p ndscatter-onnxruntime` builds.
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

BUILT_BY_CARGO = Path(__file__).resolve().parents[3] / "target/release/libndscatter_onnxruntime.so"
SCATTERS = ("ScatterND", "TensorScatter")
SAME, OTHER = "the same buffers", "other buffers"
BUILT_IN, NDSCATTER = "built-in", "ndscatter"
WARM_UP = 4


def default_library():
    """Returns the path of the library in the Python package, or of the library built by cargo."""
    try:
        from ndscatter.onnxruntime import library_path
    except ImportError:
        return BUILT_BY_CARGO
    return Path(library_path())


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    number = dict(type=int, metavar="N")
    parser.add_argument("--layers", default=4, **number)
    parser.add_argument("--sequences", default=16, **number)
    parser.add_argument("--heads", default=16, **number)
    parser.add_argument("--depth", default=64, help="size of a head", **number)
    parser.add_argument("--positions", default=2048, help="length of the cache", **number)
    parser.add_argument("--steps", default=15, help="number of timed steps", **number)
    parser.add_argument("--threads", default=0, help="0: one per core", **number)
    parser.add_argument("--tensor-scatter", action="store_true", help="use TensorScatter of opset 24; built in since onnxruntime 1.25")
    parser.add_argument("--library", type=Path, default=default_library(), help="default: %(default)s")
    args = parser.parse_args()
    if not args.library.exists():
        parser.error(f"{args.library} does not exist; run `pip install ./adapters/python`")
    return args


class Decoder:
    """Builder of the decoder model. Most methods add nodes to the graph and return the name of the
    last node's output."""

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
        """Adds nodes that compute the indices of ScatterND: one tuple (sequence, head, position)
        for each sequence and head. `position` is the cache position of the sequence's new token."""
        args = self.args
        pairs = np.stack(np.indices((args.sequences, args.heads)), axis=-1)
        shape = self.constant(np.array([args.sequences, args.heads, 1], np.int64))
        position = self.node("Expand", self.reshape("positions", -1, 1, 1), shape)
        return self.node("Concat", self.constant(pairs.astype(np.int64)), position, axis=-1)

    def mask(self):
        """Adds nodes that compute the attention mask of each sequence. The mask is 0 for cache
        positions up to and including the position of the new token, and -1e9 for later
        positions."""
        every = self.constant(np.arange(self.args.positions, dtype=np.int64))
        later = self.node("Greater", every, self.reshape("positions", -1, 1, 1, 1))
        low, zero = self.constant(np.float32(-1e9)), self.constant(np.float32(0))
        return self.node("Where", later, low, zero)

    def write(self, cache, token):
        """Adds the scatter node that writes the rows of each sequence's new token into one
        cache."""
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
        """Builds the model and returns it in serialized form."""
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
        # The IR version that belongs to the opset. The default IR version of the onnx package may
        # be too new for onnxruntime.
        model.ir_version = 12 if args.tensor_scatter else 8
        return model.SerializeToString()


def cache_names(args):
    return [f"{kind}_{layer}" for layer in range(args.layers) for kind in ("keys", "values")]


def cache_shape(args):
    return [args.sequences, args.heads, args.positions, args.depth]


class Session:
    """A session of onnxruntime with profiling. `runs` has one title for each run: "check" for a run
    that checks results, and SAME or OTHER for a timed run with these output buffers."""

    def __init__(self, model, args, library, folder):
        options = ort.SessionOptions()
        options.intra_op_num_threads = args.threads
        options.enable_profiling = True
        # Logs only errors, because the built-in TensorScatter logs a warning each time it copies a
        # cache.
        options.log_severity_level = 3
        options.profile_file_prefix = str(folder / ("ndscatter" if library else "built-in"))
        # Stops the threads of this session from spinning between runs. Spinning threads would use
        # CPUs while the other session is timed.
        options.add_session_config_entry("session.force_spinning_stop", "1")
        if library:
            options.register_custom_ops_library(str(library))
        self.session = ort.InferenceSession(model, options, providers=["CPUExecutionProvider"])
        self.runs = []

    def run(self, bound, title):
        """Runs one step and returns its time in milliseconds."""
        start = time.perf_counter()
        self.session.run_with_iobinding(bound)
        self.runs.append(title)
        return 1e3 * (time.perf_counter() - start)

    def shares(self):
        """Returns the fraction of a run's time in which scatter nodes run, for each title in
        `self.runs`: the median over the runs with this title."""
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
    """The buffers for the inputs and outputs of a decoder step."""

    def __init__(self, args):
        self.args = args
        random = np.random.default_rng(1)
        shape = cache_shape(args)
        self.caches = [random.standard_normal(shape, dtype=np.float32) for _ in cache_names(args)]
        self.others = [np.zeros_like(cache) for cache in self.caches]
        self.tokens = random.integers(0, Decoder.VOCABULARY, args.sequences)
        # Each sequence has a random position for its first new token.
        self.positions = args.positions // 2 + random.integers(0, args.positions // 4, args.sequences)
        self.logits = np.zeros([args.sequences, Decoder.VOCABULARY], np.float32)

    def outputs(self, title):
        return self.caches if title == SAME else self.others

    def bind(self, session, title):
        """Binds the inputs and outputs of a session to the buffers of this object. `title` selects
        the buffers into which the model writes its caches. For SAME, the model writes into the
        buffers from which it reads its caches. For OTHER, the model writes into separate
        buffers."""
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
        """Fills with NaN all output elements that the next step must write. If the step does not
        write one of these elements, a logit becomes NaN, and `digest` detects this NaN."""
        self.logits.fill(np.nan)
        for cache in self.outputs(title):
            if title == SAME:
                cache[np.arange(self.args.sequences), :, self.positions] = np.nan
            else:
                cache.fill(np.nan)

    def digest(self, title):
        """Returns a checksum of each output tensor: the logits and all caches."""
        assert np.isfinite(self.logits).all(), "the step has read memory that it should have overwritten"
        return [zlib.crc32(array) for array in (self.logits, *self.outputs(title))]


def check(step, bound, sessions, title):
    """Checks that the session with ndscatter and the session with the built-in operators write the
    same bits. The runs of this check also warm up the sessions: in its first runs, ndscatter counts
    the threads of onnxruntime."""
    digests = []
    for name, session in sessions.items():
        for _ in range(WARM_UP):
            step.spoil(title)
            session.run(bound[name], "check")
        digests.append(step.digest(title))
    assert digests[0] == digests[1], f"the results of the sessions differ ({title})"


def measure(step, bound, sessions, title):
    """Returns for each session the median time of a step in milliseconds. The two sessions run
    alternately."""
    times = {name: [] for name in sessions}
    for _ in range(step.args.steps):
        for name, session in sessions.items():
            times[name].append(session.run(bound[name], title))
        step.positions += 1
    return {name: statistics.median(taken) for name, taken in times.items()}


def check_counts(args, session):
    """Checks that ndscatter's library ran all scatter nodes of its session. The library counts the
    scatter nodes that it has run."""
    counted = ctypes.CDLL(str(args.library)).ndscatter_onnxruntime_runs()
    expected = len(session.runs) * len(cache_names(args))
    assert counted == expected, f"the library has run {counted} of {expected} scatters"


def print_table(args, times, shares):
    size = 4 * np.prod(cache_shape(args)) * len(cache_names(args)) / 2**30
    operator = "TensorScatter" if args.tensor_scatter else "ScatterND"
    print(f"onnxruntime {ort.__version__}: {args.layers} layers, {args.sequences} sequences, "
          f"{args.heads} heads of {args.depth}, {args.positions} positions")
    print(f"caches of {size:.2f} GiB, written by {operator}; logits and caches are bit-identical\n")
    print(f"{'':24}{BUILT_IN:>22}{NDSCATTER:>22}")
    print(f"{'output caches in':24}" + 2 * f"{'ms':>10}{'scatters':>12}")
    for title, taken in times.items():
        cells = (f"{taken[name]:10.1f}{shares[name][title]:12.1%}" for name in taken)
        print(f"{title:24}" + "".join(cells) + f"{taken[BUILT_IN] / taken[NDSCATTER]:8.2f} x")


def main():
    args = arguments()
    if args.steps < 1 or args.positions < 8 or args.steps > args.positions // 8:
        raise SystemExit("--positions must be at least 8, and --steps between 1 and an eighth of --positions")
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

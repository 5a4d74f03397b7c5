"""Compares writes of slots and moves of rows in PyTorch's tensors with PyTorch's own indexing."""

import numpy as np
import pytest
import torch

import ndscatter
from ndscatter.torch import Write, gather_paged, move_rows, write_all, write_paged

BLOCKS, SIZE, HEADS, DIM = 6, 16, 4, 32
LAYOUTS = {
    "tokens first": (lambda *sizes: sizes, lambda cache: cache),
    "heads first": (lambda b, s, h, d: (b, h, s, d), lambda cache: cache.transpose(1, 2)),
    "columns": (lambda b, s, h, d: (b, h, d, s), lambda cache: cache.permute(0, 3, 1, 2)),
}
FLOATS = [torch.float32, torch.float16, torch.bfloat16]
#: From 2.12 on, torch clamps values that are too large for float8_e4m3fn. Earlier versions write
#: NaN. All versions write infinity for float8_e5m2.
FLOAT8 = [(torch.float8_e4m3fn, "saturate"), (torch.float8_e5m2, "nearest even")]


def bits(tensor):
    """Return the elements as integers, so that NaN equals NaN and 0 differs from -0."""
    sizes = {1: torch.uint8, 2: torch.int16, 4: torch.int32}
    return tensor.contiguous().view(sizes[tensor.dtype.itemsize])


def case(dtype, seed=0, tokens=40):
    generator = torch.Generator().manual_seed(seed)
    slots = torch.randperm(BLOCKS * SIZE, generator=generator)[:tokens]
    slots[::5] = -1
    return slots, (torch.randn(tokens, HEADS, DIM, generator=generator) * 100).to(dtype)


def written(slots, rows):
    """Return a cache `[slots, heads, dim]` that PyTorch has written."""
    cache = torch.zeros(BLOCKS * SIZE, HEADS, rows.shape[-1]).to(rows.dtype)
    kept = slots >= 0
    bits_of_cache = bits(cache)
    bits_of_cache[slots[kept]] = bits(rows)[kept]
    return bits_of_cache.view(BLOCKS, SIZE, HEADS, -1)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("source", FLOATS)
@pytest.mark.parametrize("dtype, rounding", [*FLOAT8, *((dtype, "nearest even") for dtype in FLOATS)])
def test_a_write_is_a_cast_and_an_assignment(dtype, rounding, source, layout):
    slots, key = case(source)
    key = key.clamp(-448, 448)
    shape_of, view_of = LAYOUTS[layout]
    cache = torch.zeros(shape_of(BLOCKS, SIZE, HEADS, DIM)).to(dtype)
    write_paged(view_of(cache), slots, key, rounding=rounding)
    expected = written(slots, key.to(dtype))
    assert torch.equal(bits(view_of(cache)), expected)
    assert torch.equal(bits(gather_paged(view_of(cache), slots.clamp(0))), expected.flatten(0, 1)[slots.clamp(0)])


@pytest.mark.parametrize("dtype, rounding", FLOAT8)
def test_large_values(dtype, rounding):
    """Values beyond the largest finite value, infinity and NaN. torch converts one number at a time here."""
    key = torch.tensor([449.0, -500, 1e30, float("inf"), -float("inf"), 61439, 61440, 65536]).view(1, 1, 8)
    if dtype == torch.float8_e4m3fn and torch.tensor(500.0).to(dtype).isnan():
        rounding = "nearest even"
    cache = torch.zeros(1, 1, 1, 8).to(dtype)
    write_paged(cache, torch.tensor([0]), key, rounding=rounding)
    assert torch.equal(bits(cache).flatten(), bits(key.to(dtype)).flatten())
    write_paged(cache, torch.tensor([0]), torch.full_like(key, float("nan")))
    assert cache.isnan().all()


@pytest.mark.parametrize("dtype, rounding", FLOAT8)
@pytest.mark.parametrize("stored", [torch.uint8, torch.int8, None])
def test_float8_with_a_scale(dtype, rounding, stored):
    slots, key = case(torch.bfloat16, seed=1)
    scale = torch.rand(HEADS, DIM) + 0.5
    cache = torch.zeros(BLOCKS, SIZE, HEADS, DIM).to(dtype)
    name = str(dtype).removeprefix("torch.")
    write_paged(cache if stored is None else cache.view(stored), slots, key, format=name, scale=scale, rounding=rounding)
    assert torch.equal(bits(cache), written(slots, (key.float() / scale).to(dtype)))


@pytest.mark.parametrize("source", FLOATS)
@pytest.mark.parametrize("shape", [(), (40, 1, 1), (40, HEADS, 1), (HEADS, DIM)])
def test_int8_with_a_scale(source, shape):
    slots, key = case(source, seed=2)
    scale = torch.rand(shape) + 0.5
    cache = torch.zeros(BLOCKS, SIZE, HEADS, DIM, dtype=torch.int8)
    write_paged(cache, slots, key, scale=scale)
    rows = (key.float() / scale).round().clamp(-128, 127).to(torch.int8)
    assert torch.equal(bits(cache), written(slots, rows))


def test_quantized_tensors():
    """The rule of `quantize_per_tensor`: the reciprocal of the scale, and a zero point."""
    slots, key = case(torch.float32, seed=3)
    scale, zero_point = 0.7, 100
    cache = torch.zeros(BLOCKS, SIZE, HEADS, DIM, dtype=torch.uint8)
    write_paged(cache, slots, key, format="uint8", scale=scale, zero_point=zero_point, scaling="reciprocal")
    rows = torch.quantize_per_tensor(key, scale, zero_point, torch.quint8).int_repr()
    assert torch.equal(cache, written(slots, rows))


@pytest.mark.parametrize("slot_type", [torch.int32, torch.int64])
@pytest.mark.parametrize("threads", [1, 2, None])
def test_keys_and_values(threads, slot_type):
    slots, key = case(torch.bfloat16, seed=4, tokens=90)
    value = key.flip(0)
    caches = torch.zeros(BLOCKS, 2, SIZE, HEADS, DIM, dtype=torch.bfloat16)
    writes = [Write(caches[:, 0], key), Write(caches[:, 1], value)]
    write_all(slots.to(slot_type), writes, threads=threads)
    assert torch.equal(bits(caches[:, 0]), written(slots, key))
    assert torch.equal(bits(caches[:, 1]), written(slots, value))
    caches.zero_()
    plan = ndscatter.plan_scatter_paged(caches[:, 0], slots)
    plan.write_all(writes)
    assert torch.equal(bits(caches[:, 1]), written(slots, value))


def test_the_number_of_threads_is_that_of_torch(monkeypatch):
    given = []
    monkeypatch.setattr(ndscatter, "write_paged", lambda *_, threads, **__: given.append(threads))
    cache, row = torch.zeros(1, 1), torch.ones(1)
    write_paged(cache, torch.tensor([0]), row)
    write_paged(cache, torch.tensor([0]), row, threads=1)
    assert given == [torch.get_num_threads(), 1]


def test_a_write_counts_as_a_change():
    cache, other = torch.zeros(2, 2), torch.zeros(2, 2)
    before = cache._version, other._version
    write_all(torch.tensor([3]), [Write(cache, torch.ones(1)), Write(other, torch.ones(1))])
    move_rows([cache, other], torch.tensor([0]), torch.tensor([1]))
    assert (cache._version, other._version) == (before[0] + 2, before[1] + 2)


def test_errors():
    cache, row = torch.zeros(2, 2, 3), torch.ones(1, 3)
    slot = torch.tensor([1])
    for error, call in (
        (IndexError, lambda: write_paged(cache, torch.tensor([4]), row)),
        (IndexError, lambda: write_paged(cache, torch.tensor([-1]), row, bounds="error")),
        (ValueError, lambda: write_paged(cache, slot, torch.ones(1, 2))),
        (TypeError, lambda: write_paged(cache, slot, row.double())),
        (TypeError, lambda: write_paged(cache, slot, row.int())),
        (TypeError, lambda: write_paged(cache, torch.tensor([1.0]), row)),
        (ValueError, lambda: write_paged(cache, slot, row.clone().requires_grad_())),
        (ValueError, lambda: write_paged(cache.clone().requires_grad_(), slot, row)),
        (ValueError, lambda: write_paged(cache, slot, cache[0, :1])),
        (ValueError, lambda: write_paged(torch.zeros(1).expand(2, 2), slot, torch.ones(1))),
        (ValueError, lambda: write_paged(torch.zeros(2, 2, dtype=torch.uint8), slot, torch.ones(1))),
        (ValueError, lambda: write_all(slot, [Write(cache, row), Write(cache, row)])),
        (IndexError, lambda: move_rows(cache, torch.tensor([2]), torch.tensor([0]))),
        (ValueError, lambda: move_rows([cache, cache[1:]], torch.tensor([0]), torch.tensor([0]))),
    ):
        with pytest.raises(error):
            call()
        assert not cache.any()


def test_a_reorder_of_beams():
    """`DynamicCache.reorder_cache` of transformers, for the keys and values of three layers."""
    beams = torch.tensor([2, 0, 0, 3, 2, 5])
    caches = [torch.randn(6, HEADS, 7, DIM).to(dtype) for dtype in (*FLOATS, *FLOATS)]
    expected = [cache.index_select(0, beams) for cache in caches]
    move_rows(caches, beams, torch.arange(6))
    assert all(map(torch.equal, caches, expected))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float8_e4m3fn])
@pytest.mark.parametrize(
    "dst, src", [([1, 5, 9, 13], [17, 21, 25, 29]), ([1, 2, 3, 4], [0, 1, 2, 3]), ([0], [0]), ([0, 3], [8, 11])]
)
def test_sglangs_moves_of_a_cache(dst, src, dtype):
    """The cases of sglang's `TestCopyAllLayerKvCache`."""
    buffers = [torch.randn(32, 2, width).to(dtype) for width in (64, 64, 64, 32, 32, 32)]
    expected = [bits(buffer).clone() for buffer in buffers]
    for buffer in expected:
        buffer[dst] = buffer[src]
    move_rows(buffers, torch.tensor(src), torch.tensor(dst, dtype=torch.int32))
    assert all(torch.equal(bits(buffer), new) for buffer, new in zip(buffers, expected))


CACHES = [torch.float16, torch.bfloat16, torch.uint8]


def store_cache(tokens, heads, dim, dtype, index_type):
    """A case of sglang's `test_store_cache`. The caches are `[slots, heads, dim]`."""
    generator = torch.Generator().manual_seed(tokens)
    at = torch.randperm(4096, generator=generator)[:tokens].to(index_type)
    random = lambda rows: (torch.rand(rows, heads, dim, generator=generator) * 255).to(dtype)
    key, value, keys, values = random(tokens), random(tokens), random(4096), random(4096)
    expected = keys.clone(), values.clone()
    expected[0][at.long()], expected[1][at.long()] = key, value
    write_all(at, [Write(keys, key), Write(values, value)], axis=0)
    assert torch.equal(bits(keys), bits(expected[0])) and torch.equal(bits(values), bits(expected[1]))


@pytest.mark.sampled(3)
@pytest.mark.parametrize("tokens", [1, 7, 133])
@pytest.mark.parametrize("heads", [1, 8, 16, 32])
@pytest.mark.parametrize("dim", [64, 128])
@pytest.mark.parametrize("dtype", CACHES)
def test_sglangs_store_cache(tokens, heads, dim, dtype):
    store_cache(tokens, heads, dim, dtype, torch.int64)


@pytest.mark.parametrize("heads", [1, 8])
@pytest.mark.parametrize("dim", [64, 128])
@pytest.mark.parametrize("dtype", CACHES)
def test_sglangs_store_cache_with_int32_indices(heads, dim, dtype):
    store_cache(11, heads, dim, dtype, torch.int32)


def test_results_equal_those_of_numpy():
    slots, key = case(torch.float32, seed=5)
    tensor, array = torch.zeros(BLOCKS, SIZE, HEADS, DIM, dtype=torch.int8), np.zeros((BLOCKS, SIZE, HEADS, DIM), np.int8)
    write_paged(tensor, slots, key, scale=0.5)
    ndscatter.write_paged(array, slots.numpy(), key.numpy(), scale=0.5)
    assert np.array_equal(tensor.numpy(), array)

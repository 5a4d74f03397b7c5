//! The tests of inference engines for cache writes, transcribed: vLLM 0.33.0, sglang and llama.cpp.
//!
//! Each test names the file and the test that it transcribes, and the number of cases. The tests of
//! the engines run a write, and compare the cache with assignments one row after another. The same
//! is done here, bit for bit. The values of the engines are random. The values here are random too.

use std::fmt::Debug;

use half::{bf16, f16};
use ndscatter::{
    AnyView, AnyViewMut, Conversion, DType, Element, Format, Layout, Rounding, Scaling, Scatter,
    TensorView, TensorViewMut, Write,
};

use crate::common::formats::{decode, nearest};
use crate::common::random::Random;

/// A source type of a cache write.
trait Float: Element {
    fn of(value: f32) -> Self;
    fn wide(self) -> f32;
}

macro_rules! floats {
    ($($type:ty),*) => {$(
        impl Float for $type {
            fn of(value: f32) -> Self {
                Self::from_f32(value)
            }

            fn wide(self) -> f32 {
                self.to_f32()
            }
        }
    )*};
}

floats!(f16, bf16);

impl Float for f32 {
    fn of(value: f32) -> Self {
        value
    }

    fn wide(self) -> f32 {
        self
    }
}

/// Draws values of about -4 to 4.
fn draw<T: Float>(count: usize, random: &mut Random) -> Vec<T> {
    let value = |random: &mut Random| {
        let number = u16::try_from(random.below(1 << 16)).expect("16 bits");
        T::of(f32::from(number) / 8192.0 - 4.0)
    };
    (0..count).map(|_| value(random)).collect()
}

/// Draws `count` different slots.
fn draw_slots(count: usize, slots: usize, random: &mut Random) -> Vec<i64> {
    let mut all: Vec<_> = (0_i64..).take(slots).collect();
    for at in 0..count {
        all.swap(at, at + random.below(slots - at));
    }
    all.truncate(count);
    all
}

/// vLLM, `tests/kernels/attention/test_cpu_attn.py`, `test_cpu_attn_fp8_cache_write_rounding`: 2
/// cases. The keys are stored as columns of a block, and the values as rows.
#[test]
fn vllm_fp8_cache_write_rounding() {
    let cases: [(Format, f32, i32, [u8; 8]); 2] = [
        (
            Format::F8E4M3Fn,
            0.125,
            -6,
            [0x00, 0x38, 0x3a, 0x40, 0x00, 0x01, 0x02, 0x08],
        ),
        (
            Format::F8E5M2,
            0.25,
            -14,
            [0x00, 0x3c, 0x3e, 0x40, 0x00, 0x01, 0x02, 0x04],
        ),
    ];
    for (format, eps, exponent, codes) in cases {
        let tiny = 2_f32.powi(exponent);
        let sub = tiny * eps;
        let values = [
            0.0,
            1.0 + eps / 2.0,
            1.0 + 1.5 * eps,
            2.0 - eps / 2.0,
            sub / 2.0,
            0.75 * sub,
            1.5 * sub,
            tiny - sub / 2.0,
        ];
        let half = [values, values.map(|value| -value)].concat();
        let (key, expected) = ([&half[..], &half].concat(), codes.map(|code| code | 0x80));
        let expected = [codes, expected, codes, expected].concat();
        let conversion = Conversion::new()
            .format(format)
            .rounding(Rounding::SaturateNan)
            .scaling(Scaling::Reciprocal);
        let (mut keys, mut stored) = ([0_u8; 1024], [0_u8; 1024]);
        // Blocks, rows, heads, dim: the keys are `[1, 1, 32 dim, 32 rows]` in memory.
        let shape = [1, 32, 1, 32];
        let columns = TensorViewMut::strided(&mut keys, 0, &shape, &[1024, 1, 1024, 32]);
        let rows = TensorViewMut::contiguous(&mut stored, &shape);
        let updates = TensorView::contiguous(&key, &[1, 1, 32]).expect("updates");
        let mut writes = [columns, rows]
            .map(|data| Write::new(data.expect("a cache"), updates).convert(conversion));
        let done = Scatter::paged().write_all(TensorView::from(&[0_i64]), &mut writes);
        assert_eq!(done, Ok(()), "{format}");
        assert!(keys.iter().step_by(32).eq(&expected), "{format}: keys");
        assert_eq!(stored[..32], expected, "{format}: values");
        let others = stored[32..]
            .iter()
            .chain(keys.chunks(32).flat_map(|row| &row[1..]));
        assert!(
            others.into_iter().all(|&byte| byte == 0),
            "{format}: other slots"
        );
    }
}

/// A cache of keys or values in memory: `[blocks, rows, heads, dim]` or `[blocks, heads, rows, dim]`.
#[derive(Clone, Copy, Debug)]
struct Flash {
    blocks: usize,
    rows: usize,
    heads: usize,
    dim: usize,
    by_head: bool,
}

impl Flash {
    fn shape(&self) -> [usize; 4] {
        [self.blocks, self.rows, self.heads, self.dim]
    }

    fn strides(&self) -> [isize; 4] {
        let [rows, heads, dim] = [self.rows, self.heads, self.dim].map(usize::cast_signed);
        let block = rows * heads * dim;
        match self.by_head {
            false => [block, heads * dim, dim, 1],
            true => [block, dim, rows * dim, 1],
        }
    }

    fn len(&self) -> usize {
        self.shape().iter().product()
    }

    /// Offset of the first element of a head in a slot.
    fn offset(&self, slot: i64, head: usize) -> usize {
        let slot = usize::try_from(slot).expect("a slot");
        let place = [slot / self.rows, slot % self.rows, head].map(usize::cast_signed);
        let offset: isize = place
            .iter()
            .zip(self.strides())
            .map(|(at, by)| at * by)
            .sum();
        offset.cast_unsigned()
    }

    /// The strides of the keys in a tensor `[tokens, 3, heads, dim]` of queries, keys and values.
    fn unbound(&self) -> [isize; 3] {
        let [heads, dim] = [self.heads, self.dim].map(usize::cast_signed);
        [3 * heads * dim, dim, 1]
    }

    /// Writes the keys of `qkv` to a cache of one type by `write`, and compares the cache with
    /// assignments of `code`.
    fn check<S: Float, D: Element + Default + PartialEq + Debug>(
        &self,
        qkv: &[S],
        slots: &[i64],
        code: impl Fn(usize, S) -> D,
        write: impl Fn(AnyViewMut<'_>, AnyView<'_>) -> Result<(), ndscatter::ScatterError>,
    ) {
        let (tokens, strides) = ([slots.len(), self.heads, self.dim], self.unbound());
        for which in [1, 2] {
            let first = which * self.heads * self.dim;
            let updates = TensorView::strided(qkv, first, &tokens, &strides).expect("updates");
            let mut expected = vec![D::default(); self.len()];
            for (token, &slot) in slots.iter().enumerate() {
                for head in 0..self.heads {
                    let from = first + (token * 3 * self.heads + head) * self.dim;
                    let to = &mut expected[self.offset(slot, head)..][..self.dim];
                    let from = &qkv[from..][..self.dim];
                    to.iter_mut()
                        .zip(from)
                        .for_each(|(to, &from)| *to = code(head, from));
                }
            }
            let mut cache = vec![D::default(); self.len()];
            let (shape, strides) = (self.shape(), self.strides());
            let view = TensorViewMut::strided(&mut cache, 0, &shape, &strides).expect("a cache");
            assert_eq!(write(view.into(), updates.into()), Ok(()), "{self:?}");
            assert!(cache == expected, "{self:?}: {which}");
        }
    }

    /// Runs the cases of one source type: a copy, 8-bit floats with one scale, and 8-bit floats with
    /// a scale for each head.
    fn check_all<S: Float + Default + PartialEq>(&self, random: &mut Random) {
        let tokens = 21;
        let qkv: Vec<S> = draw(tokens * 3 * self.heads * self.dim, random);
        let slots = draw_slots(tokens, self.blocks * self.rows, random);
        let list = || TensorView::from(&slots[..]);
        self.check(
            &qkv,
            &slots,
            |_, value| value,
            |cache, updates| Scatter::paged().in_place(cache, list(), updates),
        );
        let one = [4.0_f32 / 64.0];
        let mut each = vec![0.0; self.heads];
        each.iter_mut()
            .zip(1_u8..)
            .for_each(|(scale, head)| *scale = f32::from(head) / 90.0);
        let each_shape = [self.heads, 1];
        for (scales, shape) in [(&one[..], &[][..]), (&each, &each_shape)] {
            let code = |head: usize, value: S| {
                let scale = scales[head.min(scales.len() - 1)];
                nearest(value.wide() * (1.0 / scale), 3)
            };
            self.check(&qkv, &slots, code, |cache, updates| {
                let conversion = Conversion::new()
                    .format(Format::F8E4M3Fn)
                    .rounding(Rounding::SaturateNan)
                    .scaling(Scaling::Reciprocal)
                    .scale(TensorView::contiguous(scales, shape)?);
                Scatter::paged()
                    .convert(conversion)
                    .in_place(cache, list(), updates)
            });
        }
    }
}

/// vLLM, `tests/kernels/attention/test_cache.py`, `test_reshape_and_cache_flash`: 288 cases of the
/// implementation `cuda` without nvfp4, of which 108 are transcribed with 40 blocks instead of 512
/// and 5000. (A case with the cache type `auto` is the same for both kinds of scales.) Keys and
/// values are strided views of one tensor.
#[test]
fn vllm_reshape_and_cache_flash() {
    let mut random = Random::new(46);
    for dim in [64, 80, 256] {
        for rows in [8, 16, 32] {
            for by_head in [false, true] {
                let cache = Flash {
                    blocks: 40,
                    rows,
                    heads: 8,
                    dim,
                    by_head,
                };
                cache.check_all::<bf16>(&mut random);
                cache.check_all::<f32>(&mut random);
            }
        }
    }
}

/// vLLM, the same file, `test_reshape_and_cache_flash_unaligned_rows`: 16 cases, of which 12 differ
/// without a choice of the implementation and with both kinds of scales.
#[test]
fn vllm_reshape_and_cache_flash_unaligned_rows() {
    let mut random = Random::new(47);
    for by_head in [false, true] {
        let cache = Flash {
            blocks: 128,
            rows: 16,
            heads: 13,
            dim: 46,
            by_head,
        };
        cache.check_all::<bf16>(&mut random);
        cache.check_all::<f32>(&mut random);
    }
}

/// vLLM, the same file, `test_concat_and_cache_mla_cpu`: 4 cases. A row has two parts, which two
/// writes store.
#[test]
fn vllm_concat_and_cache_mla() {
    fn check<T: Float + Default + PartialEq>(rank: usize, random: &mut Random) {
        let (tokens, rows, blocks, rope) = (42, 16, 8, 64);
        let wide = rank + rope;
        let slots = draw_slots(tokens, rows * blocks, random);
        let (latent, positions): (Vec<T>, Vec<T>) =
            (draw(tokens * rank, random), draw(tokens * rope, random));
        let mut expected = vec![T::default(); rows * blocks * wide];
        for (token, &slot) in slots.iter().enumerate() {
            let row = &mut expected[usize::try_from(slot).expect("a slot") * wide..][..wide];
            row[..rank].copy_from_slice(&latent[token * rank..][..rank]);
            row[rank..].copy_from_slice(&positions[token * rope..][..rope]);
        }
        let mut cache = vec![T::default(); rows * blocks * wide];
        let parts = [(0, rank, &latent), (rank, rope, &positions)];
        for (first, len, updates) in parts {
            let strides = [rows * wide, wide, 1].map(usize::cast_signed);
            let shape = [blocks, rows, len];
            let data = TensorViewMut::strided(&mut cache, first, &shape, &strides).expect("a part");
            let updates_shape = [tokens, len];
            let updates = TensorView::contiguous(updates, &updates_shape);
            let done = Scatter::paged().in_place(
                data,
                TensorView::from(&slots[..]),
                updates.expect("updates"),
            );
            assert_eq!(done, Ok(()));
        }
        assert!(cache == expected, "rank {rank}");
    }
    let mut random = Random::new(48);
    for rank in [256, 512] {
        check::<bf16>(rank, &mut random);
        check::<f32>(rank, &mut random);
    }
}

/// vLLM, `tests/quantization/test_per_token_kv_cache.py`, `test_reshape_and_cache_per_token_head`:
/// the 36 cases of int8 and 8-bit floats. There, the write computes the scales. Here, the test
/// computes them and passes them.
#[test]
fn vllm_per_token_head() {
    let mut random = Random::new(49);
    for (format, largest) in [(Format::I8, 127.0), (Format::F8E4M3Fn, 448.0)] {
        for (tokens, heads, dim) in [1, 7, 42].into_iter().flat_map(|tokens| {
            [1, 4, 8]
                .into_iter()
                .flat_map(move |heads| [64, 128].map(|dim| (tokens, heads, dim)))
        }) {
            let keys: Vec<bf16> = draw(tokens * heads * dim, &mut random);
            let rows: Vec<_> = keys.chunks(dim).collect();
            let scale = |row: &&[bf16]| {
                let most = row.iter().map(|key| key.wide().abs()).fold(0.0, f32::max);
                f32::max(most / largest, 1e-6)
            };
            let scales: Vec<f32> = rows.iter().map(scale).collect();
            let blocks = tokens.div_ceil(16) + 4;
            let slots = draw_slots(tokens, blocks * 16, &mut random);
            let conversion = Conversion::new()
                .format(format)
                .rounding(Rounding::Saturate)
                .scaling(Scaling::Reciprocal);
            let scale_shape = [tokens, heads, 1];
            let conversion =
                conversion.scale(TensorView::contiguous(&scales, &scale_shape).expect("scales"));
            let mut cache = vec![0_u8; blocks * 16 * heads * dim];
            let dtype = if format == Format::I8 {
                DType::I8
            } else {
                DType::U8
            };
            let shape = [blocks, 16, heads, dim];
            let data = AnyViewMut::from_bytes(&mut cache, dtype, Layout::contiguous(&shape));
            let done = Scatter::paged().convert(conversion).in_place(
                data.expect("a cache"),
                TensorView::from(&slots[..]),
                TensorView::contiguous(&keys, &[tokens, heads, dim]).expect("updates"),
            );
            assert_eq!(done, Ok(()));
            let mut written = 0;
            for (at, (row, scale)) in rows.iter().zip(&scales).enumerate() {
                let slot = usize::try_from(slots[at / heads]).expect("a slot");
                let stored = &cache[(slot * heads + at % heads) * dim..][..dim];
                for (&code, &key) in stored.iter().zip(*row) {
                    let value = key.wide() * (1.0 / scale);
                    #[expect(clippy::cast_possible_truncation, reason = "within a byte")]
                    let expected = match format {
                        Format::I8 => (value.round_ties_even() as i8).cast_unsigned(),
                        _ => nearest(value, 3),
                    };
                    assert_eq!(code, expected, "{key} by {scale}");
                    written += 1;
                }
            }
            let zeros = cache.iter().filter(|&&code| code == 0).count();
            assert!(zeros + written >= cache.len(), "other slots are unchanged");
        }
    }
}

/// vLLM, the same file: `raw_cache_matches_round_reference` (1 case), and `negative_slot_skipped`
/// (3 cases, of which the two that pass scales).
#[test]
fn vllm_int8_rounding_and_negative_slots() {
    let row = [-127.0, -2.6, -2.4, -1.6, -1.4, -0.6, -0.4, 127.0].map(bf16::from_f32);
    for (sign, expected) in [
        (1.0, [-127, -3, -2, -2, -1, -1, 0, 127]),
        (-1.0, [127, 3, 2, 2, 1, 1, 0, -127]),
    ] {
        let row = row.map(|value| bf16::from_f32(value.to_f32() * sign));
        let mut cache = [0_i8; 32];
        let done = Scatter::paged().convert(Conversion::new()).in_place(
            TensorViewMut::contiguous(&mut cache, &[1, 4, 1, 8]).expect("a cache"),
            TensorView::from(&[2_i64]),
            TensorView::contiguous(&row, &[1, 1, 8]).expect("updates"),
        );
        assert_eq!(done, Ok(()));
        assert_eq!(
            (&cache[..16], &cache[16..24], &cache[24..]),
            (&[0; 16][..], &expected[..], &[0; 8][..])
        );
    }
    let keys: Vec<bf16> = draw(4 * 2 * 64, &mut Random::new(50));
    for format in [Format::I8, Format::F8E4M3Fn] {
        let mut cache = vec![0x55_u8; 2 * 16 * 2 * 64];
        let dtype = if format == Format::I8 {
            DType::I8
        } else {
            DType::U8
        };
        let shape = [2, 16, 2, 64];
        let data = AnyViewMut::from_bytes(&mut cache, dtype, Layout::contiguous(&shape));
        let conversion = Conversion::new().format(format);
        let done = Scatter::paged().convert(conversion).in_place(
            data.expect("a cache"),
            TensorView::from(&[0_i64, -1, 1, -1]),
            TensorView::contiguous(&keys, &[4, 2, 64]).expect("updates"),
        );
        assert_eq!(done, Ok(()));
        assert!(
            cache[256..].iter().all(|&byte| byte == 0x55),
            "{format}: other slots"
        );
        assert!(
            cache[..256].iter().any(|&byte| byte != 0x55),
            "{format}: two slots"
        );
    }
}

/// sglang, `test/registered/cpu/test_store_cache.py`: `test_store_cache` (72 cases) and
/// `test_store_cache_int32_indices` (12 cases). 8-bit floats are stored as bytes.
#[test]
fn sglang_store_cache() {
    fn check<T: Element + Default + PartialEq>(
        (tokens, heads, dim): (usize, usize, usize),
        is_narrow: bool,
        values: impl Fn(usize, &mut Random) -> Vec<T>,
        random: &mut Random,
    ) {
        let (slots, row) = (4096, heads * dim);
        let list = draw_slots(tokens, slots, random);
        let narrow: Vec<_> = list
            .iter()
            .map(|&slot| i32::try_from(slot).expect("small"))
            .collect();
        let updates = [values(tokens * row, random), values(tokens * row, random)];
        let mut caches = [
            vec![T::default(); slots * row],
            vec![T::default(); slots * row],
        ];
        let mut expected = caches.clone();
        for (cache, updates) in expected.iter_mut().zip(&updates) {
            for (token, &slot) in list.iter().enumerate() {
                let slot = usize::try_from(slot).expect("a slot");
                cache[slot * row..][..row].copy_from_slice(&updates[token * row..][..row]);
            }
        }
        let shapes = ([slots, heads, dim], [tokens, heads, dim]);
        let mut writes: Vec<_> = (caches.iter_mut().zip(&updates))
            .map(|(cache, updates)| {
                let data = TensorViewMut::contiguous(cache, &shapes.0).expect("a cache");
                Write::new(
                    data,
                    TensorView::contiguous(updates, &shapes.1).expect("updates"),
                )
            })
            .collect();
        let scatter = Scatter::along(0).negative_indices(false);
        let done = match is_narrow {
            true => scatter.write_all(TensorView::from(&narrow[..]), &mut writes),
            false => scatter.write_all(TensorView::from(&list[..]), &mut writes),
        };
        assert_eq!(done, Ok(()));
        drop(writes);
        assert!(caches == expected, "{tokens}, {heads}, {dim}");
    }
    fn check_types(sizes: (usize, usize, usize), is_narrow: bool, random: &mut Random) {
        check::<f16>(sizes, is_narrow, draw, random);
        check::<bf16>(sizes, is_narrow, draw, random);
        let bytes = |count, random: &mut Random| {
            let byte = |random: &mut Random| u8::try_from(random.below(256)).expect("a byte");
            (0..count).map(|_| byte(random)).collect()
        };
        check::<u8>(sizes, is_narrow, bytes, random);
    }
    let mut random = Random::new(51);
    for dim in [64, 128] {
        for heads in [1, 8, 16, 32] {
            for tokens in [1, 7, 133] {
                check_types((tokens, heads, dim), false, &mut random);
            }
        }
        for heads in [1, 8] {
            check_types((11, heads, dim), true, &mut random);
        }
    }
}

/// sglang, the same file, `test_set_k_and_s`: 14 cases. A page has the data of its tokens (448 bytes
/// of 8-bit floats and 64 elements of bf16 each), and then the scales of its tokens (7 bytes and one
/// byte of padding each). The three parts are three views of one buffer, and one call writes them.
#[test]
#[expect(unsafe_code, reason = "makes views that interleave in one buffer")]
fn sglang_set_k_and_s() {
    let mut random = Random::new(52);
    let sizes = [4, 16].into_iter().flat_map(|pages| {
        let page = [1, 16].into_iter();
        page.flat_map(move |size| [1, 7, 32].map(|tokens| (pages, size, tokens.min(pages * size))))
    });
    for (pages, size, tokens) in sizes.chain([(8, 16, 20), (64, 16, 512)]) {
        let page = size * 584;
        let slots = draw_slots(tokens, pages * size, &mut random);
        let mut bytes = |count| -> Vec<u8> {
            (0..count)
                .map(|_| u8::try_from(random.below(256)).expect("a byte"))
                .collect()
        };
        let (floats, scales) = (bytes(tokens * 448), bytes(tokens * 7));
        let positions: Vec<bf16> = draw(tokens * 64, &mut random);
        let mut expected = vec![0_u8; pages * page];
        for (token, &slot) in slots.iter().enumerate() {
            let slot = usize::try_from(slot).expect("a slot");
            let (start, at) = (slot / size * page, slot % size);
            expected[start + at * 576..][..448].copy_from_slice(&floats[token * 448..][..448]);
            let part = positions[token * 64..][..64].iter();
            let part: Vec<u8> = part.flat_map(|value| value.to_ne_bytes()).collect();
            expected[start + at * 576 + 448..][..128].copy_from_slice(&part);
            expected[start + size * 576 + at * 8..][..7].copy_from_slice(&scales[token * 7..][..7]);
        }
        let mut buffer = vec![0_u64; pages * page / 8];
        let base: *mut u8 = buffer.as_mut_ptr().cast();
        let signed = [page, page / 2].map(usize::cast_signed);
        let shapes = [[pages, size, 448], [pages, size, 64], [pages, size, 7]];
        let strides = [[signed[0], 576, 1], [signed[1], 288, 1], [signed[0], 8, 1]];
        let views = [(0, DType::U8), (448, DType::BF16), (size * 576, DType::U8)];
        let data = [0, 1, 2].map(|part| {
            let layout = Layout::strided(&shapes[part], &strides[part]).expect("a layout");
            let (first, dtype) = views[part];
            // SAFETY: all elements of the view are inside the buffer, which nothing else uses while
            // the views exist.
            unsafe { AnyViewMut::from_raw_parts(base.wrapping_add(first), dtype, layout) }
        });
        let [first, second, third] = data.map(|view| view.expect("a view"));
        let shapes = [448, 64, 7].map(|len| [tokens, len]);
        let done = Scatter::paged().write_all(
            TensorView::from(&slots[..]),
            &mut [
                Write::new(
                    first,
                    TensorView::contiguous(&floats, &shapes[0]).expect("floats"),
                ),
                Write::new(
                    second,
                    TensorView::contiguous(&positions, &shapes[1]).expect("positions"),
                ),
                Write::new(
                    third,
                    TensorView::contiguous(&scales, &shapes[2]).expect("scales"),
                ),
            ],
        );
        assert_eq!(done, Ok(()), "{pages} pages of {size}");
        assert!(
            bytemuck::cast_slice::<_, u8>(&buffer) == expected,
            "{pages}, {size}, {tokens}"
        );
    }
}

/// sglang, `store_cache.cpp`, the quantisation of `test_quant_*`: the scale of a tile of 64 is a
/// power of two that the caller computes. The codes are those of the reference of the tests, which
/// keeps subnormals.
#[test]
fn sglang_tiles_with_powers_of_two() {
    let mut random = Random::new(53);
    for (tokens, factor) in [(1, 1.0), (7, 1.0), (32, 1.0), (16, 1e-6), (16, 100.0)] {
        let keys: Vec<bf16> = draw::<f32>(tokens * 448, &mut random)
            .into_iter()
            .map(|key| bf16::of(key * factor))
            .collect();
        let scale = |tile: &[bf16]| {
            let most = tile.iter().map(|key| key.wide().abs()).fold(0.0, f32::max);
            2_f32.powf((most / 448.0).max(1e-4).log2().ceil())
        };
        let scales: Vec<f32> = keys.chunks(64).map(scale).collect();
        let (scale_shape, shape) = ([tokens, 7, 1], [1, tokens, 7, 64]);
        let conversion = Conversion::new()
            .format(Format::F8E4M3Fn)
            .scale(TensorView::contiguous(&scales, &scale_shape).expect("scales"));
        let mut cache = vec![0_u8; tokens * 448];
        let slots: Vec<_> = (0_i64..).take(tokens).collect();
        let done = Scatter::paged().convert(conversion).in_place(
            TensorViewMut::contiguous(&mut cache, &shape).expect("a cache"),
            TensorView::from(&slots[..]),
            TensorView::contiguous(&keys, &shape[1..]).expect("updates"),
        );
        assert_eq!(done, Ok(()));
        for (at, (&code, &key)) in cache.iter().zip(&keys).enumerate() {
            let value = key.wide() / scales[at / 64];
            assert_eq!(code, nearest(value, 3), "{value}");
            assert!(
                (decode(code, 3) - f64::from(value)).abs()
                    <= f64::from(value.abs()) / 16.0 + 2_f64.powi(-10)
            );
        }
    }
}

/// llama.cpp, `tests/test-backend-ops.cpp`, `test_set_rows`: the 62 cases of f32, f16 and bf16. The
/// other types are blocks of quantised values, which are out of scope.
#[test]
fn llama_set_rows() {
    /// `ne` is the shape of ggml, innermost dim first. The indices are repeated by `repeats`.
    fn check<D: Float + Default + PartialEq>(
        ne: [usize; 4],
        repeats: [usize; 2],
        rows: usize,
        is_narrow: bool,
        random: &mut Random,
    ) {
        let [len, all, inner, outer] = ne;
        let (threes, twos) = (outer * repeats[1], inner * repeats[0]);
        let updates: Vec<f32> = draw(threes * twos * rows * len, random);
        let lists: Vec<_> = (0..outer * inner)
            .map(|_| draw_slots(rows, all, random))
            .collect();
        let list = |three: usize, two: usize| &lists[three % outer * inner + two % inner];
        let mut expected = vec![D::default(); threes * twos * all * len];
        let (mut tuples, mut narrow) = (vec![], vec![]);
        for (three, two) in (0..threes).flat_map(|three| (0..twos).map(move |two| (three, two))) {
            for (row, &to) in list(three, two).iter().enumerate() {
                let plane = three * twos + two;
                let from = &updates[(plane * rows + row) * len..][..len];
                let start = (plane * all + usize::try_from(to).expect("a row")) * len;
                let to_row = expected[start..][..len].iter_mut();
                to_row.zip(from).for_each(|(to, &from)| *to = D::of(from));
                // The dims that ggml repeats are coordinates of the tuple.
                let place = [three, two].map(|at| i64::try_from(at).expect("small"));
                tuples.extend([place[0], place[1], to]);
                narrow.extend([place[0], place[1], to].map(|at| i32::try_from(at).expect("small")));
            }
        }
        let mut data = vec![D::default(); expected.len()];
        let (shape, indices) = ([threes, twos, all, len], [threes, twos, rows, 3]);
        let view = TensorViewMut::contiguous(&mut data, &shape).expect("data");
        let updates_shape = [threes, twos, rows, len];
        let updates = TensorView::contiguous(&updates, &updates_shape).expect("updates");
        let scatter = Scatter::nd()
            .negative_indices(false)
            .convert(Conversion::new());
        let done = match is_narrow {
            true => scatter.in_place(
                view,
                TensorView::contiguous(&narrow, &indices).expect("indices"),
                updates,
            ),
            false => scatter.in_place(
                view,
                TensorView::contiguous(&tuples, &indices).expect("indices"),
                updates,
            ),
        };
        assert_eq!(done, Ok(()));
        assert!(data == expected, "{ne:?}, {repeats:?}, {rows}");
    }
    fn check_type<D: Float + Default + PartialEq>(random: &mut Random) {
        for b in [1, 7] {
            // A view has half of the rows. With one row, it has none.
            for half in [1, 2] {
                check::<D>([256, 5, b, 3], [1, 1], 1 / half, false, random);
                check::<D>([256, 11, 1, b], [2, 3], 7 / half, false, random);
                check::<D>([3, 3, b, 1], [2, 3], 2 / half, false, random);
                check::<D>([31, 3, b, 1], [2, 3], 2 / half, false, random);
                check::<D>([33, 5, 1, b], [2, 3], 1 / half, false, random);
            }
        }
    }
    let mut random = Random::new(54);
    for is_narrow in [false, true] {
        check::<f32>([1, 8, 1, 3], [1, 1], 2, is_narrow, &mut random);
    }
    check_type::<f32>(&mut random);
    check_type::<f16>(&mut random);
    check_type::<bf16>(&mut random);
}

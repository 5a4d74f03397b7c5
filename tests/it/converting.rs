//! Writes that convert their updates: layouts, scales, workers, plans and errors, compared with a
//! naive loop. The kernels have their own tests of every value.

use std::sync::atomic::{AtomicUsize, Ordering};

use half::{bf16, f16};
use ndscatter::{
    AnyView, AnyViewMut, Bounds, Conversion, DType, Duplicates, Element, Execution, Format,
    InstructionSet, Layout, Pool, Reduction, Rounding, Scaling, Scatter, ScatterError, TensorView,
    TensorViewMut, Write,
};

use crate::common::formats::{dtype_of, encode};
use crate::common::pools::{Workers, rayon_pool};
use crate::common::random::Random;

/// Byte that marks elements that no write changes.
const MARK: u8 = 0xa5;

/// Updates of one type: their bytes and their values.
struct Updates {
    bytes: Vec<u8>,
    values: Vec<f32>,
}

impl Updates {
    fn draw(dtype: DType, count: usize, random: &mut Random) -> Self {
        let mut updates = Self {
            bytes: vec![],
            values: vec![],
        };
        for _ in 0..count {
            let number = u16::try_from(random.below(4000)).expect("a small number");
            let value = (f32::from(number) - 2000.0) / 32.0;
            let value = match dtype {
                DType::F16 => f32::from(f16::from_f32(value)),
                DType::BF16 => f32::from(bf16::from_f32(value)),
                _ => value,
            };
            updates.values.push(value);
            updates.bytes.extend(match dtype {
                DType::F16 => f16::from_f32(value).to_ne_bytes().to_vec(),
                DType::BF16 => bf16::from_f32(value).to_ne_bytes().to_vec(),
                _ => value.to_ne_bytes().to_vec(),
            });
        }
        updates
    }
}

/// Memory of 8-byte words, so that every type is aligned.
struct Memory(Vec<u64>);

impl Memory {
    fn marked(bytes: usize) -> Self {
        Self(vec![u64::from_ne_bytes([MARK; 8]); bytes.div_ceil(8)])
    }

    fn of(bytes: &[u8]) -> Self {
        let mut memory = Self::marked(bytes.len());
        memory.bytes_mut()[..bytes.len()].copy_from_slice(bytes);
        memory
    }

    fn bytes(&self) -> &[u8] {
        bytemuck::cast_slice(&self.0)
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        bytemuck::cast_slice_mut(&mut self.0)
    }
}

/// A paged cache of `[blocks, rows, heads, dim]` elements of a format, in one of three orders.
#[derive(Clone, Copy, Debug)]
struct Cache {
    shape: [usize; 4],
    order: Order,
    format: Format,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Order {
    /// `[blocks, rows, heads, dim]`.
    Rows,
    /// `[blocks, heads, rows, dim]`.
    Heads,
    /// `[blocks, heads, dim, rows]`.
    Columns,
}

impl Order {
    const ALL: [Self; 3] = [Self::Rows, Self::Heads, Self::Columns];
}

impl Cache {
    fn strides(&self) -> [isize; 4] {
        let [_, rows, heads, dim] = self.shape.map(usize::cast_signed);
        let block = rows * heads * dim;
        match self.order {
            Order::Rows => [block, heads * dim, dim, 1],
            Order::Heads => [block, dim, rows * dim, 1],
            Order::Columns => [block, 1, dim * rows, rows],
        }
    }

    fn element(&self) -> usize {
        dtype_of(self.format).size()
    }

    fn memory(&self) -> Memory {
        Memory::marked(self.shape.iter().product::<usize>() * self.element())
    }

    /// Number of updates along the last axis.
    fn wide(&self) -> usize {
        self.shape[3] * if self.format.is_packed() { 2 } else { 1 }
    }

    fn updates_shape(&self, tokens: usize) -> [usize; 3] {
        [tokens, self.shape[2], self.wide()]
    }

    /// The naive loop: writes each token to its slot, one element after another.
    fn expected(&self, slots: &[i32], values: &[f32], scale: &Scale, scaling: Scaling) -> Memory {
        let mut memory = self.memory();
        let [_, rows, heads, dim] = self.shape;
        let (element, wide) = (self.element(), self.wide());
        for (token, &slot) in slots.iter().enumerate().filter(|&(_, &slot)| slot >= 0) {
            let slot = usize::try_from(slot).expect("a small slot");
            for (head, at) in (0..heads).flat_map(|head| (0..dim).map(move |at| (head, at))) {
                let place = [slot / rows, slot % rows, head, at].map(usize::cast_signed);
                let offset: isize = place
                    .iter()
                    .zip(self.strides())
                    .map(|(at, by)| at * by)
                    .sum();
                let pairs = wide / dim;
                let sources: Vec<_> = (0..pairs)
                    .map(|part| {
                        let place = [token, head, at * pairs + part];
                        let value = values[(place[0] * heads + place[1]) * wide + place[2]];
                        let (scale, zero) = scale.at(place, heads, wide);
                        let value = match scaling {
                            Scaling::Reciprocal => value * (1.0 / scale),
                            _ => value / scale,
                        };
                        (value, zero)
                    })
                    .collect();
                let start = offset.cast_unsigned() * element;
                let code = encode(self.format, &sources);
                memory.bytes_mut()[start..start + element].copy_from_slice(&code);
            }
        }
        memory
    }
}

/// A scale and a zero point for updates of shape `[tokens, heads, wide]`.
#[derive(Clone, Debug)]
struct Scale {
    shape: Vec<usize>,
    scale: Vec<f32>,
    zero: Option<Vec<i32>>,
}

impl Scale {
    /// Draws a scale of one of several shapes. `zero`: the range of the zero points.
    fn draw(updates: [usize; 3], zero: Option<(i32, i32)>, random: &mut Random) -> Self {
        let [tokens, heads, wide] = updates;
        let shapes = [
            vec![],
            vec![tokens, 1, 1],
            vec![wide],
            vec![heads, wide],
            vec![heads, 1],
            vec![tokens, heads, wide],
        ];
        let shape = shapes[random.below(shapes.len())].clone();
        let count = shape.iter().product();
        let scale = (0..count)
            .map(|_| 0.25 + f32::from(u8::try_from(random.below(200)).expect("small")) / 64.0);
        let scale = scale.collect();
        let zero = zero.filter(|_| !random.one_in(3)).map(|(low, high)| {
            let span = usize::try_from(high - low + 1).expect("a range");
            let one = |random: &mut Random| low + i32::try_from(random.below(span)).expect("small");
            (0..count).map(|_| one(random)).collect()
        });
        Self { shape, scale, zero }
    }

    fn at(&self, place: [usize; 3], heads: usize, wide: usize) -> (f32, i32) {
        let [token, head, at] = place;
        let number = match self.shape.len() {
            0 => 0,
            1 => at,
            2 if self.shape[1] == 1 => head,
            2 => head * wide + at,
            _ if self.shape[1] == 1 && self.shape[2] == 1 && (heads, wide) != (1, 1) => token,
            _ => (token * heads + head) * wide + at,
        };
        (
            self.scale[number],
            self.zero.as_ref().map_or(0, |zero| zero[number]),
        )
    }

    fn conversion<'a>(&'a self, format: Format, scaling: Scaling) -> Conversion<'a> {
        let conversion = Conversion::new().format(format).scaling(scaling);
        let scale = TensorView::contiguous(&self.scale, &self.shape).expect("a scale");
        let conversion = conversion.scale(scale);
        match &self.zero {
            Some(zero) => conversion
                .zero_point(TensorView::contiguous(zero, &self.shape).expect("zero points")),
            None => conversion,
        }
    }
}

fn draw_slots(tokens: usize, slots: usize, random: &mut Random) -> Vec<i32> {
    let draw = |random: &mut Random| match random.below(8) {
        0 => -1 - i32::try_from(random.below(9)).expect("small"),
        _ => i32::try_from(random.below(slots)).expect("small"),
    };
    (0..tokens).map(|_| draw(random)).collect()
}

/// Runs one random write by all methods, and compares it with the naive loop.
fn check(cache: Cache, tokens: usize, execution: Execution<'_>, random: &mut Random) {
    let dtype = random.pick(&[DType::F32, DType::F16, DType::BF16]);
    let shape = cache.updates_shape(tokens);
    let updates = Updates::draw(dtype, shape.iter().product(), random);
    let slots = draw_slots(tokens, cache.shape[0] * cache.shape[1], random);
    let scale = Scale::draw(shape, cache.format.integer_range(), random);
    let scaling = random.pick(&[Scaling::Divide, Scaling::Reciprocal]);
    let scaled = (&scale.shape, scale.zero.is_some());
    let what = format!("{cache:?}, {tokens} tokens of {dtype}, {scaled:?}, {scaling}");
    let expected = cache.expected(&slots, &updates.values, &scale, scaling);
    let memory = Memory::of(&updates.bytes);
    let source = || AnyView::from_bytes(memory.bytes(), dtype, Layout::contiguous(&shape));
    let strides = cache.strides();
    let layout = Layout::strided(&cache.shape, &strides).expect("a layout");
    let conversion = scale.conversion(cache.format, scaling);
    let scatter = Scatter::paged().execution(execution);
    let plan = scatter
        .plan(layout, TensorView::from(&slots))
        .expect("a plan");
    for planned in [false, true, true] {
        let mut data = cache.memory();
        let dtype = dtype_of(cache.format);
        let view = AnyViewMut::from_bytes(data.bytes_mut(), dtype, layout).expect("data");
        let source = source().expect("updates");
        let done = match planned {
            false => {
                let converting = scatter.clone().convert(conversion);
                converting.in_place(view, TensorView::from(&slots), source)
            }
            true => {
                let run = plan.run().execution(execution);
                run.convert(conversion).in_place(view, source)
            }
        };
        assert_eq!(done, Ok(()), "{what}");
        assert!(
            data.bytes() == expected.bytes(),
            "{what}, planned: {planned}"
        );
    }
}

#[test]
fn every_format_layout_and_scale() {
    let mut random = Random::new(41);
    for format in Format::ALL {
        for order in Order::ALL {
            for _ in 0..6 {
                let mut size = |most: usize| 1 + random.below(most);
                let shape = [size(4), size(5), size(3), size(70)];
                let tokens = size(12) - 1;
                let cache = Cache {
                    shape,
                    order,
                    format,
                };
                let set = random.pick(&InstructionSet::ALL);
                let execution = Execution::new().force_instruction_set(set);
                check(cache, tokens, execution, &mut random);
            }
        }
    }
}

/// Calls that one worker runs, and calls of more than 1 MiB, which workers divide, with 1 to 8
/// workers.
#[test]
fn any_number_of_workers_writes_the_same_bits() {
    let mut random = Random::new(42);
    for (blocks, tokens) in [(40, 100), (600, 3000)] {
        for order in Order::ALL {
            for format in [Format::F8E4M3Fn, Format::I8, Format::BF16, Format::I4] {
                for workers in [
                    Workers::Sequential,
                    Workers::Threads,
                    Workers::CallingThread,
                ] {
                    let cache = Cache {
                        shape: [blocks, 8, 4, 64],
                        order,
                        format,
                    };
                    workers.with(|pool: &dyn Pool| {
                        check(cache, tokens, Execution::new().pool(pool), &mut random);
                    });
                }
            }
        }
    }
    for workers in 1..=8 {
        let cache = Cache {
            shape: [600, 8, 4, 64],
            order: Order::Heads,
            format: Format::F8E5M2,
        };
        let pool = rayon_pool(workers);
        check(cache, 3000, Execution::new().pool(pool), &mut random);
    }
}

/// Fewer windows than workers, in calls of more than 1 MiB: windows are cut into columns.
#[test]
fn few_long_windows() {
    let mut random = Random::new(43);
    for (format, dim) in [
        (Format::U8, 350_001),
        (Format::U4, 350_003),
        (Format::F16, 262_500),
    ] {
        for (tokens, heads) in [(1, 1), (3, 1), (2, 3)] {
            let cache = Cache {
                shape: [2, 2, heads, dim],
                order: Order::Heads,
                format,
            };
            let pool = rayon_pool(8);
            check(cache, tokens, Execution::new().pool(pool), &mut random);
        }
    }
}

/// Keys and values of several layers in one call: two layouts, two types, and a write without a
/// conversion.
#[test]
fn several_writes_are_one_call() {
    let mut random = Random::new(44);
    for (blocks, tokens) in [(30, 5), (1500, 4000)] {
        let caches = [
            (Order::Rows, Format::F8E4M3Fn),
            (Order::Columns, Format::I8),
            (Order::Rows, Format::BF16),
            (Order::Heads, Format::U4),
        ];
        let caches = caches.map(|(order, format)| Cache {
            shape: [blocks, 8, 2, 48],
            order,
            format,
        });
        let slots = draw_slots(tokens, blocks * 8, &mut random);
        let updates = caches.map(|cache| {
            let count = cache.updates_shape(tokens).iter().product();
            Updates::draw(DType::BF16, count, &mut random)
        });
        let scales = caches.map(|cache| {
            Scale::draw(
                cache.updates_shape(tokens),
                cache.format.integer_range(),
                &mut random,
            )
        });
        let one = Scale {
            shape: vec![],
            scale: vec![1.0],
            zero: None,
        };
        let sources = [0, 1, 2, 3].map(|at| Memory::of(&updates[at].bytes));
        let shapes = caches.map(|cache| cache.updates_shape(tokens));
        let strides = caches.map(|cache| cache.strides());
        let mut memories = caches.map(|cache| cache.memory());
        let mut writes: Vec<_> = (memories.iter_mut().enumerate())
            .map(|(at, memory)| {
                let layout = Layout::strided(&caches[at].shape, &strides[at]).expect("a layout");
                let dtype = dtype_of(caches[at].format);
                let data = AnyViewMut::from_bytes(memory.bytes_mut(), dtype, layout);
                let shape = Layout::contiguous(&shapes[at]);
                let source = AnyView::from_bytes(sources[at].bytes(), DType::BF16, shape);
                let write = Write::new(data.expect("data"), source.expect("updates"));
                match caches[at].format {
                    Format::BF16 => write,
                    format => write.convert(scales[at].conversion(format, Scaling::Divide)),
                }
            })
            .collect();
        let done = Scatter::paged().write_all(TensorView::from(&slots), &mut writes);
        assert_eq!(done, Ok(()));
        drop(writes);
        for (at, cache) in caches.iter().enumerate() {
            let scale = if at == 2 { &one } else { &scales[at] };
            let values = &updates[at].values;
            let expected = cache.expected(&slots, values, scale, Scaling::Divide);
            assert!(
                memories[at].bytes() == expected.bytes(),
                "{cache:?}, {tokens}"
            );
        }
    }
}

/// Other operators than slots: an inner axis, tuples, sequences of a cache, and single elements.
#[test]
fn other_operators_convert_too() {
    let data = || [7_i8; 24];
    let values: Vec<f32> = (0_i8..24).map(|at| f32::from(at) * 2.5 - 9.0).collect();
    let conversion = Conversion::new();
    let round = |at: usize| encode(Format::I8, &[(values[at], 0)])[0].cast_signed();
    let run =
        |scatter: Scatter<'_>, shape: &[usize], indices: (&[i64], &[usize]), updates: &[usize]| {
            let mut data = data();
            let count = updates.iter().product();
            let done = scatter.convert(conversion).in_place(
                TensorViewMut::contiguous(&mut data, shape).expect("data"),
                TensorView::contiguous(indices.0, indices.1).expect("indices"),
                TensorView::contiguous(&values[..count], updates).expect("updates"),
            );
            assert_eq!(done, Ok(()), "{shape:?}");
            data
        };
    let along = run(Scatter::along(1), &[2, 3, 4], (&[2, -3], &[2]), &[2, 2, 4]);
    let expected = [
        4, 5, 6, 7, -1, -1, -1, -1, 0, 1, 2, 3, 12, 13, 14, 15, -1, -1, -1, -1, 8, 9, 10, 11,
    ];
    let by = |expected: [i32; 24]| expected.map(|at| usize::try_from(at).map_or(7, round));
    assert_eq!(along, by(expected));
    let nd = run(Scatter::nd(), &[2, 3, 4], (&[1, 2, 0, 1], &[2, 2]), &[2, 4]);
    let mut expected = [-1; 24];
    (expected[20..].iter_mut().zip(0..4)).for_each(|(to, at)| *to = at);
    (expected[4..8].iter_mut().zip(4..8)).for_each(|(to, at)| *to = at);
    assert_eq!(nd, by(expected));
    let cache = Scatter::cache(1, ndscatter::CacheMode::Circular);
    let cache = run(cache, &[2, 3, 4], (&[2, 0], &[2]), &[2, 2, 4]);
    let expected = [
        4, 5, 6, 7, -1, -1, -1, -1, 0, 1, 2, 3, 8, 9, 10, 11, 12, 13, 14, 15, -1, -1, -1, -1,
    ];
    assert_eq!(cache, by(expected));
    let elements = run(
        Scatter::elements(1),
        &[4, 6],
        (&[5, 0, 5, 2], &[2, 2]),
        &[2, 2],
    );
    let mut expected = [-1; 24];
    (expected[5], expected[0], expected[11], expected[8]) = (0, 1, 2, 3);
    assert_eq!(elements, by(expected));
}

/// Values that only the roundings treat differently, and the same type with a rounding that clamps.
#[test]
fn the_rounding_and_the_format_are_used() {
    let values = [500.0_f32, f32::NAN, -1000.0, 0.0];
    let expected = [
        (Rounding::NearestEven, [0x7f, 0x7f, 0xff, 0]),
        (Rounding::Saturate, [0x7e, 0x7f, 0xfe, 0]),
        (Rounding::SaturateNan, [0x7e, 0x7e, 0xfe, 0]),
    ];
    let positions = [0_i64, 1, 2, 3];
    for (rounding, expected) in expected {
        let mut data = [MARK; 4];
        let conversion = Conversion::new()
            .format(Format::F8E4M3Fn)
            .rounding(rounding);
        let view = TensorViewMut::from(&mut data);
        let done = Scatter::along(0).convert(conversion).in_place(
            view,
            TensorView::from(&positions),
            TensorView::from(&values),
        );
        assert_eq!((done, data), (Ok(()), expected), "{rounding}");
    }
    let mut data = [0.0_f32; 4];
    let infinite = [f32::INFINITY, 1.0, f32::NEG_INFINITY, 2.0];
    let clamped = Conversion::new().rounding(Rounding::Saturate);
    let done = Scatter::along(0).convert(clamped).in_place(
        TensorViewMut::from(&mut data),
        TensorView::from(&positions),
        TensorView::from(&infinite),
    );
    assert_eq!((done, data), (Ok(()), [f32::MAX, 1.0, f32::MIN, 2.0]));
}

/// Runs one write that is refused, and checks that the data is unchanged.
fn refused<T: Element + PartialEq, U: Element>(
    scatter: &Scatter<'_>,
    conversion: Conversion<'_>,
    (data, shape): (&[T], &[usize]),
    slots: &[i64],
    (updates, updates_shape): (&[U], &[usize]),
    expected: &ScatterError,
) {
    let before = data;
    let mut data = data.to_vec();
    let done = scatter.clone().convert(conversion).in_place(
        TensorViewMut::contiguous(&mut data, shape).expect("data"),
        TensorView::from(slots),
        TensorView::contiguous(updates, updates_shape).expect("updates"),
    );
    assert_eq!(done.as_ref(), Err(expected), "{shape:?}");
    assert_eq!(data, before, "unchanged: {expected}");
}

/// Runs a valid write, except for its conversion, to data of `u8`.
fn refused_conversion(conversion: Conversion<'_>, expected: &ScatterError) {
    let (data, updates) = ([7_u8; 16], [1.0_f32; 8]);
    let data = (&data[..], &[2, 2, 4][..]);
    let updates = (&updates[..], &[2, 4][..]);
    refused(
        &Scatter::paged(),
        conversion,
        data,
        &[0, 3],
        updates,
        expected,
    );
}

#[test]
fn errors_come_before_the_first_write() {
    let (scatter, data, shape) = (Scatter::paged(), [7_u8; 16], [2, 2, 4]);
    let (keys, slots) = ([1.0_f32; 8], [0_i64, 3]);
    let fp8 = Conversion::new().format(Format::F8E4M3Fn);
    let (data, updates) = ((&data[..], &shape[..]), (&keys[..], &[2, 4][..]));

    for bad in [0.0, -0.0, -1.0, f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
        let scales = [1.0, 2.0, bad, 1.0];
        let scale = TensorView::from(&scales);
        refused_conversion(
            fp8.scale(scale),
            &ScatterError::InvalidScale { position: 2 },
        );
        let rows = [1.0, bad];
        let scale = TensorView::contiguous(&rows, &[2, 1]).expect("a scale");
        refused_conversion(
            fp8.scale(scale),
            &ScatterError::InvalidScale { position: 1 },
        );
    }
    // Subnormal scales are valid.
    let tiny = [f32::from_bits(1)];
    let mut written = [7_u8; 16];
    let done = scatter
        .clone()
        .convert(fp8.scale(TensorView::from(&tiny)))
        .in_place(
            TensorViewMut::contiguous(&mut written, &shape).expect("data"),
            TensorView::from(&slots),
            TensorView::contiguous(&keys, &[2, 4]).expect("updates"),
        );
    assert_eq!((done, written[0]), (Ok(()), 0x7f));

    let wrong_type = [1_i32];
    let mismatch = |tensor, expected, actual| ScatterError::DTypeMismatch {
        tensor,
        expected,
        actual,
    };
    refused_conversion(
        fp8.scale(TensorView::from(&wrong_type)),
        &mismatch("scale", DType::F32, DType::I32),
    );
    let three = [1.0_f32; 3];
    refused_conversion(
        fp8.scale(TensorView::from(&three)),
        &ScatterError::BroadcastShape {
            tensor: "scale",
            shape: vec![3],
            updates: vec![2, 4],
        },
    );
    let zeros = [0_i32, 0, 0, -1];
    let u8s = Conversion::new();
    refused_conversion(
        u8s.zero_point(TensorView::from(&zeros)),
        &ScatterError::ZeroPointOutOfRange {
            position: 3,
            zero_point: -1,
            format: Format::U8,
        },
    );
    let option = "zero_point";
    refused_conversion(
        fp8.zero_point(TensorView::from(&zeros)),
        &ScatterError::UnsupportedOption { option },
    );
    refused_conversion(
        Conversion::new().format(Format::F16),
        &ScatterError::DataFormat {
            dtype: DType::U8,
            format: Some(Format::F16),
        },
    );
    let shape_error = |expected, actual| ScatterError::UpdatesShape {
        expected,
        actual,
        one_tuple: None,
    };
    let int4 = Conversion::new().format(Format::I4);
    refused_conversion(int4, &shape_error(vec![2, 8], vec![2, 4]));
    refused(
        &scatter,
        int4,
        data,
        &slots,
        (&[1.0_f32; 14], &[2, 7]),
        &shape_error(vec![2, 8], vec![2, 7]),
    );
    // The indices of the data of shape [2, 2, 4] are one tuple of one coordinate.
    let one_tuple = ScatterError::UpdatesShape {
        expected: vec![2, 8],
        actual: vec![1, 2, 8],
        one_tuple: Some(1),
    };
    let rows = (&[1.0_f32; 16][..], &[1, 2, 8][..]);
    refused(&Scatter::nd(), int4, data, &[1], rows, &one_tuple);
    refused(
        &scatter,
        fp8,
        data,
        &slots,
        (&[1.0_f32; 6], &[2, 3]),
        &shape_error(vec![2, 4], vec![2, 3]),
    );
    let (from, to) = (DType::F64, Format::F8E4M3Fn);
    let refused_type = ScatterError::UnsupportedConversion { from, to };
    refused(
        &scatter,
        fp8,
        data,
        &slots,
        (&[1.0_f64; 8], &[2, 4]),
        &refused_type,
    );

    let option = "reduction";
    let sum = Scatter::paged().reduction(Reduction::Add);
    refused(
        &sum,
        fp8,
        data,
        &slots,
        updates,
        &ScatterError::UnsupportedOption { option },
    );
    let slot = ScatterError::SlotOutOfBounds {
        position: 1,
        slot: 4,
        blocks: 2,
        block_size: 2,
    };
    refused(&scatter, fp8, data, &[0, 4], updates, &slot);
    let strict = Scatter::paged().bounds(Bounds::Error);
    let slot = ScatterError::SlotOutOfBounds {
        position: 0,
        slot: -1,
        blocks: 2,
        block_size: 2,
    };
    refused(&strict, fp8, data, &[-1, 0], updates, &slot);
    let reject = Scatter::paged().duplicates(Duplicates::Reject);
    let (tuple, earlier) = (1, 0);
    refused(
        &reject,
        fp8,
        data,
        &[3, 3],
        updates,
        &ScatterError::DuplicateIndex { tuple, earlier },
    );
    // Bytes of an unknown type can hold several formats.
    let unknown = ScatterError::DataFormat {
        dtype: DType::Bytes1,
        format: None,
    };
    refused(
        &scatter,
        Conversion::new(),
        (&[[7_u8]; 16], &shape),
        &slots,
        updates,
        &unknown,
    );
    // Single elements have no last axis whose values could be pairs.
    let elements = Scatter::elements(0);
    let option = "format";
    let no_axis = ScatterError::UnsupportedOption { option };
    refused(
        &elements,
        int4,
        (&[7_u8; 4], &[4]),
        &[0, 1],
        (&[1.0_f32; 4], &[4]),
        &no_axis,
    );
}

#[test]
fn an_error_of_one_write_leaves_all_data_unchanged() {
    let slots = [0_i64, 3];
    let (mut first, mut second) = ([7_u8; 4], [7_u8; 6]);
    let updates = [1.0_f32, 2.0];
    let run = |first: &mut [u8], second: &mut [u8], shape: &[usize]| {
        let mut writes = [(first, &[2, 2][..]), (second, shape)].map(|(data, shape)| {
            let data = TensorViewMut::contiguous(data, shape).expect("data");
            Write::new(data, TensorView::from(&updates)).convert(Conversion::new())
        });
        Scatter::paged().write_all(TensorView::from(&slots), &mut writes)
    };
    let error = ScatterError::SlotOutOfBounds {
        position: 1,
        slot: 3,
        blocks: 1,
        block_size: 3,
    };
    assert_eq!(run(&mut first, &mut second[..3], &[1, 3]), Err(error));
    assert_eq!((first, second), ([7; 4], [7; 6]));
    assert_eq!(run(&mut first, &mut second, &[2, 3]), Ok(()));
    assert_eq!((first, second), ([1, 7, 7, 2], [1, 7, 7, 2, 7, 7]));
    let none: Result<(), _> = Scatter::paged().write_all(TensorView::from(&slots), &mut []);
    assert_eq!(none, Ok(()), "no writes");
}

/// Views from raw parts may share memory. A call refuses this if a write changes the memory.
#[test]
#[expect(unsafe_code, reason = "makes views that overlap")]
fn shared_memory_is_refused() {
    let mut memory = [7_u8; 64];
    let base = memory.as_mut_ptr();
    let shape = [2, 2, 4];
    // SAFETY: the views are inside `memory`, and nothing else uses it while they exist.
    let data = |at: usize| unsafe {
        AnyViewMut::from_raw_parts(base.add(at), DType::U8, Layout::contiguous(&shape))
            .expect("data")
    };
    // SAFETY: as above.
    let scale_at = |at: usize| unsafe {
        AnyView::from_raw_parts(base.add(at).cast(), DType::F32, Layout::contiguous(&[]))
            .expect("a scale")
    };
    let (keys, slots) = ([1.0_f32; 8], [0_i64, 3]);
    let updates = || TensorView::contiguous(&keys, &[2, 4]).expect("updates");
    let run =
        |writes: &mut [Write<'_>]| Scatter::paged().write_all(TensorView::from(&slots), writes);
    let fp8 = Conversion::new().format(Format::F8E5M2);
    let two = |at| {
        [
            Write::new(data(0), updates()).convert(fp8),
            Write::new(data(at), updates()).convert(fp8),
        ]
    };
    let (first, second) = (0, 1);
    assert_eq!(
        run(&mut two(15)),
        Err(ScatterError::TensorsOverlap { first, second })
    );
    assert_eq!(run(&mut two(16)), Ok(()), "neighbours");
    let aligned = base.align_offset(4);
    let tensor = "scale";
    let scaled = |at| fp8.scale(scale_at(at));
    let mut overlapping = [Write::new(data(aligned), updates()).convert(scaled(aligned + 12))];
    assert_eq!(
        run(&mut overlapping),
        Err(ScatterError::InputOverlap { tensor })
    );
}

/// A write to data of the type of the updates also checks the zero point.
#[test]
fn floats_that_keep_their_type_have_no_zero_point() {
    let (mut cache, zeros) = ([0.0_f32; 4], [0_i32]);
    let outcome = Scatter::along(0)
        .convert(Conversion::new().zero_point(TensorView::from(&zeros)))
        .in_place(
            TensorViewMut::from(&mut cache),
            TensorView::from(&[1_i64]),
            TensorView::from(&[1.0_f32]),
        );
    let option = "zero_point";
    assert_eq!(outcome, Err(ScatterError::UnsupportedOption { option }));
    assert_eq!(cache, [0.0; 4]);
}

/// Keys and values in one buffer `[blocks, 2, rows, dim]`: the views interleave, and share no byte.
/// The decision takes no longer for more blocks.
#[test]
#[expect(unsafe_code, reason = "makes views that interleave")]
fn interleaved_caches_are_told_apart() {
    const BLOCKS: usize = 50_000;
    let mut memory = vec![7_u8; BLOCKS * 16];
    let base = memory.as_mut_ptr();
    let (shape, strides) = ([BLOCKS, 2, 4], [16, 4, 1]);
    // SAFETY: the views are inside `memory`, and nothing else uses it while they exist.
    let half = |at: usize| unsafe {
        let layout = Layout::strided(&shape, &strides).expect("a layout");
        AnyViewMut::from_raw_parts(base.add(at), DType::U8, layout).expect("data")
    };
    let rows = [1.0_f32; 4];
    let updates = TensorView::contiguous(&rows, &[1, 4]).expect("updates");
    let mut writes =
        [half(0), half(8)].map(|data| Write::new(data, updates).convert(Conversion::new()));
    let done = Scatter::paged().write_all(TensorView::from(&[99_999_i64]), &mut writes);
    assert_eq!(done, Ok(()), "no shared byte");
    let mut writes =
        [half(0), half(7)].map(|data| Write::new(data, updates).convert(Conversion::new()));
    let done = Scatter::paged().write_all(TensorView::from(&[99_999_i64]), &mut writes);
    let (first, second) = (0, 1);
    assert_eq!(
        done,
        Err(ScatterError::TensorsOverlap { first, second }),
        "one shared byte"
    );
}

/// Shapes, scales and options are checked before indices, for all writes of a call.
#[test]
fn indices_are_checked_last() {
    let out_of_bounds = [9_i64, 1];
    let run = |conversion: Conversion<'_>, count: usize| {
        let (mut first, mut second, rows) = ([7_u8; 4], [7_u8; 4], [1.0_f32; 3]);
        let mut writes = [(&mut first, 2), (&mut second, count)].map(|(data, count)| {
            let updates = TensorView::from(&rows[..count]);
            Write::new(TensorViewMut::from(data), updates).convert(conversion)
        });
        Scatter::along(0).write_all(TensorView::from(&out_of_bounds), &mut writes)
    };
    let shape = Err(ScatterError::UpdatesShape {
        expected: vec![2],
        actual: vec![3],
        one_tuple: None,
    });
    assert_eq!(run(Conversion::new(), 3), shape, "the second write");
    let scale = [f32::NAN];
    let scaled = Conversion::new().scale(TensorView::from(&scale));
    let position = 0;
    assert_eq!(
        run(scaled, 2),
        Err(ScatterError::InvalidScale { position }),
        "a scale"
    );
    let bounds = run(Conversion::new(), 2);
    assert!(
        matches!(bounds, Err(ScatterError::IndexOutOfBounds { .. })),
        "{bounds:?}"
    );
    let floats = [1.0_f32];
    let none = Scatter::along(0).write_all(AnyView::from(TensorView::from(&floats)), &mut []);
    let actual = DType::F32;
    assert_eq!(
        none,
        Err(ScatterError::IndexType { actual }),
        "without writes"
    );
}

/// A reciprocal that is infinite would make NaN of zero.
#[test]
fn scales_have_finite_factors() {
    let run = |scale: f32, scaling| {
        let mut data = [7_i8];
        let scale = [scale];
        let conversion = Conversion::new().scaling(scaling);
        let done = Scatter::along(0)
            .convert(conversion.scale(TensorView::from(&scale)))
            .in_place(
                TensorViewMut::from(&mut data),
                TensorView::from(&[0_i64]),
                TensorView::from(&[0.0_f32]),
            );
        done.map(|()| data[0])
    };
    let tiny = 2_f32.powi(-128);
    let position = 0;
    assert_eq!(run(tiny, Scaling::Divide), Ok(0), "0 / scale");
    assert_eq!(
        run(tiny, Scaling::Reciprocal),
        Err(ScatterError::InvalidScale { position }),
        "infinite"
    );
    assert_eq!(run(2_f32.powi(-127), Scaling::Reciprocal), Ok(0), "finite");
}

/// Windows without elements are not visited: there may be more of them than a loop can visit.
#[test]
fn empty_windows_take_no_time() {
    let many = 1 << (usize::BITS / 2 + 8);
    let (mut data, rows) = ([0_i8; 0], [0.0_f32; 0]);
    let done = Scatter::along(1).convert(Conversion::new()).in_place(
        TensorViewMut::contiguous(&mut data, &[many, 4, 0]).expect("data"),
        TensorView::from(&[2_i64]),
        TensorView::contiguous(&rows, &[many, 1, 0]).expect("updates"),
    );
    assert_eq!(done, Ok(()), "no elements");
}

/// A pool that counts its runs.
#[derive(Debug, Default)]
struct Counting(AtomicUsize);

impl Pool for Counting {
    fn workers(&self) -> Option<usize> {
        Some(3)
    }

    fn run(&self, tasks: usize, task: &(dyn Fn(usize) + Sync)) {
        self.0.fetch_add(1, Ordering::Relaxed);
        (0..tasks).for_each(task);
    }
}

/// Workers divide a call from 1 MiB on that the call reads and writes. A packed element of data has
/// two updates.
#[test]
fn calls_are_divided_from_one_mebibyte_on() {
    let rows = |count: usize, format: Format, wide: usize| {
        let (shape, updates_shape) = ([count, 1024], [count, 1024 * wide]);
        let (mut data, updates) = (vec![0_u8; count * 1024], vec![1.0_f32; count * 1024 * wide]);
        let indices: Vec<_> = (0_i64..).take(count).collect();
        let pool = Counting::default();
        let scatter = Scatter::along(0).execution(Execution::new().pool(&pool));
        let done = scatter.convert(Conversion::new().format(format)).in_place(
            TensorViewMut::contiguous(&mut data, &shape).expect("data"),
            TensorView::from(&indices[..]),
            TensorView::contiguous(&updates, &updates_shape).expect("updates"),
        );
        assert_eq!(done, Ok(()), "{count} rows of {format}");
        let code = if wide == 2 { 0x11 } else { 1 };
        assert!(
            data.iter().all(|&byte| byte == code),
            "{count} rows of {format}"
        );
        pool.0.into_inner()
    };
    // 5 KiB for each row of `u8`, and 9 KiB for each row of `u4`.
    assert_eq!(
        (rows(204, Format::U8, 1), rows(205, Format::U8, 1)),
        (0, 1),
        "u8"
    );
    assert_eq!(
        (rows(113, Format::U4, 2), rows(114, Format::U4, 2)),
        (0, 1),
        "u4"
    );
}

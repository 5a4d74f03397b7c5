//! The operands of users: bytes, byte strides, slices, one value for all updates, and types that
//! the crate does not know. It also checks the texts of messages.

use std::fmt::Debug;

use bytemuck::{Pod, cast_slice, cast_slice_mut};
use ndscatter::{
    AnyView, AnyViewMut, Bounds, CacheMode, CallingThread, Cloned, DType, Element, Execution,
    Gather, Layout, LayoutBuf, Reduction, Scatter, ScatterError, Schedule, TensorView,
    TensorViewMut,
};

#[test]
fn bytes_are_viewed_without_a_copy() {
    let mut table: Vec<u32> = (0..12).collect();
    // Every other column, with rows in reverse order. The strides are in bytes, as in array
    // libraries.
    let layout = LayoutBuf::with_byte_strides(&[3, 2], &[-16, 8], DType::U32).expect("multiples");
    let updates = [100_u32, 200];
    Scatter::along(0)
        .reduction(Reduction::Add)
        .in_place(
            AnyViewMut::from_bytes(cast_slice_mut(&mut table), DType::U32, layout.as_layout())
                .expect("the layout is inside the bytes"),
            TensorView::from(&[0_u8]),
            AnyView::from_bytes(
                cast_slice(&updates),
                DType::U32,
                Layout::contiguous(&[1, 2]),
            )
            .expect("the layout is inside the bytes"),
        )
        .expect("valid");
    let expected = [0, 1, 2, 3, 4, 5, 6, 7, 108, 9, 210, 11];
    assert_eq!(table, expected, "the last row, columns 0 and 2");
}

#[test]
fn bytes_that_do_not_fit_are_errors() {
    let bytes = [0_u64; 4];
    let bytes: &[u8] = cast_slice(&bytes);
    let layout = Layout::contiguous(&[9]);
    let refused = AnyView::from_bytes(bytes, DType::F32, layout).err();
    let expected = ScatterError::BytesLength {
        shape: vec![9],
        dtype: DType::F32,
        needed: 36,
        actual: 32,
    };
    assert_eq!(refused, Some(expected), "too long");
    let odd = AnyView::from_bytes(&bytes[1..], DType::F32, Layout::line(7)).err();
    assert!(
        matches!(odd, Some(ScatterError::Misaligned { .. })),
        "{odd:?}"
    );
    assert!(
        AnyView::from_bytes(&bytes[1..], DType::Bytes4, Layout::line(7)).is_ok(),
        "any address"
    );
    let stride = LayoutBuf::with_byte_strides(&[2], &[6], DType::F32).err();
    let expected = ScatterError::ByteStride {
        axis: 0,
        stride: 6,
        dtype: DType::F32,
    };
    assert_eq!(
        stride,
        Some(expected),
        "a stride that is not a multiple of the size"
    );
    assert!(
        LayoutBuf::with_byte_strides(&[1], &[6], DType::F32).is_ok(),
        "the stride of a single element is not used"
    );
    let none = AnyView::from_bytes(&[], DType::F64, Layout::contiguous(&[0, 3]));
    assert!(none.is_ok(), "no elements");
}

/// A foreign boolean may be any byte. Such a byte is not moved into a Rust `bool`.
#[test]
fn foreign_bytes_are_not_booleans_of_rust() {
    let mut flags = [false; 2];
    let updates = AnyView::from_bytes(&[2], DType::Bool, Layout::line(1))
        .expect("the layout is inside the bytes");
    let refused = Scatter::along(0).in_place(
        AnyViewMut::from(TensorViewMut::from(&mut flags)),
        TensorView::from(&[1_u8]),
        updates,
    );
    let tensor = "updates";
    assert_eq!(
        refused,
        Err(ScatterError::ForeignBool { tensor }),
        "2 is not a bool"
    );
}

#[test]
fn slices_of_any_length_are_tensors_of_rank_1() {
    for len in [0, 1, 7] {
        let mut values = vec![1_i64; len];
        let view = TensorViewMut::from(&mut values);
        assert_eq!(view.shape(), [len], "as long as the slice");
        assert_eq!(view.layout().shape(), [len], "the layout's shape");
        let indices: Vec<usize> = (0..len).rev().collect();
        let updates: Vec<i64> = (10..).take(len).collect();
        (Scatter::elements(0))
            .in_place(view, TensorView::from(&indices), TensorView::from(&updates))
            .expect("valid");
        let expected: Vec<i64> = updates.into_iter().rev().collect();
        assert_eq!(values, expected, "in reverse order");
    }
    // A slice of zero-sized elements may have more elements than a layout allows.
    let many = [(); usize::MAX];
    let view = Cloned(TensorView::from(&many[..]));
    let taken = Gather::along(0)
        .allocate(view, TensorView::from(&[5_u8]))
        .expect("the element exists");
    assert_eq!(taken, [()], "one element");
}

#[test]
fn one_value_stands_for_all_updates() {
    // Large enough that several workers have private copies of the counts.
    let keys: Vec<u16> = (0..1000)
        .map(|key| key * 7 % 1000)
        .cycle()
        .take(300_000)
        .collect();
    let ones = vec![1_u32; keys.len()];
    for bins in [1000, 70_000] {
        let mut expected = vec![0_u32; bins];
        let scatter = Scatter::along(0).reduction(Reduction::Add);
        scatter
            .in_place(
                TensorViewMut::from(&mut expected),
                TensorView::from(&keys),
                TensorView::from(&ones),
            )
            .expect("valid");
        for execution in executions() {
            let mut counts = vec![0_u32; bins];
            let shape = [keys.len()];
            let one = TensorView::splat(&1, &shape).expect("one dimension");
            (scatter.clone().execution(execution))
                .in_place(
                    TensorViewMut::from(&mut counts),
                    TensorView::from(&keys),
                    one,
                )
                .expect("valid");
            assert_eq!(counts, expected, "{execution:?}");
        }
    }
    one_value_stands_for_rows(&keys[..9000]);
    let mut rows = [0.0; 6];
    let half = TensorView::splat(&0.5, &[2, 3]).expect("two dimensions");
    let target = TensorViewMut::contiguous(&mut rows, &[2, 3]).expect("six");
    (Scatter::along(0).reduction(Reduction::Add))
        .in_place(target, TensorView::from(&[1_u8, 1]), half)
        .expect("valid");
    assert_eq!(rows, [0.0, 0.0, 0.0, 1.0, 1.0, 1.0], "rows of one value");
    let far = [1; 65];
    let refused = ScatterError::StridesRank {
        shape: far.to_vec(),
        strides: vec![0; 64],
    };
    assert_eq!(TensorView::splat(&0, &far).err(), Some(refused.clone()));
    assert_eq!(
        AnyView::splat(&[0], DType::U8, &far).err(),
        Some(refused),
        "more dimensions than are supported"
    );
    let short = AnyView::splat(&[0; 3], DType::I32, &[2]);
    assert!(short.is_err(), "three bytes of a 4-byte element");
}

/// Returns the crate's choice of a schedule, and every forced schedule.
fn executions() -> impl Iterator<Item = Execution<'static>> {
    let forced = Schedule::ALL.map(|schedule| Execution::new().force_schedule(schedule));
    std::iter::once(Execution::new()).chain(forced)
}

/// Checks one value for all updates against updates that contain every element, for contiguous and
/// transposed outputs.
fn one_value_stands_for_rows(keys: &[u16]) {
    const ROWS: usize = 500;
    let keys: Vec<usize> = keys.iter().map(|&key| usize::from(key) % ROWS).collect();
    for (width, reduction) in [
        (3, Reduction::Add),
        (24, Reduction::None),
        (24, Reduction::Add),
        (24, Reduction::Mean),
        (24, Reduction::Max),
    ] {
        let (shape, transposed) = ([ROWS, width], [1, ROWS.cast_signed()]);
        let updates_shape = [keys.len(), width];
        let value = 2.5_f32;
        let repeated = vec![value; keys.len() * width];
        let repeated = TensorView::contiguous(&repeated, &updates_shape).expect("rows");
        let splat = TensorView::splat(&value, &updates_shape).expect("rows");
        let run = |updates, strides: Option<&[isize]>, execution| {
            let mut data = vec![1.25_f32; ROWS * width];
            let target = match strides {
                None => TensorViewMut::contiguous(&mut data, &shape),
                Some(strides) => TensorViewMut::strided(&mut data, 0, &shape, strides),
            };
            (Scatter::along(0).reduction(reduction).execution(execution))
                .in_place(target.expect("a table"), TensorView::from(&keys), updates)
                .expect("valid");
            data
        };
        for strides in [None, Some(&transposed[..])] {
            let expected = run(repeated, strides, Execution::new());
            for execution in executions() {
                let got = run(splat, strides, execution);
                assert!(
                    got == expected,
                    "{reduction}, {width}, {strides:?}, {execution:?}"
                );
            }
        }
    }
}

/// Checks elements that are only moved, at unaligned addresses, with several schedules. The output
/// is large enough for streaming stores.
fn check_moves<T: Element + Pod + PartialEq + Debug>(value: impl Fn(usize) -> T) {
    const ROWS: usize = 3000;
    let width = 8192 / size_of::<T>();
    let element = size_of::<T>();
    let bytes = |values: &[T]| [&[0xaa_u8][..], cast_slice(values)].concat();
    let data: Vec<T> = (0..ROWS * width).map(&value).collect();
    let updates: Vec<T> = (0..7 * width).map(|at| value(at * 31 + 5)).collect();
    let rows = [4_i64, 2999, -2, 17, 18, 5, 1000];
    let mut expected = data.clone();
    for (row, update) in rows.iter().zip(updates.chunks(width)) {
        let row = usize::try_from(row.rem_euclid(3000)).expect("in range");
        expected[row * width..][..width].copy_from_slice(update);
    }
    let (data, updates, expected) = (bytes(&data), bytes(&updates), bytes(&expected));
    let (shape, update_shape) = ([ROWS, width], [7, width]);
    for schedule in [
        None,
        Some(Schedule::Serial),
        Some(Schedule::ByTuple),
        Some(Schedule::LastWrite),
    ] {
        let execution = Execution::new();
        let execution = schedule.map_or(execution, |forced| execution.force_schedule(forced));
        let mut output = vec![0xaa_u8; 1 + ROWS * width * element];
        Scatter::along(0)
            .execution(execution)
            .write_into(
                AnyView::from_bytes(&data[1..], T::DTYPE, Layout::contiguous(&shape))
                    .expect("any address"),
                TensorView::from(&rows),
                AnyView::from_bytes(&updates[1..], T::DTYPE, Layout::contiguous(&update_shape))
                    .expect("any address"),
                AnyViewMut::from_bytes(&mut output[1..], T::DTYPE, Layout::contiguous(&shape))
                    .expect("any address"),
            )
            .expect("valid");
        assert!(output == expected, "{}, {schedule:?}", T::DTYPE);
    }
    let one = [value(1)];
    let refused = (Scatter::along(0).reduction(Reduction::Add)).allocate(
        TensorView::from(&one),
        TensorView::from(&[0_u8]),
        TensorView::from(&one),
    );
    let expected = ScatterError::UnsupportedReduction {
        reduction: Reduction::Add,
        dtype: T::DTYPE,
    };
    assert_eq!(
        refused.err(),
        Some(expected),
        "the elements are not numbers"
    );
    let zeros = (Gather::along(0).bounds(Bounds::Skip))
        .allocate(TensorView::from(&one), TensorView::from(&[0_u8, 9]))
        .expect("skipped");
    assert_eq!(zeros, [value(1), T::zeroed()], "zeros for skipped indices");
}

#[test]
fn types_that_the_crate_does_not_know_are_moved() {
    let byte = |at: usize| u8::try_from(at * 37 % 251).expect("small");
    check_moves(|at| [byte(at)]);
    check_moves(|at| [byte(at), byte(at + 1)]);
    check_moves(|at| [byte(at), byte(at + 1), 3, 4]);
    check_moves(|at| [byte(at), byte(at + 1), 3, 4, 5, 6, 7, byte(at + 2)]);
    check_moves(|at| {
        [[byte(at); 8], [byte(at + 1); 8]]
            .concat()
            .try_into()
            .unwrap_or([0_u8; 16])
    });
}

#[test]
fn gathers_allocate_clones() {
    let names = ["a", "b", "c"].map(String::from);
    let names = Cloned(TensorView::from(&names));
    let picked = Gather::along(0).allocate(names, TensorView::from(&[2_usize, 2, 0]));
    assert_eq!(
        picked.expect("in range").into_vec(),
        ["c", "c", "a"],
        "clones"
    );
    let skipped =
        (Gather::along(0).bounds(Bounds::Skip)).allocate(names, TensorView::from(&[2_u8]));
    let option = "bounds";
    assert_eq!(
        skipped.err(),
        Some(ScatterError::UnsupportedOption { option }),
        "clones have no zero"
    );
}

#[test]
fn updates_shape_returns_the_shape_of_updates() {
    let ask = |scatter: Scatter<'_>, data: &[usize], indices: &[usize]| {
        scatter.updates_shape(data, indices)
    };
    assert_eq!(
        ask(Scatter::nd(), &[4, 5, 6], &[7, 2]),
        Ok(vec![7, 6]),
        "tuples"
    );
    assert_eq!(
        ask(Scatter::along(1), &[4, 5, 6], &[2, 3]),
        Ok(vec![4, 2, 3, 6]),
        "an axis"
    );
    assert_eq!(
        ask(Scatter::elements(0), &[4, 5], &[2, 3]),
        Ok(vec![2, 3]),
        "elements"
    );
    let cache = Scatter::cache(-2, CacheMode::Linear).update_len(3);
    assert_eq!(
        ask(cache, &[2, 8, 9, 4], &[2]),
        Ok(vec![2, 8, 3, 4]),
        "a cache"
    );
    assert!(
        ask(Scatter::nd(), &[4], &[1, 2]).is_err(),
        "tuples that do not fit"
    );
}

#[test]
fn messages_say_what_to_do() {
    let cache = [0.0_f32; 8 * 8 * 16 * 4];
    let data = TensorView::contiguous(&cache, &[8, 8, 16, 4]).expect("a cache");
    let update = [0.0_f32; 8 * 8 * 4];
    let updates = TensorView::contiguous(&update, &[8, 8, 4]).expect("a dimension too few");
    let error = Scatter::cache(-2, CacheMode::Linear)
        .execution(Execution::new().pool(&CallingThread))
        .allocate(data, TensorView::from(&[0_i64; 8]), updates)
        .expect_err("another rank");
    let text = error.to_string();
    assert!(
        text.contains("[8, 8, 16, 4]") && text.contains("up to 16 along axis 2"),
        "{text}"
    );
    let bytes = [0_u64; 2];
    let bytes: &[u8] = cast_slice(&bytes);
    let error =
        AnyView::from_bytes(&bytes[1..], DType::F32, Layout::line(2)).expect_err("an odd address");
    assert!(
        error.to_string().contains("is not aligned for f32"),
        "{error}"
    );
    let error = ScatterError::WriteIndex {
        batch: 1,
        index: -3,
        update_len: 1,
        cache_len: 9,
        mode: CacheMode::Circular,
    };
    assert!(
        error.to_string().ends_with("must begin at 0 or later"),
        "{error}"
    );
}

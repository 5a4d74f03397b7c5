//! Slots of a paged cache: the rule for negative slots and for slots that are too large, layouts of
//! engines, and the errors of shapes. The random cases, the determinism cases and the cases with
//! changing indices have the operator too.

use ndscatter::{
    Bounds, Duplicates, Gather, Layout, Reduction, Scatter, ScatterError, TensorView, TensorViewMut,
};

/// A cache of 3 blocks of 4 slots, and 3 updates.
const SHAPE: [usize; 3] = [3, 4, 2];
const UPDATES: [i32; 6] = [1, 2, 3, 4, 5, 6];

fn write(scatter: &Scatter<'_>, slots: &[i64; 3]) -> Result<[i32; 24], ScatterError> {
    let mut cache = [0; 24];
    let data = TensorViewMut::contiguous(&mut cache, &SHAPE)?;
    let updates = TensorView::contiguous(&UPDATES, &[3, 2])?;
    scatter.in_place(data, TensorView::from(slots), updates)?;
    Ok(cache)
}

fn out_of_bounds(position: usize, slot: i128) -> ScatterError {
    let (blocks, block_size) = (3, 4);
    ScatterError::SlotOutOfBounds {
        position,
        slot,
        blocks,
        block_size,
    }
}

#[test]
fn a_slot_is_a_row_of_a_block() {
    let cache = write(&Scatter::paged(), &[5, 11, 0]).expect("valid slots");
    assert_eq!((&cache[10..12], &cache[22..]), (&[1, 2][..], &[3, 4][..]));
    assert_eq!(cache[..2], [5, 6], "slot 0");
    assert_eq!(cache.iter().sum::<i32>(), 21, "nothing else is written");
}

#[test]
fn negative_slots_are_skipped_and_large_slots_are_errors() {
    let cache = write(&Scatter::paged(), &[-1, i64::MIN, 3]).expect("unused entries");
    assert_eq!(cache[6..8], [5, 6]);
    assert_eq!(cache.iter().sum::<i32>(), 11, "the others are skipped");
    for slot in [12, 13, i64::MAX] {
        let refused = write(&Scatter::paged(), &[0, slot, -1]);
        assert_eq!(refused, Err(out_of_bounds(1, slot.into())));
    }
    let strict = Scatter::paged().bounds(Bounds::Error);
    assert_eq!(write(&strict, &[0, -1, 1]), Err(out_of_bounds(1, -1)));
    let skipping = Scatter::paged().bounds(Bounds::Skip);
    let cache = write(&skipping, &[99, -1, 1]).expect("all are skipped but one");
    assert_eq!(cache[2..4], [5, 6]);
    let wrapping = Scatter::paged().negative_indices(true);
    let cache = write(&wrapping, &[-1, -12, -13]).expect("slots from the end");
    assert_eq!((&cache[22..], &cache[..2]), (&[1, 2][..], &[3, 4][..]));
}

#[test]
fn the_last_of_several_updates_of_a_slot_stays() {
    let cache = write(&Scatter::paged(), &[7, -1, 7]).expect("a duplicate");
    assert_eq!(cache[14..16], [5, 6]);
    let rejecting = Scatter::paged().duplicates(Duplicates::Reject);
    let (tuple, earlier) = (2, 0);
    let refused = Err(ScatterError::DuplicateIndex { tuple, earlier });
    assert_eq!(write(&rejecting, &[7, -1, 7]), refused);
    let sums = Scatter::paged().reduction(Reduction::Add);
    let cache = write(&sums, &[7, -1, 7]).expect("a sum");
    assert_eq!(cache[14..16], [6, 8]);
}

/// In a large cache with the heads before the rows, the offsets of slots need a sort to find
/// duplicates, and the numbers of the slots need a bitmap.
#[test]
fn duplicates_of_large_caches() -> Result<(), ScatterError> {
    const SHAPE: [usize; 4] = [64, 16, 8, 520];
    const STRIDES: [isize; 4] = [8 * 16 * 520, 520, 16 * 520, 1];
    let distinct: Vec<i64> = (0..70).map(|at| at * 577 % 1024).collect();
    let mut repeated = distinct.clone();
    repeated[66] = repeated[3];
    let mut skipped = repeated.clone();
    skipped[0] = -1;
    for (slots, duplicate) in [
        (&distinct, None),
        (&repeated, Some((66, 3))),
        (&skipped, Some((66, 3))),
    ] {
        let updates: Vec<u8> = (0..=250).cycle().take(70 * 8 * 520).collect();
        let mut expected = vec![0; 64 * 16 * 8 * 520];
        for (token, &slot) in slots.iter().enumerate() {
            let Ok(slot) = usize::try_from(slot) else {
                continue;
            };
            for head in 0..8 {
                let to = ((slot / 16 * 8 + head) * 16 + slot % 16) * 520;
                let from = (token * 8 + head) * 520;
                expected[to..to + 520].copy_from_slice(&updates[from..from + 520]);
            }
        }
        let mut cache = vec![0; expected.len()];
        let updates = TensorView::contiguous(&updates, &[70, 8, 520])?;
        let mut write = |scatter: Scatter<'_>| {
            let data = TensorViewMut::strided(&mut cache, 0, &SHAPE, &STRIDES)?;
            scatter.in_place(data, TensorView::from(slots.as_slice()), updates)
        };
        let written = write(Scatter::paged().duplicates(Duplicates::Reject));
        match duplicate {
            None => written?,
            Some((tuple, earlier)) => {
                assert_eq!(
                    written,
                    Err(ScatterError::DuplicateIndex { tuple, earlier })
                );
                write(Scatter::paged())?;
            }
        }
        assert!(cache == expected, "duplicate: {duplicate:?}");
    }
    Ok(())
}

#[test]
fn other_operators_skip_only_negative_indices_too() {
    let skip = |index: &[i64; 3]| {
        let data = TensorView::from(&[0; 5]);
        let scatter = Scatter::along(0).negative_indices(false);
        let scatter = scatter.bounds(Bounds::SkipNegative);
        let done = scatter.allocate(data, TensorView::from(index), TensorView::from(&[1, 2, 3]));
        done.map(|done| done.into_vec())
    };
    assert_eq!(skip(&[4, -1, 0]), Ok(vec![3, 0, 0, 0, 1]));
    let (tuple, axis, index, size) = (2, 0, 5, 5);
    let refused = ScatterError::IndexOutOfBounds {
        tuple,
        axis,
        index,
        size,
    };
    assert_eq!(skip(&[4, -1, 5]), Err(refused));
    // An index that is too large is an error also if another coordinate of its tuple is negative.
    let scatter = Scatter::nd().negative_indices(false);
    let done = scatter.bounds(Bounds::SkipNegative).allocate(
        TensorView::contiguous(&[0; 6], &[2, 3]).expect("data"),
        TensorView::contiguous(&[0_i64, -1, -1, 3], &[2, 2]).expect("indices"),
        TensorView::from(&[1, 2]),
    );
    let refused = ScatterError::IndexOutOfBounds {
        tuple: 1,
        axis: 1,
        index: 3,
        size: 3,
    };
    assert_eq!(done.map(drop), Err(refused));
}

/// Caches of engines, as views `[blocks, block_size, heads, dim]`: rows of all heads, rows of each
/// head, and columns.
#[test]
fn layouts_of_engines() {
    let [blocks, rows, heads, dim] = [5_isize, 4, 3, 6];
    let layouts = [
        [rows * heads * dim, heads * dim, dim, 1],
        [heads * rows * dim, dim, rows * dim, 1],
        [heads * dim * rows, 1, dim * rows, rows],
    ];
    let shape = [5, 4, 3, 6];
    let slots = [13_i32, 2, -1, 19, 2, 0];
    let updates: Vec<i32> = (1..=6 * 18).collect();
    let updates = TensorView::contiguous(&updates, &[6, 3, 6]).expect("updates");
    for strides in layouts {
        let mut expected = vec![0; 360];
        for (token, slot) in slots.into_iter().enumerate().filter(|&(_, slot)| slot >= 0) {
            for (head, at) in (0..heads).flat_map(|head| (0..dim).map(move |at| (head, at))) {
                let slot = isize::try_from(slot).expect("a small slot");
                let place = [slot / rows, slot % rows, head, at];
                let offset: isize = place.iter().zip(strides).map(|(at, step)| at * step).sum();
                let value = token * 18 + usize::try_from(head * dim + at).expect("a position") + 1;
                expected[offset.cast_unsigned()] = i32::try_from(value).expect("a small value");
            }
        }
        let mut cache = vec![0; 360];
        let view = TensorViewMut::strided(&mut cache, 0, &shape, &strides).expect("a view");
        let scatter = Scatter::paged();
        let done = scatter.in_place(view, TensorView::from(&slots), updates);
        assert_eq!(done, Ok(()), "{strides:?} of {blocks} blocks");
        assert_eq!(cache, expected, "{strides:?}");

        let layout = Layout::strided(&shape, &strides).expect("a layout");
        let plan = scatter
            .plan(layout, TensorView::from(&slots))
            .expect("a plan");
        assert_eq!((plan.tuples(), plan.skipped()), (5, 1), "{strides:?}");
        let mut again = vec![0; 360];
        let view = TensorViewMut::strided(&mut again, 0, &shape, &strides).expect("a view");
        assert_eq!(plan.run().in_place(view, updates), Ok(()), "{strides:?}");
        assert_eq!(again, expected, "{strides:?}, planned");

        let view = TensorView::strided(&cache, 0, &shape, &strides).expect("a view");
        let read = Gather::paged().allocate(view, TensorView::from(&[19_i64, -5]));
        let read = read.expect("valid slots");
        let row: Vec<i32> = (3 * 18 + 1..=4 * 18).collect();
        assert_eq!((&read[..18], &read[18..]), (&row[..], &[0; 18][..]));
    }
}

#[test]
fn shapes() {
    let paged = Scatter::paged();
    let shape = paged.updates_shape(&[7, 16, 8, 64], &[3, 5]);
    assert_eq!(shape, Ok(vec![3, 5, 8, 64]));
    let refused = paged.updates_shape(&[7], &[3]);
    assert_eq!(refused, Err(ScatterError::PagedRank { rank: 1 }));
}

/// Blocks of no slots, rows of no elements, and lists that repeat one slot by stride 0.
#[test]
fn caches_without_elements() {
    let run = |shape: &[usize], slot: i64, count: usize| {
        let mut cache = [0_i32; 0];
        let data = TensorViewMut::contiguous(&mut cache, shape)?;
        let slots = TensorView::splat(&slot, std::slice::from_ref(&count))?;
        let updates_shape = [&[count], &shape[2..]].concat();
        Scatter::paged().in_place(data, slots, TensorView::splat(&1, &updates_shape)?)
    };
    let refused = |slot, blocks, block_size| {
        Err(ScatterError::SlotOutOfBounds {
            position: 0,
            slot,
            blocks,
            block_size,
        })
    };
    assert_eq!(run(&[3, 0, 2], 0, 1), refused(0, 3, 0), "no slots");
    assert_eq!(run(&[3, 0, 2], -1, 1), Ok(()));
    assert_eq!(run(&[3, 0, 2], 0, 0), Ok(()), "no tuples");
    let many = 1 << (usize::BITS / 2 + 8);
    assert_eq!(run(&[3, 4, 0], 11, many), Ok(()), "empty windows");
    assert_eq!(run(&[3, 4, 0], -7, many), Ok(()));
    assert_eq!(run(&[3, 4, 0], 12, many), refused(12, 3, 4));
}

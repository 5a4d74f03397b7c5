//! Idle sequences of a cache. With `Bounds::Skip`, a sequence with a negative position is skipped.

use ndscatter::{
    Bounds, CacheMode, CallingThread, Execution, Layout, Scatter, ScatterError, TensorView,
    TensorViewMut,
};

const MODES: [CacheMode; 2] = [CacheMode::Linear, CacheMode::Circular];

/// Shapes of three sequences of five positions with two elements, and of updates with two
/// positions.
const CACHE: [usize; 3] = [3, 5, 2];
const UPDATE: [usize; 3] = [3, 2, 2];

fn write(mode: CacheMode) -> Scatter<'static> {
    Scatter::cache(1, mode).bounds(Bounds::Skip).update_len(2)
}

/// Returns the expected cache. The update contains the numbers from 1 on.
fn expected(mode: CacheMode, starts: &[i64]) -> Vec<i32> {
    let mut cache = vec![0; 30];
    for (sequence, &start) in starts.iter().enumerate() {
        let Ok(start) = usize::try_from(start) else {
            continue;
        };
        for row in 0..2 {
            let position = match mode {
                CacheMode::Linear => start + row,
                CacheMode::Circular => (start + row) % 5,
            };
            for column in 0..2 {
                let update = 1 + (sequence * 2 + row) * 2 + column;
                cache[(sequence * 5 + position) * 2 + column] = update.try_into().expect("small");
            }
        }
    }
    cache
}

#[test]
fn a_negative_position_drops_its_sequence() {
    let updates: Vec<i32> = (1..=12).collect();
    let updates = TensorView::contiguous(&updates, &UPDATE).expect("updates");
    for mode in MODES {
        for starts in [
            [1, -1, 3],
            [-1, -5, i64::MIN],
            [-1, 0, 2],
            [0, 3, -7],
            [3, 2, 1],
        ] {
            let expected = expected(mode, &starts);
            let skipped = 2 * starts.iter().filter(|&&start| start < 0).count();
            let view = TensorView::from(&starts);
            let mut cache = vec![0; 30];
            let target = TensorViewMut::contiguous(&mut cache, &CACHE).expect("a cache");
            write(mode)
                .in_place(target, view, updates)
                .expect("valid positions");
            assert_eq!(cache, expected, "{starts:?}, {mode:?}");
            let plan = write(mode)
                .plan(Layout::contiguous(&CACHE), view)
                .expect("a plan");
            assert_eq!(plan.skipped(), skipped, "{starts:?}, {mode:?}");
            assert_eq!(plan.tuples(), 6 - skipped, "{starts:?}, {mode:?}");
            assert_eq!(
                plan.has_duplicates(),
                Ok(false),
                "rows have distinct destinations"
            );
            let zeros = [0; 30];
            let data = TensorView::contiguous(&zeros, &CACHE).expect("a cache");
            let alone = plan.run().execution(Execution::new().pool(&CallingThread));
            let got = alone.allocate(data, updates).expect("valid positions");
            assert_eq!(got, expected, "{starts:?}, {mode:?}, planned");
        }
    }
}

#[test]
fn a_position_for_all_may_be_negative_too() {
    let updates = [7; 12];
    let updates = TensorView::contiguous(&updates, &UPDATE).expect("updates");
    let start = [-1_i8];
    let start = TensorView::contiguous(&start, &[]).expect("one position");
    for mode in MODES {
        let mut cache = [0; 30];
        let target = TensorViewMut::contiguous(&mut cache, &CACHE).expect("a cache");
        write(mode)
            .in_place(target, start, updates)
            .expect("all sequences are idle");
        assert_eq!(cache, [0; 30], "{mode:?}");
    }
}

#[test]
fn a_position_without_room_stays_an_error() {
    let updates = [7; 12];
    let updates = TensorView::contiguous(&updates, &UPDATE).expect("updates");
    let mut cache = [0; 30];
    let target = TensorViewMut::contiguous(&mut cache, &CACHE).expect("a cache");
    let starts = TensorView::from(&[-1_i64, 4, 0]);
    let error = write(CacheMode::Linear).in_place(target, starts, updates);
    let expected = ScatterError::WriteIndex {
        batch: 1,
        index: 4,
        update_len: 2,
        cache_len: 5,
        mode: CacheMode::Linear,
    };
    assert_eq!(error, Err(expected.clone()), "no room for two positions");
    assert!(expected.to_string().contains("at 0 to 3"), "{expected}");
    assert_eq!(cache, [0; 30], "nothing is written");
}

/// Positions of rows without elements are counted too.
#[test]
fn rows_without_elements_are_skipped_too() {
    let none: [u8; 0] = [];
    let starts = TensorView::from(&[1_i64, -1, -2]);
    for mode in MODES {
        let plan = write(mode)
            .plan(Layout::contiguous(&[3, 5, 0]), starts)
            .expect("a plan");
        assert_eq!((plan.tuples(), plan.skipped()), (2, 4), "{mode:?}");
        let data = TensorView::contiguous(&none, &[3, 5, 0]).expect("no elements");
        let updates = TensorView::contiguous(&none, &[3, 2, 0]).expect("no elements");
        let result = plan.run().allocate(data, updates).expect("nothing to do");
        assert!(result.is_empty(), "{mode:?}");
    }
}

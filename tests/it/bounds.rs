//! Indices out of bounds, duplicates, and positions in a cache, as cases computed by hand. They
//! check the reference and the crate.

use crate::common::api::Methods;
use crate::common::by_hand::{Case, contiguous};
use crate::common::harness::{Operator, Options};
use crate::common::refused::{check_indices_refused, numbers};
use ndscatter::{
    Bounds, CacheMode, Duplicates, Reduction, Scatter, ScatterError, TensorView, TensorViewMut,
    tensor_scatter,
};

fn options(operator: Operator) -> Options<'static> {
    Options::new(operator, Reduction::None)
}

mod cases {
    use super::{
        Bounds, Case, Duplicates, Methods, Operator, Reduction, Scatter, ScatterError, TensorView,
        TensorViewMut, check_indices_refused, contiguous, numbers, options,
    };

    /// The sizes of a tensor's dimensions.
    type Shape = &'static [usize];

    /// A repeated tuple, and the earlier tuple with equal destination.
    type Repeat = (usize, usize);

    /// Three rows of two elements.
    const ROWS: (&[usize], &[i32]) = (&[3, 2], &[1, 2, 3, 4, 5, 6]);

    #[test]
    fn skip_drops_the_tuple() {
        let case = Case {
            data: ROWS,
            indices: (&[4, 1], &[3, -1, -4, i64::MIN]),
            updates: (&[4, 2], &[10, 10, 20, 20, 30, 30, 40, 40]),
            expected: &[1, 2, 3, 4, 25, 26],
        };
        let mut options = options(Operator::Nd);
        options.bounds = Bounds::Skip;
        case.check(Reduction::Add, &options);
        let case = Case {
            expected: &[1, 2, 3, 4, 20, 20],
            ..case
        };
        case.check(Reduction::None, &options);
    }

    #[test]
    fn skip_drops_the_whole_window_for_one_coordinate() {
        let case = Case {
            data: (&[2, 2, 2], &[1, 2, 3, 4, 5, 6, 7, 8]),
            // The first coordinate out of bounds, the second out of bounds, neither out of bounds.
            indices: (&[3, 2], &[1, 2, -3, 0, 0, -1]),
            updates: (&[3, 2], &[90, 91, 92, 93, 30, 40]),
            expected: &[1, 2, 33, 44, 5, 6, 7, 8],
        };
        let mut options = options(Operator::Nd);
        options.bounds = Bounds::Skip;
        case.check(Reduction::Add, &options);
    }

    #[test]
    fn clamp_moves_each_coordinate_to_its_nearest_end() {
        let case = Case {
            data: ROWS,
            // -4 is first counted from the end, which gives -1. It is then clamped to 0.
            indices: (&[4, 2], &[2, 9, -4, 1, i64::MAX, i64::MIN, -1, -1]),
            updates: (&[4], &[10, 20, 30, 40]),
            // The destinations are [2, 1], [0, 1], [2, 0], [2, 1].
            expected: &[1, 22, 3, 4, 35, 56],
        };
        let mut options = options(Operator::Nd);
        options.bounds = Bounds::Clamp;
        case.check(Reduction::Add, &options);
        // Along an axis, and for each element.
        let along = Case {
            data: ROWS,
            indices: (&[3], &[5, -2, -3]),
            updates: (&[3, 3], &[10, 20, 30, 40, 50, 60, 70, 80, 90]),
            expected: &[51, 12, 113, 44, 175, 76],
        };
        options.operator = Operator::Update { axis: 1 };
        along.check(Reduction::Add, &options);
        let elements = Case {
            data: ROWS,
            indices: (&[3, 2], &[5, -9, 0, 0, -1, 1]),
            updates: (&[3, 2], &[10, 20, 30, 40, 50, 60]),
            // The rows are 2, 0, 2 in column 0, and 0, 0, 1 in column 1.
            expected: &[1 + 30, 2 + 20 + 40, 3, 4 + 60, 5 + 10 + 50, 6],
        };
        options.operator = Operator::Elements { axis: 0 };
        elements.check(Reduction::Add, &options);
    }

    #[test]
    fn a_forbidden_negative_clamps_to_the_front_and_skips() {
        let case = Case {
            data: (&[3], &[1, 2, 3]),
            indices: (&[3, 1], &[-1, i64::MIN, 1]),
            updates: (&[3], &[10, 20, 30]),
            expected: &[31, 32, 3],
        };
        let mut options = options(Operator::Nd);
        options.negative_indices = false;
        options.bounds = Bounds::Clamp;
        case.check(Reduction::Add, &options);
        options.bounds = Bounds::Skip;
        let case = Case {
            expected: &[1, 32, 3],
            ..case
        };
        case.check(Reduction::Add, &options);
    }

    /// The crate compares an index with the bounds in the type of the index, before a cast.
    #[test]
    fn extremes_of_every_index_type() {
        fn check<I: ndscatter::Index>(low: I, high: I) {
            for bounds in [Bounds::Skip, Bounds::Clamp] {
                let mut data = [1, 2, 3];
                Scatter::nd()
                    .bounds(bounds)
                    .in_place(
                        TensorViewMut::contiguous(&mut data, &[3]).expect("data"),
                        TensorView::contiguous(&[high, low], &[2, 1]).expect("indices"),
                        TensorView::contiguous(&[10, 20], &[2]).expect("updates"),
                    )
                    .expect("the case is valid");
                // The smallest value of an unsigned type is 0, which is in bounds.
                let expected = match bounds {
                    Bounds::Clamp => [20, 2, 10],
                    _ if format!("{low:?}") == "0" => [20, 2, 3],
                    _ => [1, 2, 3],
                };
                assert_eq!(data, expected, "{bounds:?} of {low:?} and {high:?}");
            }
        }
        check(i8::MIN, i8::MAX);
        check(i16::MIN, i16::MAX);
        check(i32::MIN, i32::MAX);
        check(i64::MIN, i64::MAX);
        check(u8::MIN, u8::MAX);
        check(u16::MIN, u16::MAX);
        check(u32::MIN, u32::MAX);
        check(u64::MIN, u64::MAX);
    }

    #[test]
    fn an_axis_without_elements_has_nothing_to_clamp_to() {
        let expected = ScatterError::IndexOutOfBounds {
            tuple: 0,
            axis: 1,
            index: 0,
            size: 0,
        };
        let data = [2, 0, 2];
        for bounds in [Bounds::Error, Bounds::Clamp] {
            let mut along = options(Operator::Update { axis: 1 });
            along.bounds = bounds;
            let indices = numbers(&[2], &[0_i64, 5]);
            check_indices_refused::<i32>(&along, &data, &indices, &[2, 2, 2], &expected);
            let mut nd = options(Operator::Nd);
            nd.bounds = bounds;
            let indices = numbers(&[1, 2], &[1_i64, 0]);
            check_indices_refused::<i32>(&nd, &data, &indices, &[1, 2], &expected);
            let mut elements = options(Operator::Elements { axis: 1 });
            elements.bounds = bounds;
            let indices = numbers(&[2, 1, 2], &[0_i64, 0, 1, 1]);
            check_indices_refused::<i32>(&elements, &data, &indices, &[2, 1, 2], &expected);
        }
        let mut elements = options(Operator::Elements { axis: 1 });
        elements.bounds = Bounds::Skip;
        let case = Case {
            data: (&data, &[]),
            indices: (&[2, 1, 2], &[0, 0, 1, 1]),
            updates: (&[2, 1, 2], &[1, 2, 3, 4]),
            expected: &[],
        };
        case.check(Reduction::Add, &elements);
    }

    #[test]
    fn the_window_may_be_empty() {
        // A clamped or skipped index writes no element, because the window is empty.
        let case: Case<'_, i32> = Case {
            data: (&[3, 0], &[]),
            indices: (&[2, 1], &[7, -9]),
            updates: (&[2, 0], &[]),
            expected: &[],
        };
        for bounds in [Bounds::Skip, Bounds::Clamp] {
            let mut options = options(Operator::Nd);
            options.bounds = bounds;
            case.check(Reduction::Add, &options);
        }
    }

    #[test]
    fn duplicates_are_compared_after_clamping() {
        let cases: [(Operator, Shape, Shape, &[i64], Repeat); 5] = [
            (Operator::Nd, &[3], &[2, 1], &[2, 7], (1, 0)),
            (Operator::Nd, &[3], &[4, 1], &[1, -9, 8, 0], (3, 1)),
            (Operator::Nd, &[3, 2], &[2, 2], &[1, 5, 1, 1], (1, 0)),
            (
                Operator::Update { axis: 0 },
                &[3, 0],
                &[2],
                &[9, -1],
                (1, 0),
            ),
            (
                Operator::Elements { axis: 1 },
                &[2, 3],
                &[2, 2],
                &[0, 1, 4, 3],
                (3, 2),
            ),
        ];
        for (operator, data, shape, values, (tuple, earlier)) in cases {
            let indices = numbers(shape, values);
            let updates = operator.updates_shape(data, shape);
            let expected = ScatterError::DuplicateIndex { tuple, earlier };
            for reduction in Reduction::ALL {
                let mut options = options(operator);
                options.execution = reduction.into();
                options.bounds = Bounds::Clamp;
                options.duplicates = Duplicates::Reject;
                check_indices_refused::<i32>(&options, data, &indices, &updates, &expected);
            }
        }
    }

    #[test]
    fn a_forbidden_negative_and_0_are_duplicates_once_clamped() {
        let mut options = options(Operator::Nd);
        options.bounds = Bounds::Clamp;
        options.negative_indices = false;
        options.duplicates = Duplicates::Reject;
        let indices = numbers(&[3, 1], &[-1_i64, 2, 0]);
        let (tuple, earlier) = (2, 0);
        let expected = ScatterError::DuplicateIndex { tuple, earlier };
        check_indices_refused::<i32>(&options, &[3], &indices, &[3], &expected);
    }

    #[test]
    fn skipped_tuples_are_not_duplicates() {
        let mut options = options(Operator::Nd);
        options.bounds = Bounds::Skip;
        options.duplicates = Duplicates::Reject;
        let case = Case {
            data: (&[3], &[1, 2, 3]),
            indices: (&[5, 1], &[9, 1, 9, -4, 9]),
            updates: (&[5], &[10, 20, 30, 40, 50]),
            expected: &[1, 20, 3],
        };
        case.check(Reduction::None, &options);
        // Tuples that are not skipped can still be duplicates, also with skipped tuples between
        // them.
        let indices = numbers(&[4, 1], &[1_i64, 9, 9, -2]);
        let (tuple, earlier) = (3, 0);
        let expected = ScatterError::DuplicateIndex { tuple, earlier };
        check_indices_refused::<i32>(&options, &[3], &indices, &[4], &expected);
        // A tuple with one coordinate out of bounds is skipped, so it is not a duplicate.
        let indices = [1, 9, 1, 1, 1, 9];
        let case = Case {
            data: (&[2, 2], &[1, 2, 3, 4]),
            indices: (&[3, 2], &indices),
            updates: (&[3], &[10, 20, 30]),
            expected: &[1, 2, 3, 20],
        };
        case.check(Reduction::None, &options);
    }

    #[test]
    fn whole_tensors_are_duplicates_with_any_bounds() {
        for bounds in Bounds::ALL {
            let mut options = options(Operator::Nd);
            options.bounds = bounds;
            options.duplicates = Duplicates::Reject;
            let indices = contiguous((&[2, 0], &[]), 0_i64);
            let (tuple, earlier) = (1, 0);
            let expected = ScatterError::DuplicateIndex { tuple, earlier };
            check_indices_refused::<i32>(&options, &[3, 2], &indices, &[2, 3, 2], &expected);
            let once = Case {
                data: (&[2], &[1, 2]),
                indices: (&[1, 0], &[]),
                updates: (&[1, 2], &[10, 20]),
                expected: &[11, 22],
            };
            once.check(Reduction::Add, &options);
        }
    }

    #[test]
    fn strings_skip_and_clamp_too() {
        use ndscatter::Cloned;

        let run = |bounds| {
            let mut strings = ["a", "b"].map(String::from);
            let updates = ["x", "y", "z"].map(String::from);
            Scatter::nd()
                .bounds(bounds)
                .in_place(
                    Cloned(TensorViewMut::contiguous(&mut strings, &[2]).expect("two strings")),
                    TensorView::contiguous(&[5_i64, 0, -7], &[3, 1]).expect("three tuples"),
                    Cloned(TensorView::contiguous(&updates, &[3]).expect("three updates")),
                )
                .expect("the case is valid");
            strings
        };
        assert_eq!(run(Bounds::Skip), ["y", "b"], "skip");
        assert_eq!(run(Bounds::Clamp), ["z", "x"], "clamp");
    }

    #[test]
    fn a_plan_reports_its_duplicates() {
        let layout = ndscatter::Layout::contiguous(&[3]);
        let has_duplicates = |bounds, values: &[i64]| {
            let mut options = options(Operator::Elements { axis: 0 });
            options.bounds = bounds;
            let indices = numbers(&[values.len()], values);
            let plan = indices.plan(&options, layout).expect("no error");
            plan.has_duplicates().expect("the allocation succeeds")
        };
        assert!(!has_duplicates(Bounds::Error, &[2, 0]), "two destinations");
        assert!(has_duplicates(Bounds::Error, &[2, 0, -1]), "from the end");
        assert!(has_duplicates(Bounds::Clamp, &[2, 9]), "clamped");
        assert!(!has_duplicates(Bounds::Skip, &[9, 2, 9, -8]), "skipped");
        assert!(has_duplicates(Bounds::Skip, &[2, 9, 2]), "not skipped");
    }

    #[test]
    fn a_plan_skips_and_clamps() {
        for (bounds, expected) in [(Bounds::Skip, [1, 22, 3]), (Bounds::Clamp, [31, 22, 13])] {
            let indices = numbers(&[3, 1], &[7_i64, 1, -9]);
            let mut options = options(Operator::Nd);
            options.bounds = bounds;
            let layout = ndscatter::Layout::contiguous(&[3]);
            let plan = indices.plan(&options, layout).expect("no error");
            let mut data = [1, 2, 3];
            let updates = TensorView::contiguous(&[10, 20, 30], &[3]).expect("updates");
            let view = TensorViewMut::contiguous(&mut data, &[3]).expect("data");
            (plan.run().reduction(Reduction::Add))
                .in_place(view, updates)
                .expect("the plan's layout");
            assert_eq!(data, expected, "{bounds:?}");
        }
    }
}

mod duplicates {
    use super::{Case, Operator, Reduction, options};

    #[test]
    fn the_last_update_wins_and_reductions_apply_each_in_order() {
        let case = Case {
            data: (&[2], &[100.0_f32, 1.0]),
            indices: (&[4], &[0, 1, -2, 0]),
            updates: (&[4], &[1e30, 7.0, -1e30, 3.0]),
            expected: &[3.0, 7.0],
        };
        for operator in [Operator::Update { axis: 0 }, Operator::Elements { axis: 0 }] {
            let options = options(operator);
            case.check(Reduction::None, &options);
            let add = Case {
                // In another order, the sum would be 103.
                expected: &[3.0, 8.0],
                ..case
            };
            add.check(Reduction::Add, &options);
        }
    }
}

mod cache {
    use super::{
        CacheMode, Case, Operator, Reduction, TensorView, TensorViewMut, options, tensor_scatter,
    };

    /// Two sequences of four positions of two numbers.
    const CACHE: (&[usize], &[i32]) = (
        &[2, 4, 2],
        &[1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7, 8, 8],
    );

    fn cache(axis: isize, mode: CacheMode, len: usize) -> super::Options<'static> {
        options(Operator::Cache { axis, mode, len })
    }

    #[test]
    fn linear_positions() {
        let case = Case {
            data: CACHE,
            indices: (&[2], &[2, 0]),
            updates: (&[2, 2, 2], &[10, 11, 12, 13, 20, 21, 22, 23]),
            expected: &[1, 1, 2, 2, 10, 11, 12, 13, 20, 21, 22, 23, 7, 7, 8, 8],
        };
        for axis in [1, -2] {
            case.check(Reduction::None, &cache(axis, CacheMode::Linear, 2));
            // No position wraps, so the result is equal.
            case.check(Reduction::None, &cache(axis, CacheMode::Circular, 2));
        }
    }

    #[test]
    fn circular_positions_continue_at_the_front() {
        let case = Case {
            data: CACHE,
            indices: (&[2], &[3, 4_000_001]),
            updates: (&[2, 2, 2], &[10, 11, 12, 13, 20, 21, 22, 23]),
            // The positions are 3 and 0 in the first sequence, 1 and 2 in the second.
            expected: &[12, 13, 2, 2, 3, 3, 10, 11, 5, 5, 20, 21, 22, 23, 8, 8],
        };
        case.check(Reduction::None, &cache(1, CacheMode::Circular, 2));
        // An update of the whole ring, which begins at position 2.
        let ring = Case {
            data: (&[1, 3], &[1, 2, 3]),
            indices: (&[1], &[2]),
            updates: (&[1, 3], &[10, 20, 30]),
            expected: &[20, 30, 10],
        };
        ring.check(Reduction::None, &cache(1, CacheMode::Circular, 3));
    }

    /// The number of sequences and the other axes are longer than the ring. ONNX's reference
    /// implementation would wrap them too.
    #[test]
    fn only_the_axis_is_wrapped() {
        let case = Case {
            data: (&[3, 2, 3], &[0; 18]),
            indices: (&[3], &[1, 0, 3]),
            updates: (&[3, 1, 3], &[1, 2, 3, 4, 5, 6, 7, 8, 9]),
            expected: &[0, 0, 0, 1, 2, 3, 4, 5, 6, 0, 0, 0, 0, 0, 0, 7, 8, 9],
        };
        case.check(Reduction::None, &cache(1, CacheMode::Circular, 1));
    }

    #[test]
    fn any_axis_except_the_first() {
        let case = Case {
            data: (&[2, 2, 3], &[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11]),
            indices: (&[2], &[1, 2]),
            updates: (&[2, 2, 1], &[-1, -2, -3, -4]),
            expected: &[0, -1, 2, 3, -2, 5, 6, 7, -3, 9, 10, -4],
        };
        for axis in [2, -1] {
            case.check(Reduction::None, &cache(axis, CacheMode::Linear, 1));
        }
    }

    #[test]
    fn one_position_for_all_sequences() {
        let case = Case {
            data: (&[3, 2], &[1, 2, 3, 4, 5, 6]),
            indices: (&[], &[1]),
            updates: (&[3, 1], &[10, 20, 30]),
            expected: &[1, 10, 3, 20, 5, 30],
        };
        case.check(Reduction::None, &cache(1, CacheMode::Linear, 1));
    }

    #[test]
    fn the_function_may_leave_positions_out() {
        let mut data = [1, 2, 3, 4];
        let mut run = |indices: Option<TensorView<'_, i64>>, updates: &[i32; 2]| {
            tensor_scatter(
                TensorViewMut::contiguous(&mut data, &[2, 2]).expect("data"),
                indices,
                TensorView::contiguous(updates, &[2, 1]).expect("updates"),
                -1,
                CacheMode::Linear,
            )
            .expect("the case is valid");
            data
        };
        assert_eq!(run(None, &[10, 30]), [10, 2, 30, 4], "position 0");
        let indices = TensorView::contiguous(&[1, 0], &[2]).expect("two positions");
        assert_eq!(
            run(Some(indices), &[7, 8]),
            [10, 7, 8, 4],
            "given positions"
        );
    }

    #[test]
    fn nothing_to_write() {
        let case = Case {
            data: CACHE,
            indices: (&[2], &[4, 0]),
            updates: (&[2, 0, 2], &[]),
            expected: CACHE.1,
        };
        case.check(Reduction::None, &cache(1, CacheMode::Linear, 0));
        let empty: Case<'_, i32> = Case {
            data: (&[2, 0], &[]),
            indices: (&[2], &[0, 0]),
            updates: (&[2, 0], &[]),
            expected: &[],
        };
        empty.check(Reduction::None, &cache(1, CacheMode::Linear, 0));
        empty.check(Reduction::None, &cache(1, CacheMode::Circular, 0));
    }
}

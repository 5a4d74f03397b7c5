//! Gathers: the examples of ONNX's specification, every small shape, random and large cases, plans,
//! and options. Each result is compared with the reference bit for bit, for every method.

#![allow(
    unsafe_code,
    reason = "bytes of a foreign runtime are passed as raw parts"
)]

use crate::common::Tensor;
use crate::common::api::{GatherOptions, Indices, Method, Methods};
use crate::common::by_hand::Values;
use crate::common::elements::{Palette, Ref};
use crate::common::harness::GatherProblem;
use crate::common::indices::IndexRule;
use crate::common::layouts::{Arrangement, Strided};
use crate::common::operators::Gatherer;
use crate::common::pools::{Sequential, Workers};
use crate::common::random::Random;
use crate::common::refused::numbers;
use crate::common::small::{
    draw_rule, draw_tuples, each_gather, each_gather_elements, each_gather_nd,
};
use crate::with_element;
use ndscatter::{
    AnyView, AnyViewMut, Bounds, Cloned, DType, Gather, Index, InstructionSet, Layout,
    ScatterError, TensorView, TensorViewMut,
};

/// Checks the reference and every method with values computed by hand.
fn check_by_hand<T: Ref>(
    options: &GatherOptions<'_>,
    data: Values<'_, T>,
    indices: Values<'_, i64>,
    expected: Values<'_, T>,
) {
    let indices = numbers(indices.0, indices.1);
    let data = numbers(data.0, data.1);
    let problem = GatherProblem {
        indices: &indices,
        data: [data.clone(), data],
        output: Arrangement::Contiguous,
        margin: 1,
    };
    let expected = Tensor::new(expected.0, expected.1.to_vec());
    let logical = indices.logical();
    let reference = (options.gatherer).expected(options.rule, &problem.data[0].read(), &logical);
    assert_eq!(reference, expected, "the reference, {options:?}");
    for method in Method::of_gathers() {
        problem
            .check(method, options)
            .unwrap_or_else(|difference| panic!("{options:?}: {difference}"));
    }
}

#[test]
fn the_examples_of_the_onnx_specification() {
    let nd = |batch_dims| GatherOptions::new(Gatherer::Nd { batch_dims });
    let along = |axis| GatherOptions::new(Gatherer::Along { axis });
    let elements = |axis| GatherOptions::new(Gatherer::Elements { axis });
    // GatherND, examples 1 to 5.
    let four = (&[2, 2][..], &[0, 1, 2, 3][..]);
    let eight = (&[2, 2, 2][..], &[0, 1, 2, 3, 4, 5, 6, 7][..]);
    check_by_hand(&nd(0), four, (&[2, 2], &[0, 0, 1, 1]), (&[2], &[0, 3]));
    check_by_hand(&nd(0), four, (&[2, 1], &[1, 0]), (&[2, 2], &[2, 3, 0, 1]));
    let row = (&[2, 2][..], &[2, 3, 4, 5][..]);
    check_by_hand(&nd(0), eight, (&[2, 2], &[0, 1, 1, 0]), row);
    let rows = (&[2, 1, 2][..], &[2, 3, 4, 5][..]);
    check_by_hand(&nd(0), eight, (&[2, 1, 2], &[0, 1, 1, 0]), rows);
    check_by_hand(&nd(1), eight, (&[2, 1], &[1, 0]), row);
    // Gather along axes 0 and 1.
    let data = (&[3, 2][..], &[1.0, 1.2, 2.3, 3.4, 4.5, 5.7][..]);
    let expected = [1.0, 1.2, 2.3, 3.4, 2.3, 3.4, 4.5, 5.7];
    let indices = (&[2, 2][..], &[0, 1, 1, 2][..]);
    check_by_hand(&along(0), data, indices, (&[2, 2, 2], &expected));
    let data = [1.0, 1.2, 1.9, 2.3, 3.4, 3.9, 4.5, 5.7, 5.9];
    let expected = (&[3, 1, 2][..], &[1.0, 1.9, 2.3, 3.9, 4.5, 5.9][..]);
    check_by_hand(&along(1), (&[3, 3], &data), (&[1, 2], &[0, 2]), expected);
    // GatherElements along axes 1 and 0, and its third example, with negative indices.
    let data = (&[2, 2][..], &[1, 2, 3, 4][..]);
    check_by_hand(
        &elements(1),
        data,
        (&[2, 2], &[0, 0, 1, 0]),
        (&[2, 2], &[1, 1, 4, 3]),
    );
    let data = (&[3, 3][..], &[1, 2, 3, 4, 5, 6, 7, 8, 9][..]);
    let expected = (&[2, 3][..], &[4, 8, 3, 7, 2, 3][..]);
    check_by_hand(&elements(0), data, (&[2, 3], &[1, 2, 0, 2, 0, 0]), expected);
    check_by_hand(
        &elements(0),
        data,
        (&[2, 3], &[-2, -1, -3, -1, -3, -3]),
        expected,
    );
}

#[test]
fn one_index_and_no_coordinates() {
    // An index of rank 0 removes the axis.
    let along = GatherOptions::new(Gatherer::Along { axis: -1 });
    let data = (&[2, 3][..], &[1, 2, 3, 4, 5, 6][..]);
    check_by_hand(&along, data, (&[], &[2]), (&[2], &[3, 6]));
    check_by_hand(&along, (&[3], &[7, 8, 9]), (&[], &[-3]), (&[], &[7]));
    // A tuple with all coordinates reads one element.
    let nd = GatherOptions::new(Gatherer::Nd { batch_dims: 0 });
    check_by_hand(&nd, data, (&[2], &[1, -1]), (&[], &[6]));
    // Batches of single elements.
    let batched = GatherOptions::new(Gatherer::Nd { batch_dims: 1 });
    check_by_hand(
        &batched,
        data,
        (&[2, 2, 1], &[0, 2, 1, 1]),
        (&[2, 2], &[1, 3, 5, 5]),
    );
}

/// Checks what an index out of bounds reads.
#[test]
fn bounds_skip_and_clamp() {
    let data = (&[2, 2][..], &[1, 2, 3, 4][..]);
    let indices = (&[3][..], &[1, 2, -3][..]);
    let along = GatherOptions::new(Gatherer::Along { axis: 0 });
    let skip = along.bounds(Bounds::Skip);
    check_by_hand(&skip, data, indices, (&[3, 2], &[3, 4, 0, 0, 0, 0]));
    let clamp = along.bounds(Bounds::Clamp);
    check_by_hand(&clamp, data, indices, (&[3, 2], &[3, 4, 3, 4, 1, 2]));
    // One coordinate out of bounds skips the tuple. Clamping moves only that coordinate.
    let nd = GatherOptions::new(Gatherer::Nd { batch_dims: 0 });
    let tuples = (&[2, 2][..], &[1, 5, 0, 1][..]);
    check_by_hand(&nd.bounds(Bounds::Skip), data, tuples, (&[2], &[0, 2]));
    check_by_hand(&nd.bounds(Bounds::Clamp), data, tuples, (&[2], &[4, 2]));
    let elements = GatherOptions::new(Gatherer::Elements { axis: 1 });
    let each = (&[2, 2][..], &[0, 9, -1, -9][..]);
    check_by_hand(
        &elements.bounds(Bounds::Skip),
        data,
        each,
        (&[2, 2], &[1, 0, 4, 0]),
    );
    check_by_hand(
        &elements.bounds(Bounds::Clamp),
        data,
        each,
        (&[2, 2], &[1, 2, 4, 3]),
    );
    // A forbidden negative index is skipped, or clamped to 0.
    for (bounds, expected) in [(Bounds::Skip, 0), (Bounds::Clamp, 1)] {
        let negative = false;
        let rule = IndexRule { negative, bounds };
        let options = GatherOptions { rule, ..elements };
        check_by_hand(&options, data, (&[1, 1], &[-1]), (&[1, 1], &[expected]));
    }
}

/// The crate compares an index with the bounds in the type of the index, before a cast.
#[test]
fn extremes_of_every_index_type() {
    fn check<I: Index>(low: I, high: I, one: I) {
        let data = TensorView::contiguous(&[10, 20, 30], &[3]).expect("three elements");
        let indices = [low, high, one];
        let indices = TensorView::contiguous(&indices, &[3]).expect("three indices");
        let clamp = Gather::along(0).bounds(Bounds::Clamp);
        assert_eq!(
            clamp
                .allocate(data, indices)
                .map(ndscatter::Tensor::into_vec),
            Ok(vec![10, 30, 20]),
            "{low:?}"
        );
        // The smallest value of an unsigned type is 0, which is in bounds.
        let lowest = if format!("{low:?}") == "0" { 10 } else { 0 };
        let skip = Gather::along(0).bounds(Bounds::Skip);
        let expected = Ok(vec![lowest, 0, 20]);
        let got = skip
            .allocate(data, indices)
            .map(ndscatter::Tensor::into_vec);
        assert_eq!(got, expected, "{low:?}");
        let plan = skip
            .plan(data.layout(), indices)
            .expect("a skipped index is not an error");
        let got = plan.run().allocate(data).map(ndscatter::Tensor::into_vec);
        assert_eq!(got, expected, "{low:?}, planned");
    }
    check(i8::MIN, i8::MAX, -2);
    check(i16::MIN, i16::MAX, -2);
    check(i32::MIN, i32::MAX, -2);
    check(i64::MIN, i64::MAX, -2);
    check(u8::MIN, u8::MAX, 1);
    check(u16::MIN, u16::MAX, 1);
    check(u32::MIN, u32::MAX, 1);
    check(u64::MIN, u64::MAX, 1);
}

/// An axis without elements has no element to read and no position to clamp to.
#[test]
fn an_axis_without_elements() {
    let data = Strided::new(
        &Tensor::<i32>::new(&[2, 0], vec![]),
        Arrangement::Contiguous,
        1,
        5,
    );
    let indices = numbers(&[2, 1], &[0_i64, -7]);
    let mut output = numbers(&[2, 1], &[8, 9]);
    let options = GatherOptions::new(Gatherer::Elements { axis: 1 });
    for bounds in [Bounds::Error, Bounds::Clamp] {
        let options = options.bounds(bounds);
        let got = indices.gather_into(&options, data.view(), output.view_mut());
        let expected = ScatterError::IndexOutOfBounds {
            tuple: 0,
            axis: 1,
            index: 0,
            size: 0,
        };
        assert_eq!(got, Err(expected), "{bounds:?}");
        assert_eq!(
            output.buffer,
            [8, 9],
            "{bounds:?}: the output was written before the error"
        );
    }
    let got = indices.gather_into(
        &options.bounds(Bounds::Skip),
        data.view(),
        output.view_mut(),
    );
    assert_eq!(got, Ok(()), "skipped");
    assert_eq!(output.buffer, [0, 0], "zeros");
}

/// Skipped elements of every type become zeros, which overwrite the output.
#[test]
fn every_type_has_zeros() {
    fn check<T: Ref>() {
        let mut random = Random::new(1);
        let mut draw = || T::sample(Palette::Wild, &mut random);
        let (a, b) = (draw(), draw());
        let options = GatherOptions::new(Gatherer::Along { axis: 0 }).bounds(Bounds::Skip);
        let zero = T::zero_value();
        check_by_hand(
            &options,
            (&[2], &[a, b]),
            (&[3], &[1, 2, 0]),
            (&[3], &[b, zero, a]),
        );
    }
    for element in crate::common::elements::element_types() {
        with_element!(element, T => check::<T>());
    }
}

/// Checks a small gather with every method: the result, or the error.
fn check_small<T: Ref>(
    gatherer: Gatherer,
    data: &[usize],
    indices: &Strided<i64>,
    random: &mut Random,
) {
    let indices: &dyn Indices = indices;
    let logical = indices.logical();
    let arrangement = random.pick(&Arrangement::INPUTS);
    let mut sample = || {
        let tensor = Tensor::generate(data, || T::sample(Palette::Wild, random));
        Strided::new(&tensor, arrangement, 1, T::sentinel())
    };
    let data = [sample(), sample()];
    let output = random.pick(&Arrangement::OUTPUTS);
    let problem = GatherProblem {
        indices,
        data,
        output,
        margin: 1,
    };
    let rule = draw_rule(random);
    let execution = ndscatter::Execution::new().pool(&Sequential);
    let execution = execution.force_instruction_set(random.pick(InstructionSet::available()));
    let options = GatherOptions {
        gatherer,
        execution,
        rule,
    };
    let what = format!("{} {options:?} {logical:?}", T::DTYPE);
    match gatherer.refusal(rule, &problem.data[0].read().shape, &logical) {
        Some(error) => problem.check_all_refused(&options, &error),
        None => {
            let expected = problem.expected(&options);
            Method::of_gathers()
                .try_for_each(|method| problem.check_against(method, &options, &expected))
        }
    }
    .unwrap_or_else(|difference| panic!("{what}: {difference}"));
}

/// Checks elements of 1, 2, 4, 8 or 16 bytes, or `bool`.
fn check_of_any_size(
    gatherer: Gatherer,
    data: &[usize],
    indices: &Strided<i64>,
    random: &mut Random,
) {
    let check = random.pick(&[
        check_small::<u8>,
        check_small::<i16>,
        check_small::<f32>,
        check_small::<f64>,
        check_small::<bool>,
        #[cfg(feature = "complex")]
        check_small::<num_complex::Complex<f64>>,
    ]);
    check(gatherer, data, indices, random);
}

#[test]
fn gather_nd_of_every_small_shape() {
    each_gather_nd(4, &mut Random::new(1), &check_of_any_size);
}

#[test]
fn gather_of_every_small_shape() {
    each_gather(4, &mut Random::new(2), &check_of_any_size);
}

#[test]
fn gather_elements_of_every_small_shape() {
    each_gather_elements(4, &mut Random::new(3), &check_of_any_size);
}

/// A large gather, without layouts.
struct Large {
    gatherer: Gatherer,
    data: &'static [usize],
    indices: &'static [usize],
}

/// Rows, batches of rows, columns, single elements and element gathers. All are large enough to be
/// divided among workers.
const LARGE: [Large; 7] = [
    Large {
        gatherer: Gatherer::Nd { batch_dims: 0 },
        data: &[3000, 96],
        indices: &[9000, 1],
    },
    Large {
        gatherer: Gatherer::Nd { batch_dims: 0 },
        data: &[300, 400],
        indices: &[700_000, 2],
    },
    Large {
        gatherer: Gatherer::Nd { batch_dims: 1 },
        data: &[12, 200, 50],
        indices: &[12, 1100, 1],
    },
    Large {
        gatherer: Gatherer::Along { axis: 0 },
        data: &[5000, 64],
        indices: &[150, 70],
    },
    Large {
        gatherer: Gatherer::Along { axis: 1 },
        data: &[700, 300],
        indices: &[1000],
    },
    Large {
        gatherer: Gatherer::Elements { axis: 0 },
        data: &[900, 250],
        indices: &[2800, 250],
    },
    Large {
        gatherer: Gatherer::Elements { axis: 1 },
        data: &[60, 5000],
        indices: &[59, 12_000],
    },
];

impl Large {
    fn check(&self, bounds: Bounds, arrangement: Arrangement, output: Arrangement) {
        let mut random = Random::new(4);
        let wild = bounds != Bounds::Error;
        let axes = self.gatherer.axes(self.data, self.indices);
        let indices = draw_tuples(&axes, self.indices, wild, &mut random);
        let mut sample = || {
            let tensor = Tensor::generate(self.data, || f32::sample(Palette::Wild, &mut random));
            Strided::new(&tensor, arrangement, 1, f32::sentinel())
        };
        let problem = GatherProblem {
            data: [sample(), sample()],
            indices: &Strided::new(&indices, Arrangement::Contiguous, 0, 0),
            output,
            margin: 3,
        };
        let options = GatherOptions::new(self.gatherer).bounds(bounds);
        let expected = problem.expected(&options);
        for workers in [1, 2, 3, 8].map(Workers::Installed) {
            workers.with(|pool| {
                let mut options = options;
                options.execution = options.execution.pool(pool);
                for method in [Method::WriteInto, Method::PlannedAllocate] {
                    problem
                        .check_against(method, &options, &expected)
                        .unwrap_or_else(|at| panic!("{workers:?} {options:?}: {at}"));
                }
            });
        }
    }
}

#[test]
fn large_gathers() {
    for large in LARGE {
        large.check(
            Bounds::Error,
            Arrangement::Contiguous,
            Arrangement::Contiguous,
        );
    }
}

#[test]
fn large_gathers_that_skip_and_clamp() {
    for large in LARGE {
        large.check(
            Bounds::Skip,
            Arrangement::Contiguous,
            Arrangement::Contiguous,
        );
        large.check(
            Bounds::Clamp,
            Arrangement::Contiguous,
            Arrangement::Contiguous,
        );
    }
}

#[test]
fn large_gathers_of_strided_tensors() {
    for large in LARGE {
        large.check(Bounds::Error, Arrangement::Mixed, Arrangement::Padded);
        large.check(
            Bounds::Error,
            Arrangement::Contiguous,
            Arrangement::Permuted,
        );
        large.check(Bounds::Skip, Arrangement::ZeroLast, Arrangement::Reversed);
    }
}

/// Window lengths around every vector width.
#[test]
fn windows_of_every_length() {
    let mut random = Random::new(6);
    for len in (0..70).chain([127, 128, 129, 259]) {
        let indices = numbers(&[5], &[2_i64, 0, 2, -1, 1]);
        let along = Gatherer::Along { axis: 0 };
        check_of_any_size(along, &[3, len], &indices, &mut random);
        let indices = numbers(&[5, 1], &[2_i64, 0, 2, -1, 1]);
        let nd = Gatherer::Nd { batch_dims: 0 };
        check_small::<u8>(nd, &[3, len], &indices, &mut random);
    }
}

/// Bytes that are not a valid Rust `bool` are moved unchanged.
#[test]
fn foreign_bool_bytes_are_moved_unchanged() {
    let data = [0_u8, 1, 0x42, 0xff];
    let mut output = [7_u8; 5];
    let (from, to) = ([4], [5]);
    // SAFETY: the layouts have the lengths of the arrays, which outlive the call. Nothing else
    // accesses them.
    let (data, view) = unsafe {
        (
            AnyView::from_raw_parts(data.as_ptr(), DType::Bool, Layout::contiguous(&from)),
            AnyViewMut::from_raw_parts(output.as_mut_ptr(), DType::Bool, Layout::contiguous(&to)),
        )
    };
    let indices = TensorView::contiguous(&[3_i64, 2, 9, 1, 0], &[5]).expect("five indices");
    Gather::along(0)
        .bounds(Bounds::Skip)
        .write_into(
            data.expect("bytes are aligned"),
            indices,
            view.expect("bytes are aligned"),
        )
        .expect("the case is valid");
    assert_eq!(output, [0xff, 0x42, 0, 1, 0], "bytes");
}

#[test]
fn strings_are_cloned() {
    let data = ["a", "b", "c"].map(String::from);
    let data = TensorView::contiguous(&data, &[3]).expect("three strings");
    let indices = TensorView::contiguous(&[2_i64, -3, 7], &[3]).expect("three indices");
    let mut output = ["x", "y", "z"].map(String::from);
    let mut run = |gather: Gather<'_>| {
        let view = TensorViewMut::contiguous(&mut output, &[3]).expect("three strings");
        let done = gather.write_into(Cloned(data), indices, Cloned(view));
        (done, output.clone().map(|string| string + "!"))
    };
    let refused = ScatterError::IndexOutOfBounds {
        tuple: 2,
        axis: 0,
        index: 7,
        size: 3,
    };
    let untouched = ["x!", "y!", "z!"].map(String::from);
    assert_eq!(
        run(Gather::along(0)),
        (Err(refused), untouched.clone()),
        "out of bounds"
    );
    // Strings have no zero.
    let option = "bounds";
    let refused = ScatterError::UnsupportedOption { option };
    let skipping = Gather::along(0).bounds(Bounds::Skip);
    assert_eq!(run(skipping), (Err(refused), untouched), "skip");
    let clamping = Gather::along(0).bounds(Bounds::Clamp);
    let expected = ["c!", "a!", "c!"].map(String::from);
    assert_eq!(run(clamping), (Ok(()), expected), "clamp");
}

#[test]
fn a_plan_reports_its_layout() {
    let indices = TensorView::contiguous(&[1_i64, 0], &[2, 1]).expect("two tuples");
    let layout = Layout::strided(&[3, 4], &[8, 2]).expect("two strides");
    let plan = Gather::nd(0).plan(layout, indices).expect("valid indices");
    assert_eq!(plan.shape(), [3, 4], "data's shape");
    assert_eq!(plan.strides(), [8, 2], "data's strides");
    assert_eq!(plan.output_shape(), [2, 4], "the output's shape");
    let plan = Gather::nd(0)
        .plan(layout, AnyView::from(indices))
        .expect("valid indices");
    assert_eq!(plan.output_shape(), [2, 4], "the output's shape, any");
    let refused = Gather::nd(0).plan(layout, AnyView::from(numbers(&[2, 1], &[0.5, 1.5]).view()));
    let actual = DType::F64;
    assert_eq!(
        refused.err(),
        Some(ScatterError::IndexType { actual }),
        "indices of f64"
    );
}

#[test]
fn one_plan_serves_many_threads() {
    let mut random = Random::new(8);
    let rows = draw_tuples(&[(0, 2000)], &[9000], false, &mut random);
    let indices = Strided::new(&rows, Arrangement::Contiguous, 0, 0);
    let data: Vec<_> = (0..4)
        .map(|_| Tensor::generate(&[2000, 64], || i32::sample(Palette::Wild, &mut random)))
        .collect();
    let options = GatherOptions::new(Gatherer::Along { axis: 0 });
    let plan = indices.plan_gather(&options, Layout::contiguous(&[2000, 64]));
    let plan = plan.expect("valid indices");
    let logical = indices.logical();
    std::thread::scope(|scope| {
        for data in &data {
            let (plan, logical) = (&plan, &logical);
            scope.spawn(move || {
                let expected = (options.gatherer).expected(options.rule, data, logical);
                let view = TensorView::contiguous(&data.values, &data.shape).expect("data");
                let got = (plan.run()).allocate(view).expect("the plan's layout");
                assert!(got == expected.values, "the result differs");
            });
        }
    });
}

#[test]
fn output_shapes() {
    let nd = Gather::nd(1);
    assert_eq!(
        nd.output_shape(&[2, 3, 4, 5], &[2, 7, 2]),
        Ok(vec![2, 7, 5]),
        "nd"
    );
    let along = Gather::along(-2);
    assert_eq!(
        along.output_shape(&[2, 3, 4], &[6, 7]),
        Ok(vec![2, 6, 7, 4]),
        "along"
    );
    assert_eq!(along.output_shape(&[3, 4], &[]), Ok(vec![4]), "one index");
    let elements = Gather::elements(0);
    assert_eq!(
        elements.output_shape(&[2, 3], &[9, 1]),
        Ok(vec![9, 1]),
        "elements"
    );
}

//! One case for every row of the table of profiles. It tests the profile's rule where runtimes
//! differ.

use ndscatter::profile::{
    jax, onnx, openvino_3, openvino_8, openvino_12, openvino_15, stablehlo, tensorflow, torch,
};
use ndscatter::{
    CacheMode, CallingThread, Element, Execution, Gather, Reduction, Scatter, ScatterError, Tensor,
    TensorView,
};

const DATA: [f32; 4] = [10.0, 20.0, 30.0, 40.0];

/// Scatters 1.0, 2.0, ... into [`DATA`] at `indices`. With `tuples`, the indices have a last dim of
/// 1.
fn scatter(scatter: &Scatter<'_>, tuples: bool, indices: &[i64]) -> Result<Vec<f32>, ScatterError> {
    let updates: Vec<f32> = (1_u8..).take(indices.len()).map(f32::from).collect();
    run(scatter, &DATA, tuples, indices, &updates)
}

/// Runs a scatter as a one-shot call and with a plan, with the default pool and with another pool.
/// All results must be equal.
fn run<T: Element>(
    scatter: &Scatter<'_>,
    data: &[T],
    tuples: bool,
    indices: &[i64],
    updates: &[T],
) -> Result<Vec<T>, ScatterError> {
    let shape = [indices.len(), 1];
    let shape = if tuples { &shape[..] } else { &shape[..1] };
    let data_shape = [data.len()];
    let data = TensorView::contiguous(data, &data_shape)?;
    let indices = TensorView::contiguous(indices, shape)?;
    let updates_shape = [updates.len()];
    let updates = TensorView::contiguous(updates, &updates_shape)?;
    let alone = Execution::new().pool(&CallingThread);
    let on_a_pool = scatter.clone().execution(alone);
    let planned = |scatter: &Scatter<'_>, execution| {
        let plan = scatter.plan(data.layout(), indices)?;
        plan.run().execution(execution).allocate(data, updates)
    };
    same([
        scatter.allocate(data, indices, updates),
        on_a_pool.allocate(data, indices, updates),
        planned(scatter, Execution::new()),
        planned(&on_a_pool, alone),
    ])
}

/// Returns the first result. Panics if the results differ. Results with NaN are equal.
fn same<T: Element>(results: [Result<Tensor<T>, ScatterError>; 4]) -> Result<Vec<T>, ScatterError> {
    let texts = results.each_ref().map(|result| format!("{result:?}"));
    assert_eq!(texts[1], texts[0], "with a pool");
    assert_eq!(texts[2], texts[0], "planned");
    assert_eq!(texts[3], texts[0], "planned with a pool");
    let [first, ..] = results;
    first.map(Tensor::into_vec)
}

fn gather(gather: &Gather<'_>, tuples: bool, indices: &[i64]) -> Result<Vec<f32>, ScatterError> {
    let shape = [indices.len(), 1];
    let shape = if tuples { &shape[..] } else { &shape[..1] };
    let data = TensorView::contiguous(&DATA, &[4])?;
    let indices = TensorView::contiguous(indices, shape)?;
    let alone = Execution::new().pool(&CallingThread);
    let on_a_pool = gather.clone().execution(alone);
    let planned = |gather: &Gather<'_>, execution| {
        let plan = gather.plan(data.layout(), indices)?;
        plan.run().execution(execution).allocate(data)
    };
    same([
        gather.allocate(data, indices),
        on_a_pool.allocate(data, indices),
        planned(gather, Execution::new()),
        planned(&on_a_pool, alone),
    ])
}

fn is_out_of_bounds(result: &Result<Vec<f32>, ScatterError>, bad: i128) -> bool {
    matches!(result, Err(ScatterError::IndexOutOfBounds { index, .. }) if *index == bad)
}

/// Profiles that allow negative indices and return an error for other indices out of bounds.
#[test]
fn negative_indices_count_from_the_end() {
    let expected = Ok(vec![10.0, 2.0, 30.0, 1.0]);
    let results = [
        (
            "onnx scatter_nd",
            scatter(&onnx::scatter_nd(), true, &[-1, 1]),
        ),
        (
            "onnx scatter_elements",
            scatter(&onnx::scatter_elements(0), false, &[-1, 1]),
        ),
        ("onnx scatter", scatter(&onnx::scatter(0), false, &[-1, 1])),
        (
            "openvino_12",
            scatter(
                &openvino_12::scatter_elements_update(0, false),
                false,
                &[-1, 1],
            ),
        ),
        (
            "openvino_15",
            scatter(&openvino_15::scatter_nd_update(), true, &[-1, 1]),
        ),
        (
            "index_put",
            scatter(&torch::index_put(false), true, &[-1, 1]),
        ),
        ("at", scatter(&jax::at(), true, &[-1, 1])),
    ];
    for (name, result) in results {
        assert_eq!(result, expected, "{name}");
    }
}

#[test]
fn negative_indices_are_errors() {
    let results = [
        (
            "openvino_3 nd",
            scatter(&openvino_3::scatter_nd_update(), true, &[-1]),
        ),
        (
            "openvino_3 axis",
            scatter(&openvino_3::scatter_update(0), false, &[-1]),
        ),
        (
            "openvino_3 elements",
            scatter(&openvino_3::scatter_elements_update(0), false, &[-1]),
        ),
        (
            "tensor_scatter_nd",
            scatter(&tensorflow::tensor_scatter_nd(), true, &[-1]),
        ),
        (
            "tf scatter_nd",
            scatter(&tensorflow::scatter_nd(), true, &[-1]),
        ),
        (
            "unsorted_segment",
            scatter(&tensorflow::unsorted_segment(), false, &[-1]),
        ),
        ("index_add", scatter(&torch::index_add(0), false, &[-1])),
        ("index_copy", scatter(&torch::index_copy(0), false, &[-1])),
        (
            "index_reduce",
            scatter(&torch::index_reduce(0, true), false, &[-1]),
        ),
        ("torch scatter", scatter(&torch::scatter(0), false, &[-1])),
        ("scatter_add", scatter(&torch::scatter_add(0), false, &[-1])),
        (
            "scatter_reduce",
            scatter(&torch::scatter_reduce(0, true), false, &[-1]),
        ),
        ("torch gather", gather(&torch::gather(0), false, &[-1])),
        (
            "index_select",
            gather(&torch::index_select(0), false, &[-1]),
        ),
    ];
    for (name, result) in results {
        assert!(is_out_of_bounds(&result, -1), "{name}: {result:?}");
    }
}

#[test]
fn indices_beyond_the_end_are_errors_or_skipped() {
    for (name, result) in [
        ("onnx", scatter(&onnx::scatter_nd(), true, &[4])),
        (
            "openvino_15",
            scatter(&openvino_15::scatter_nd_update(), true, &[4]),
        ),
        (
            "tensorflow",
            scatter(&tensorflow::tensor_scatter_nd(), true, &[4]),
        ),
        ("torch", scatter(&torch::scatter(0), false, &[4])),
    ] {
        assert!(is_out_of_bounds(&result, 4), "{name}: {result:?}");
    }
    let dropped = Ok(vec![10.0, 2.0, 30.0, 40.0]);
    for (name, result) in [
        ("at", scatter(&jax::at(), true, &[4, 1])),
        ("lax", scatter(&jax::scatter(), true, &[-1, 1])),
        ("segment", scatter(&jax::segment(), false, &[-1, 1])),
        ("stablehlo", scatter(&stablehlo::scatter(), true, &[-1, 1])),
    ] {
        assert_eq!(result, dropped, "{name}");
    }
}

#[test]
fn reductions_that_belong_to_a_profile() {
    let sums = Ok(vec![10.0, 23.0, 30.0, 40.0]);
    assert_eq!(
        scatter(&tensorflow::scatter_nd(), true, &[1, 1]),
        sums,
        "tf"
    );
    assert_eq!(
        scatter(&torch::index_put(true), true, &[1, 1]),
        sums,
        "index_put"
    );
    assert_eq!(
        scatter(&torch::index_add(0), false, &[1, 1]),
        sums,
        "index_add"
    );
    assert_eq!(
        scatter(&torch::scatter_add(0), false, &[1, 1]),
        sums,
        "scatter_add"
    );
}

#[test]
fn without_self_where_the_operator_says_so() {
    let without = Ok(vec![10.0, 3.0, 30.0, 40.0]);
    let add = Reduction::Add;
    let openvino = openvino_12::scatter_elements_update(0, false).reduction(add);
    assert_eq!(scatter(&openvino, false, &[1, 1]), without, "use_init_val");
    let torch = torch::scatter_reduce(0, false).reduction(add);
    assert_eq!(scatter(&torch, false, &[1, 1]), without, "scatter_reduce");
    let torch = torch::index_reduce(0, false).reduction(add);
    assert_eq!(scatter(&torch, false, &[1, 1]), without, "index_reduce");
}

#[cfg(feature = "half")]
#[test]
fn torch_sums_halves_in_single_precision() {
    use half::f16;
    // 2048 + 1 + 1: rounded after each step, both ones are lost.
    let (data, one) = ([f16::from_f32(2048.0)], f16::ONE);
    let wide = run(&torch::scatter_add(0), &data, false, &[0, 0], &[one, one]);
    assert_eq!(wide, Ok(vec![f16::from_f32(2050.0)]), "scatter_add");
    let native = run(&torch::index_add(0), &data, false, &[0, 0], &[one, one]);
    assert_eq!(native, Ok(vec![f16::from_f32(2048.0)]), "index_add");
}

/// A case with duplicates, whose result depends on every option of a profile.
#[cfg(feature = "half")]
#[test]
fn every_profile_has_one_result_planned_and_with_a_pool() {
    use half::f16;
    let (data, ones) = ([f16::from_f32(2048.0), f16::ZERO], [f16::ONE; 300]);
    let indices = [0; 300];
    macro_rules! check {
        ($($tuples:literal: $($profile:expr),+;)+) => {$($(
            let profile = $profile;
            run(&profile, &data, $tuples, &indices, &ones).expect(stringify!($profile));
            for reduction in Reduction::ALL {
                let profile = profile.clone().reduction(reduction);
                run(&profile, &data, $tuples, &indices, &ones).expect(stringify!($profile));
            }
        )+)+};
    }
    check! {
        true: onnx::scatter_nd(), openvino_3::scatter_nd_update(), openvino_15::scatter_nd_update(),
            tensorflow::tensor_scatter_nd(), tensorflow::scatter_nd(), torch::index_put(false),
            torch::index_put(true), jax::at(), jax::scatter(), stablehlo::scatter();
        false: onnx::scatter_elements(0), onnx::scatter(0), openvino_3::scatter_update(0),
            openvino_3::scatter_elements_update(0), openvino_12::scatter_elements_update(0, true),
            openvino_12::scatter_elements_update(0, false), tensorflow::unsorted_segment(),
            torch::index_add(0), torch::index_copy(0), torch::index_reduce(0, true),
            torch::index_reduce(0, false), torch::scatter(0), torch::scatter_add(0),
            torch::scatter_reduce(0, true), torch::scatter_reduce(0, false), jax::segment();
    }
    // A sum of 300 ones, in `f32` and in bfloat16.
    let (zero, one) = ([half::bf16::ZERO], [half::bf16::ONE; 300]);
    let sum = |result: Result<Vec<half::bf16>, _>| result.expect("valid")[0].to_f32();
    let wide = sum(run(&torch::scatter_add(0), &zero, false, &indices, &one));
    assert_eq!(wide, 300.0, "the sum in f32");
    let native = sum(run(&torch::index_add(0), &zero, false, &indices, &one));
    assert_eq!(native, 256.0, "the sum in bfloat16");
    let mean = torch::scatter_reduce(0, false).reduction(Reduction::Mean);
    let mean = run(&mean, &[100.0_f32], false, &[0, 0], &[1.0, 3.0]);
    assert_eq!(mean, Ok(vec![2.0]), "the mean of 1 and 3 without 100");
}

/// Setting an execution resets no option of the operator.
#[test]
fn an_execution_changes_no_result() {
    let scatter = ndscatter::Scatter::along(0)
        .reduction(Reduction::Add)
        .include_self(false)
        .execution(Execution::new().pool(&CallingThread).max_workers(1))
        .execution(Execution::new());
    let sum = run(&scatter, &[5, 7], false, &[1, 1], &[10, 20]);
    assert_eq!(sum, Ok(vec![5, 30]), "the sum of the updates alone");
}

/// Rules in which the crate differs from the runtime of the profile.
#[test]
fn rules_that_differ_from_the_runtime() {
    let nan = [f32::NAN];
    for reduction in [Reduction::Min, Reduction::Max] {
        for (name, result) in [
            (
                "onnx",
                run(
                    &onnx::scatter_elements(0).reduction(reduction),
                    &DATA,
                    false,
                    &[0],
                    &nan,
                ),
            ),
            (
                "openvino_12",
                run(
                    &openvino_12::scatter_elements_update(0, true).reduction(reduction),
                    &DATA,
                    false,
                    &[0],
                    &nan,
                ),
            ),
            (
                "openvino_15",
                run(
                    &openvino_15::scatter_nd_update().reduction(reduction),
                    &DATA,
                    true,
                    &[0],
                    &nan,
                ),
            ),
        ] {
            assert!(
                result.expect("valid")[0].is_nan(),
                "{name} {reduction}: NaN propagates"
            );
        }
    }
    let mean = openvino_12::scatter_elements_update(0, true).reduction(Reduction::Mean);
    assert_eq!(
        run(&mean, &[-3], false, &[0], &[0]),
        Ok(vec![-2]),
        "floor of -3 / 2"
    );
    let last = scatter(&torch::scatter(0), false, &[1, 1]);
    assert_eq!(
        last,
        Ok(vec![10.0, 2.0, 30.0, 40.0]),
        "the last update stays"
    );
    let zero = run(
        &torch::scatter_reduce(0, false).reduction(Reduction::Add),
        &[1.0_f32],
        false,
        &[0],
        &[-0.0],
    );
    assert!(
        zero.expect("valid")[0].is_sign_negative(),
        "a sum of -0 is -0"
    );
    let tie = stablehlo::scatter().reduction(Reduction::Max);
    let tie = run(&tie, &[-0.0_f32], true, &[0], &[0.0]);
    assert!(
        tie.expect("valid")[0].is_sign_negative(),
        "a tie keeps its value"
    );
}

#[test]
fn caches_wrap_along_their_axis() {
    let write = onnx::tensor_scatter(1, CacheMode::Circular).update_len(2);
    let cache = TensorView::contiguous(&[0_u8; 9], &[3, 3]).expect("a cache");
    let starts = TensorView::contiguous(&[2_i64, 3, 0], &[3]).expect("starts");
    let updates = TensorView::contiguous(&[1, 2, 3, 4, 5, 6], &[3, 2]).expect("updates");
    let alone = Execution::new().pool(&CallingThread);
    let on_a_pool = write.clone().execution(alone);
    let plan = write.plan(cache.layout(), starts).expect("a plan");
    let cache = same([
        write.allocate(cache, starts, updates),
        on_a_pool.allocate(cache, starts, updates),
        plan.run().allocate(cache, updates),
        plan.run().execution(alone).allocate(cache, updates),
    ]);
    assert_eq!(
        cache,
        Ok(vec![2, 0, 1, 3, 4, 0, 5, 6, 0]),
        "batch 2 is not wrapped"
    );
}

#[test]
fn gathers() {
    let expected = Ok(vec![40.0, 20.0]);
    for (name, result) in [
        (
            "onnx gather_nd",
            gather(&onnx::gather_nd(0), true, &[-1, 1]),
        ),
        ("onnx gather", gather(&onnx::gather(0), false, &[-1, 1])),
        (
            "onnx gather_elements",
            gather(&onnx::gather_elements(0), false, &[-1, 1]),
        ),
        (
            "openvino_8",
            gather(&openvino_8::gather_nd(0), true, &[-1, 1]),
        ),
        ("torch gather", gather(&torch::gather(0), false, &[3, 1])),
        (
            "torch index_select",
            gather(&torch::index_select(0), false, &[3, 1]),
        ),
    ] {
        assert_eq!(result, expected, "{name}");
    }
    let clamped = gather(&stablehlo::gather(), true, &[-7, 9]);
    assert_eq!(clamped, Ok(vec![10.0, 40.0]), "stablehlo clamps");
    let batch = openvino_8::gather_nd(1).output_shape(&[1, 4], &[2, 1]);
    assert!(
        matches!(batch, Err(ScatterError::BatchShape { .. })),
        "batch dims do not broadcast"
    );
}

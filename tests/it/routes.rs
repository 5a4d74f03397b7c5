//! A call takes the route that `explain` reports. The cases are on both sides of every size at
//! which the route changes.
//!
//! The determinism table compares routes of scatters too. This file tests the sizes, and gathers.

use std::sync::LazyLock;

use ndscatter::{
    AnyViewMut, Bounds, CallingThread, DType, Duplicates, Execution, Gather, Layout, Machine,
    Reduction, Route, Scatter, Schedule, TensorView, TensorViewMut, last_route,
};

/// A machine whose second-level cache stores 16,384 `f32`. A quarter of its last cache stores
/// 65,536.
static MACHINE: LazyLock<Machine> = LazyLock::new(|| {
    let text = "caches = 32768 65536 1048576\nvendor = intel";
    text.parse().expect("a valid machine")
});

fn execution() -> Execution<'static> {
    Execution::new().pool(&CallingThread).machine(&MACHINE)
}

fn indices(tuples: usize, slices: usize) -> Vec<i64> {
    let number =
        |tuple: usize| i64::try_from(tuple * 7919 % slices.max(1)).expect("the number is small");
    (0..tuples).map(number).collect()
}

/// Checks that a scatter into `slices` rows of `row` elements takes its explained route. Returns
/// the route.
fn of_scatter(
    scatter: &Scatter<'_>,
    [slices, row]: [usize; 2],
    tuples: usize,
    in_place: bool,
) -> Route {
    let (shape, listed) = ([slices, row], [tuples, row]);
    let (data, updates) = (vec![1.0_f32; slices * row], vec![2.0_f32; tuples * row]);
    let mut output = data.clone();
    let numbers = indices(tuples, slices);
    let numbers = || TensorView::from(&numbers[..]);
    let layout = Layout::contiguous(&shape);
    let explained = scatter.explain(layout, numbers(), DType::F32, in_place);
    let explained = explained.expect("a scatter").route();
    let target = TensorViewMut::contiguous(&mut output, &shape).expect("an output");
    let updates = TensorView::contiguous(&updates, &listed).expect("updates");
    last_route();
    if in_place {
        scatter
            .in_place(target, numbers(), updates)
            .expect("a call");
    } else {
        let data = TensorView::contiguous(&data, &shape).expect("data");
        scatter
            .write_into(data, numbers(), updates, target)
            .expect("a call");
    }
    let case = format!("{shape:?}, {tuples} tuples, in place: {in_place}");
    assert_eq!(last_route(), Some(explained), "{case}");
    explained
}

/// Checks that a gather of `tuples` rows takes its explained route. Returns the route.
fn of_gather(gather: &Gather<'_>, [slices, row]: [usize; 2], tuples: usize, is_new: bool) -> Route {
    let (shape, listed) = ([slices, row], [tuples, row]);
    let data = vec![1.0_f32; slices * row];
    let mut output = vec![0.0_f32; tuples * row];
    let numbers = indices(tuples, slices);
    let numbers = || TensorView::from(&numbers[..]);
    let explained = gather.explain(Layout::contiguous(&shape), numbers(), DType::F32, is_new);
    let explained = explained.expect("a gather").route();
    let data = TensorView::contiguous(&data, &shape).expect("data");
    let target = TensorViewMut::contiguous(&mut output, &listed).expect("an output");
    let target = AnyViewMut::from(target);
    let target = if is_new {
        target.of_new_memory()
    } else {
        target
    };
    last_route();
    gather
        .write_into(data.into(), numbers(), target)
        .expect("a call");
    let case = format!("{shape:?}, {tuples} tuples, new: {is_new}");
    assert_eq!(last_route(), Some(explained), "{case}");
    assert!(output.iter().all(|&value| value == 1.0), "{case}");
    explained
}

#[test]
fn scatters_change_routes_at_these_sizes() {
    use Route::{Planned, Small, Stream};
    let moves = &Scatter::along(0).execution(execution());
    let sums = &moves.clone().reduction(Reduction::Add);
    let means = &moves.clone().reduction(Reduction::Mean);
    let rejects = &moves.clone().duplicates(Duplicates::Reject);
    let skips = &sums.clone().bounds(Bounds::Skip);
    let serial = execution().force_schedule(Schedule::Serial);
    let forced = &sums.clone().execution(serial);
    let cases = [
        // Rows: up to 512 tuples are numbered on the stack, more tuples by a plan.
        ("a row", moves, [9, 16], 1, true, Small),
        ("tuples on the stack", moves, [9, 16], 512, true, Small),
        ("more tuples", moves, [9, 16], 513, true, Small),
        ("a schedule is forced", forced, [9, 16], 1, true, Planned),
        // Windows of 4096 bytes: 128 windows touch 512 KiB.
        ("127 rows of 4 KiB", sums, [9, 1024], 127, true, Small),
        ("128 rows of 4 KiB", sums, [9, 1024], 128, true, Planned),
        // Copied data counts twice, so 65,536 elements touch 512 KiB.
        ("a copy", sums, [4095, 16], 1, false, Small),
        ("a larger copy", sums, [4096, 16], 1, false, Planned),
        // Groups of at most 64 tuples are sorted on the stack.
        ("64 means", means, [9, 16], 64, true, Small),
        ("65 means", means, [9, 16], 65, true, Planned),
        ("no duplicates", rejects, [600, 16], 500, true, Small),
        // Single elements: a stream needs four tuples per element, and an output that fits the
        // second-level cache.
        ("elements on the stack", sums, [128, 1], 512, true, Small),
        ("four tuples an element", sums, [150, 1], 600, true, Stream),
        ("fewer tuples an element", sums, [151, 1], 600, true, Small),
        ("a full cache", sums, [16384, 1], 65536, true, Stream),
        ("more than a cache", sums, [16385, 1], 65540, true, Planned),
        ("out of place", sums, [16384, 1], 65536, false, Stream),
        // No index is an error, so the output is written directly. It fits a quarter of the
        // last-level cache.
        ("skipped tuples", skips, [16384, 1], 65536, true, Stream),
        ("many elements", skips, [65_536, 1], 600, true, Stream),
        ("too many elements", skips, [65_537, 1], 600, true, Small),
        (
            "skipped, a full cache",
            skips,
            [16384, 1],
            65536,
            false,
            Stream,
        ),
        (
            "skipped, more than a cache",
            skips,
            [16385, 1],
            65540,
            false,
            Planned,
        ),
    ];
    for (name, scatter, shape, tuples, in_place, expected) in cases {
        assert_eq!(
            of_scatter(scatter, shape, tuples, in_place),
            expected,
            "{name}"
        );
    }
}

#[test]
fn gathers_change_routes_at_these_sizes() {
    use Route::{Planned, Small, Stream};
    let along = &Gather::along(0).execution(execution());
    let clamps = &along.clone().bounds(Bounds::Clamp);
    let cases = [
        ("a row", along, [9, 16], 1, false, Small),
        ("tuples on the stack", along, [9, 16], 512, false, Small),
        ("more tuples", along, [9, 16], 513, false, Small),
        ("127 rows of 4 KiB", along, [9, 1024], 127, false, Small),
        ("128 rows of 4 KiB", along, [9, 1024], 128, false, Planned),
        ("elements on the stack", along, [99, 1], 512, true, Small),
        ("elements of new memory", along, [99, 1], 513, true, Stream),
        (
            "elements of other memory",
            along,
            [99, 1],
            9000,
            false,
            Planned,
        ),
        ("clamped elements", clamps, [99, 1], 9000, true, Planned),
    ];
    for (name, gather, shape, tuples, is_new, expected) in cases {
        assert_eq!(of_gather(gather, shape, tuples, is_new), expected, "{name}");
    }
}

/// Element indices along the only axis that is longer than 1 have the routes of a vector.
#[test]
fn one_lane_has_the_route_of_a_vector() {
    let list = indices(4096, 1000);
    let scatter = |axis| {
        let scatter = Scatter::elements(axis).execution(execution());
        scatter.reduction(Reduction::Add)
    };
    let route = |axis: isize, shape: &[usize], listed: &[usize]| {
        let numbers = || TensorView::contiguous(&list, listed).expect("indices");
        let explained =
            scatter(axis).explain(Layout::contiguous(shape), numbers(), DType::F32, true);
        let mut data = vec![0.0_f32; 1000];
        let target = TensorViewMut::contiguous(&mut data, shape).expect("data");
        let updates = TensorView::splat(&1.0_f32, listed).expect("updates");
        last_route();
        scatter(axis)
            .in_place(target, numbers(), updates)
            .expect("a scatter");
        assert_eq!(
            last_route(),
            Some(explained.expect("an explanation").route())
        );
        (last_route(), data)
    };
    let vector = route(0, &[1000], &[4096]);
    assert_eq!(route(0, &[1000, 1], &[4096, 1]), vector);
    assert_eq!(route(-2, &[1, 1000, 1], &[1, 4096, 1]), vector);
    assert_eq!(route(1, &[1, 1000], &[1, 4096]), vector);
}

/// Element indices that repeat along rows are counted as rows.
#[test]
fn repeated_indices_have_the_route_of_rows() {
    let route = |rows: usize| {
        let (shape, listed) = ([600, 64], [rows, 64]);
        let list = indices(rows, 600);
        let numbers = || TensorView::strided(&list, 0, &listed, &[1, 0]).expect("an index per row");
        let scatter = Scatter::elements(0).execution(execution());
        let explained = scatter.explain(Layout::contiguous(&shape), numbers(), DType::F32, true);
        let explained = explained.expect("a scatter").route();
        let mut data = vec![0.0_f32; 600 * 64];
        let updates = vec![1.0_f32; rows * 64];
        let target = TensorViewMut::contiguous(&mut data, &shape).expect("data");
        let updates = TensorView::contiguous(&updates, &listed).expect("updates");
        last_route();
        scatter
            .in_place(target, numbers(), updates)
            .expect("a call");
        assert_eq!(last_route(), Some(explained), "{rows} rows");
        explained
    };
    // By rows, a row touches 256 bytes. By elements, it touches 64 cache lines of 64 bytes.
    assert_eq!(route(127), Route::Small, "by elements");
    assert_eq!(route(128), Route::Small, "by rows");
    assert_eq!(route(2047), Route::Small, "by rows");
    assert_eq!(route(2048), Route::Planned, "too large by rows");
}

/// A tensor without elements is written by no schedule, whether a schedule is forced or not.
#[test]
fn tensors_without_elements_have_no_schedule() {
    let serial = execution().force_schedule(Schedule::Serial);
    for execution in [execution(), serial] {
        let forced = format!("{execution:?}");
        let (data, mut output) = ([0.0_f32; 0], [0.0_f32; 0]);
        let skips = Scatter::along(0).bounds(Bounds::Skip).execution(execution);
        // The dims of a slice have strides 7 and 3, so the layout has no constant stride.
        let layout = Layout::strided(&[0, 2, 2], &[1, 7, 3]).expect("no elements");
        let plan = skips.plan(layout, TensorView::from(&[5_i64, -9]));
        let plan = plan.expect("a plan");
        let run = plan.run().execution(execution);
        let explained = run.explain(DType::F32, true).expect("a run").route();
        assert_eq!(explained, Route::Nothing, "kept, {forced}");
        let updates = [1.0_f32; 8];
        let updates = TensorView::contiguous(&updates, &[2, 2, 2]).expect("updates");
        let target = TensorViewMut::strided(&mut output, 0, &[0, 2, 2], &[1, 7, 3]);
        last_route();
        run.in_place(target.expect("no elements"), updates)
            .expect("a run");
        assert_eq!(last_route(), Some(Route::Nothing), "kept, {forced}");
        let target = TensorViewMut::strided(&mut output, 0, &[0, 2, 2], &[1, 7, 3]);
        let list = TensorView::from(&[5_i64, -9]);
        skips
            .in_place(target.expect("no elements"), list, updates)
            .expect("a call");
        assert_eq!(last_route(), Some(Route::Nothing), "once, {forced}");
        let gather = Gather::along(0).bounds(Bounds::Clamp).execution(execution);
        let none = TensorView::contiguous(&data, &[3, 0]).expect("no elements");
        let target = TensorViewMut::strided(&mut output, 0, &[2, 0], &[7, 3]);
        let target = target.expect("no elements");
        let list = TensorView::from(&[5_i64, -9]);
        gather.write_into(none, list, target).expect("a call");
        assert_eq!(last_route(), Some(Route::Nothing), "a gather, {forced}");
    }
}

/// Checks the routes of kept plans.
#[test]
fn kept_plans_have_routes() {
    let route = |scatter: &Scatter<'_>, shape: [usize; 2], numbers: &[i64]| {
        let plan = scatter.plan(Layout::contiguous(&shape), TensorView::from(numbers));
        let plan = plan.expect("a plan");
        let mut explained = Vec::new();
        for _ in 0..2 {
            let run = plan.run().execution(execution());
            let route = run.explain(DType::F32, true).expect("a run").route();
            let mut data = vec![0.0_f32; shape[0] * shape[1]];
            let updates = vec![1.0_f32; numbers.len() * shape[1]];
            let target = TensorViewMut::contiguous(&mut data, &shape).expect("data");
            let listed = [numbers.len(), shape[1]];
            let updates = TensorView::contiguous(&updates, &listed).expect("updates");
            last_route();
            run.in_place(target, updates).expect("a run");
            assert_eq!(last_route(), Some(route), "{shape:?}");
            explained.push(route);
        }
        assert_eq!(explained[0], explained[1], "{shape:?}");
        explained[0]
    };
    let along = &Scatter::along(0);
    assert_eq!(
        route(along, [9, 4], &indices(2000, 9)),
        Route::Planned,
        "mostly overwritten"
    );
    assert_eq!(
        route(along, [99, 4], &indices(2000, 99)),
        Route::Small,
        "fewer overwritten windows"
    );
    let sums = &along.clone().reduction(Reduction::Add);
    assert_eq!(
        route(sums, [9, 4], &indices(2000, 9)),
        Route::Small,
        "every update is applied"
    );
    assert_eq!(
        route(sums, [9, 1024], &indices(128, 9)),
        Route::Planned,
        "large"
    );
    let plan = Gather::along(0).plan(Layout::contiguous(&[3, 4]), TensorView::from(&[2_i64, 0]));
    let run = plan.expect("a plan");
    let explained = run.run().explain(DType::F32, true).expect("a run");
    assert_eq!(explained.route(), Route::Small);
    let text = explained.to_string();
    assert!(
        text.contains("gather from f32 [3, 4]") && text.contains("route      small"),
        "{text}"
    );
}

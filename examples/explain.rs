//! Prints how ndscatter would run a call, without running it: the route, the schedule, and the reason
//! why each other schedule is not chosen. Three calls add the same rows to a table: a small call, a
//! large call, and a large call on the calling thread alone.

use ndscatter::{
    CallingThread, DType, Execution, Layout, Reduction, Route, Scatter, ScatterError, TensorView,
};

fn main() -> Result<(), ScatterError> {
    let add = Scatter::along(0).reduction(Reduction::Add);
    let table = [50_000, 64];

    // The text is for people. The methods of an explanation are for programs.
    let few = [3_i64, 1, 3];
    let explained = add.explain(
        Layout::contiguous(&table),
        TensorView::from(&few),
        DType::F32,
        true,
    )?;
    println!("three rows, in place\n{explained}\n");
    assert_eq!(explained.route(), Route::Small, "no schedule");

    // Rows of an embedding table, some of them twice.
    let many: Vec<i64> = (0..40_000).map(|i| i * 7919 % 31_000).collect();
    let explained = add.explain(
        Layout::contiguous(&table),
        TensorView::from(&many),
        DType::F32,
        true,
    )?;
    println!("40000 rows, in place\n{explained}\n");

    let alone = add.execution(Execution::new().pool(&CallingThread));
    let explained = alone.explain(
        Layout::contiguous(&table),
        TensorView::from(&many),
        DType::F32,
        true,
    )?;
    println!("40000 rows, in place, on the calling thread\n{explained}");
    Ok(())
}

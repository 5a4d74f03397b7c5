//! Reads any text as a machine file.
//!
//! - No text causes a panic.
//! - An accepted machine is written to a file that is read as an equal machine.
//! - A scatter and a gather whose schedules are chosen for the machine give the bits of a sequential
//!   loop. Eight workers run them, with and without a plan.
//! - `explain` returns a text.

use ndscatter::{
    DType, Execution, Gather, Layout, Machine, Pool, Reduction, Scatter, ScatterError, TensorView,
    TensorViewMut,
};

/// Number of rows of the table.
const ROWS: usize = 61;
/// Numbers of elements of a row. Sizes above and below a cache line use different loops. Miri is slow,
/// so it runs smaller calls.
const WIDTHS: &[usize] = if cfg!(miri) { &[3] } else { &[1, 3, 24] };
/// Number of tuples of a call.
const TUPLES: usize = if cfg!(miri) { 20 } else { 400 };

/// Runs a case from the bytes of the fuzzer.
pub fn fuzz(data: &[u8]) {
    let text = std::str::from_utf8(data).unwrap_or_default();
    if let Ok(machine) = text.parse() {
        check(&machine);
    }
}

/// A pool that reports eight workers and runs all tasks on the calling thread. The last task runs
/// first, so a schedule that relies on the order of its tasks gives other bits.
struct Eight;

impl Pool for Eight {
    fn workers(&self) -> Option<usize> {
        Some(8)
    }

    fn run(&self, tasks: usize, task: &(dyn Fn(usize) + Sync)) {
        (0..tasks).rev().for_each(task);
    }
}

fn check(machine: &Machine) {
    // Miri does not support the flags with which the crate opens a machine file.
    if !cfg!(miri) {
        written_and_read(machine);
    }
    assert!(!machine.to_string().is_empty(), "a description");
    let rows = rows();
    for &width in WIDTHS {
        for reduction in [Reduction::None, Reduction::Add, Reduction::Mean] {
            let call = Call {
                execution: Execution::new().pool(&Eight).machine(machine),
                rows: &rows,
                width,
                reduction,
            };
            call.check().expect("a valid call");
        }
    }
}

/// Checks that the machine is equal after it was written to a file and read.
fn written_and_read(machine: &Machine) {
    let name = format!("ndscatter-fuzz-machine-{}", std::process::id());
    let path = std::env::temp_dir().join(name);
    machine.write(&path).expect("the file is written");
    let read = Machine::read(&path);
    std::fs::remove_file(&path).expect("the file is removed");
    assert_eq!(&read.expect("a written machine"), machine);
}

/// Returns the row of each tuple. Some rows have many tuples, and some have none.
fn rows() -> Vec<u16> {
    let rows = (0..TUPLES).map(|tuple| tuple * tuple * 7 % ROWS % 50);
    rows.map(|row| u16::try_from(row).expect("a small number"))
        .collect()
}

/// A scatter of rows, and the gather of the same rows.
struct Call<'a> {
    execution: Execution<'a>,
    rows: &'a [u16],
    width: usize,
    reduction: Reduction,
}

impl Call<'_> {
    fn check(&self) -> Result<(), ScatterError> {
        let (shape, updates_shape) = ([ROWS, self.width], [TUPLES, self.width]);
        let table = values(ROWS * self.width, 0.3);
        let updates = values(TUPLES * self.width, 1.7);
        let given = TensorView::contiguous(&updates, &updates_shape)?;
        let indices = TensorView::from(self.rows);
        let scatter = Scatter::along(0)
            .reduction(self.reduction)
            .execution(self.execution);
        let expected = self.expected(&table, &updates);
        let mut result = table.clone();
        let output = TensorViewMut::contiguous(&mut result, &shape)?;
        scatter.in_place(output, indices, given)?;
        self.compare(&result, &expected);
        let plan = scatter.plan(Layout::contiguous(&shape), indices)?;
        let data = TensorView::contiguous(&table, &shape)?;
        let run = plan.run().execution(self.execution);
        let explained = run.explain(DType::F32, false)?.to_string();
        assert!(!explained.is_empty(), "an explanation");
        result.fill(-1.0);
        let output = TensorViewMut::contiguous(&mut result, &shape)?;
        run.write_into(data, given, output)?;
        self.compare(&result, &expected);
        let gather = Gather::along(0).execution(self.execution);
        let gathered = gather.allocate(data, indices)?.into_vec();
        let expected = self.rows.iter().map(|&row| self.row(&table, row.into()));
        self.compare(&gathered, &expected.flatten().copied().collect::<Vec<_>>());
        Ok(())
    }

    fn row<'t>(&self, table: &'t [f32], row: usize) -> &'t [f32] {
        &table[row * self.width..][..self.width]
    }

    /// Applies the tuples one after another.
    fn expected(&self, table: &[f32], updates: &[f32]) -> Vec<f32> {
        let mut result = table.to_vec();
        for (&row, update) in self.rows.iter().zip(updates.chunks(self.width)) {
            let current = &mut result[usize::from(row) * self.width..][..self.width];
            for (current, &update) in current.iter_mut().zip(update) {
                *current = match self.reduction {
                    Reduction::None => update,
                    _ => *current + update,
                };
            }
        }
        if self.reduction == Reduction::Mean {
            for (row, sums) in result.chunks_mut(self.width).enumerate() {
                let count = 1 + self
                    .rows
                    .iter()
                    .filter(|&&to| usize::from(to) == row)
                    .count();
                if count > 1 {
                    sums.iter_mut().for_each(|sum| *sum /= count as f32);
                }
            }
        }
        result
    }

    fn compare(&self, got: &[f32], expected: &[f32]) {
        let bits = |values: &[f32]| {
            values
                .iter()
                .map(|value| value.to_bits())
                .collect::<Vec<_>>()
        };
        let (width, reduction) = (self.width, self.reduction);
        assert!(
            bits(got) == bits(expected),
            "{reduction} of rows of {width}"
        );
    }
}

/// Returns values whose sums depend on the order of the additions.
fn values(count: usize, step: f32) -> Vec<f32> {
    let value = |at: usize| (at as f32 * step).sin() * 10_f32.powi((at % 7) as i32 - 3);
    (0..count).map(value).collect()
}

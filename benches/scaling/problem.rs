//! Holds one scatter of rows in memory: its tensors, the calls that are timed, and the
//! reference loop for each row.
//!
//! Values of data are computed from their positions. A table of gigabytes is therefore
//! checked without a second copy.

#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    reason = "rows and tuples have at most 31 bits"
)]

use std::fmt;

use ndscatter::{
    DType, Execution, Layout, Reduction, Scatter, Schedule, TensorView, TensorViewMut,
};
use rayon::iter::{IndexedParallelIterator, ParallelIterator};
use rayon::slice::ParallelSliceMut;

use crate::common::aligned::Aligned;
use crate::common::inputs::Form;
use crate::common::random::Random;

/// Approximate number of elements that one task fills or checks.
const PART: usize = 1 << 16;

// Seeds of the values of each tensor.
const DATA: u64 = 1;
const UPDATES: u64 = 2;
const UNWRITTEN: u64 = 3;

/// A scatter of `tuples` rows of `window` elements into a table of `rows`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Problem {
    pub(crate) rows: usize,
    pub(crate) window: usize,
    pub(crate) tuples: usize,
    pub(crate) pattern: Pattern,
}

/// Distribution of the rows that tuples name.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Pattern {
    /// Uniformly random rows.
    Uniform,
    /// Each named row occurs this many times, in random order. The named rows are spread over
    /// the table. The number of rows of the table must be a power of two.
    Times(usize),
}

/// Form, reduction and number of workers of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Call {
    pub(crate) form: Form,
    pub(crate) reduction: Reduction,
    pub(crate) workers: usize,
}

impl Call {
    pub(crate) fn execution(self) -> Execution<'static> {
        Execution::new().max_workers(self.workers)
    }

    /// Returns the name of the call without the number of workers.
    pub(crate) fn kind(self) -> String {
        format!("{} {}", self.form, self.reduction)
    }
}

impl fmt::Display for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} × {}", self.kind(), self.workers)
    }
}

impl Problem {
    pub(crate) fn data_bytes(self) -> usize {
        self.rows * self.window * size_of::<f32>()
    }

    /// Returns the bytes of memory that the problem needs, with the output and an estimate of
    /// the crate's scratch memory.
    pub(crate) fn footprint(self, has_functional: bool) -> usize {
        let row = self.window * size_of::<f32>();
        let tables = 1 + usize::from(has_functional);
        tables * self.data_bytes() + self.tuples * (row + 64)
    }

    fn destinations(self) -> Vec<usize> {
        let mut random = Random::new(1);
        match self.pattern {
            Pattern::Uniform => random.uniform(self.tuples, self.rows),
            Pattern::Times(times) => {
                let distinct = self.tuples / times;
                let shuffled = random.distinct(self.tuples, self.tuples).into_iter();
                shuffled
                    .map(|tuple| self.spread(tuple % distinct))
                    .collect()
            }
        }
    }

    /// Returns a different row for each number below the number of rows. Rows of consecutive
    /// numbers are far apart. Rows differ because the factor is odd and the number of rows is a
    /// power of two.
    fn spread(self, number: usize) -> usize {
        number.wrapping_mul(0x9e37_79b1) & (self.rows - 1)
    }
}

/// A problem in memory.
pub(crate) struct Subject {
    problem: Problem,
    data_shape: Vec<usize>,
    updates_shape: Vec<usize>,
    indices_shape: [usize; 2],
    /// Data of functional calls. Empty if no call is functional.
    data: Aligned<f32>,
    updates: Aligned<f32>,
    indices: Vec<i64>,
    /// Row and tuple of every update, sorted by row and then by tuple.
    by_row: Vec<(u32, u32)>,
}

impl Subject {
    pub(crate) fn new(problem: Problem, has_functional: bool) -> Self {
        let destinations = problem.destinations();
        let numbered = destinations.iter().zip(0..);
        let mut by_row: Vec<_> = numbered.map(|(&row, tuple)| (row as u32, tuple)).collect();
        by_row.par_sort_unstable();
        let shape = |rows| match problem.window {
            1 => vec![rows],
            window => vec![rows, window],
        };
        let kept = if has_functional { problem.rows } else { 0 };
        let mut subject = Self {
            data_shape: shape(problem.rows),
            updates_shape: shape(problem.tuples),
            indices_shape: [problem.tuples, 1],
            data: Aligned::new(0.0, kept * problem.window),
            updates: Aligned::new(0.0, problem.tuples * problem.window),
            indices: destinations.into_iter().map(|row| row as i64).collect(),
            by_row,
            problem,
        };
        fill(&mut subject.data, DATA);
        fill(&mut subject.updates, UPDATES);
        subject
    }

    /// Returns memory for data that is written in place, or for a result.
    pub(crate) fn target(&self) -> Aligned<f32> {
        Aligned::new(0.0, self.len())
    }

    fn len(&self) -> usize {
        self.problem.rows * self.problem.window
    }

    /// Returns the minimum bytes that a call moves: each input byte that it needs is read once,
    /// and each output byte that it changes is written once.
    pub(crate) fn traffic(&self, call: Call) -> usize {
        let row = self.problem.window * size_of::<f32>();
        let distinct = self.by_row.chunk_by(|a, b| a.0 == b.0).count();
        let (touched, all) = (distinct * row, self.problem.data_bytes());
        let updates = match call.reduction {
            Reduction::None => touched,
            _ => size_of_val(&self.updates[..]) + touched,
        };
        let kept = match call.form {
            Form::InPlace => 0,
            Form::Functional | Form::Allocating => 2 * (all - touched),
        };
        size_of_val(&self.indices[..]) + updates + touched + kept
    }

    fn indices(&self) -> TensorView<'_, i64> {
        TensorView::contiguous(&self.indices, &self.indices_shape).expect("a row for each tuple")
    }

    /// Returns the schedule that a fresh plan chooses.
    pub(crate) fn schedule(&self, call: Call) -> Schedule {
        let output = Layout::contiguous(&self.data_shape);
        let plan = (Scatter::nd().reduction(call.reduction)).plan(output, self.indices());
        plan.expect("rows of the table")
            .run()
            .execution(call.execution())
            .explain(DType::F32, call.form == Form::InPlace)
            .expect("f32 has every reduction")
            .schedule()
    }

    /// Runs `call` on the first elements of `target`.
    pub(crate) fn run(&self, call: Call, target: &mut [f32]) {
        let scatter = (Scatter::nd().reduction(call.reduction)).execution(call.execution());
        let target = TensorViewMut::contiguous(&mut target[..self.len()], &self.data_shape)
            .expect("an output like data");
        let updates = TensorView::contiguous(&self.updates, &self.updates_shape)
            .expect("a window for each tuple");
        match call.form {
            Form::InPlace => scatter.in_place(target, self.indices(), updates),
            Form::Functional | Form::Allocating => {
                let data = TensorView::contiguous(&self.data, &self.data_shape).expect("kept data");
                scatter.write_into(data, self.indices(), updates, target)
            }
        }
        .expect("problems are valid");
    }

    /// Panics unless `call` gives the bits of the reference loop.
    pub(crate) fn check(&self, call: Call, target: &mut [f32]) {
        let target = &mut target[..self.len()];
        let is_data = call.form == Form::InPlace;
        fill(target, if is_data { DATA } else { UNWRITTEN });
        self.run(call, target);
        let window = self.problem.window;
        let part = (PART / window).max(1);
        (target.par_chunks_mut(part * window).enumerate())
            .for_each(|(index, values)| self.check_rows(call, index * part, values));
    }

    /// Compares the rows from `first` on with the reference loop.
    fn check_rows(&self, call: Call, first: usize, values: &[f32]) {
        let window = self.problem.window;
        let next = (self.by_row).partition_point(|&(row, _)| (row as usize) < first);
        let mut hits = &self.by_row[next..];
        let mut expected = vec![0.0; window];
        for (row, values) in (first..).zip(values.chunks_exact(window)) {
            for (value, position) in expected.iter_mut().zip(row * window..) {
                *value = value_at(DATA, position);
            }
            while let Some((&(_, tuple), rest)) =
                hits.split_first().filter(|(hit, _)| hit.0 as usize == row)
            {
                let update = &self.updates[tuple as usize * window..][..window];
                plain_step(call.reduction, &mut expected, update);
                hits = rest;
            }
            let same = |(value, expected): (&f32, &f32)| value.to_bits() == expected.to_bits();
            let is_right = values.iter().zip(&expected).all(same);
            assert!(is_right, "{call}: row {row} of {:?}", self.problem);
        }
    }
}

/// Applies one update to a row, as the reference loop does.
fn plain_step(reduction: Reduction, row: &mut [f32], update: &[f32]) {
    match reduction {
        Reduction::None => row.copy_from_slice(update),
        Reduction::Add => row
            .iter_mut()
            .zip(update)
            .for_each(|(value, update)| *value += update),
        other => unreachable!("no sweep has the reduction {other}"),
    }
}

/// Returns a number in `[-1, 1)` for a position, computed by SplitMix64's mixing.
fn value_at(seed: u64, position: usize) -> f32 {
    let mut z = (position as u64 ^ seed << 40).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 32)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    (z >> 40) as f32 * (1.0 / (1 << 23) as f32) - 1.0
}

fn fill(values: &mut [f32], seed: u64) {
    (values.par_chunks_mut(PART).enumerate()).for_each(|(index, part)| {
        for (value, position) in part.iter_mut().zip(index * PART..) {
            *value = value_at(seed, position);
        }
    });
}

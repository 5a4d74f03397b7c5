//! Holds a workload in memory, with the calls that are timed and the sequential reference
//! loop that checks their results.

#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_sign_loss,
    reason = "indices were made from sizes of the workload"
)]

use std::fmt;

use ndscatter::{Execution, Index, Layout, Reduction, Scatter, ScatterPlan, Schedule, TensorView};

use super::aligned::Aligned;
use super::numbers::{Number, assert_bits};
use super::random::Random;
use super::workloads::{Operator, Workload};
use super::{view, view_mut};

/// Number of index sets. Calls rotate through them, so branch predictors cannot learn one.
pub(crate) const SETS: usize = 3;

/// Destination of the result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// The result replaces data.
    InPlace,
    /// The result is written into an existing output. Data does not change.
    Functional,
    /// The result is written into an output that the call allocates. Data does not change.
    Allocating,
}

impl fmt::Display for Form {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::InPlace => "in place",
            Self::Functional => "functional",
            Self::Allocating => "allocating",
        })
    }
}

/// Minimum bytes that a call moves: each input byte that it needs is read once, and each
/// output byte that it changes is written once.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Traffic {
    pub(crate) read: usize,
    pub(crate) written: usize,
}

impl Traffic {
    pub(crate) fn total(self) -> usize {
        self.read + self.written
    }
}

/// Initial value of outputs. No workload contains it, so an element that a call did not write
/// is found.
const UNWRITTEN: f32 = 2.0;

/// A type of indices.
pub(crate) trait Place: Index + TryFrom<i64> + Into<i64> {}

impl<I: Index + TryFrom<i64> + Into<i64>> Place for I {}

/// The tensors of a workload.
pub(crate) struct Inputs<T = f32, I = i64> {
    pub(crate) workload: Workload,
    pub(crate) data: Aligned<T>,
    pub(crate) updates: Aligned<T>,
    updates_shape: Vec<usize>,
    indices: [Vec<I>; SETS],
}

impl Inputs {
    pub(crate) fn new(workload: Workload) -> Self {
        let mut random = Random::new(1);
        let mut data = Aligned::new(f32::NEG_INFINITY, workload.data.iter().product());
        if !workload.starts_lowest {
            random.fill(&mut data);
        }
        let mut updates = Aligned::new(0.0, workload.updates_shape().iter().product());
        random.fill(&mut updates);
        Self::with_tensors(workload, data, updates, &mut random)
    }

    /// Converts the workload to other types of elements and indices.
    pub(crate) fn converted<T: Number, I: Place>(&self) -> Inputs<T, I> {
        let index = |&index| I::try_from(index).unwrap_or_else(|_| panic!("{index} is too large"));
        Inputs {
            workload: self.workload,
            data: converted(&self.data),
            updates: converted(&self.updates),
            updates_shape: self.updates_shape.clone(),
            indices: (self.indices.each_ref()).map(|set| set.iter().map(index).collect()),
        }
    }
}

impl<T: Number> Inputs<T> {
    /// Creates a workload whose data is `value` everywhere, with updates from `update`.
    pub(crate) fn of_values(
        workload: Workload,
        value: T,
        mut update: impl FnMut(&mut Random) -> T,
    ) -> Self {
        let mut random = Random::new(1);
        let data = Aligned::new(value, workload.data.iter().product());
        let mut updates = Aligned::new(value, workload.updates_shape().iter().product());
        updates.fill_with(|| update(&mut random));
        Self::with_tensors(workload, data, updates, &mut random)
    }

    fn with_tensors(
        workload: Workload,
        data: Aligned<T>,
        updates: Aligned<T>,
        random: &mut Random,
    ) -> Self {
        Self {
            data,
            updates,
            indices: std::array::from_fn(|_| workload.coordinates(random)),
            updates_shape: workload.updates_shape(),
            workload,
        }
    }
}

impl<T: Number, I: Place> Inputs<T, I> {
    /// Allocates memory for a result.
    pub(crate) fn target(&self) -> Aligned<T> {
        Aligned::new(T::of(0.0), self.data.len())
    }

    pub(crate) fn data_view(&self) -> TensorView<'_, T> {
        view(&self.data, self.workload.data)
    }

    pub(crate) fn updates_view(&self) -> TensorView<'_, T> {
        view(&self.updates, &self.updates_shape)
    }

    pub(crate) fn indices_view(&self, set: usize) -> TensorView<'_, I> {
        view(self.indices(set), self.workload.indices)
    }

    pub(crate) fn indices(&self, set: usize) -> &[I] {
        &self.indices[set]
    }

    /// Returns the scatter of the workload, with its reduction.
    pub(crate) fn operator(&self) -> Scatter<'static> {
        let operator = match self.workload.operator {
            Operator::Nd => Scatter::nd(),
            Operator::Update { axis } => Scatter::along(axis as isize),
        };
        operator.reduction(self.workload.reduction)
    }

    /// Runs a one-shot call. `target` is the data or the output. Returns the allocated result,
    /// which the caller drops outside the timing.
    pub(crate) fn scatter(
        &self,
        execution: Execution<'_>,
        form: Form,
        target: &mut [T],
        set: usize,
    ) -> Option<Vec<T>> {
        let scatter = self.operator().execution(execution);
        let (indices, updates) = (self.indices_view(set), self.updates_view());
        let target = view_mut(target, self.workload.data);
        match form {
            Form::InPlace => scatter.in_place(target, indices, updates).map(|()| None),
            Form::Functional => scatter
                .write_into(self.data_view(), indices, updates, target)
                .map(|()| None),
            Form::Allocating => scatter
                .allocate(self.data_view(), indices, updates)
                .map(|result| Some(result.into_vec())),
        }
        .expect("workloads are valid")
    }

    /// Plans one index set.
    pub(crate) fn plan(&self, set: usize) -> ScatterPlan {
        let output = Layout::contiguous(self.workload.data);
        let plan = self.operator().plan(output, self.indices_view(set));
        plan.expect("workloads are valid")
    }

    /// Runs a kept plan. Otherwise like [`scatter`](Self::scatter).
    pub(crate) fn scatter_planned(
        &self,
        plan: &ScatterPlan,
        execution: Execution<'_>,
        form: Form,
        target: &mut [T],
    ) -> Option<Vec<T>> {
        let (run, updates) = (plan.run().execution(execution), self.updates_view());
        let target = view_mut(target, self.workload.data);
        match form {
            Form::InPlace => run.in_place(target, updates).map(|()| None),
            Form::Functional => run
                .write_into(self.data_view(), updates, target)
                .map(|()| None),
            Form::Allocating => run
                .allocate(self.data_view(), updates)
                .map(|result| Some(result.into_vec())),
        }
        .expect("workloads are valid")
    }

    /// Returns the schedule of a call with a fresh plan.
    pub(crate) fn schedule(&self, execution: Execution<'_>, form: Form) -> Schedule {
        (self.plan(0).run().execution(execution))
            .explain(T::DTYPE, form == Form::InPlace)
            .expect("the type has the reduction")
            .schedule()
    }

    /// Panics unless `call` leaves `expected` in `target`, bit for bit.
    pub(crate) fn check(
        &self,
        form: Form,
        target: &mut [T],
        expected: &[T],
        call: impl FnOnce(&mut [T]),
    ) {
        match form {
            Form::InPlace => target.copy_from_slice(&self.data),
            Form::Functional | Form::Allocating => target.fill(T::of(UNWRITTEN)),
        }
        call(target);
        let (name, dtype) = (self.workload.name, T::DTYPE);
        assert_bits(format_args!("{name}, {dtype}, {form}"), target, expected);
    }

    /// Runs the reference loop in place: it applies tuples in order on one thread, row by row. A
    /// user without the crate would write this loop.
    pub(crate) fn plain_loop(&self, target: &mut [T], set: usize) {
        match self.workload.reduction {
            Reduction::None => self.each_row(target, set, |row, update| {
                row.copy_from_slice(update);
            }),
            Reduction::Add => self.each_row(target, set, |row, update| {
                combine(row, update, Reduction::Add);
            }),
            Reduction::Max => self.each_row(target, set, |row, update| {
                combine(row, update, Reduction::Max);
            }),
            other => unreachable!("no workload has the reduction {other}"),
        }
    }

    fn each_row(&self, target: &mut [T], set: usize, apply: impl Fn(&mut [T], &[T])) {
        let (workload, len) = (&self.workload, self.workload.window());
        let (slices, tuples) = (workload.slices(), workload.tuples());
        let sizes = &workload.data[workload.indexed_axes()];
        for repetition in 0..workload.repetitions() {
            for (tuple, coordinates) in self.indices[set].chunks_exact(sizes.len()).enumerate() {
                let dst = (repetition * slices + number(coordinates, sizes)) * len;
                let src = (repetition * tuples + tuple) * len;
                apply(&mut target[dst..dst + len], &self.updates[src..src + len]);
            }
        }
    }

    /// Computes the expected bits of a scatter with index set `set`.
    pub(crate) fn expected(&self, set: usize) -> Vec<T> {
        let mut result = self.data.to_vec();
        self.plain_loop(&mut result, set);
        result
    }

    /// Computes the minimum bytes that a call moves.
    pub(crate) fn traffic(&self, form: Form, set: usize) -> Traffic {
        let bytes = size_of::<T>();
        let row = self.workload.window() * self.workload.repetitions() * bytes;
        let touched = self.destinations(set) * row;
        let kept = self.data.len() * bytes - touched;
        let replaces = self.workload.reduction == Reduction::None;
        let updates = if replaces {
            // Only the last update of a destination is needed.
            touched
        } else {
            self.updates.len() * bytes + touched
        };
        let read = updates + self.indices[set].len() * size_of::<I>();
        if form == Form::InPlace {
            return Traffic {
                read,
                written: touched,
            };
        }
        Traffic {
            read: read + kept,
            written: kept + touched,
        }
    }

    /// Counts the distinct destinations of an index set.
    fn destinations(&self, set: usize) -> usize {
        let sizes = &self.workload.data[self.workload.indexed_axes()];
        let mut seen = vec![false; self.workload.slices()];
        for coordinates in self.indices[set].chunks_exact(sizes.len()) {
            seen[number(coordinates, sizes)] = true;
        }
        seen.into_iter().filter(|&seen| seen).count()
    }
}

fn converted<T: Number>(values: &[f32]) -> Aligned<T> {
    let mut result = Aligned::new(T::of(0.0), values.len());
    for (result, &value) in result.iter_mut().zip(values) {
        *result = T::of(value);
    }
    result
}

/// Combines a row with its updates. Inlining makes the reduction a constant. Otherwise the
/// loop would branch on it for each element.
#[inline(always)]
fn combine<T: Number>(row: &mut [T], updates: &[T], reduction: Reduction) {
    for (value, &update) in row.iter_mut().zip(updates) {
        *value = value.combined(update, reduction);
    }
}

/// Computes the row-major number of a destination.
fn number<I: Place>(coordinates: &[I], sizes: &[usize]) -> usize {
    (coordinates.iter().zip(sizes)).fold(0, |number, (&index, size)| {
        number * size + index.into() as usize
    })
}

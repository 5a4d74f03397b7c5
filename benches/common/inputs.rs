//! A workload in memory, the calls that are timed on it, and the plain loop
//! that judges them.

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

/// Index sets that calls rotate through, so that no predictor learns one.
pub(crate) const SETS: usize = 3;

/// Where the result goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// Into the data.
    InPlace,
    /// Into an output that is there; the data is kept.
    Functional,
    /// Into an output that the call allocates; the data is kept.
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

/// Bytes that a call must move: each that it needs once in, each that it
/// changes once out.
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

/// No number of a workload: a call that leaves it has not written its output.
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

    /// The same numbers in other types.
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
    /// With data of one value, and the updates that `update` makes.
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
    /// Memory for a result.
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

    /// The operator, with what it means.
    pub(crate) fn operator(&self) -> Scatter<'static> {
        let operator = match self.workload.operator {
            Operator::Nd => Scatter::nd(),
            Operator::Update { axis } => Scatter::along(axis as isize),
        };
        operator.reduction(self.workload.reduction)
    }

    /// A call of the operator: `target` is the data or the output. Returns
    /// what it allocated, for the caller to drop outside the timing.
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

    /// A plan for one index set.
    pub(crate) fn plan(&self, set: usize) -> ScatterPlan {
        let output = Layout::contiguous(self.workload.data);
        let plan = self.operator().plan(output, self.indices_view(set));
        plan.expect("workloads are valid")
    }

    /// [`scatter`](Self::scatter) with a plan made before.
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

    /// The schedule of a call with a fresh plan.
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

    /// The judge, and what a user without the crate would write: one tuple
    /// after another, one row after another, on one thread. In place.
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

    /// What a scatter of index set `set` must give, bit for bit.
    pub(crate) fn expected(&self, set: usize) -> Vec<T> {
        let mut result = self.data.to_vec();
        self.plain_loop(&mut result, set);
        result
    }

    /// Bytes that a call must move.
    pub(crate) fn traffic(&self, form: Form, set: usize) -> Traffic {
        let bytes = size_of::<T>();
        let row = self.workload.window() * self.workload.repetitions() * bytes;
        let touched = self.destinations(set) * row;
        let kept = self.data.len() * bytes - touched;
        let replaces = self.workload.reduction == Reduction::None;
        let updates = if replaces {
            // Of several updates of one destination only the last is needed.
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

    /// How many different destinations a set has.
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

/// Inlined for one reduction: else each element would ask which one it is.
#[inline(always)]
fn combine<T: Number>(row: &mut [T], updates: &[T], reduction: Reduction) {
    for (value, &update) in row.iter_mut().zip(updates) {
        *value = value.combined(update, reduction);
    }
}

/// The row-major number of a destination.
fn number<I: Place>(coordinates: &[I], sizes: &[usize]) -> usize {
    (coordinates.iter().zip(sizes)).fold(0, |number, (&index, size)| {
        number * size + index.into() as usize
    })
}

//! A workload in memory, the calls that are timed on it, and the plain loop
//! that judges them.

#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_sign_loss,
    reason = "indices were made from sizes of the workload"
)]

use ndscatter::{Execution, Layout, Reduction, Scatter, ScatterPlan, TensorView, TensorViewMut};

use super::aligned::Aligned;
use super::random::Random;
use super::workloads::{Operator, Pattern, Workload};

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

/// The tensors of a workload.
pub(crate) struct Inputs {
    pub(crate) workload: Workload,
    pub(crate) data: Aligned<f32>,
    pub(crate) updates: Aligned<f32>,
    updates_shape: Vec<usize>,
    indices: [Vec<i64>; SETS],
}

impl Inputs {
    pub(crate) fn new(workload: Workload) -> Self {
        let mut random = Random::new(1);
        let updates_shape = workload.updates_shape();
        let mut data = Aligned::new(f32::NEG_INFINITY, workload.data.iter().product());
        if !workload.starts_lowest {
            random.fill(&mut data);
        }
        let mut updates = Aligned::new(0.0, updates_shape.iter().product());
        random.fill(&mut updates);
        Self {
            data,
            updates,
            indices: std::array::from_fn(|_| coordinates(&workload, &mut random)),
            updates_shape,
            workload,
        }
    }

    /// Memory for a result.
    pub(crate) fn target(&self) -> Aligned<f32> {
        Aligned::new(0.0, self.data.len())
    }

    pub(crate) fn data_view(&self) -> TensorView<'_, f32> {
        TensorView::contiguous(&self.data, self.workload.data).expect("data has its shape")
    }

    pub(crate) fn updates_view(&self) -> TensorView<'_, f32> {
        TensorView::contiguous(&self.updates, &self.updates_shape).expect("updates have theirs")
    }

    pub(crate) fn indices_view(&self, set: usize) -> TensorView<'_, i64> {
        TensorView::contiguous(&self.indices[set], self.workload.indices).expect("so have indices")
    }

    /// The operator, with what it means.
    pub(crate) fn operator(&self) -> Scatter<'static> {
        let operator = match self.workload.operator {
            Operator::Nd => Scatter::nd(),
            Operator::Update { axis } => Scatter::update(axis as isize),
        };
        operator.reduction(self.workload.reduction)
    }

    /// A call of the operator: `target` is the data or the output. Returns
    /// what it allocated, for the caller to drop outside the timing.
    pub(crate) fn scatter(
        &self,
        execution: Execution<'_>,
        form: Form,
        target: &mut [f32],
        set: usize,
    ) -> Option<Vec<f32>> {
        let scatter = self.operator().execution(execution);
        let (indices, updates) = (self.indices_view(set), self.updates_view());
        let target = TensorViewMut::contiguous(target, self.workload.data).expect("target");
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
        target: &mut [f32],
    ) -> Option<Vec<f32>> {
        let (run, updates) = (plan.run().execution(execution), self.updates_view());
        let target = TensorViewMut::contiguous(target, self.workload.data).expect("target");
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

    /// The judge, and what a user without the crate would write: one tuple
    /// after another, one row after another, on one thread. In place.
    pub(crate) fn plain_loop(&self, target: &mut [f32], set: usize) {
        match self.workload.reduction {
            Reduction::None => self.each_row(target, set, |row, update| {
                row.copy_from_slice(update);
            }),
            Reduction::Add => self.each_row(target, set, |row, update| {
                for (value, update) in row.iter_mut().zip(update) {
                    *value += update;
                }
            }),
            Reduction::Max => self.each_row(target, set, |row, update| {
                for (value, &update) in row.iter_mut().zip(update) {
                    *value = if update > *value || update.is_nan() {
                        update
                    } else {
                        *value
                    };
                }
            }),
            other => unreachable!("no workload has the reduction {other}"),
        }
    }

    fn each_row(&self, target: &mut [f32], set: usize, apply: impl Fn(&mut [f32], &[f32])) {
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
    pub(crate) fn expected(&self, set: usize) -> Vec<f32> {
        let mut result = self.data.to_vec();
        self.plain_loop(&mut result, set);
        result
    }

    /// Bytes that a call must move.
    pub(crate) fn traffic(&self, form: Form, set: usize) -> Traffic {
        let bytes = size_of::<f32>();
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
        let read = updates + self.indices[set].len() * size_of::<i64>();
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

/// The row-major number of a destination.
fn number(coordinates: &[i64], sizes: &[usize]) -> usize {
    (coordinates.iter().zip(sizes)).fold(0, |number, (&index, size)| number * size + index as usize)
}

/// Makes one index set.
pub(crate) fn coordinates(workload: &Workload, random: &mut Random) -> Vec<i64> {
    let (tuples, slices) = (workload.tuples(), workload.slices());
    let numbers = match workload.pattern {
        Pattern::Unique => random.distinct(tuples, slices),
        Pattern::Uniform => random.uniform(tuples, slices),
        Pattern::Zipf => random.zipf(tuples, slices, 1.2),
        Pattern::Even => (random.distinct(tuples, tuples).into_iter())
            .map(|number| number % slices)
            .collect(),
        Pattern::Stretches => stretches(workload, random),
    };
    let sizes = &workload.data[workload.indexed_axes()];
    let mut indices = vec![0; tuples * sizes.len()];
    for (number, tuple) in numbers.iter().zip(indices.chunks_exact_mut(sizes.len())) {
        let mut rest = *number;
        for (index, size) in tuple.iter_mut().zip(sizes).rev() {
            *index = (rest % size) as i64;
            rest /= size;
        }
    }
    indices
}

fn stretches(workload: &Workload, random: &mut Random) -> Vec<usize> {
    let (sequences, room) = (workload.data[0], workload.data[1]);
    let len = workload.tuples() / sequences;
    (0..sequences)
        .flat_map(|sequence| {
            let first = sequence * room + random.below(room - len + 1);
            first..first + len
        })
        .collect()
}

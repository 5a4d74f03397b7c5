//! A workload with elements and indices of other types: the numbers of
//! [`Inputs`] converted, the call that is timed on them, and the plain loop
//! that judges it.

#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "numbers lie in a small range, indices in that of a size"
)]

use std::cell::RefCell;

use ndscatter::{Gather, Index, Layout, Scatter, Schedule, TensorView, TensorViewMut};

use crate::common::aligned::Aligned;
use crate::common::inputs::{Form, Inputs, SETS};
use crate::common::numbers::Number;
use crate::common::workloads::Operator;

/// No number of a workload: what a functional call must not leave.
const UNWRITTEN: f32 = 2.0;

/// A type of indices.
pub(crate) trait Place: Index + TryFrom<i64> + Into<i64> {}

impl<I: Index + TryFrom<i64> + Into<i64>> Place for I {}

/// A workload of `ScatterND`, its tensors in types of their own.
pub(crate) struct Typed<'a, T, I> {
    inputs: &'a Inputs,
    data: Aligned<T>,
    updates: Aligned<T>,
    updates_shape: Vec<usize>,
    indices: [Vec<I>; SETS],
    /// The data or the output of calls.
    target: RefCell<Aligned<T>>,
}

impl<'a, T: Number, I: Place> Typed<'a, T, I> {
    pub(crate) fn new(inputs: &'a Inputs) -> Self {
        let is_nd = matches!(inputs.workload.operator, Operator::Nd);
        assert!(is_nd, "{} is no ScatterND", inputs.workload.name);
        Self {
            data: converted(&inputs.data),
            updates: converted(&inputs.updates),
            updates_shape: inputs.workload.updates_shape(),
            indices: std::array::from_fn(|set| indices(inputs, set)),
            target: RefCell::new(Aligned::new(T::of(UNWRITTEN), inputs.data.len())),
            inputs,
        }
    }

    /// A call into the target.
    pub(crate) fn scatter(&self, form: Form, set: usize) {
        let workload = &self.inputs.workload;
        let target = &mut *self.target.borrow_mut();
        let target = TensorViewMut::contiguous(target, workload.data).expect("target");
        let data = TensorView::contiguous(&self.data, workload.data).expect("data");
        let indices = self.indices_view(set);
        let updates = TensorView::contiguous(&self.updates, &self.updates_shape).expect("updates");
        let scatter = Scatter::nd().reduction(workload.reduction);
        if form == Form::InPlace {
            scatter.in_place(target, indices, updates)
        } else {
            scatter.write_into(data, indices, updates, target)
        }
        .expect("workloads are valid");
    }

    /// The schedule of a call with a fresh plan.
    pub(crate) fn schedule(&self, form: Form) -> Schedule {
        let workload = &self.inputs.workload;
        let scatter = Scatter::nd().reduction(workload.reduction);
        (scatter.plan(Layout::contiguous(workload.data), self.indices_view(0)))
            .and_then(|plan| plan.run().explain(T::DTYPE, form == Form::InPlace))
            .expect("the type has the reduction")
            .schedule()
    }

    /// Panics unless both forms give the bits of the plain loop.
    pub(crate) fn check(&self) {
        for set in 0..SETS {
            let expected = self.expected(set);
            for form in [Form::InPlace, Form::Functional] {
                if form == Form::InPlace {
                    self.target.borrow_mut().copy_from_slice(&self.data);
                } else {
                    self.target.borrow_mut().fill(T::of(UNWRITTEN));
                }
                self.scatter(form, set);
                let result = self.target.borrow();
                let wrong = (result.iter().zip(&expected))
                    .position(|(value, expected)| value.bits() != expected.bits());
                if let Some(at) = wrong {
                    let (name, ty) = (self.inputs.workload.name, T::DTYPE);
                    let (is, not) = (result[at], expected[at]);
                    panic!(
                        "{name} {ty}, {form:?}, index set {set}: element {at} is {is:?}, not {not:?}"
                    );
                }
            }
        }
    }

    /// Bytes that a call must move.
    pub(crate) fn traffic(&self, form: Form) -> usize {
        let places = self.indices[0].len();
        let all = self.inputs.traffic(form, 0).total();
        let elements = (all - places * size_of::<i64>()) / size_of::<f32>();
        elements * size_of::<T>() + places * size_of::<I>()
    }

    fn indices_view(&self, set: usize) -> TensorView<'_, I> {
        TensorView::contiguous(&self.indices[set], self.inputs.workload.indices).expect("indices")
    }

    /// What one tuple after another makes of the data.
    fn expected(&self, set: usize) -> Vec<T> {
        let (workload, len) = (&self.inputs.workload, self.inputs.workload.window());
        let sizes = &workload.data[workload.indexed_axes()];
        let mut result = self.data.to_vec();
        let tuples = self.indices[set].chunks_exact(sizes.len());
        for (tuple, update) in tuples.zip(self.updates.chunks_exact(len)) {
            let coordinates = tuple.iter().zip(sizes);
            let number = coordinates.fold(0, |number, (&place, size)| {
                number * size + place.into() as usize
            });
            let row = &mut result[number * len..][..len];
            for (value, &update) in row.iter_mut().zip(update) {
                *value = value.combined(update, workload.reduction);
            }
        }
        result
    }
}

fn converted<T: Number>(values: &[f32]) -> Aligned<T> {
    let mut result = Aligned::new(T::of(0.0), values.len());
    for (result, &value) in result.iter_mut().zip(values) {
        *result = T::of(value);
    }
    result
}

/// The indices of a set, of which there is a view: all of its rows, gathered.
fn indices<I: Place>(inputs: &Inputs, set: usize) -> Vec<I> {
    let view = inputs.indices_view(set);
    let rows: Vec<i64> = (0..).take(view.shape()[0]).collect();
    let indices = Gather::along(0).allocate(view, TensorView::from(&rows));
    let indices = indices.expect("every row").into_vec();
    let convert = |index| I::try_from(index).unwrap_or_else(|_| panic!("{index} is too large"));
    indices.into_iter().map(convert).collect()
}

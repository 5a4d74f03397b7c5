//! A problem in memory: its tensors, the calls that are timed on them, and the
//! result that judges them.

use ndscatter::{
    CallingThread, Execution, Explanation, Layout, Reduction, Scatter, ScatterPlan, Schedule,
    TensorView, TensorViewMut,
};

use crate::common::aligned::Aligned;
use crate::common::inputs::{Form, Inputs};
use crate::common::numbers::Number;
use crate::common::random::Random;
use crate::forecast::Sample;
use crate::turns::Turns;

/// No result: what a call out of place must not leave.
const UNWRITTEN: f32 = 0.3;

/// The tensors of a problem.
pub(crate) struct Subject<'a, T> {
    scatter: Scatter<'static>,
    data: TensorView<'a, T>,
    indices: TensorView<'a, i64>,
    updates: TensorView<'a, T>,
    /// The elements of `data`, and what one tuple after another makes of them.
    before: &'a [T],
    expected: Vec<T>,
}

/// A way to run it, with one number of workers.
pub(crate) struct Way {
    form: Form,
    turns: Turns,
    /// For a run of a plan that is kept.
    plan: Option<ScatterPlan>,
    /// With several workers.
    forced: Option<Schedule>,
}

impl Way {
    pub(crate) fn workers(&self) -> usize {
        self.turns.workers()
    }

    /// One worker is the calling thread, which nobody divides work for.
    fn execution(&self) -> Execution<'_> {
        if self.workers() == 1 {
            return Execution::new().pool(&CallingThread);
        }
        let execution = Execution::new().pool(&self.turns);
        match self.forced {
            Some(schedule) => execution.force_schedule(schedule),
            None => execution,
        }
    }
}

impl<'a> Subject<'a, f32> {
    /// A workload with its first index set.
    pub(crate) fn of_workload(inputs: &'a Inputs) -> Self {
        Self {
            scatter: inputs.operator(),
            data: inputs.data_view(),
            indices: inputs.indices_view(0),
            updates: inputs.updates_view(),
            before: &inputs.data,
            expected: inputs.expected(0),
        }
    }
}

impl<T: Number> Subject<'_, T> {
    fn scatter<'e>(&self, execution: Execution<'e>) -> Scatter<'e> {
        self.scatter.clone().execution(execution)
    }

    /// A plan of its own for every way: what a run leaves in one depends on the
    /// workers that it was divided for.
    pub(crate) fn way(
        &self,
        form: Form,
        is_planned: bool,
        workers: usize,
        forced: Option<Schedule>,
    ) -> Way {
        let turns = Turns::new(workers);
        let plan = is_planned.then(|| {
            let scatter = self.scatter(Execution::new().pool(&CallingThread));
            let plan = scatter.plan(Layout::contiguous(self.data.shape()), self.indices);
            plan.expect("problems are valid")
        });
        Way {
            form,
            turns,
            plan,
            forced,
        }
    }

    /// What a call will do.
    pub(crate) fn explain(&self, way: &Way) -> Explanation {
        let in_place = way.form == Form::InPlace;
        let explained = match &way.plan {
            Some(plan) => (plan.run().execution(way.execution())).explain(T::DTYPE, in_place),
            None => self.scatter(way.execution()).explain(
                Layout::contiguous(self.data.shape()),
                self.indices,
                T::DTYPE,
                in_place,
            ),
        };
        explained.expect("problems are valid")
    }

    fn run(&self, way: &Way, target: &mut [T]) {
        let output = TensorViewMut::contiguous(target, self.data.shape()).expect("target");
        let execution = way.execution();
        let result = match (&way.plan, way.form) {
            (Some(plan), Form::InPlace) => {
                let run = plan.run().execution(execution);
                run.in_place(output, self.updates)
            }
            (Some(plan), _) => {
                let run = plan.run().execution(execution);
                run.write_into(self.data, self.updates, output)
            }
            (None, Form::InPlace) => {
                let scatter = self.scatter(execution);
                scatter.in_place(output, self.indices, self.updates)
            }
            (None, _) => {
                let scatter = self.scatter(execution);
                scatter.write_into(self.data, self.indices, self.updates, output)
            }
        };
        result.expect("problems are valid");
    }

    pub(crate) fn sample(&self, way: &Way, target: &mut [T]) -> Sample {
        Sample::take(&way.turns, || self.run(way, target))
    }

    /// Memory for a result.
    pub(crate) fn target(&self) -> Aligned<T> {
        Aligned::new(T::of(UNWRITTEN), self.before.len())
    }

    /// Panics unless a run gives the bits of the plain loop.
    pub(crate) fn check(&self, way: &Way, target: &mut [T]) {
        match way.form {
            Form::InPlace => target.copy_from_slice(self.before),
            _ => target.fill(T::of(UNWRITTEN)),
        }
        self.run(way, target);
        let mut pairs = target.iter().zip(&self.expected);
        if let Some(at) = pairs.position(|(is, not)| is.bits() != not.bits()) {
            let (is, not, workers) = (target[at], self.expected[at], way.workers());
            panic!("{workers} workers: element {at} is {is:?}, not {not:?}");
        }
    }
}

/// Keys that are counted, or of which the greatest values are kept, in bins.
pub(crate) struct Keys<T> {
    shapes: Shapes,
    reduction: Reduction,
    data: Aligned<T>,
    indices: Vec<i64>,
    updates: Aligned<T>,
}

struct Shapes {
    data: [usize; 1],
    indices: [usize; 2],
}

impl<T: Number> Keys<T> {
    /// With the updates that `update` makes.
    pub(crate) fn new(
        (bins, keys): (usize, usize),
        reduction: Reduction,
        mut update: impl FnMut(&mut Random) -> T,
    ) -> Self {
        let mut random = Random::new(1);
        let index = |place| i64::try_from(place).expect("a bin");
        let places = random.uniform(keys, bins);
        let mut updates = Aligned::new(T::of(0.0), keys);
        updates.fill_with(|| update(&mut random));
        Self {
            shapes: Shapes {
                data: [bins],
                indices: [keys, 1],
            },
            reduction,
            data: Aligned::new(T::of(0.0), bins),
            indices: places.into_iter().map(index).collect(),
            updates,
        }
    }

    pub(crate) fn subject(&self) -> Subject<'_, T> {
        let shapes = &self.shapes;
        let indices = TensorView::contiguous(&self.indices, &shapes.indices);
        let updates = TensorView::contiguous(&self.updates, &shapes.indices[..1]);
        Subject {
            scatter: Scatter::nd().reduction(self.reduction),
            data: TensorView::contiguous(&self.data, &shapes.data).expect("bins"),
            indices: indices.expect("keys"),
            updates: updates.expect("one a key"),
            before: &self.data,
            expected: self.expected(),
        }
    }

    /// What a user without the crate would write.
    fn expected(&self) -> Vec<T> {
        let mut bins = self.data.to_vec();
        for (&index, &update) in self.indices.iter().zip(&*self.updates) {
            let bin = &mut bins[usize::try_from(index).expect("a bin")];
            *bin = bin.combined(update, self.reduction);
        }
        bins
    }
}

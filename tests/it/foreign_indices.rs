//! Indices of a foreign runtime that another thread writes while calls read them. The result is
//! unspecified, but no call may access memory outside its tensors.
//!
//! Results are not compared with the reference. The tests detect the faults of a call that reads an
//! index twice: a write outside the output, a write after an error, or two workers that write one
//! slice. Marks surround every output. Two workers on one slice lose updates of a sum, or mix the
//! updates of two tuples in a slice.
//!
//! The writes are atomic. On x86-64, the crate's loads of indices are atomic too, so
//! ThreadSanitizer finds no data race there (`.ci/full`).

#![allow(
    unsafe_code,
    reason = "views of foreign memory are made by unsafe calls"
)]

use std::sync::atomic::{AtomicBool, AtomicI32, AtomicI64, AtomicUsize, Ordering};

use ndscatter::{
    AnyView, Bounds, CacheMode, DType, Duplicates, Execution, Gather, Layout, Machine, Pool,
    Reduction, ScatterError, Schedule, TensorView, TensorViewMut,
};

use crate::common::api::{self, GatherOptions, Options, Request};
use crate::common::indices::resolve_axis;
use crate::common::ndindex;
use crate::common::operators::{Gatherer, Operator};
use crate::common::pools::Workers;
use crate::common::random::Random;

/// The mark around tensors.
const MARK: u32 = 0xDEAD_BEEF;

/// Number of calls of each schedule with each of [`WORKERS`].
const CALLS: usize = 6;

const WORKERS: [Workers; 4] = [
    Workers::Given(4),
    Workers::Installed(3),
    Workers::Threads,
    Workers::CallingThread,
];

/// An index in memory that a thread writes.
trait Cell: Sync {
    const DTYPE: DType;
    /// A value far out of bounds of every tensor.
    const WILD: i64;

    fn new(value: i64) -> Self;
    fn set(&self, value: i64);
}

impl Cell for AtomicI32 {
    const DTYPE: DType = DType::I32;
    const WILD: i64 = 1 << 30;

    fn new(value: i64) -> Self {
        Self::new(narrow(value))
    }

    fn set(&self, value: i64) {
        self.store(narrow(value), Ordering::Relaxed);
    }
}

fn narrow(value: i64) -> i32 {
    value.try_into().expect("a small value")
}

impl Cell for AtomicI64 {
    const DTYPE: DType = DType::I64;
    const WILD: i64 = 1 << 44;

    fn new(value: i64) -> Self {
        Self::new(value)
    }

    fn set(&self, value: i64) {
        self.store(value, Ordering::Relaxed);
    }
}

/// The values to which indices change.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Change {
    /// Valid indices, also those of other tuples.
    Right,
    /// Any indices: valid, slightly out of bounds, and far out of bounds.
    Any,
}

/// The destinations of tuples before any change.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Order {
    /// Consecutive destinations, which wrap around at the end.
    Increasing,
    /// Destinations at a constant distance that visits all.
    Scattered,
}

/// The indices of a call.
#[derive(Clone, Copy, Debug)]
struct List<'a> {
    shape: &'a [usize],
    order: Order,
    /// Number of leading dims along which indices differ. Along the other dims, an index is
    /// repeated.
    differ: usize,
    /// Distance of adjacent indices in memory, in elements.
    step: usize,
}

impl<'a> List<'a> {
    fn new(shape: &'a [usize], order: Order) -> Self {
        Self {
            shape,
            order,
            differ: shape.len(),
            step: 1,
        }
    }

    /// Calls `run` with a view of the indices while a thread writes four of them. `sizes` are the
    /// sizes of the axes that a tuple addresses.
    fn while_they_change<C: Cell>(
        &self,
        sizes: &[usize],
        change: Change,
        counts_from_end: bool,
        run: impl FnOnce(AnyView<'_>),
    ) {
        let copies: usize = self.shape[self.differ..].iter().product();
        let count: usize = self.shape.iter().product();
        let signed = |value: usize| i64::try_from(value).expect("small");
        let right = |at: usize| {
            let (tuple, axis) = (at / copies / sizes.len(), at % sizes.len());
            let stride = match self.order {
                Order::Increasing => 1,
                Order::Scattered => 7,
            };
            // The product of the sizes of the axes after this one.
            let behind: usize = sizes[axis + 1..].iter().product();
            signed(tuple * stride / behind % sizes[axis])
        };
        // Elements between the indices are never valid.
        let cells: Vec<C> = (0..count * self.step)
            .map(|at| match at % self.step {
                0 => C::new(right(at / self.step)),
                _ => C::new(C::WILD),
            })
            .collect();
        let written: Vec<(usize, Vec<i64>)> = [0, count / 3, count / 2, count - 1]
            .into_iter()
            .map(|at| {
                let size = signed(sizes[at % sizes.len()]);
                let mut values = vec![0, right((at + count / 2 + sizes.len()) % count)];
                if counts_from_end {
                    values.push(-1);
                }
                if change == Change::Any {
                    values.extend([size, size + 2, C::WILD, -size - 2, -C::WILD]);
                }
                values.push(right(at));
                (at * self.step, values)
            })
            .collect();
        let mut strides = vec![0; self.shape.len()];
        let mut stride = self.step.cast_signed();
        for (at, &size) in self.shape.iter().enumerate().rev() {
            strides[at] = stride;
            stride *= size.cast_signed();
        }
        // A layout that is made from strides is a different input, even if it is contiguous.
        let layout = match self.step {
            1 => Layout::contiguous(self.shape),
            _ => Layout::strided(self.shape, &strides).expect("one stride per dim"),
        };
        // SAFETY: `cells` lives as long as the view. Another thread writes it on purpose, as a host
        // that breaks the contract.
        let view = unsafe { AnyView::from_raw_parts(cells.as_ptr().cast(), C::DTYPE, layout) };
        let view = view.expect("aligned");

        let (stop, rounds) = (AtomicBool::new(false), AtomicUsize::new(0));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                // The indices are written one after another, so that two of them sometimes differ
                // and sometimes agree.
                while !stop.load(Ordering::Relaxed) {
                    let round = rounds.fetch_add(1, Ordering::Relaxed);
                    for (number, (at, values)) in written.iter().enumerate() {
                        cells[*at].set(values[(round + number * round / 5) % values.len()]);
                    }
                    if round % 64 == 0 {
                        // The workers need a core too.
                        std::thread::yield_now();
                    }
                }
            });
            // The guard stops the thread also where `run` panics. The scope waits for its threads.
            let _stop = Stop(&stop);
            while rounds.load(Ordering::Relaxed) == 0 {
                std::thread::yield_now();
            }
            run(view);
        });
    }
}

struct Stop<'a>(&'a AtomicBool);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// A tensor with marks before and after it and, where its rows are apart, between its rows.
struct Guarded {
    memory: Vec<u32>,
    shape: Vec<usize>,
    strides: Vec<isize>,
    is_contiguous: bool,
    first: usize,
    /// Positions of the tensor's elements in row-major order, and all other positions.
    inside: Vec<usize>,
    outside: Vec<usize>,
}

impl Guarded {
    /// Creates a tensor with `apart` unused rows between the slices of the outermost axis.
    fn new(shape: &[usize], apart: usize, mut value: impl FnMut(usize) -> u32) -> Self {
        let mut strides = vec![1; shape.len()];
        for at in (1..shape.len()).rev() {
            let apart = if at == 1 { apart } else { 0 };
            strides[at - 1] = strides[at] * (shape[at] + apart);
        }
        let behind = strides[0] * shape[0];
        // The margin is larger than the distance of an index that is slightly out of bounds.
        let first = 4 * strides.iter().max().expect("an axis");
        let offset = |index: Vec<usize>| -> usize {
            first
                + index
                    .iter()
                    .zip(&strides)
                    .map(|(at, stride)| at * stride)
                    .sum::<usize>()
        };
        let inside: Vec<usize> = ndindex(shape).map(offset).collect();
        let mut memory = vec![MARK; first + behind + first];
        for (number, &at) in inside.iter().enumerate() {
            memory[at] = value(number);
        }
        let mut is_inside = vec![false; memory.len()];
        inside.iter().for_each(|&at| is_inside[at] = true);
        Self {
            outside: (0..memory.len()).filter(|&at| !is_inside[at]).collect(),
            strides: strides.iter().map(|stride| stride.cast_signed()).collect(),
            is_contiguous: apart == 0,
            shape: shape.to_vec(),
            memory,
            first,
            inside,
        }
    }

    fn view(&self) -> TensorView<'_, u32> {
        let last = self.memory.len() - self.first;
        if self.is_contiguous {
            TensorView::contiguous(&self.memory[self.first..last], &self.shape)
        } else {
            TensorView::strided(&self.memory, self.first, &self.shape, &self.strides)
        }
        .expect("the buffer contains the tensor")
    }

    fn view_mut(&mut self) -> TensorViewMut<'_, u32> {
        let last = self.memory.len() - self.first;
        if self.is_contiguous {
            TensorViewMut::contiguous(&mut self.memory[self.first..last], &self.shape)
        } else {
            TensorViewMut::strided(&mut self.memory, self.first, &self.shape, &self.strides)
        }
        .expect("the buffer contains the tensor")
    }

    fn layout(&self) -> Layout<'_> {
        if self.is_contiguous {
            Layout::contiguous(&self.shape)
        } else {
            Layout::strided(&self.shape, &self.strides).expect("one stride per dim")
        }
    }

    fn fill(&mut self, value: u32) {
        self.inside.iter().for_each(|&at| self.memory[at] = value);
    }

    fn values(&self) -> impl Iterator<Item = u32> {
        self.inside.iter().map(|&at| self.memory[at])
    }

    fn check_marks(&self, case: &dyn std::fmt::Debug) {
        let wrong = self.outside.iter().find(|&&at| self.memory[at] != MARK);
        assert_eq!(
            wrong, None,
            "a mark was overwritten, the first element is {}: {case:?}",
            self.first
        );
    }
}

/// A scatter whose indices change.
#[derive(Clone, Copy, Debug)]
struct Case<'a> {
    operator: Operator,
    data: &'a [usize],
    /// Number of unused rows between the slices of the output's outermost axis.
    apart: usize,
    list: List<'a>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Way {
    InPlace,
    WriteInto,
    /// A plan that is run twice. The second run executes its tasks in reverse order.
    Planned,
}

impl Way {
    const ALL: [Self; 3] = [Self::InPlace, Self::WriteInto, Self::Planned];
}

/// A pool that runs tasks from the last to the first, and reports this many workers.
struct Backwards(usize);

impl Pool for Backwards {
    fn workers(&self) -> Option<usize> {
        Some(self.0)
    }

    fn run(&self, tasks: usize, task: &(dyn Fn(usize) + Sync)) {
        (0..tasks).rev().for_each(task);
    }
}

/// The tensors of a case.
struct Tensors {
    output: Guarded,
    zeros: Vec<u32>,
    /// Shape of the updates. The values are ones, whose sum is a count, or a different value for
    /// every window.
    shape: Vec<usize>,
    ones: Vec<u32>,
    numbers: Vec<u32>,
}

impl Tensors {
    fn new(case: &Case<'_>) -> Self {
        let shape = case.operator.updates_shape(case.data, case.list.shape);
        let count = shape.iter().product();
        let window = case.window();
        let number = |at| u32::try_from(at / window + 1).expect("the value is small");
        Self {
            output: Guarded::new(case.data, case.apart, |_| 0),
            zeros: vec![0; case.data.iter().product()],
            ones: vec![1; count],
            numbers: (0..count).map(number).collect(),
            shape,
        }
    }
}

impl Case<'_> {
    /// Checks every schedule, with indices of two types: contiguous and strided.
    fn check(&self) {
        for change in [Change::Right, Change::Any] {
            self.check_list::<AtomicI64>(change);
            let list = List {
                step: 3,
                ..self.list
            };
            Case { list, ..*self }.check_list::<AtomicI32>(change);
        }
    }

    fn check_list<C: Cell>(&self, change: Change) {
        let is_cache = matches!(self.operator, Operator::Cache { .. });
        let reductions: &[Reduction] = match is_cache {
            true => &[Reduction::None],
            false => &[Reduction::Add, Reduction::None],
        };
        let bounds = match change {
            Change::Right => [Bounds::Error].as_slice(),
            Change::Any if is_cache => &[Bounds::Error, Bounds::Skip],
            Change::Any => &Bounds::ALL,
        };
        let mut random = Random::new(5);
        self.while_they_change::<C>(change, |indices| {
            let mut tensors = Tensors::new(self);
            for schedule in Schedule::ALL.map(Some).into_iter().chain([None]) {
                for workers in WORKERS.repeat(CALLS) {
                    let reduction = random.pick(reductions);
                    let bounds = random.pick(bounds);
                    let way = random.pick(&Way::ALL);
                    let duplicates = match random.one_in(3) {
                        true => Duplicates::Reject,
                        false => Duplicates::Allow,
                    };
                    workers.with(|pool| {
                        let request = Request::new(reduction).pool(pool).schedule(schedule);
                        let options = Options {
                            bounds,
                            duplicates,
                            ..Options::new(self.operator, request)
                        };
                        self.check_call(change, indices, &mut tensors, &options, way);
                    });
                }
            }
        });
    }

    fn while_they_change<C: Cell>(&self, change: Change, run: impl FnOnce(AnyView<'_>)) {
        let axes = self.operator.axes(self.data, self.list.shape);
        let sizes: Vec<usize> = axes.iter().map(|&(_, size)| size).collect();
        let counts_from_end = !matches!(self.operator, Operator::Cache { .. });
        self.list
            .while_they_change::<C>(&sizes, change, counts_from_end, run);
    }

    fn check_call(
        &self,
        change: Change,
        indices: AnyView<'_>,
        tensors: &mut Tensors,
        options: &Options<'_>,
        way: Way,
    ) {
        let case = (self, change, options.execution, way);
        let Tensors {
            output,
            zeros,
            shape,
            ones,
            numbers,
        } = tensors;
        let adds = options.execution.reduction == Reduction::Add;
        let (updates, count) = (if adds { &*ones } else { &*numbers }, ones.len());
        let updates = TensorView::contiguous(updates, shape).expect("the lengths agree");
        let data = TensorView::contiguous(zeros, self.data).expect("the lengths agree");
        let before = if way == Way::InPlace { 0 } else { 77 };
        output.fill(before);

        let result = match way {
            Way::InPlace => {
                let view = output.view_mut().into();
                api::in_place(options, view, indices, updates.into())
            }
            Way::WriteInto => {
                let view = output.view_mut().into();
                api::write_into(options, data.into(), indices, updates.into(), view)
            }
            Way::Planned => {
                let plan = options.scatter().plan(output.layout(), indices);
                plan.map(|plan| {
                    // If two tasks shared a slice, the order of tasks would change the result.
                    let execution = options.execution.execution;
                    let runs = [execution, execution.pool(&Backwards(4))].map(|execution| {
                        output.fill(before);
                        let run = options.run(&plan).execution(execution);
                        let done = run.write_into(data, updates, output.view_mut());
                        done.expect("the plan has checked all indices");
                        output.values().collect::<Vec<_>>()
                    });
                    assert!(runs[0] == runs[1], "two runs of one plan differ: {case:?}");
                })
            }
        };
        output.check_marks(&case);
        match result {
            Err(error) => {
                self.check_error(change, options, &error);
                let same = output.values().all(|value| value == before);
                assert!(
                    same,
                    "the output was written although the call failed: {error}: {case:?}"
                );
            }
            Ok(()) if adds => {
                let total: usize = output.values().map(|value| value as usize).sum();
                // With an invalid index, any update may be left out.
                assert!(
                    total == count || (change == Change::Any && total < count),
                    "{total} of {count} updates: {case:?}"
                );
            }
            Ok(()) => {
                let values: Vec<u32> = output.values().collect();
                let mut slices = values.chunks(self.window());
                let mixed = slices.position(|slice| slice.iter().any(|&value| value != slice[0]));
                assert_eq!(mixed, None, "a slice mixes two updates: {case:?}");
            }
        }
    }

    fn check_error(&self, change: Change, options: &Options<'_>, error: &ScatterError) {
        let is_expected = match error {
            ScatterError::IndexOutOfBounds { .. }
            | ScatterError::WriteIndex { .. }
            | ScatterError::SlotOutOfBounds { .. } => change == Change::Any,
            ScatterError::DuplicateIndex { .. } => options.duplicates == Duplicates::Reject,
            _ => false,
        };
        assert!(is_expected, "{error}: {self:?}, {change:?}");
    }

    /// Returns the number of elements in the slice that a tuple addresses.
    fn window(&self) -> usize {
        let behind = match self.operator {
            Operator::Nd => self.list.shape[self.list.shape.len() - 1],
            Operator::Paged => 2,
            Operator::Update { axis } | Operator::Cache { axis, .. } => {
                resolve_axis(axis, self.data.len()) + 1
            }
            // Each element has an index.
            Operator::Elements { .. } => self.data.len(),
        };
        self.data[behind..].iter().product()
    }
}

const fn nd<'a>(data: &'a [usize], list: List<'a>) -> Case<'a> {
    Case {
        operator: Operator::Nd,
        data,
        apart: 0,
        list,
    }
}

#[test]
fn rows_of_distinct_destinations() {
    for order in [Order::Increasing, Order::Scattered] {
        nd(&[150, 40], List::new(&[120, 1], order)).check();
    }
}

/// Tuples become duplicates of others during a call. Rows are so wide that two workers would write
/// one destination at the same time. For plans, the order of tasks would change the result.
#[test]
fn distinct_destinations_that_become_duplicates() {
    for order in [Order::Increasing, Order::Scattered] {
        for (width, way, turns) in [(1 << 17, Way::InPlace, 30), (8, Way::Planned, 300)] {
            let data = [5, width];
            let case = nd(&data, List::new(&[4, 1], order));
            case.while_they_change::<AtomicI64>(Change::Right, |indices| {
                let mut tensors = Tensors::new(&case);
                for reduction in [Reduction::Add, Reduction::None].repeat(turns) {
                    for workers in [Workers::Given(4), Workers::Threads] {
                        workers.with(|pool| {
                            let request = Request::new(reduction).pool(pool);
                            let request = request.schedule(Schedule::ByTuple);
                            let options = Options::new(case.operator, request);
                            let change = Change::Right;
                            case.check_call(change, indices, &mut tensors, &options, way);
                        });
                    }
                }
            });
        }
    }
}

#[test]
fn rows_with_duplicates() {
    nd(&[30, 24], List::new(&[400, 1], Order::Scattered)).check();
}

#[test]
fn tuples_of_two_coordinates() {
    let case = nd(&[12, 10, 16], List::new(&[100, 2], Order::Scattered));
    case.check();
    // Rows that are apart have offsets for destinations, not numbers of slices.
    Case { apart: 1, ..case }.check();
}

#[test]
fn single_elements() {
    // Many tuples for the size of the output, and few.
    for (data, tuples) in [(90, 1200), (3000, 700)] {
        nd(&[data], List::new(&[tuples, 1], Order::Scattered)).check();
    }
}

#[test]
fn small_calls() {
    for (shape, operator) in [
        (&[9, 2][..], Operator::Nd),
        (&[300, 2], Operator::Nd),
        (&[3, 3], Operator::Update { axis: 0 }),
        (&[4, 4], Operator::Elements { axis: 0 }),
        (&[4, 4], Operator::Elements { axis: 1 }),
        (&[3, 3], Operator::Paged),
        (&[300], Operator::Paged),
    ] {
        let data: &[usize] = match operator {
            Operator::Elements { .. } => &[20, 20],
            _ => &[20, 20, 2],
        };
        let list = List::new(shape, Order::Scattered);
        Case {
            operator,
            ..nd(data, list)
        }
        .check();
    }
}

#[test]
fn slices_along_an_axis() {
    for (axis, data) in [(0, &[90, 24][..]), (1, &[3, 90, 8]), (2, &[2, 3, 90])] {
        let list = List::new(&[8, 10], Order::Scattered);
        Case {
            operator: Operator::Update { axis },
            ..nd(data, list)
        }
        .check();
    }
}

#[test]
fn slots_of_a_paged_cache() {
    for (data, slots) in [(&[30, 5, 24][..], &[8, 10][..]), (&[20, 16], &[300])] {
        let list = List::new(slots, Order::Scattered);
        Case {
            operator: Operator::Paged,
            ..nd(data, list)
        }
        .check();
    }
}

#[test]
fn elements_along_an_axis() {
    for axis in [0, 1] {
        let list = List::new(&[40, 30], Order::Scattered);
        Case {
            operator: Operator::Elements { axis },
            ..nd(&[50, 40], list)
        }
        .check();
    }
}

/// Indices that repeat along the last axis. The crate detects the repetition and then reads the
/// indices once more.
#[test]
fn elements_that_are_rows() {
    for order in [Order::Increasing, Order::Scattered] {
        let list = List {
            differ: 1,
            ..List::new(&[45, 30], order)
        };
        Case {
            operator: Operator::Elements { axis: 0 },
            ..nd(&[50, 30], list)
        }
        .check();
    }
}

#[test]
fn sequences_of_a_cache() {
    for mode in [CacheMode::Linear, CacheMode::Circular] {
        let operator = Operator::Cache {
            axis: 2,
            mode,
            len: 4,
        };
        let list = List::new(&[6], Order::Scattered);
        Case {
            operator,
            ..nd(&[6, 3, 20, 8], list)
        }
        .check();
    }
}

/// Long lists, which several workers check in parts: for a plan, for copies of a small output, and
/// to detect rows. Where workers have ranges of an output, each of them checks the whole list.
#[test]
fn long_lists() {
    let list = |shape| List::new(shape, Order::Scattered);
    let rows = List {
        differ: 1,
        ..list(&[70_000, 16])
    };
    let cases = [
        nd(&[100], list(&[300_000, 1])),
        nd(&[70_000], list(&[1_050_000, 1])),
        Case {
            operator: Operator::Elements { axis: 0 },
            ..nd(&[200, 16], rows)
        },
        // Each worker has a range of the elements.
        nd(&[2000], list(&[300_000, 1])),
    ];
    let requests = [
        Reduction::Add,
        Reduction::Add,
        Reduction::Add,
        Reduction::None,
    ];
    for (case, reduction) in cases.into_iter().zip(requests) {
        for change in [Change::Right, Change::Any] {
            case.while_they_change::<AtomicI32>(change, |indices| {
                let mut tensors = Tensors::new(&case);
                Workers::Given(4).with(|pool| {
                    let request = Request::new(reduction).pool(pool);
                    for bounds in [Bounds::Error, Bounds::Skip] {
                        let options = Options {
                            bounds,
                            ..Options::new(case.operator, request)
                        };
                        case.check_call(change, indices, &mut tensors, &options, Way::InPlace);
                    }
                });
            });
        }
    }
}

/// Short lists in many calls. An index may be valid at the first read and invalid at the second.
#[test]
fn many_calls() {
    let cases = [
        nd(&[100], List::new(&[2000, 1], Order::Scattered)),
        nd(&[100, 3], List::new(&[2000, 1], Order::Scattered)),
    ];
    for case in cases {
        // Errors end a call early, so they get more calls.
        let bounds = [Bounds::Error, Bounds::Error, Bounds::Skip, Bounds::Clamp];
        case.while_they_change::<AtomicI64>(Change::Any, |indices| {
            let mut tensors = Tensors::new(&case);
            for bounds in bounds.repeat(1500) {
                Workers::CallingThread.with(|pool| {
                    let request = Request::new(Reduction::Add).pool(pool);
                    let options = Options {
                        bounds,
                        ..Options::new(case.operator, request)
                    };
                    case.check_call(Change::Any, indices, &mut tensors, &options, Way::InPlace);
                });
            }
        });
    }
}

#[test]
fn gathers_stay_inside_their_data() {
    let rows: &[usize] = &[60, 4];
    for (gatherer, data, shape) in [
        (Gatherer::Along { axis: 0 }, rows, &[700][..]),
        (Gatherer::Nd { batch_dims: 0 }, rows, &[700, 1]),
        (Gatherer::Nd { batch_dims: 0 }, rows, &[9, 2]),
        (Gatherer::Elements { axis: 0 }, rows, &[300, 4]),
        (Gatherer::Paged, &[12, 5, 4], &[700]),
    ] {
        let k = match gatherer {
            Gatherer::Nd { .. } => shape[shape.len() - 1],
            _ => 1,
        };
        let list = List::new(shape, Order::Scattered);
        list.while_they_change::<AtomicI64>(&data[..k], Change::Any, true, |indices| {
            for workers in WORKERS {
                for bounds in Bounds::ALL.repeat(20) {
                    workers.with(|pool| {
                        let mut options = GatherOptions::new(gatherer).bounds(bounds);
                        options.execution = options.execution.pool(pool);
                        check_gather(&options, data, indices);
                    });
                }
            }
        });
    }
}

/// Single elements that are gathered into new memory. Each index is checked just before its use, by
/// one worker and by several, for data below and above the prefetch threshold (`near_bytes`).
#[test]
fn long_gathers() {
    let near = Machine::detected().clone();
    let far: Machine = "near_bytes = 0".parse().expect("a machine");
    for machine in [&near, &far] {
        for tuples in [5000, 300_000] {
            for change in [Change::Right, Change::Any] {
                check_long_gathers::<AtomicI64>(machine, tuples, change);
                check_long_gathers::<AtomicI32>(machine, tuples, change);
            }
        }
    }
}

fn check_long_gathers<C: Cell>(machine: &Machine, tuples: usize, change: Change) {
    let data = Guarded::new(&[1000], 0, |at| {
        u32::try_from(at).expect("the value is small")
    });
    let shape = [tuples];
    let list = List::new(&shape, Order::Scattered);
    list.while_they_change::<C>(&data.shape, change, false, |indices| {
        for workers in WORKERS.repeat(5) {
            workers.with(|pool| {
                let execution = Execution::new().pool(pool).machine(machine);
                let gather = Gather::along(0).execution(execution);
                match gather.allocate(data.view(), indices) {
                    Ok(made) => assert!(!made.into_vec().contains(&MARK), "a mark was read"),
                    Err(ScatterError::IndexOutOfBounds { .. }) => {
                        assert_eq!(change, Change::Any, "all indices were valid");
                    }
                    Err(error) => panic!("{error}"),
                }
            });
        }
    });
}

fn check_gather(options: &GatherOptions<'_>, data: &[usize], indices: AnyView<'_>) {
    let case = (options.gatherer, options.rule, indices.shape());
    let data = Guarded::new(data, 0, |at| u32::try_from(at).expect("the value is small"));
    let gather = options.gather();
    let shape = gather.output_shape(&data.shape, indices.shape());
    let mut output = Guarded::new(&shape.expect("valid shapes"), 0, |_| 77);
    let result = gather.write_into(data.view(), indices, output.view_mut());
    let planned = gather.plan(data.layout(), indices).map(|plan| {
        let run = || {
            plan.run()
                .execution(options.execution)
                .allocate(data.view())
        };
        let runs =
            [run(), run()].map(|made| made.expect("the plan has checked all indices").into_vec());
        assert!(runs[0] == runs[1], "two runs of one plan differ: {case:?}");
        assert!(!runs[0].contains(&MARK), "a mark was read: {case:?}");
    });
    output.check_marks(&case);
    assert!(
        !output.values().any(|value| value == MARK),
        "a mark was read: {case:?}"
    );
    for result in [&result, &planned] {
        match result {
            Ok(())
            | Err(ScatterError::IndexOutOfBounds { .. } | ScatterError::SlotOutOfBounds { .. }) => {
            }
            Err(error) => panic!("{error}: {case:?}"),
        }
    }
    if result.is_err() {
        let same = output.values().all(|value| value == 77);
        assert!(
            same,
            "the output was written although the call failed: {case:?}"
        );
    }
}

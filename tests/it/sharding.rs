//! Tables that are divided among parts. The result of all parts has the bits of one loop over the
//! tuples of sender 0, then those of sender 1, and so on.

use ndscatter::{
    Bounds, DType, Execution, Gather, Machine, MergeOrder, Operator, Packing, Pool, Reduction,
    Scatter, ScatterError, ShardedPlan, Sharding, TensorView, TensorViewMut,
};

use crate::common::elements::{Palette, Ref, compare, is_enabled, is_exact};
use crate::common::indices::IndexRule;
use crate::common::operators::{Gatherer, Operator as Reference, Rules};
use crate::common::pools::Workers;
use crate::common::random::Random;
use crate::common::{Tensor, ndindex};

/// Numbers of parts that the tests use.
const PARTS: [usize; 5] = [1, 2, 3, 4, 7];

/// Tuples of several senders for one table.
struct Case {
    operator: Operator,
    shape: Vec<usize>,
    /// Number of axes of the table that tuples address.
    axes: usize,
    rule: IndexRule,
    sharding: Sharding,
    /// The indices of each sender.
    senders: Vec<Tensor<i64>>,
}

fn index(position: usize) -> i64 {
    i64::try_from(position).expect("the position fits i64")
}

fn usize_of(index: i64) -> usize {
    usize::try_from(index).expect("the index is not negative")
}

impl Case {
    fn draw(random: &mut Random, most_rows: usize, most_tuples: usize) -> Self {
        let rows = 1 + random.below(most_rows);
        let window = random.below(4);
        let (operator, shape, axes) = match random.below(5) {
            0 => (Operator::Along { axis: 0 }, vec![rows, window], 1),
            1 => (Operator::Elements { axis: -1 }, vec![rows], 1),
            2 => (Operator::Paged, vec![rows, 3, window], 2),
            3 => (Operator::Nd { batch_dims: 0 }, vec![rows, 2, window], 1),
            _ => (Operator::Nd { batch_dims: 0 }, vec![rows, 2, window], 2),
        };
        let bounds = random.pick(&[Bounds::Error, Bounds::Skip, Bounds::SkipNegative]);
        let parts = random.pick(&PARTS);
        let sharding = match random.below(3) {
            0 => Sharding::blocks(parts),
            1 => Sharding::modulo(parts),
            _ => {
                let mut starts: Vec<_> = (1..parts).map(|_| random.below(rows + 2)).collect();
                starts.insert(0, 0);
                starts.sort_unstable();
                Sharding::starts(&starts)
            }
        };
        let mut case = Self {
            operator,
            shape,
            axes,
            rule: IndexRule {
                negative: random.one_in(2),
                bounds,
            },
            sharding: sharding.expect("valid parts"),
            senders: Vec::new(),
        };
        for _ in 0..1 + random.below(4) {
            let tuples = random.below(most_tuples + 1);
            let indices = case.draw_indices(random, tuples);
            case.senders.push(indices);
        }
        case
    }

    fn draw_indices(&self, random: &mut Random, tuples: usize) -> Tensor<i64> {
        let sizes = match self.operator {
            Operator::Paged => vec![self.shape[0] * self.shape[1]],
            _ => self.shape[..self.axes].to_vec(),
        };
        let mut values = Vec::new();
        for _ in 0..tuples {
            for &size in &sizes {
                let valid = index(random.zipf(size));
                values.push(match self.rule.bounds {
                    Bounds::Skip if random.one_in(8) => index(size) + 3,
                    Bounds::SkipNegative if random.one_in(8) => -index(size) - 1,
                    _ if self.rule.negative && random.one_in(4) => valid - index(size),
                    _ => valid,
                });
            }
        }
        match self.operator {
            Operator::Nd { .. } => Tensor::new(&[tuples, self.axes], values),
            _ => Tensor::new(&[tuples], values),
        }
    }

    /// Returns the indices of all senders, in the order of the senders.
    fn all_indices(&self) -> Tensor<i128> {
        let values: Vec<i128> = (self.senders.iter())
            .flat_map(|sender| sender.values.iter().map(|&value| value.into()))
            .collect();
        let tuples = self.senders.iter().map(|sender| sender.shape[0]).sum();
        let mut shape = self.senders[0].shape.clone();
        shape[0] = tuples;
        Tensor::new(&shape, values)
    }

    /// Returns the number of elements of a slice.
    fn window(&self) -> usize {
        self.shape[self.axes..].iter().product()
    }

    /// Returns the number of slices of a row.
    fn slices(&self) -> usize {
        self.shape[1..self.axes].iter().product()
    }

    fn reference(&self) -> Reference {
        match self.operator {
            Operator::Along { axis } => Reference::Update { axis },
            Operator::Elements { axis } => Reference::Elements { axis },
            Operator::Paged => Reference::Paged,
            _ => Reference::Nd,
        }
    }

    fn scatter<'p>(&self, reduction: Reduction, execution: Execution<'p>) -> Scatter<'p> {
        (Scatter::new(self.operator).expect("a scatter"))
            .reduction(reduction)
            .bounds(self.rule.bounds)
            .negative_indices(self.rule.negative)
            .execution(execution)
    }

    /// Returns the rows of the table that a part has, as a list of elements.
    fn part<T: Copy>(&self, table: &Tensor<T>, part: usize) -> Vec<T> {
        let rows = self.shape[0];
        let row = self.slices() * self.window();
        (0..self.sharding.rows_of(part, rows))
            .flat_map(|local| {
                let from = self.sharding.row(part, local, rows).expect("a row");
                table.values[from * row..][..row].to_vec()
            })
            .collect()
    }

    /// Returns the table whose parts are `parts`.
    fn joined<T: Copy>(&self, parts: &[Vec<T>]) -> Vec<T> {
        let row = self.slices() * self.window();
        (0..self.shape[0])
            .flat_map(|position| {
                let (part, local) = self.sharding.owner(position, self.shape[0]).expect("a row");
                parts[part][local * row..][..row].to_vec()
            })
            .collect()
    }

    /// Applies the entries of all senders to each part, and returns the whole table.
    fn apply<T: Ref>(
        &self,
        table: &Tensor<T>,
        reduction: Reduction,
        sent: &[(ShardedPlan, Vec<T>)],
    ) -> Result<Vec<T>, ScatterError> {
        let window = self.window();
        let mut parts = Vec::new();
        for part in 0..self.sharding.parts() {
            let counts: Vec<usize> = sent.iter().map(|(plan, _)| plan.counts()[part]).collect();
            let order = MergeOrder::new(&counts)?;
            let (mut destinations, mut updates) = (Vec::<i64>::new(), Vec::<T>::new());
            for (sender, (plan, packed)) in sent.iter().enumerate() {
                let entries = plan.range(part);
                let range = order.range(sender).expect("a sender");
                assert_eq!(range.len(), entries.len(), "the entries of {sender}");
                updates.extend(&packed[entries.start * window..entries.end * window]);
                destinations.extend(&plan.destinations()[entries]);
            }
            assert_eq!(order.len(), destinations.len(), "all entries");
            let mut rows = self.part(table, part);
            let slices = self.sharding.rows_of(part, self.shape[0]) * self.slices();
            Scatter::along(0)
                .negative_indices(false)
                .reduction(reduction)
                .in_place(
                    TensorViewMut::contiguous(&mut rows, &[slices, window])?,
                    TensorView::from(&destinations),
                    TensorView::contiguous(&updates, &[destinations.len(), window])?,
                )?;
            parts.push(rows);
        }
        Ok(self.joined(&parts))
    }

    /// Checks the result of all parts. `combined`: whether the senders combine duplicates.
    fn check<T: Ref>(
        &self,
        reduction: Reduction,
        combined: bool,
        execution: Execution<'_>,
        random: &mut Random,
    ) -> Result<(), String> {
        let palette = random.pick(&Palette::ALL);
        let table = Tensor::generate(&self.shape, || T::sample(palette, random));
        let scatter = self.scatter(reduction, execution);
        let (mut sent, mut all) = (Vec::new(), Vec::new());
        for sender in &self.senders {
            let window = self.window();
            let updates =
                Tensor::generate(&[sender.shape[0], window], || T::sample(palette, random));
            let sent_by = || -> Result<_, ScatterError> {
                let indices = TensorView::contiguous(&sender.values, &sender.shape)?;
                let plan = match combined {
                    true => scatter.shard_combined(&self.shape, indices, &self.sharding)?,
                    false => scatter.shard(&self.shape, indices, &self.sharding)?,
                };
                let packed = pack(&plan, &updates)?;
                Ok((plan, packed))
            };
            sent.push(sent_by().map_err(|error| error.to_string())?);
            all.extend(updates.values);
        }
        let indices = self.all_indices();
        let updates = self.reference().updates_shape(&self.shape, &indices.shape);
        let rules = Rules {
            how: reduction.into(),
            index: self.rule,
        };
        let expected =
            self.reference()
                .expected(rules, &table, &indices, &Tensor::new(&updates, all));
        let got = self
            .apply(&table, reduction, &sent)
            .map_err(|error| error.to_string())?;
        compare(&got, &expected.values, is_exact(reduction))
    }
}

/// Packs the updates of a sender.
fn pack<T: Ref>(plan: &ShardedPlan, updates: &Tensor<T>) -> Result<Vec<T>, ScatterError> {
    let source = TensorView::contiguous(&updates.values, &updates.shape)?;
    Ok(match plan.packing() {
        Packing::Gather { order } => Gather::along(0)
            .allocate(source, TensorView::from(order))?
            .into_vec(),
        Packing::Scatter { slots, reduction } => {
            let shape = [plan.destinations().len(), updates.shape[1]];
            let sentinel = T::sentinel();
            let packed = TensorView::splat(&sentinel, &shape)?;
            let combining = (Scatter::along(0).reduction(reduction))
                .negative_indices(false)
                .bounds(Bounds::SkipNegative)
                .include_self(false);
            combining
                .allocate(packed, TensorView::from(slots), source)?
                .into_vec()
        }
    })
}

/// Whether a sender may combine updates of this type without a change of the bits.
fn combines(reduction: Reduction, dtype: DType) -> bool {
    let is_integer = matches!(dtype, DType::I32 | DType::I64);
    match reduction {
        Reduction::None | Reduction::Min | Reduction::Max => true,
        Reduction::Mean => false,
        _ => is_integer,
    }
}

fn check_type<T: Ref>(case: &Case, execution: Execution<'_>, random: &mut Random) {
    for reduction in Reduction::ALL {
        if !T::REDUCTIONS.contains(&reduction) || !is_enabled(reduction, T::DTYPE) {
            continue;
        }
        for combined in [false, true] {
            if combined && !combines(reduction, T::DTYPE) {
                continue;
            }
            let checked = case.check::<T>(reduction, combined, execution, random);
            let (operator, shape, sharding) = (case.operator, &case.shape, &case.sharding);
            checked.unwrap_or_else(|error| {
                panic!(
                    "{reduction} of {}, combined {combined}, {operator:?} of {shape:?}, {sharding:?}: {error}",
                    T::DTYPE
                )
            });
        }
    }
}

#[test]
fn parts_have_the_bits_of_one_loop() {
    let mut random = Random::new(45);
    for number in 0..400 {
        let case = Case::draw(&mut random, 12, 20);
        match number % 3 {
            0 => check_type::<f32>(&case, Execution::new(), &mut random),
            1 => check_type::<i64>(&case, Execution::new(), &mut random),
            #[cfg(feature = "half")]
            _ => check_type::<half::bf16>(&case, Execution::new(), &mut random),
            #[cfg(not(feature = "half"))]
            _ => check_type::<i32>(&case, Execution::new(), &mut random),
        }
    }
}

/// Long lists are split in pieces, by several workers.
#[test]
fn long_lists_are_split_by_all_workers() {
    let mut random = Random::new(46);
    for workers in [1, 2, 3, 8] {
        let case = Case::draw(&mut random, 5000, 40_000);
        Workers::Given(workers).with(|pool| {
            check_type::<f32>(&case, Execution::new().pool(pool), &mut Random::new(47));
        });
    }
}

/// The plan is the same for each number of workers, pieces and parts.
#[test]
fn the_plan_does_not_depend_on_the_workers() {
    let machine: Machine = "numbered_tuples = 0".parse().expect("a machine");
    let indices: Vec<i64> = (0..1000).map(|at| at * at % 97).collect();
    for parts in [1, 3, 97, 400] {
        let sharding = Sharding::modulo(parts).expect("parts");
        let plan = |pool: &dyn Pool| {
            let execution = Execution::new().pool(pool).machine(&machine);
            let sums = Scatter::along(0)
                .reduction(Reduction::Add)
                .execution(execution);
            let plan = sums.shard(&[97], TensorView::from(&indices), &sharding);
            let plan = plan.expect("a plan");
            let Packing::Gather { order } = plan.packing() else {
                panic!("one tuple for each entry");
            };
            (
                plan.counts().to_vec(),
                plan.destinations().to_vec(),
                order.to_vec(),
            )
        };
        let expected = Workers::CallingThread.with(plan);
        for workers in 1..=8 {
            assert_eq!(
                Workers::InOrder(workers).with(plan),
                expected,
                "{workers} workers"
            );
        }
        // By hand: the tuples of part 0, then those of part 1, and so on.
        let mut order: Vec<usize> = (0..1000).collect();
        order.sort_by_key(|&at| usize_of(indices[at]) % parts);
        assert_eq!(
            expected.2,
            order.iter().map(|&at| index(at)).collect::<Vec<_>>()
        );
    }
}

#[test]
fn owners_gather_and_the_answers_are_put_back() {
    let mut random = Random::new(48);
    for number in 0..300 {
        let case = Case::draw(&mut random, 12, 20);
        let table: Tensor<f32> =
            Tensor::generate(&case.shape, || f32::sample(Palette::Wild, &mut random));
        let gather = (Gather::new(case.operator).expect("a gather"))
            .bounds(case.rule.bounds)
            .negative_indices(case.rule.negative);
        for sender in &case.senders {
            let indices = TensorView::contiguous(&sender.values, &sender.shape).expect("indices");
            let plan = match number % 2 {
                0 => gather.shard(&case.shape, indices, &case.sharding),
                _ => gather.shard_combined(&case.shape, indices, &case.sharding),
            };
            let plan = plan.expect("a plan");
            let got = put_back(&plan, &answers(&case, &table, &plan), case.window());
            let reference = match case.operator {
                Operator::Along { axis } => Gatherer::Along { axis },
                Operator::Elements { axis } => Gatherer::Elements { axis },
                Operator::Paged => Gatherer::Paged,
                _ => Gatherer::Nd { batch_dims: 0 },
            };
            let wide = sender.values.iter().map(|&value| value.into()).collect();
            let indices = Tensor::new(&sender.shape, wide);
            let expected = reference.expected(case.rule, &table, &indices);
            let compared = compare(&got, &expected.values, true);
            compared.unwrap_or_else(|error| panic!("{:?}: {error}", case.operator));
        }
    }
}

/// Returns the slices that the parts gather, in the order of the entries.
fn answers(case: &Case, table: &Tensor<f32>, plan: &ShardedPlan) -> Vec<f32> {
    let window = case.window();
    (0..plan.parts())
        .flat_map(|part| {
            let rows = case.part(table, part);
            let destinations = &plan.destinations()[plan.range(part)];
            let slices = destinations.iter().map(|&at| usize_of(at) * window);
            slices
                .flat_map(|first| rows[first..first + window].to_vec())
                .collect::<Vec<_>>()
        })
        .collect()
}

/// Returns the result of each tuple. A skipped tuple has zeros.
fn put_back(plan: &ShardedPlan, answers: &[f32], window: usize) -> Vec<f32> {
    let shape = [plan.destinations().len(), window];
    let source = TensorView::contiguous(answers, &shape).expect("answers");
    match plan.packing() {
        Packing::Gather { order } => {
            let shape = [plan.tuples(), window];
            let zeros = TensorView::splat(&0.0, &shape).expect("zeros");
            let put = Scatter::along(0).allocate(zeros, TensorView::from(order), source);
            put.expect("the order has valid positions").into_vec()
        }
        Packing::Scatter { slots, .. } => {
            let found = Gather::along(0)
                .negative_indices(false)
                .bounds(Bounds::SkipNegative);
            let put = found.allocate(source, TensorView::from(slots));
            put.expect("the slots are valid positions").into_vec()
        }
    }
}

#[test]
fn every_row_has_one_owner() {
    for rows in 0..9 {
        for parts in 1..5 {
            let mut starts = vec![0; parts];
            for shardings in ndindex(&vec![4; parts - 1]) {
                for (start, step) in starts[1..].iter_mut().zip(&shardings) {
                    *start = *step;
                }
                starts.sort_unstable();
                let all = [
                    Sharding::blocks(parts),
                    Sharding::modulo(parts),
                    Sharding::starts(&starts),
                ];
                for sharding in all {
                    check_owners(&sharding.expect("valid parts"), rows);
                }
            }
        }
    }
}

fn check_owners(sharding: &Sharding, rows: usize) {
    let parts = sharding.parts();
    let total: usize = (0..parts).map(|part| sharding.rows_of(part, rows)).sum();
    assert_eq!(total, rows, "{sharding:?}");
    for row in 0..rows {
        let (part, local) = sharding.owner(row, rows).expect("an owner");
        assert_eq!(sharding.row(part, local, rows), Some(row), "{sharding:?}");
    }
    assert_eq!(sharding.owner(rows, rows), None, "past the end");
    assert_eq!(sharding.rows_of(parts, rows), 0, "no such part");
    assert_eq!(sharding.row(parts, 0, rows), None, "no such part");
    for part in 0..parts {
        let past = sharding.rows_of(part, rows);
        assert_eq!(sharding.row(part, past, rows), None, "past the end");
    }
}

/// A plan is made for a table that is larger than memory: 2^40 rows of 2^20 elements.
#[test]
#[cfg(target_pointer_width = "64")]
fn tables_may_be_larger_than_memory() {
    let shape = [1 << 40, 1 << 20];
    let indices = [(1_i64 << 40) - 1, 5, -1];
    let sharding = Sharding::blocks(1000).expect("parts");
    let plan = Scatter::along(0).shard(&shape, TensorView::from(&indices), &sharding);
    let plan = plan.expect("a plan");
    let block = shape[0].div_ceil(1000);
    assert_eq!((plan.counts()[0], plan.counts()[999]), (1, 2));
    let last = index(shape[0] - 1 - 999 * block);
    assert_eq!(plan.destinations(), [5, last, last]);
    assert_eq!(
        plan.packing(),
        Packing::Gather {
            order: &[1, 0, 2][..]
        }
    );
}

/// Tuples of empty windows have entries too, so that the parts can count them.
#[test]
fn empty_windows_have_entries() {
    let sharding = Sharding::blocks(2).expect("parts");
    let indices = [3_i32, 0, 9];
    let skipping = Scatter::along(0).bounds(Bounds::Skip);
    let plan = skipping.shard(&[4, 0], TensorView::from(&indices), &sharding);
    let plan = plan.expect("a plan");
    assert_eq!(plan.destinations(), [0, 1]);
    assert_eq!((plan.tuples(), plan.skipped()), (3, 1));
    assert_eq!(plan.range(1), 1..2);
    assert_eq!(plan.range(2), 0..0, "no such part");
}

#[test]
fn wrong_calls_are_refused() {
    for parts in [0, usize::MAX] {
        let refused = Some(ScatterError::PartCount { parts });
        assert_eq!(Sharding::blocks(parts).err(), refused);
        assert_eq!(Sharding::modulo(parts).err(), refused);
    }
    assert_eq!(
        Sharding::starts(&[]).err(),
        Some(ScatterError::PartCount { parts: 0 })
    );
    let descending = Sharding::starts(&[0, 3, 2]).expect_err("descending starts");
    assert_eq!(
        descending.to_string(),
        "part 2 starts at row 2, but must start at row 3 or later"
    );
    let late = Sharding::starts(&[1]).expect_err("a late start");
    assert_eq!(
        late.to_string(),
        "part 0 starts at row 1, but must start at row 0"
    );

    let sharding = Sharding::blocks(2).expect("parts");
    let indices = [0_i64, 7];
    let row = TensorView::from(&indices);
    let refused = |scatter: Scatter<'_>, shape: &[usize]| {
        scatter
            .shard(shape, row, &sharding)
            .expect_err("a wrong call")
    };
    let out_of_bounds = ScatterError::IndexOutOfBounds {
        tuple: 1,
        axis: 0,
        index: 7,
        size: 4,
    };
    assert_eq!(refused(Scatter::along(0), &[4, 2]), out_of_bounds);
    let option = |option| ScatterError::UnsupportedOption { option };
    assert_eq!(refused(Scatter::along(1), &[4, 2]), option("axis"));
    assert_eq!(refused(Scatter::along(-1), &[4, 2]), option("axis"));
    let (axis, rank) = (0, 0);
    assert_eq!(
        refused(Scatter::along(0), &[]),
        ScatterError::AxisOutOfRange { axis, rank }
    );
    let whole: [i64; 0] = [];
    let whole = TensorView::contiguous(&whole, &[2, 0]).expect("tuples without coordinates");
    let refused = Scatter::nd()
        .shard(&[4], whole, &sharding)
        .expect_err("no coordinates");
    assert_eq!(refused, option("indices"));
    let batches = Gather::nd(1).shard(
        &[2, 2],
        TensorView::contiguous(&indices, &[2, 1]).expect("tuples"),
        &sharding,
    );
    assert_eq!(batches.expect_err("batches"), option("batch_dims"));
    let mean = Scatter::along(0).reduction(Reduction::Mean);
    let refused = mean
        .shard_combined(&[8], row, &sharding)
        .expect_err("a mean");
    assert_eq!(refused, option("reduction"));
    let cache = Scatter::cache(1, ndscatter::CacheMode::Linear);
    let refused = cache.shard(&[2, 8], row, &sharding).expect_err("a cache");
    assert_eq!(refused, option("mode"));
    let overflow = MergeOrder::new(&[usize::MAX, 1]).expect_err("too many entries");
    assert!(
        matches!(overflow, ScatterError::ShapeOverflow { .. }),
        "{overflow}"
    );
}

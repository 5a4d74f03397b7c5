//! Random scatters of all types, reductions, index types and strides, against the loop. Random
//! scatters against burn where both have the same rules.

use burn_backend::ops::{BoolTensorOps, FloatTensorOps, IntTensorOps};
use burn_backend::tensor::IndexingUpdateOp;
use burn_backend::{BoolStore, DType, Shape, bf16, f16};
use burn_flex::{Flex, FlexTensor, Layout};
use ndscatter::{Reduction, Scatter};
use ndscatter_burn::{Error, ScatterBackend};

use crate::layouts::{row_major, strided, values};
use crate::reference::{Array, Place, Random, Value, scatter};

const REDUCTIONS: [Reduction; 6] = [
    Reduction::None,
    Reduction::Add,
    Reduction::Sub,
    Reduction::Mul,
    Reduction::Min,
    Reduction::Max,
];

/// Shapes of one random problem.
#[derive(Debug)]
pub(crate) struct Shapes {
    pub(crate) place: Place,
    pub(crate) data: Vec<usize>,
    pub(crate) indices: Vec<usize>,
    pub(crate) updates: Vec<usize>,
}

impl Shapes {
    /// Returns shapes of rank 1 to 4, some of them without elements.
    pub(crate) fn random(random: &mut Random) -> Self {
        let rank = 1 + random.below(4);
        let data: Vec<usize> = (0..rank).map(|_| 1 + random.below(4)).collect();
        let axis = random.below(rank);
        let listed: Vec<usize> = (0..1 + random.below(2)).map(|_| random.below(5)).collect();
        let place = [Place::Nd, Place::Along(axis), Place::Elements(axis)][random.below(3)];
        let (indices, updates) = match place {
            Place::Nd => {
                let coordinates = random.below(rank + 1);
                let indices = [&listed[..], &[coordinates]].concat();
                (indices, [&listed[..], &data[coordinates..]].concat())
            }
            Place::Along(axis) => {
                let updates = [&data[..axis], &listed, &data[axis + 1..]].concat();
                (listed, updates)
            }
            Place::Elements(axis) => {
                let mut updates = data.clone();
                updates[axis] = listed[0];
                (updates.clone(), updates)
            }
        };
        Self {
            place,
            data,
            indices,
            updates,
        }
    }

    /// Returns the sizes of the axes that the indices of a tuple address.
    pub(crate) fn sizes(&self) -> Vec<usize> {
        match self.place {
            Place::Nd => self.data[..self.indices[self.indices.len() - 1]].to_vec(),
            Place::Along(axis) | Place::Elements(axis) => vec![self.data[axis]],
        }
    }
}

type Run = fn(&Scatter<'_>, FlexTensor, FlexTensor, FlexTensor) -> Result<FlexTensor, Error>;

/// Compares random scatters with the loop: with tensors of any strides, in place and with a shared
/// tensor.
fn matches_loop<T: Value>(run: Run, seed: u64) {
    let mut random = Random(seed);
    for round in 0..150 {
        let shapes = Shapes::random(&mut random);
        let reduction = REDUCTIONS[round % REDUCTIONS.len()];
        let data = random.array::<T>(&shapes.data);
        let updates = random.array::<T>(&shapes.updates);
        let indices = match shapes.sizes() {
            sizes if sizes.is_empty() => Array::new(&shapes.indices, []),
            sizes => random.indices(&shapes.indices, &sizes, true),
        };
        let expected = scatter(shapes.place, reduction, &data, &indices, &updates);
        let operation = shapes.place.scatter(reduction);
        let context = format!("{:?} {reduction} {shapes:?}", T::dtype());

        let mut tensor = |array: &Array<T>| match random.below(2) {
            0 => row_major(array),
            _ => strided(array, &mut random),
        };
        let (owned, given) = (tensor(&data), tensor(&updates));
        let at = match round % 2 {
            0 => row_major(&indices),
            _ => strided(&indices, &mut random),
        };
        let shared = owned.clone();
        let result = run(&operation, shared, at.clone(), given.clone()).expect(&context);
        assert_eq!(
            bits(&values::<T>(&result)),
            bits(&expected),
            "shared: {context}"
        );
        assert_eq!(
            bits(&values::<T>(&owned)),
            bits(&data),
            "the owner sees no change: {context}"
        );

        let memory = owned.bytes().as_ptr();
        let result = run(&operation, owned, at, given).expect(&context);
        assert_eq!(result.bytes().as_ptr(), memory, "in place: {context}");
        assert_eq!(
            bits(&values::<T>(&result)),
            bits(&expected),
            "in place: {context}"
        );
    }
}

fn bits<T: Value>(array: &Array<T>) -> (&[usize], &[u8]) {
    (&array.shape, bytemuck::cast_slice(&array.values))
}

#[test]
fn every_type_and_reduction_matches_the_loop() {
    matches_loop::<f64>(Flex::float_nd_scatter, 1);
    matches_loop::<f32>(Flex::float_nd_scatter, 2);
    matches_loop::<f16>(Flex::float_nd_scatter, 3);
    matches_loop::<bf16>(Flex::float_nd_scatter, 4);
    matches_loop::<i64>(Flex::int_nd_scatter, 5);
    matches_loop::<i32>(Flex::int_nd_scatter, 6);
    matches_loop::<i16>(Flex::int_nd_scatter, 7);
    matches_loop::<i8>(Flex::int_nd_scatter, 8);
    matches_loop::<u64>(Flex::int_nd_scatter, 9);
    matches_loop::<u32>(Flex::int_nd_scatter, 10);
    matches_loop::<u16>(Flex::int_nd_scatter, 11);
    matches_loop::<u8>(Flex::int_nd_scatter, 12);
}

#[test]
fn every_index_type_is_read() {
    fn check<I: Value>(numbers: [i8; 3]) {
        let data = Array::new(&[4], [1.0_f32, 2.0, 3.0, 4.0]);
        let updates = Array::new(&[3], [10.0_f32, 20.0, 30.0]);
        let numbers_of_type = Array::new(&[3], numbers.map(I::of));
        let indices = Array::new(&[3], numbers.map(i64::from));
        let add = Scatter::along(0).reduction(Reduction::Add);
        let expected = scatter(Place::Along(0), Reduction::Add, &data, &indices, &updates);
        let (data, updates) = (row_major(&data), row_major(&updates));
        let result = Flex::float_nd_scatter(&add, data, row_major(&numbers_of_type), updates);
        assert_eq!(
            values(&result.expect("integers")),
            expected,
            "{:?}",
            I::dtype()
        );
    }
    check::<i64>([3, -4, 3]);
    check::<i32>([3, -4, 3]);
    check::<i16>([3, -4, 3]);
    check::<i8>([3, -4, 3]);
    check::<u64>([3, 0, 3]);
    check::<u32>([3, 0, 3]);
    check::<u16>([3, 0, 3]);
    check::<u8>([3, 0, 3]);
}

#[test]
fn booleans_have_logical_reductions() {
    let cases = [
        (Reduction::None, [0, 1, 1, 1]),
        (Reduction::Add, [0, 1, 1, 1]),
        (Reduction::Max, [0, 1, 1, 1]),
        (Reduction::Mul, [0, 0, 1, 1]),
        (Reduction::Min, [0, 0, 1, 1]),
        (Reduction::Sub, [0, 1, 0, 1]),
    ];
    for store in [BoolStore::Native, BoolStore::U8] {
        let boolean = |bits: &[u8]| {
            let tensor = row_major(&Array::new(&[bits.len()], bits.iter().copied()));
            FlexTensor::from_arc(
                tensor.data_arc(),
                tensor.layout().clone(),
                DType::Bool(store),
            )
        };
        for (reduction, expected) in cases {
            let data = boolean(&[0, 0, 1, 1]);
            let indices = row_major(&Array::new(&[3], [1_i32, 2, 0]));
            let updates = boolean(&[1, 1, 0]);
            let operation = Scatter::along(0).reduction(reduction);
            let shared = data.clone();
            let result =
                Flex::bool_nd_scatter(&operation, shared, indices.clone(), updates.clone());
            let result = result.expect("booleans");
            assert_eq!(result.dtype(), DType::Bool(store), "the type stays");
            assert_eq!(result.bytes(), expected, "{reduction}");
            assert_eq!(data.bytes(), [0, 0, 1, 1], "the owner sees no change");
            let result = Flex::bool_nd_scatter(&operation, data, indices, updates);
            assert_eq!(
                result.expect("booleans").bytes(),
                expected,
                "{reduction}, in place"
            );
        }
    }
}

/// Booleans with gaps, in reverse and broadcast.
#[test]
fn booleans_may_have_any_strides() {
    let mut random = Random(5);
    for round in 0..400 {
        let store = [BoolStore::Native, BoolStore::U8][round % 2];
        let reduction = [Reduction::None, Reduction::Add, Reduction::Sub][round % 3];
        let len = 1 + random.below(6);
        let updates_len = random.below(6);
        let mut bits =
            |len| -> Vec<u8> { (0..len).map(|_| u8::from(random.below(2) == 1)).collect() };
        let (data, updates) = (bits(len), bits(updates_len));
        let places: Vec<usize> = updates.iter().map(|_| random.below(len)).collect();
        let mut expected = data.clone();
        for (&place, &update) in places.iter().zip(&updates) {
            let value = &mut expected[place];
            *value = match reduction {
                Reduction::None => update,
                Reduction::Add => *value | update,
                _ => *value ^ update,
            };
        }
        let of_store = |tensor: FlexTensor| {
            let layout = tensor.layout().clone();
            FlexTensor::from_arc(tensor.data_arc(), layout, DType::Bool(store))
        };
        let mut tensor = |bits: &[u8]| {
            of_store(strided(
                &Array::new(&[bits.len()], bits.iter().copied()),
                &mut random,
            ))
        };
        let (owned, updates) = (tensor(&data), tensor(&updates));
        let indices = places
            .iter()
            .map(|&place| i32::try_from(place).expect("a small number"));
        let indices = row_major(&Array::new(&[places.len()], indices));
        let operation = Scatter::along(0).reduction(reduction);
        let run = |data| {
            Flex::bool_nd_scatter(&operation, data, indices.clone(), updates.clone())
                .expect("booleans")
        };
        let bits_of = |tensor: &FlexTensor| tensor.to_contiguous().bytes()[..len].to_vec();
        assert_eq!(
            bits_of(&run(owned.clone())),
            expected,
            "shared, {reduction}"
        );
        assert_eq!(bits_of(&owned), data, "the owner sees no change");
        let memory = owned.bytes().as_ptr();
        let result = run(owned);
        assert_eq!(bits_of(&result), expected, "in place, {reduction}");
        assert_eq!(result.bytes().as_ptr(), memory, "in place, {reduction}");
    }
    let one = row_major(&Array::new(&[1], [0_u8]));
    let layout = Layout::new(Shape::new([3]), vec![0], 0);
    let broadcast = FlexTensor::from_arc(one.data_arc(), layout, DType::Bool(BoolStore::Native));
    drop(one);
    let at = row_major(&Array::new(&[1], [1_i64]));
    let update = row_major(&Array::new(&[1], [1_u8]));
    let layout = update.layout().clone();
    let update = FlexTensor::from_arc(update.data_arc(), layout, DType::Bool(BoolStore::Native));
    let result = Flex::bool_nd_scatter(&Scatter::along(0), broadcast, at, update);
    assert_eq!(result.expect("booleans").bytes(), [0, 1, 0]);
}

/// burn's operations and ours give the same bits, if no index is negative.
#[test]
fn burn_gives_the_same_bits() {
    use IndexingUpdateOp::{Add, Assign, Max, Min, Mul};
    let updates_of = [
        (Reduction::None, Assign),
        (Reduction::Add, Add),
        (Reduction::Mul, Mul),
        (Reduction::Min, Min),
        (Reduction::Max, Max),
    ];
    let mut random = Random(77);
    for round in 0..600 {
        let shapes = Shapes::random(&mut random);
        let (reduction, update) = updates_of[round % updates_of.len()];
        let sizes = shapes.sizes();
        // burn's operations need one dimension of rows, and at least one update.
        let rows = shapes.indices.len() == 1 || !matches!(shapes.place, Place::Along(_));
        if sizes.is_empty() || !rows || shapes.updates.contains(&0) {
            continue;
        }
        let data = row_major(&random.array::<f32>(&shapes.data));
        let updates = row_major(&random.array::<f32>(&shapes.updates));
        let indices = row_major(&random.indices(&shapes.indices, &sizes, false));
        let (ours, at, given) = (data.clone(), indices.clone(), updates.clone());
        let ours = Flex::float_nd_scatter(&shapes.place.scatter(reduction), ours, at, given);
        let burn = match shapes.place {
            Place::Nd => Flex::float_scatter_nd(data, indices, updates, update),
            Place::Along(axis) => Flex::float_select_assign(data, axis, indices, updates, update),
            Place::Elements(axis) => Flex::float_scatter(axis, data, indices, updates, update),
        };
        let (ours, burn) = (values::<f32>(&ours.expect("valid")), values::<f32>(&burn));
        assert_eq!(bits(&ours), bits(&burn), "{reduction} {shapes:?}");
    }
}

#[test]
fn burn_gives_the_same_integers_and_booleans() {
    let at = row_major(&Array::new(&[4], [2_i64, 0, 2, 1]));
    let data = row_major(&Array::new(&[3], [i64::MAX, 2, 3]));
    let updates = row_major(&Array::new(&[4], [4_i64, 1, 5, 6]));
    let max = Scatter::along(0).reduction(Reduction::Max);
    let ours = Flex::int_nd_scatter(&max, data.clone(), at.clone(), updates.clone());
    let burn = Flex::int_select_assign(data, 0, at.clone(), updates, IndexingUpdateOp::Max);
    assert_eq!(
        values::<i64>(&ours.expect("valid")),
        values::<i64>(&burn),
        "integers"
    );

    let boolean = |bits: &[u8]| {
        let tensor = row_major(&Array::new(&[bits.len()], bits.iter().copied()));
        FlexTensor::from_arc(
            tensor.data_arc(),
            tensor.layout().clone(),
            DType::Bool(BoolStore::Native),
        )
    };
    let (data, updates) = (boolean(&[0, 1, 0]), boolean(&[0, 0, 1, 0]));
    let or = Scatter::along(0).reduction(Reduction::Add);
    let ours = Flex::bool_nd_scatter(&or, data.clone(), at.clone(), updates.clone());
    let burn = Flex::bool_select_or(data, 0, at, updates);
    assert_eq!(ours.expect("valid").bytes(), burn.bytes(), "booleans");
}

/// The result has the same bits on pools of 1, 2 and 8 threads.
#[test]
fn threads_do_not_change_the_bits() {
    let mut random = Random(5);
    let (rows, len, tuples) = (3000, 32, 20_000);
    let data = row_major(&random.array::<f32>(&[rows, len]));
    let updates = row_major(&random.array::<f32>(&[tuples, len]));
    let indices = row_major(&random.indices(&[tuples], &[rows], false));
    let burn = Flex::float_select_assign(
        data.clone(),
        0,
        indices.clone(),
        updates.clone(),
        IndexingUpdateOp::Add,
    );
    let add = Scatter::along(0).reduction(Reduction::Add);
    for threads in [1, 2, 8] {
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(threads)
            .build()
            .expect("threads");
        let (data, indices, updates) = (data.clone(), indices.clone(), updates.clone());
        let result = pool.install(|| Flex::float_nd_scatter(&add, data, indices, updates));
        assert_eq!(
            result.expect("valid").bytes(),
            burn.bytes(),
            "{threads} threads"
        );
    }
}

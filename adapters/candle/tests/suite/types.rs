//! All element types, index types, operators and reductions, against the reference loop, in random
//! layouts.

use candle_core::{DType, Device, Result, Tensor};
use half::{bf16, f16};
use ndscatter_candle::{CacheMode, Reduction, ScatterOp};

use crate::random::Random;
use crate::reference::{Number, Operator, destinations, scatter, updates_dims, values};

const REDUCTIONS: [Reduction; 6] = [
    Reduction::None,
    Reduction::Add,
    Reduction::Sub,
    Reduction::Mul,
    Reduction::Min,
    Reduction::Max,
];

const INDEX_TYPES: [DType; 5] = [DType::U8, DType::U32, DType::I16, DType::I32, DType::I64];

/// Returns an operator of the crate for an operator of the reference.
pub(crate) fn op(operator: Operator) -> ScatterOp {
    let axis = |axis: usize| isize::try_from(axis).expect("a small axis");
    match operator {
        Operator::Nd => ScatterOp::nd(),
        Operator::Along(a) => ScatterOp::along(axis(a)),
        Operator::Elements(a) => ScatterOp::elements(axis(a)),
        Operator::Cache(a, false) => ScatterOp::cache(axis(a), CacheMode::Linear),
        Operator::Cache(a, true) => ScatterOp::cache(axis(a), CacheMode::Circular),
    }
}

/// The operands of a random scatter.
pub(crate) struct Case {
    pub(crate) operator: Operator,
    pub(crate) data: Tensor,
    pub(crate) indices: Tensor,
    pub(crate) updates: Tensor,
    pub(crate) destinations: Vec<Option<usize>>,
}

impl Case {
    /// Makes a scatter with random dims of 1 to 4 elements. With `skipped`, some of the indices have
    /// this value.
    pub(crate) fn new(
        random: &mut Random,
        dtype: DType,
        index: DType,
        skipped: Option<i64>,
    ) -> Result<Self> {
        let rank = 1 + random.below(4);
        let dims: Vec<usize> = (0..rank).map(|_| 1 + random.below(4)).collect();
        let axis = random.below(rank);
        let mut lens = |count: usize| (0..count).map(|_| 1 + random.below(4)).collect::<Vec<_>>();
        let (operator, indices_dims) = match axis + lens(1)[0] {
            1 if rank > 1 => (
                Operator::Cache(1 + axis % (rank - 1), dims[0].is_multiple_of(2)),
                vec![dims[0]],
            ),
            n if n % 3 == 0 => {
                let k = axis + 1;
                (Operator::Nd, [lens(dims[0] % 3), vec![k]].concat())
            }
            n if n % 3 == 1 => (Operator::Along(axis), lens(rank % 3)),
            _ => {
                let mut indices: Vec<usize> = dims
                    .iter()
                    .map(|dim| dim - dim.min(&lens(1)[0]) / 3)
                    .collect();
                indices[axis] = 1 + lens(1)[0];
                (Operator::Elements(axis), indices)
            }
        };
        let updates_dims = match operator {
            Operator::Cache(axis, _) => {
                let mut updates = dims.clone();
                updates[axis] = 1 + random.below(dims[axis]);
                updates
            }
            _ => updates_dims(operator, &dims, &indices_dims),
        };
        let has_negatives = matches!(index, DType::I16 | DType::I32 | DType::I64);
        let count = indices_dims.iter().product::<usize>();
        let indices: Vec<i64> = (0..count)
            .map(|number| {
                if let Some(skipped) = skipped
                    && random.below(4) == 0
                {
                    return skipped;
                }
                let size = match operator {
                    Operator::Nd => dims[number % indices_dims[indices_dims.len() - 1]],
                    Operator::Along(axis) | Operator::Elements(axis) => dims[axis],
                    Operator::Cache(axis, true) => 3 * dims[axis],
                    Operator::Cache(axis, false) => dims[axis] - updates_dims[axis] + 1,
                };
                let position = random.below(size) as i64;
                let from_end = has_negatives && skipped.is_none() && random.below(3) == 0;
                let is_cache = matches!(operator, Operator::Cache(..));
                if from_end && !is_cache {
                    position - size as i64
                } else {
                    position
                }
            })
            .collect();
        let destinations = destinations(
            operator,
            &dims,
            (&indices_dims, &indices),
            &updates_dims,
            skipped,
        );
        let indices = Tensor::from_vec(indices, indices_dims, &Device::Cpu)?.to_dtype(index)?;
        Ok(Self {
            operator,
            data: random.tensor(&dims, dtype)?,
            indices: random.relaid(&indices)?,
            updates: random.tensor(&updates_dims, dtype)?,
            destinations,
        })
    }
}

fn check<T: Number>(random: &mut Random) -> Result<()> {
    for number in 0..300 {
        let case = Case::new(random, T::DTYPE, random_index(number), None)?;
        let is_cache = matches!(case.operator, Operator::Cache(..));
        let reduction = if is_cache {
            Reduction::None
        } else {
            random.pick(&REDUCTIONS)
        };
        let include_self = is_cache || random.below(3) > 0;
        let op = op(case.operator)
            .reduction(reduction)
            .include_self(include_self);
        let (data, updates) = (random.relaid(&case.data)?, random.relaid(&case.updates)?);
        let before = values::<T>(&case.data)?;
        let mut expected = before.clone();
        let updates_values = values::<T>(&updates)?;
        scatter(
            &mut expected,
            &case.destinations,
            &updates_values,
            reduction,
            include_self,
        );

        let result = op.apply(&data, &case.indices, &updates)?;
        let what = format!(
            "{:?} {op:?} of {:?} {:?}",
            T::DTYPE,
            data.layout(),
            updates.layout()
        );
        assert_eq!(values::<T>(&result)?, expected, "{what}");
        assert_eq!(values::<T>(&data)?, before, "data of {what} has changed");

        let target = random.relaid(&case.data.copy()?)?;
        op.apply_set(&target, &case.indices, &updates)?;
        assert_eq!(values::<T>(&target)?, expected, "in place: {what}");
    }
    Ok(())
}

fn random_index(number: usize) -> DType {
    INDEX_TYPES[number % INDEX_TYPES.len()]
}

#[test]
fn every_type_equals_the_loop() -> Result<()> {
    let random = &mut Random::new(1);
    check::<u8>(random)?;
    check::<u32>(random)?;
    check::<i16>(random)?;
    check::<i32>(random)?;
    check::<i64>(random)?;
    check::<f16>(random)?;
    check::<bf16>(random)?;
    check::<f32>(random)?;
    check::<f64>(random)
}

/// Data of at most 4096 bytes is copied first. Larger data is copied and changed in one pass.
#[test]
fn contiguous_data_may_have_any_size() -> Result<()> {
    let random = &mut Random::new(8);
    for len in [1, 1023, 1024, 1025, 100_000] {
        let data = random.tensor(&[len], DType::F32)?;
        let updates = random.tensor(&[2000], DType::F32)?;
        let indices: Vec<u32> = (0..2000).map(|_| random.below(len) as u32).collect();
        let mut expected = values::<f32>(&data)?;
        for (&index, update) in indices.iter().zip(values::<f32>(&updates)?) {
            expected[index as usize] += update;
        }
        let before = values::<f32>(&data)?;
        let indices = Tensor::new(indices, &Device::Cpu)?;
        let sums = ScatterOp::index_add(0).apply(&data, &indices, &updates)?;
        assert_eq!(values::<f32>(&sums)?, expected, "{len} elements");
        assert_eq!(values::<f32>(&data)?, before, "data of {len} elements");
    }
    Ok(())
}

#[test]
fn integers_wrap_around() -> Result<()> {
    let (data, at) = (
        Tensor::new(&[250_u8, 3], &Device::Cpu)?,
        Tensor::new(&[0_u8, 1], &Device::Cpu)?,
    );
    let updates = Tensor::new(&[10_u8, 100], &Device::Cpu)?;
    let sums = ScatterOp::index_add(0).apply(&data, &at, &updates)?;
    assert_eq!(sums.to_vec1::<u8>()?, [4, 103]);
    Ok(())
}

#[test]
fn means_count_the_value() -> Result<()> {
    let (data, at) = (
        Tensor::new(&[1_f32, 5.], &Device::Cpu)?,
        Tensor::new(&[0_u8, 0], &Device::Cpu)?,
    );
    let updates = Tensor::new(&[3_f32, 8.], &Device::Cpu)?;
    let mean = ScatterOp::along(0).reduction(Reduction::Mean);
    assert_eq!(
        mean.apply(&data, &at, &updates)?.to_vec1::<f32>()?,
        [4., 5.]
    );
    let without = mean.include_self(false).apply(&data, &at, &updates)?;
    assert_eq!(without.to_vec1::<f32>()?, [5.5, 5.]);
    Ok(())
}

#[test]
fn minima_and_maxima_propagate_nan() -> Result<()> {
    let data = Tensor::new(&[f32::NAN, 1., 2.], &Device::Cpu)?;
    let at = Tensor::new(&[0_u32, 1, 1], &Device::Cpu)?;
    let updates = Tensor::new(&[1_f32, f32::NAN, 3.], &Device::Cpu)?;
    for reduction in [Reduction::Min, Reduction::Max] {
        let op = ScatterOp::along(0).reduction(reduction);
        let result = op.apply(&data, &at, &updates)?.to_vec1::<f32>()?;
        assert!(
            result[0].is_nan() && result[1].is_nan() && result[2] == 2.,
            "{result:?}"
        );
    }
    Ok(())
}

#[test]
fn wide_sums_are_rounded_once() -> Result<()> {
    let data = Tensor::new(&[f16::from_f32(2048.)], &Device::Cpu)?;
    let at = Tensor::new(&[0_u8; 4], &Device::Cpu)?;
    let ones = Tensor::ones(4, DType::F16, &Device::Cpu)?;
    let sums = ScatterOp::index_add(0);
    assert_eq!(
        sums.apply(&data, &at, &ones)?.to_vec1::<f16>()?,
        [f16::from_f32(2048.)]
    );
    let wide = sums.wide_sums(true).apply(&data, &at, &ones)?;
    assert_eq!(wide.to_vec1::<f16>()?, [f16::from_f32(2052.)]);
    Ok(())
}

#[test]
fn empty_tensors_and_scalars() -> Result<()> {
    let cpu = &Device::Cpu;
    // No updates.
    let data = Tensor::new(&[[1_f32, 2.], [3., 4.]], cpu)?;
    let none = Tensor::zeros(0, DType::U32, cpu)?;
    let updates = Tensor::zeros((0, 2), DType::F32, cpu)?;
    let result = ScatterOp::along(0).apply(&data, &none, &updates)?;
    assert_eq!(result.to_vec2::<f32>()?, data.to_vec2::<f32>()?);
    ScatterOp::along(0).apply_set(&data, &none, &updates)?;
    // Data without elements.
    let data = Tensor::zeros((3, 0), DType::F32, cpu)?;
    let rows = Tensor::new(&[2_u32], cpu)?;
    let updates = Tensor::zeros((1, 0), DType::F32, cpu)?;
    for op in [ScatterOp::along(0), ScatterOp::index_add(0)] {
        assert_eq!(op.apply(&data, &rows, &updates)?.dims(), [3, 0]);
        op.apply_set(&data, &rows, &updates)?;
    }
    // An axis without elements has no position, also for a negative index.
    let data = Tensor::zeros((0, 2), DType::F32, cpu)?;
    let updates = Tensor::zeros((1, 2), DType::F32, cpu)?;
    assert!(
        ScatterOp::along(0).apply(&data, &rows, &updates).is_err(),
        "no position"
    );
    let skipped = Tensor::new(&[u32::MAX], cpu)?;
    assert_eq!(
        ScatterOp::index_add(0)
            .apply(&data, &skipped, &updates)?
            .dims(),
        [0, 2]
    );
    // Rank 0: a tuple without coordinates selects the scalar.
    let scalar = Tensor::new(2_f32, cpu)?;
    let tuple = Tensor::zeros(0, DType::I64, cpu)?;
    let op = ScatterOp::nd().reduction(Reduction::Mul);
    assert_eq!(
        op.apply(&scalar, &tuple, &Tensor::new(5_f32, cpu)?)?
            .to_scalar::<f32>()?,
        10.
    );
    op.apply_set(&scalar, &tuple, &Tensor::new(5_f32, cpu)?)?;
    assert_eq!(scalar.to_scalar::<f32>()?, 10.);
    // An index of rank 0 removes the axis of the updates.
    let data = Tensor::new(&[[1_f32, 2.], [3., 4.]], cpu)?;
    let (row, update) = (Tensor::new(1_i64, cpu)?, Tensor::new(&[7_f32, 8.], cpu)?);
    let result = ScatterOp::along(0).apply(&data, &row, &update)?;
    assert_eq!(result.to_vec2::<f32>()?, [[1., 2.], [7., 8.]]);
    Ok(())
}

//! Gradients, against finite differences and against candle.

use candle_core::{DType, Device, Result, Tensor, Var};
use ndscatter_candle::{GatherOp, NdScatter, Reduction, ScatterOp};

use crate::random::Random;
use crate::reference::{Operator, values};
use crate::types::{Case, op};

const REDUCTIONS: [Reduction; 7] = [
    Reduction::None,
    Reduction::Add,
    Reduction::Sub,
    Reduction::Mul,
    Reduction::Min,
    Reduction::Max,
    Reduction::Mean,
];

/// Adds a different small number to each element, so that minima and maxima have no ties.
fn without_ties(random: &mut Random, tensor: &Tensor) -> Result<Tensor> {
    let count = tensor.elem_count();
    let offsets: Vec<f64> = (0..count)
        .map(|_| random.below(1 << 20) as f64 / 2f64.powi(23))
        .collect();
    tensor + Tensor::from_vec(offsets, tensor.dims(), &Device::Cpu)?
}

/// Returns the gradient of `loss` at `tensor` by central differences.
fn differences(tensor: &Tensor, loss: impl Fn(&Tensor) -> Result<f64>) -> Result<Vec<f64>> {
    const STEP: f64 = 1e-6;
    let at = values::<f64>(tensor)?;
    let moved = |number: usize, by: f64| {
        let mut at = at.clone();
        at[number] += by;
        loss(&Tensor::from_vec(at, tensor.dims(), &Device::Cpu)?)
    };
    (0..at.len())
        .map(|number| Ok((moved(number, STEP)? - moved(number, -STEP)?) / (2.0 * STEP)))
        .collect()
}

fn assert_close(actual: &[f64], expected: &[f64], what: &str) {
    assert_eq!(actual.len(), expected.len(), "{what}");
    for (actual, expected) in actual.iter().zip(expected) {
        let allowed = 1e-5 * (1.0 + expected.abs());
        assert!(
            (actual - expected).abs() < allowed,
            "{actual} instead of {expected}: {what}"
        );
    }
}

#[test]
fn scatters_equal_finite_differences() -> Result<()> {
    let random = &mut Random::new(7);
    for number in 0..250 {
        let skipped = (number % 3 == 0).then_some(i64::from(u32::MAX));
        let case = Case::new(random, DType::F64, DType::U32, skipped)?;
        let is_cache = matches!(case.operator, Operator::Cache(..));
        let reduction = if is_cache {
            Reduction::None
        } else {
            random.pick(&REDUCTIONS)
        };
        let op = op(case.operator)
            .reduction(reduction)
            .include_self(is_cache || random.below(3) > 0);
        let op = if skipped.is_some() { op.skip_max() } else { op };
        let data = without_ties(random, &case.data)?;
        let updates = without_ties(random, &case.updates)?;
        let weights = random.tensor(data.dims(), DType::F64)?;
        let loss = |data: &Tensor, updates: &Tensor| {
            (op.apply(data, &case.indices, updates)? * &weights)?.sum_all()
        };
        // Variables in other layouts, by operations with gradients.
        let (data_var, updates_var) = (Var::from_tensor(&data)?, Var::from_tensor(&updates)?);
        let grads = loss(&random.relaid(&data_var)?, &random.relaid(&updates_var)?)?.backward()?;
        let what = format!("{op:?}");
        for (var, expected) in [
            (
                &data_var,
                differences(&data, |data| loss(data, &updates)?.to_scalar())?,
            ),
            (
                &updates_var,
                differences(&updates, |updates| loss(&data, updates)?.to_scalar())?,
            ),
        ] {
            let grad = grads.get(var).expect("a gradient");
            assert_eq!(
                (grad.dims(), grad.dtype()),
                (var.dims(), DType::F64),
                "{what}"
            );
            assert_close(&values(grad)?, &expected, &what);
        }
        // Only one of the two is a variable.
        for (var, grads) in [
            (&data_var, loss(&data_var, &updates)?.backward()?),
            (&updates_var, loss(&data, &updates_var)?.backward()?),
        ] {
            let both = loss(&data_var, &updates_var)?.backward()?;
            let (one, both) = (grads.get(var).expect("one"), both.get(var).expect("both"));
            assert_eq!(values::<f64>(one)?, values::<f64>(both)?, "{what}");
        }
    }
    Ok(())
}

#[test]
fn gathers_equal_finite_differences() -> Result<()> {
    let random = &mut Random::new(8);
    for number in 0..60 {
        let data = random.tensor(&[3, 4, 2], DType::F64)?;
        let (op, dims): (GatherOp, &[usize]) = match number % 4 {
            0 => (GatherOp::along(1), &[5]),
            1 => (GatherOp::gather(0), &[5, 4, 1]),
            2 => (GatherOp::nd(0), &[6, 2]),
            _ => (GatherOp::nd(1), &[3, 6, 1]),
        };
        let count = dims.iter().product::<usize>();
        let indices: Vec<u32> = (0..count)
            .map(|_| {
                if number % 4 == 1 && random.below(4) == 0 {
                    u32::MAX
                } else {
                    random.below(3) as u32
                }
            })
            .collect();
        let indices = Tensor::from_vec(indices, dims, &Device::Cpu)?;
        let indices = random.relaid(&indices)?;
        let weights = random.tensor(op.apply(&data, &indices)?.dims(), DType::F64)?;
        let loss = |data: &Tensor| (op.apply(data, &indices)? * &weights)?.sum_all();
        let var = Var::from_tensor(&data)?;
        let grads = loss(&random.relaid(&var)?)?.backward()?;
        let expected = differences(&data, |data| loss(data)?.to_scalar())?;
        assert_close(
            &values(grads.get(&var).expect("a gradient"))?,
            &expected,
            &format!("{op:?}"),
        );
    }
    Ok(())
}

/// candle's gradients are right for both tensors of `index_add`, for the updates of `scatter_add`,
/// and for `index_select` and `gather`. The gradient of `scatter_add` is an error in candle unless
/// updates have the shape of data.
#[test]
fn candle_gives_the_same() -> Result<()> {
    let random = &mut Random::new(9);
    for dtype in [DType::F32, DType::F64, DType::F16, DType::BF16] {
        for _ in 0..20 {
            let rows: Vec<u32> = (0..6).map(|_| random.below(4) as u32).collect();
            let rows = Tensor::new(rows, &Device::Cpu)?;
            let elements = rows.unsqueeze(1)?.broadcast_as((6, 3))?.contiguous()?;
            let data = Var::from_tensor(&random.tensor(&[4, 3], dtype)?)?;
            let updates = Var::from_tensor(&random.tensor(&[6, 3], dtype)?)?;
            let weights = random.tensor(&[4, 3], dtype)?;
            let more = random.tensor(&[6, 3], dtype)?;
            let grads = |result: Tensor, of: &[&Var]| -> Result<Vec<Vec<f64>>> {
                let weights = if result.dim(0)? == 4 { &weights } else { &more };
                let grads = (result * weights)?.sum_all()?.backward()?;
                of.iter()
                    .map(|var| values(&grads.get(var).expect("a gradient").to_dtype(DType::F64)?))
                    .collect()
            };
            let both = [&data, &updates];
            assert_eq!(
                grads(data.nd_index_add(&rows, &updates, 0)?, &both)?,
                grads(data.index_add(&rows, &updates, 0)?, &both)?,
            );
            let few = elements.narrow(0, 0, 4)?;
            let few_updates = updates.narrow(0, 0, 4)?;
            assert_eq!(
                grads(
                    ScatterOp::scatter_add(0).apply(&data, &few, &few_updates)?,
                    &both[1..]
                )?,
                grads(data.scatter_add(&few, &few_updates, 0)?, &both[1..])?,
            );
            if dtype == DType::F32 || dtype == DType::F64 {
                assert_eq!(
                    grads(GatherOp::index_select(0).apply(&data, &rows)?, &both[..1])?,
                    grads(data.index_select(&rows, 0)?, &both[..1])?,
                );
                assert_eq!(
                    grads(GatherOp::gather(0).apply(&data, &elements)?, &both[..1])?,
                    grads(data.gather(&elements, 0)?, &both[..1])?,
                );
            }
        }
    }
    Ok(())
}

#[test]
fn ties_share_the_gradient_and_zeros_need_no_division() -> Result<()> {
    let cpu = &Device::Cpu;
    let at = Tensor::new(&[0_u32, 0, 1], cpu)?;
    let (data, updates) = (
        Var::new(&[3_f32, 2.], cpu)?,
        Var::new(&[3_f32, 1., 0.], cpu)?,
    );
    let along = ScatterOp::along(0);
    let grads = along
        .reduction(Reduction::Max)
        .apply(&data, &at, &updates)?
        .sum_all()?
        .backward()?;
    assert_eq!(grads.get(&data).expect("data").to_vec1::<f32>()?, [0.5, 1.]);
    assert_eq!(
        grads.get(&updates).expect("updates").to_vec1::<f32>()?,
        [0.5, 0., 0.]
    );
    let grads = along
        .reduction(Reduction::Mul)
        .apply(&data, &at, &updates)?
        .sum_all()?
        .backward()?;
    assert_eq!(grads.get(&data).expect("data").to_vec1::<f32>()?, [3., 0.]);
    assert_eq!(
        grads.get(&updates).expect("updates").to_vec1::<f32>()?,
        [3., 9., 2.]
    );
    Ok(())
}

/// Tensors that candle does not track get no gradient, and a result of them is not tracked.
#[test]
fn tracking() -> Result<()> {
    let cpu = &Device::Cpu;
    let at = Tensor::new(&[[1_u32]], cpu)?;
    let (data, updates) = (
        Tensor::zeros(2, DType::F32, cpu)?,
        Tensor::ones(1, DType::F32, cpu)?,
    );
    assert!(!data.nd_scatter_add(&at, &updates)?.track_op());
    let var = Var::from_tensor(&updates)?;
    let result = data.nd_scatter_add(&at, &var)?;
    assert!(result.track_op());
    let grads = result.sum_all()?.backward()?;
    assert!(grads.get(&data).is_none() && grads.get(&at).is_none());
    assert_eq!(grads.get(&var).expect("updates").to_vec1::<f32>()?, [1.]);
    Ok(())
}

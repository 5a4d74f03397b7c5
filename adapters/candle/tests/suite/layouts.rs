//! Strides: broadcast inputs, and views of larger tensors as targets.

use candle_core::{DType, Device, Result, Tensor};
use ndscatter_candle::{NdScatter, Reduction, ScatterOp};

use crate::random::Random;
use crate::reference::{Operator, destinations, scatter, values};

/// A scatter into a view changes the elements of the view, and no other element of the storage.
#[test]
fn a_view_is_written_alone() -> Result<()> {
    let random = &mut Random::new(2);
    for number in 0..200 {
        let whole = random.tensor(&[5, 6, 7], DType::F32)?;
        let numbers = Tensor::arange(0_u32, 5 * 6 * 7, &Device::Cpu)?.reshape((5, 6, 7))?;
        let permutation = random.pick(&[[0, 1, 2], [2, 0, 1], [1, 2, 0], [2, 1, 0]]);
        let bounds = [0, 1, 2].map(|_| (random.below(3), 1 + random.below(3)));
        let view = |tensor: &Tensor| {
            let mut view = tensor.permute(permutation)?;
            for (axis, (start, len)) in bounds.into_iter().enumerate() {
                view = view.narrow(axis, start, len)?;
            }
            // Drops an axis in some cases, so that no axis has stride 1.
            if number % 4 == 0 {
                view.narrow(2, 0, 1)?.squeeze(2)
            } else {
                Ok(view)
            }
        };
        let (target, places) = (view(&whole)?, values::<u32>(&view(&numbers)?)?);
        let axis = random.below(target.rank());
        let count = 1 + random.below(4);
        let rows: Vec<u32> = (0..count)
            .map(|_| random.below(target.dims()[axis]) as u32)
            .collect();
        let mut updates_dims = target.dims().to_vec();
        updates_dims[axis] = count;
        let updates = random.tensor(&updates_dims, DType::F32)?;
        let updates = random.relaid(&updates)?;

        let given: Vec<i64> = rows.iter().map(|&row| row.into()).collect();
        let at = destinations(
            Operator::Along(axis),
            target.dims(),
            (&[count], &given),
            &updates_dims,
            None,
        );
        let mut part = values::<f32>(&target)?;
        scatter(&mut part, &at, &values(&updates)?, Reduction::Add, true);
        let mut expected = values::<f32>(&whole)?;
        for (place, value) in places.iter().zip(part) {
            expected[*place as usize] = value;
        }

        let rows = Tensor::from_vec(rows, count, &Device::Cpu)?;
        target.nd_index_add_set(&rows, &updates, axis)?;
        assert_eq!(values::<f32>(&whole)?, expected, "{:?}", target.layout());
    }
    Ok(())
}

#[test]
fn inputs_may_be_broadcast() -> Result<()> {
    let cpu = &Device::Cpu;
    let data = Tensor::new(&[[1_f32], [2.], [3.]], cpu)?.broadcast_as((3, 4))?;
    let rows = Tensor::new(&[[1_i64]], cpu)?.broadcast_as((5, 1))?;
    let updates = Tensor::new(&[1_f32, 2., 3., 4.], cpu)?.broadcast_as((5, 4))?;
    let expected = [[1_f32; 4], [7., 12., 17., 22.], [3.; 4]];
    assert_eq!(
        data.nd_scatter_add(&rows, &updates)?.to_vec2::<f32>()?,
        expected
    );
    let target = data.contiguous()?;
    target.nd_scatter_set(&rows, &updates, Reduction::Add)?;
    assert_eq!(target.to_vec2::<f32>()?, expected);
    Ok(())
}

#[test]
fn a_broadcast_target_is_refused() -> Result<()> {
    let cpu = &Device::Cpu;
    let column = Tensor::new(&[[1_f32], [2.]], cpu)?;
    let target = column.broadcast_as((2, 3))?;
    let (row, updates) = (
        Tensor::new(&[0_u32], cpu)?,
        Tensor::ones((1, 3), DType::F32, cpu)?,
    );
    let error = ScatterOp::along(0)
        .apply_set(&target, &row, &updates)
        .unwrap_err();
    assert!(error.to_string().contains("repeated elements"), "{error}");
    assert_eq!(column.to_vec2::<f32>()?, [[1.], [2.]]);
    Ok(())
}

/// Ranks above 8, for which ndscatter allocates its dims.
#[test]
fn long_shapes() -> Result<()> {
    let data = Tensor::zeros(vec![2; 10], DType::F32, &Device::Cpu)?.t()?;
    let at = Tensor::new(&[1_u8], &Device::Cpu)?;
    let one = Tensor::ones(vec![1; 10], DType::F32, &Device::Cpu)?;
    let updates = one.broadcast_as([vec![2; 4], vec![1], vec![2; 5]].concat())?;
    let sum = ScatterOp::along(4).reduction(Reduction::Add);
    let result = sum.apply(&data, &at, &updates)?;
    sum.apply_set(&data, &at, &updates)?;
    for result in [result, data] {
        let half =
            |at| -> Result<f32> { Ok(values::<f32>(&result.narrow(4, at, 1)?)?.into_iter().sum()) };
        assert_eq!((half(0)?, half(1)?), (0., 512.));
    }
    Ok(())
}

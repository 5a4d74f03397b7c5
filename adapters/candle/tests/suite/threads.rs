//! The bits of a large result at every number of threads.

use candle_core::{DType, Device, Result, Tensor, Var};
use ndscatter_candle::{NdScatter, ScatterOp};

use crate::random::Random;

fn on_threads<R: Send>(threads: usize, call: impl FnOnce() -> R + Send) -> R {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
    pool.expect("a pool").install(call)
}

fn bits(tensor: &Tensor) -> Result<Vec<u32>> {
    Ok(tensor
        .flatten_all()?
        .to_vec1::<f32>()?
        .into_iter()
        .map(f32::to_bits)
        .collect())
}

#[test]
fn bits_do_not_depend_on_threads() -> Result<()> {
    let random = &mut Random::new(3);
    let rows: Vec<u32> = (0..200_000).map(|_| random.below(5000) as u32).collect();
    let rows = Tensor::new(rows, &Device::Cpu)?;
    // Values whose sums are rounded.
    let updates = random
        .tensor(&[200_000, 8], DType::F32)?
        .affine(1.0 / 3.0, 0.1)?;
    let table = random.tensor(&[5000, 8], DType::F32)?;
    let run = |threads| {
        on_threads(threads, || -> Result<_> {
            let sums = table.nd_index_add(&rows, &updates, 0)?;
            let target = table.copy()?;
            target.nd_index_add_set(&rows, &updates, 0)?;
            let var = Var::from_tensor(&updates)?;
            let mean = ScatterOp::along(0).reduction(ndscatter_candle::Reduction::Mean);
            let loss = mean.apply(&table, &rows, &var)?.sqr()?.sum_all()?;
            let grad = loss.backward()?.get(&var).expect("a gradient").clone();
            Ok([bits(&sums)?, bits(&target)?, bits(&grad)?])
        })
    };
    let expected = run(1)?;
    assert_eq!(expected[0], expected[1], "in place");
    assert_eq!(
        expected[0],
        bits(&table.index_add(&rows, &updates, 0)?)?,
        "candle"
    );
    for threads in [2, 8] {
        assert_eq!(run(threads)?, expected, "{threads} threads");
    }
    Ok(())
}

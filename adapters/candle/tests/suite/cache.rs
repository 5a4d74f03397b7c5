//! Writes into caches of keys and values, against candle-nn's caches.

use candle_core::{DType, Device, Result, Tensor};
use candle_nn::kv_cache::{KvCache, ScatteredCacheBuilder};
use ndscatter_candle::{CacheMode, NdScatter, Reduction, ScatterOp};

use crate::random::Random;

/// One position for all sequences: candle's `KvCache`.
#[test]
fn linear_positions() -> Result<()> {
    let random = &mut Random::new(10);
    let mut candle = KvCache::new(2, 8);
    let dims = (2, 3, 8, 4);
    let keys = Tensor::zeros(dims, DType::F32, &Device::Cpu)?;
    let mut position = 0;
    for len in [3, 1, 1, 2, 1] {
        let new = random.tensor(&[2, 3, len, 4], DType::F32)?;
        let (expected, _) = candle.append(&new, &new)?;
        keys.nd_cache_set(&Tensor::new(position, &Device::Cpu)?, &new, 2)?;
        position += len as u32;
        let filled = keys.narrow(2, 0, position as usize)?;
        assert_eq!(
            filled.flatten_all()?.to_vec1::<f32>()?,
            expected.flatten_all()?.to_vec1::<f32>()?
        );
    }
    let new = random.tensor(&[2, 3, 1, 4], DType::F32)?;
    let full = keys
        .nd_cache_set(&Tensor::new(8_u32, &Device::Cpu)?, &new, 2)
        .unwrap_err();
    assert!(
        full.to_string().contains("write index 8 of sequence 0"),
        "{full}"
    );
    Ok(())
}

/// A position for each sequence, with wraparound: candle's `ScatteredKvCache`.
#[test]
fn circular_positions_of_each_sequence() -> Result<()> {
    let (random, cpu) = (&mut Random::new(11), &Device::Cpu);
    for dtype in [DType::F32, DType::F16, DType::BF16] {
        let mut builder = ScatteredCacheBuilder::new(3, 5, dtype, cpu)?;
        let mut candle = builder.make_cache(2, 4)?;
        let keys = Tensor::zeros((3, 2, 5, 4), dtype, cpu)?;
        let circular = ScatterOp::cache(2, CacheMode::Circular).skip_max();
        let mut positions = [0_u32; 3];
        for step in 0..30 {
            let len = 1 + random.below(3);
            // The second sequence is idle in some steps. candle writes its rows all the same, to the
            // next free position, so this test gives it the rows that are there.
            let is_active = [true, step % 3 != 0, true];
            let new = random.tensor(&[3, 2, len, 4], dtype)?;
            let starts: Vec<u32> = (0..3)
                .map(|i| if is_active[i] { positions[i] } else { u32::MAX })
                .collect();
            circular.apply_set(&keys, &Tensor::new(starts, cpu)?, &new)?;
            let of_candle = if is_active[1] {
                new
            } else {
                let at = positions[1] as usize % 5;
                let old = keys
                    .narrow(0, 1, 1)?
                    .narrow(2, at, 1)?
                    .broadcast_as((1, 2, len, 4))?;
                Tensor::cat(
                    &[
                        &new.narrow(0, 0, 1)?,
                        &old.contiguous()?,
                        &new.narrow(0, 2, 1)?,
                    ],
                    0,
                )?
            };
            let places = builder.indices_and_mask(len, &is_active)?;
            candle.append(&of_candle, &of_candle, &places)?;
            for (position, active) in positions.iter_mut().zip(is_active) {
                *position += if active { len as u32 } else { 0 };
            }
            let [ours, expected] = [&keys, candle.k()]
                .map(|keys| keys.to_dtype(DType::F32)?.flatten_all()?.to_vec1::<f32>());
            assert_eq!(ours?, expected?, "step {step}");
        }
    }
    Ok(())
}

/// A paged cache: each token has a block and a slot in the block.
#[test]
fn pages() -> Result<()> {
    let (random, cpu) = (&mut Random::new(12), &Device::Cpu);
    let blocks = Tensor::zeros((6, 4, 2, 3), DType::F32, cpu)?;
    let places = [[5_u32, 3], [0, 0], [2, 1]];
    let tokens = random.tensor(&[3, 2, 3], DType::F32)?;
    blocks.nd_scatter_set(&Tensor::new(&places, cpu)?, &tokens, Reduction::None)?;
    for (token, [block, slot]) in places.into_iter().enumerate() {
        let written = blocks.get(block as usize)?.get(slot as usize)?;
        assert_eq!(
            written.to_vec2::<f32>()?,
            tokens.get(token)?.to_vec2::<f32>()?
        );
    }
    Ok(())
}

/// The cache is one layer of a larger tensor, with heads and positions swapped.
#[test]
fn a_layer_of_a_permuted_cache() -> Result<()> {
    let (random, cpu) = (&mut Random::new(13), &Device::Cpu);
    let all = Tensor::zeros((2, 3, 8, 2, 4), DType::F32, cpu)?;
    // [layer, batch, position, head, size] as [batch, head, position, size].
    let layer = all.get(1)?.transpose(1, 2)?;
    let new = random.tensor(&[3, 2, 2, 4], DType::F32)?;
    layer.nd_cache_set(&Tensor::new(&[0_i64, 6, 3], cpu)?, &new, 2)?;
    assert_eq!(all.get(0)?.sqr()?.sum_all()?.to_scalar::<f32>()?, 0.);
    for (sequence, start) in [0, 6, 3].into_iter().enumerate() {
        let written = layer.get(sequence)?.narrow(1, start, 2)?;
        assert_eq!(
            written.to_vec3::<f32>()?,
            new.get(sequence)?.to_vec3::<f32>()?
        );
    }
    let total = |tensor: &Tensor| tensor.sqr()?.sum_all()?.to_scalar::<f32>();
    assert_eq!(total(&all)?, total(&new)?);
    Ok(())
}

//! Decodes a batch of sequences of different lengths with one cache of keys and values per layer.
//!
//! ```sh
//! cargo run --release -p ndscatter-candle --example batched_decode
//! ```
//!
//! In each layer, a step writes one row of each active sequence into the cache, at the position of
//! the sequence. Attention then reads the rows that are there. The cache is written in place, so a
//! step costs its new rows. candle's way to write such a cache is one `slice_set` for each sequence.
//! The example compares the results and the times of both.

use std::time::{Duration, Instant};

use candle_core::{D, DType, Device, Result, Tensor};
use candle_nn::ops::softmax;
use ndscatter_candle::{CacheMode, ScatterOp};

const LAYERS: usize = 8;
const BATCH: usize = 16;
const HEADS: usize = 4;
const LEN: usize = 512;
const SIZE: usize = 64;
const STEPS: usize = 32;

/// A cache of keys and values, with the length of each sequence.
struct Cache {
    keys: Tensor,
    values: Tensor,
    /// `None`: the sequence is idle.
    lens: Vec<Option<u32>>,
}

impl Cache {
    /// Returns the start position of the new rows of each sequence. `u32::MAX` skips a sequence.
    fn starts(&self) -> Result<Tensor> {
        let starts = self.lens.iter().map(|len| len.unwrap_or(u32::MAX));
        Tensor::new(starts.collect::<Vec<_>>(), &Device::Cpu)
    }

    /// Writes the rows of one step with one call for all sequences.
    fn append(&mut self, keys: &Tensor, values: &Tensor) -> Result<()> {
        let (op, starts) = (
            ScatterOp::cache(2, CacheMode::Linear).skip_max(),
            self.starts()?,
        );
        op.apply_set(&self.keys, &starts, keys)?;
        op.apply_set(&self.values, &starts, values)?;
        self.lens.iter_mut().flatten().for_each(|len| *len += 1);
        Ok(())
    }

    /// Writes the rows of one step with two calls of candle for each sequence.
    fn append_with_candle(&mut self, keys: &Tensor, values: &Tensor) -> Result<()> {
        for (sequence, len) in self.lens.iter_mut().enumerate() {
            let Some(len) = len else { continue };
            for (cache, new) in [(&self.keys, keys), (&self.values, values)] {
                let cache = cache.narrow(0, sequence, 1)?;
                cache.slice_set(&new.narrow(0, sequence, 1)?, 2, *len as usize)?;
            }
            *len += 1;
        }
        Ok(())
    }

    /// Returns the attention of one query per sequence over the first `longest` positions.
    fn attend(&self, queries: &Tensor, longest: u32) -> Result<Tensor> {
        let part = |cache: &Tensor| cache.narrow(2, 0, longest as usize);
        let scores = (queries.matmul(&part(&self.keys)?.t()?)? / (SIZE as f64).sqrt())?;
        let hidden = self.lens.iter().flat_map(|&len| {
            (0..longest).map(move |at| {
                if at < len.unwrap_or(1) {
                    0.
                } else {
                    f32::NEG_INFINITY
                }
            })
        });
        let hidden = Tensor::from_vec(
            hidden.collect(),
            (BATCH, 1, 1, longest as usize),
            &Device::Cpu,
        )?;
        softmax(&scores.broadcast_add(&hidden)?, D::Minus1)?.matmul(&part(&self.values)?)
    }
}

fn random(dims: (usize, usize, usize, usize)) -> Result<Tensor> {
    Tensor::randn(0_f32, 1., dims, &Device::Cpu)
}

fn main() -> Result<()> {
    // Prompts of different lengths are in the caches already. Sequence 3 is idle.
    let filled = random((BATCH, HEADS, LEN, SIZE))?;
    let lens: Vec<Option<u32>> = (0_u32..)
        .take(BATCH)
        .map(|i| (i != 3).then_some(20 * i))
        .collect();
    let new_cache = |_| -> Result<Cache> {
        Ok(Cache {
            keys: filled.copy()?,
            values: filled.copy()?,
            lens: lens.clone(),
        })
    };
    let mut layers = (0..LAYERS)
        .map(|layer| Ok([new_cache(layer)?, new_cache(layer)?]))
        .collect::<Result<Vec<_>>>()?;
    let idle = filled.get(3)?.flatten_all()?.to_vec1::<f32>()?;

    let mut times = [vec![], vec![]];
    let mut difference = 0_f32;
    for step in 0..STEPS {
        let mut step_times = [Duration::ZERO; 2];
        for (layer, [ours, candle]) in layers.iter_mut().enumerate() {
            let [keys, values, queries] = [(); 3].map(|()| random((BATCH, HEADS, 1, SIZE)));
            let (keys, values, queries) = (keys?, values?, queries?);
            // The two take turns as the first one.
            let first = (step + layer) % 2;
            for turn in [first, 1 - first] {
                let start = Instant::now();
                match turn {
                    0 => ours.append(&keys, &values)?,
                    _ => candle.append_with_candle(&keys, &values)?,
                }
                step_times[turn] += start.elapsed();
            }
            let longest = ours.lens.iter().flatten().max().copied().unwrap_or(1);
            let outputs = [ours, candle].map(|cache| cache.attend(&queries, longest));
            let [output, expected] = outputs;
            let largest = (output? - expected?)?.abs()?.max_all()?;
            difference = difference.max(largest.to_scalar::<f32>()?);
        }
        (times.iter_mut().zip(step_times)).for_each(|(times, time)| times.push(time));
    }

    let ours = &layers[0][0];
    let lens = ours.lens.iter().map(|len| len.unwrap_or(0));
    println!("lengths: {:?}", lens.collect::<Vec<_>>());
    println!("largest difference of the attention with candle's cache: {difference}");
    let kept = ours.keys.get(3)?.flatten_all()?.to_vec1::<f32>()? == idle;
    println!("rows of the idle sequence are unchanged: {kept}");
    let [time, candle_time] = times.map(|mut times| {
        times.sort();
        times[STEPS / 2].as_secs_f64() * 1e6
    });
    println!("writes of one step (median): {time:.0} us, {candle_time:.0} us with slice_set");
    let bytes = LAYERS * ours.keys.elem_count() * DType::F32.size_in_bytes() * 2;
    let written = LAYERS * BATCH * HEADS * SIZE * DType::F32.size_in_bytes() * 2;
    println!(
        "the caches have {} MiB, and a step writes {} KiB",
        bytes >> 20,
        written >> 10
    );
    Ok(())
}

//! A key/value cache. Each decoding step writes the keys of one token for each sequence of a batch,
//! at the sequence's next position. A slot of the batch without a sequence has position -1.
//! `Bounds::Skip` leaves its memory unchanged.

use half::bf16;
use ndscatter::{Bounds, CacheMode, Scatter, ScatterError, TensorView, TensorViewMut};

const SLOTS: usize = 4;
const HEADS: usize = 2;
const POSITIONS: usize = 16;
const DEPTH: usize = 8;

fn main() -> Result<(), ScatterError> {
    let mut keys = vec![bf16::ZERO; SLOTS * HEADS * POSITIONS * DEPTH];
    // Next position of each slot. The third slot is idle.
    let mut next = [5_i64, 0, -1, 12];

    // The positions change with every step, so a plan would serve one call only. A call of this
    // size runs on the calling thread and allocates nothing.
    let write = Scatter::cache(-2, CacheMode::Linear).bounds(Bounds::Skip);
    for step in [1.0, 2.0, 3.0] {
        // Stands for the output of a model: one row for each slot and head.
        let token = [bf16::from_f32(step); SLOTS * HEADS * DEPTH];
        write.in_place(
            TensorViewMut::contiguous(&mut keys, &[SLOTS, HEADS, POSITIONS, DEPTH])?,
            TensorView::from(&next),
            TensorView::contiguous(&token, &[SLOTS, HEADS, 1, DEPTH])?,
        )?;
        let busy = next.iter_mut().filter(|position| **position >= 0);
        busy.for_each(|position| *position += 1);
    }

    assert_eq!(next, [8, 3, -1, 15], "three steps");
    for (row, keys) in keys.chunks_exact(POSITIONS * DEPTH).enumerate() {
        let by_position = keys.chunks_exact(DEPTH).map(|key| key[0].to_f32());
        let written: Vec<_> = (0..)
            .zip(by_position)
            .filter(|&(_, key)| key != 0.0)
            .collect();
        println!("slot {}, head {}: {written:?}", row / HEADS, row % HEADS);
        let expected = match next[row / HEADS] {
            -1 => vec![],
            end => vec![(end - 3, 1.0), (end - 2, 2.0), (end - 1, 3.0)],
        };
        assert_eq!(written, expected, "three tokens, one after another");
    }
    Ok(())
}

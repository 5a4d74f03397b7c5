//! A paged cache of keys and values, as inference servers have it: the memory is cut into blocks of
//! slots, and each sequence has a list of blocks. Keys and values are `bf16`, and the cache stores
//! them in 8 bits. The example compares one call with the loop that it replaces.
//!
//! ```text
//! blocks of sequence A: 2, 0        slot = block * ROWS + position % ROWS
//!
//! block 0   [A4 A5 .. ..]           the second block of A: two of its four slots are free
//! block 1   [B0 B1 B2 ..]
//! block 2   [A0 A1 A2 A3]           the first block of A
//! ```

use std::time::Instant;

use half::bf16;
use ndscatter::{
    Conversion, Format, Layout, Rounding, Scatter, ScatterError, TensorView, TensorViewMut, Write,
};

const BLOCKS: usize = 64;
const ROWS: usize = 16;
const HEADS: usize = 8;
const DIM: usize = 64;
const LAYERS: usize = 8;
/// Elements of one token in one layer.
const TOKEN: usize = HEADS * DIM;
/// Largest magnitude of the keys, divided by the largest value of the format.
const SCALE: f32 = 4.0 / 448.0;

/// A sequence: its name, its blocks and its number of tokens.
struct Sequence {
    name: char,
    blocks: Vec<usize>,
    len: usize,
}

impl Sequence {
    /// Adds tokens, and returns their slots. Takes free blocks when the last block is full.
    fn grow(&mut self, tokens: usize, free: &mut Vec<usize>) -> Vec<i64> {
        let slot = |position: usize| {
            if position == self.blocks.len() * ROWS {
                self.blocks.push(free.pop().expect("a free block"));
            }
            let slot = self.blocks[position / ROWS] * ROWS + position % ROWS;
            i64::try_from(slot).expect("a small slot")
        };
        let slots = (self.len..self.len + tokens).map(slot).collect();
        self.len += tokens;
        slots
    }
}

/// One layer: the codes of keys and values, `[BLOCKS, ROWS, HEADS, DIM]` each.
#[derive(Clone, PartialEq)]
struct Layer {
    keys: Vec<u8>,
    values: Vec<u8>,
}

impl Layer {
    fn new() -> Self {
        let codes = vec![0; BLOCKS * ROWS * TOKEN];
        Self {
            keys: codes.clone(),
            values: codes,
        }
    }
}

fn main() -> Result<(), ScatterError> {
    let mut layers = vec![Layer::new(); LAYERS];
    let mut free: Vec<_> = (0..BLOCKS).rev().collect();
    let mut sequences = ['A', 'B', 'C'].map(|name| Sequence {
        name,
        blocks: vec![],
        len: 0,
    });

    // The prompts: all tokens of all sequences are one list of slots.
    let prompts = [70, 23, 41];
    let lists = (sequences.iter_mut()).zip(prompts);
    let slots: Vec<_> = lists
        .flat_map(|(sequence, len)| sequence.grow(len, &mut free))
        .collect();
    write(&mut layers, &slots, &tokens(slots.len()))?;
    print_blocks("prompts of 70, 23 and 41 tokens", &sequences);

    // B ends, and its blocks are free. D takes them.
    free.append(&mut sequences[1].blocks);
    sequences[1] = Sequence {
        name: 'D',
        blocks: vec![],
        len: 0,
    };
    let slots = sequences[1].grow(50, &mut free);
    write(&mut layers, &slots, &tokens(slots.len()))?;
    print_blocks("B has ended, D has a prompt of 50 tokens", &sequences);

    // Decoder steps: one token for each sequence. A batch of fixed size has unused entries, -1.
    for _ in 0..20 {
        let mut slots: Vec<_> = sequences
            .iter_mut()
            .flat_map(|one| one.grow(1, &mut free))
            .collect();
        slots.resize(8, -1);
        let new = tokens(slots.len());
        let mut expected = layers.clone();
        write_one_by_one(&mut expected, &slots, &new);
        write(&mut layers, &slots, &new)?;
        assert!(layers == expected, "both write the same bits");
    }
    print_blocks("after 20 decoder steps", &sequences);

    // The time of a step with 64 sequences.
    let slots: Vec<_> = (0_i64..)
        .step_by(ROWS)
        .take(64)
        .map(|slot| slot + 3)
        .collect();
    let new = tokens(slots.len());
    let loops = time(|| write_one_by_one(&mut layers, &slots, &new));
    let mut copies = layers.clone();
    let calls = time(|| write(&mut copies, &slots, &new).expect("valid slots"));
    assert!(layers == copies, "both write the same bits");
    println!(
        "a step of 64 sequences in {LAYERS} layers: {loops:.0} us by a loop, {calls:.0} us by one call"
    );
    Ok(())
}

/// Stands for the output of a model: keys or values of some tokens.
fn tokens(count: usize) -> Vec<bf16> {
    let value = |at: usize| {
        let number = u16::try_from(at * 7919 % 1000).expect("below 1000");
        bf16::from_f32(f32::from(number) / 125.0 - 4.0)
    };
    (0..count * TOKEN).map(value).collect()
}

/// Writes new keys and values of all layers: one call, with one list of slots.
fn write(layers: &mut [Layer], slots: &[i64], new: &[bf16]) -> Result<(), ScatterError> {
    let (shape, updates_shape) = ([BLOCKS, ROWS, HEADS, DIM], [slots.len(), HEADS, DIM]);
    let scale = [SCALE];
    let conversion = Conversion::new()
        .format(Format::F8E4M3Fn)
        .rounding(Rounding::Saturate)
        .scale(TensorView::contiguous(&scale, &[])?);
    let mut writes = Vec::new();
    for layer in layers {
        for codes in [&mut layer.keys, &mut layer.values] {
            let data = TensorViewMut::contiguous(codes, &shape)?;
            let updates = TensorView::contiguous(new, &updates_shape)?;
            writes.push(Write::new(data, updates).convert(conversion));
        }
    }
    // The slots of a step are the same in all layers, so one plan serves all of them.
    let plan = Scatter::paged().plan(Layout::contiguous(&shape), TensorView::from(slots))?;
    plan.run().write_all(&mut writes)
}

/// The loop that the call replaces: converts one value at a time.
fn write_one_by_one(layers: &mut [Layer], slots: &[i64], new: &[bf16]) {
    for layer in layers {
        for codes in [&mut layer.keys, &mut layer.values] {
            for (token, &slot) in new.chunks(TOKEN).zip(slots) {
                let Ok(slot) = usize::try_from(slot) else {
                    continue;
                };
                let row = &mut codes[slot * TOKEN..][..TOKEN];
                for (code, value) in row.iter_mut().zip(token) {
                    *code = nearest(value.to_f32() / SCALE);
                }
            }
        }
    }
}

/// Returns the code of the 8-bit float with 3 fraction bits that is nearest to `value`, ties to
/// even, at most 448.
fn nearest(value: f32) -> u8 {
    let magnitude = value.abs().min(448.0);
    let sign = if value.is_sign_negative() { 0x80 } else { 0 };
    // Below 2^-6, values are multiples of 2^-9.
    if magnitude < 1.0 / 64.0 {
        let steps = (magnitude * 512.0).round_ties_even();
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "at most 8"
        )]
        return sign | steps as u8;
    }
    let bits = magnitude.to_bits();
    let rounded = bits + 0x7_ffff + ((bits >> 20) & 1);
    sign | (rounded >> 20).wrapping_sub(120 << 3).to_le_bytes()[0]
}

/// Prints each block in use: one mark for each slot, `.` for a free slot.
fn print_blocks(what: &str, sequences: &[Sequence]) {
    println!("{what}:");
    let mut pictures: Vec<_> = (0..BLOCKS).map(|_| None).collect();
    for sequence in sequences {
        for (at, &block) in sequence.blocks.iter().enumerate() {
            let used = (sequence.len - at * ROWS).min(ROWS);
            let marks = sequence.name.to_string().repeat(used);
            pictures[block] = Some(marks + &".".repeat(ROWS - used));
        }
    }
    for (block, picture) in pictures.iter().enumerate() {
        if let Some(picture) = picture {
            println!("  block {block:2}  {picture}");
        }
    }
}

/// Returns the shortest of several times, in microseconds.
fn time(mut step: impl FnMut()) -> f64 {
    let mut once = || {
        let start = Instant::now();
        step();
        start.elapsed().as_secs_f64() * 1e6
    };
    (0..50).map(|_| once()).fold(f64::INFINITY, f64::min)
}

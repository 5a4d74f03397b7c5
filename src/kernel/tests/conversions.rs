//! Tests of conversions.

use super::super::InstructionSet;
use super::super::{ConvertRun, convert_fn};
use crate::conversion::{Format, Rounding, Scaling};
use crate::element::DType;

/// Prints the rate of each conversion, from the L2 cache.
#[test]
#[ignore = "measures"]
fn speed() {
    const LEN: usize = 1 << 16;
    let mut bits = super::Bits(3);
    let floats: Vec<f32> = (0..LEN)
        .map(|_| (bits.next() % 100_000) as f32 * 0.005 - 250.0)
        .collect();
    let halves: Vec<u16> = floats.iter().map(|f| (f.to_bits() >> 16) as u16).collect();
    let f16: Vec<u16> = (0..LEN)
        .map(|_| (bits.next() % 0x5000) as u16 + 0x800)
        .collect();
    let scales = vec![1.5_f32; LEN];
    let mut dst = vec![0_u32; LEN];
    let only = std::env::var("ONLY").unwrap_or_default();
    for from in [DType::F32, DType::BF16, DType::F16] {
        for to in Format::ALL {
            for rounding in Rounding::ALL {
                let name = format!("{from} {to} {rounding}");
                if !name.contains(&only) {
                    continue;
                }
                print!("{name:32}");
                for &isa in InstructionSet::available() {
                    print!(" | {isa}:");
                    for (scale, step, scaling) in [
                        (std::ptr::null(), 0, Scaling::Divide),
                        (scales.as_ptr(), 0, Scaling::Divide),
                        (scales.as_ptr(), 0, Scaling::Reciprocal),
                        (scales.as_ptr(), 1, Scaling::Divide),
                    ] {
                        let packed = if to.is_packed() { 2 } else { 1 };
                        let run = ConvertRun {
                            len: LEN / packed,
                            dst_step: 1,
                            src_step: packed as isize,
                            src_pair: 1,
                            scale,
                            scale_step: step,
                            scale_pair: 0,
                            zero: std::ptr::null(),
                            zero_step: 0,
                            zero_pair: 0,
                        };
                        let src = match from {
                            DType::F32 => floats.as_ptr().cast(),
                            DType::F16 => f16.as_ptr().cast(),
                            _ => halves.as_ptr().cast::<u8>(),
                        };
                        let function =
                            convert_fn(from, to, rounding, scaling, isa).expect("a float");
                        let mut best = f64::MAX;
                        for _ in 0..12 {
                            let start = std::time::Instant::now();
                            for _ in 0..8 {
                                unsafe { function(dst.as_mut_ptr().cast(), src, &run) };
                            }
                            best = best.min(start.elapsed().as_secs_f64() / 8.0);
                        }
                        print!(" {:5.2}", LEN as f64 / best * 1e-9);
                    }
                }
                println!();
            }
        }
    }
}

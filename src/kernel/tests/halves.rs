//! Tests of the conversions of 16-bit floats: `f32` from every 16-bit value, and 16-bit values from
//! the `f32` values that are critical for rounding.

use super::super::half::Bf16;
use super::super::half::F16;
use super::super::half::Half;
use super::reference::BFLOAT16;
use super::reference::FLOAT16;
use super::reference::Format;

/// Returns the `f32` values that are critical for rounding: every value of the 16-bit format, and
/// the midpoint between each value and the next value of the format. For each of these numbers, the
/// two `f32` neighbours are returned too. All numbers are returned with both signs.
fn corners(format: Format) -> impl Iterator<Item = f32> {
    (0..0x7fff_u16).flat_map(move |bits| {
        #[expect(
            clippy::cast_possible_truncation,
            reason = "every value of a 16-bit format is an `f32`"
        )]
        let [value, next] = [bits, bits + 1].map(|bits| format.value(bits) as f32);
        let middle = f32::midpoint(value, next);
        [value, middle]
            .into_iter()
            .flat_map(|x| [x, x.next_up(), x.next_down()])
            .flat_map(|x| [x, -x])
    })
}

/// Returns `f32` values of every sign and every exponent, including NaN.
fn spread() -> impl Iterator<Item = f32> {
    let step = 0x0000_3fff;
    (0..u32::MAX / step).map(move |i| f32::from_bits(i * step))
}

fn check_widening(format: Format, widen: fn(u16) -> f32) {
    for bits in 0..=u16::MAX {
        let (ours, expected) = (widen(bits), format.value(bits));
        let same = f64::from(ours).to_bits() == expected.to_bits();
        assert!(same || (ours.is_nan() && expected.is_nan()), "{bits:#06x}");
    }
}

fn check_narrowing(format: Format, narrow: fn(f32) -> u16) {
    for value in corners(format).chain(spread()) {
        let (ours, expected) = (narrow(value), format.nearest(value));
        let same = ours == expected || (format.is_nan(ours) && value.is_nan());
        assert!(same, "{value:e} became {ours:#06x}, not {expected:#06x}");
    }
}

#[test]
fn f16_widens_exactly() {
    check_widening(FLOAT16, |bits| F16(bits).widen());
}

#[test]
fn bf16_widens_exactly() {
    check_widening(BFLOAT16, |bits| Bf16(bits).widen());
}

#[test]
fn f16_narrows_to_nearest_even() {
    check_narrowing(FLOAT16, |value| F16::narrow(value).bits());
}

#[test]
fn bf16_narrows_to_nearest_even() {
    check_narrowing(BFLOAT16, |value| Bf16::narrow(value).bits());
}

#[test]
fn nan_with_any_payload_stays_nan() {
    // NaNs of both signs. The first two NaNs have only their lowest payload bit set, which
    // narrowing drops. The last two NaNs have all payload bits set.
    for bits in [0x7f80_0001, 0xff80_0001, 0x7fff_ffff, 0xffff_ffff] {
        let nan = f32::from_bits(bits);
        assert!(FLOAT16.is_nan(F16::narrow(nan).bits()), "{bits:#010x}");
        assert!(BFLOAT16.is_nan(Bf16::narrow(nan).bits()), "{bits:#010x}");
    }
}

/// Compares the conversions with those of the `half` crate. Callers use the types of the `half`
/// crate.
#[cfg(feature = "half")]
#[test]
fn the_half_crate_agrees() {
    for bits in 0..=u16::MAX {
        let theirs = [
            half::f16::from_bits(bits).to_f32(),
            half::bf16::from_bits(bits).to_f32(),
        ];
        let ours = [F16(bits).widen(), Bf16(bits).widen()];
        for (ours, theirs) in ours.into_iter().zip(theirs) {
            let same = ours.to_bits() == theirs.to_bits();
            assert!(same || (ours.is_nan() && theirs.is_nan()), "{bits:#06x}");
        }
    }
    for value in corners(FLOAT16).chain(corners(BFLOAT16)).chain(spread()) {
        if value.is_nan() {
            continue;
        }
        let (f16, bf16) = (F16::narrow(value).bits(), Bf16::narrow(value).bits());
        assert_eq!(f16, half::f16::from_f32(value).to_bits(), "{value:e}");
        assert_eq!(bf16, half::bf16::from_f32(value).to_bits(), "{value:e}");
    }
}

/// Compares arithmetic on `f16` values with conversions by machine instructions (F16C) and with the
/// portable conversions. Every `f16` value is combined with each of five constants: by addition,
/// subtraction and multiplication. The results of these operations are rounded to `f16`.
#[cfg(target_arch = "x86_64")]
#[test]
fn the_machine_agrees() {
    use super::super::InstructionSet;
    use super::super::avx2::F16c;
    use super::super::reduce::Arithmetic;

    if InstructionSet::best() < InstructionSet::Avx2 {
        return;
    }
    let same = |ours: F16, theirs: F16c| {
        let (ours, theirs) = (ours.bits(), theirs.0.bits());
        ours == theirs || (FLOAT16.is_nan(ours) && FLOAT16.is_nan(theirs))
    };
    // The five constants: -0, a subnormal, a value just below 1, about one third, and a large
    // value.
    for other in [0x8000, 0x0003, 0x3bff, 0x3555, 0x7b01] {
        for bits in 0..=u16::MAX {
            let ([a, b], [c, d]) = ([F16(bits), F16(other)], [F16(bits), F16(other)].map(F16c));
            assert!(same(a.add(b), c.add(d)), "{bits:#06x} + {other:#06x}");
            assert!(same(a.sub(b), c.sub(d)), "{bits:#06x} - {other:#06x}");
            assert!(same(a.mul(b), c.mul(d)), "{bits:#06x} * {other:#06x}");
        }
    }
}

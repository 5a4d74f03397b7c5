//! The kernel table: the loop for each element type, reduction and instruction set.
//!
//! This module knows the names of the loops, and the best instruction set of this machine. It does
//! not know how the loops work.

#[cfg(target_arch = "x86_64")]
use super::avx2::Four;
#[cfg(all(target_arch = "x86_64", feature = "float16"))]
use super::avx2::{EightF16, F16c};
#[cfg(all(target_arch = "x86_64", feature = "complex"))]
use super::avx2::{FourComplex, TwoComplex};
use super::dispatch::compiled;
use super::fold::{Begin, ByCount, ComputedIn, Kept};
#[cfg(feature = "float16")]
use super::half::{Bf16, F16};
use super::reduce::{Add, By, Loop, Max, Min, Mul, Plain, Reducer, Sub};
use super::scalar::Bool;
#[cfg(feature = "complex")]
use super::scalar::Complex;
use super::{CheckedGather, Elements, GroupFn, InstructionSet, Kernels, Operation, RunsFn};
use super::{copy, elements, groups, rows, runs};
use crate::element::DType;
use crate::reduction::{Accumulate, Reducing, Reduction};
use wide::{f32x8, f64x4, i32x8, i64x4, u32x8, u64x4};
#[cfg(feature = "narrow-integers")]
use wide::{i8x32, i16x16, u8x32, u16x16};

/// Table of reductions. A row lists element types, reductions, and two pairs. A pair is a storage
/// type and a loop. [`InstructionSet::Portable`] uses the first pair. [`InstructionSet::Avx2`] and
/// [`InstructionSet::Avx512`] use the second pair. The function for groups uses the storage type of
/// the first pair with every instruction set.
macro_rules! reduction_table {
    (
        $name:ident:
        $($elements:pat, $($reduction:ident)+ => $portable:ty, $by:ty; $avx2:ty, $avx2_by:ty;)*
    ) => {
        /// Returns the kernels of `isa` for a reduction. `None`: the table has no row for the
        /// element type and the reduction. The machine must have `isa`.
        #[inline]
        fn $name(
            element: DType,
            reduction: Reduction,
            isa: InstructionSet,
        ) -> Option<&'static Kernels> {
            match (element, reduction) {
                $($(($elements, Reduction::$reduction) => Some(match isa {
                    #[cfg(target_arch = "x86_64")]
                    InstructionSet::Avx2 | InstructionSet::Avx512 => &const {
                        reducing::<$portable, $avx2, $avx2_by, $reduction>(InstructionSet::Avx2)
                    },
                    _ => &const {
                        reducing::<$portable, $portable, $by, $reduction>(InstructionSet::Portable)
                    },
                }),)+)*
                _ => None,
            }
        }
    };
}

// No loop of the table is compiled for AVX-512. On Zen 4, AVX-512 makes some rows faster and others
// slower than AVX2. With AVX-512, products of 64-bit integers take 0.54 times as long as with AVX2,
// and products of bytes 0.80 times. Minima of 64-bit integers take 1.13 to 1.33 times as long, and
// sums of complex numbers 1.08 to 1.13 times. The figures of all rows are in
// `docs/notes/2026-11-21-kernels.md`.
reduction_table! { reduces_reals:
    DType::I32 | DType::U32, Add Sub Mul => u32, By<u32x8>; u32, Plain;
    DType::I64 | DType::U64, Add Sub Mul => u64, By<u64x4>; u64, Plain;
    DType::I32, Min Max => i32, By<i32x8>; i32, Plain;
    DType::I64, Min Max => i64, By<i64x4>; i64, By<Four<i64>>;
    DType::U32, Min Max => u32, By<u32x8>; u32, Plain;
    DType::U64, Min Max => u64, By<u64x4>; u64, By<Four<u64>>;
    DType::F32, Add Sub Mul => f32, By<f32x8>; f32, Plain;
    DType::F32, Min Max => f32, Plain; f32, Plain;
    DType::F64, Add Sub Mul => f64, By<f64x4>; f64, Plain;
    DType::F64, Min Max => f64, Plain; f64, Plain;
    DType::Bool, Add Sub Mul => Bool, Plain; Bool, Plain;
}

#[cfg(feature = "narrow-integers")]
reduction_table! { reduces_narrow_integers:
    DType::I8 | DType::U8, Add Sub Mul => u8, By<u8x32>; u8, Plain;
    DType::I16 | DType::U16, Add Sub Mul => u16, By<u16x16>; u16, Plain;
    DType::I8, Min Max => i8, By<i8x32>; i8, Plain;
    DType::I16, Min Max => i16, By<i16x16>; i16, Plain;
    DType::U8, Min Max => u8, By<u8x32>; u8, Plain;
    DType::U16, Min Max => u16, By<u16x16>; u16, Plain;
}

#[cfg(feature = "float16")]
reduction_table! { reduces_halves:
    DType::F16, Add Sub Mul => F16, Plain; F16c, By<EightF16>;
    DType::F16, Min Max => F16, Plain; F16, Plain;
    DType::BF16, Add Sub Mul Min Max => Bf16, Plain; Bf16, Plain;
}

#[cfg(feature = "complex")]
reduction_table! { reduces_complex:
    DType::Complex64, Add Sub => Complex<f32>, Plain; Complex<f32>, Plain;
    DType::Complex64, Mul => Complex<f32>, Plain; Complex<f32>, By<FourComplex>;
    DType::Complex128, Add Sub => Complex<f64>, Plain; Complex<f64>, Plain;
    DType::Complex128, Mul => Complex<f64>, Plain; Complex<f64>, By<TwoComplex>;
}

/// Returns the reduction of booleans that has a row in the table and the results of `reduction`. A
/// sum and a maximum are OR. A product and a minimum are AND.
fn of_booleans(reduction: Reduction) -> Reduction {
    match reduction {
        Reduction::Min => Reduction::Mul,
        Reduction::Max => Reduction::Add,
        other => other,
    }
}

/// Evaluates an expression in which a type name stands for the storage type of `$element`. The
/// first word (for example `half`) names a list of element types. `None`: the element type is not
/// in this list.
macro_rules! for_type {
    (half $($rest:tt)*) => {
        for_type!(@ $($rest)*;
            #[cfg(feature = "float16")] F16 = F16,
            #[cfg(feature = "float16")] BF16 = Bf16)
    };
    (float $($rest:tt)*) => {
        for_type!(@ $($rest)*; F32 = f32, F64 = f64,
            #[cfg(feature = "float16")] F16 = F16,
            #[cfg(feature = "float16")] BF16 = Bf16)
    };
    (graded $($rest:tt)*) => {
        for_type!(@ $($rest)*; F32 = f32, F64 = f64,
            #[cfg(feature = "float16")] F16 = F16,
            #[cfg(feature = "float16")] BF16 = Bf16,
            #[cfg(feature = "complex")] Complex64 = Complex<f32>,
            #[cfg(feature = "complex")] Complex128 = Complex<f64>)
    };
    (divided $($rest:tt)*) => {
        for_type!(@ $($rest)*; F32 = f32, F64 = f64, I32 = i32, I64 = i64, U32 = u32, U64 = u64,
            #[cfg(feature = "float16")] F16 = F16,
            #[cfg(feature = "float16")] BF16 = Bf16,
            #[cfg(feature = "complex")] Complex64 = Complex<f32>,
            #[cfg(feature = "complex")] Complex128 = Complex<f64>,
            #[cfg(feature = "narrow-integers")] I8 = i8,
            #[cfg(feature = "narrow-integers")] I16 = i16,
            #[cfg(feature = "narrow-integers")] U8 = u8,
            #[cfg(feature = "narrow-integers")] U16 = u16)
    };
    (
        @ $element:expr, $type:ident => $result:expr;
        $($(#[$condition:meta])* $dtype:ident = $stored:ty),*
    ) => {
        match $element {
            $($(#[$condition])* DType::$dtype => {
                type $type = $stored;
                Some($result)
            })*
            _ => None,
        }
    };
}

#[cfg(feature = "gradients")]
mod gradient;

/// Returns the function that reduces groups of 16-bit floats in `f32`. `None`: the elements are not
/// 16-bit floats, or the reduction does not compute. A minimum or a maximum does not compute: its
/// result is one of the operands, so `f32` does not change the result.
#[cfg_attr(
    not(feature = "float16"),
    expect(unused_variables, reason = "only 16-bit floats use them")
)]
fn groups_in_f32(element: DType, reduction: Reduction, isa: InstructionSet) -> Option<GroupFn> {
    for_type!(half element, T => match reduction {
        Reduction::Add => compiled::<groups::Fold<T, f32, Add, Kept>>(isa),
        Reduction::Sub => compiled::<groups::Fold<T, f32, Sub, Kept>>(isa),
        Reduction::Mul => compiled::<groups::Fold<T, f32, Mul, Kept>>(isa),
        Reduction::Mean => compiled::<groups::Fold<T, f32, Add, ByCount>>(isa),
        _ => return None,
    })
}

impl Operation {
    /// Checks whether the cost model uses the rates of heavy reductions: reductions of 16-bit
    /// floats, and products of 8-bit or 64-bit integers. Each vector needs several instructions.
    pub(crate) fn is_heavy(&self) -> bool {
        matches!(
            self.row,
            Some(
                (DType::F16 | DType::BF16, ..)
                    | (
                        DType::I8 | DType::U8 | DType::I64 | DType::U64,
                        Reduction::Mul,
                        _
                    )
            )
        )
    }

    /// Returns the operation of `reducing` on elements that are plain bytes (not cloned). `None`:
    /// the element type does not have this reduction. If the machine does not have `isa`, the
    /// operation uses the best instruction set of the machine.
    pub(crate) fn plain(element: DType, reducing: Reducing, isa: InstructionSet) -> Option<Self> {
        let isa = isa.min(InstructionSet::best());
        let reduction = reducing.reduction;
        // The kernel table has no row for a mean. A mean uses the row of the sum, and its own
        // function for groups.
        let kernels = match reduction {
            Reduction::Mean => Kernels::plain(element, Reduction::Add, isa)?,
            other => Kernels::plain(element, other, isa)?,
        };
        if reduction == Reduction::None {
            return Some(Self::moving(kernels));
        }
        let in_f32 = match reducing.accumulate {
            Accumulate::Native => None,
            Accumulate::Wide => groups_in_f32(element, reduction, isa),
        };
        let native = match reduction {
            // `T, T`: the running sum of the mean has the element type.
            Reduction::Mean => {
                for_type!(divided element, T => compiled::<groups::Fold<T, T, Add, ByCount>>(isa))
            }
            _ => kernels.group,
        };
        Some(Self {
            group: Some(in_f32.or(native)?),
            needs_groups: reduction == Reduction::Mean
                || in_f32.is_some()
                || !reducing.include_self,
            include_self: reducing.include_self,
            row: Some((element, reduction, isa)),
            ..Self::moving(kernels)
        })
    }
}

/// Returns the kernels of the reduction `R`. The function for groups uses the storage type `G`. All
/// other kernels use the storage type `T`.
const fn reducing<G, T, L, R>(isa: InstructionSet) -> Kernels
where
    G: ComputedIn<G> + Default,
    T: Copy,
    L: Loop<T, R>,
    R: Begin<G> + Reducer<T>,
{
    Kernels {
        replaces: false,
        apply: compiled::<runs::Reduce<T, L, R>>(isa),
        apply_rows: Some(compiled::<rows::Reduce<T, L, R>>(isa)),
        apply_elements: Some(Elements {
            u32: compiled::<elements::Reduce<u32, T, R>>(isa),
            u64: compiled::<elements::Reduce<u64, T, R>>(isa),
        }),
        group: Some(compiled::<groups::Fold<G, G, R, Kept>>(isa)),
        ..moving(isa)[row_of_moves(size_of::<T>())]
    }
}

/// Returns five sets of kernels that only move elements: for elements of 1, 2, 4, 8 and 16 bytes.
const fn moving(isa: InstructionSet) -> [Kernels; 5] {
    [
        moves::<1>(isa),
        moves::<2>(isa),
        moves::<4>(isa),
        moves::<8>(isa),
        moves::<16>(isa),
    ]
}

/// Returns the position, in the result of [`moving`], of the kernels for elements of `size` bytes.
const fn row_of_moves(size: usize) -> usize {
    size.trailing_zeros() as usize
}

/// Returns the kernels that only move elements of `W` bytes.
#[cfg_attr(
    not(target_arch = "x86_64"),
    expect(unused_variables, reason = "only streaming copies use it")
)]
const fn moves<const W: usize>(isa: InstructionSet) -> Kernels {
    let elements = Elements {
        u32: elements::copy::<u32, W>,
        u64: elements::copy::<u64, W>,
    };
    Kernels {
        #[cfg(target_arch = "x86_64")]
        stream: Some(super::Streams {
            plain: compiled::<super::stream::Stream<W, false>>(isa),
            prefetching: compiled::<super::stream::Stream<W, true>>(isa),
        }),
        copy_elements: Some(elements),
        apply_rows: Some(rows::copy::<W>),
        gather_rows: Some(rows::gather::<W>),
        gather_checked: Some(CheckedGather {
            u32: elements::gather_checked::<u32, W>,
            u64: elements::gather_checked::<u64, W>,
        }),
        apply_elements: Some(elements),
        ..Kernels::one_by_one(W, copy::copy::<W>)
    }
}

/// Results of [`moving`] for the portable instruction set and for AVX2. AVX-512 uses those of AVX2.
static MOVES: [[Kernels; 5]; 2] = [
    moving(InstructionSet::Portable),
    moving(InstructionSet::Avx2),
];

impl Kernels {
    /// Returns the kernels of an element type and a reduction. `None`: the element type does not
    /// have this reduction. If the machine does not have `isa`, the kernels are those of the best
    /// instruction set of the machine.
    #[inline]
    pub(crate) fn plain(
        element: DType,
        reduction: Reduction,
        isa: InstructionSet,
    ) -> Option<&'static Self> {
        let isa = isa.min(InstructionSet::best());
        if reduction != Reduction::None {
            return match element {
                #[cfg(feature = "complex")]
                DType::Complex64 | DType::Complex128 => reduces_complex(element, reduction, isa),
                #[cfg(feature = "float16")]
                DType::F16 | DType::BF16 => reduces_halves(element, reduction, isa),
                #[cfg(feature = "narrow-integers")]
                DType::I8 | DType::I16 | DType::U8 | DType::U16 => {
                    reduces_narrow_integers(element, reduction, isa)
                }
                DType::Bool => reduces_reals(element, of_booleans(reduction), isa),
                _ => reduces_reals(element, reduction, isa),
            };
        }
        MOVES[isa.min(InstructionSet::Avx2) as usize].get(row_of_moves(element.size()))
    }

    /// Returns the kernels that replace elements by clones, one by one.
    pub(crate) fn cloned<T: Clone>() -> &'static Self {
        &const { Self::one_by_one(size_of::<T>(), runs::assign_clones::<T>) }
    }

    /// Returns the kernels that clone elements into uninitialised memory, one by one. These kernels
    /// do not drop the old contents of the memory.
    pub(crate) fn cloned_into_uninit<T: Clone>() -> &'static Self {
        &const { Self::one_by_one(size_of::<T>(), runs::write_clones::<T>) }
    }

    /// Returns kernels for elements of `size` bytes whose only function is `copy`.
    const fn one_by_one(size: usize, copy: RunsFn) -> Self {
        Self {
            size,
            replaces: true,
            copy,
            stream: None,
            copy_elements: None,
            apply: copy,
            apply_rows: None,
            gather_rows: None,
            gather_checked: None,
            apply_elements: None,
            group: None,
        }
    }
}

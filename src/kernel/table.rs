//! The kernel table: which loop serves which element type, reduction and
//! instruction set.
//!
//! Knows the names of all of them, and what this machine has. Knows nothing
//! of how the loops work.

use super::CheckedGather;
use super::Elements;
use super::GradientFn;
use super::GroupFn;
use super::InstructionSet;
use super::Kernels;
use super::MultiplyFn;
use super::MultiplyingFn;
use super::Operation;
use super::RowsFn;
use super::RunsFn;
use super::Streams;
#[cfg(target_arch = "x86_64")]
use super::avx2::{EightF16, F16c, Four, FourComplex, TwoComplex};
use super::copy;
use super::elements;
use super::fold::{Fold, GradientInF32, InF32, Mean, MeanInF32, Native};
use super::gradient::{self, Alike, Graded, Product, Sharing, Ties};
use super::groups;
use super::half::Bf16;
use super::half::F16;
use super::multiply::{copy_multiplied, multiply};
use super::reduce::Add;
use super::reduce::By;
use super::reduce::Loop;
use super::reduce::Max;
use super::reduce::Min;
use super::reduce::Mul;
use super::reduce::Plain;
use super::reduce::Reducer;
use super::reduce::Sub;
use super::rows;
use super::runs;
use super::scalar::Bool;
use super::scalar::Complex;
#[cfg(target_arch = "x86_64")]
use super::stream;
use crate::element::DType;
use crate::reduction::{Accumulate, Reducing, Reduction};
use wide::{f32x8, f64x4};
use wide::{i8x32, i16x16, i32x8, i64x4};
use wide::{u8x32, u16x16, u32x8, u64x4};

/// The functions of a reduction.
type Combine = (RunsFn, RowsFn, Elements);

/// Lists, for element types and reductions, the storage type and the loop
/// that serve them: first those of [`InstructionSet::Portable`], then those of
/// [`InstructionSet::Avx2`].
macro_rules! combine_table {
    ($($elements:pat, $($reduction:ident)+ => $portable:ty, $by:ty; $avx2:ty, $avx2_by:ty;)*) => {
        /// The loops that `isa` has for a reduction of elements; `None` where
        /// the elements have no such reduction. The machine must have `isa`.
        #[inline]
        fn combine(
            element: DType,
            reduction: Reduction,
            isa: InstructionSet,
        ) -> Option<&'static Kernels> {
            match (element, reduction) {
                $($(($elements, Reduction::$reduction) => Some(match isa {
                    InstructionSet::Portable => {
                        &const { combines::<$portable>(InstructionSet::Portable, portable::<$portable, $by, $reduction>()) }
                    }
                    #[cfg(target_arch = "x86_64")]
                    InstructionSet::Avx2 => {
                        &const { combines::<$avx2>(InstructionSet::Avx2, avx2::<$avx2, $avx2_by, $reduction>()) }
                    }
                    #[cfg(not(target_arch = "x86_64"))]
                    InstructionSet::Avx2 => {
                        &const { combines::<$portable>(InstructionSet::Portable, portable::<$portable, $by, $reduction>()) }
                    }
                }),)+)*
                _ => None,
            }
        }
    };
}

// AVX-512 was tried twice and left out: on Zen 4 it gains a tenth to a half on 16-bit
// floats and on products of bytes and 64-bit integers, loses as much on minima of
// 64-bit integers and sums of complex numbers, and changes nothing else.
combine_table! {
    DType::I8 | DType::U8, Add Sub Mul => u8, By<u8x32>; u8, Plain;
    DType::I16 | DType::U16, Add Sub Mul => u16, By<u16x16>; u16, Plain;
    DType::I32 | DType::U32, Add Sub Mul => u32, By<u32x8>; u32, Plain;
    DType::I64 | DType::U64, Add Sub Mul => u64, By<u64x4>; u64, Plain;
    DType::I8, Min Max => i8, By<i8x32>; i8, Plain;
    DType::I16, Min Max => i16, By<i16x16>; i16, Plain;
    DType::I32, Min Max => i32, By<i32x8>; i32, Plain;
    DType::I64, Min Max => i64, By<i64x4>; i64, By<Four<i64>>;
    DType::U8, Min Max => u8, By<u8x32>; u8, Plain;
    DType::U16, Min Max => u16, By<u16x16>; u16, Plain;
    DType::U32, Min Max => u32, By<u32x8>; u32, Plain;
    DType::U64, Min Max => u64, By<u64x4>; u64, By<Four<u64>>;
    DType::F16, Add Sub Mul => F16, Plain; F16c, By<EightF16>;
    DType::F16, Min Max => F16, Plain; F16, Plain;
    DType::BF16, Add Sub Mul Min Max => Bf16, Plain; Bf16, Plain;
    DType::F32, Add Sub Mul => f32, By<f32x8>; f32, Plain;
    DType::F32, Min Max => f32, Plain; f32, Plain;
    DType::F64, Add Sub Mul => f64, By<f64x4>; f64, Plain;
    DType::F64, Min Max => f64, Plain; f64, Plain;
    DType::Bool, Add Sub Mul Min Max => Bool, Plain; Bool, Plain;
    DType::Complex64, Add Sub => Complex<f32>, Plain; Complex<f32>, Plain;
    DType::Complex64, Mul => Complex<f32>, Plain; Complex<f32>, By<FourComplex>;
    DType::Complex128, Add Sub => Complex<f64>, Plain; Complex<f64>, Plain;
    DType::Complex128, Mul => Complex<f64>, Plain; Complex<f64>, By<TwoComplex>;
}

/// Lists, for element types and reductions, the storage type and the fold
/// that serve groups, for one way to accumulate.
macro_rules! group_table {
    ($name:ident: $($elements:pat, $($reduction:ident)+ => $type:ty, $fold:ident;)*) => {
        fn $name(
            element: DType,
            reduction: Reduction,
            isa: InstructionSet,
        ) -> Option<GroupFn> {
            match (element, reduction) {
                $($(($elements, Reduction::$reduction) => {
                    Some(group_table!(@fold isa, $type, $fold, $reduction))
                })+)*
                _ => None,
            }
        }
    };
    (@fold $isa:ident, $type:ty, Native, $reduction:ident) => {
        groups_of::<$type, Native<$reduction>>($isa)
    };
    (@fold $isa:ident, $type:ty, InF32, Mean) => {
        groups_of::<$type, MeanInF32>($isa)
    };
    (@fold $isa:ident, $type:ty, InF32, $reduction:ident) => {
        groups_of::<$type, InF32<$reduction>>($isa)
    };
    (@fold $isa:ident, $type:ty, Mean, Mean) => {
        groups_of::<$type, Mean>($isa)
    };
}

group_table! { native_groups:
    DType::I8 | DType::U8, Add Sub Mul => u8, Native;
    DType::I16 | DType::U16, Add Sub Mul => u16, Native;
    DType::I32 | DType::U32, Add Sub Mul => u32, Native;
    DType::I64 | DType::U64, Add Sub Mul => u64, Native;
    DType::I8, Min Max => i8, Native;
    DType::I16, Min Max => i16, Native;
    DType::I32, Min Max => i32, Native;
    DType::I64, Min Max => i64, Native;
    DType::U8, Min Max => u8, Native;
    DType::U16, Min Max => u16, Native;
    DType::U32, Min Max => u32, Native;
    DType::U64, Min Max => u64, Native;
    DType::F16, Add Sub Mul Min Max => F16, Native;
    DType::BF16, Add Sub Mul Min Max => Bf16, Native;
    DType::F32, Add Sub Mul Min Max => f32, Native;
    DType::F64, Add Sub Mul Min Max => f64, Native;
    DType::Bool, Add Sub Mul Min Max => Bool, Native;
    DType::Complex64, Add Sub Mul => Complex<f32>, Native;
    DType::Complex128, Add Sub Mul => Complex<f64>, Native;
    DType::I8, Mean => i8, Mean;
    DType::I16, Mean => i16, Mean;
    DType::I32, Mean => i32, Mean;
    DType::I64, Mean => i64, Mean;
    DType::U8, Mean => u8, Mean;
    DType::U16, Mean => u16, Mean;
    DType::U32, Mean => u32, Mean;
    DType::U64, Mean => u64, Mean;
    DType::F16, Mean => F16, Mean;
    DType::BF16, Mean => Bf16, Mean;
    DType::F32, Mean => f32, Mean;
    DType::F64, Mean => f64, Mean;
    DType::Complex64, Mean => Complex<f32>, Mean;
    DType::Complex128, Mean => Complex<f64>, Mean;
}

// The smaller and the larger one are operands: no wider type changes them.
group_table! { f32_groups:
    DType::F16, Add Sub Mul Mean => F16, InF32;
    DType::BF16, Add Sub Mul Mean => Bf16, InF32;
}

fn groups_of<T: Copy, F: Fold<T>>(isa: InstructionSet) -> GroupFn {
    match isa {
        InstructionSet::Portable => groups::fold::<T, F>,
        #[cfg(target_arch = "x86_64")]
        InstructionSet::Avx2 => groups::fold_avx2::<T, F>,
        #[cfg(not(target_arch = "x86_64"))]
        InstructionSet::Avx2 => groups::fold::<T, F>,
    }
}

impl Operation {
    /// Whether machines do by several instructions what a reduction of these elements
    /// does.
    pub(crate) fn is_heavy(&self) -> bool {
        matches!(
            self.serves,
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

    /// What serves plain elements; `None` where they do not have the
    /// reduction. Of `isa` and what this machine has, the lesser is used.
    pub(crate) fn plain(element: DType, reducing: Reducing, isa: InstructionSet) -> Option<Self> {
        let isa = isa.min(InstructionSet::best());
        let reduction = reducing.reduction;
        if reduction == Reduction::None {
            return Some(Self::moving(Kernels::plain(element, reduction, isa)?));
        }
        let in_f32 = match reducing.accumulate {
            Accumulate::Native => None,
            Accumulate::Wide => f32_groups(element, reduction, isa),
        };
        let native = native_groups(element, reduction, isa);
        // A sum shares the size and the copies of its mean.
        let kernels = match reduction {
            Reduction::Mean => Kernels::plain(element, Reduction::Add, isa),
            other => Kernels::plain(element, other, isa),
        };
        Some(Self {
            kernels: kernels?,
            group: Some(in_f32.or(native)?),
            needs_groups: reduction == Reduction::Mean
                || in_f32.is_some()
                || !reducing.include_self,
            include_self: reducing.include_self,
            factor: 1.0,
            multiply: None,
            multiplying: None,
            serves: Some((element, reduction, isa)),
        })
    }
}

impl Operation {
    /// Sums of gradients, from zero, multiplied by a factor: of 16-bit floats as their
    /// groups end, before they are rounded, of others in the output once it holds the
    /// sums. `None` for elements that have no gradients.
    pub(crate) fn gradient(element: DType, factor: f64, isa: InstructionSet) -> Option<Self> {
        let isa = isa.min(InstructionSet::best());
        let (multiply, _) = multiplies(element)?;
        let group = match element {
            DType::F16 => Some(groups_of::<F16, GradientInF32>(isa)),
            DType::BF16 => Some(groups_of::<Bf16, GradientInF32>(isa)),
            _ => None,
        };
        let reducing = Reducing {
            reduction: Reduction::Add,
            ..Reducing::default()
        };
        let sum = Self::plain(element, reducing, isa)?;
        Some(Self {
            group: group.or(sum.group),
            needs_groups: group.is_some(),
            factor,
            multiply: (group.is_none() && factor != 1.0).then_some(multiply),
            ..sum
        })
    }
}

/// Lists, for element types, the functions of their gradients.
macro_rules! gradient_table {
    ($($element:pat => $type:ty $(, $ties:ident)?;)*) => {
        /// The functions that multiply gradients, where they lie and on their way.
        fn multiplies(element: DType) -> Option<(MultiplyFn, MultiplyingFn)> {
            match element {
                $($element => Some((multiply::<$type>, copy_multiplied::<$type>)),)*
                _ => None,
            }
        }

        impl Kernels {
            /// What shares out the gradients of groups; `None` where there is no such
            /// gradient.
            pub(crate) fn gradient(
                element: DType,
                reduction: Reduction,
                isa: InstructionSet,
            ) -> Option<GradientFn> {
                let isa = isa.min(InstructionSet::best());
                match (element, reduction) {
                    $(($element, Reduction::Mul) => Some(gradient::each_group::<$type, Product>),
                    $(($element, Reduction::Min | Reduction::Max) => {
                        Some($ties::<$type>(isa))
                    })?
                    ($element, Reduction::None | Reduction::Add | Reduction::Sub | Reduction::Mean) => {
                        Some(gradient::each_group::<$type, Alike>)
                    })*
                    _ => None,
                }
            }
        }
    };
}

gradient_table! {
    DType::F16 => F16, ties_of;
    DType::BF16 => Bf16, ties_of;
    DType::F32 => f32, ties_of;
    DType::F64 => f64, ties_of;
    DType::Complex64 => Complex<f32>;
    DType::Complex128 => Complex<f64>;
}

/// Ties alone have loops for AVX2: others read each update and calculate little.
fn ties_of<T: Graded>(isa: InstructionSet) -> GradientFn
where
    Ties: Sharing<T>,
{
    match isa {
        InstructionSet::Portable => gradient::each_group::<T, Ties>,
        #[cfg(target_arch = "x86_64")]
        InstructionSet::Avx2 => gradient::each_group_avx2::<T, Ties>,
        #[cfg(not(target_arch = "x86_64"))]
        InstructionSet::Avx2 => gradient::each_group::<T, Ties>,
    }
}

impl Operation {
    /// Gradients that are moved, multiplied by a factor on their way: those that are
    /// copied as data of a scatter, or that a gather reads. `None` for elements that have
    /// none.
    pub(crate) fn gradients(element: DType, factor: f64, isa: InstructionSet) -> Option<Self> {
        let moving = Self::moving(Kernels::plain(element, Reduction::None, isa)?);
        let (_, multiplying) = multiplies(element)?;
        Some(Self {
            factor,
            multiplying: (factor != 1.0).then_some(multiplying),
            ..moving
        })
    }

    /// Gradients that are shared out group by group, by a kernel of their own.
    pub(crate) fn gradients_of_groups(element: DType, isa: InstructionSet) -> Option<Self> {
        let moving = Self::moving(Kernels::plain(element, Reduction::None, isa)?);
        Some(Self {
            needs_groups: true,
            ..moving
        })
    }

    /// Gradients that are multiplied by a factor where they lie.
    pub(crate) fn multiplied(element: DType, factor: f64, isa: InstructionSet) -> Option<Self> {
        let moving = Self::moving(Kernels::plain(element, Reduction::None, isa)?);
        let (multiply, _) = multiplies(element)?;
        Some(Self {
            factor,
            multiply: (factor != 1.0).then_some(multiply),
            ..moving
        })
    }
}

const fn portable<T: Copy, L: Loop<T, R>, R: Reducer<T>>() -> Combine {
    let elements = Elements {
        u32: elements::reduce::<u32, T, R>,
        u64: elements::reduce::<u64, T, R>,
    };
    (runs::reduce::<T, L, R>, rows::reduce::<T, L, R>, elements)
}

#[cfg(target_arch = "x86_64")]
const fn avx2<T: Copy, L: Loop<T, R>, R: Reducer<T>>() -> Combine {
    let elements = Elements {
        u32: elements::reduce_avx2::<u32, T, R>,
        u64: elements::reduce_avx2::<u64, T, R>,
    };
    (
        runs::reduce_avx2::<T, L, R>,
        rows::reduce_avx2::<T, L, R>,
        elements,
    )
}

/// The row of elements of `W` bytes that are only moved.
const fn moves<const W: usize>(isa: InstructionSet) -> Kernels {
    let elements = Elements {
        u32: elements::copy::<u32, W>,
        u64: elements::copy::<u64, W>,
    };
    Kernels {
        size: W,
        replaces: true,
        copy: copy::copy::<W>,
        stream: stream_of::<W>(isa),
        copy_elements: Some(elements),
        apply: copy::copy::<W>,
        apply_rows: Some(rows::copy::<W>),
        gather_rows: Some(rows::gather::<W>),
        gather_checked: Some(CheckedGather {
            u32: elements::gather_checked::<u32, W>,
            u64: elements::gather_checked::<u64, W>,
        }),
        apply_elements: Some(elements),
    }
}

#[cfg(target_arch = "x86_64")]
const fn stream_of<const W: usize>(isa: InstructionSet) -> Option<Streams> {
    Some(match isa {
        InstructionSet::Portable => Streams {
            plain: stream::stream_sse2::<W, false>,
            prefetching: stream::stream_sse2::<W, true>,
        },
        InstructionSet::Avx2 => Streams {
            plain: stream::stream_avx2::<W, false>,
            prefetching: stream::stream_avx2::<W, true>,
        },
    })
}

#[cfg(not(target_arch = "x86_64"))]
const fn stream_of<const W: usize>(_isa: InstructionSet) -> Option<Streams> {
    None
}

/// The row of elements of `size` bytes that are only moved.
const fn moves_of_size(size: usize, isa: InstructionSet) -> Kernels {
    match size {
        1 => moves::<1>(isa),
        2 => moves::<2>(isa),
        4 => moves::<4>(isa),
        8 => moves::<8>(isa),
        _ => moves::<16>(isa),
    }
}

/// The row of elements stored as `T` that are combined.
const fn combines<T>(isa: InstructionSet, (apply, rows, elements): Combine) -> Kernels {
    Kernels {
        replaces: false,
        apply,
        apply_rows: Some(rows),
        apply_elements: Some(elements),
        ..moves_of_size(size_of::<T>(), isa)
    }
}

/// The rows of [`moves_of_size`] for one instruction set.
macro_rules! move_rows {
    ($isa:expr) => {
        [
            &const { moves_of_size(1, $isa) },
            &const { moves_of_size(2, $isa) },
            &const { moves_of_size(4, $isa) },
            &const { moves_of_size(8, $isa) },
            &const { moves_of_size(16, $isa) },
        ]
    };
}

static PORTABLE_MOVES: [&Kernels; 5] = move_rows!(InstructionSet::Portable);
static AVX2_MOVES: [&Kernels; 5] = move_rows!(InstructionSet::Avx2);

impl Kernels {
    /// The row of an element type and a reduction; `None` where they do not
    /// go together. Of `isa` and what this machine has, the lesser is used.
    #[inline]
    pub(crate) fn plain(
        element: DType,
        reduction: Reduction,
        isa: InstructionSet,
    ) -> Option<&'static Self> {
        let isa = isa.min(InstructionSet::best());
        if reduction != Reduction::None {
            return combine(element, reduction, isa);
        }
        let rows = match isa {
            InstructionSet::Portable => &PORTABLE_MOVES,
            InstructionSet::Avx2 => &AVX2_MOVES,
        };
        rows.get(element.size().trailing_zeros() as usize).copied()
    }

    /// The kernels of elements that are cloned, one by one.
    pub(crate) fn cloned<T: Clone>() -> &'static Self {
        &const { Self::one_by_one(size_of::<T>(), runs::assign_clones::<T>) }
    }

    /// [`Self::cloned`] into memory that is not initialised: what was there is
    /// not dropped.
    pub(crate) fn cloned_into_uninit<T: Clone>() -> &'static Self {
        &const { Self::one_by_one(size_of::<T>(), runs::write_clones::<T>) }
    }

    /// The kernels of elements of `size` bytes that `copy` moves one by one.
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
        }
    }
}

//! One loop for every instruction set.
//!
//! Knows instruction sets. Knows nothing of what a loop does. A loop gets an instruction set
//! by being inlined into a function that enables it. A call that is left inside the loop is
//! compiled without. Every loop is therefore `#[inline(always)]`, with all that it calls.

#![allow(unsafe_code, reason = "enables instructions")]

use super::InstructionSet;

/// A loop of the kernel table, as a type.
pub(super) trait Kernel {
    /// An entry of the list that the loop goes through.
    type Entry;
    /// How entries name elements.
    type Form<'a>;

    /// Goes through the list in order. `AVX2`: whether this instance is compiled for AVX2
    /// and F16C. Implementations are `#[inline(always)]`.
    ///
    /// # Safety
    ///
    /// As for the [`KernelFn`] of the list. With `AVX2`, the machine has AVX2 and F16C.
    unsafe fn run<const AVX2: bool>(
        dst: *mut u8,
        src: *const u8,
        list: &[Self::Entry],
        form: Self::Form<'_>,
    );
}

/// What the kernel table holds of `K`: `RunsFn`, `RowsFn`, `ElementsFn` or `GroupFn`.
pub(super) type KernelFn<K> =
    unsafe fn(*mut u8, *const u8, &[<K as Kernel>::Entry], <K as Kernel>::Form<'_>);

/// The instance of `K` for `isa`. The machine must have `isa` where the instance is called.
pub(super) const fn compiled<K: Kernel>(isa: InstructionSet) -> KernelFn<K> {
    match isa {
        #[cfg(target_arch = "x86_64")]
        InstructionSet::Avx2 => run_avx2::<K>,
        _ => run_portable::<K>,
    }
}

/// A function apart, as `K::run` itself would be compiled again for every module that
/// names it.
///
/// # Safety
///
/// As for [`Kernel::run`].
unsafe fn run_portable<K: Kernel>(
    dst: *mut u8,
    src: *const u8,
    list: &[K::Entry],
    form: K::Form<'_>,
) {
    // SAFETY: handed on as it is.
    unsafe { K::run::<false>(dst, src, list, form) }
}

/// # Safety
///
/// As for [`Kernel::run`], and the machine has AVX2 and F16C.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,f16c")]
unsafe fn run_avx2<K: Kernel>(dst: *mut u8, src: *const u8, list: &[K::Entry], form: K::Form<'_>) {
    // SAFETY: handed on as it is.
    unsafe { K::run::<true>(dst, src, list, form) }
}

impl InstructionSet {
    /// Calls `work`, compiled for the lesser of `self` and what this machine has. For loops
    /// outside the kernel table. `work` must be `#[inline(always)]`, with all that it calls:
    ///
    /// ```ignore
    /// set.run(#[inline(always)] || sum(numbers))
    /// ```
    #[inline(always)]
    pub(crate) fn run<T>(self, work: impl FnOnce() -> T) -> T {
        match self.min(Self::best()) {
            // SAFETY: the set is no better than what the machine has.
            Self::Avx2 => unsafe { with_avx2(work) },
            Self::Portable => work(),
        }
    }
}

/// Calls `work`, compiled for AVX2 and F16C. `work` must be `#[inline(always)]`.
///
/// # Safety
///
/// The machine has AVX2 and F16C.
#[cfg_attr(target_arch = "x86_64", target_feature(enable = "avx2,f16c"))]
pub(super) unsafe fn with_avx2<T>(work: impl FnOnce() -> T) -> T {
    work()
}

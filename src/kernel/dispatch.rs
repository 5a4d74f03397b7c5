//! Compiles a loop for several instruction sets.
//!
//! The module knows instruction sets. The module does not know what a loop does. The compiler uses
//! an instruction set for a loop that is inlined into a function that enables the set. A function
//! that is called and not inlined is compiled without the set. So every loop, and every function
//! that a loop calls, is `#[inline(always)]`.

#![allow(unsafe_code, reason = "calls functions that enable an instruction set")]

use super::InstructionSet;

/// A loop of the kernel table. Each implementing type is one loop.
pub(super) trait Kernel {
    /// Type of an entry of the list that the loop processes.
    type Entry;
    /// Type of the parameters that are common to all entries.
    type Form<'a>;

    /// Processes the entries of `list` in order. `AVX2`: whether the function is inlined into a
    /// function that enables AVX2 and F16C. Implementations are `#[inline(always)]`.
    ///
    /// # Safety
    ///
    /// The caller guarantees the contract of the loop's function type: `RunsFn`, `RowsFn`,
    /// `ElementsFn` or `GroupFn`, or the contract of a loop of a conversion. If `AVX2` is true, the machine has AVX2 and F16C.
    unsafe fn run<const AVX2: bool>(
        dst: *mut u8,
        src: *const u8,
        list: &[Self::Entry],
        form: Self::Form<'_>,
    );
}

/// Type of the functions of `K` in the kernel table: `RunsFn`, `RowsFn`, `ElementsFn` or
/// `GroupFn`.
pub(super) type KernelFn<K> =
    unsafe fn(*mut u8, *const u8, &[<K as Kernel>::Entry], <K as Kernel>::Form<'_>);

/// Returns the instance of the loop `K` for `isa`. Only machines with `isa` may call the instance.
/// For AVX-512, the function returns the instance for AVX2. Only loops for which AVX-512 was measured
/// to be faster have an instance for AVX-512, which [`compiled_for_avx512`] returns.
pub(super) const fn compiled<K: Kernel>(isa: InstructionSet) -> KernelFn<K> {
    match isa {
        #[cfg(target_arch = "x86_64")]
        InstructionSet::Avx2 | InstructionSet::Avx512 => run_avx2::<K>,
        _ => run_portable::<K>,
    }
}

/// Returns the instance of the loop `K` for `isa`, as [`compiled`]. For AVX-512, the function returns
/// an instance for AVX-512.
pub(super) const fn compiled_for_avx512<K: Kernel>(isa: InstructionSet) -> KernelFn<K> {
    match isa {
        #[cfg(target_arch = "x86_64")]
        InstructionSet::Avx512 => run_avx512::<K>,
        _ => compiled::<K>(isa),
    }
}

/// Runs the instance of the loop `K` for AVX-512 F, BW, DQ and VL, and POPCNT.
///
/// # Safety
///
/// As for [`Kernel::run`]. The machine has [`InstructionSet::Avx512`].
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,f16c,avx512f,avx512bw,avx512dq,avx512vl,popcnt")]
unsafe fn run_avx512<K: Kernel>(
    dst: *mut u8,
    src: *const u8,
    list: &[K::Entry],
    form: K::Form<'_>,
) {
    // SAFETY: the caller guarantees what `Kernel::run` requires, and that the machine has AVX-512,
    // which includes AVX2.
    unsafe { K::run::<true>(dst, src, list, form) }
}

/// Runs the portable instance of the loop `K`. [`compiled`] returns this function instead of
/// `K::run`, because `K::run` would be compiled again in every module that names it.
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
    // SAFETY: the caller guarantees what `Kernel::run` requires of the elements and pointers.
    unsafe { K::run::<false>(dst, src, list, form) }
}

/// Runs the instance of the loop `K` for AVX2 and F16C.
///
/// # Safety
///
/// As for [`Kernel::run`]. The machine has AVX2 and F16C.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,f16c")]
unsafe fn run_avx2<K: Kernel>(dst: *mut u8, src: *const u8, list: &[K::Entry], form: K::Form<'_>) {
    // SAFETY: the caller guarantees what `Kernel::run` requires, and that the machine has AVX2 and
    // F16C.
    unsafe { K::run::<true>(dst, src, list, form) }
}

impl InstructionSet {
    /// Calls `work`, compiled for the instruction set `self`. If the machine does not have `self`,
    /// `work` is compiled for the best set of the machine instead. For AVX-512, `work` is compiled
    /// for AVX2. This function is for loops outside the kernel table. `work` and every function
    /// that `work` calls must be `#[inline(always)]`:
    ///
    /// ```ignore
    /// set.run(#[inline(always)] || sum(numbers))
    /// ```
    #[inline(always)]
    pub(crate) fn run<T>(self, work: impl FnOnce() -> T) -> T {
        match self.min(Self::best()) {
            // SAFETY: the selected set is at most `best`, so the machine has it.
            Self::Avx2 | Self::Avx512 => unsafe { with_avx2(work) },
            Self::Portable => work(),
        }
    }
}

/// Calls `work`, compiled for AVX2 and F16C. `work` and every function that `work` calls must be
/// `#[inline(always)]`.
///
/// # Safety
///
/// The machine has AVX2 and F16C.
#[cfg_attr(target_arch = "x86_64", target_feature(enable = "avx2,f16c"))]
pub(super) unsafe fn with_avx2<T>(work: impl FnOnce() -> T) -> T {
    work()
}

/// Calls `work`, compiled for AVX-512 F, BW, DQ and VL, and POPCNT. `work` and every function that
/// `work` calls must be `#[inline(always)]`.
///
/// # Safety
///
/// The machine has [`InstructionSet::Avx512`].
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,popcnt")]
pub(super) unsafe fn with_avx512<T>(work: impl FnOnce() -> T) -> T {
    work()
}

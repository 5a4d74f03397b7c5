//! The vector operations of a filter, for vectors with lanes of 32 bits.
//!
//! The module knows lanes and masks. The module does not know instructions, nor what the lanes
//! mean.

/// Vectors of an instruction set. A vector has [`LANES`](Self::LANES) lanes of 32 bits. Bit `i` of
/// a mask belongs to lane `i` of a vector, or to entry (element) `i` of a slice.
///
/// Slices have `LANES` entries, unless a function states another length. The functions `keep_half`
/// and `keep_wide` select the entries of `values` whose bits in `mask` are 1. The two functions
/// copy the selected entries, in order, to the start of the slice `to`. The remaining entries of
/// `to` have unspecified values. The functions must run only on machines that have the instruction
/// set.
pub(crate) trait Vectors {
    const LANES: usize;
    type Lanes: Copy;

    /// Returns a mask. Bit `i` is 1 if the unsigned, wrapping difference `numbers[i] - start` is at
    /// most `span`.
    fn inside_u32(numbers: &[u32], start: u32, span: u32) -> u32;
    /// As [`Self::inside_u32`], for `LANES / 2` numbers of 64 bits.
    fn inside_half(numbers: &[u64], start: u64, span: u64) -> u32;

    /// Returns the values `first`, `first + 1` and so on, one in each lane.
    fn positions(first: u32) -> Self::Lanes;
    /// Returns the low 32 bits of each number, one number in each lane.
    fn narrow(numbers: &[u64]) -> Self::Lanes;
    /// Returns a vector with one value of `W` bytes (1, 2 or 4) in the low bytes of each lane.
    fn load<const W: usize>(values: &[[u8; W]]) -> Self::Lanes;
    /// Returns a vector that begins with the lanes whose bits in `mask` are 1, in order.
    fn compress(lanes: Self::Lanes, mask: u32) -> Self::Lanes;
    /// Writes the low `W` bytes of each lane `i` to `to[i]`.
    fn store<const W: usize>(lanes: Self::Lanes, to: &mut [[u8; W]]);
    /// Copies each entry `values[i]`, if bit `i` of `mask` is 1, to the start of `to`, in order.
    /// Each entry has 8 bytes. The slices `values` and `to` have `LANES / 2` entries.
    fn keep_half(values: &[[u8; 8]], mask: u32, to: &mut [[u8; 8]]);
    /// Returns the number of bits of `mask` that are 1.
    fn count(mask: u32) -> usize;

    /// As [`Self::inside_u32`], for `LANES` numbers of 64 bits.
    #[inline(always)]
    fn inside_u64(numbers: &[u64], start: u64, span: u64) -> u32 {
        let (low, high) = numbers.split_at(Self::LANES / 2);
        let high = Self::inside_half(high, start, span) << (Self::LANES / 2);
        Self::inside_half(low, start, span) | high
    }

    /// As [`Self::keep_half`], for `LANES` entries.
    #[inline(always)]
    fn keep_wide(values: &[[u8; 8]], mask: u32, to: &mut [[u8; 8]]) {
        let half = Self::LANES / 2;
        let (low, high) = values.split_at(half);
        let low_mask = mask & ((1 << half) - 1);
        Self::keep_half(low, low_mask, &mut to[..half]);
        let first = Self::count(low_mask);
        Self::keep_half(high, mask >> half, &mut to[first..first + half]);
    }
}

//! The operations of a filter on vectors with lanes of 32 bits.
//!
//! The module knows lanes and masks. It does not know instructions, or what the lanes mean.

/// Vectors of an instruction set. A vector has [`LANES`](Self::LANES) lanes of 32 bits. Bit `i` of
/// a mask belongs to lane `i`.
///
/// All slices have one entry for each lane. Functions that keep lanes write them from the start of
/// the slice on, in order, and write any values behind them. Only machines with the instruction set
/// may call the functions.
pub(crate) trait Vectors {
    const LANES: usize;
    type Lanes: Copy;

    /// Returns the mask of the numbers for which `number - start` is at most `span`, without sign.
    fn inside_u32(numbers: &[u32], start: u32, span: u32) -> u32;
    /// As [`Self::inside_u32`], for half as many numbers of 64 bits.
    fn inside_half(numbers: &[u64], start: u64, span: u64) -> u32;

    /// Returns `first` and the numbers that follow it.
    fn positions(first: u32) -> Self::Lanes;
    /// Returns the low halves of numbers.
    fn narrow(numbers: &[u64]) -> Self::Lanes;
    /// Returns values of 1, 2 or 4 bytes, each in the low bytes of its lane.
    fn load<const W: usize>(values: &[[u8; W]]) -> Self::Lanes;
    /// Moves the lanes of the mask to the first lanes.
    fn compress(lanes: Self::Lanes, mask: u32) -> Self::Lanes;
    /// Stores the low `W` bytes of each lane.
    fn store<const W: usize>(lanes: Self::Lanes, to: &mut [[u8; W]]);
    /// Keeps the values of 8 bytes whose bits are in the mask, of half as many values as lanes.
    fn keep_half(values: &[[u8; 8]], mask: u32, to: &mut [[u8; 8]]);
    /// Returns the number of lanes of a mask.
    fn count(mask: u32) -> usize;

    /// As [`Self::inside_u32`], for numbers of 64 bits.
    #[inline(always)]
    fn inside_u64(numbers: &[u64], start: u64, span: u64) -> u32 {
        let (low, high) = numbers.split_at(Self::LANES / 2);
        let high = Self::inside_half(high, start, span) << (Self::LANES / 2);
        Self::inside_half(low, start, span) | high
    }

    /// Keeps the values of 8 bytes whose lanes are in the mask.
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

//! Decides whether two tensors, or two elements of one tensor, share memory.
//!
//! This module knows the addresses, sizes and strides of tensors. Fast tests decide for most
//! layouts whether elements share memory. For all other layouts, a search decides: memory is shared
//! if the linear equation "address in one tensor = address in the other" has an integer solution.
//! The number of search steps is limited, so the result may be [`Overlap::Undecided`].

use super::dims::Dims;
use super::layout::Layout;
use crate::error::ScatterError;
use crate::memory::with_room;

/// Maximum number of search steps of one decision. A step tries one value of one unknown.
const EFFORT: u32 = 20_000;

/// Answer to the question whether elements share memory. `Undecided`: the search did not find the
/// answer within [`EFFORT`] steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Overlap {
    Disjoint,
    Shared,
    Undecided,
}

/// The memory of a tensor: address, layout and element size.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Footprint<'a> {
    /// Address of element `[0, 0, ...]`.
    pub(crate) address: usize,
    pub(crate) layout: &'a Layout<'a>,
    /// Size of an element, in bytes.
    pub(crate) size: usize,
}

/// A product `coefficient * x` with an unknown integer `x` in `0..=limit`.
#[derive(Clone, Copy, Debug, Default)]
struct Term {
    coefficient: i128,
    limit: i128,
}

/// Decides whether any two elements of an output have the same address. The layout must fit in
/// memory: [`Layout::check`] has accepted the layout, or all elements are inside an existing slice
/// or `ndarray` array.
pub(crate) fn with_itself(layout: &Layout<'_>) -> Result<Overlap, ScatterError> {
    if layout.is_contiguous() || layout.shape().contains(&0) {
        return Ok(Overlap::Disjoint);
    }
    // The strides of most tensors decrease from the first to the last dimension. The test of such
    // strides needs no sort. A sort would be a large part of the cost of a small call.
    if strides_exceed_extents(layout.dims_from_last()) {
        return Ok(Overlap::Disjoint);
    }
    let rank = layout.shape().len();
    let mut dims = Dims::collect(rank, layout.dims_from_last())?;
    dims.sort_unstable_by_key(|(_, stride)| stride.unsigned_abs());
    if strides_exceed_extents(dims.iter().copied()) {
        return Ok(Overlap::Disjoint);
    }
    let terms = terms_of(layout, 1)?;
    // Two different elements have the same address if the difference of their coordinates, times
    // the strides, sums to 0. The difference has at least one coordinate that is not 0. A swap of
    // the two elements negates the difference, so this coordinate can be assumed to be positive.
    // For each axis, the loop searches for a difference with the coordinate of this axis in
    // 1..=limit and every other coordinate in -limit..=limit.
    let mut effort = EFFORT;
    let mut answer = Overlap::Disjoint;
    for (axis, &Term { coefficient, .. }) in terms.iter().enumerate() {
        let mut target = -coefficient;
        let mut shifted = Dims::copied(&terms)?;
        for (other, term) in shifted.iter_mut().enumerate() {
            if other == axis {
                term.limit -= 1;
            } else {
                target += term.coefficient * term.limit;
                term.limit *= 2;
            }
        }
        match find(shifted, target, &mut effort) {
            Overlap::Shared => return Ok(Overlap::Shared),
            Overlap::Undecided => answer = Overlap::Undecided,
            Overlap::Disjoint => {}
        }
    }
    Ok(answer)
}

/// Decides whether two tensors share a byte.
#[inline]
pub(crate) fn between(a: &Footprint<'_>, b: &Footprint<'_>) -> Result<Overlap, ScatterError> {
    match (block_of(a), block_of(b)) {
        // Fast path for two contiguous tensors, because small calls also make this check.
        (Some((a, a_end)), Some((b, b_end))) if a_end <= b || b_end <= a => Ok(Overlap::Disjoint),
        _ => between_any(a, b),
    }
}

/// Searches for two tensors that share a byte, and returns the two positions in `tensors`. If
/// several pairs share a byte, returns the first pair in lexicographic order. If no pair is known
/// to share a byte, returns the first pair that could not be decided. `is_known`: whether two
/// tensors are known to share no byte.
pub(crate) fn among(
    tensors: &[Footprint<'_>],
    is_known: impl Fn(usize, usize) -> bool,
) -> Result<Option<(Overlap, usize, usize)>, ScatterError> {
    let mut blocks = with_room(tensors.len())?;
    let bytes = tensors.iter().map(bytes_of).enumerate();
    blocks.extend(bytes.filter_map(|(at, bytes)| bytes.map(|(low, end)| (low, end, at))));
    blocks.sort_unstable();
    let (mut shared, mut undecided) = (None, None);
    for (position, &(_, end, at)) in blocks.iter().enumerate() {
        // Tensors later in the list begin at higher addresses, so they share no byte with this one.
        let later = blocks[position + 1..].iter();
        for &(_, _, other) in later.take_while(|&&(low, ..)| low < end) {
            let pair = (at.min(other), at.max(other));
            if is_known(pair.0, pair.1) {
                continue;
            }
            let found = match between(&tensors[at], &tensors[other])? {
                Overlap::Disjoint => continue,
                Overlap::Shared => &mut shared,
                Overlap::Undecided => &mut undecided,
            };
            *found = Some(found.map_or(pair, |first: (usize, usize)| first.min(pair)));
        }
    }
    let shared = shared.map(|(a, b)| (Overlap::Shared, a, b));
    Ok(shared.or(undecided.map(|(a, b)| (Overlap::Undecided, a, b))))
}

/// Returns the address of the first byte of a contiguous tensor and the address after its last
/// byte. Returns `None` for a tensor with explicit strides, and if the computation overflows.
#[inline]
fn block_of(tensor: &Footprint<'_>) -> Option<(usize, usize)> {
    if tensor.layout.strides().is_some() {
        return None;
    }
    let bytes = tensor.layout.elements()?.checked_mul(tensor.size)?;
    Some((tensor.address, tensor.address.checked_add(bytes)?))
}

/// Decides for tensors of any strides whether they share a byte.
fn between_any(a: &Footprint<'_>, b: &Footprint<'_>) -> Result<Overlap, ScatterError> {
    let (Some((a_low, a_end)), Some((b_low, b_end))) = (bytes_of(a), bytes_of(b)) else {
        return Ok(Overlap::Disjoint);
    };
    if a_end <= b_low || b_end <= a_low {
        return Ok(Overlap::Disjoint);
    }
    if a.layout.is_contiguous() && b.layout.is_contiguous() {
        return Ok(Overlap::Shared);
    }
    // The address of a byte is the lowest address of its tensor plus a sum of terms. The tensors
    // share a byte if this equation has a solution: a_low + sum(a) = b_low + sum(b). The terms of
    // `b` move to the left side of the equation and become negative. The substitution
    // x -> limit - x makes these terms positive again. The right side is then the address of the
    // last byte of `b`, minus a_low.
    let (ours, others) = (byte_terms(a)?, byte_terms(b)?);
    let all = ours.iter().chain(&*others).copied();
    let terms = Dims::collect(ours.len() + others.len(), all)?;
    let target = (b_end - 1) - a_low;
    Ok(find(terms, target, &mut EFFORT.clone()))
}

/// Returns the terms whose sum is the distance of a byte from the lowest byte of the tensor.
fn byte_terms(tensor: &Footprint<'_>) -> Result<Dims<Term>, ScatterError> {
    let mut terms = terms_of(tensor.layout, tensor.size)?;
    terms.push(Term {
        coefficient: 1,
        limit: tensor.size as i128 - 1,
    })?;
    Ok(terms)
}

/// Returns the lowest address of a byte of the tensor, and the address after the highest byte.
/// Returns `None` for a tensor without bytes.
fn bytes_of(tensor: &Footprint<'_>) -> Option<(i128, i128)> {
    if tensor.size == 0 || tensor.layout.elements()? == 0 {
        return None;
    }
    let (low, high) = tensor.layout.extent()?;
    let (address, size) = (tensor.address as i128, tensor.size as i128);
    Some((
        address + low as i128 * size,
        address + (high as i128 + 1) * size,
    ))
}

/// Returns one term for each dimension of more than one element. The coefficient is the absolute
/// value of the stride. The sign of a stride does not change the set of distances from the element
/// with the lowest address.
fn terms_of(layout: &Layout<'_>, size: usize) -> Result<Dims<Term>, ScatterError> {
    let dims = layout.dims_from_last().filter(|&(count, _)| count > 1);
    let terms = dims.map(|(count, stride)| Term {
        coefficient: (stride as i128).abs() * size as i128,
        limit: count as i128 - 1,
    });
    Dims::collect(layout.shape().len(), terms)
}

/// Whether each stride is larger than the largest offset within the dimensions before it in
/// `dims`. If so, no two elements have the same address. `dims` has the size and the stride of
/// each dimension. Strides count as absolute values, and dimensions of size 1 are ignored. The
/// condition holds for a transposed, reversed or padded tensor if `dims` is in ascending order of
/// strides.
fn strides_exceed_extents(mut dims: impl Iterator<Item = (usize, isize)>) -> bool {
    let mut extent = 0_usize;
    dims.all(|(size, stride)| {
        let step = stride.unsigned_abs();
        let exceeds = size == 1 || step > extent;
        extent = extent.saturating_add(step.saturating_mul(size - 1));
        exceeds
    })
}

/// Searches for a solution of `sum(coefficient * x) == target`.
fn find(mut terms: Dims<Term>, target: i128, effort: &mut u32) -> Overlap {
    terms.retain(|term| term.coefficient != 0 && term.limit > 0);
    terms.sort_unstable_by_key(|term| -term.coefficient);
    // Two terms with one coefficient are one term: `x + y` takes every value up to both limits.
    let mut kept = 0;
    for at in 1..terms.len() {
        if terms[at].coefficient == terms[kept].coefficient {
            terms[kept].limit += terms[at].limit;
        } else {
            kept += 1;
            terms[kept] = terms[at];
        }
    }
    let terms = &terms[..terms.len().min(kept + 1)];
    search(terms, target, effort)
}

/// Searches for a solution, with `terms` in descending order of coefficients.
///
/// Two conditions limit the search. First, `target` minus the first term must be between 0 and the
/// maximum of the sum of the other terms. This leaves few values of the first `x`. Second, `target`
/// must be a multiple of the greatest common divisor of all coefficients in `terms`.
fn search(terms: &[Term], target: i128, effort: &mut u32) -> Overlap {
    let Some((first, rest)) = terms.split_first() else {
        return if target == 0 {
            Overlap::Shared
        } else {
            Overlap::Disjoint
        };
    };
    let divisor = terms.iter().fold(0, |gcd, term| {
        greatest_common_divisor(gcd, term.coefficient)
    });
    let reach: i128 = rest.iter().map(|term| term.coefficient * term.limit).sum();
    if target < 0 || target > reach + first.coefficient * first.limit || target % divisor != 0 {
        return Overlap::Disjoint;
    }
    let highest = (target / first.coefficient).min(first.limit);
    let lowest = ((target - reach).max(0) + first.coefficient - 1) / first.coefficient;
    let mut answer = Overlap::Disjoint;
    let mut x = highest;
    while x >= lowest {
        if *effort == 0 {
            return Overlap::Undecided;
        }
        *effort -= 1;
        match search(rest, target - x * first.coefficient, effort) {
            Overlap::Shared => return Overlap::Shared,
            Overlap::Undecided => answer = Overlap::Undecided,
            Overlap::Disjoint => {}
        }
        x -= 1;
    }
    answer
}

fn greatest_common_divisor(mut a: i128, mut b: i128) -> i128 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

#[cfg(test)]
mod tests {
    use super::{Footprint, Overlap, between, with_itself};
    use crate::operand::Layout;

    fn layout<'a>(shape: &'a [usize], strides: &'a [isize]) -> Layout<'a> {
        Layout::strided(shape, strides).expect("ranks agree")
    }

    #[test]
    fn self_overlap() {
        let cases: [(&[usize], &[isize], Overlap); 8] = [
            (&[3, 4], &[4, 1], Overlap::Disjoint),
            (&[3, 4], &[1, 3], Overlap::Disjoint),
            (&[3, 4], &[-8, 2], Overlap::Disjoint),
            (&[3, 4], &[0, 1], Overlap::Shared),
            (&[3, 4], &[3, 1], Overlap::Shared),
            // The rows interleave, but all offsets differ: 0 2 4 3 5 7.
            (&[2, 3], &[3, 2], Overlap::Disjoint),
            (&[2, 4], &[6, 2], Overlap::Shared),
            (&[0, 4], &[0, 0], Overlap::Disjoint),
        ];
        for (shape, strides, expected) in cases {
            let found = with_itself(&layout(shape, strides)).expect("rank 2");
            assert_eq!(found, expected, "{shape:?} {strides:?}");
        }
    }

    #[test]
    fn self_overlap_agrees_with_enumeration() {
        for code in 0..7_usize.pow(3) * 27 {
            let pick = |place: u32| (code / 7_usize.pow(place)) % 7;
            let strides = [0, 1, 2].map(|place| pick(place).cast_signed() - 1);
            let shape = [0, 1, 2].map(|place| 1 + (code / 343 / 3_usize.pow(place)) % 3);
            let mut seen = std::collections::HashSet::new();
            let mut distinct = true;
            for i in 0..shape[0] * shape[1] * shape[2] {
                let at = [
                    i / (shape[1] * shape[2]),
                    i / shape[2] % shape[1],
                    i % shape[2],
                ];
                let offset: isize = (at.iter().zip(strides))
                    .map(|(&x, s)| x.cast_signed() * s)
                    .sum();
                distinct &= seen.insert(offset);
            }
            let expected = if distinct {
                Overlap::Disjoint
            } else {
                Overlap::Shared
            };
            assert_eq!(
                with_itself(&layout(&shape, &strides)).expect("rank 3"),
                expected,
                "{shape:?} {strides:?}"
            );
        }
    }

    #[test]
    fn between_tensors() {
        let shape = [4, 2];
        let columns = layout(&shape, &[4, 2]);
        let columns = |address, size| Footprint {
            address,
            layout: &columns,
            size,
        };
        let cases = [
            // The columns of the two tensors interleave and share no byte.
            (columns(1000, 4), columns(1004, 4), Overlap::Disjoint),
            (columns(1000, 4), columns(1008, 4), Overlap::Shared),
            // The elements have 8 bytes and begin only 4 bytes apart, so they share bytes.
            (columns(1000, 8), columns(1004, 8), Overlap::Shared),
            (columns(1000, 4), columns(5000, 4), Overlap::Disjoint),
        ];
        for (a, b, expected) in cases {
            assert_eq!(between(&a, &b), Ok(expected), "{a:?} {b:?}");
        }
    }
}

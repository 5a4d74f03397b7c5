//! Do two tensors, or two elements of one tensor, share a byte?
//!
//! Knows addresses, sizes and strides in bytes. A quick test answers the
//! common cases; the rest is a search for integer points, bounded in effort.

use super::dims::Dims;
use super::layout::Layout;
use crate::error::ScatterError;

/// Search steps after which a question is given up.
const EFFORT: u32 = 20_000;

/// Answer of a bounded search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Overlap {
    Disjoint,
    Shared,
    Undecided,
}

/// A tensor's bytes: address of element 0, and its extent around it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Footprint<'a> {
    pub(crate) address: usize,
    pub(crate) layout: &'a Layout<'a>,
    /// Bytes of an element.
    pub(crate) size: usize,
}

/// `coefficient * x` with `x` in `0..=limit`.
#[derive(Clone, Copy, Debug, Default)]
struct Term {
    coefficient: i128,
    limit: i128,
}

/// Whether two elements of an output lie at one address.
pub(crate) fn with_itself(layout: &Layout<'_>) -> Result<Overlap, ScatterError> {
    if layout.is_contiguous() || layout.shape().contains(&0) {
        return Ok(Overlap::Disjoint);
    }
    // No small call should wait for a sort, and the strides of most tensors are sorted.
    if steps_over_inner(layout.dims_from_last()) {
        return Ok(Overlap::Disjoint);
    }
    let rank = layout.shape().len();
    let mut dims = Dims::collect(rank, layout.dims_from_last())?;
    dims.sort_unstable_by_key(|(_, stride)| stride.unsigned_abs());
    if steps_over_inner(dims.iter().copied()) {
        return Ok(Overlap::Disjoint);
    }
    let terms = terms_of(layout, 1)?;
    // Two elements meet where a difference of positions, not all zero, adds up
    // to zero. One of its coordinates is then positive: try each in turn with
    // that coordinate at least 1 and the others anywhere in -limit..=limit.
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

/// Whether two tensors share a byte.
#[inline]
pub(crate) fn between(a: &Footprint<'_>, b: &Footprint<'_>) -> Result<Overlap, ScatterError> {
    match (block_of(a), block_of(b)) {
        // What small calls ask of every operand.
        (Some((a, a_end)), Some((b, b_end))) if a_end <= b || b_end <= a => Ok(Overlap::Disjoint),
        _ => between_any(a, b),
    }
}

/// First byte and the byte after the last of a contiguous tensor, where that
/// is an address.
#[inline]
fn block_of(tensor: &Footprint<'_>) -> Option<(usize, usize)> {
    if tensor.layout.strides().is_some() {
        return None;
    }
    let bytes = tensor.layout.elements()?.checked_mul(tensor.size)?;
    Some((tensor.address, tensor.address.checked_add(bytes)?))
}

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
    // Lowest address + terms + byte within the element, on either side; turned
    // round (x -> limit - x) the terms of `b` become positive on the left.
    let (ours, others) = (byte_terms(a)?, byte_terms(b)?);
    let all = ours.iter().chain(&*others).copied();
    let terms = Dims::collect(ours.len() + others.len(), all)?;
    let target = (b_end - 1) - a_low;
    Ok(find(terms, target, &mut EFFORT.clone()))
}

fn byte_terms(tensor: &Footprint<'_>) -> Result<Dims<Term>, ScatterError> {
    let mut terms = terms_of(tensor.layout, tensor.size)?;
    terms.push(Term {
        coefficient: 1,
        limit: tensor.size as i128 - 1,
    })?;
    Ok(terms)
}

/// First byte and the byte after the last; `None` for tensors without bytes.
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

/// One term a dimension that has more than one element. The sign of a stride
/// does not change which bytes are touched, counted from the lowest.
fn terms_of(layout: &Layout<'_>, size: usize) -> Result<Dims<Term>, ScatterError> {
    let dims = layout.dims_from_last().filter(|&(count, _)| count > 1);
    let terms = dims.map(|(count, stride)| Term {
        coefficient: (stride as i128).abs() * size as i128,
        limit: count as i128 - 1,
    });
    Dims::collect(layout.shape().len(), terms)
}

/// Whether the stride of each dimension steps over all that the dimensions before it can
/// reach: then no two elements meet. True of every transposed, reversed or padded tensor
/// whose dimensions are sorted by stride.
fn steps_over_inner(mut dims: impl Iterator<Item = (usize, isize)>) -> bool {
    let mut reach = 0_usize;
    dims.all(|(size, stride)| {
        let step = stride.unsigned_abs();
        let clear = size == 1 || step > reach;
        reach = reach.saturating_add(step.saturating_mul(size - 1));
        clear
    })
}

/// Searches for `sum(coefficient * x) == target`.
fn find(mut terms: Dims<Term>, target: i128, effort: &mut u32) -> Overlap {
    terms.retain(|term| term.coefficient != 0 && term.limit > 0);
    terms.sort_unstable_by_key(|term| -term.coefficient);
    search(&terms, target, effort)
}

/// Largest coefficient first. What remains must lie within reach of the
/// smaller terms and be a multiple of their common divisor, which leaves few
/// values to try.
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
            // Interleaved and yet distinct: 0 2 4 3 5 7.
            (&[2, 3], &[3, 2], Overlap::Disjoint),
            (&[2, 4], &[6, 2], Overlap::Shared),
            (&[0, 4], &[0, 0], Overlap::Disjoint),
        ];
        for (shape, strides, expected) in cases {
            let found = with_itself(&layout(shape, strides)).expect("few dims");
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
                with_itself(&layout(&shape, &strides)).expect("few dims"),
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
            // Every other column: interleaved, no byte shared.
            (columns(1000, 4), columns(1004, 4), Overlap::Disjoint),
            (columns(1000, 4), columns(1008, 4), Overlap::Shared),
            // The second tensor's elements are wide enough to reach over.
            (columns(1000, 8), columns(1004, 8), Overlap::Shared),
            (columns(1000, 4), columns(5000, 4), Overlap::Disjoint),
        ];
        for (a, b, expected) in cases {
            assert_eq!(between(&a, &b), Ok(expected), "{a:?} {b:?}");
        }
    }
}

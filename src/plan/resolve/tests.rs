//! Compares every method that computes the destination numbers of tuples with a sequential
//! reference loop.

use super::{Block, IndexRules, Tuples};
use crate::error::ScatterError;
use crate::kernel::InstructionSet;
use crate::operand::{Indices, Layout, TensorView};
use crate::plan::form::{Coordinates, Form};
use crate::plan::number::Number;
use crate::plan::{Extents, Scale};
use crate::reduction::Bounds;

const SHAPE: [usize; 3] = [3, 4, 5];

/// Returns test cases: a form (how indices address an output of shape [`SHAPE`]) and the shape of
/// the indices.
fn forms() -> [(Form, &'static [usize]); 13] {
    let form = |tuple_len, list, coordinates| Form {
        batch_rank: 0,
        tuple_len,
        list,
        coordinates,
    };
    let explicit = |implied| Coordinates::Explicit { implied };
    let placed = |axis| Coordinates::Placed { axis };
    [
        (form(1, (0, 2), explicit(0)), &[2, 3]),
        (form(1, (0, 2), explicit(0)), &[0, 3]),
        (form(1, (0, 1), explicit(0)), &[600]),
        (form(2, (0, 2), explicit(0)), &[3, 2, 2]),
        (form(2, (0, 2), explicit(0)), &[20, 30, 2]),
        (form(3, (0, 1), explicit(0)), &[4, 3]),
        (form(0, (0, 1), explicit(0)), &[3, 0]),
        (form(2, (0, 1), explicit(1)), &[3, 1]),
        (form(3, (0, 2), explicit(2)), &[3, 4, 1]),
        (form(3, (0, 3), placed(0)), &[1, 3, 4]),
        (form(3, (0, 3), placed(1)), &[2, 1, 5]),
        (form(3, (0, 3), placed(2)), &[2, 4, 2]),
        (form(2, (0, 2), placed(1)), &[3, 2, 2]),
    ]
}

/// A list of tuples and the output that they address.
struct List<'a> {
    form: Form,
    shape: &'a [usize],
    /// Strides of the indices, in elements. `None`: the indices are contiguous.
    strides: Option<&'a [isize]>,
    values: &'a [i32],
    output: Layout<'a>,
    rules: IndexRules,
}

impl List<'_> {
    fn view(&self) -> TensorView<'_, i32> {
        let view = match self.strides {
            Some(strides) => TensorView::strided(self.values, 0, self.shape, strides),
            None => {
                let len = self.shape.iter().product();
                TensorView::contiguous(&self.values[..len], self.shape)
            }
        };
        view.expect("a view inside its slice")
    }

    /// Returns the position that the coordinate `index` addresses on an axis of `size` positions.
    /// Returns `None` if the tuple of the coordinate is skipped, and an error if the bounds rule
    /// makes the coordinate an error.
    fn position(&self, index: i32, size: usize) -> Result<Option<usize>, ()> {
        let size = i32::try_from(size).expect("a short axis");
        let wraps = index < 0 && self.rules.wrap(1) == 1;
        let position = if wraps { index + size } else { index };
        match self.rules.bounds {
            _ if (0..size).contains(&position) => Ok(usize::try_from(position).ok()),
            Bounds::Skip => Ok(None),
            Bounds::SkipNegative if index < 0 => Ok(None),
            Bounds::Clamp if size > 0 => Ok(usize::try_from(position.clamp(0, size - 1)).ok()),
            _ => Err(()),
        }
    }

    /// Returns the offset of the slice that each tuple addresses in the output, or `None` for a
    /// skipped tuple. Returns an error if the bounds rule makes a coordinate an error: the error of
    /// the first such coordinate.
    fn offsets(&self) -> Result<Vec<Option<isize>>, ScatterError> {
        let form = &self.form;
        let list = &self.shape[form.list.0..form.list.1];
        let (strides, layout) = (self.output.all_strides()?, self.view().layout());
        let index_strides = layout.all_strides()?;
        (0..list.iter().product())
            .map(|tuple| {
                let mut place = vec![0; self.shape.len()];
                let mut rest: usize = tuple;
                for (place, size) in place.iter_mut().zip(list).rev() {
                    (*place, rest) = (rest % size, rest / size);
                }
                let mut offset = Some(0);
                for axis in 0..form.tuple_len {
                    let size = self.output.shape()[axis];
                    let mut position = Some(place[axis.min(place.len() - 1)]);
                    if form.read().contains(&axis) {
                        if form.list.1 < place.len() {
                            place[form.list.1] = axis - form.read().start;
                        }
                        let steps = place.iter().zip(&*index_strides);
                        let at: isize = steps.map(|(at, step)| at.cast_signed() * step).sum();
                        let index = self.values[at.cast_unsigned()];
                        position = self.position(index, size).map_err(|()| {
                            ScatterError::IndexOutOfBounds {
                                tuple: tuple * form.indices_each(self.shape),
                                axis,
                                index: index.into(),
                                size,
                            }
                        })?;
                    }
                    offset = offset
                        .zip(position)
                        .map(|(offset, position)| offset + position.cast_signed() * strides[axis]);
                }
                Ok(offset)
            })
            .collect()
    }

    /// Compares every method that computes the destination numbers of tuples with the reference
    /// loop [`Self::offsets`]. Returns true if the reference loop returns no error.
    fn check(&self, case: &str) -> bool {
        let expected = self.offsets();
        let indices = Indices::from(self.view());
        let indices = indices.integers().expect("integers");
        let (scale, multipliers) = Scale::new(&self.output, &self.form);
        let tuples = Tuples::new(&self.form, multipliers, indices, self.rules);
        let len = expected.as_ref().map_or(1, Vec::len);
        let extents = Extents::new(&self.form, self.output.shape(), self.shape);
        for &set in InstructionSet::available() {
            let (mut narrow, mut wide) = (vec![1_u32; extents.tuples], vec![1_u64; extents.tuples]);
            let done = tuples
                .resolve(set, 0, &mut narrow)
                .map(|piece| piece.skipped);
            is_same(&expected, done, &narrow, scale, case);
            let done = tuples.resolve(set, 0, &mut wide).map(|piece| piece.skipped);
            is_same(&expected, done, &wide, scale, case);
            if expected.is_ok() {
                // Compute only the second half of the list.
                let first = len / 2;
                let mut rest = vec![1_u32; len - first];
                let done = tuples.resolve(set, first, &mut rest);
                assert_eq!(rest, narrow[first..], "{case}, from {first} on, {done:?}");
            }
            if scale.numbers_slices {
                self.check_slices(&expected, &extents, scale, set, case);
            }
        }
        expected.is_ok()
    }

    /// Checks the functions of [`Tuples`] that compute destination numbers which count slices.
    /// Small calls use one of these functions. The other functions are for indices without gaps
    /// between them, and are checked only if the indices are contiguous.
    fn check_slices(
        &self,
        expected: &Result<Vec<Option<isize>>, ScatterError>,
        extents: &Extents<'_>,
        scale: Scale,
        set: InstructionSet,
        case: &str,
    ) {
        let indices = Indices::from(self.view());
        let indices = indices.integers().expect("integers");
        let tuples = Tuples::of_slices(extents, &indices, self.rules);
        let mut numbers = vec![1_u32; extents.tuples];
        let done = tuples.resolve_all(set, &mut numbers);
        is_same(expected, done, &numbers, scale, case);
        if self.strides.is_some() || self.form.coordinates != Form::ALL_EXPLICIT {
            return;
        }
        let mut again = numbers.clone();
        if tuples.are_neighbours() {
            again.fill(1);
            let done = tuples.resolve_neighbours(&mut again);
            is_same(expected, done, &again, scale, case);
        }
        let mut buffer = vec![1_u64; extents.tuples];
        match tuples.resolve_block(set, 0, &mut buffer) {
            Ok(Block::Narrow(block)) => assert_eq!(block, again, "{case}, a block"),
            Ok(Block::Skipping(block)) => {
                assert_eq!(block, again, "{case}, a block");
                assert!(
                    block.contains(&u32::SKIPPED),
                    "{case}: no tuple was skipped"
                );
            }
            Ok(Block::Wide(_)) => panic!("{case}: indices have 32 bits"),
            Err(error) => assert_eq!(Err(error), expected.clone().map(|_| ()), "{case}"),
        }
    }
}

/// Checks that the slices of the destination numbers are at the expected offsets in the output, and
/// that the number of skipped tuples is as expected.
fn is_same<N: Number>(
    expected: &Result<Vec<Option<isize>>, ScatterError>,
    skipped: Result<usize, ScatterError>,
    numbers: &[N],
    scale: Scale,
    case: &str,
) {
    let none = |offsets: &Vec<_>| {
        offsets
            .iter()
            .filter(|offset: &&Option<_>| offset.is_none())
            .count()
    };
    assert_eq!(
        skipped,
        expected.as_ref().map(none).map_err(Clone::clone),
        "{case}"
    );
    let Ok(expected) = expected else {
        return;
    };
    let offsets: Vec<Option<isize>> = (numbers.iter())
        .map(|&number| {
            let is_slice = number != N::SKIPPED;
            let number = isize::try_from(number.get()).unwrap_or(isize::MAX);
            is_slice.then(|| scale.base + number * scale.unit)
        })
        .collect();
    assert_eq!(offsets, *expected, "{case}");
}

#[test]
fn every_method_numbers_tuples_like_the_reference() {
    let values: Vec<i32> = (0..9000).map(|at| at * 7 % 11 - 5).collect();
    let small: Vec<i32> = (0..9000).map(|at| at * 7 % 5 - 2).collect();
    let mut wrong_at_last = vec![0; 9000];
    wrong_at_last[599] = 9;
    // Values near the ends of the axes and of the type.
    let limits = [
        i32::MIN,
        i32::MAX,
        0,
        -1,
        -6,
        6,
        i32::MIN + 1,
        -5,
        -4,
        -3,
        5,
        4,
        3,
    ];
    let extreme: Vec<i32> = limits.into_iter().cycle().take(9000).collect();
    let (mut fine, mut all) = (0, 0);
    for (form, shape) in forms() {
        for steps in [
            None,
            Some([1, 1, 1]),
            Some([2, 3, 1]),
            Some([0, 2, 3]),
            Some([1, 0, 2]),
        ] {
            let strides: Option<Vec<isize>> = steps.map(|steps| {
                let behind = |axis| shape[axis + 1..].iter().product::<usize>().cast_signed();
                (0..shape.len())
                    .map(|axis| behind(axis) * steps[axis])
                    .collect()
            });
            for values in [&values, &small, &wrong_at_last, &extreme] {
                for (bounds, negatives_wrap) in [
                    (Bounds::Error, true),
                    (Bounds::Error, false),
                    (Bounds::Skip, true),
                    (Bounds::Skip, false),
                    (Bounds::Clamp, true),
                    (Bounds::Clamp, false),
                ] {
                    let padded = Layout::strided(&SHAPE, &[50, -7, 1]).expect("equal ranks");
                    for output in [Layout::contiguous(&SHAPE), padded] {
                        let rules = IndexRules::new(negatives_wrap, bounds);
                        let strides = strides.as_deref();
                        let list = List {
                            form,
                            shape,
                            strides,
                            values,
                            output,
                            rules,
                        };
                        let case =
                            format!("{form:?}, {shape:?}, {strides:?}, {output:?}, {rules:?}");
                        fine += usize::from(list.check(&case));
                        all += 1;
                    }
                }
            }
        }
    }
    assert!(
        fine > all / 2 && fine < all,
        "{fine} of {all} without an error"
    );
}

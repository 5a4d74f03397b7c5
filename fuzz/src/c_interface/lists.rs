//! Writes and moves, which have a list of tensors.

use std::ptr::{from_ref, null};

use arbitrary::Unstructured;
use ndscatter::{Bounds, Duplicates, Reduction};
use ndscatter_c::*;

use super::calls::{
    change_operator, check_written, draw_indices, draw_type, element_type, index_type, operator,
    shape, values,
};
use super::conversions::{Conversion, Converted, draw_format};
use super::failures;
use super::options;
use super::reference::{Call, Operator};
use super::tensor::{Claim, Given, MOST_ELEMENTS, Tensor};
use crate::geometry::integer;

/// Allocates the memory of tensors. Returns `false` if a tensor cannot exist or is too large for a
/// call.
fn store<'a>(
    given: impl IntoIterator<Item = &'a mut Given>,
    next: &mut impl FnMut() -> u64,
) -> bool {
    given.into_iter().all(|given| {
        let is_small = match given.claim(false, true) {
            Claim::Impossible => false,
            Claim::Tensor(tensor) => tensor.count <= MOST_ELEMENTS,
            Claim::Refused => true,
        };
        if is_small {
            given.store(&mut *next);
        }
        is_small
    })
}

fn raw(given: &mut Given) -> Option<DLTensor> {
    (!given.is_null()).then(|| given.raw())
}

fn numbers(given: &Given, tensor: &Tensor) -> Vec<i128> {
    let elements = given.read(tensor).into_iter();
    elements
        .map(|bytes| integer(&bytes, tensor.dtype))
        .collect()
}

/// Moves of rows or slots.
#[derive(Debug)]
struct Moves {
    /// `None`: the rows are slots.
    axis: Option<i64>,
    lists: [Given; 2],
    tensors: Vec<Given>,
    options: options::Given,
}

impl Moves {
    fn draw(u: &mut Unstructured<'_>) -> arbitrary::Result<Self> {
        let axis = (!u.ratio(1, 3)?).then_some(u.int_in_range(0..=1_i64)?);
        let (rows, list) = (u.int_in_range(0..=6)?, shape(u, 0..=2)?);
        let mut tensors = Vec::new();
        for _ in 0..u.int_in_range(0..=3)? {
            let dtype = element_type(u)?;
            let mut shape = shape(u, 2..=4)?;
            match axis {
                Some(axis) => shape[axis as usize] = rows,
                None => (shape[0], shape[1]) = if u.arbitrary()? { (rows, 1) } else { (1, rows) },
            }
            tensors.push(Given::draw_any(u, dtype, &shape, false)?);
        }
        let types = [index_type(u)?, index_type(u)?];
        let lists = [
            Given::draw_any(u, types[0], &list, true)?,
            Given::draw_any(u, types[1], &list, true)?,
        ];
        let axis = match axis {
            Some(axis) if u.ratio(1, 8)? => Some(axis + u.int_in_range(-9..=9)?),
            axis => axis,
        };
        Ok(Self {
            axis,
            lists,
            tensors,
            options: options::Given::draw(u)?,
        })
    }

    /// Returns the tensors after the moves. `None`: the call must fail.
    fn expected(&self) -> Option<Vec<(Tensor, Vec<Vec<u8>>)>> {
        let meaning = self.options.meaning?;
        if meaning.reduction != Reduction::None || meaning.bounds == Bounds::Clamp {
            return None;
        }
        let claim = |given: &Given, is_written| match given.claim(is_written, true) {
            Claim::Tensor(tensor) => Some(tensor),
            _ => None,
        };
        let [from, to] = self.lists.each_ref().map(|list| claim(list, false));
        let (from, to) = (from?, to?);
        if from.shape() != to.shape() || !from.dtype.is_index() || !to.dtype.is_index() {
            return None;
        }
        let all = self.tensors.iter().map(|given| claim(given, true));
        let all = all.collect::<Option<Vec<_>>>()?;
        let rows = all.iter().map(|tensor| self.rows(tensor.shape()));
        let rows = rows.collect::<Option<Vec<_>>>()?;
        // Without tensors, every number is in bounds that is not negative and not 2^64 - 1.
        let count = rows.first().map_or(usize::MAX, |rows| rows.1) as i128;
        if rows.iter().any(|rows| rows.1 as i128 != count) {
            return None;
        }
        let moves = self.moves(&meaning, [&from, &to], count)?;
        let moved = all.into_iter().zip(rows).zip(&self.tensors);
        Some(
            moved
                .map(|((tensor, rows), given)| {
                    let after = moved_rows(given.read(&tensor), rows, &moves);
                    (tensor, after)
                })
                .collect(),
        )
    }

    /// Returns the moves that are made, as rows from and to. `None`: the lists are invalid.
    fn moves(
        &self,
        meaning: &options::Meaning,
        [from, to]: [&Tensor; 2],
        count: i128,
    ) -> Option<Vec<(usize, usize)>> {
        let skips = |row: i128| match meaning.bounds {
            Bounds::Skip => !(0..count).contains(&row),
            Bounds::SkipNegative => row < 0,
            _ => false,
        };
        let is_bad = |row: i128| !(0..count).contains(&row) && !skips(row);
        let rejects = meaning.duplicates == Duplicates::Reject;
        let mut moves: Vec<(usize, usize)> = Vec::new();
        let to = numbers(&self.lists[1], to);
        for (from, to) in numbers(&self.lists[0], from).into_iter().zip(to) {
            if is_bad(from) || is_bad(to) {
                return None;
            }
            if skips(from) || skips(to) {
                continue;
            }
            let to = usize::try_from(to).ok()?;
            if rejects && moves.iter().any(|other| other.1 == to) {
                return None;
            }
            moves.push((usize::try_from(from).ok()?, to));
        }
        Some(moves)
    }

    /// Returns the number of positions before the axis of the rows, and the number of rows.
    fn rows(&self, shape: &[usize]) -> Option<(usize, usize)> {
        let product = |sizes: &[usize]| sizes.iter().product();
        let Some(axis) = self.axis else {
            return (shape.len() >= 2).then(|| (1, product(&shape[..2])));
        };
        let rank = shape.len() as i64;
        let is_valid = (-rank..rank).contains(&axis);
        is_valid.then(|| {
            let axis = axis.rem_euclid(rank) as usize;
            (product(&shape[..axis]), shape[axis])
        })
    }

    fn run(&mut self) -> nds_status {
        let lists = self.lists.each_mut().map(raw);
        let [from, to] = lists
            .each_ref()
            .map(|list| list.as_ref().map_or(null(), from_ref));
        let mut tensors: Vec<_> = self.tensors.iter_mut().map(raw).collect();
        let pointer = |tensor: &mut Option<DLTensor>| {
            tensor
                .as_mut()
                .map_or(std::ptr::null_mut(), |tensor| &raw mut *tensor)
        };
        let pointers: Vec<_> = tensors.iter_mut().map(pointer).collect();
        let (all, count, options) = (pointers.as_ptr(), pointers.len(), self.options.raw());
        // SAFETY: every pointer is null or points to a struct of its type, and `all` points to
        // `count` pointers. `store` has allocated the memory that each valid description covers.
        unsafe {
            match self.axis {
                Some(axis) => nds_move_rows(from, to, axis, all, count, options),
                None => nds_move_slots(from, to, all, count, options),
            }
        }
    }
}

/// Returns the elements of a tensor after the moves. `outer` positions come before the axis of the
/// rows.
fn moved_rows(
    before: Vec<Vec<u8>>,
    (outer, rows): (usize, usize),
    moves: &[(usize, usize)],
) -> Vec<Vec<u8>> {
    let mut after = before.clone();
    if before.is_empty() {
        return after;
    }
    let window = before.len() / (outer * rows);
    for &(from, to) in moves {
        for outer in 0..outer {
            let row = |row: usize| (outer * rows + row) * window;
            after[row(to)..][..window].clone_from_slice(&before[row(from)..][..window]);
        }
    }
    after
}

/// Makes a call and checks its status, the moved rows and its failure.
pub(crate) fn moves(u: &mut Unstructured<'_>) -> arbitrary::Result<()> {
    let mut case = Moves::draw(u)?;
    let mut next = values(u)?;
    if !store(case.lists.iter_mut().chain(&mut case.tensors), &mut next) {
        return Ok(());
    }
    for list in &mut case.lists {
        draw_indices(u, list)?;
    }
    let (expected, lists, before) = (case.expected(), case.lists.clone(), case.tensors.clone());
    let status = case.run();
    let may_fail = case.options.has_failing_pool();
    if !failures::check_call(status, may_fail, Some(expected.is_some()), &case) {
        return Ok(());
    }
    let mut inputs = case.lists.iter().zip(&lists);
    assert!(
        inputs.all(|(list, before)| list.is_unchanged(before)),
        "{case:?}"
    );
    let expected = expected.map_or(vec![], |all| all.into_iter().map(Some).collect());
    for (at, (given, before)) in case.tensors.iter().zip(&before).enumerate() {
        match expected.get(at) {
            Some(Some((tensor, after))) => check_written(given, before, tensor, after, false),
            _ => assert!(given.is_unchanged(before), "tensor {at}: {case:?}"),
        }
    }
    Ok(())
}

/// One write of a call.
#[derive(Clone, Debug)]
struct Write {
    data: Given,
    updates: Given,
    conversion: Option<Conversion>,
}

#[derive(Debug)]
struct Writes {
    operator: Operator,
    is_planned: bool,
    indices: Given,
    writes: Vec<Write>,
    /// Size that each write declares.
    size: u32,
    options: options::Given,
}

impl Writes {
    fn draw(u: &mut Unstructured<'_>) -> arbitrary::Result<Self> {
        let data = shape(u, 0..=3)?;
        let (mut operator, list, listed) = operator(u, &data, true)?;
        if u.ratio(1, 16)? {
            change_operator(u, &mut operator)?;
        }
        let mut writes = Vec::new();
        for _ in 0..u.int_in_range(0..=3)? {
            let converts = u.ratio(1, 2)?;
            let (dtype, format) = match converts {
                true => draw_format(u)?,
                false => (element_type(u)?, 0),
            };
            let floats = draw_type(u, &[(2, 32), (2, 16), (4, 16)])?;
            let mut shape = listed.clone();
            // Two 4-bit integers are one element of data.
            if let Some(last) = shape.last_mut().filter(|_| converts)
                && (format >= 8) != u.ratio(1, 12)?
            {
                *last *= 2;
            }
            writes.push(Write {
                data: Given::draw_any(u, dtype, &data, false)?,
                updates: Given::draw_any(u, if converts { floats } else { dtype }, &shape, true)?,
                conversion: converts
                    .then(|| Conversion::draw(u, format, &shape))
                    .transpose()?,
            });
        }
        let index = index_type(u)?;
        let whole = u32::try_from(size_of::<nds_write>()).expect("a small size");
        Ok(Self {
            operator,
            is_planned: u.ratio(1, 5)?,
            indices: Given::draw_any(u, index, &list, true)?,
            writes,
            size: if u.ratio(1, 8)? {
                u.int_in_range(0..=whole + 16)?
            } else {
                whole
            },
            options: options::Given::draw(u)?,
        })
    }

    fn tensors(&mut self) -> Vec<&mut Given> {
        let mut all = vec![&mut self.indices];
        for Write {
            data,
            updates,
            conversion,
        } in &mut self.writes
        {
            all.extend([data, updates]);
            if let Some(Conversion {
                scale, zero_point, ..
            }) = conversion
            {
                all.extend(scale.iter_mut().chain(zero_point));
            }
        }
        all
    }

    /// Returns data of each write after the call. `None`: the call must fail.
    fn expected(&self) -> Option<Vec<Vec<Vec<u8>>>> {
        let meaning = self.options.meaning?;
        let is_size_valid = self.size as usize >= size_of::<nds_write>();
        if meaning.reduction != Reduction::None || !is_size_valid {
            return None;
        }
        let claim = |given: &Given, is_written| match given.claim(is_written, true) {
            Claim::Tensor(tensor) => Some(tensor),
            _ => None,
        };
        let at = claim(&self.indices, false)?;
        let indices = match at.dtype.is_index() {
            true => numbers(&self.indices, &at),
            false => vec![],
        };
        let of_write = |write: &Write| {
            let (to, from) = (claim(&write.data, true)?, claim(&write.updates, false)?);
            let converted = match &write.conversion {
                Some(conversion) => conversion.convert(&to, &write.updates, &from)?,
                None => Converted {
                    shape: (to.given == from.given).then(|| from.shape().to_vec())?,
                    elements: write.updates.read(&from),
                    is_packed: false,
                },
            };
            let call = Call {
                operator: self.operator,
                meaning,
                is_gather: false,
                data: &to,
                indices: Some(&at),
                listed: &converted.shape,
            };
            let positions = call.positions(&indices)?;
            if converted.is_packed && !self.has_last_axis_in_window(to.shape().len(), &at) {
                return None;
            }
            let mut elements = write.data.read(&to);
            for (to, update) in positions.into_iter().zip(converted.elements) {
                if let Some(to) = to {
                    elements[to] = update;
                }
            }
            Some(elements)
        };
        self.writes.iter().map(of_write).collect()
    }

    /// Whether the last axis of data is in the window. The operator must be valid.
    fn has_last_axis_in_window(&self, rank: usize, indices: &Tensor) -> bool {
        match self.operator {
            Operator::Along { axis } => axis != -1 && axis != rank as i64 - 1,
            Operator::Paged => rank > 2,
            _ => indices.shape().last().is_some_and(|&count| count < rank),
        }
    }

    fn run(&mut self) -> nds_status {
        let indices = raw(&mut self.indices);
        let at = indices.as_ref().map_or(null(), from_ref);
        let mut tensors = Vec::new();
        for Write {
            data,
            updates,
            conversion,
        } in &mut self.writes
        {
            let (data, updates) = (raw(data), raw(updates));
            let conversion = conversion.as_mut().map(|conversion| {
                let of = |given: &mut Option<Given>| given.as_mut().and_then(raw);
                let Conversion {
                    numbers,
                    scale,
                    zero_point,
                } = conversion;
                (*numbers, [of(scale), of(zero_point)])
            });
            tensors.push((data, updates, conversion));
        }
        let pointer = |tensor: &Option<DLTensor>| tensor.as_ref().map_or(null(), from_ref);
        let conversions =
            tensors.iter().map(|(_, _, conversion)| {
                conversion.as_ref().map(
                    |([size, format, rounding, scaling], [scale, zero_point])| nds_conversion {
                        size: size.cast_unsigned(),
                        format: *format,
                        rounding: *rounding,
                        scaling: *scaling,
                        scale: pointer(scale),
                        zero_point: pointer(zero_point),
                    },
                )
            });
        let conversions: Vec<_> = conversions.collect();
        let distance = (self.size as usize).max(4);
        let whole = size_of::<nds_write>();
        let mut bytes = vec![0_u8; self.writes.len() * distance];
        for ((data, updates, _), (place, conversion)) in tensors
            .iter()
            .zip(bytes.chunks_mut(distance).zip(&conversions))
        {
            let write = nds_write {
                size: self.size,
                data: pointer(data).cast_mut(),
                updates: pointer(updates),
                conversion: conversion.as_ref().map_or(null(), from_ref),
            };
            let kept = place.len().min(whole);
            // SAFETY: both have at least `kept` bytes. The padding of the struct is not read.
            unsafe {
                let from = (&raw const write).cast::<u8>();
                place.as_mut_ptr().copy_from_nonoverlapping(from, 4);
                if kept > 8 {
                    let to = place.as_mut_ptr().add(8);
                    to.copy_from_nonoverlapping(from.add(8), kept - 8);
                }
            }
        }
        let (writes, count, options) =
            (bytes.as_ptr().cast(), self.writes.len(), self.options.raw());
        // SAFETY: every pointer is null or points to a struct of its type. The pointer `writes`
        // points to `count` writes of the declared size. The function `store` has allocated the
        // memory that each valid description covers.
        unsafe {
            if self.is_planned {
                return self.run_planned(at, writes, count);
            }
            match self.operator {
                Operator::Along { axis } => nds_write_update(at, axis, writes, count, options),
                Operator::Paged => nds_write_paged(at, writes, count, options),
                _ => nds_write_nd(at, writes, count, options),
            }
        }
    }

    /// Makes a plan for the layout of the first data, and runs all writes with it.
    ///
    /// # Safety
    ///
    /// The pointers are null or valid.
    unsafe fn run_planned(
        &self,
        at: *const DLTensor,
        writes: *const nds_write,
        count: usize,
    ) -> nds_status {
        let mut plan = std::ptr::null_mut();
        let mut first = self.writes.first().map(|write| write.data.clone());
        let first = first.as_mut().and_then(raw);
        let (of, to) = (first.as_ref().map_or(null(), from_ref), &raw mut plan);
        let options = self.options.raw();
        // SAFETY: the pointers are null or valid (contract of this function). A plan is not used
        // after it was freed.
        unsafe {
            let made = match self.operator {
                Operator::Along { axis } => nds_plan_scatter_update(of, at, axis, options, to),
                Operator::Paged => nds_plan_scatter_paged(of, at, options, to),
                _ => nds_plan_scatter_nd(of, at, options, to),
            };
            if made != nds_status::NDS_OK {
                assert!(plan.is_null(), "a plan after a failure");
                return made;
            }
            let status = nds_plan_write(plan, writes, count, options);
            nds_plan_free(plan);
            status
        }
    }
}

/// Makes a call and checks its status, its result and its failure.
pub(crate) fn writes(u: &mut Unstructured<'_>) -> arbitrary::Result<()> {
    let mut case = Writes::draw(u)?;
    let mut next = values(u)?;
    let is_unused = matches!(case.operator, Operator::Elements { .. });
    let is_long = case.is_planned && case.indices.is_long_list();
    if is_unused || is_long || !store(case.tensors(), &mut next) {
        return Ok(());
    }
    draw_indices(u, &mut case.indices)?;
    for write in &mut case.writes {
        if let Some(conversion) = &mut write.conversion
            && let Some(zero_point) = &mut conversion.zero_point
        {
            draw_indices(u, zero_point)?;
        }
    }
    let (expected, before) = (
        case.expected(),
        case.tensors()
            .into_iter()
            .map(|given| given.clone())
            .collect::<Vec<_>>(),
    );
    let status = case.run();
    // A call without writes need not check its indices. A plan is for the layout of the first data, and
    // the model does not compare layouts.
    let is_known = case.writes.len() == 1 || !case.is_planned && !case.writes.is_empty();
    let is_valid = is_known.then_some(expected.is_some());
    let may_fail = case.options.has_failing_pool();
    if !failures::check_call(status, may_fail, is_valid, &case) {
        return Ok(());
    }
    let is_ok = status == nds_status::NDS_OK;
    let mut at = 1;
    let unchanged =
        |given: &Given, before: &Given| assert!(given.is_unchanged(before), "{before:?}");
    unchanged(&case.indices, &before[0]);
    for (number, write) in case.writes.iter().enumerate() {
        let Write {
            data,
            updates,
            conversion,
        } = write;
        match data.claim(true, true) {
            Claim::Tensor(tensor) if is_ok => {
                let after = expected.as_ref().map(|all| &all[number]);
                let after = after.expect("the model refuses this call");
                // The bits of a NaN are not specified in the formats of floats of 16 and 32 bits.
                check_written(data, &before[at], &tensor, after, conversion.is_some());
            }
            _ => unchanged(data, &before[at]),
        }
        unchanged(updates, &before[at + 1]);
        at += 2;
        for given in conversion
            .iter()
            .flat_map(|all| all.scale.iter().chain(&all.zero_point))
        {
            unchanged(given, &before[at]);
            at += 1;
        }
    }
    Ok(())
}

//! Scatters and gathers, with and without plans.

use std::ptr::{from_ref, null, null_mut};

use arbitrary::Unstructured;
use ndscatter::{
    AnyView, AnyViewMut, CallingThread, DType, Execution, Layout, Reduction, Scatter, ScatterError,
};
use ndscatter_c::*;

use super::failures;
use super::options::{self, Meaning};
use super::reference::{Call, Operator, same, step};
use super::tensor::{Claim, Given, MOST_ELEMENTS, Tensor};
use crate::geometry::{bytes_of, integer};

/// The types that tensors of a case have before a change.
const TYPES: [(u8, u8); 17] = [
    (0, 8),
    (0, 16),
    (0, 32),
    (0, 64),
    (1, 8),
    (1, 16),
    (1, 32),
    (1, 64),
    (2, 16),
    (2, 32),
    (2, 64),
    (4, 16),
    (5, 64),
    (5, 128),
    (6, 8),
    (10, 8),
    (17, 128),
];

pub(crate) fn draw_type(
    u: &mut Unstructured<'_>,
    among: &[(u8, u8)],
) -> arbitrary::Result<DLDataType> {
    let &(code, bits) = u.choose(among)?;
    Ok(DLDataType {
        code,
        bits,
        lanes: 1,
    })
}

/// Draws an element type.
pub(crate) fn element_type(u: &mut Unstructured<'_>) -> arbitrary::Result<DLDataType> {
    match u.ratio(1, 2)? {
        true => draw_type(u, &[(2, 32), (0, 32), (0, 64)]),
        false => draw_type(u, &TYPES),
    }
}

/// Draws the type of indices.
pub(crate) fn index_type(u: &mut Unstructured<'_>) -> arbitrary::Result<DLDataType> {
    draw_type(u, &TYPES[..8])
}

pub(crate) fn shape(
    u: &mut Unstructured<'_>,
    ranks: std::ops::RangeInclusive<usize>,
) -> arbitrary::Result<Vec<usize>> {
    let rank = u.int_in_range(ranks)?;
    (0..rank).map(|_| u.int_in_range(0..=4)).collect()
}

/// Returns a source of different bytes. Small numbers are frequent.
pub(crate) fn values(u: &mut Unstructured<'_>) -> arbitrary::Result<impl FnMut() -> u64 + use<>> {
    let (mut state, are_small) = (u.arbitrary::<u64>()? | 1, u.ratio(3, 4)?);
    Ok(move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        match are_small {
            // Two floats between 1 and 2, which are also integers without a small multiple.
            true => state & 0x003f_0000_003f_0000 | 0x3f80_0000_3f80_0000,
            false => state,
        }
    })
}

/// Writes small numbers to indices, if they are integers.
pub(crate) fn draw_indices(u: &mut Unstructured<'_>, given: &mut Given) -> arbitrary::Result<()> {
    let Claim::Tensor(tensor) = given.claim(false, true) else {
        return Ok(());
    };
    if !tensor.dtype.is_index() || tensor.count > MOST_ELEMENTS || u.ratio(1, 16)? {
        return Ok(());
    }
    let negative = u.ratio(1, 2)?;
    let most = u.int_in_range(1..=5_i128)?;
    let least = if negative { -most } else { 0 };
    let size = tensor.dtype.size();
    let draw = (0..tensor.count).map(|_| u.int_in_range(least..=most - 1));
    let draw = draw.collect::<Result<Vec<_>, _>>()?;
    let elements = draw.iter().map(|&number| bytes_of(number, size));
    given.write(&tensor, &elements.collect::<Vec<_>>());
    Ok(())
}

/// Draws an operator, the shape of its indices, and the shape of updates or of a gather's output.
pub(crate) fn operator(
    u: &mut Unstructured<'_>,
    data: &[usize],
    is_gather: bool,
) -> arbitrary::Result<(Operator, Vec<usize>, Vec<usize>)> {
    let rank = data.len();
    let at = if rank == 0 { 0 } else { u.choose_index(rank)? };
    let axis = if u.arbitrary()? {
        at as i64
    } else {
        at as i64 - rank as i64
    };
    let list = shape(u, 0..=2)?;
    let axis_of = |at: usize| data.get(at + 1..).unwrap_or_default();
    let outer = data.get(..at).unwrap_or_default();
    Ok(match u.int_in_range(0..=4)? {
        0 => {
            let batch = if is_gather && rank > 0 {
                u.int_in_range(0..=1)?
            } else {
                0
            };
            let k = u.int_in_range(0..=rank - batch)?;
            let list = [&data[..batch], &list[..], &[k]].concat();
            let listed = [&list[..list.len() - 1], &data[batch + k..]].concat();
            (
                Operator::Nd {
                    batch_dims: batch as i64,
                },
                list,
                listed,
            )
        }
        1 => {
            let listed = [outer, &list, axis_of(at)].concat();
            (Operator::Along { axis }, list, listed)
        }
        2 => {
            let mut list = data.to_vec();
            for (other, size) in list.iter_mut().enumerate() {
                let most = if other == at { 5 } else { *size };
                let whole = other != at && u.ratio(1, 2)?;
                *size = if whole {
                    most
                } else {
                    u.int_in_range(0..=most)?
                };
            }
            (Operator::Elements { axis }, list.clone(), list)
        }
        3 if !is_gather => {
            let list = data[..rank.min(u.int_in_range(0..=1)?)].to_vec();
            let mut listed = data.to_vec();
            if let Some(rows) = listed.get_mut(at) {
                *rows = u.int_in_range(0..=*rows)?;
            }
            let circular = u.int_in_range(0..=1)?;
            (Operator::Cache { axis, circular }, list, listed)
        }
        _ => {
            let listed = [&list, data.get(2..).unwrap_or_default()].concat();
            (Operator::Paged, list, listed)
        }
    })
}

/// Changes an argument of the operator.
pub(crate) fn change_operator(
    u: &mut Unstructured<'_>,
    operator: &mut Operator,
) -> arbitrary::Result<()> {
    let value = if u.arbitrary()? {
        u.int_in_range(-5..=5)?
    } else {
        u.arbitrary()?
    };
    match operator {
        Operator::Nd { batch_dims } => *batch_dims = value,
        Operator::Along { axis } | Operator::Elements { axis } => *axis = value,
        Operator::Cache { axis, .. } if u.arbitrary()? => *axis = value,
        Operator::Cache { circular, .. } => *circular = u.arbitrary()?,
        Operator::Paged => {}
    }
    Ok(())
}

/// The tensors of a scatter or gather.
#[derive(Clone, Debug)]
struct Tensors {
    data: Given,
    /// A null tensor is valid for `nds_tensor_scatter` only.
    indices: Given,
    /// Not used by a gather.
    updates: Given,
    /// `None`: the output is data.
    output: Option<Given>,
}

#[derive(Debug)]
struct Case {
    operator: Operator,
    is_gather: bool,
    is_planned: bool,
    options: options::Given,
    tensors: Tensors,
}

impl Case {
    fn draw(u: &mut Unstructured<'_>) -> arbitrary::Result<Self> {
        let (is_gather, is_planned) = (u.ratio(1, 3)?, u.ratio(1, 4)?);
        let (dtype, index) = (element_type(u)?, index_type(u)?);
        let data_shape = shape(u, 0..=4)?;
        let (mut operator, list, listed) = operator(u, &data_shape, is_gather)?;
        let output_shape = if is_gather { &listed } else { &data_shape };
        let output = match !is_gather && u.ratio(1, 3)? {
            true => None,
            false => Some(Given::draw(u, dtype, output_shape, false)?),
        };
        let mut tensors = Tensors {
            data: Given::draw(u, dtype, &data_shape, output.is_some())?,
            indices: Given::draw(u, index, &list, true)?,
            updates: Given::draw(u, dtype, &listed, true)?,
            output,
        };
        let mut options = options::Given::draw(u)?;
        // A case without a change needs options that the function has.
        if options
            .meaning
            .is_some_and(|meaning| is_gather && meaning.reduction != Reduction::None)
            && u.ratio(3, 4)?
        {
            options = options::Given::draw(u)?;
        }
        for _ in 0..u.int_in_range(0..=3_usize)?.saturating_sub(1) {
            let output = tensors.output.as_mut();
            match u.int_in_range(0..=4)? {
                0 => change_operator(u, &mut operator)?,
                1 => tensors.data.change(u)?,
                2 => tensors.indices.change(u)?,
                3 => tensors.updates.change(u)?,
                _ => output.map_or(Ok(()), |output| output.change(u))?,
            }
        }
        let is_planned = is_planned && !matches!(operator, Operator::Cache { .. });
        Ok(Self {
            operator,
            is_gather,
            is_planned,
            options,
            tensors,
        })
    }

    /// Allocates the memory of the tensors. Returns `false` if a tensor cannot exist, or a plan would
    /// need much memory.
    fn store(&mut self, u: &mut Unstructured<'_>) -> arbitrary::Result<bool> {
        if self.is_planned && self.tensors.indices.is_long_list() {
            return Ok(false);
        }
        let mut next = values(u)?;
        let Tensors {
            data,
            indices,
            updates,
            output,
        } = &mut self.tensors;
        for given in [data, indices, updates].into_iter().chain(output) {
            if matches!(given.claim(false, true), Claim::Impossible) {
                return Ok(false);
            }
            given.store(&mut next);
        }
        draw_indices(u, &mut self.tensors.indices)?;
        Ok(true)
    }

    /// Returns what the call must do: fail, or write these elements to the output. Returns `None` if
    /// a valid call would take too long.
    fn expected(&self) -> Option<Option<Vec<Vec<u8>>>> {
        let Tensors {
            data,
            indices,
            updates,
            output,
        } = &self.tensors;
        let Some(meaning) = self.options.meaning else {
            return Some(None);
        };
        let written = output.as_ref().unwrap_or(data);
        let is_cache = matches!(self.operator, Operator::Cache { .. });
        let claims = [
            data.claim(output.is_none(), true),
            indices.claim(false, true),
            match self.is_gather {
                true => written.claim(true, true),
                false => updates.claim(false, true),
            },
            written.claim(true, true),
        ];
        let [
            Claim::Tensor(from),
            at,
            Claim::Tensor(listed),
            Claim::Tensor(to),
        ] = claims
        else {
            return Some(None);
        };
        let at = match at {
            Claim::Tensor(at) => Some(at),
            _ if indices.is_null() && is_cache => None,
            _ => return Some(None),
        };
        let call = Call {
            operator: self.operator,
            meaning,
            is_gather: self.is_gather,
            data: &from,
            indices: at.as_ref(),
            listed: listed.shape(),
        };
        let fits = from.given == to.given
            && (self.is_gather || from.given == listed.given && from.shape() == to.shape());
        if !fits || !call.is_valid() {
            return Some(None);
        }
        let tensors = [Some(&from), at.as_ref(), Some(&listed)];
        if tensors
            .into_iter()
            .flatten()
            .any(|tensor| tensor.count > MOST_ELEMENTS)
        {
            return None;
        }
        let read = |at: &Tensor| {
            let elements = indices.read(at).into_iter();
            elements.map(|bytes| integer(&bytes, at.dtype)).collect()
        };
        let numbers: Vec<i128> = at.as_ref().map_or(vec![0], read);
        let Some(positions) = call.positions(&numbers) else {
            return Some(None);
        };
        let data = data.read(&from);
        if self.is_gather {
            let zero = vec![0; from.dtype.size()];
            let element = |at: &Option<usize>| at.map_or(zero.clone(), |at| data[at].clone());
            return Some(Some(positions.iter().map(element).collect()));
        }
        let updates = updates.read(&listed);
        Some(Some(scatter(
            &meaning, from.dtype, data, &positions, &updates,
        )))
    }

    /// Calls the function of C. Makes and runs a plan if the case has one.
    fn run(&mut self) -> nds_status {
        let Tensors {
            data,
            indices,
            updates,
            output,
        } = &mut self.tensors;
        let raw = |given: &mut Given| (!given.is_null()).then(|| given.raw());
        let [data, indices, updates] = [data, indices, updates].map(raw);
        let mut output = output.as_mut().map_or(data, raw);
        let pointer = |tensor: &Option<DLTensor>| tensor.as_ref().map_or(null(), from_ref);
        let [d, i, u] = [&data, &indices, &updates].map(pointer);
        let out = output
            .as_mut()
            .map_or(null_mut(), |tensor| &raw mut *tensor);
        let options = self.options.raw();
        // SAFETY: every pointer is null or points to a struct of its type. `Given::store` has
        // allocated the memory that each valid description covers. The options have the bytes of
        // the size that they declare, but at least four.
        unsafe {
            if self.is_planned {
                return self.run_planned([d, i, u], out);
            }
            match (self.operator, self.is_gather) {
                (Operator::Nd { batch_dims }, true) => {
                    nds_gather_nd(d, i, batch_dims, out, options)
                }
                (Operator::Along { axis }, true) => nds_gather(d, i, axis, out, options),
                (Operator::Elements { axis }, true) => {
                    nds_gather_elements(d, i, axis, out, options)
                }
                (Operator::Nd { .. }, false) => nds_scatter_nd(d, i, u, out, options),
                (Operator::Along { axis }, false) => {
                    nds_scatter_update(d, i, u, axis, out, options)
                }
                (Operator::Elements { axis }, false) => {
                    nds_scatter_elements(d, i, u, axis, out, options)
                }
                (Operator::Cache { axis, circular }, _) => {
                    nds_tensor_scatter(d, u, i, axis, circular, out, options)
                }
                (Operator::Paged, true) => nds_gather_paged(d, i, out, options),
                (Operator::Paged, false) => nds_scatter_paged(d, i, u, out, options),
            }
        }
    }

    /// Whether memory can hold the layout for which the case makes a plan.
    fn fits_in_memory(&self) -> bool {
        let Tensors { data, output, .. } = &self.tensors;
        let written = output.as_ref().unwrap_or(data);
        let of = if self.is_gather { data } else { written };
        !matches!(of.claim(false, true), Claim::Refused)
    }

    /// Makes a plan, explains it, runs it and frees it. The plan of a gather is for the layout of
    /// data, and that of a scatter for the layout of the output.
    ///
    /// # Safety
    ///
    /// The pointers are null or valid.
    unsafe fn run_planned(
        &self,
        [d, i, u]: [*const DLTensor; 3],
        out: *mut DLTensor,
    ) -> nds_status {
        let options = self.options.raw();
        let (mut plan, of) = (
            null_mut(),
            if self.is_gather { d } else { out.cast_const() },
        );
        // SAFETY: the pointers are null or valid (contract of this function). The plan is not used
        // after it was freed.
        unsafe {
            let to = &raw mut plan;
            let made = match (self.operator, self.is_gather) {
                (Operator::Nd { batch_dims }, true) => {
                    nds_plan_gather_nd(of, i, batch_dims, options, to)
                }
                (Operator::Along { axis }, true) => nds_plan_gather(of, i, axis, options, to),
                (Operator::Elements { axis }, true) => {
                    nds_plan_gather_elements(of, i, axis, options, to)
                }
                (Operator::Paged, true) => nds_plan_gather_paged(of, i, options, to),
                (Operator::Nd { .. }, false) => nds_plan_scatter_nd(of, i, options, to),
                (Operator::Along { axis }, false) => {
                    nds_plan_scatter_update(of, i, axis, options, to)
                }
                (Operator::Elements { axis }, false) => {
                    nds_plan_scatter_elements(of, i, axis, options, to)
                }
                (Operator::Paged, false) => nds_plan_scatter_paged(of, i, options, to),
                (Operator::Cache { .. }, _) => unreachable!("a cache has no plan"),
            };
            if made != nds_status::NDS_OK {
                assert!(plan.is_null(), "a plan after a failure");
                return made;
            }
            explain(plan, self.fits_in_memory());
            let updates = if self.is_gather { null() } else { u };
            let status = nds_plan_run(plan, d, updates, out, options);
            nds_plan_free(plan);
            status
        }
    }
}

/// Reads the explanation of a plan into buffers that are long enough and too short. A plan for a
/// layout that no memory can hold has no explanation.
///
/// # Safety
///
/// The plan is valid.
unsafe fn explain(plan: *const nds_plan, fits_in_memory: bool) {
    // SAFETY: the buffer has the length that is passed, and the plan is valid (contract).
    unsafe {
        let mut length = 0;
        let status = nds_plan_explain(plan, null_mut(), &raw mut length);
        assert_eq!(status, nds_status::NDS_INVALID_ARGUMENT);
        if length == 0 {
            assert!(!fits_in_memory, "{}", failures::message());
            return failures::check(status, false);
        }
        let mut text = vec![1_u8; length];
        let status = nds_plan_explain(plan, text.as_mut_ptr().cast(), &raw mut length);
        assert_eq!((status, length), (nds_status::NDS_OK, text.len()));
        let text = String::from_utf8(text).expect("valid UTF-8");
        assert_eq!(text.find('\0'), Some(length - 1), "{text:?}");
        let mut short = vec![1_u8; length - 1];
        let mut room = short.len();
        let status = nds_plan_explain(plan, short.as_mut_ptr().cast(), &raw mut room);
        assert_eq!((status, room), (nds_status::NDS_INVALID_ARGUMENT, length));
        assert!(short.iter().all(|&byte| byte == 1), "nothing was written");
    }
}

/// Returns data after all updates.
fn scatter(
    meaning: &Meaning,
    dtype: DType,
    data: Vec<Vec<u8>>,
    positions: &[Option<usize>],
    updates: &[Vec<u8>],
) -> Vec<Vec<u8>> {
    let mut result = data.clone();
    let mut is_first = vec![true; data.len()];
    for (to, update) in positions.iter().zip(updates) {
        let &Some(to) = to else { continue };
        let first = std::mem::replace(&mut is_first[to], false);
        let current = match first && !meaning.include_self {
            false => &result[to],
            // A difference begins at 0.
            true if meaning.reduction == Reduction::Sub => &vec![0; update.len()],
            true => {
                result[to] = one(meaning.reduction, dtype, update);
                continue;
            }
        };
        match step(dtype, meaning.reduction, current, update) {
            Some(next) => result[to] = next,
            None => return of_crate(meaning, dtype, &data, positions, updates),
        }
    }
    result
}

/// Returns the value of a destination after a first update that replaces it.
fn one(reduction: Reduction, dtype: DType, update: &[u8]) -> Vec<u8> {
    match dtype {
        DType::Bool if reduction != Reduction::None => vec![u8::from(update != [0])],
        _ => update.to_vec(),
    }
}

/// Computes the result with the crate, one element after another, for reductions that
/// [`step`] does not have: means, complex numbers and 16-bit floats.
fn of_crate(
    meaning: &Meaning,
    dtype: DType,
    data: &[Vec<u8>],
    positions: &[Option<usize>],
    updates: &[Vec<u8>],
) -> Vec<Vec<u8>> {
    let applied = positions.iter().zip(updates);
    let applied = applied.filter_map(|(to, update)| to.map(|to| (to as u64, update)));
    let (indices, updates): (Vec<u64>, Vec<_>) = applied.unzip();
    let updates: Vec<u8> = updates.into_iter().flatten().copied().collect();
    let (mut words, mut result) = (aligned(&updates), aligned(&data.concat()));
    let scatter = Scatter::along(0)
        .reduction(meaning.reduction)
        .include_self(meaning.include_self)
        .accumulate(meaning.accumulate)
        .execution(Execution::new().pool(&CallingThread));
    let mut run = || -> Result<(), ScatterError> {
        let bytes = bytemuck::cast_slice_mut(&mut result);
        let output = AnyViewMut::from_bytes(bytes, dtype, Layout::line(data.len()))?;
        let bytes = bytemuck::cast_slice(&words);
        let updates = AnyView::from_bytes(bytes, dtype, Layout::line(indices.len()))?;
        scatter.in_place(output, ndscatter::TensorView::from(&indices), updates)
    };
    run().expect("a valid scatter");
    words.clear();
    let bytes: &[u8] = bytemuck::cast_slice(&result);
    let elements = bytes.chunks(dtype.size()).take(data.len());
    elements.map(<[u8]>::to_vec).collect()
}

/// Returns the bytes in memory that is aligned for every element type.
pub(crate) fn aligned(bytes: &[u8]) -> Vec<u64> {
    let mut words = vec![0; bytes.len().div_ceil(8)];
    bytemuck::cast_slice_mut(&mut words)[..bytes.len()].copy_from_slice(bytes);
    words
}

/// Checks a tensor that the call wrote, or that the call must not have changed.
pub(crate) fn check_written(
    given: &Given,
    before: &Given,
    tensor: &Tensor,
    elements: &[Vec<u8>],
    with_nan: bool,
) {
    let mut expected = before.clone();
    let got = given.read(tensor);
    let pairs = got.iter().zip(elements).enumerate();
    for (at, (got, element)) in pairs {
        let equal = same(tensor.dtype, with_nan, got, element);
        assert!(
            equal,
            "element {at} is {got:?}, not {element:?}: {tensor:?}"
        );
    }
    assert_eq!(got.len(), elements.len(), "{tensor:?}");
    // The gaps between elements are unchanged.
    expected.write(tensor, &got);
    assert!(given.is_unchanged(&expected), "{tensor:?}");
}

/// Makes a call and checks its status, its result and its failure.
pub(crate) fn scatters_and_gathers(u: &mut Unstructured<'_>) -> arbitrary::Result<()> {
    let mut case = Case::draw(u)?;
    if !case.store(u)? {
        return Ok(());
    }
    let Some(expected) = case.expected() else {
        return Ok(());
    };
    let before = case.tensors.clone();
    let status = case.run();
    let may_fail = case.options.has_failing_pool();
    if !failures::check_call(status, may_fail, Some(expected.is_some()), &case) {
        return Ok(());
    }
    let Tensors {
        data,
        indices,
        updates,
        output,
    } = &case.tensors;
    assert!(indices.is_unchanged(&before.indices), "{case:?}");
    assert!(updates.is_unchanged(&before.updates), "{case:?}");
    let (written, old) = match (output, &before.output) {
        (Some(output), Some(old)) => {
            assert!(data.is_unchanged(&before.data), "{case:?}");
            (output, old)
        }
        _ => (data, &before.data),
    };
    match expected {
        None => assert!(written.is_unchanged(old), "{case:?}"),
        Some(elements) => {
            let Claim::Tensor(tensor) = written.claim(true, true) else {
                panic!("an invalid output: {case:?}");
            };
            let meaning = case.options.meaning.expect("valid options");
            let with_nan = meaning.reduction != Reduction::None;
            check_written(written, old, &tensor, &elements, with_nan);
        }
    }
    Ok(())
}

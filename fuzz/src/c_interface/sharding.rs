//! Plans of tables whose rows are divided among parts.

use std::ptr::{from_ref, null_mut};

use arbitrary::Unstructured;
use ndscatter::{DType, Reduction};
use ndscatter_c::*;

use super::calls::{draw_indices, draw_type, index_type, shape, values};
use super::failures;
use super::options;
use super::reference::{Call, Operator};
use super::tensor::{Claim, Given, MOST_ELEMENTS, Tensor};
use crate::geometry::{Geometry, integer};

/// A call that makes a sharded plan.
#[derive(Debug)]
struct Case {
    operator: Operator,
    is_gather: bool,
    data: Given,
    indices: Given,
    size: u32,
    rule: i32,
    parts: usize,
    starts: Option<Vec<i64>>,
    combine: i32,
    options: options::Given,
}

/// What a plan must contain.
#[derive(Debug, Default, PartialEq)]
struct Lists {
    counts: Vec<usize>,
    destinations: Vec<i64>,
    order: Option<Vec<i64>>,
    slots: Option<Vec<i64>>,
    reduction: i32,
    skipped: usize,
}

impl Case {
    fn draw(u: &mut Unstructured<'_>) -> arbitrary::Result<Self> {
        let operator = *u.choose(&[
            Operator::Along { axis: 0 },
            Operator::Nd { batch_dims: 0 },
            Operator::Paged,
        ])?;
        let (dtype, table) = (draw_type(u, &[(2, 32), (0, 8), (5, 64)])?, shape(u, 0..=3)?);
        let mut data = Given::draw(u, dtype, &table, true)?;
        let mut list = shape(u, 0..=2)?;
        if matches!(operator, Operator::Nd { .. }) {
            list.push(u.int_in_range(0..=2)?);
        }
        let dtype = index_type(u)?;
        let mut indices = Given::draw(u, dtype, &list, true)?;
        if u.ratio(1, 12)? {
            data.change(u)?;
        }
        if u.ratio(1, 12)? {
            indices.change(u)?;
        }
        let (mut rule, mut parts) = (u.int_in_range(0..=2)?, u.int_in_range(1..=9)?);
        let has_starts = rule == 2;
        let mut starts = vec![0];
        for part in 1..parts {
            starts.push(starts[part - 1] + u.int_in_range(0..=3_i64)?);
        }
        let mut size = u32::try_from(size_of::<nds_sharding>()).expect("a small size");
        let mut combine = u.int_in_range(0..=1)?;
        match u.int_in_range(0..=31)? {
            // More parts than starts would describe memory beyond the array.
            0 if !has_starts => parts = *u.choose(&[0, 1 << 32, usize::MAX])?,
            1 => starts[u.choose_index(parts)?] = u.arbitrary()?,
            2 if !has_starts => rule = u.arbitrary::<i32>()?.saturating_add(3),
            // A larger size would describe memory beyond the struct.
            3 => size = u.int_in_range(0..=size - 1)?,
            4 => combine = u.arbitrary()?,
            _ => {}
        }
        Ok(Self {
            operator,
            is_gather: u.arbitrary()?,
            data,
            indices,
            size,
            rule,
            parts,
            starts: (has_starts != u.ratio(1, 32)?).then_some(starts),
            combine,
            options: options::Given::draw(u)?,
        })
    }

    /// Returns the part and the position in this part of a row of a table of `rows` rows.
    fn owner(&self, row: usize, rows: usize) -> (usize, usize) {
        match (self.rule, &self.starts) {
            (0, _) => {
                let block = rows.div_ceil(self.parts);
                (row / block, row % block)
            }
            (1, _) => (row % self.parts, row / self.parts),
            (_, starts) => {
                let starts = starts.as_deref().unwrap_or_default();
                let is_before =
                    |&start: &i64| usize::try_from(start).is_ok_and(|start| start <= row);
                let part = starts
                    .iter()
                    .rposition(is_before)
                    .expect("the first start is 0");
                (
                    part,
                    row - usize::try_from(starts[part]).expect("no negative start"),
                )
            }
        }
    }

    fn is_division_valid(&self) -> bool {
        let ascends = |starts: &Vec<i64>| starts[0] == 0 && starts.is_sorted();
        self.size as usize == size_of::<nds_sharding>()
            && (0..=2).contains(&self.rule)
            && (1..1 << 32).contains(&self.parts)
            && match &self.starts {
                Some(starts) => self.rule == 2 && ascends(starts),
                None => self.rule != 2,
            }
    }

    /// Returns the slice of each tuple, and the number of slices of a row. `None`: the call must fail.
    fn slices(&self) -> Option<(Vec<Option<usize>>, usize)> {
        let Claim::Tensor(data) = self.data.claim(false, false) else {
            return None;
        };
        let Claim::Tensor(indices) = self.indices.claim(false, true) else {
            return None;
        };
        let (table, list) = (data.shape(), indices.shape());
        let (axes, listed) = match self.operator {
            Operator::Nd { .. } => list.split_last().filter(|&(&axes, _)| axes > 0)?,
            Operator::Paged => (&2, list),
            _ => (&1, list),
        };
        let addressed = table.get(..*axes)?;
        // A table whose slices have one element, of a type with all reductions.
        let addressed = Tensor {
            dtype: DType::F32,
            given: data.given,
            count: addressed.iter().product(),
            geometry: Geometry {
                shape: addressed.to_vec(),
                strides: None,
            },
        };
        let call = Call {
            operator: self.operator,
            meaning: self.options.meaning?,
            is_gather: self.is_gather,
            data: &addressed,
            indices: Some(&indices),
            listed,
        };
        let numbers: Vec<_> = (self.indices.read(&indices).iter())
            .map(|bytes| integer(bytes, indices.dtype))
            .collect();
        let slices = call.positions(&numbers)?;
        Some((slices, table[1..*axes].iter().product()))
    }

    /// Returns the lists of the plan. `None`: the call must fail.
    fn expected(&self) -> Option<Lists> {
        let reduction = match self.options.meaning?.reduction {
            Reduction::Mean if self.combine == 1 => return None,
            Reduction::Sub => Reduction::Add,
            reduction => reduction,
        };
        if !self.is_division_valid() || !(0..=1).contains(&self.combine) {
            return None;
        }
        let (slices, each) = self.slices()?;
        let rows = usize::try_from(self.data.shape[0]).ok()?;
        let owned = slices.iter().map(|slice| {
            slice.map(|slice| {
                let (part, row) = self.owner(slice / each, rows);
                (part, row * each + slice % each)
            })
        });
        let owned: Vec<Option<(usize, usize)>> = owned.collect();
        let mut entries: Vec<(usize, usize)> = owned.iter().copied().flatten().collect();
        if self.combine == 1 {
            entries.sort_unstable();
            entries.dedup();
        } else {
            entries.sort_by_key(|entry| entry.0);
        }
        let signed = |number: usize| i64::try_from(number).expect("a small number");
        let mut lists = Lists {
            counts: vec![0; self.parts],
            destinations: entries.iter().map(|entry| signed(entry.1)).collect(),
            skipped: owned.iter().filter(|entry| entry.is_none()).count(),
            ..Lists::default()
        };
        for entry in &entries {
            lists.counts[entry.0] += 1;
        }
        if self.combine == 1 && (self.is_gather || reduction != Reduction::None) {
            let slot = |entry: &Option<_>| {
                entry.map_or(-1, |entry| signed(entries.partition_point(|&e| e < entry)))
            };
            lists.slots = Some(owned.iter().map(slot).collect());
            let number = Reduction::ALL.iter().position(|&each| each == reduction);
            lists.reduction = i32::try_from(number.expect("a reduction")).expect("a small number");
        } else if self.combine == 1 {
            let last = |entry| owned.iter().rposition(|&tuple| tuple == Some(entry));
            let order = entries
                .iter()
                .map(|&entry| signed(last(entry).expect("a tuple")));
            lists.order = Some(order.collect());
        } else {
            let mut order: Vec<_> = (0..owned.len())
                .filter(|&tuple| owned[tuple].is_some())
                .collect();
            order.sort_by_key(|&tuple| owned[tuple].map(|entry| entry.0));
            lists.order = Some(order.into_iter().map(signed).collect());
        }
        Some(lists)
    }

    /// Makes the plan. Returns the status and the lists of the plan.
    fn run(&mut self) -> (nds_status, Option<Lists>) {
        let sharding = nds_sharding {
            size: self.size,
            rule: self.rule,
            parts: self.parts,
            starts: self
                .starts
                .as_ref()
                .map_or(std::ptr::null(), |starts| starts.as_ptr()),
        };
        let [data, indices] = [&mut self.data, &mut self.indices]
            .map(|given| (!given.is_null()).then(|| given.raw()));
        let [data, indices] =
            [&data, &indices].map(|tensor| tensor.as_ref().map_or(std::ptr::null(), from_ref));
        let mut plan = std::ptr::without_provenance_mut(8);
        let make = match (self.operator, self.is_gather) {
            (Operator::Nd { .. }, false) => nds_shard_scatter_nd,
            (Operator::Paged, false) => nds_shard_scatter_paged,
            (_, false) => nds_shard_scatter_update,
            (Operator::Nd { .. }, true) => nds_shard_gather_nd,
            (Operator::Paged, true) => nds_shard_gather_paged,
            (_, true) => nds_shard_gather,
        };
        let (combine, options) = (self.combine, self.options.raw());
        // SAFETY: every pointer is null or points to a struct of its type. `starts` has `parts`
        // numbers, because only cases without starts have another number of parts. The memory of the
        // indices was allocated. Only the description of data is read.
        let status = unsafe { make(data, indices, &sharding, combine, options, &raw mut plan) };
        assert_eq!(status == nds_status::NDS_OK, !plan.is_null(), "{self:?}");
        let lists = (!plan.is_null()).then(|| lists_of(plan));
        // SAFETY: the plan is null, or was made above and is freed once.
        unsafe { nds_sharded_plan_free(plan) };
        (status, lists)
    }
}

/// Copies the lists of a plan.
fn lists_of(plan: *const nds_sharded_plan) -> Lists {
    let size = u32::try_from(size_of::<nds_sharded_lists>()).expect("a small size");
    let mut lists = nds_sharded_lists {
        size,
        reduction: -1,
        parts: 0,
        entries: 0,
        tuples: 0,
        skipped: 0,
        counts: null_mut(),
        destinations: null_mut(),
        order: null_mut(),
        slots: null_mut(),
    };
    // SAFETY: the plan is valid, and the struct has the size that it declares.
    let status = unsafe { nds_sharded_plan_lists(plan, &raw mut lists) };
    assert_eq!((status, lists.size), (nds_status::NDS_OK, size));
    // SAFETY: the lists have the documented numbers of values, and the plan still exists.
    let copy = |list: *const i64, len| unsafe { std::slice::from_raw_parts(list, len) }.to_vec();
    let any = |list: *const i64, len| (!list.is_null()).then(|| copy(list, len));
    Lists {
        // SAFETY: as above.
        counts: unsafe { std::slice::from_raw_parts(lists.counts, lists.parts) }.to_vec(),
        destinations: copy(lists.destinations, lists.entries),
        order: any(lists.order, lists.entries),
        slots: any(lists.slots, lists.tuples),
        reduction: lists.reduction,
        skipped: lists.skipped,
    }
}

/// Makes a plan, and checks its status, its lists and its failure.
pub(crate) fn plans(u: &mut Unstructured<'_>) -> arbitrary::Result<()> {
    let mut case = Case::draw(u)?;
    let mut next = values(u)?;
    match case.indices.claim(false, true) {
        Claim::Impossible => return Ok(()),
        Claim::Tensor(tensor) if tensor.count > MOST_ELEMENTS => return Ok(()),
        Claim::Tensor(_) => case.indices.store(&mut next),
        Claim::Refused => {}
    }
    let elements =
        (case.data.shape.iter()).try_fold(1, |all: i64, &size| all.checked_mul(size.max(1)));
    if elements.is_none() {
        // The model refuses such a table. The library accepts it if the addressed axes fit.
        return Ok(());
    }
    draw_indices(u, &mut case.indices)?;
    let (expected, before) = (case.expected(), case.indices.clone());
    let (status, lists) = case.run();
    let may_fail = case.options.has_failing_pool();
    if failures::check_call(status, may_fail, Some(expected.is_some()), &case) {
        assert_eq!(lists, expected, "{case:?}");
    }
    assert!(case.indices.is_unchanged(&before), "{case:?}");
    Ok(())
}

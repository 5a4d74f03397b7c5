//! Gradients of scatters and gathers. The expected gradients are those of the crate, computed on
//! contiguous copies of the tensors.

use std::ptr::{from_ref, null, null_mut};

use arbitrary::Unstructured;
use ndscatter::{
    AnyView, AnyViewMut, CacheMode, CallingThread, Execution, Forward, Gather, Gradients, Layout,
    Reduction, Scatter, ScatterError,
};
use ndscatter_c::*;

use super::calls::{aligned, change_operator, check_written, draw_indices, draw_type, index_type};
use super::calls::{element_type, operator, shape, values};
use super::failures;
use super::options::{self, Meaning};
use super::reference::Operator;
use super::tensor::{Claim, Given, MOST_ELEMENTS, Tensor};

/// A gradient call. A tensor that is null has a null pointer.
#[derive(Debug)]
struct Case {
    operator: Operator,
    is_gather: bool,
    scale: f64,
    options: options::Given,
    tensors: [Given; 7],
    /// Whether the gradient for data is computed in the memory of the gradient of the output.
    in_place: bool,
}

/// Positions of the tensors.
const GRAD_OUTPUT: usize = 0;
const DATA: usize = 1;
const INDICES: usize = 2;
const UPDATES: usize = 3;
const OUTPUT: usize = 4;
const GRAD_DATA: usize = 5;
const GRAD_UPDATES: usize = 6;

/// The bytes of a gradient, and the tensor that receives it.
type Gradient = Option<Vec<Vec<u8>>>;

impl Case {
    fn draw(u: &mut Unstructured<'_>) -> arbitrary::Result<Self> {
        let is_gather = u.ratio(1, 3)?;
        let dtype = match u.ratio(7, 8)? {
            true => draw_type(u, &[(2, 32), (2, 64), (2, 16), (4, 16), (5, 64)])?,
            false => element_type(u)?,
        };
        let data = shape(u, 0..=3)?;
        let (mut operator, list, listed) = operator(u, &data, is_gather)?;
        let output = if is_gather { &listed } else { &data };
        let shapes = [output, &data, &list, &listed, output, &data, &listed];
        let index = index_type(u)?;
        let mut all = Vec::new();
        for (at, shape) in shapes.into_iter().enumerate() {
            let dtype = if at == INDICES { index } else { dtype };
            all.push(Given::draw(u, dtype, shape, at < GRAD_DATA)?);
        }
        let mut tensors: [Given; 7] = all.try_into().expect("seven tensors");
        for at in [DATA, UPDATES, OUTPUT, GRAD_DATA, GRAD_UPDATES] {
            let is_null = u.ratio(1, 6)?;
            tensors[at].set_null(is_null);
        }
        for _ in 0..u.int_in_range(0..=3_usize)?.saturating_sub(1) {
            match u.int_in_range(0..=7)? {
                7 => change_operator(u, &mut operator)?,
                at => tensors[at].change(u)?,
            }
        }
        let scale = match u.int_in_range(0..=3)? {
            0 => 1.0,
            1 => f64::from(u.int_in_range(-3..=3)?),
            _ => u.arbitrary()?,
        };
        let options = options::Given::draw(u)?;
        let in_place = !is_gather && u.ratio(1, 4)?;
        Ok(Self {
            operator,
            is_gather,
            scale,
            options,
            tensors,
            in_place,
        })
    }

    /// Allocates the memory of the tensors. Returns `false` if a tensor cannot exist or is too large
    /// for a call.
    fn store(&mut self, u: &mut Unstructured<'_>) -> arbitrary::Result<bool> {
        let mut next = values(u)?;
        for given in &mut self.tensors {
            match given.claim(false, true) {
                Claim::Impossible => return Ok(false),
                Claim::Tensor(tensor) if tensor.count > MOST_ELEMENTS => return Ok(false),
                _ => given.store(&mut next),
            }
        }
        draw_indices(u, &mut self.tensors[INDICES])?;
        Ok(true)
    }

    /// Returns the tensors if all descriptions are valid. `None` in the list: a null tensor.
    fn valid(&self) -> Option<[Option<Tensor>; 7]> {
        let is_cache = matches!(self.operator, Operator::Cache { .. });
        let may_be_null = |at: usize| match at {
            GRAD_OUTPUT => false,
            INDICES => is_cache,
            UPDATES => !is_cache,
            GRAD_DATA => !self.is_gather,
            _ => true,
        };
        let is_unused = |at: usize| match (self.is_gather, is_cache) {
            (true, _) => [DATA, UPDATES, OUTPUT, GRAD_UPDATES].contains(&at),
            (false, true) => [DATA, OUTPUT].contains(&at),
            (false, false) => false,
        };
        let mut tensors = [const { None }; 7];
        for (at, given) in self.tensors.iter().enumerate() {
            if is_unused(at)
                || given.is_null() && may_be_null(at)
                || self.in_place && at == GRAD_DATA
            {
                continue;
            }
            let is_written = at >= GRAD_DATA || self.in_place && at == GRAD_OUTPUT;
            let is_accessed = at != OUTPUT && !(is_cache && at == UPDATES);
            match given.claim(is_written, is_accessed) {
                Claim::Tensor(tensor) => tensors[at] = Some(tensor),
                _ => return None,
            }
        }
        let of_output = tensors[GRAD_OUTPUT].as_ref()?;
        if let Some(output) = &tensors[OUTPUT] {
            let equal = (output.shape(), output.given) == (of_output.shape(), of_output.given);
            return equal.then_some(tensors);
        }
        let reduction = self.options.meaning?.reduction;
        let is_extreme = matches!(reduction, Reduction::Min | Reduction::Max);
        (!is_extreme || self.is_gather || is_cache).then_some(tensors)
    }

    /// Returns the gradients that the call must write. `None`: the call must fail.
    fn expected(&self) -> Option<[Gradient; 2]> {
        let (meaning, tensors) = (self.options.meaning?, self.valid()?);
        let wants_data = self.in_place || tensors[GRAD_DATA].is_some();
        if !wants_data && tensors[GRAD_UPDATES].is_none() {
            return None;
        }
        let bytes = |at: usize| {
            let is_accessed = at != OUTPUT && tensors[at].is_some();
            let read = |tensor: &Tensor| aligned(&self.tensors[at].read(tensor).concat());
            tensors[at]
                .as_ref()
                .filter(|_| is_accessed)
                .map_or(vec![], read)
        };
        let memory: [_; 4] = std::array::from_fn(|at| match (at, self.operator) {
            // The elements of the update of a cache are not read.
            (UPDATES, Operator::Cache { .. }) => vec![],
            _ => bytes(at),
        });
        self.gradients(&meaning, &tensors, &memory).ok()
    }

    fn gradients(
        &self,
        meaning: &Meaning,
        tensors: &[Option<Tensor>; 7],
        memory: &[Vec<u64>; 4],
    ) -> Result<[Gradient; 2], ScatterError> {
        let view = |at: usize| -> Result<Option<AnyView<'_>>, ScatterError> {
            let Some(tensor) = &tensors[at] else {
                return Ok(None);
            };
            let layout = Layout::contiguous(tensor.shape());
            let bytes = bytemuck::cast_slice(&memory[at]);
            AnyView::from_bytes(bytes, tensor.dtype, layout).map(Some)
        };
        let grad_output = view(GRAD_OUTPUT)?.expect("never null");
        let of_data = if self.in_place {
            &tensors[GRAD_OUTPUT]
        } else {
            &tensors[GRAD_DATA]
        };
        let wanted = [of_data, &tensors[GRAD_UPDATES]];
        let mut results = wanted.map(|tensor| tensor.as_ref().map(zeros));
        let [first, second] = &mut results;
        let mut views = [None, None];
        for ((place, tensor), words) in views.iter_mut().zip(wanted).zip([first, second]) {
            if let (Some(tensor), Some(words)) = (tensor, words) {
                let layout = Layout::contiguous(tensor.shape());
                let bytes = bytemuck::cast_slice_mut(words);
                *place = Some(AnyViewMut::from_bytes(bytes, tensor.dtype, layout)?);
            }
        }
        let [data, updates] = views;
        let list = view(INDICES)?;
        if self.is_gather {
            let output = data.expect("never null");
            let at = list.expect("never null");
            self.gather(meaning)?
                .backward_into(grad_output, at, self.scale, output)?;
        } else {
            let forward = match self.operator {
                Operator::Cache { .. } => Forward::none(),
                _ => Forward {
                    data: view(DATA)?,
                    updates: view(UPDATES)?,
                },
            };
            let zero = AnyView::from(ndscatter::TensorView::splat(&0_i64, &[])?);
            let gradients = Gradients { data, updates };
            let scatter = self.scatter(meaning, tensors)?;
            let list = list.unwrap_or(zero);
            scatter.backward_into(grad_output, forward, list, self.scale, gradients)?;
        }
        let [of_data, of_updates] = results;
        let split = |words: Option<Vec<u64>>, tensor: &Option<Tensor>| {
            words
                .zip(tensor.as_ref())
                .map(|(words, tensor)| elements(&words, tensor))
        };
        Ok([split(of_data, wanted[0]), split(of_updates, wanted[1])])
    }

    fn gather(&self, meaning: &Meaning) -> Result<Gather<'static>, ScatterError> {
        let refused = ScatterError::UnsupportedOption {
            option: "of a gather",
        };
        if meaning.reduction != Reduction::None
            || meaning.duplicates == ndscatter::Duplicates::Reject
        {
            return Err(refused);
        }
        let gather = match self.operator {
            Operator::Nd { batch_dims } => {
                Gather::nd(usize::try_from(batch_dims).map_err(|_| refused)?)
            }
            Operator::Along { axis } => Gather::along(axis as isize),
            Operator::Elements { axis } => Gather::elements(axis as isize),
            Operator::Cache { .. } | Operator::Paged => return Err(refused),
        };
        let gather = gather
            .bounds(meaning.bounds)
            .negative_indices(meaning.negative_indices);
        Ok(gather.execution(Execution::new().pool(&CallingThread)))
    }

    fn scatter(
        &self,
        meaning: &Meaning,
        tensors: &[Option<Tensor>; 7],
    ) -> Result<Scatter<'static>, ScatterError> {
        let refused = ScatterError::UnsupportedOption { option: "circular" };
        let scatter = match self.operator {
            Operator::Nd { .. } | Operator::Paged => Scatter::nd(),
            Operator::Along { axis } => Scatter::along(axis as isize),
            Operator::Elements { axis } => Scatter::elements(axis as isize),
            Operator::Cache { axis, circular } => {
                let mode = match circular {
                    0 => CacheMode::Linear,
                    1 => CacheMode::Circular,
                    _ => return Err(refused),
                };
                let (cache, update) = (shape_of(tensors, GRAD_OUTPUT), shape_of(tensors, UPDATES));
                let rank = cache.len() as i64;
                if axis < -rank || axis >= rank || update.len() != cache.len() {
                    return Err(refused);
                }
                let rows = update[axis.rem_euclid(rank) as usize];
                let scatter = Scatter::cache(axis as isize, mode).update_len(rows);
                let gradient = tensors[GRAD_UPDATES].as_ref().map(Tensor::shape);
                if scatter.updates_shape(cache, &[])? != update
                    || gradient.is_some_and(|shape| shape != update)
                {
                    return Err(refused);
                }
                scatter
            }
        };
        Ok(scatter
            .reduction(meaning.reduction)
            .include_self(meaning.include_self)
            .accumulate(meaning.accumulate)
            .bounds(meaning.bounds)
            .negative_indices(meaning.negative_indices)
            .duplicates(meaning.duplicates)
            .none_gradient(meaning.none_gradient)
            .execution(Execution::new().pool(&CallingThread)))
    }

    fn run(&mut self) -> nds_status {
        let (operator, is_gather, in_place) = (self.operator, self.is_gather, self.in_place);
        let (scale, options) = (self.scale, self.options.raw());
        let raw = |given: &mut Given| (!given.is_null()).then(|| given.raw());
        let mut tensors = self.tensors.each_mut().map(raw);
        let pointer = |tensor: &Option<DLTensor>| tensor.as_ref().map_or(null(), from_ref);
        let [g, d, i, u, o, ..] = tensors.each_ref().map(pointer);
        let written = |tensor: &mut Option<DLTensor>| {
            tensor
                .as_mut()
                .map_or(null_mut(), |tensor| &raw mut *tensor)
        };
        let of_data = if in_place { GRAD_OUTPUT } else { GRAD_DATA };
        let (data, updates) = (
            written(&mut tensors[of_data]),
            written(&mut tensors[GRAD_UPDATES]),
        );
        // SAFETY: every pointer is null or points to a struct of its type. `Given::store` has
        // allocated the memory that each valid description covers. The options have the bytes of
        // the size that they declare, but at least four.
        unsafe {
            match (operator, is_gather) {
                (Operator::Nd { batch_dims }, true) => {
                    nds_gather_nd_backward(g, i, batch_dims, scale, data, options)
                }
                (Operator::Along { axis }, true) => {
                    nds_gather_backward(g, i, axis, scale, data, options)
                }
                (Operator::Elements { axis }, true) => {
                    nds_gather_elements_backward(g, i, axis, scale, data, options)
                }
                (Operator::Along { axis }, false) => {
                    nds_scatter_update_backward(g, d, i, u, axis, o, scale, data, updates, options)
                }
                (Operator::Elements { axis }, false) => nds_scatter_elements_backward(
                    g, d, i, u, axis, o, scale, data, updates, options,
                ),
                (Operator::Cache { axis, circular }, _) => nds_tensor_scatter_backward(
                    g, u, i, axis, circular, scale, data, updates, options,
                ),
                (Operator::Nd { .. } | Operator::Paged, _) => {
                    nds_scatter_nd_backward(g, d, i, u, o, scale, data, updates, options)
                }
            }
        }
    }
}

fn shape_of(tensors: &[Option<Tensor>; 7], at: usize) -> &[usize] {
    tensors[at].as_ref().map_or(&[], Tensor::shape)
}

fn zeros(tensor: &Tensor) -> Vec<u64> {
    aligned(&vec![0; tensor.count * tensor.dtype.size()])
}

fn elements(words: &[u64], tensor: &Tensor) -> Vec<Vec<u8>> {
    let bytes: &[u8] = bytemuck::cast_slice(words);
    let elements = bytes.chunks(tensor.dtype.size()).take(tensor.count);
    elements.map(<[u8]>::to_vec).collect()
}

/// Makes a call and checks its status, its gradients and its failure.
pub(crate) fn gradients(u: &mut Unstructured<'_>) -> arbitrary::Result<()> {
    let mut case = Case::draw(u)?;
    // Slots have no gradients.
    let is_paged = matches!(case.operator, Operator::Paged);
    if is_paged || !case.store(u)? {
        return Ok(());
    }
    let (expected, before) = (case.expected(), case.tensors.clone());
    let status = case.run();
    let may_fail = case.options.has_failing_pool();
    if !failures::check_call(status, may_fail, Some(expected.is_some()), &case) {
        return Ok(());
    }
    let of_data = if case.in_place {
        GRAD_OUTPUT
    } else {
        GRAD_DATA
    };
    let [data, updates] = expected.unwrap_or_default();
    for (at, (given, before)) in case.tensors.iter().zip(&before).enumerate() {
        let gradient = match at {
            GRAD_UPDATES => &updates,
            _ if at == of_data => &data,
            _ => &None,
        };
        match (gradient, given.claim(true, true)) {
            (Some(elements), Claim::Tensor(tensor)) => {
                check_written(given, before, &tensor, elements, true);
            }
            _ => assert!(given.is_unchanged(before), "tensor {at}: {case:?}"),
        }
    }
    Ok(())
}

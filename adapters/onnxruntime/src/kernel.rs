//! One node of a session, and its runs.
//!
//! Knows which tensors a run has and which way it goes: by a plan that is kept or once, of
//! whole elements, of four bits, of strings.

use std::sync::Arc;

use ndscatter::{AnyView, DType, Execution, Layout, ScatterError, ScatterPlan, TensorView};
use ort_sys::{OrtKernelContext, OrtKernelInfo};

use crate::api::Api;
use crate::attributes::Attributes;
use crate::counters;
use crate::definition::Role;
use crate::element::Element;
use crate::failure::Failure;
use crate::offer::Offer;
use crate::packed;
use crate::plans::{Key, Plans};
use crate::tensor::Tensor;
use crate::text::Strings;
use crate::threads::{HostPool, Workers};

/// A node of a session.
#[derive(Debug)]
pub(crate) struct Kernel {
    offer: Offer,
    attributes: Attributes,
    /// Plans, if indices are the same in every run.
    plans: Option<Plans>,
    workers: Workers,
}

/// The inputs of a run.
struct Inputs {
    data: Tensor,
    updates: Tensor,
    /// `None` where they were left out.
    indices: Option<Tensor>,
}

impl Inputs {
    /// Copies what does not lie as its elements need.
    ///
    /// # Safety
    ///
    /// Tensors are of these types.
    unsafe fn suit(&mut self, element: Element, index_type: DType) -> Result<(), ScatterError> {
        // SAFETY: handed on.
        unsafe {
            if let Element::Whole(dtype) = element {
                self.data.suit(dtype)?;
                self.updates.suit(dtype)?;
            }
            if let Some(indices) = &mut self.indices {
                indices.suit(index_type)?;
            }
        }
        Ok(())
    }
}

impl Kernel {
    /// # Safety
    ///
    /// `info` is the host's.
    pub(crate) unsafe fn new(offer: Offer, info: *const OrtKernelInfo) -> Result<Self, Failure> {
        let [_, _, indices] = offer.definition.positions();
        // SAFETY: handed on; an input is asked about where there is one.
        unsafe {
            let operator = offer.definition.operator;
            let attributes = Attributes::read(offer.api, info, offer.domain, operator)?;
            let has_indices = indices < offer.api.input_count(info)?;
            let is_constant = has_indices && offer.api.is_constant(info, indices);
            Ok(Self {
                offer,
                attributes,
                plans: is_constant.then(Plans::default),
                workers: Workers::new(offer.threads),
            })
        }
    }

    pub(crate) fn api(&self) -> Api {
        self.offer.api
    }

    /// # Safety
    ///
    /// `context` is that of a run that has not ended.
    unsafe fn inputs(&self, context: *const OrtKernelContext) -> Result<Inputs, Failure> {
        let definition = self.offer.definition;
        let [data, updates, indices] = definition.positions();
        let is_optional = definition.inputs[indices] == Role::OptionalIndices;
        // SAFETY: the host's values stay during the run.
        unsafe {
            let value = |input| self.api().input(context, input);
            let tensor = |value| Tensor::new(self.api(), value);
            let listed = value(indices)?;
            let is_left_out = is_optional && listed.is_null();
            Ok(Inputs {
                data: tensor(value(data)?)?,
                updates: tensor(value(updates)?)?,
                indices: (!is_left_out).then(|| tensor(listed)).transpose()?,
            })
        }
    }

    /// One run.
    ///
    /// # Safety
    ///
    /// `context` is that of a run that has not ended.
    pub(crate) unsafe fn run(&self, context: *mut OrtKernelContext) -> Result<(), Failure> {
        // SAFETY: the caller vouches for the context; types of tensors are those that the
        // host has chosen this operator by.
        unsafe {
            let mut inputs = self.inputs(context)?;
            inputs.suit(self.offer.element.element, self.offer.index_type)?;
            let indices = match &inputs.indices {
                Some(indices) => indices.view(self.offer.index_type, &indices.shape)?,
                // Position 0 for every sequence.
                None => TensorView::splat(&0_i64, &[])?.into(),
            };
            match self.offer.element.element {
                Element::Whole(dtype) => self.whole(context, &inputs, indices, dtype),
                Element::Packed => self.packed(context, &inputs, indices),
                Element::Text => self.strings(context, &inputs, indices),
            }
        }
    }

    /// The output of the run.
    ///
    /// # Safety
    ///
    /// As for [`Self::run`].
    unsafe fn output(
        &self,
        context: *mut OrtKernelContext,
        data: &Tensor,
    ) -> Result<Tensor, Failure> {
        // SAFETY: handed on.
        unsafe {
            let value = self.api().output(context, &data.shape)?;
            Tensor::output(self.api(), value, data.shape.clone())
        }
    }

    /// # Safety
    ///
    /// As for [`Self::run`], for elements of type `dtype`.
    unsafe fn whole(
        &self,
        context: *mut OrtKernelContext,
        inputs: &Inputs,
        indices: AnyView<'_>,
        dtype: DType,
    ) -> Result<(), Failure> {
        // SAFETY: handed on.
        unsafe {
            let pool = HostPool::new(self.api(), context, &self.workers);
            let execution = Execution::new().pool(&pool);
            let mut output = self.output(context, &inputs.data)?;
            output.suiting(dtype, |output| {
                let done = self.write(inputs, output, indices, dtype, execution);
                pool.check()?;
                done
            })
        }
    }

    /// # Safety
    ///
    /// All tensors are those of a run, of elements of type `dtype`.
    unsafe fn write(
        &self,
        inputs: &Inputs,
        output: &Tensor,
        indices: AnyView<'_>,
        dtype: DType,
        execution: Execution<'_>,
    ) -> Result<(), Failure> {
        let (data, updates) = (&inputs.data, &inputs.updates);
        let in_place = output.is_at(data);
        let plan = self.plan(inputs, indices, execution)?;
        // SAFETY: the caller vouches for the tensors.
        let (data, updates, output) = unsafe {
            (
                data.view(dtype, &data.shape)?,
                updates.view(dtype, &updates.shape)?,
                output.view_mut(dtype, &data.shape, in_place)?,
            )
        };
        match &plan {
            Some(plan) => (plan.run().execution(execution)).write_into(data, updates, output)?,
            None => {
                let scatter = self.attributes.scatter(self.attributes.operator)?;
                (scatter.execution(execution)).write_into(data, indices, updates, output)?;
            }
        }
        counters::count(in_place, plan.is_some());
        Ok(())
    }

    /// The plan that is kept, where indices are the same in every run.
    fn plan(
        &self,
        inputs: &Inputs,
        indices: AnyView<'_>,
        execution: Execution<'_>,
    ) -> Result<Option<Arc<ScatterPlan>>, Failure> {
        let Some(plans) = &self.plans else {
            return Ok(None);
        };
        let key = Key {
            shape: inputs.data.shape.clone(),
            operator: (self.attributes.operator).for_updates(&inputs.updates.shape),
        };
        let plan = plans.get(&key, || {
            let scatter = self.attributes.scatter(key.operator)?.execution(execution);
            scatter.plan(Layout::contiguous(&key.shape), indices)
        });
        match plan {
            // It is done without one.
            Err(ScatterError::OutOfMemory { .. }) => Ok(None),
            plan => Ok(Some(plan?)),
        }
    }

    /// # Safety
    ///
    /// As for [`Self::run`], for elements of four bits.
    unsafe fn packed(
        &self,
        context: *mut OrtKernelContext,
        inputs: &Inputs,
        indices: AnyView<'_>,
    ) -> Result<(), Failure> {
        const BYTE: DType = DType::Bytes1;
        let (data, updates) = (&inputs.data, &inputs.updates);
        let folded = packed::fold(
            self.attributes.operator,
            &data.shape,
            indices.shape(),
            &updates.shape,
        )?;
        // SAFETY: two elements to a byte, and folded shapes have half as many.
        unsafe {
            let pool = HostPool::new(self.api(), context, &self.workers);
            let scatter = self.attributes.scatter(folded.operator)?;
            let scatter = scatter.execution(Execution::new().pool(&pool));
            let output = self.output(context, data)?;
            let in_place = output.is_at(data);
            let done = scatter.write_into(
                data.view(BYTE, &folded.data)?,
                indices,
                updates.view(BYTE, &folded.updates)?,
                output.view_mut(BYTE, &folded.data, in_place)?,
            );
            pool.check()?;
            done?;
            counters::count(in_place, false);
        }
        Ok(())
    }

    /// # Safety
    ///
    /// As for [`Self::run`], for strings.
    unsafe fn strings(
        &self,
        context: *mut OrtKernelContext,
        inputs: &Inputs,
        indices: AnyView<'_>,
    ) -> Result<(), Failure> {
        let strings = Strings {
            data: &inputs.data,
            updates: &inputs.updates,
            indices,
        };
        let work = strings.plan(&self.attributes)?;
        // SAFETY: handed on.
        unsafe {
            let output = self.output(context, &inputs.data)?;
            let in_place = output.is_at(&inputs.data);
            strings.write(self.api(), &work, output.value.cast_mut(), in_place)?;
            counters::count(in_place, false);
        }
        Ok(())
    }
}

//! A node of a session, and its runs.
//!
//! This module reads the tensors of a run and chooses how to run the node. Elements of whole bytes,
//! 4-bit elements and strings have one function each. For elements of whole bytes and constant
//! indices, the run uses a kept plan if there is enough memory for it. All other runs make one-shot
//! calls.

use std::sync::Arc;

use ndscatter::{AnyView, DType, Execution, Layout, ScatterError, ScatterPlan, TensorView};
use ort_sys::{OrtKernelContext, OrtKernelInfo};

use crate::api::Api;
use crate::attributes::Attributes;
use crate::config::{self, LIBRARY, threads_text};
use crate::counters;
use crate::definition::Role;
use crate::element::Element;
use crate::failure::Failure;
use crate::packed;
use crate::plans::{Key, Plans};
use crate::tensor::Tensor;
use crate::text::Strings;
use crate::threads::{HostPool, Workers};
use crate::variant::Variant;

/// A node of a session.
#[derive(Debug)]
pub(crate) struct Kernel {
    variant: Variant,
    attributes: Attributes,
    /// Kept plans. `None` if the indices are not constant.
    plans: Option<Plans>,
    workers: Workers,
}

/// The inputs of a run.
struct Inputs {
    data: Tensor,
    updates: Tensor,
    /// The indices. `None` if the node omits this optional input.
    indices: Option<Tensor>,
}

impl Inputs {
    /// Copies each tensor whose address is not aligned for its type to aligned memory. Data and
    /// updates that hold 4-bit elements or strings are never copied.
    ///
    /// # Safety
    ///
    /// The elements of data and updates have the type `element`. The indices have the type
    /// `index_type`.
    unsafe fn align(&mut self, element: Element, index_type: DType) -> Result<(), ScatterError> {
        // SAFETY: the tensors have the types `element` and `index_type` (contract of this
        // function).
        unsafe {
            if let Element::Whole(dtype) = element {
                self.data.align(dtype)?;
                self.updates.align(dtype)?;
            }
            if let Some(indices) = &mut self.indices {
                indices.align(index_type)?;
            }
        }
        Ok(())
    }
}

impl Kernel {
    /// Creates the kernel of a node.
    ///
    /// # Safety
    ///
    /// `info` is a valid object of the host.
    pub(crate) unsafe fn new(
        variant: Variant,
        info: *const OrtKernelInfo,
    ) -> Result<Self, Failure> {
        let [_, _, indices] = variant.definition.positions();
        // SAFETY: `info` is valid (contract of this function). `is_constant` is called only if the
        // node has the input of the indices.
        unsafe {
            config::check_unchanged(variant.api, info)?;
            let operator = variant.definition.operator;
            let attributes = Attributes::read(variant.api, info, variant.domain, operator)?;
            let has_indices = indices < variant.api.input_count(info)?;
            let is_constant = has_indices && variant.api.is_constant(info, indices);
            variant.api.log(info, || {
                format!(
                    "{LIBRARY} runs the node {:?} ({}), threads: {}",
                    variant.api.node_name(info),
                    variant.definition.text(),
                    threads_text(variant.threads)
                )
            });
            Ok(Self {
                variant,
                attributes,
                plans: is_constant.then(Plans::default),
                workers: Workers::new(variant.threads),
            })
        }
    }

    pub(crate) fn api(&self) -> Api {
        self.variant.api
    }

    /// Reads the inputs of a run.
    ///
    /// # Safety
    ///
    /// `context` belongs to a run that has not ended.
    unsafe fn inputs(&self, context: *const OrtKernelContext) -> Result<Inputs, Failure> {
        let definition = self.variant.definition;
        let [data, updates, indices] = definition.positions();
        let is_optional = definition.inputs[indices] == Role::OptionalIndices;
        // SAFETY: `context` is valid (contract of this function). The host frees no input of the
        // run before the run ends.
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

    /// Runs the node.
    ///
    /// # Safety
    ///
    /// `context` belongs to a run that has not ended.
    pub(crate) unsafe fn run(&self, context: *mut OrtKernelContext) -> Result<(), Failure> {
        // SAFETY: `context` is valid (contract of this function). The tensors have the types of
        // `self.variant`, because the host chose this variant by the types of the tensors.
        unsafe {
            let mut inputs = self.inputs(context)?;
            inputs.align(self.variant.element.element, self.variant.index_type)?;
            let indices = match &inputs.indices {
                Some(indices) => indices.view(self.variant.index_type, &indices.shape)?,
                // Without indices, TensorScatter writes each sequence from position 0.
                None => TensorView::splat(&0_i64, &[])?.into(),
            };
            match self.variant.element.element {
                Element::Whole(dtype) => self.whole(context, &inputs, indices, dtype),
                Element::Packed => self.packed(context, &inputs, indices),
                Element::Text => self.strings(context, &inputs, indices),
            }
        }
    }

    /// Returns the output of the run, a tensor with the shape of `data`.
    ///
    /// # Safety
    ///
    /// The contract of [`Self::run`] holds.
    unsafe fn output(
        &self,
        context: *mut OrtKernelContext,
        data: &Tensor,
    ) -> Result<Tensor, Failure> {
        // SAFETY: `context` is valid (contract of this function).
        unsafe {
            let value = self.api().output(context, &data.shape)?;
            Tensor::output(self.api(), value, data.shape.clone())
        }
    }

    /// Runs the node for elements of whole bytes.
    ///
    /// # Safety
    ///
    /// The contract of [`Self::run`] holds. The elements of data, updates and output have the type
    /// `dtype`.
    unsafe fn whole(
        &self,
        context: *mut OrtKernelContext,
        inputs: &Inputs,
        indices: AnyView<'_>,
        dtype: DType,
    ) -> Result<(), Failure> {
        // SAFETY: `context` is valid, and the elements have the type `dtype` (contract of this
        // function).
        unsafe {
            let pool = HostPool::new(self.api(), context, &self.workers);
            let execution = Execution::new().pool(&pool);
            let mut output = self.output(context, &inputs.data)?;
            output.write_aligned(dtype, |output| {
                let done = self.write(inputs, output, indices, dtype, execution);
                pool.check()?;
                done
            })
        }
    }

    /// Computes the output, with a kept plan if [`Self::plan`] returns one, else with a one-shot
    /// call.
    ///
    /// # Safety
    ///
    /// - The inputs, the output and the indices are tensors of one run that has not ended.
    /// - The elements of data, updates and output have the type `dtype` and are aligned for it.
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
        // SAFETY: the tensors are valid and aligned (contract of this function). If `in_place` is
        // true, the output has the memory of the data, so its elements are initialised.
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
        counters::count(self.variant.definition, in_place, plan.is_some());
        Ok(())
    }

    /// Returns the kept plan for the shapes of this run, and makes the plan if no such plan is
    /// kept. Returns `None` if the indices are not constant, or if there is not enough memory for a
    /// plan.
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
            // If there is not enough memory for a plan, the run makes a one-shot call.
            Err(ScatterError::OutOfMemory { .. }) => Ok(None),
            plan => Ok(Some(plan?)),
        }
    }

    /// Runs the node for 4-bit elements.
    ///
    /// # Safety
    ///
    /// The contract of [`Self::run`] holds. Each byte of data, updates and output holds two
    /// elements.
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
        // SAFETY: `context` is valid, and each byte holds two elements (contract of this function).
        // The shapes in `folded` count bytes: half the number of 4-bit elements.
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
            counters::count(self.variant.definition, in_place, false);
        }
        Ok(())
    }

    /// Runs the node for strings.
    ///
    /// # Safety
    ///
    /// The contract of [`Self::run`] holds. The elements of data, updates and output are strings.
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
        // SAFETY: `context` is valid, and the elements are strings (contract of this function).
        unsafe {
            let output = self.output(context, &inputs.data)?;
            let in_place = output.is_at(&inputs.data);
            strings.write(self.api(), &work, output.value.cast_mut(), in_place)?;
            counters::count(self.variant.definition, in_place, false);
        }
        Ok(())
    }
}

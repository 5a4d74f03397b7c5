//! The gather of a typed model.
//!
//! The inputs are data and indices. This module knows tract's rules for operators. It does not know
//! ONNX files.

use ndscatter::{DType, Gather, GatherPlan, Layout, Operator};
use tract_core::internal::*;
use tract_core::ops::array::{GatherElements, GatherNd};

use crate::element::element;
use crate::plans::Plans;
use crate::tensor;

/// A gather that runs on ndscatter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NdGather {
    operator: Operator,
    /// Kept plans. `None` if the indices are not known to be constant.
    plans: Option<Plans<GatherPlan>>,
}

impl NdGather {
    pub(crate) fn new(operator: Operator) -> Self {
        Self {
            operator,
            plans: None,
        }
    }

    /// Returns the gather with the meaning of one of tract's operators, or `None` for other
    /// operators.
    pub(crate) fn of_tract(op: &dyn TypedOp) -> Option<Self> {
        if let Some(&GatherNd { batch_dims }) = op.downcast_ref() {
            return Some(Self::new(Operator::Nd { batch_dims }));
        }
        let op = op.downcast_ref::<GatherElements>()?;
        let axis = isize::try_from(op.axis).ok()?;
        Some(Self::new(Operator::Elements { axis }))
    }

    /// Returns tract's operator with the meaning of this gather.
    pub(crate) fn tract(&self) -> Option<Box<dyn TypedOp>> {
        match self.operator {
            Operator::Nd { batch_dims } => Some(Box::new(GatherNd::new(batch_dims))),
            Operator::Elements { axis } => {
                Some(Box::new(GatherElements::new(usize::try_from(axis).ok()?)))
            }
            _ => None,
        }
    }

    /// Returns ndscatter's type of elements, or `None` if the elements stay with tract.
    pub(crate) fn element(&self, datum_type: DatumType) -> Option<DType> {
        element(datum_type, false)
    }

    /// Returns the gather with kept plans if `inputs` have constant indices and the gather has no
    /// kept plans.
    pub(crate) fn planned(&self, inputs: &[&TypedFact]) -> Option<Self> {
        let indices = inputs.get(1)?;
        (self.plans.is_none() && indices.konst.is_some()).then(|| Self {
            plans: Some(Plans::default()),
            ..self.clone()
        })
    }

    fn run(
        &self,
        context: &EvalContext<'_>,
        inputs: TVec<TValue>,
        plans: Option<&Plans<GatherPlan>>,
    ) -> TractResult<TVec<TValue>> {
        let is_plain = inputs.iter().all(|input| input.is_plain_ram());
        let element = inputs
            .first()
            .and_then(|data| self.element(data.datum_type()));
        let Some(dtype) = element.filter(|_| is_plain) else {
            let op = self
                .tract()
                .with_context(|| format!("{} of these elements", self.name()))?;
            return op.eval(context, inputs);
        };
        let (data, indices) = args_2!(inputs);
        Ok(tvec!(
            self.apply(&data, &indices, dtype, plans)?.into_tvalue()
        ))
    }

    fn apply(
        &self,
        data: &TValue,
        indices: &TValue,
        dtype: DType,
        plans: Option<&Plans<GatherPlan>>,
    ) -> TractResult<Tensor> {
        let gather = Gather::new(self.operator)?;
        let integers = tensor::indices(indices)?;
        let view = tensor::indices_view(&integers)?;
        let shape = gather.output_shape(data.shape(), indices.shape())?;
        let plan = match (plans, indices.as_arc_tensor()) {
            (Some(plans), Some(indices)) => {
                plans.get(indices, data.shape(), self.operator, || {
                    gather.plan(Layout::contiguous(data.shape()), view)
                })?
            }
            _ => None,
        };
        let source = tensor::view(data, dtype)?;
        tensor::written(data.datum_type(), dtype, &shape, |output| match &plan {
            Some(plan) => plan.run().write_into(source, output),
            None => gather.write_into(source, view, output),
        })
    }

    /// Whether tract may rewrite the node. tract's rewrite of GatherNd with constant indices
    /// ignores batch dims, and requires indices from 0 on. If a size is unknown, the rewritten
    /// model checks the index when it runs.
    fn may_rewrite(&self, inputs: &[&TypedFact]) -> TractResult<bool> {
        let [data, indices] = inputs else {
            return Ok(false);
        };
        let Some(indices) = &indices.konst else {
            return Ok(false);
        };
        if self.operator != (Operator::Nd { batch_dims: 0 }) || indices.rank() != 2 {
            return Ok(false);
        }
        // tract rewrites one tuple only. Dimensions with symbols have no value yet.
        if indices.shape()[0] != 1 {
            return Ok(false);
        }
        let Ok(indices) = indices.cast_to::<i64>() else {
            return Ok(false);
        };
        let plain = indices.try_as_plain_ram()?;
        let indices = plain.as_slice::<i64>()?;
        Ok(indices.len() <= data.rank()
            && indices.iter().zip(data.shape.iter()).all(|(&index, size)| {
                // tract adds 1 to the index, as an `i32`.
                (0..i64::from(i32::MAX)).contains(&index)
                    && size.as_i64().is_none_or(|size| index < size)
            }))
    }
}

impl Op for NdGather {
    fn name(&self) -> StaticName {
        match self.operator {
            Operator::Elements { .. } => "ndscatter.GatherElements",
            _ => "ndscatter.GatherNd",
        }
        .into()
    }

    fn info(&self) -> TractResult<Vec<String>> {
        Ok(vec![format!("{:?}", self.operator)])
    }

    op_as_typed_op!();
}

impl EvalOp for NdGather {
    fn eval(&self, context: &EvalContext, inputs: TVec<TValue>) -> TractResult<TVec<TValue>> {
        self.run(context, inputs, self.plans.as_ref())
    }

    /// Runs without kept plans, because constant nodes are evaluated once.
    fn eval_out_of_plan(&self, inputs: TVec<TValue>) -> TractResult<Option<TVec<TValue>>> {
        Ok(Some(self.run(&EvalContext::out_of_plan(), inputs, None)?))
    }
}

impl TypedOp for NdGather {
    fn output_facts(&self, inputs: &[&TypedFact]) -> TractResult<TVec<TypedFact>> {
        let [data, indices] = inputs else {
            bail!("{} has {} inputs", self.name(), inputs.len());
        };
        let shape = match self.operator {
            Operator::Nd { batch_dims } => {
                let (len, tuples) = indices.shape.split_last().context("indices of rank 0")?;
                let window = (len.to_usize()?.checked_add(batch_dims))
                    .filter(|_| batch_dims <= tuples.len())
                    .and_then(|addressed| data.shape.get(addressed..))
                    .with_context(|| {
                        format!(
                            "indices {:?} with {batch_dims} batch dims do not fit data {:?}",
                            indices.shape, data.shape
                        )
                    })?;
                tuples.iter().chain(window).cloned().collect::<TVec<TDim>>()
            }
            _ => {
                let (rank, actual) = (data.rank(), indices.rank());
                ensure!(
                    rank == actual,
                    "indices of rank {actual} for data of rank {rank}"
                );
                indices.shape.to_tvec()
            }
        };
        Ok(tvec!(data.datum_type.fact(shape)))
    }

    /// Makes tract's rewrite if there is one and it is right. Else keeps plans if the indices are
    /// constant.
    fn declutter(
        &self,
        model: &TypedModel,
        node: &TypedNode,
    ) -> TractResult<Option<TypedModelPatch>> {
        let inputs = model.node_input_facts(node.id)?;
        if self.may_rewrite(&inputs)?
            && let Some(op) = self.tract()
            && let Some(patch) = op.declutter(model, node)?
        {
            return Ok(Some(patch));
        }
        let patch = |op| TypedModelPatch::replace_single_op(model, node, &node.inputs, op);
        self.planned(&inputs).map(patch).transpose()
    }

    as_op!();
}

//! The scatter of a typed model.
//!
//! Inputs are in the order of ONNX: data, indices and updates, and for TensorScatter data, updates
//! and optional indices. This module knows tract's rules for operators. It does not know ONNX files.

use std::sync::Arc;

use ndscatter::{AnyView, DType, Operator, Reduction, Scatter, ScatterPlan, TensorView};
use tract_core::internal::*;
use tract_core::ops::array::{ScatterElements, ScatterNd, ScatterReduction};

use crate::element::element;
use crate::plans::Plans;
use crate::tensor;

/// A scatter that runs on ndscatter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NdScatter {
    operator: Operator,
    reduction: ScatterReduction,
    /// Kept plans. `None` if the indices are not known to be constant.
    plans: Option<Plans<ScatterPlan>>,
}

/// The tensors of one run.
struct Inputs {
    data: TValue,
    updates: TValue,
    /// `None` if TensorScatter omits this input.
    indices: Option<TValue>,
}

impl NdScatter {
    pub(crate) fn new(operator: Operator, reduction: ScatterReduction) -> Self {
        Self {
            operator,
            reduction,
            plans: None,
        }
    }

    /// Returns the scatter with the meaning of one of tract's operators, or `None` for other
    /// operators.
    pub(crate) fn of_tract(op: &dyn TypedOp) -> Option<Self> {
        if let Some(op) = op.downcast_ref::<ScatterNd>() {
            return Some(Self::new(Operator::Nd { batch_dims: 0 }, op.reduction));
        }
        let op = op.downcast_ref::<ScatterElements>()?;
        let axis = isize::try_from(op.axis).ok()?;
        Some(Self::new(Operator::Elements { axis }, op.reduction))
    }

    /// Returns tract's operator with the meaning of this scatter. tract has no TensorScatter.
    pub(crate) fn tract(&self) -> Option<Box<dyn TypedOp>> {
        match self.operator {
            Operator::Nd { .. } => Some(Box::new(ScatterNd::new(self.reduction))),
            Operator::Elements { axis } => {
                let axis = usize::try_from(axis).ok()?;
                Some(Box::new(ScatterElements::new(axis, self.reduction)))
            }
            _ => None,
        }
    }

    /// Returns ndscatter's type of elements, or `None` if the elements stay with tract.
    pub(crate) fn element(&self, datum_type: DatumType) -> Option<DType> {
        element(datum_type, self.reduction != ScatterReduction::None)
    }

    /// Returns the number of the input of the indices.
    fn indices_input(&self) -> usize {
        match self.operator {
            Operator::Cache { .. } => 2,
            _ => 1,
        }
    }

    /// Returns the scatter with kept plans if `inputs` have constant indices and the scatter has
    /// no kept plans.
    pub(crate) fn planned(&self, inputs: &[&TypedFact]) -> Option<Self> {
        let indices = inputs.get(self.indices_input())?;
        (self.plans.is_none() && indices.konst.is_some()).then(|| Self {
            plans: Some(Plans::default()),
            ..self.clone()
        })
    }

    fn split(&self, mut inputs: TVec<TValue>) -> TractResult<Inputs> {
        let is_cache = matches!(self.operator, Operator::Cache { .. });
        ensure!(
            inputs.len() == 3 || is_cache && inputs.len() == 2,
            "{} has {} inputs",
            self.name(),
            inputs.len()
        );
        if !is_cache {
            inputs.swap(1, 2);
        }
        let mut inputs = inputs.into_iter();
        match (inputs.next(), inputs.next()) {
            (Some(data), Some(updates)) => Ok(Inputs {
                data,
                updates,
                indices: inputs.next(),
            }),
            _ => bail!("{} lacks inputs", self.name()),
        }
    }

    fn run(
        &self,
        context: &EvalContext<'_>,
        inputs: TVec<TValue>,
        plans: Option<&Plans<ScatterPlan>>,
    ) -> TractResult<TVec<TValue>> {
        let element = inputs.first().and_then(|data| {
            let is_plain = inputs.iter().all(|input| input.is_plain_ram());
            self.element(data.datum_type()).filter(|_| is_plain)
        });
        let Some(dtype) = element else {
            let op = self
                .tract()
                .with_context(|| format!("{} of these elements", self.name()))?;
            return op.eval(context, inputs);
        };
        let inputs = self.split(inputs)?;
        ensure!(
            inputs.data.datum_type() == inputs.updates.datum_type(),
            "data are {:?} but updates are {:?}",
            inputs.data.datum_type(),
            inputs.updates.datum_type()
        );
        Ok(tvec!(self.apply(inputs, dtype, plans)?.into_tvalue()))
    }

    /// Scatters in place if no one else holds the data, else into a new tensor.
    fn apply(
        &self,
        inputs: Inputs,
        dtype: DType,
        plans: Option<&Plans<ScatterPlan>>,
    ) -> TractResult<Tensor> {
        let scatter = self.scatter(inputs.updates.shape())?;
        let integers = inputs.indices.as_deref().map(tensor::indices).transpose()?;
        let indices = match &integers {
            Some(integers) => tensor::indices_view(integers)?,
            None => TensorView::splat(&0_i64, &[])?.into(),
        };
        let plan = self.plan(&inputs, &scatter, indices, plans)?;
        let updates = tensor::view(&inputs.updates, dtype)?;
        if inputs.data.is_exclusive() {
            let mut data = inputs.data.into_tensor();
            tensor::change(&mut data, dtype, |data| match &plan {
                Some(plan) => plan.run().in_place(data, updates),
                None => scatter.in_place(data, indices, updates),
            })?;
            return Ok(data);
        }
        let data = tensor::view(&inputs.data, dtype)?;
        let (datum_type, shape) = (inputs.data.datum_type(), inputs.data.shape());
        tensor::written(datum_type, dtype, shape, |output| match &plan {
            Some(plan) => plan.run().write_into(data, updates, output),
            None => scatter.write_into(data, indices, updates, output),
        })
    }

    fn scatter(&self, updates: &[usize]) -> TractResult<Scatter<'static>> {
        let scatter = Scatter::new(self.operator.for_updates(updates))?;
        Ok(scatter.reduction(match self.reduction {
            ScatterReduction::None => Reduction::None,
            ScatterReduction::Add => Reduction::Add,
            ScatterReduction::Mul => Reduction::Mul,
            ScatterReduction::Min => Reduction::Min,
            ScatterReduction::Max => Reduction::Max,
        }))
    }

    fn plan(
        &self,
        inputs: &Inputs,
        scatter: &Scatter<'_>,
        view: AnyView<'_>,
        plans: Option<&Plans<ScatterPlan>>,
    ) -> TractResult<Option<Arc<ScatterPlan>>> {
        let indices = inputs.indices.as_ref().and_then(TValue::as_arc_tensor);
        let (Some(plans), Some(indices)) = (plans, indices) else {
            return Ok(None);
        };
        let shape = inputs.data.shape();
        let operator = self.operator.for_updates(inputs.updates.shape());
        Ok(plans.get(indices, shape, operator, || {
            scatter.plan(ndscatter::Layout::contiguous(shape), view)
        })?)
    }
}

impl Op for NdScatter {
    fn name(&self) -> StaticName {
        match self.operator {
            Operator::Cache { .. } => "ndscatter.TensorScatter",
            Operator::Elements { .. } => "ndscatter.ScatterElements",
            _ => "ndscatter.ScatterNd",
        }
        .into()
    }

    fn info(&self) -> TractResult<Vec<String>> {
        Ok(vec![format!(
            "{:?}, reduction {}",
            self.operator,
            self.reduction.as_str()
        )])
    }

    op_as_typed_op!();
}

impl EvalOp for NdScatter {
    fn eval(&self, context: &EvalContext, inputs: TVec<TValue>) -> TractResult<TVec<TValue>> {
        self.run(context, inputs, self.plans.as_ref())
    }

    /// Runs without kept plans, because constant nodes are evaluated once.
    fn eval_out_of_plan(&self, inputs: TVec<TValue>) -> TractResult<Option<TVec<TValue>>> {
        Ok(Some(self.run(&EvalContext::out_of_plan(), inputs, None)?))
    }
}

impl TypedOp for NdScatter {
    fn output_facts(&self, inputs: &[&TypedFact]) -> TractResult<TVec<TypedFact>> {
        let data = inputs
            .first()
            .with_context(|| format!("{} lacks data", self.name()))?;
        Ok(tvec!(data.datum_type.fact(data.shape.clone())))
    }

    /// Makes tract's rewrite if there is one. Else keeps plans if the indices are constant.
    fn declutter(
        &self,
        model: &TypedModel,
        node: &TypedNode,
    ) -> TractResult<Option<TypedModelPatch>> {
        let inputs = model.node_input_facts(node.id)?;
        // tract's rewrite of data of rank 0 divides by zero.
        if inputs.first().is_some_and(|data| data.rank() > 0)
            && let Some(op) = self.tract()
            && let Some(patch) = op.declutter(model, node)?
        {
            return Ok(Some(patch));
        }
        let planned = self.planned(&inputs);
        let patch = |op| TypedModelPatch::replace_single_op(model, node, &node.inputs, op);
        planned.map(patch).transpose()
    }

    as_op!();
}

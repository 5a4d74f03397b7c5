//! Builders of the ONNX operators.
//!
//! A builder reads the attributes of a node. The types and shapes of the node are inferred by rules,
//! and the node then becomes one node of the typed model. This module does not run anything.

use ndscatter::{CacheMode, Operator};
use tract_core::ops::array::{
    GatherElements, GatherNd, ScatterElements, ScatterNd, ScatterReduction,
};
use tract_core::ops::cast::wire_cast;
use tract_hir::internal::*;
use tract_onnx::Onnx;
use tract_onnx::model::ParsingContext;
use tract_onnx::pb::NodeProto;

use crate::element::element;
use crate::rewrite::rewrite_node;
use crate::scatter::NdScatter;

type Built = (Box<dyn InferenceOp>, Vec<String>);

/// Makes the scatters and gathers of ONNX models run on ndscatter.
///
/// Models that `onnx` loads after this call run ScatterND, ScatterElements, Scatter, TensorScatter,
/// GatherND and GatherElements on ndscatter, also in the bodies of `Scan` and `If`.
/// [`rewrite`](crate::rewrite) lists the element types that stay with tract.
///
/// # Examples
///
/// ```
/// use tract_onnx::prelude::*;
///
/// let mut onnx = tract_onnx::onnx();
/// ndscatter_tract::register(&mut onnx);
/// # let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/test_scatternd_add.onnx");
/// let model = onnx.model_for_path(path)?.into_optimized()?.into_runnable()?;
/// # TractResult::Ok(())
/// ```
pub fn register(onnx: &mut Onnx) {
    let operators = &mut onnx.op_register;
    operators.insert("ScatterND", |_, node| {
        Ok((expand(Node::ScatterNd(reduction(node)?)), vec![]))
    });
    operators.insert("ScatterElements", scatter_elements);
    operators.insert("Scatter", scatter_elements);
    operators.insert("TensorScatter", tensor_scatter);
    operators.insert("GatherND", |_, node| {
        let batch_dims = node.get_attr_opt("batch_dims")?.unwrap_or(0);
        Ok((expand(Node::GatherNd { batch_dims }), vec![]))
    });
    operators.insert("GatherElements", |_, node| {
        let axis = node.get_attr_opt("axis")?.unwrap_or(0);
        Ok((expand(Node::GatherElements { axis }), vec![]))
    });
}

fn scatter_elements(_: &ParsingContext<'_>, node: &NodeProto) -> TractResult<Built> {
    let (axis, reduction) = (node.get_attr_opt("axis")?.unwrap_or(0), reduction(node)?);
    Ok((expand(Node::ScatterElements { axis, reduction }), vec![]))
}

fn tensor_scatter(_: &ParsingContext<'_>, node: &NodeProto) -> TractResult<Built> {
    let axis = node.get_attr_opt("axis")?.unwrap_or(-2);
    let mode = match node.get_attr_opt("mode")?.unwrap_or("linear") {
        "linear" => CacheMode::Linear,
        "circular" => CacheMode::Circular,
        mode => bail!("TensorScatter has no mode {mode}"),
    };
    Ok((expand(Node::TensorScatter { axis, mode }), vec![]))
}

fn reduction(node: &NodeProto) -> TractResult<ScatterReduction> {
    ScatterReduction::parse(node.get_attr_opt("reduction")?.unwrap_or("none"))
}

/// A node of an ONNX model, with its attributes.
#[derive(Clone, Copy, Debug)]
enum Node {
    ScatterNd(ScatterReduction),
    ScatterElements {
        axis: i64,
        reduction: ScatterReduction,
    },
    TensorScatter {
        axis: i64,
        mode: CacheMode,
    },
    GatherNd {
        batch_dims: usize,
    },
    GatherElements {
        axis: i64,
    },
}

impl Node {
    fn is_scatter(self) -> bool {
        !matches!(self, Self::GatherNd { .. } | Self::GatherElements { .. })
    }

    /// Returns the number of the input of the updates of a scatter.
    fn updates_input(self) -> usize {
        if matches!(self, Self::TensorScatter { .. }) {
            1
        } else {
            2
        }
    }

    /// Returns the operator for data of rank `rank`.
    fn op(self, rank: usize) -> TractResult<Box<dyn TypedOp>> {
        Ok(match self {
            Self::ScatterNd(reduction) => Box::new(ScatterNd::new(reduction)),
            Self::ScatterElements { axis, reduction } => {
                Box::new(ScatterElements::new(resolve(axis, rank)?, reduction))
            }
            Self::TensorScatter { axis, mode } => {
                let axis = isize::try_from(resolve(axis, rank)?)?;
                ensure!(
                    axis > 0,
                    "axis 0 of TensorScatter is the axis of the sequences"
                );
                let operator = Operator::Cache {
                    axis,
                    mode,
                    update_len: 0,
                };
                Box::new(NdScatter::new(operator, ScatterReduction::None))
            }
            Self::GatherNd { batch_dims } => Box::new(GatherNd::new(batch_dims)),
            Self::GatherElements { axis } => Box::new(GatherElements::new(resolve(axis, rank)?)),
        })
    }

    /// Adds the rules of the shapes of a scatter.
    fn scatter_rules<'r, 'p: 'r>(
        self,
        s: &mut Solver<'r>,
        inputs: &'p [TensorProxy],
        outputs: &'p [TensorProxy],
    ) -> InferenceResult {
        let (data, updates) = (&inputs[0], &inputs[self.updates_input()]);
        s.given_2(
            &data.datum_type,
            &updates.datum_type,
            move |s, data, updates| s.equals(&outputs[0].datum_type, common_type(data, updates)?),
        )?;
        s.equals(&outputs[0].shape, &data.shape)?;
        match self {
            Self::ScatterElements { .. } => {
                s.equals(&data.rank, &inputs[1].rank)?;
                s.equals(&inputs[1].shape, &updates.shape)
            }
            Self::TensorScatter { .. } => {
                if let Some(starts) = inputs.get(2) {
                    s.equals(&starts.rank, 1)?;
                }
                s.equals(&data.rank, &updates.rank)
            }
            _ => s.given_2(&data.rank, &inputs[1].rank, move |s, rank, indices_rank| {
                let last = last_axis(indices_rank)?;
                s.given(&inputs[1].shape[last], move |s, len| match len.to_i64() {
                    Ok(len) => {
                        ensure!(
                            len <= rank,
                            "tuples of {len} coordinates for data of rank {rank}"
                        );
                        s.equals(&updates.rank, rank + indices_rank - len - 1)
                    }
                    Err(_) => Ok(()),
                })
            }),
        }
    }
}

impl Expansion for Node {
    fn name(&self) -> StaticName {
        match self {
            Self::ScatterNd(_) => "ScatterND",
            Self::ScatterElements { .. } => "ScatterElements",
            Self::TensorScatter { .. } => "TensorScatter",
            Self::GatherNd { .. } => "GatherND",
            Self::GatherElements { .. } => "GatherElements",
        }
        .into()
    }

    fn rules<'r, 'p: 'r, 's: 'r>(
        &'s self,
        s: &mut Solver<'r>,
        inputs: &'p [TensorProxy],
        outputs: &'p [TensorProxy],
    ) -> InferenceResult {
        check_output_arity(outputs, 1)?;
        if self.is_scatter() {
            if !(matches!(self, Self::TensorScatter { .. }) && inputs.len() == 2) {
                check_input_arity(inputs, 3)?;
            }
            return self.scatter_rules(s, inputs, outputs);
        }
        check_input_arity(inputs, 2)?;
        s.equals(&outputs[0].datum_type, &inputs[0].datum_type)?;
        if let Self::GatherNd { batch_dims } = *self {
            return gather_nd_rules(s, batch_dims, inputs, outputs);
        }
        s.equals(&inputs[0].rank, &inputs[1].rank)?;
        s.equals(&outputs[0].shape, &inputs[1].shape)
    }

    fn wire(
        &self,
        prefix: &str,
        model: &mut TypedModel,
        inputs: &[OutletId],
    ) -> TractResult<TVec<OutletId>> {
        let fact = model.outlet_fact(*inputs.first().context("no inputs")?)?;
        let (rank, data_type) = (fact.rank(), fact.datum_type);
        let mut inputs: TVec<OutletId> = inputs.into();
        if self.is_scatter() {
            let updates = self.updates_input();
            let outlet = *inputs.get(updates).context("a scatter without updates")?;
            let common = common_type(data_type, model.outlet_fact(outlet)?.datum_type)?;
            let cast = wire_cast(prefix, model, &[inputs[0], outlet], common)?;
            (inputs[0], inputs[updates]) = (cast[0], cast[1]);
        }
        let data_type = model.outlet_fact(inputs[0])?.datum_type;
        if matches!(self, Self::TensorScatter { .. }) && element(data_type, false).is_none() {
            bail!("TensorScatter of {data_type:?}");
        }
        let outlets = model.wire_node(prefix, self.op(rank)?, &inputs)?;
        rewrite_node(model, outlets[0].node)?;
        Ok(outlets)
    }
}

/// Adds the rules of the shapes of GatherND.
fn gather_nd_rules<'r, 'p: 'r>(
    s: &mut Solver<'r>,
    batch_dims: usize,
    inputs: &'p [TensorProxy],
    outputs: &'p [TensorProxy],
) -> InferenceResult {
    s.given_2(&inputs[0].rank, &inputs[1].rank, move |s, rank, indices_rank| {
        let (rank, last) = (usize::try_from(rank)?, last_axis(indices_rank)?);
        (0..last).try_for_each(|axis| s.equals(&outputs[0].shape[axis], &inputs[1].shape[axis]))?;
        s.given(&inputs[1].shape[last], move |s, len| {
            let Ok(len) = len.to_usize() else {
                return Ok(());
            };
            let addressed = batch_dims.saturating_add(len);
            ensure!(
                addressed <= rank && batch_dims <= last,
                "tuples of {len} coordinates with {batch_dims} batch dims do not fit data of rank {rank}"
            );
            s.equals(&outputs[0].rank, i64::try_from(last + rank - addressed)?)?;
            (addressed..rank).try_for_each(|axis| {
                s.equals(&outputs[0].shape[last + axis - addressed], &inputs[0].shape[axis])
            })
        })
    })
}

fn last_axis(rank: i64) -> TractResult<usize> {
    ensure!(rank > 0, "indices of rank 0");
    Ok(usize::try_from(rank - 1)?)
}

fn common_type(data: DatumType, updates: DatumType) -> TractResult<DatumType> {
    DatumType::super_type_for([data, updates])
        .with_context(|| format!("data are {data:?} and updates are {updates:?}"))
}

/// Returns an axis in `0..rank`. A negative axis counts from the end.
fn resolve(axis: i64, rank: usize) -> TractResult<usize> {
    let size = i64::try_from(rank)?;
    let resolved = if axis < 0 {
        axis.checked_add(size)
    } else {
        Some(axis)
    };
    resolved
        .and_then(|axis| usize::try_from(axis).ok())
        .filter(|&axis| axis < rank)
        .with_context(|| format!("axis {axis} of data of rank {rank}"))
}
